#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A reload while no server answers: holders hold as long as their lease lasts, as they would
without a reload, and go on if a server comes back in time. If none does, they have lost, and
waiters queue again in their old order. Without a lease there is no hurry: a new program may be slow, and the former one
goes on if it fails."""

import errno
import os
import shutil
import signal

from harness import ZKLOCKFS, Stopwatch, check, check_equal, check_errno, patiently, run, until, write_program

ASKED = 'case $1 in --check-state=*) exec "$0.away" "$@";; esac\n'


def back_in_time(case, server):
    relay = case.relay(server)
    mount = case.mount(relay, 'a', session='20s', servers=f'127.0.0.1:{relay.port}')
    mount.allow('.')
    mount.mkdir('build')
    holder = mount.take('build').held()
    token = holder.token()
    waiters = [mount.take('build')]
    until(lambda: len(server.entries('build')) == 2, 'the first waits')
    waiters.append(mount.take('build'))
    until(lambda: len(server.entries('build')) == 3, 'the second waits')
    relay.freeze()
    mount.reload()
    check_equal(holder.token(), token, 'the token while nobody answers')
    left = mount.take('build')      # the ensemble does not know of it yet
    mount.reload()
    left.kill()
    left.gone()
    check_equal(holder.token(), token, 'the token while nobody answers')
    relay.thaw()
    mount.ready()
    patiently(holder.do, 'fsync')
    check_equal(holder.token(), token, 'the token when a server is back')
    holder.release()
    for waiter in waiters:
        check(waiter.held().token() > token, 'the token does not rise')
        waiter.release()


def has_lost(holder):
    try:
        return not holder.token()
    except OSError as err:
        return err.errno == errno.EIO


def over(case, server):
    relay = case.relay(server)
    mount = case.mount(relay, 'b', session='4s', servers=f'127.0.0.1:{relay.port}')
    mount.allow('.')
    mount.mkdir('deep')
    holder = mount.take('deep').held()
    first = mount.take('deep')
    until(lambda: len(server.entries('deep')) == 2, 'the first waits')
    second = mount.take('deep')
    until(lambda: len(server.entries('deep')) == 3, 'the second waits')
    watch = Stopwatch()
    relay.freeze()
    mount.reload()

    until(lambda: has_lost(holder), 'the lock is lost')
    watch.check(0, 4.5, 'the lease')
    mount.reload()
    check_errno(errno.EIO, holder.do, 'pread', 64, 0)
    until(lambda: not server.entries('deep'), 'the session has ended')
    relay.thaw()
    first.held()
    check(not second.answered(), 'two hold')
    check_errno(errno.EIO, holder.do, 'fsync')
    first.release()
    second.held()
    holder.release()
    second.release()
    os.rmdir(mount.path('deep'))


def no_hurry(case, server):
    """It took 10 s at most, and one of 64 reloads under load took longer: its mount was lost."""
    program = os.path.join(case.directory, 'zklockfs')
    for name in (program, program + '.away'):
        shutil.copy(ZKLOCKFS, name)
    relay = case.relay(server)
    mount = case.mount(relay, 'c', session='4s', servers=f'127.0.0.1:{relay.port}', program=program)
    mount.allow('.')
    mount.mkdir('slow')
    holder = mount.take('slow').held()
    waiter = mount.take('slow')
    until(lambda: len(server.entries('slow')) == 2, 'the waiter queues')
    relay.freeze()
    until(lambda: has_lost(holder), 'the lock is lost')
    for count, text in enumerate(('exit 3', 'kill -SEGV $$'), 1):
        write_program(program, ASKED + text)
        os.kill(mount.process.pid, signal.SIGUSR2)
        mount.said('the new program does not serve: the former one is started again', count)
        until(lambda count=count: mount.metric('adoptions_total') == count, 'the former one goes on')
        check_errno(errno.EIO, holder.do, 'pread', 64, 0)
    write_program(program, ASKED + 'touch "$0.begun"\nuntil test -e "$0.go"; do sleep 0.1; done\nexec "$0.away" "$@"')
    os.kill(mount.process.pid, signal.SIGUSR2)
    until(lambda: os.path.exists(program + '.begun'), 'the new program begins')
    watch = Stopwatch()
    until(lambda: watch.seconds() > 11, 'it is slow')
    with open(program + '.go', 'w', encoding='ascii'):
        pass
    until(lambda: mount.metric('reloads_total') == 1, 'the slow one takes over')
    check_equal(mount.metric('adoptions_total'), 2, 'nothing else has happened')
    check(not waiter.answered(), 'the waiter waits')
    holder.release()
    relay.thaw()
    waiter.held().release()


def test(case):
    server = case.server(tick_ms=500)
    case.at_once(*(lambda part, what=what: what(part, server) for what in (back_in_time, over, no_hurry)))


run(test)
