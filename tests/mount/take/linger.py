#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An interrupted open keeps its place for a while (rule 22). The same process at the same lock file
gets the place back. It is given up by an open of another lock file, by the end of the process, and
after 2 s, at the head of the queue after 250 ms."""

import errno
import os
import select
import signal
import subprocess

from harness import Stopwatch, check, check_equal, is_in_the_call, run, spawn, until

# Opens again after each interrupt, as shells do, and prints the result.
STUBBORN = '''
import os, signal, sys
from harness import raw_open
signal.signal(signal.SIGUSR1, lambda *_: None)
for path in sys.argv[1:]:
    try:
        fd = raw_open(path, os.O_RDWR)
        print('taken', os.pread(fd, 64, 0).decode().strip(), flush=True)
        break
    except OSError as err:
        print(os.strerror(err.errno), flush=True)
signal.pause()
'''


# The end of a background job interrupts the shell's open, and the shell opens again.
SHELL = 'sleep 1000 & echo $!; exec 9<>"$1" || exit 75; echo taken; read -r _'


def test(case):
    server = case.server()
    mount = case.mount(server, session='30s')
    mount.mkdir('build')
    lock_file, timed = mount.path('build', 'lock'), mount.path('build', 'lock@1h')

    def queued(count):
        return until(lambda: len(server.entries('build')) == count and server.entries('build'),
                     f'{count} in the queue')

    def interrupt(process):
        # A signal between two opens interrupts neither: send it once more.
        while not select.select([process.stdout], [], [], 0.2)[0]:
            process.send_signal(signal.SIGUSR1)
        return process.stdout.readline()

    def stubborn(*paths):
        return spawn(['python3', '-c', STUBBORN, *paths], stdout=subprocess.PIPE, text=True)

    # The same lock file: the place is kept, and others stay behind.
    holder = mount.take('build').held()
    first = stubborn(lock_file, lock_file, lock_file)
    queued(2)
    behind = mount.take('build')
    before = queued(3)
    for _ in range(2):
        check_equal(interrupt(first), 'Interrupted system call\n', 'the first open')
    check_equal(server.entries('build'), before, 'the queue after two interrupts')
    until(lambda: is_in_the_call(first.pid), 'it waits again')
    holder.release()
    check(first.stdout.readline().startswith('taken'), 'the first in the queue has it')
    check(not behind.answered(), 'the one behind waits')
    first.kill()
    behind.held()

    # bash opens again by itself, and has its place.
    shell = spawn(['bash', '-c', SHELL, 'bash', lock_file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    job = int(shell.stdout.readline())
    queued(2)
    last = mount.take('build')
    before = queued(3)
    os.kill(job, signal.SIGKILL)
    until(lambda: not os.path.exists(f'/proc/{job}'), 'bash hears of its end')
    until(lambda: is_in_the_call(shell.pid), 'it waits again')
    behind.release()
    check_equal(shell.stdout.readline(), 'taken\n', 'bash')
    check(not last.answered(), 'the last one waits')
    until(lambda: server.entries('build') == before[1:], 'it has its old place')
    shell.communicate(timeout=60)
    behind = last.held()

    # Another lock file of the lock: the old place is void, the new one is at the end.
    other = stubborn(lock_file, timed)
    queued(2)
    third = mount.take('build')
    queued(3)
    interrupt(other)
    until(lambda: len(server.entries('build')) == 3 and mount.queue('build')[1].split('-')[2] ==
          str(third.pid), 'the third is second now')
    other.kill()
    queued(2)

    # The time of a kept place: 2 s in the queue.
    idle = mount.take('build')
    queued(3)
    watch = Stopwatch()
    idle.kill(signal.SIGUSR1)
    idle.refused(errno.EINTR)
    queued(2)
    watch.check(1.5, 10, 'the place of one that does not come back')

    # At the head: a quarter of a second.
    third.kill()
    queued(1)
    idle = mount.take('build')
    queued(2)
    idle.kill(signal.SIGUSR1)
    idle.refused(errno.EINTR)
    watch = Stopwatch()
    behind.release()
    check(mount.take('build').held(), 'the next one')
    watch.check(0, 1.5, 'the head of one that does not come back')


run(test)
