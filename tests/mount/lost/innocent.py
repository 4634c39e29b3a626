#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""on_lost=kill (rule 34): while the guardian still searches all descriptors for those of a
loser, another process of the same mount gets the lock by the same lock file. The new holder is not
mistaken for the loser."""

import os
import resource
import subprocess

from harness import check, check_equal, patiently, run, spawn, until

# So many descriptors that looking at all of them takes a while.
PROCESSES, DESCRIPTORS = 30, 3000
FILLER = f'''
import os, signal
keep = [os.open('/dev/null', os.O_RDONLY) for _ in range({DESCRIPTORS})]
end, mine = os.pipe()
for _ in range({PROCESSES} - 1):
    if os.fork() == 0:
        os.close(mine)
        os.read(end, 1)     # until the first one ends
        os._exit(0)
print('all', flush=True)
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
        filler = spawn(['python3', '-c', FILLER], stdout=subprocess.PIPE, text=True)
        check_equal(filler.stdout.readline(), 'all\n', 'the descriptors are there')
        waiter = a.take('build')
        until(lambda: len(server.entries('build')) == 2, 'a taker waits')
        evict(b, 'build')
        loser.gone()
        try:
            waiter.held()
            for _ in range(100):   # far longer than the guardian's search takes
                patiently(waiter.do, 'fsync')
                check(not waiter.ended(), 'the new holder was killed')
        except EOFError:
            check(False, 'the new holder was killed')
        waiter.release()
        filler.kill()
        filler.communicate()


run(test)
