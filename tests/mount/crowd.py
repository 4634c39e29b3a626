# SPDX-License-Identifier: MIT
"""crowd.py - many takers that wait at one lock file."""

import os
import signal
import threading

from harness import check_equal, libc, raw_open


class Crowd:
    """A process whose threads all open the lock file; each closes it as soon as it has the lock."""

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
        """Wait until all threads have ended; return how many have had the lock."""
        count = 0
        while os.read(self.end, 1):
            count += 1
        check_equal(os.waitpid(self.pid, 0)[1], 0, 'status of the crowd')
        return count
