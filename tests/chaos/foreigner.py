# SPDX-License-Identifier: MIT
"""foreigner.py - a user of another client, kazoo or Curator, in the queue of the mounts.

The client is a process that takes and drops on command (../bench/processes.py). It goes to the servers by
itself, and no fault is on its way. A client may believe that it holds when its session has ended, so its word proves
nothing. A transaction that checks its entry does: the leader has decided it, so the entry was there, and
it was at the head since the client was told so.
"""

import errno
import os
import re
import socket
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [HERE + '/../mount', HERE + '/../interop', HERE + '/../bench']

import processes
import rawzk
from foreign import HERE as INTEROP
from foreign import JARS
from foreign import build_java as build
from history import now
from taker import Lost, Taker

KINDS = {'kazoo': re.compile(r'[0-9a-f]{32}-r?lock-\d{10}'),
         'curator': re.compile(r'_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-r?lock-\d{10}')}    # of their entries
_TAKE_SECONDS = 60      # of a client that is not told; then another one takes its place
_ASK_SECONDS = 10
_SLOT = 1


def command(kind, classes, servers):
    if kind == 'kazoo':
        return ['/usr/bin/python3', INTEROP + '/kinds.py', servers, '/locks']
    return ['java', '-Xmx64m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Xshare:auto', '-XX:-UsePerfData',
            '-cp', f'{classes}:{JARS}', 'Kinds', servers, '/locks']


class Foreigner(Taker):
    def __init__(self, args):
        super().__init__(args, args.name, args.seed)
        self.kind, self.directory = args.role, os.path.dirname(args.histories)
        self.actor = self.client = self.entry = None

    def _begin(self):
        """Start the client, if it does not run."""
        if self.actor is None:
            self.actor = processes.Worker(self.kind, command(self.kind, self.directory + '/classes', self.args.servers),
                                          f'{self.directory}/{self.args.name}.log')

    def _dismiss(self):
        if self.actor:
            self.actor.kill()
        self.actor = None

    # ---- what the ensemble says ----

    def _of_ensemble(self, question):
        """The answer of any server that has one within a while. ConnectionError if none has."""
        deadline = time.monotonic() + _ASK_SECONDS
        while time.monotonic() < deadline:
            try:
                if self.client is None:
                    self.client = rawzk.Client(int(self.random.choice(self.args.ports)))
                    self.client.conn.settimeout(_ASK_SECONDS / 4)
                return question(self.client)
            except (OSError, struct.error, socket.timeout):
                if self.client:
                    self.client.conn.close()
                self.client = None
                time.sleep(0.05)
        raise ConnectionError('no server answers')

    def _newest(self, client):
        """The path and the token of the client's entry: its newest."""
        directory = '/locks/' + self.lock
        client.check(directory)     # what is read after this is not older
        mine = [name for name in client.children(directory) if KINDS[self.kind].fullmatch(name)]
        path = f'{directory}/{max(mine, key=lambda name: name[-10:])}' if mine else None
        there = client.exists(path) if path else None
        return (path, there.czxid) if there else None

    # ---- the steps of a taker ----

    def open(self, lock, mode):
        """Returns whether the lock is held. A take that fails leaves no answer in the history."""
        self.lock, self.mode, self.token, self.last_ok = lock, mode, None, None
        self.log.write('open', lock=lock, lock_file=self.kind, mode=mode, signal=False, c=now())
        c = now()
        try:
            self._begin()
            self.actor.take(_SLOT, lock, mode)
            self.actor.held(_SLOT, _TAKE_SECONDS)
            self.entry = self._of_ensemble(self._newest)
            if self.entry and self._of_ensemble(lambda client: client.check(self.entry[0])):
                self.log.write('held', c=c, r=now())
                return True
        except (processes.BenchError, ConnectionError):
            pass
        self._dismiss()
        return False

    def _check(self, how):
        c = now()
        try:
            there = self._of_ensemble(lambda client: client.check(self.entry[0]))
        except ConnectionError:
            return True         # no answer proves nothing
        self.log.write('check', how='read', errno=0 if there else errno.EIO, token=self.entry[1] if there else None,
                       c=c, r=now())
        if there:
            self.token = self.entry[1]
        return there

    def release(self):
        self.log.write('release', c=now())
        try:
            self.actor.drop(_SLOT)
            self.actor.dropped(_SLOT, _TAKE_SECONDS)
        except processes.BenchError:
            self._dismiss()

    def hold(self, seconds):
        try:
            self.check()
            if self.token is None:
                return
            if self.mode == 'shared':
                self._look(seconds)
                return
            fenced = self.fence('read')
            self.work(seconds, self.check_somehow)
            if fenced is not None:
                self.fence('write', fenced + 1)
            self.check()
        except Lost:
            pass
        finally:
            self.release()

    def run(self):
        rng = self.random
        while not os.path.exists(self.args.finish):
            if self.open(rng.choice(self.args.foreign_locks), rng.choice(('exclusive', 'exclusive', 'shared'))):
                self.hold(rng.uniform(0.5, 4.0) if rng.random() < 0.1 else rng.uniform(0.0, 0.05))
            time.sleep(rng.uniform(0.002, 0.1))
        self._dismiss()
        self.log.write('exit')
