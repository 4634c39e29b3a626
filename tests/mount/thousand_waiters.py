#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A thousand opens that wait on one mount need no thread: the mount goes on answering, half of
them are killed, the others get the lock, and no entry is left."""

import os
import signal
import threading

from harness import Stopwatch, check_equal, libc, raw_open, run, until

HALF = 500


class Crowd:
    """A process whose threads all open the door; each closes as soon as it has it."""

    def __init__(self, path, size):
        self.end, report = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            libc.prctl(1, signal.SIGKILL)
            signal.alarm(0)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.closerange(3, report)
            threading.stack_size(128 * 1024)
            threads = [threading.Thread(target=self._take, args=(path, report)) for _ in range(size)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            os._exit(0)
        os.close(report)

    @staticmethod
    def _take(path, report):
        os.close(raw_open(path, os.O_RDWR))
        os.write(report, b'.')

    def served(self):
        """How many have had the lock, once all have ended."""
        count = 0
        while os.read(self.end, 1):
            count += 1
        check_equal(os.waitpid(self.pid, 0)[1], 0, 'status of the crowd')
        return count


def test(case):
    server = case.server()
    mount = case.mount(server, session='30s')
    mount.mkdir('build')
    mount.mkdir('other')
    fd = os.open(mount.path('build', 'lock'), os.O_RDWR)
    doomed, patient = Crowd(mount.path('build', 'lock'), HALF), Crowd(mount.path('build', 'lock'), HALF)
    until(lambda: len(server.entries('build')) == 1 + 2 * HALF, 'a thousand wait', 60)

    check_equal(mount.process_status('Threads'), '1', 'threads of the daemon')
    watch = Stopwatch()
    check_equal(len(mount.queue('build')), 1 + 2 * HALF, 'the listed queue')
    watch.check(0, 1, 'ls queue')
    watch = Stopwatch()
    os.close(os.open(mount.path('other', 'lock'), os.O_RDWR))
    watch.check(0, 1, 'another lock')

    watch = Stopwatch()
    os.kill(doomed.pid, signal.SIGKILL)
    os.waitpid(doomed.pid, 0)
    until(lambda: len(server.entries('build')) == 1 + HALF, 'the entries of the killed go')
    watch.check(0, 10, 'killing half of them')

    watch = Stopwatch()
    os.close(fd)
    check_equal(patient.served(), HALF, 'served')
    watch.check(0, 30, 'serving the others')
    until(lambda: not server.entries('build'), 'no entry is left')


run(test)
