#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The daemon was told to leave, and the last program that holds a lock closes its file: that was
the last file of the whole mount, and the kernel may end the mount before it reports the close.
Nobody has a file open then, so the lock is free at once, though there are so many descriptors on
the host that they cannot be looked through in time."""

import os
import resource
import signal

from harness import EMULATOR, check_equal, die_with_parent, mounted, run, until

PROCESSES, DESCRIPTORS = 60, 15000
TRIES = 3


def have_many():
    """Processes with copies of the same descriptors."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    for _ in range(min(DESCRIPTORS, limit - 100)):
        os.open('/dev/null', os.O_RDONLY)
    for _ in range(PROCESSES):
        if os.fork() == 0:
            break


def keep_many(told):
    die_with_parent()
    have_many()
    os.write(told, b'.')
    signal.pause()


def test(case):
    ready, told = os.pipe()
    supervisor = os.fork()
    if supervisor == 0:
        try:
            os.setpgid(0, 0)
            keep_many(told)
        finally:
            os._exit(1)
    case.cleanups.callback(lambda: (os.killpg(supervisor, signal.SIGKILL), os.waitpid(supervisor, 0)))
    seen = 0
    while seen <= PROCESSES:
        seen += len(os.read(ready, 100))
    server = case.server()
    for number in range(TRIES):
        mount = case.mount(server, f'h{number}')
        mount.mkdir(f'build{number}')
        holder = mount.take(f'build{number}').held()
        mount.process.send_signal(signal.SIGTERM)
        until(lambda mount=mount: mounted(mount.directory) is None, 'the mount point goes')
        holder.release()
        mount.check_end()
        if os.uname().machine == 'x86_64' and not EMULATOR:
            check_equal(server.entries(f'build{number}'), [], 'the entry')
        else:   # there may be no question that tells (ustat): the session ends
            until(lambda number=number: not server.entries(f'build{number}'), 'the entry goes', 30)


run(test)
