#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""lock@TIME waits at most that long, then fails with ETIMEDOUT. lock@0s is a try. shared@TIME and
reentrant@TIME work likewise. A malformed time is EINVAL when the lock file is opened. Very many
made-up names of one user are not all remembered, and the names of other users still work."""

import errno
import os

from harness import BOB, Stopwatch, check, check_equal, check_errno, check_user, errno_of, keep_nothing, run, until

MALFORMED = ('lock@', 'lock@30', 'lock@s', 'lock@x', 'lock@1.5s', 'lock@1h30m', 'lock@-1s', 'lock@+1s',
             'lock@ 1s', 'lock@1s ', 'lock@1S', 'lock@0x1s', 'lock@1d', 'lock@99999999999999999999s',
             'lock@9223372036854775807h', 'try@5s')
TRANSIENT_MAX = 16384    # NODE_TRANSIENT_MAX
MORE = 4096
TIMED = ('lock', 'shared', 'reentrant')


def test(case):
    keep_nothing()
    server = case.server()
    mount = case.mount(server)
    mount.mkdir('build')

    for name in MALFORMED + tuple(lock_file + name[4:] for lock_file in TIMED[1:] for name in MALFORMED[:-1]):
        check_errno(errno.EINVAL, os.open, mount.path('build', name), os.O_RDWR)
        check_errno(errno.EINVAL, os.open, mount.path('build', name), os.O_RDWR | os.O_CREAT)

    mount.said('build/lock@1h30m: not understood after the @')

    for lock_file in TIMED:
        for time in ('0s', '0ms', '300ms', '30s', '5m', '1h'):
            mount.take('build', f'{lock_file}@{time}').held().release()

    holder = mount.take('build').held()
    for lock_file in TIMED:
        watch = Stopwatch()
        check_errno(errno.ETIMEDOUT, os.open, mount.path('build', lock_file + '@400ms'), os.O_RDWR)
        watch.check(0.4, 3, lock_file + '@400ms')
        watch = Stopwatch()
        check_errno(errno.ETIMEDOUT, os.open, mount.path('build', lock_file + '@1s'), os.O_RDWR)
        watch.check(1, 4, lock_file + '@1s')
        watch = Stopwatch()
        check_errno(errno.EAGAIN, os.open, mount.path('build', lock_file + '@0s'), os.O_RDWR)
        watch.check(0, 2, lock_file + '@0s')
    until(lambda: len(server.entries('build')) == 1, 'a taker that has given up stands in no queue')

    patient = mount.take('build', 'lock@30s')
    until(lambda: len(server.entries('build')) == 2, 'the patient one queues')
    holder.release()
    patient.held().release()
    lost_before_the_least_time(server, mount)
    made_up(mount)


def lost_before_the_least_time(server, mount):
    """A lock that is lost is not kept for lock@least=TIME."""
    mount.allow('the lock is lost')
    lost = mount.take('build', 'lock@least=1h').held()
    entry, = server.entries('build')
    server.zk.delete('/locks/build/' + entry)
    until(lambda: errno_of(lost.do, 'fsync') == errno.EIO, 'the lock is lost')
    lost.release()
    mount.take('build').held().release()
    check_equal(mount.status()['kept'], '0', 'what is kept')


def made_up(mount):
    """Names that the daemon has forgotten and the kernel still knows are looked up again."""
    lock_file, fresh = mount.path('build', 'lock@17s'), mount.path('build', 'shared@17s')
    old = os.stat(lock_file).st_ino
    held = os.open(mount.path('build', 'shared@18s'), os.O_RDWR)
    path = os.open(mount.path('build', 'lock@19s'), os.O_PATH)
    os.stat(fresh)
    before = mount.resident()
    for number in range(TRANSIENT_MAX + MORE + 1):
        os.stat(mount.path('build', f'lock@{number}ms'))
        if number == TRANSIENT_MAX:
            before_more = mount.resident()
    print(f'{before_more - before} bytes for {TRANSIENT_MAX} names, {mount.resident() - before_more} for {MORE} more')
    check(mount.resident() - before_more < 200 * MORE, 'the daemon grows with every name')
    # By its path the lock file is another file now; an old descriptor of a forgotten name is stale.
    until(lambda: os.stat(lock_file).st_ino != old, 'the daemon has forgotten it')
    until(lambda: errno_of(os.stat, f'/proc/self/fd/{path}') == errno.ESTALE, 'the number is not known')
    os.close(path)
    os.fsync(held)
    check_equal(os.pread(held, 1, 0).isdigit(), True, 'the token')
    check_errno(0, os.chmod, mount.path('build', 'lock@1ms'), 0o666)
    check_user(0, BOB, os.open, fresh, os.O_RDWR)
    os.close(held)
    check_errno(0, os.open, mount.path('build', 'lock@3000ms'), os.O_RDWR)
    check_errno(0, os.open, lock_file, os.O_RDWR)


run(test)
