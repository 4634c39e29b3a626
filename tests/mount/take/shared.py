#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`shared` (rule 12): readers hold together, on one mount and on two. A writer waits for the
readers before it, and readers that come after a waiting writer wait for it."""

import errno
import os

from harness import Stopwatch, check, check_equal, check_errno, errno_of, run, until


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    a.mkdir('build')
    until(lambda: 'build' in b.locks(), 'b sees the lock')

    def queued(count):
        until(lambda: len(server.entries('build')) == count, f'{count} in the queue')

    def take(mount, lock_file, count):
        taker = mount.take('build', lock_file)
        queued(count)
        return taker

    def waits(*takers):
        """Check that they still wait, after both mounts have asked the ensemble once more."""
        for mount in (a, b):
            check_errno(errno.EAGAIN, os.open, mount.path('build', 'try'), os.O_RDWR)
        for taker in takers:
            check(not taker.answered(), f'{taker.path} of {taker.pid} got the lock')

    # Readers hold together; each has a token of its own.
    readers = [mount.take('build', 'shared').held() for mount in (a, a, b)]
    readers.append(b.take('build', 'shared@30s').held())
    check_equal(len({reader.token() for reader in readers}), 4, 'different tokens')
    for mount in (a, b):
        check_equal(len(mount.read('build', 'holder').splitlines()), 4, 'holders')
        check(all(name.split('-')[1] == 'shared' and
                  os.stat(mount.path('build', 'queue', name)).st_mode & 0o111
                  for name in mount.queue('build')), 'all hold, and it shows that they share')
        for lock_file, flags in (('try', 0), ('lock@0s', 0), ('lock', os.O_NONBLOCK)):
            check_errno(errno.EAGAIN, os.open, mount.path('build', lock_file), os.O_RDWR | flags)
        for lock_file, flags in (('shared@0s', 0), ('shared', os.O_NONBLOCK)):
            check_equal(errno_of(os.open, mount.path('build', lock_file), os.O_WRONLY | flags), 0, lock_file)
        check_errno(errno.EACCES, os.open, mount.path('build', 'shared'), os.O_RDONLY)
    queued(4)

    # A writer waits for all readers, later readers wait for the writer.
    writer = take(a, 'lock', 5)
    late = [take(a, 'shared', 6), take(b, 'shared', 7)]
    second = take(b, 'lock', 8)
    for mount in (a, b):
        check_errno(errno.EAGAIN, os.open, mount.path('build', 'shared@0s'), os.O_RDWR)
        watch = Stopwatch()
        check_errno(errno.ETIMEDOUT, os.open, mount.path('build', 'shared@300ms'), os.O_RDWR)
        watch.check(0.3, 3, 'shared@300ms')
    readers[0].release()
    readers[3].kill()
    queued(6)
    waits(writer, second, *late)
    newest = max(reader.token() for reader in readers[1:3])
    readers[1].release()
    queued(5)
    waits(writer, second, *late)
    readers[2].release()
    writer.held()
    check(writer.token() > newest, 'the token rises from the readers to the writer')
    waits(second, *late)

    # The readers behind this writer get the lock together, the readers behind the next one do not.
    last = [take(a, 'shared', 5), take(b, 'shared', 6)]
    written = writer.token()
    writer.release()
    for reader in late:
        reader.held()
        check(reader.token() > written, 'the token rises from the writer to the readers')
    waits(second, *last)

    # When one of two readers leaves, the writer still waits for the other.
    late[0].release()
    queued(4)
    waits(second, *last)
    late[1].kill()
    second.held()
    waits(*last)
    second.kill()
    for reader in last:
        reader.held()

    # One reader loses its entry, the other one does not.
    for reader in last:
        until(lambda r=reader: errno_of(r.do, 'fsync') == 0, 'held')
    lost, kept = last
    entry = next(name for name in server.entries('build') if f'.{lost.pid}-' in name)
    a.allow('lost')
    server.zk.delete('/locks/build/' + entry)
    until(lambda: errno_of(lost.do, 'write', b'x') == errno.EIO, 'its lock is lost')
    kept.do('write', b'x')
    check_equal(errno_of(kept.do, 'fsync'), 0, 'the other holds still')
    waits()


run(test)
