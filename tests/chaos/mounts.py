# SPDX-License-Identifier: MIT
"""mounts.py - one mount and its daemon. The daemon can be stopped, killed and replaced, and the
clocks of its machine can be told to stand still (../mount/suspend.c)."""

import contextlib
import os
import re
import signal
import subprocess
import threading
import time

from ensemble import TICK_MS
from harness import SOURCE_ROOT, ZKLOCKFS, mounted, until

SESSION_SECONDS = 4
_TROUBLE = re.compile(r'assert|sanitizer|runtime error|leak', re.IGNORECASE)


def clocks(directory):
    """The library that is preloaded to daemons."""
    library = directory + '/clocks.so'
    subprocess.run(['cc', '-shared', '-fPIC', '-D_GNU_SOURCE', '-o', library,
                    SOURCE_ROOT + '/tests/mount/suspend.c'], check=True)
    return library


def lengthen(path, seconds):
    """A file that says how long, by its size in milliseconds."""
    with open(path, 'ab') as file:
        file.truncate(max(0, os.fstat(file.fileno()).st_size + int(seconds * 1000)))


def _signal(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


class Mount:
    def __init__(self, number, directory, servers, on_lost, library):
        self.number, self.servers, self.on_lost = number, servers, on_lost
        self.paused, self.set_back = f'{directory}/paused{number}', f'{directory}/setback{number}'
        self.environment = dict(
            os.environ, LD_PRELOAD=library, PAUSED=self.paused, SET_BACK=self.set_back,
            ASAN_OPTIONS=os.environ.get('ASAN_OPTIONS', '') + ':verify_asan_link_order=0')
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
                                  self.directory], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                 env=self.environment)
        until(lambda: mounted(self.directory) or not self.running(), 'a mount appears', 60)
        return self.running()

    def running(self):
        return self.process is not None and self.process.poll() is None

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        if self.running():
            self.process.send_signal(signal.SIGCONT)

    def guards(self):
        """The daemon's guardian, if it has one."""
        found = []
        with contextlib.suppress(OSError):
            with open(f'/proc/{self.process.pid}/task/{self.process.pid}/children', encoding='ascii') as children:
                found = [int(pid) for pid in children.read().split()]
        return found

    @contextlib.contextmanager
    def machine_paused(self):
        """Nothing of it runs, nor do its clocks, but for the wall clock; its users are
        elsewhere."""
        began, guards = time.monotonic(), self.guards()
        for pid in guards:
            _signal(pid, signal.SIGSTOP)
        self.freeze()
        try:
            yield
        finally:
            lengthen(self.paused, time.monotonic() - began)
            self.thaw()
            for pid in guards:
                _signal(pid, signal.SIGCONT)

    def reload(self):
        if self.running():
            self.process.send_signal(signal.SIGUSR2)

    def reloads(self):
        """How often another one has taken over."""
        return self.log().count('has taken over from')

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
