#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program says that it can take over, and then does not: it ends, crashes, hangs, cannot be
executed, has a libfuse that does not answer, or reads another state than it has checked. The old
program goes on, and no lock is lost. This does not count as a crash."""

import os
import re
import shutil
import signal

from harness import NO_KEEPER, ZKLOCKFS, check, check_equal, command, run, until, write_program

SESSION = '12s'
_SIGNAL = re.compile(r'after a crash \(signal (\d+)\)')
ASKED = 'case $1 in --check-state=*) exec "$0.away" "$@";; esac\n'
SCRIPTS = {
    'ends': (ASKED + 'exit 3', 6),
    'crashes': (ASKED + 'kill -SEGV $$', 11),
    'hangs': (ASKED + 'while :; do sleep 1; done', 9),
    'has another libfuse': (ASKED + 'ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD=${0%/*}/silent_libfuse.so exec "$0.away" "$@"', 6),
    'reads another state': (ASKED + 'ZKLOCKFS_STATE=999 exec "$0.away" "$@"', 6),
}


def without_a_supervisor(case, server, program):
    """The mount is lost, and its status is one after which systemd starts another one."""
    shutil.copy(program + '.away', program)
    mount = case.mount(server, 'b', program=program, options=[NO_KEEPER, 'tick_time=500ms'])
    mount.allow('.')
    write_program(program, SCRIPTS['has another libfuse'][0])
    os.kill(mount.process.pid, signal.SIGUSR2)
    mount.said('cannot take over: libfuse does not answer; the mount is lost')
    check_equal(mount.process.wait(), 32, 'its status')
    mount.checked = True
    command(['umount', '-l', mount.directory])


def test(case):
    server = case.server(tick_ms=500)
    program = os.path.join(case.directory, 'zklockfs')
    for name in (program, program + '.away'):
        shutil.copy(ZKLOCKFS, name)
    case.library('silent_libfuse')
    mount = case.mount(server, program=program, session=SESSION, options=['on_lost=kill', 'tick_time=500ms'])
    mount.allow('.')
    mount.mkdir('build')
    holder = mount.take('build').held()
    token = holder.token()
    waiter = mount.take('build')
    until(lambda: len(server.entries('build')) == 2, 'the waiter queues')
    entries = server.entries('build')

    def goes_on(what):
        check_equal(holder.token(), token, f'{what}: the token')
        holder.do('fsync')
        check(not waiter.answered(), f'{what}: the waiter')
        check_equal(server.entries('build'), entries, f'{what}: the queue')

    for count, (what, (text, number)) in enumerate(SCRIPTS.items(), 1):
        write_program(program, text)
        os.kill(mount.process.pid, signal.SIGUSR2)
        until(lambda count=count: mount.metric('adoptions_total') == count, f'{what}: the old one goes on')
        ends = until(lambda count=count: (found := _SIGNAL.findall(mount.log()))[count - 1:] and found, 'the log says it')
        check_equal((len(ends), ends[-1]), (count, str(number)), f'{what}: how it ended')
        mount.said('does not serve: the former one', count)
        goes_on(what)
    check_equal(mount.metric('reloads_total'), 0, 'reloads')

    # The script can be asked, but not be executed: the exec itself fails, and no lock is lost.
    write_program(program, 'chmod 0 "$0"\n' + ASKED)
    os.kill(mount.process.pid, signal.SIGUSR2)
    mount.said('no reload, this program goes on')
    goes_on('no exec')

    os.rename(program + '.away', program)
    mount.reload()
    mount.adopt()       # after a failed exec the supervisor works as before
    goes_on('a good one')
    holder.release()
    waiter.held().release()
    check_equal(mount.metric('reloads_total'), 1, 'reloads')

    # Nobody holds: the session and the guardian are not ended either. But a daemon that dies before its renewal is
    # answered leaves a session that may be shortened late, and nobody needs that one (rule 45).
    session = mount.status()['session']
    os.rename(program, program + '.away')
    write_program(program, SCRIPTS['has another libfuse'][0])
    os.kill(mount.process.pid, signal.SIGUSR2)
    until(lambda: mount.metric('adoptions_total') == len(SCRIPTS) + 2, 'the old one goes on')
    mount.said('cannot take over: libfuse does not answer', 2)
    mount.take('build').held().release()
    if mount.status()['session'] != session:
        mount.said('nobody holds or waits: a new session begins')
    without_a_supervisor(case, server, program)


run(test)
