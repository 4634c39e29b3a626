#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A thousand locks in `.zklockfs/locks` are read. Several readers at once succeed, too, and no taker waits for them. A
reader that stops costs its text, at its user's cost. A reader is not kept waiting for too long by its own
questions, though the ensemble is far away."""

import errno
import os
import threading

from harness import (ALICE, Stopwatch, check, check_equal, check_user, command, errno_of, keep_nothing, patiently,
                     run, until)

LOCKS = 1000
FAR_LOCKS, ROUND_TRIP = 50, 0.1
FREE = 3000


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


def check_read(mount, names, what):
    """A busy server may not answer in time."""
    text = []
    patiently(lambda: text.append(mount.read('.zklockfs', 'locks')))
    check_lines(text[0], names, what)


def check_copy(mount, names, copy):
    """No size makes cp(1), or what reads as much as is shown, stop before the end."""
    check_equal(os.stat(mount.path('.zklockfs', 'locks')).st_size, 0, 'the size')
    until(lambda: command(['cp', mount.path('.zklockfs', 'locks'), copy])[0] == 0, 'cp')
    with open(copy, encoding='utf-8') as file:
        check_lines(file.read(), names, 'copied')


def check_stopped(mount, names):
    """A reader reads a little and stops. Later it gets the rest, in pieces of any size."""
    path = mount.path('.zklockfs', 'locks')
    with open(path, 'rb', buffering=0) as file:
        text = file.read(1)
        text += file.read(100)
        before = mount.status()['open_bytes']
        check_read(mount, names, 'another one meanwhile')
        check_equal(mount.status()['open_bytes'], before, 'and it costs no more')
        check(int(before) < 1 << 20, f'it costs {before} bytes')
        for size in (1, 7, 4096, 1 << 20):
            text += file.read(size)
        while more := file.read(65536):
            text += more
        check_lines(text.decode(), names, 'in pieces')
        check_equal(file.read(10), b'', 'at the end')
        check_equal(errno_of(os.lseek, file.fileno(), 0, os.SEEK_SET), errno.ESPIPE, 'from the beginning: it is read once')


def check_open_again(mount, names):
    """Another daemon takes over while the list is made: it makes all of it."""
    text = []
    reader = threading.Thread(target=lambda: text.append(mount.read('.zklockfs', 'locks')))
    asked = mount.metric('requests_total')
    reader.start()
    until(lambda: mount.metric('requests_total') > asked + 3, 'it asks')
    check(not text, 'the list was made before the reload')
    mount.reload()
    reader.join()
    check_lines(text[0], names, 'over a reload')


def check_budget(mount):
    """A user pays for the lists that are open."""
    file = os.open(mount.path('.zklockfs', 'locks'), os.O_RDONLY)
    text = b''
    while more := os.read(file, 65536):
        text += more
    check(len(text) < int(mount.status()['open_bytes']) < len(text) + 4096, f'{len(text)} bytes, {mount.status()["open_bytes"]}')
    os.close(file)
    until(lambda: mount.status()['open_bytes'] == '0', 'all is given back')


def check_far(case, server, client):
    """Each list is a round trip, one after the other."""
    names = [f'far/far{i:02d}' for i in range(FAR_LOCKS)]
    client.create('/locks/far')
    for name in names:
        client.create(f'/locks/{name}')
        client.create(f'/locks/{name}/x-', ephemeral=True, sequence=True)
    mount = case.mount(server, 'far', servers=f'127.0.0.1:{case.relay(server, delay=ROUND_TRIP / 2).port}',
                       root='/locks/far')
    check_read(mount, [name.removeprefix('far/') for name in names], 'far away')
    check_open_again(mount, [name.removeprefix('far/') for name in names])
    mount.unmount()


def test(case):
    keep_nothing()
    server = case.server()
    mount = case.mount(server)
    mount.mkdir('other')
    client, names = plant(server, mount)
    for _ in range(2):
        check_read(mount, names, 'one reader')

    # Several readers of two users at once, and takes of a lock meanwhile.
    wrong = []

    def read():
        try:
            check_read(mount, names, 'with others')
        except (OSError, AssertionError) as err:
            wrong.append(err)
    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    check_user(0, ALICE, lambda: check_read(mount, names, 'another user'))
    takes, watch = 0, Stopwatch()
    while any(reader.is_alive() for reader in readers) or not takes:
        os.close(os.open(mount.path('other', 'lock'), os.O_RDWR))
        takes += 1
    watch.check(0, takes, f'{takes} takes beside it')
    check_equal(wrong, [], 'what went wrong')

    patiently(check_stopped, mount, names)
    check_copy(mount, names, os.path.join(case.directory, 'copy'))
    check_budget(mount)
    check_far(case, server, client)
    client.close()


run(test)
