#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A daemon in another pid namespace does not see the processes that open lock files. The lock works.
Features that need the process do not: the pid in the queue, joining a hold, keeping a place."""

import errno
import os
import signal

import harness
from harness import Stopwatch, check, check_equal, check_errno, command, run, until, write_program

# The daemon's /proc is that of its namespace: with another one and on_lost the mount grants no lock.
WRAPPER = 'exec unshare --pid --fork --mount-proc --propagation unchanged -- "%s" "$@"'


def share(directory):
    """What the daemon mounts in its mount namespace is seen in that of the test."""
    for options in ['--bind', directory], ['--make-shared']:
        check_equal(command(['mount', *options, directory]), (0, '', ''), 'mount')


def test(case):
    share(case.directory)
    case.cleanups.callback(command, ['umount', '--lazy', case.directory])
    server = case.server()
    wrapper = os.path.join(case.directory, 'wrapper')
    write_program(wrapper, WRAPPER % harness.ZKLOCKFS)
    harness.ZKLOCKFS = wrapper
    mount = case.mount(server, session='30s', options=['on_lost=kill'])
    mount.allow('not visible here')
    mount.mkdir('build')

    def queued(count):
        until(lambda: len(server.entries('build')) == count, f'{count} in the queue')

    lock_file = mount.path('build', 'reentrant')
    fd = os.open(lock_file, os.O_RDWR)
    check(' pid=- ' in mount.read('build', 'holder'), 'holder')
    mount.said('not visible here')
    check('no descriptor is left' not in mount.log(), 'of nobody who is seen')
    check_errno(errno.EAGAIN, os.open, lock_file, os.O_RDWR | os.O_NONBLOCK)

    # No place is kept, and no process gets the place of another one.
    waiter = mount.take('build')
    queued(2)
    waiter.kill(signal.SIGUSR1)
    waiter.refused(errno.EINTR)
    watch = Stopwatch()
    queued(1)
    watch.check(0, 1.5, 'without a place that is kept')
    waiter = mount.take('build')
    queued(2)
    os.close(fd)
    waiter.held()


run(test)
