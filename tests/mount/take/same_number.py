#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A process that was interrupted while it waited ends, and before the mount sees this, a
process of another user gets its pid. The new process does not get the old place (rule 22)."""

import errno
import os
import signal
import sys

from harness import ALICE, BOB, Taker, check, check_equal, is_in_the_call, run, until

LAST = '/proc/sys/kernel/ns_last_pid'


def be_alone():
    """Start this program again where no other test takes a number that is free."""
    if 'alone' not in sys.argv:
        os.execvp('unshare', ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc',
                              'sh', '-c', 'setsid "$@"; exit $?', 'sh', sys.executable, __file__, 'alone'])


def taker_of_number(mount, wanted, uid):
    """A taker with this pid. The processes of this test get pids, too: try until it works."""
    for _ in range(2000):
        with open(LAST, 'w', encoding='ascii') as last:
            last.write(str(wanted - 1))
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        if child == wanted:
            with open(LAST, 'w', encoding='ascii') as last:
                last.write(str(wanted - 1))
            taker = Taker(mount.path('build', 'lock'), os.O_RDWR, uid)
            mount.case.takers.append(taker)
            if taker.pid == wanted:
                return taker
            taker.kill()
            taker.gone()
    raise AssertionError(f'nobody gets number {wanted}')


def test(case):
    server = case.server()
    mount = case.mount(server, session='300s')  # its daemon is stopped until the number comes
    mount.mkdir('build')
    os.chmod(mount.path('build', 'lock'), 0o666)

    def queued(count):
        until(lambda: len(server.entries('build')) == count, f'{count} in the queue')

    holder = mount.take('build').held()
    first = mount.take('build', uid=ALICE)
    queued(2)
    second = mount.take('build')
    queued(3)
    first.kill(signal.SIGUSR1)
    first.refused(errno.EINTR)
    os.stat(mount.path('build', 'lock'))   # so that the open needs no lookup for a second
    mount.send(signal.SIGSTOP)
    first.kill()
    first.gone()
    other = taker_of_number(mount, first.pid, BOB)
    until(lambda: is_in_the_call(other.pid), 'the open waits for the mount')
    mount.send(signal.SIGCONT)
    until(lambda: [int(name[:10]) for name in mount.queue('build')] == [0, 2, 3], 'the place is given up')
    holder.release()
    second.held()
    check(not other.answered(), 'two holders')
    second.release()
    other.held()
    check_equal(mount.fields('build', 'queue', mount.queue('build')[0])['uid'], str(BOB), 'the uid')


be_alone()
run(test)
