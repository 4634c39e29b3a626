#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`reentrant` (rule 15): a process that has the lock exclusively joins its own hold at once,
with the same token. The last close gives the lock back. All other processes queue as at `lock`."""

import errno
import os
import select
import threading

from clan import Clan
from harness import Stopwatch, check, check_equal, check_errno, errno_of, run, until


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    a.allow('lost')
    a.mkdir('build')
    a.mkdir('other')
    lock, shared, trying, reentrant = (a.path('build', lock_file) for lock_file in
                                       ('lock', 'shared', 'try', 'reentrant'))
    clan = Clan(case)
    p, stranger = clan.member(), clan.member()

    def queued(count):
        until(lambda: len(server.entries('build')) == count, f'{count} in the queue')

    # Joined at once, by any name of the lock file, and only there.
    first = p.open(reentrant).held()
    token = first.token()
    for name in ('reentrant', 'reentrant@30s', 'reentrant@0s'):
        again = p.open(a.path('build', name)).held()
        check_equal(again.token(), token, f'token by {name}')
        again.close()
    second = p.open(reentrant, os.O_WRONLY | os.O_NONBLOCK).held()
    p.refused(errno.EACCES, reentrant, os.O_RDONLY)
    p.refused(errno.EAGAIN, trying)
    p.refused(errno.EAGAIN, lock, os.O_RDWR | os.O_NONBLOCK)
    queued(1)
    second.do('write', b'by the second\n')
    check(a.read('build', 'holder').endswith('reason=by the second\n'), 'the reason')

    # Another process, another mount, another lock, and shared holds.
    stranger.refused(errno.EAGAIN, reentrant, os.O_RDWR | os.O_NONBLOCK)
    stranger.refused(errno.EAGAIN, a.path('build', 'reentrant@0s'))
    watch = Stopwatch()
    stranger.refused(errno.ETIMEDOUT, a.path('build', 'reentrant@300ms'))
    watch.check(0.3, 3, 'reentrant@300ms')
    p.refused(errno.EAGAIN, b.path('build', 'reentrant'), os.O_RDWR | os.O_NONBLOCK)
    elsewhere = p.open(a.path('other', 'reentrant')).held()
    check(elsewhere.token() != token, 'another lock, another token')
    elsewhere.close()
    elsewhere = p.open(a.path('other', 'shared')).held()
    p.refused(errno.EAGAIN, a.path('other', 'reentrant'), os.O_RDWR | os.O_NONBLOCK)
    elsewhere.close()

    # The last close gives the lock back. A waiter does not keep the holder's process out.
    waiting = stranger.open(reentrant)
    queued(2)
    first.close()
    third = p.open(reentrant).held()
    check_equal(third.token(), token, 'the same hold')
    second.close()
    queued(2)
    check_equal(errno_of(third.do, 'fsync'), 0, 'fsync by the last one')
    check(not waiting.answered(), 'the stranger holds beside it')
    third.close()
    waiting.held()
    check(waiting.token() > token, 'the token rises')
    p.refused(errno.EAGAIN, reentrant, os.O_RDWR | os.O_NONBLOCK)
    waiting.close()

    # An exclusive hold by another lock file is joined, too.
    for lock_file in (lock, trying, a.path('build', 'lock@5s')):
        taken = p.open(lock_file).held()
        joined = p.open(reentrant).held()
        check_equal(joined.token(), taken.token(), f'beside {lock_file}')
        taken.close()
        queued(1)
        check_equal(errno_of(joined.do, 'fsync'), 0, 'it is kept')
        joined.close()
        queued(0)

    # Two threads of one process wait: when one gets the lock, both have it, and no stranger.
    held = stranger.open(lock).held()
    two = [p.open(reentrant)]
    queued(2)
    two.append(p.open(reentrant))
    queued(3)
    last = clan.member().open(reentrant)
    queued(4)
    held.close()
    check_equal(len({opening.held().token() for opening in two}), 1, 'tokens')
    queued(2)
    two[0].close()
    check_equal(errno_of(two[1].do, 'fsync'), 0, 'the other thread holds still')
    check(not last.answered(), 'the one behind them')
    two[1].close()
    last.held().close()
    queued(0)

    # Two threads at `lock` exclude each other.
    held = p.open(lock).held()
    other = p.open(lock)
    queued(2)
    check_equal(errno_of(held.do, 'fsync'), 0, 'held')
    check(not other.answered(), 'two threads hold by `lock`')
    held.close()
    other.held().close()
    queued(0)

    # All descriptors of a hold lose it, and polls are woken; a lost hold is not joined.
    fds = [os.open(reentrant, os.O_RDWR) for _ in range(2)]
    woken = []

    def trouble(fd, timeout_ms):
        poll = select.poll()
        poll.register(fd, 0)
        woken.extend(poll.poll(timeout_ms))

    for fd in fds:
        trouble(fd, 0)
        threading.Thread(target=trouble, args=(fd, 60000), daemon=True).start()
    check_equal(woken, [], 'no trouble yet')
    token = int(os.pread(fds[0], 64, 0))
    entry, = server.entries('build')
    server.zk.delete('/locks/build/' + entry)
    until(lambda: len(woken) == 2, 'both are woken')
    for fd in fds:
        check_errno(errno.EIO, os.pread, fd, 64, 0)
        check_errno(errno.EIO, os.write, fd, b'x')
        check_errno(errno.EIO, os.fsync, fd)
    new = os.open(reentrant, os.O_RDWR)
    check(int(os.pread(new, 64, 0)) > token, 'a new hold')
    check_errno(errno.EIO, os.pread, fds[0], 64, 0)
    for fd in fds:
        os.close(fd)
    os.fsync(new)
    os.close(new)
    queued(0)


run(test)
