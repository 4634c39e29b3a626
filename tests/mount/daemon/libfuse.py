#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""With a libfuse whose answers do not come, because a later version may write them otherwise, a mount
ends at once, says so, and leaves nothing mounted; and so with one that answers the first request by
itself, in fuse_session_mount(). With this one an answer leaves by the daemon alone: libfuse does not have the kernel's device."""

import os

from harness import ZKLOCKFS, check, check_equal, command, mounted, run


def test(case):
    server = case.server()
    point = case.directory + '/point'
    os.mkdir(point)
    for library, why in (('silent_libfuse', "does not answer the kernel's first request"),
                         ('hasty_libfuse', "has answered the kernel's first request by itself")):
        status, _, err = command(
            ['timeout', '60', ZKLOCKFS, '-f', '-o', 'noprotect,tick_time=2s', f'127.0.0.1:{server.port}/locks', point],
            env={**os.environ, **case.preloaded(library)})
        check_equal(status, 32, err)
        check(why in err, err)
        check(': serves ' not in err, err)
        check(not mounted(point), 'nothing is mounted')

    mount = case.mount(server)
    descriptors = f'/proc/{mount.daemon}/fd'
    links = [os.readlink(f'{descriptors}/{fd}') for fd in os.listdir(descriptors)]
    check_equal(links.count('/dev/fuse'), 1, f'descriptors of the device: {links}')


run(test)
