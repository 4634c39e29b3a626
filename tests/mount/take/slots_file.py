#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`slots` says how many may hold a lock at a time (rule 12). Owner and root write it, and one
write is one number. All mounts follow it: a higher number lets waiters in, a lower one counts
for later takers."""

import errno
import os

from harness import (ALICE, BOB, Stopwatch, check, check_equal, check_errno, check_user, command, errno_of, run,
                     shells, until)


def write(path, *numbers, flags=os.O_WRONLY):
    fd = os.open(path, flags)
    try:
        for number in numbers:
            check_equal(os.write(fd, number), len(number), 'bytes written')
    finally:
        os.close(fd)


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    os.umask(0)
    a.mkdir('build')
    slots = a.path('build', 'slots')

    def everywhere(number):
        for mount in (a, b):
            check_equal(mount.read('build', 'slots'), f'{number}\n', f'slots on {mount.host}')

    # Valid and invalid numbers.
    everywhere(1)
    write(slots, b'3\n')
    everywhere(3)
    write(b.path('build', 'slots'), b'10000', flags=os.O_RDWR | os.O_TRUNC)
    everywhere(10000)
    write(slots, b'5', b'4\n', b'6')
    everywhere(6)
    fd = os.open(slots, os.O_WRONLY)
    os.pwrite(fd, b'7', 4711)
    os.close(fd)
    everywhere(7)
    for wrong in (b'\n', b'0', b'10001', b'x', b'-1', b'+1', b' 1', b'1 ', b'1\n\n', b'1\n2\n', b'0x1', b'1.0', b'\0',
                  b'99999999999999999999', b'1' * 5000):
        check_errno(errno.EINVAL, write, slots, wrong)
    os.truncate(slots, 0)
    os.close(os.open(slots, os.O_WRONLY | os.O_TRUNC))
    everywhere(7)
    for number, shell in enumerate(shells(), 1):
        check_equal(command([*shell, '-c', f'echo {number} >"$1"', 'sh', slots])[0], 0, ' '.join(shell))
        everywhere(number)
    write(slots, b'1')
    check_equal(server.zk.get('/locks/build')[0], b'zklockfs: 1\nuid: 0\ngid: 0\nmode: 777\ndoor_mode: 666\n\n',
                'the data')

    # The users that may write `slots`.
    check_equal(os.stat(slots).st_mode & 0o7777, 0o644, 'the mode')
    check_user(errno.EACCES, ALICE, write, slots, b'2')
    os.chown(a.path('build'), ALICE, -1)
    until(lambda: os.stat(slots).st_uid == os.stat(b.path('build', 'slots')).st_uid == ALICE, 'its owner')
    check_user(0, ALICE, write, slots, b'2\n')
    check_user(errno.EACCES, BOB, write, slots, b'1')
    everywhere(2)

    # As many takers hold as there are slots, on all mounts together.
    first, second = a.take('build').held(), b.take('build').held()
    third = a.take('build')
    until(lambda: len(server.entries('build')) == 3, 'the third queues')
    fourth = b.take('build')
    until(lambda: len(server.entries('build')) == 4, 'all queue')
    check(not third.answered(0.3) and not fourth.answered(), 'more hold than there are slots')
    check_errno(errno.EAGAIN, os.open, b.path('build', 'try'), os.O_RDWR)
    check_equal(len(b.read('build', 'holder').splitlines()), 2, 'lines of holder')
    check_equal([bool(os.stat(b.path('build', 'queue', name)).st_mode & 0o100) for name in b.queue('build')],
                [True, True, False, False], 'the entries that are marked as holders')
    check_equal([b.fields('build', 'queue', name)['state'] for name in b.queue('build')],
                ['held', 'held', 'waiting', 'waiting'], 'states')
    write(slots, b'3')
    third.held()
    check(not fourth.answered(0.3), 'two more hold')
    # A lower number takes the lock away from no holder.
    write(slots, b'1')
    for holder in (first, second, third):
        check(holder.token() > 0, 'a holder lost it')
    first.release()
    second.release()
    check(not fourth.answered(0.3), 'it holds beside another')
    third.release()
    fourth.held().release()

    check_errno(errno.ENOENT, write, a.path('none', 'slots'), b'2')

    # No change waits for ever. After the error it may have been made; making it again does no harm.
    fd = os.open(slots, os.O_WRONLY)
    server.freeze()
    watch = Stopwatch()
    check_errno(errno.EHOSTUNREACH, os.write, fd, b'4')
    check_errno(errno.EHOSTUNREACH, os.chmod, a.path('build'), 0o700)
    watch.check(1, 5, 'two changes without an ensemble')
    server.thaw()
    until(lambda: errno_of(os.write, fd, b'5') == 0, 'it answers again')
    os.close(fd)
    everywhere(5)
    check_equal(os.stat(a.path('build')).st_uid, ALICE, 'its owner')


run(test)
