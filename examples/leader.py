#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""leader.py - run a command on one host of many, for as long as this host leads.

    leader.py [--yield SECONDS] LOCK COMMAND [ARGUMENT...]

Start it on every host: the first in the queue leads, the others wait to take over. The
command finds the fencing token in $TOKEN. poll(2) on the descriptor reports when the lock
is lost: the command is killed at once and this host queues again. With --yield it also
steps down cleanly when it has led for SECONDS and another taker waits. It ends when
the command ends by itself, with its status. leader.c does the same.

The command has the descriptor as well. So if this process is killed alone, the lock stays
taken until the command has ended.
"""

import os
import select
import signal
import subprocess
import sys

LOST = select.POLLERR | select.POLLHUP      # poll(2) always reports these


def lead(lock, command, term):
    """One term of office: the command's status, or None if it was not the command's wish."""
    with open(lock + '/lock', 'r+b', buffering=0) as door:     # waits for its turn
        token = door.read().decode().strip()
        door.write(b'leader: ' + command[0].encode())
        print(f'leading with token {token}', flush=True)
        child = subprocess.Popen(command, env={**os.environ, 'TOKEN': token}, pass_fds=[door.fileno()])
        ended = os.pidfd_open(child.pid)
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        poll.register(door, 0)
        why, timeout = None, term
        while True:
            events = dict(poll.poll(timeout))
            if ended in events:
                break
            if not events:
                timeout = None
                poll.modify(door, select.POLLPRI)   # tells of those who wait, from now on
                continue
            if events[door.fileno()] & LOST:
                why, timeout = 'lost', None
                child.send_signal(signal.SIGKILL)   # somebody else may lead in a moment
                poll.unregister(door)
            else:
                why = 'wanted by others'
                child.send_signal(signal.SIGTERM)   # still ours: there is time for good order
                poll.modify(door, 0)
        os.close(ended)
        status = child.wait()
    if why:
        print(f'stepped down: {why}', flush=True)
        return None
    return status if status >= 0 else 128 - status


def main(arguments):
    term = None
    if arguments[:1] == ['--yield']:
        term = float(arguments[1]) * 1000
        arguments = arguments[2:]
    if len(arguments) < 2:
        sys.exit(__doc__)
    lock, *command = arguments
    status = None
    while status is None:
        status = lead(lock, command, term)
    return status


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
