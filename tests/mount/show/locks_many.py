#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A thousand locks in `.zklockfs/locks` are read in less than a second. Several readers at once
succeed, too, and no taker waits for them. A reader that stops costs little memory, and each user
has a limit."""

import errno
import os
import threading

from harness import ALICE, BOB, Stopwatch, check, check_equal, check_user, keep_nothing, run, until

LOCKS = 1000
FREE = 3000
MOST = 8 << 20    # BUDGET_USER_BYTES


def plant(server, mount):
    """Locks that are held and waited for, and many that are free."""
    client = server.client()
    names = [f'lock{i:04d}' for i in range(LOCKS)]
    for name in names:
        client.create(f'/locks/{name}')
        for pid in (1, 2):
            client.create(f'/locks/{name}/_c_01234567-89ab-cdef-0123-{pid:012x}-web.{pid}-lock-',
                          b'uid: 7\ncommand: job\nheld_since: 1000\nreason: some reason\n', ephemeral=True, sequence=True)
    for i in range(FREE):
        client.create(f'/locks/free{i:04d}')
    return client, names


def check_lines(text, names, what):
    """Check for these locks, and maybe `other`, which the test takes again and again."""
    found = [line.split()[0] for line in text.splitlines()[1:]]
    if found[-1:] == ['other']:
        found.pop()
    check_equal(len(found), len(names), f'lines, {what}')
    check(found == names, f'other locks, {what}')


def check_stopped(mount, names):
    """A reader reads a little and stops. Later it gets the rest, in pieces of any size."""
    path = mount.path('.zklockfs', 'locks')
    fd = os.open(path, os.O_RDONLY)
    text = os.read(fd, 1)
    text += os.read(fd, 100)
    before = mount.status()['open_bytes']
    check_lines(mount.read('.zklockfs', 'locks'), names, 'another one meanwhile')
    check_equal(mount.status()['open_bytes'], before, 'and it costs no more')
    check(int(before) < 1 << 20, f'it costs {before} bytes')
    for size in (1, 7, 4096, 1 << 20):
        text += os.read(fd, size)
    while more := os.read(fd, 65536):
        text += more
    check_lines(text.decode(), names, 'in pieces')
    check_equal(os.read(fd, 10), b'', 'at the end')
    try:
        os.lseek(fd, 0, os.SEEK_SET)
    except OSError as err:
        check_equal(err.errno, errno.ESPIPE, 'it is read once')
    else:
        check(False, 'it can be read again')
    os.close(fd)


def check_budget(mount):
    """One user keeps many files open, each half read."""
    path, before = mount.path('.zklockfs', 'locks'), mount.resident()

    def many():
        files = []
        while True:
            files.append(os.open(path, os.O_RDONLY))
            os.read(files[-1], 10)
            check(mount.resident() - before < 3 * MOST, f'{len(files)} cost {mount.resident() - before} bytes')
    check_user(errno.ENFILE, ALICE, many)
    check_user(0, BOB, os.open, path, os.O_RDONLY)
    mount.allow('open files of uid')
    until(lambda: mount.status()['open_bytes'] == '0', 'all is given back')


def test(case):
    keep_nothing()
    server = case.server()
    mount = case.mount(server)
    mount.mkdir('other')
    client, names = plant(server, mount)
    mount.read('.zklockfs', 'locks')
    took = []

    def fast():
        watch = Stopwatch()
        text = mount.read('.zklockfs', 'locks')
        took.append(watch.seconds())
        check_lines(text, names, 'one reader')
        return len(took) >= 5 and min(took) < 1 or not mount.watched
    # The machine may be busy with other things.
    until(fast, f'{LOCKS} locks of {LOCKS + FREE} in less than a second')
    print(f'{LOCKS} locks of {LOCKS + FREE}: {sorted(took)}')

    # Several readers of two users at once, and takes of a lock meanwhile.
    wrong = []

    def read():
        try:
            check_lines(mount.read('.zklockfs', 'locks'), names, 'with others')
        except (OSError, AssertionError) as err:
            wrong.append(err)
    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    check_user(0, ALICE, lambda: check_lines(mount.read('.zklockfs', 'locks'), names, 'another user'))
    takes = []
    while any(reader.is_alive() for reader in readers) or not takes:
        watch = Stopwatch()
        os.close(os.open(mount.path('other', 'lock'), os.O_RDWR))
        takes.append(watch.seconds())
    check_equal(wrong, [], 'what went wrong')
    print(f'{len(takes)} takes meanwhile, the median {sorted(takes)[len(takes) // 2]:.4f} s, the longest {max(takes):.4f} s')
    check(sorted(takes)[len(takes) // 2] < 0.1, f'takes beside it: {takes}')

    check_stopped(mount, names)
    check_budget(mount)
    client.close()


run(test)
