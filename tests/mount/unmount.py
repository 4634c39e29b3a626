#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An idle mount can be unmounted, and its daemon ends with 0. While a door is open, or somebody
waits, unmounting is EBUSY and disturbs nobody."""

import ctypes
import errno

from harness import check, check_equal, command, libc, mounted, run, until


def test(case):
    server = case.server()
    mount = case.mount(server)
    mount.mkdir('build')

    def busy():
        check_equal(libc.umount2(mount.directory.encode(), 0), -1, 'umount2')
        check_equal(ctypes.get_errno(), errno.EBUSY, 'umount2')
        check(command(['fusermount3', '-u', mount.directory])[0] != 0, 'fusermount3 -u')
        check(mounted(mount.directory), 'it was unmounted')

    holder = mount.take('build').held()
    busy()
    waiter = mount.take('build')
    until(lambda: len(server.entries('build')) == 2, 'the waiter queues')
    busy()
    holder.release()
    waiter.held()
    busy()
    waiter.release()
    mount.unmount()

    # After a lazy unmount the daemon goes on for processes with open files.
    mount = case.mount(server, 'b')
    holder = mount.take('build').held()
    check_equal(command(['fusermount3', '-uz', mount.directory])[0], 0, 'fusermount3 -uz')
    check(holder.token() > 0, 'the holder was disturbed')
    check_equal(len(server.entries('build')), 1, 'the entry')
    holder.release()
    mount.check_end()


run(test)
