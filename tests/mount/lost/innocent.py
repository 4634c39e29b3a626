#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""on_lost=kill (rule 34): while the guardian still searches all descriptors for those of a
loser, another process of the same mount gets the lock by the same door. The new holder is not
mistaken for the loser."""

import os
import resource

from harness import check, run, spawn, until

# So many descriptors that looking at all of them takes a while.
PROCESSES, DESCRIPTORS = 30, 3000
FILLER = f'''
import os, signal
keep = [os.open('/dev/null', os.O_RDONLY) for _ in range({DESCRIPTORS})]
signal.pause()
'''


def evict(mount, lock):
    fd = os.open(mount.path(lock, 'queue', mount.queue(lock)[0]), os.O_WRONLY)
    os.write(fd, b'evict')
    os.close(fd)


def test(case):
    server = case.server()
    a = case.mount(server, 'a', session='60s', options=['on_lost=kill'])
    b = case.mount(server, 'b', session='60s')
    a.allow('.')
    b.mkdir('build')
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limit[0], DESCRIPTORS + 100), limit[1]))
    for _ in range(3):
        loser = a.take('build').held()
        # Their pids lie between the loser's and the waiter's: /proc is read in this order.
        fillers = [spawn(['python3', '-c', FILLER]) for _ in range(PROCESSES)]
        until(lambda: all(len(os.listdir(f'/proc/{filler.pid}/fd')) > DESCRIPTORS for filler in fillers),
              'the descriptors are there')
        waiter = a.take('build')
        until(lambda: len(server.entries('build')) == 2, 'a taker waits')
        evict(b, 'build')
        loser.gone()
        try:
            waiter.held()
            for _ in range(100):   # far longer than the guardian's search takes
                waiter.do('fsync')
                check(not waiter.ended(), 'the new holder was killed')
        except EOFError:
            check(False, 'the new holder was killed')
        waiter.release()
        for filler in fillers:
            filler.kill()
            filler.wait()


run(test)
