# SPDX-License-Identifier: MIT
"""mounts.py - one mount, its daemon, and its supervisor, which starts another daemon when the daemon
is killed. The daemon can be stopped, killed and replaced, and the clocks of its machine
can be told to stand still (../mount/suspend.c)."""

import contextlib
import os
import re
import select
import signal
import subprocess
import threading
import time

from ensemble import TICK_MS
from harness import OPTIONS, SOURCE_ROOT, ZKLOCKFS, mounted, until

SESSION_SECONDS = 12       # that mounts ask for, and every third one half of it; some servers grant less
SETTINGS = ('reuse,drain=20s', 'noreuse,drain=30s')     # which reloads change
RELOAD_SECONDS = 20
ADOPTION_SECONDS = 20      # the supervisor itself waits no longer than the lease
# Faults send signal 9.
_TROUBLE = re.compile(r'assert|sanitizer|runtime error|leak|ended by signal (?!9:|9,)|instead of going on', re.IGNORECASE)
_ADOPTION = 'after a crash (signal'


def clocks(directory):
    """The library that is preloaded to daemons."""
    library = directory + '/clocks.so'
    subprocess.run(['cc', '-shared', '-fPIC', '-D_GNU_SOURCE', '-o', library,
                    SOURCE_ROOT + '/tests/mount/suspend.c'], check=True)
    return library


def lengthen(path, seconds):
    """Make a file longer, or shorter: its size is a time in milliseconds."""
    with open(path, 'ab') as file:
        file.truncate(max(0, os.fstat(file.fileno()).st_size + int(seconds * 1000)))


def _signal(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _children(pid):
    try:
        with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as children:
            return [int(child) for child in children.read().split()]
    except OSError:
        return []


class Mount:
    def __init__(self, number, directory, servers, library):
        self.number, self.servers = number, servers
        self.on_lost = 'kill' if number % 3 == 2 else 'none'
        self.session = SESSION_SECONDS // 2 if number % 3 == 1 else SESSION_SECONDS
        self.changing = SETTINGS[number % 2]
        self.paused, self.set_back = f'{directory}/paused{number}', f'{directory}/setback{number}'
        self.environment = dict(
            os.environ, LD_PRELOAD=library, PAUSED=self.paused, SET_BACK=self.set_back,
            ASAN_OPTIONS=os.environ.get('ASAN_OPTIONS', '') + ':verify_asan_link_order=0')
        self.directory = f'{directory}/mount{number}'
        self.log_path = self.directory + '.log'
        self.process = None            # the supervisor
        self.deaths = []               # exit statuses of supervisors that ended by themselves
        self._lock = threading.Lock()
        os.mkdir(self.directory)

    def take_in_hand(self):
        """Reserve the mount for one fault; if this returns true, in_hand() has to follow."""
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
            self.process = subprocess.Popen([ZKLOCKFS, '-f', *self._words()], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=self.environment)
        until(lambda: mounted(self.directory) or not self.running(), 'a mount appears', 60)
        return self.running()

    def _words(self):
        options = [f'session_timeout={self.session}s', f'tick_time={TICK_MS}ms', f'host=m{self.number}',
                   f'on_lost={self.on_lost}', 'noprotect', self.changing, *OPTIONS]
        return ['-o', ','.join(options), self.servers + '/locks', self.directory]

    def running(self):
        return self.process is not None and self.process.poll() is None

    def daemons(self):
        """The daemon's pid in a list, or none if the supervisor has no daemon at the moment."""
        return _children(self.process.pid)

    def _signal_daemon(self, number):
        for pid in self.daemons():
            _signal(pid, number)

    def freeze(self):
        self._signal_daemon(signal.SIGSTOP)

    def thaw(self):
        if self.running():
            self._signal_daemon(signal.SIGCONT)

    def guards(self):
        """The daemon's guardian, if the daemon has started one. When another daemon goes on, the
        guardian stays, but is not a child of that daemon."""
        return [guard for pid in self.daemons() for guard in _children(pid)]

    @contextlib.contextmanager
    def machine_paused(self):
        """The mount's processes and its clocks stand still, except the wall clock. The workers
        go on."""
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

    def reload(self, changes=False):
        """changes: with other options, if it is not refused."""
        if not self.running():
            return
        if not changes:
            self._signal_daemon(signal.SIGUSR2)
            return
        self.changing = SETTINGS[self.changing == SETTINGS[0]]
        with contextlib.suppress(subprocess.TimeoutExpired), open(self.log_path, 'a', encoding='utf-8') as log:
            subprocess.run([ZKLOCKFS, '--reload', *self._words()], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                           check=False, timeout=RELOAD_SECONDS)

    def reloads(self):
        """How often a reload was done."""
        return self.log().count('has taken over from') - self.adoptions()

    def crash(self):
        """Kill the daemon; return whether another one goes on. None does if the lease was over, or
        after too many crashes."""
        if not self.running():
            return False
        before = self.adoptions()
        self._signal_daemon(signal.SIGKILL)
        until(lambda: self.adoptions() > before or not self.running(),
              'another daemon goes on, or none', ADOPTION_SECONDS)
        return self.running()

    def adoptions(self):
        return self.log().count(_ADOPTION)

    def kill(self):
        """Kill the supervisor first, so that no other daemon goes on."""
        if not self.running():
            self.deaths.append(self.process.returncode)
        ends = [os.pidfd_open(pid) for pid in self.daemons()] if self.running() else []
        self.process.kill()
        self.process.wait()
        for end in ends:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(end, signal.SIGKILL)
            select.select([end], [], [])
            os.close(end)

    def path(self, *parts):
        return os.path.join(self.directory, *parts)

    def unmount(self):
        """Unmount it; return what went wrong, or None."""
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
