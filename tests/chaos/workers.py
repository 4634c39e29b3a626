# SPDX-License-Identifier: MIT
"""workers.py - the worker processes: some on each mount. A killed worker is replaced by a new
one with its own name and history. On a mount with on_lost=kill this also happens to a worker
that has lost a lock. Workers of other clients stand behind the last mount."""

import os
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace

import crowd
import foreigner
from harness import until
from history import now

# The roles on each mount. On every third mount a process that loses a lock is killed; a crowd is
# one process, and all of it is killed.
_SMALL = ('worker',) * 4 + ('sentry',) * 2 + ('asker',)
ROLES = (_SMALL + ('crowd',), _SMALL, _SMALL + ('crowd',))
_WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'worker.py')


class Workers:
    def __init__(self, mounts, ensemble, locks, seed, directory, journal):
        self.mounts, self.ensemble, self.locks, self.seed = mounts, ensemble, locks, seed
        self.outside = SimpleNamespace(number=len(mounts), on_lost='none', directory='-')
        self.directory, self.journal = directory, journal
        self.finish_file = directory + '/finish'
        self.alive = {}                # name -> process
        self.killed = {}
        self.generation = 0
        self.lock = threading.Lock()
        os.mkdir(directory + '/stores')
        os.mkdir(directory + '/histories')
        foreigner.build(directory)
        for mount in mounts:
            for role in ROLES[mount.number % len(ROLES)]:
                self._hire(mount, role)
        for role in foreigner.KINDS:
            self._hire(self.outside, role)
        self.finishing = threading.Event()
        threading.Thread(target=self._replace_losers, daemon=True).start()

    def _hire(self, mount, role):
        name = f'm{mount.number}-{role}-{self.generation}'
        self.generation += 1
        musts = {name: self.locks.each if role in ('worker', 'sentry') else ()}
        if role == 'crowd':
            musts = {name: ()}
            for number in range(crowd.THREADS):
                musts[f'{name}.{number}'] = [crowd.must(self.locks.burst, number)]
        for worker, must in musts.items():
            self.journal.write('worker', worker=worker, process=name, mount=mount.number, must=must)
        with open(self.directory + '/workers.log', 'a', encoding='utf-8') as log:
            self.alive[name] = subprocess.Popen(
                [sys.executable, _WORKER, '--mount', mount.directory, '--role', role, '--name', name,
                 '--locks', ','.join(self.locks.each), '--burst-locks', ','.join(self.locks.burst),
                 '--slots', ','.join(self.locks.slots), '--values', ','.join(self.locks.values),
                 '--foreign-locks', ','.join(self.locks.foreign), '--servers', self.ensemble.addresses(),
                 '--ports', ','.join(str(server.observer_port) for server in self.ensemble.servers),
                 '--histories', self.directory + '/histories', '--finish', self.finish_file,
                 '--stores', self.directory + '/stores', '--seed', f'{self.seed} {name}'],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _mount(self, name):
        return next(mount for mount in [*self.mounts, self.outside] if name.startswith(f'm{mount.number}-'))

    def _gone(self, name):
        """A worker was killed: another one takes its place as long as faults come."""
        self.killed[name] = self.alive.pop(name)
        if not self.finishing.is_set():
            self._hire(self._mount(name), name.split('-')[1])

    def _replace_losers(self):
        while not self.finishing.wait(0.05):
            self._find_losers()
            for process in list(self.killed.values()):
                process.poll()      # no zombie stays: who looks through /proc meets each

    def _find_losers(self):
        with self.lock:
            for name, process in list(self.alive.items()):
                if self._mount(name).on_lost == 'kill' and process.poll() == -signal.SIGKILL:
                    self.journal.write('lost', process=name, c=now())
                    self._gone(name)

    def kill_one(self, pick):
        self._find_losers()
        with self.lock:
            name = sorted(self.alive)[int(pick * len(self.alive))]
            self.journal.write('kill', process=name, c=now())
            # Do not wait: a worker that asks a stopped daemon dies when the daemon goes on.
            self.alive[name].kill()
            self._gone(name)
        return name

    def finish(self, seconds):
        """Tell all workers to end; return the names of those that do not end in time."""
        with open(self.finish_file, 'w', encoding='ascii'):
            pass
        self.finishing.set()

        def running():
            return sorted(name for name, process in {**self.alive, **self.killed}.items()
                          if process.poll() is None)
        try:
            until(lambda: not running(), 'the workers end', seconds)
        except AssertionError:
            pass
        self._find_losers()
        return running()

    def dismiss(self):
        """Kill the workers that are left, so that the mounts can be unmounted."""
        for process in self.alive.values():
            process.kill()
        for process in self.alive.values():
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                pass               # the mount will say that it is busy

    def failures(self):
        return [f'worker {name} ended with {process.returncode}'
                for name, process in sorted(self.alive.items()) if process.poll()]

    def log(self):
        with open(self.directory + '/workers.log', encoding='utf-8', errors='replace') as log:
            return log.read()
