#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`.zklockfs/locks` while the ensemble cannot be reached: a reader gets the known part and soon
after it an error, never a false end of the file, and gets the rest when the ensemble is back.
SIGKILL ends the wait at once, and so does the end of the mount."""

import errno
import os
import signal

from harness import NOBODY, Stopwatch, check, check_equal, check_errno, run, until

LOCKS = 300


def read_all(fd):
    """The text until the end or an error; and 0 or the errno."""
    text = b''
    try:
        while more := os.read(fd, 65536):
            text += more
    except OSError as err:
        return text, err.errno
    return text, 0


def read_rest(fd):
    """The text until the end. The mount may find out only now that contact was lost."""
    text = b''

    def over():
        nonlocal text
        more, code = read_all(fd)
        text += more
        check(code in (0, errno.EHOSTUNREACH), f'the rest: {errno.errorcode.get(code, code)}')
        return code == 0
    until(over, 'the rest')
    return text


def locks_of(text):
    return [line.split()[0] for line in text.decode().splitlines()[1:]]


def check_lost_in_the_middle(server, relay, mount, names):
    path = mount.path('.zklockfs', 'locks')
    fd = os.open(path, os.O_RDONLY)
    head = os.read(fd, 10)
    relay.freeze()
    watch = Stopwatch()
    some, code = read_all(fd)
    check_equal(code, errno.EHOSTUNREACH, 'in the middle')
    watch.check(0, 5, 'an error')
    check_equal(locks_of(head + some), names[:len(locks_of(head + some))], 'what was known before')
    check(len(locks_of(head + some)) < LOCKS, 'all of it was known before')
    mount.allow('.')

    # A file that is opened during this time.
    other = os.open(path, os.O_RDONLY)
    check_equal([code for _, code in (read_all(other), read_all(other))], 2 * [errno.EHOSTUNREACH], 'no server')

    relay.thaw()
    mount.ready()
    check_equal(locks_of(head + some + read_rest(fd)), names, 'when it is back')
    check_equal(len(read_rest(other).splitlines()), LOCKS, 'the other one')
    os.close(fd)
    os.close(other)


def check_signal(case, relay, mount):
    """A reader that waits can be killed."""
    reader = case.mounts[0].take('.zklockfs', door='locks', flags=os.O_RDONLY, uid=NOBODY).held()
    reader.do('read', 10)
    relay.freeze()
    reader.conn.send(('read', (65536,)))
    until(lambda: open(f'/proc/{reader.pid}/wchan', encoding='ascii').read() not in ('', '0'), 'it waits')
    watch = Stopwatch()
    reader.kill(signal.SIGKILL)
    reader.gone()
    watch.check(0, 1, 'killed')
    relay.thaw()
    mount.ready()


def test(case):
    server = case.server()
    relay = case.relay(server)
    mount = case.mount(server, servers=f'127.0.0.1:{relay.port}')
    client = server.client()
    names = [f'lock{i:03d}' for i in range(LOCKS)]
    for name in names:
        client.create(f'/locks/{name}')
        client.create(f'/locks/{name}/x-', ephemeral=True, sequence=True)
    check_lost_in_the_middle(server, relay, mount, names)
    check_signal(case, relay, mount)

    # The mount leaves while somebody reads.
    reader = mount.take('.zklockfs', door='locks', flags=os.O_RDONLY).held()
    reader.do('read', 10)
    server.stop()
    reader.conn.send(('read', (65536,)))
    until(lambda: mount.status()['state'] != 'ready', 'it sees that the server has gone')
    mount.process.send_signal(signal.SIGTERM)
    mount.check_end()
    check_errno(errno.ENOENT, os.stat, mount.path('.zklockfs'))


run(test)
