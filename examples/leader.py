#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""leader.py - run a command on one host of many, for as long as this host leads.

    leader.py [--yield SECONDS] LOCK COMMAND [ARGUMENT...]

`zklock LOCK -- COMMAND` does it better for most: it also stops what the command has started. This
shows how it is done. leader.c does the same.

Start it on every host: the first in the queue leads, the others wait to take over. The
command finds the fencing token in $TOKEN. poll(2) on the descriptor reports when the lock
is lost: the command is killed at once and this host queues again. With --yield it also
steps down cleanly when it has led for SECONDS and another taker waits. It passes SIGHUP, SIGINT and
SIGTERM on to the command, and ends when the command ends by itself, with its status. When it cannot
lead it ends with 77 (no permission), 75 (evicted while it waited), or 69 (no such lock, nothing is mounted).

Nobody may work without somebody who looks at the lock. So the command is killed when this process
dies (PR_SET_PDEATHSIG); but not processes that the command has started, and not the command
itself if it is set-user-ID, has capabilities or changes its user, or if the thread that started it ends
before the process. The command has the descriptor as well, so the lock stays taken as long as any
of these live.
"""

import contextlib
import ctypes
import errno
import os
import select
import signal
import subprocess
import sys

LOST = select.POLLERR | select.POLLHUP      # poll(2) always reports these
PASSED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
STATUS = {errno.ECANCELED: 75, errno.EACCES: 77}
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)
ourselves = os.getpid()
asked = set()       # the signals that we were sent


def die_with_us():
    """In the command's process, before the command."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != ourselves:       # we have died before
        os.kill(os.getpid(), signal.SIGKILL)


def take(lock):
    """The open lock, and its token; or OSError."""
    lock_file = open(lock + '/lock', 'r+b', buffering=0)     # waits for its turn
    token = lock_file.read().decode(errors='replace').strip()
    if not token.isdigit():
        raise OSError(errno.ENODEV, 'no token: is the filesystem mounted?')
    return lock_file, token


def start(lock_file, token, command):
    """The command, which gets our signals from now on."""
    with contextlib.suppress(OSError):      # lost already? poll tells
        lock_file.write(b'leader: ' + command[0].encode())
    print(f'leading with token {token}', flush=True)
    child = subprocess.Popen(command, env={**os.environ, 'TOKEN': token}, pass_fds=[lock_file.fileno()],
                             preexec_fn=die_with_us)
    for number in PASSED_ON:
        signal.signal(number, lambda got, _: (asked.add(got), child.send_signal(got)))
    return child


def lead(lock_file, child, term):
    """One term of office: the command's status, or None if it was not the command's wish."""
    ended = os.pidfd_open(child.pid)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(lock_file, 0)
    why, timeout = None, term
    while True:
        events = dict(poll.poll(timeout))
        if ended in events:
            break
        if not events:
            timeout = None
            poll.modify(lock_file, select.POLLPRI)   # tells of those who wait, from now on
            continue
        if events[lock_file.fileno()] & LOST:
            why, timeout = 'lost', None
            child.send_signal(signal.SIGKILL)   # somebody else may lead in a moment
            poll.unregister(lock_file)
        else:
            why = 'wanted by others'
            child.send_signal(signal.SIGTERM)   # still ours: there is time for good order
            poll.modify(lock_file, 0)
    os.close(ended)
    status = child.wait()
    for number in PASSED_ON:        # while it waits again there is nobody to pass them on to
        signal.signal(number, signal.SIG_DFL)
    if why and not asked & {signal.SIGINT, signal.SIGTERM}:
        print(f'stepped down: {why}', flush=True)
        return None
    return status if status >= 0 else 128 - status


def main(arguments):
    term = None
    if arguments[:1] == ['--yield']:
        term = float(arguments[1]) * 1000
        arguments = arguments[2:]
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 64
    lock, *command = arguments
    status = None
    while status is None:
        try:
            lock_file, token = take(lock)
        except OSError as error:
            if error.errno == errno.EIO:    # lost at once
                continue
            print(f'leader.py: {lock}: {error.strerror}', file=sys.stderr)
            return STATUS.get(error.errno, 69)
        with lock_file:
            status = lead(lock_file, start(lock_file, token, command), term)
    return status


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
