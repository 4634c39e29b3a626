#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""After SIGTERM, holders are served for the time of -o drain=; then they have lost their locks.
When a holder closes, the next taker on another mount follows at once. The lock of a holder that
does not close passes on only when the session times out. With on_lost these holders are
stopped, and nobody has to wait."""

import errno
import signal
import time

from harness import Stopwatch, check, check_equal, run, until

WARNING = 'time to drain is over|the lock is lost'


def lost(taker):
    try:
        taker.do('pread', 64, 0)
    except OSError as err:
        return err.errno == errno.EIO
    return False


def left_alone(case, server, other):
    mount = case.mount(server, 'a', '8s', options=['drain=4s'])
    mount.allow(WARNING)
    closing, staying = mount.take('closed').held(), mount.take('kept').held()
    followers = [other.take(lock) for lock in ('closed', 'kept')]
    until(lambda: all(len(server.entries(lock)) == 2 for lock in ('closed', 'kept')), 'two queue')
    watch = Stopwatch()
    mount.process.send_signal(signal.SIGTERM)
    until(lambda: mount.process_status('State') and not lost(closing), 'the holder is served')
    closing.do('write', b'still at it\n')
    until(lambda: lost(staying), 'the time is over')
    watch.check(3.9, 6, 'the time to drain')
    check(lost(closing) and not any(taker.answered() for taker in followers), 'a lock was given away')
    watch = Stopwatch()
    closing.release()
    followers[0].held()
    mount.check_end()
    watch.check(0, 5, 'the next one holds, and the daemon ends')
    ended = time.monotonic()
    check_equal(len(server.entries('kept')), 2, 'entries of the lock that is still open')
    followers[1].held()
    check(followers[1].when > ended + 2, 'it passed on before the session had timed out')
    for taker in followers:
        taker.release()


def stopped(case, server, other, on_lost, host):
    mount = case.mount(server, host, '15s', options=['drain=1s', 'on_lost=' + on_lost])
    mount.allow(WARNING)
    holder = mount.take(on_lost).held()
    follower = other.take(on_lost)
    until(lambda: len(server.entries(on_lost)) == 2, 'two queue')
    mount.process.send_signal(signal.SIGTERM)
    watch = Stopwatch()
    holder.gone()
    check_equal(holder.status, signal.SIGTERM if on_lost == 'term' else signal.SIGKILL, 'how it ended')
    follower.held()
    watch.check(0.9, 4, on_lost)
    mount.check_end()
    follower.release()


def lost_before(case, server):
    """A lock that was lost before is no reason to wait, though its file is open."""
    mount = case.mount(server, 'f', options=['drain=60s'])
    mount.allow(WARNING)
    loser = mount.take('lost').held()
    server.zk.delete('/locks/lost/' + server.entries('lost')[0])
    until(lambda: lost(loser), 'it is lost')
    mount.process.send_signal(signal.SIGTERM)
    until(lambda: mount.process.poll() is not None, 'the daemon ends')
    mount.said('no new requests; waiting for 0 holders, 0 waiters are refused')
    mount.said(f'lost locks that are still open: 1, lost by pid {loser.pid} (python3) uid 0; the mount does not wait for them')
    mount.check_end()
    loser.kill()


def not_at_all(case, server):
    mount = case.mount(server, 'e', options=['drain=0s'])
    mount.allow(WARNING)
    holder = mount.take('never').held()
    watch = Stopwatch()
    mount.process.send_signal(signal.SIGTERM)
    until(lambda: lost(holder), 'it is lost')
    holder.release()
    mount.check_end()
    watch.check(0, 3, 'without a time to drain')


def test(case):
    server = case.server(tick_ms=500)
    other = case.mount(server, 'b')
    for lock in ('closed', 'kept', 'term', 'kill', 'never', 'lost'):
        other.mkdir(lock)
    case.at_once(lambda case: left_alone(case, server, other),
                 lambda case: stopped(case, server, other, 'term', 'c'),
                 lambda case: stopped(case, server, other, 'kill', 'd'),
                 lambda case: not_at_all(case, server),
                 lambda case: lost_before(case, server))


run(test)
