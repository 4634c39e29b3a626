#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Another program takes over a mount (SIGUSR2), and no user notices: holders of every lock file keep
lock and token, waiters keep their places and their time limits and can be interrupted, and open
files stay as they were."""

import errno
import os
import select
import signal
import threading
from fcntl import F_UNLCK, F_WRLCK, LOCK_EX, LOCK_SH, LOCK_UN

from clan import Clan
from harness import CRASHES, SLOWNESS, Stopwatch, check, check_equal, is_in_the_call, run, until
from locker import Locker

# Seconds of limits that begin before a reload and end after it.
LIMIT = int(15 * SLOWNESS)
BRIEF = int(8 * SLOWNESS)
LINGER = 2     # how long an interrupted taker's place is kept


def waiters(case, server):
    """Waiters in several processes: one with a time limit, one is interrupted after the reload, one
    is killed, and one was interrupted before it, so that its place is only kept."""
    mount = case.mount(server, session='30s')
    mount.mkdir('build')

    def queued(count, lingering=0):
        """A busy machine may need longer than a place is kept."""
        def there():
            found = len(server.entries('build'))
            return found == count or (found == count - lingering and kept.seconds() > LINGER)
        until(there, f'{count} in the queue')

    holder = mount.take('build').held()
    token = holder.token()
    holder.do('write', b'a reason\n')
    takers = []
    watch = Stopwatch()
    for lock_file in ('lock', f'lock@{LIMIT}s', 'lock', 'lock@1h', 'lock', 'lock'):
        takers.append(mount.take('build', lock_file))
        queued(len(takers) + 1)
    first, limited, interrupted, killed, comes_back, last = takers
    kept = Stopwatch()
    comes_back.kill(signal.SIGUSR1)
    comes_back.refused(errno.EINTR)
    before = server.entries('build')
    mount.reload()
    check_equal(holder.token(), token, 'the token')
    check('a reason' in mount.read('build', 'holder'), 'the reason is lost')
    after = server.entries('build')
    check(after == before or kept.seconds() > LINGER and after == before[:5] + before[6:],
          f'the queue: {before} and {after}')
    again = mount.take('build')     # another process, at the end
    queued(8, lingering=1)
    check(not any(taker.answered() for taker in takers), 'a waiter does not wait')
    kept = Stopwatch()
    interrupted.kill(signal.SIGUSR1)
    interrupted.refused(errno.EINTR)
    killed.kill()
    killed.gone()
    comes_back.kill()
    comes_back.gone()
    queued(6, lingering=1)
    mount.reload()                  # the place of the interrupted one lingers
    interrupted.kill()
    interrupted.gone()
    queued(5)
    limited.refused(errno.ETIMEDOUT)
    watch.check(LIMIT, LIMIT + 3 * SLOWNESS, 'the time limit')
    holder.release()
    for taker in (first, last, again):
        taker.held()
        check(taker.token() > token, 'the token does not rise')
        token = taker.token()
        mount.reload()
        check_equal(taker.token(), token, 'the token of one that waited over a reload')
        taker.release()
    check_equal(mount.metric('takes_total'), 8, 'all takes since the first start')
    history = mount.read('.zklockfs', 'history')
    check_equal(len(history.splitlines()), 1 + 4, 'the history')
    mount.reload()
    check_equal(mount.read('.zklockfs', 'history'), history, 'the history after a reload')
    if not CRASHES:     # which lose what has changed within a second
        check_equal(mount.metric('hold_seconds_count'), 4, 'all holds that have ended since')


def lock_files(case, server):
    """Lock files and their openers: shared, reentrant, with a least time, with a longest time."""
    mount = case.mount(server, 'b', session='30s')
    mount.mkdir('docs')
    mount.mkdir('deep')
    readers = [mount.take('docs', 'shared').held() for _ in range(2)]
    writer = mount.take('docs', 'try', os.O_RDWR)
    writer.refused(errno.EAGAIN)
    writer = mount.take('docs')
    clan = Clan(case)
    member = clan.member()
    held = member.open(mount.path('deep', 'reentrant')).held()
    token = held.token()
    stranger = clan.member()
    waiting = stranger.open(mount.path('deep', 'reentrant'))
    until(lambda: len(server.entries('deep')) == 2 and len(server.entries('docs')) == 3, 'all queue')
    mount.reload()
    again = member.open(mount.path('deep', 'reentrant@0s')).held()
    check_equal(again.token(), token, 'joined after the reload')
    held.close()
    mount.reload()
    check_equal(again.token(), token, 'one of the two is left')
    check(not waiting.answered(), 'a stranger joined')
    again.close()
    waiting.held()
    waiting.close()
    for reader in readers:
        check(not writer.answered(), 'an exclusive holder beside a shared one')
        reader.release()
    writer.held()
    writer.release()

    # Times of a lock file: a lock is kept until its least time, and lost after its longest time.
    mount.allow('lost')
    mount.mkdir('kept')
    mount.rest()
    watch = Stopwatch()
    mount.take('kept', f'try@least={BRIEF}s').held().release()
    mount.mkdir('brief')
    brief = mount.take('brief', f'lock@most={BRIEF}s').held()
    mount.reload()
    behind = mount.take('kept')
    brief.token()
    check(not behind.answered(), 'what is kept was to be had')
    behind.held()
    watch.check(BRIEF - 0.2, BRIEF + 2 * SLOWNESS, 'kept over a reload')

    def lost():
        try:
            return not brief.token()
        except OSError as err:
            return err.errno == errno.EIO
    until(lost, 'it is held too long')
    watch.check(BRIEF - 0.2, BRIEF + 3 * SLOWNESS, 'held over a reload')
    behind.release()
    brief.release()


def locks_of_files(case, server):
    """flock(2) and fcntl(2): held, waited for, changed from one kind to the other."""
    mount = case.mount(server, 'c', session='30s')
    mount.mkdir('file')
    mount.mkdir('other')

    def queued(lock, count):
        until(lambda: len(server.entries(lock)) == count, f'{count} in the queue of {lock}')

    p, q, r, s = (Locker(mount, 'file') for _ in range(4))
    fd, qfd, rfd, sfd = (locker.do('open') for locker in (p, q, r, s))
    p.do('flock', fd, LOCK_EX)
    token = p.do('pread', fd, 64, 0)
    p.do('setlk', fd, F_WRLCK)      # flock(2) and fcntl(2) have one hold
    q.ask('raw_flock', qfd, LOCK_EX)
    queued('file', 2)
    r.ask('raw_setlkw', rfd, F_WRLCK)
    queued('file', 3)
    s.ask('raw_setlkw', sfd, F_WRLCK)
    queued('file', 4)
    mount.reload()
    check_equal(p.do('pread', fd, 64, 0), token, 'the token of a file that is locked')
    p.do('flock', fd, LOCK_UN)
    r.kill(signal.SIGUSR1)
    r.fails(errno.EINTR)
    s.kill(signal.SIGKILL)
    queued('file', 3)
    before = server.entries('file')
    mount.reload()
    check(not q.answered(), 'the lock by fcntl is gone')
    # Its place is kept for the process that comes back by the same open file.
    q.kill(signal.SIGUSR1)
    q.fails(errno.EINTR)
    q.ask('raw_flock', qfd, LOCK_EX)
    until(lambda: is_in_the_call(q.pid), 'it waits again')
    check_equal(server.entries('file'), before, 'the queue after an interrupt')
    p.do('setlk', fd, F_UNLCK)
    q.got()
    check(q.do('pread', qfd, 64, 0) != token, 'another holder, the same token')
    q.do('flock', qfd, LOCK_SH)     # queues at the end; no other waiter is left
    mount.reload()
    p.do('flock', fd, LOCK_SH)
    p.ask('raw_setlkw', fd, F_WRLCK)    # waits for q, and replaces its own shared lock
    queued('file', 3)
    mount.reload()
    check(not p.answered(), 'exclusive beside a shared one')
    q.do('flock', qfd, LOCK_UN)
    p.got()
    p.do('close', fd)
    queued('file', 0)


def files(case, server):
    """Text files, directories, the file of all locks, and programs that poll."""
    mount = case.mount(server, 'd', session='30s', root='/more', options=['mkroot'])
    mount.allow('lost')
    for i in range(200):
        mount.mkdir(f'lock-with-a-long-name-to-fill-the-page-of-a-listing-{i:04}')
    mount.mkdir('build')
    held = os.open(mount.path('build', 'lock'), os.O_RDWR)
    place = os.open(mount.path('build', 'queue'), os.O_PATH)    # as of a shell that works there
    value = os.open(mount.path('build', 'value'), os.O_RDWR)
    os.write(value, b'one\n')
    os.lseek(value, 0, os.SEEK_SET)
    names = os.listdir(mount.directory)
    listing = os.scandir(mount.directory)
    seen = [next(listing).name for _ in range(10)]
    locks = os.open(mount.path('.zklockfs', 'locks'), os.O_RDONLY)
    text = os.read(locks, 16)
    old = os.open(mount.path('build', 'holder'), os.O_RDONLY)
    holder = mount.read('build', 'holder')
    numbers = {name: os.stat(mount.path(name)).st_ino for name in names[:20]}
    woken = []
    poll = select.poll()
    poll.register(held, 0)
    thread = threading.Thread(target=lambda: woken.append(poll.poll(60000)), daemon=True)
    thread.start()
    mount.mkdir('shy')
    shy = os.open(mount.path('shy', 'lock'), os.O_RDWR)
    yields = select.epoll()
    yields.register(shy, select.EPOLLPRI)
    check_equal(yields.poll(0), [], 'nobody waits')
    mount.reload()
    behind = mount.take('shy')
    check(yields.poll(60)[0][1] & select.EPOLLPRI, 'a taker waits behind it')
    os.close(shy)
    behind.held().release()
    seen += [entry.name for entry in listing]
    check_equal(sorted(name for name in seen), sorted(names), 'a listing over a reload')
    check_equal({name: os.stat(mount.path(name)).st_ino for name in numbers}, numbers, 'inode numbers')
    check_equal(len(os.listdir(f'/proc/self/fd/{place}')), 1, 'entries of a directory that was looked up')
    check_equal(os.read(old, 4096).decode(), holder, 'a text that was open')
    os.write(value, b'two\n')
    check_equal(mount.read('build', 'value'), 'two\n', 'the value')
    while part := os.read(locks, 4096):
        text += part
    check_equal(text.decode().count('\nbuild '), 1, 'the file of all locks')
    os.mkdir(mount.path('build', 'below'))
    os.rmdir(mount.path('build', 'below'))
    entry, = server.entries('build', '/more')
    server.zk.delete('/more/build/' + entry)
    until(lambda: woken, 'the poller is woken by a loss after the reload')
    check(woken[0][0][1] & select.POLLERR, 'what it is told')
    for fd in (held, value, locks, old, place):
        os.close(fd)
    until(lambda: mount.status()['open_bytes'] == '0', 'nothing is left of what was open')


def test(case):
    server = case.server()
    case.at_once(*(lambda part, what=what: what(part, server)
                   for what in (waiters, lock_files, locks_of_files, files)))


run(test)
