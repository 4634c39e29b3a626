# SPDX-License-Identifier: MIT
"""mounts.py - one mount and its daemon, which can be stopped, killed and replaced."""

import contextlib
import os
import re
import signal
import subprocess
import threading

from ensemble import TICK_MS
from harness import ZKLOCKFS, mounted, until

SESSION_SECONDS = 4
_TROUBLE = re.compile(r'assert|sanitizer|runtime error|leak', re.IGNORECASE)


class Mount:
    def __init__(self, number, directory, servers, on_lost):
        self.number, self.servers, self.on_lost = number, servers, on_lost
        self.directory = f'{directory}/mount{number}'
        self.log_path = self.directory + '.log'
        self.process = None
        self.deaths = []               # of daemons nobody killed
        self._lock = threading.Lock()
        os.mkdir(self.directory)

    def take_in_hand(self):
        """For one fault at a time; to be followed by in_hand()."""
        return self._lock.acquire(blocking=False)

    @contextlib.contextmanager
    def in_hand(self):
        try:
            yield
        finally:
            self._lock.release()

    def start(self):
        """False if the daemon ends instead: no server could be reached."""
        # A predecessor that was killed leaves its mount behind, dead.
        while mounted(self.directory):
            subprocess.run(['umount', '-l', self.directory], check=False, stderr=subprocess.DEVNULL)
        with open(self.log_path, 'a', encoding='utf-8') as log:
            options = (f'session_timeout={SESSION_SECONDS}s,tick_time={TICK_MS}ms,'
                       f'host=m{self.number},on_lost={self.on_lost}')
            self.process = subprocess.Popen([ZKLOCKFS, '-f', '-o', options, self.servers + '/locks',
                                  self.directory], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(lambda: mounted(self.directory) or not self.running(), 'a mount appears', 60)
        return self.running()

    def running(self):
        return self.process is not None and self.process.poll() is None

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        if self.running():
            self.process.send_signal(signal.SIGCONT)

    def kill(self):
        if not self.running():
            self.deaths.append(self.process.returncode)
        self.process.kill()
        self.process.wait()

    def path(self, *parts):
        return os.path.join(self.directory, *parts)

    def unmount(self):
        """Take it off properly; what is wrong with that, or None."""
        if not self.running():
            return f'the daemon of mount {self.number} is dead: {self.process.returncode}'
        subprocess.run(['fusermount3', '-u', self.directory], check=False)
        try:
            until(lambda: not self.running(), 'the daemon ends', 10)
        except AssertionError as err:
            return f'mount {self.number}: {err}'
        if self.process.returncode != 0:
            return f'the daemon of mount {self.number} ended with {self.process.returncode}'
        return f'mount {self.number} is still there' if mounted(self.directory) else None

    def log(self):
        with open(self.log_path, encoding='utf-8', errors='replace') as log:
            return log.read()

    def trouble(self):
        return [line for line in self.log().splitlines() if _TROUBLE.search(line)]
