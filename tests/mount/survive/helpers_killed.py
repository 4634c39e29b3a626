#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No process of a mount ends in silence. The one that writes the log is started again, and no line
that it had not read is missing. A guardian or a supervisor that was killed is missed in the metrics and
in the log, and a supervisor by --check, too. A dead daemon's guardian logs what it does."""

import errno
import os
import re
import signal

from harness import NO_KEEPER, ZKLOCKFS, check, check_equal, check_errno, command, raw_open, run, state_of, until


def children(pid):
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as file:
        return [int(child) for child in file.read().split()]


def name_of(pid):
    with open(f'/proc/{pid}/comm', encoding='ascii') as file:
        return file.read().strip()


def writer(mount):
    return until(lambda: next((pid for pid in children(mount.daemon) if name_of(pid) == 'zklockfs-log'), None),
                 'a process writes the log')


def metric(mount, name, **labels):
    text = mount.read('.zklockfs', 'metrics')
    wanted = ''.join(f',{key}="{value}"' for key, value in labels.items())
    found = re.search(rf'^zklockfs_{name}{{mount="[^"]*"{wanted}}} (.*)$', text, re.MULTILINE)
    return found and int(found.group(1))


def say(mount, number):
    """The log gets a line: the name is not valid."""
    check_errno(errno.EINVAL, os.mkdir, mount.path(f'{number}\N{GRINNING FACE}'))


def said(mount, number):
    return f'mkdir {number}' in mount.log()


def log_killed(mount, number):
    """It is killed with lines unread, for the `number`th time."""
    old, before = writer(mount), metric(mount, 'helper_restarts_total', helper='log')
    os.kill(old, signal.SIGSTOP)
    until(lambda: state_of(old) == 'T', 'it stands still')   # or it might have read a line
    for more in range(3):
        say(mount, f'{number}{more}')
    os.kill(old, signal.SIGKILL)
    until(lambda: mount.log().count('the process that writes the log was killed') == number, 'the log says so')
    for more in range(3):
        until(lambda more=more: said(mount, f'{number}{more}'), f'line {more} was not lost')
    check(writer(mount) != old, 'another one writes')
    check_equal(metric(mount, 'helper_restarts_total', helper='log'), before + 1, 'the metric')


def test(case):
    server = case.server(tick_ms=500)
    mount = case.mount(server, 'a', session='6s', options=['on_lost=kill'])
    mount.allow('.')
    for lock in ('build', 'late'):
        mount.mkdir(lock)
    log_killed(mount, 1)
    mount.reload()
    log_killed(mount, 2)
    mount.adopt()
    log_killed(mount, 3)
    check_equal([metric(mount, 'helper_up', helper=helper) for helper in ('guardian', 'keeper')], [1, 1], 'all are there')
    check_equal(metric(mount, 'log_lines_not_written_total'), 0, 'no line is missing')

    # Lines beyond the limit are counted.
    def many():
        for number in range(60):
            say(mount, f'many{number}')
        return metric(mount, 'log_lines_not_written_total') > 0
    until(many, 'some lines were not written')

    # After the crash the guardian has the writer of the daemon before, which lives for it alone.
    holder = mount.take('build').held()
    mount.process.kill()
    mount.process.wait()
    until(lambda: metric(mount, 'helper_up', helper='keeper') == 0, 'the supervisor is missed')
    check_equal(metric(mount, 'helper_up', helper='guardian'), 1, 'and nobody else')
    check_equal(mount.status()['keeper'], '0', 'the state says so')
    status, out, err = command([ZKLOCKFS, '--check', mount.directory])
    check(status == 0 and 'its keeper was killed' in out + err, f'--check: {status} {out}{err}')
    server.zk.delete('/locks/build/' + server.entries('build')[0])
    holder.gone()
    mount.said(f'build: sent SIGKILL to pid {holder.pid} (python3) uid 0: the lock is lost')
    check_equal(metric(mount, 'stopped_total', signal='SIGKILL'), 1, 'the metric')
    guardian = next(int(pid) for pid in case.daemons() if name_of(pid) == 'zklockfs-guard')
    daemon = next(int(pid) for pid in case.daemons() if name_of(pid) == os.path.basename(ZKLOCKFS))
    os.kill(guardian, signal.SIGKILL)
    until(lambda: metric(mount, 'helper_up', helper='guardian') == 0, 'the guardian is missed')
    mount.said('the guardian was killed')
    check_errno(errno.ESHUTDOWN, raw_open, mount.path('late', 'lock'), os.O_RDWR)
    check_equal(mount.status()['state'], 'unguarded', 'the state')
    os.kill(daemon, signal.SIGTERM)
    until(lambda: not os.path.ismount(mount.directory), 'it is unmounted')
    until(lambda: not case.daemons(), 'the daemon ends')
    mount.checked = True

    # Without a supervisor there is none to miss.
    other = case.mount(server, 'b', options=[NO_KEEPER])
    check_equal([metric(other, 'helper_up', helper=helper) for helper in ('guardian', 'keeper')], [None, None], 'no helpers')


run(test)
