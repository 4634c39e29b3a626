#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`.zklockfs/locks` while the ensemble cannot be reached: who opens it gets an error soon, never a part of the list, and
all of it when the ensemble is back. SIGKILL ends the wait at once, and so does the end of the mount."""

import errno
import os
import signal

from harness import NOBODY, Stopwatch, check_equal, check_errno, patiently, run, until

LOCKS = 300


def check_lost(relay, mount, names):
    path = mount.path('.zklockfs', 'locks')
    relay.freeze()
    watch = Stopwatch()
    for _ in range(2):
        check_errno(errno.EHOSTUNREACH, os.open, path, os.O_RDONLY)
    watch.check(0, 10, 'two errors')
    mount.allow('.')
    relay.thaw()
    mount.ready()
    text = []
    patiently(lambda: text.append(mount.read('.zklockfs', 'locks')))
    check_equal([line.split()[0] for line in text[0].splitlines()[1:]], names, 'when it is back')


def opens(case, uid=0):
    """A process that waits for the list."""
    opener = case.mounts[0].take('.zklockfs', lock_file='locks', flags=os.O_RDONLY, uid=uid)
    until(lambda: opener.answered() or open(f'/proc/{opener.pid}/wchan', encoding='ascii').read() not in ('', '0'), 'it waits')
    return opener


def test(case):
    server = case.server()
    relay = case.relay(server)
    mount = case.mount(server, servers=f'127.0.0.1:{relay.port}')
    client = server.client()
    names = [f'lock{i:03d}' for i in range(LOCKS)]
    for name in names:
        client.create(f'/locks/{name}')
        client.create(f'/locks/{name}/x-', ephemeral=True, sequence=True)
    check_lost(relay, mount, names)

    relay.freeze()
    opener = opens(case, NOBODY)
    watch = Stopwatch()
    opener.kill(signal.SIGKILL)
    opener.gone()
    watch.check(0, 1, 'killed')
    relay.thaw()
    mount.ready()

    # The mount leaves while somebody opens it.
    server.stop()
    until(lambda: mount.status()['state'] != 'ready', 'it sees that the server has gone')
    opener = opens(case)
    mount.process.send_signal(signal.SIGTERM)
    mount.check_end()
    opener.kill()
    check_errno(errno.ENOENT, os.stat, mount.path('.zklockfs'))


run(test)
