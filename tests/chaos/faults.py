# SPDX-License-Identifier: MIT
"""faults.py - carries out the plan of schedule.py.

Each track is a thread that waits for the time of its next fault, begins the fault, lets it
last, and ends it. Here sleeping is the purpose: the thread waits for no event. Every fault is
written into the journal, the runner's history.
"""

import collections
import contextlib
import ctypes
import errno
import os
import random
import re
import struct
import threading
import time

import proxy as proxies
import rawzk
from ensemble import LIMITS
from harness import libc, until
from history import now
from mounts import lengthen
from schedule import TRACKS

_SHOT_KINDS = (('create',), ('delete',), ('multi',), ('create', 'delete', 'multi'), ('set',))
# Errors of calls while the mount or its ensemble is away, of a write while the daemon crashed, of
# an interrupted call; and errors when the entry or the lock is in use, or has gone.
_AWAY = (errno.ENOTCONN, errno.ECONNABORTED, errno.EHOSTUNREACH, errno.EIO, errno.EINTR)
_BUSY = (errno.EBUSY, errno.ENOTEMPTY, errno.ENOENT)


def _number(text):
    """0 for the `-` of a holder whose entry may be the next holder's, too."""
    return int(text) if text and text != '-' else 0


# A fault that became a fault of another kind.
Other = collections.namedtuple('Other', 'kind target')
_REMOVE_SECONDS = 10
_SETTLE_SECONDS = 5
_RENEWS_SECONDS = 5


class Faults:
    def __init__(self, plan, bench, seconds):
        self.bench = bench             # network, proxy, ensemble, mounts, workers, journal
        self.counts = collections.Counter()
        self.errors = []
        self.stopping = threading.Event()
        self.start = time.monotonic()
        self.end = self.start + seconds    # a slow machine leaves out what would begin later
        tracks = {fault.track for fault in plan}
        self.threads = [threading.Thread(target=self._track, daemon=True,
                                         args=([fault for fault in plan if fault.track == track],))
                        for track in sorted(tracks)]
        for thread in self.threads:
            thread.start()

    def finish(self):
        for thread in self.threads:
            thread.join()

    def stop(self):
        self.stopping.set()

    def _track(self, plan):
        for fault in plan:
            if self.stopping.wait(max(0, self.start + fault.at - time.monotonic())):
                return
            if fault.kind in TRACKS['server']:
                # A slow machine would never have a quorum again.
                with contextlib.suppress(AssertionError):
                    until(self.bench.ensemble.leader, 'a quorum')
            if time.monotonic() > self.end:
                return
            began = now()
            try:
                what = getattr(self, '_' + fault.kind.replace('-', '_'))(fault)
            except Exception as err:   # a bug of the bench: the run is worth nothing
                self.errors.append(f'{fault.kind}: {err!r}')
                return
            if what is None:
                continue               # the fault had nothing to hit
            kind, what = what if isinstance(what, Other) else (fault.kind, what)
            self.counts[fault.kind] += 1
            self.bench.journal.write('fault', kind=kind, target=what, c=began, r=now())

    def _last(self, fault):
        self.stopping.wait(fault.seconds)

    @staticmethod
    def _pick(fault, things):
        return things[int(fault.pick * len(things))] if things else None

    # ---- servers ----

    def _kill_server(self, fault, server, limits=None):
        if server is None:
            return None
        server.kill()
        self._last(fault)
        if limits:
            server.limit(limits)
        server.start()
        # One server at a time: the next fault of a server comes when this server serves again.
        with contextlib.suppress(AssertionError):
            until(server.mode, 'the server serves again')
        return server.number

    def _stop_server(self, fault, server):
        if server is None:
            return None
        server.freeze()
        try:
            self._last(fault)
        finally:
            server.thaw()
        return server.number

    def _server_kill(self, fault):
        return self._kill_server(fault, self._pick(fault, self.bench.ensemble.servers))

    def _server_stop(self, fault):
        return self._stop_server(fault, self._pick(fault, self.bench.ensemble.servers))

    _server_stop_long = _server_stop

    def _server_limits(self, fault):
        """A server comes back with other limits of session timeouts."""
        rng = random.Random(fault.pick)
        server = rng.choice(self.bench.ensemble.servers)
        limits = rng.choice([limits for limits in LIMITS if limits != server.limits])
        return [self._kill_server(fault, server, limits), limits]

    def _leader_kill(self, fault):
        return self._kill_server(fault, self.bench.ensemble.leader())

    def _leader_stop(self, fault):
        return self._stop_server(fault, self.bench.ensemble.leader())

    def _quorum_lost(self, fault):
        """Two of three stop at the same time."""
        pair = [server for server in self.bench.ensemble.servers
                if server is not self._pick(fault, self.bench.ensemble.servers)]
        try:
            for server in pair:
                server.freeze()
            self._last(fault)
        finally:
            for server in pair:
                server.thaw()
        return [server.number for server in pair]

    def _cut(self, fault, server, directions):
        """Cut a server from the others; its clients still reach it."""
        if server is None:
            return None
        others = [other.number for other in self.bench.ensemble.servers if other is not server]
        wires = []
        for other in others:
            wires += [(server.number, other)] if 'out' in directions else []
            wires += [(other, server.number)] if 'in' in directions else []
        try:
            for wire in wires:
                self.bench.network.cut(*wire)
            self._last(fault)
        finally:
            for wire in wires:
                self.bench.network.mend(*wire)
        return server.number

    def _follower(self, fault):
        return self._pick(fault, self.bench.ensemble.followers())

    def _follower_isolated(self, fault):
        return self._cut(fault, self._follower(fault), ('in', 'out'))

    def _follower_deaf(self, fault):
        return self._cut(fault, self._follower(fault), ('in',))

    def _follower_mute(self, fault):
        return self._cut(fault, self._follower(fault), ('out',))

    def _leader_isolated(self, fault):
        return self._cut(fault, self.bench.ensemble.leader(), ('in', 'out'))

    # ---- mounts ----

    def _free_mount(self, fault):
        """A mount, or None if a fault of another track has it in hand."""
        mount = self._pick(fault, self.bench.mounts)
        return mount if mount.take_in_hand() else None

    def _pause(self, fault):
        mount = self._free_mount(fault)
        if mount is None:
            return None
        with mount.in_hand():
            mount.freeze()
            try:
                self._last(fault)
            finally:
                mount.thaw()
        return mount.number

    _daemon_pause_short = _daemon_pause_long = _pause

    def _daemon_machine_pause(self, fault):
        mount = self._free_mount(fault)
        if mount is None:
            return None
        with mount.in_hand(), mount.machine_paused():
            self._last(fault)
        return mount.number

    _daemon_machine_pause_long = _daemon_machine_pause

    def _clock_set(self, fault):
        """Set the wall clock back or forward. The machine runs all the time."""
        mount = self._pick(fault, self.bench.mounts)
        lengthen(mount.set_back, fault.seconds if fault.pick * 1000 % 1 < 0.5 else -fault.seconds)
        return mount.number

    def _daemon_kill(self, fault):
        mount = self._free_mount(fault)
        if mount is None:
            return None
        with mount.in_hand():
            mount.kill()
            self._last(fault)
            self._start(mount)
        return mount.number

    def _start(self, mount):
        while not mount.start() and not self.stopping.is_set():
            pass    # the daemon ends by itself when no server can be reached for 10 s

    def _daemon_crash(self, fault):
        """The daemon is killed, and its supervisor starts another one, which goes on."""
        mount = self._free_mount(fault)
        if mount is None:
            return None
        with mount.in_hand():
            if self._crash(mount):
                self._last(fault)
                return mount.number
        return Other('daemon-kill', mount.number)

    def _crash(self, mount):
        """Return whether another daemon goes on. If none does, the mount is made again."""
        if mount.crash():
            return True
        self._start(mount)
        return False

    def _daemon_reload(self, fault):
        """The daemon's program takes over from itself, half of the times with other options."""
        mount = self._free_mount(fault)
        if mount is None:
            return None
        with mount.in_hand():
            mount.reload(changes=fault.pick * 1000 % 1 < 0.5)
            self._last(fault)
        return mount.number

    # ---- links ----

    def _links(self, mount):
        return [link for name, link in self.bench.proxy.links.items() if name[0] == mount]

    def _busy_link(self, fault):
        """The link that a mount uses now."""
        links = self._links(self._pick(fault, self.bench.mounts).number)
        return next((link for link in links if link.connections), links[0])

    def _shoot(self, fault):
        link = self._busy_link(fault)
        kinds = _SHOT_KINDS[int(fault.pick * 1000) % len(_SHOT_KINDS)]
        # Arm all links of the mount: it may use another one by then.
        links = self._links(link.name[0])
        for each in links:
            each.shoot(fault.kind, kinds, fault.seconds)
        deadline = time.monotonic() + fault.seconds
        # End sooner if a shot has hit; the other links are disarmed.
        while all(each.shots for each in links) and time.monotonic() < deadline:
            if self.stopping.wait(0.02):
                break
        for each in links:
            each.shots = []
        return link.name

    _cut_before_request = _half_request = _cut_before_answer = _half_answer = _shoot

    def _hold(self, fault, direction):
        link = self._busy_link(fault)
        link.hold(direction, fault.seconds)
        self._last(fault)
        return link.name

    def _black_hole_up(self, fault):
        return self._hold(fault, 'up')

    def _black_hole_down(self, fault):
        return self._hold(fault, 'down')

    def _black_hole_both(self, fault):
        return self._hold(fault, 'both')

    def _mount_cut_off(self, fault):
        """One mount reaches no server at all."""
        mount = self._pick(fault, self.bench.mounts).number
        for link in self._links(mount):
            link.hold('both', fault.seconds)
        self._last(fault)
        return mount

    _mount_cut_off_long = _mount_cut_off

    def _server_answers_stall(self, fault):
        server = self._busy_link(fault).name[1]
        for name, link in self.bench.proxy.links.items():
            if name[1] == server and name[0] != 'observer':
                link.hold('down', fault.seconds)
        self._last(fault)
        return server

    def _delay(self, fault):
        link = self._busy_link(fault)
        link.delay(proxies.DIRECTIONS[int(fault.pick * 1000) % 3], 0.01 + fault.pick * 0.4, fault.seconds)
        self._last(fault)
        return link.name

    def _reset(self, fault):
        link = self._busy_link(fault)
        if not link.connections:
            return None
        link.reset()
        return link.name

    def _astray(self, fault):
        """An address leads to another ensemble for a while. No mount begins meanwhile: it would take what it
        finds for its own."""
        mount = self._free_mount(fault)
        if mount is None:
            return None
        with mount.in_hand():
            link = self._busy_link(fault)
            link.lead(self.bench.stranger.address, fault.seconds)
            link.reset()
            self._last(fault)
            link.lead(link.address, 0)
            link.reset()
        return link.name

    def _refuse(self, fault):
        link = self._busy_link(fault)
        link.refuse(fault.seconds)
        link.reset()
        self._last(fault)
        return link.name

    # ---- renewals ----

    def _holding_mount(self, fault):
        """A mount that holds one of the slow locks now, if a server tells."""
        with contextlib.suppress(OSError, AssertionError, struct.error, rawzk.ZkError):
            client = self.bench.ensemble.client()
            with contextlib.closing(client):
                for lock in sorted(self.bench.locks.slow, reverse=fault.pick < 0.5):
                    queue = sorted(client.children('/locks/' + lock), key=lambda name: name[-10:])
                    holder = re.search(r'-m(\d)\.', queue[0]) if queue else None
                    if holder:
                        return self.bench.mounts[int(holder[1])]
        return self._pick(fault, self.bench.mounts)

    def _meet_renewal(self, mount, cut, lower):
        """Make the mount renew its session, and meet the renewal. None if no renewal comes."""
        trap = proxies.Trap(self._links(mount.number), cut, lower)
        for link in trap.links:
            link.reset()
        if trap.caught.wait(_RENEWS_SECONDS):
            return trap
        trap.remove()
        return None

    def _renewal_answer_lost(self, fault):
        """A server renews the session, perhaps with a shorter timeout; then the network is gone."""
        mount, lower = self._holding_mount(fault), fault.pick * 1000 % 1 < 0.8
        trap = self._meet_renewal(mount, fault.seconds, lower)
        if trap is None:
            return None
        self._last(fault)
        trap.remove()
        return mount.number

    def _renewal_late(self, fault):
        mount = self._holding_mount(fault)
        return mount.number if self._renew_late(fault, mount) else None

    def _renewal_late_crash(self, fault):
        mount = self._holding_mount(fault)
        if not mount.take_in_hand():
            return None
        with mount.in_hand():
            return mount.number if self._renew_late(fault, mount, self._crash_noted) else None

    def _crash_noted(self, mount):
        began = now()
        kind = 'daemon-crash' if self._crash(mount) else 'daemon-kill'
        self.counts['daemon-crash'] += 1
        self.bench.journal.write('fault', kind=kind, target=mount.number, c=began, r=now())

    def _renew_late(self, fault, mount, meanwhile=None):
        """A server carries a renewal out seconds after the mount has gone on without it. The mount's
        network goes just before that, just after, or not at all. Return whether there was one."""
        rng = random.Random(fault.pick)
        trap = self._meet_renewal(mount, None, rng.random() < 0.8)
        if trap is None:
            return False
        try:
            if meanwhile:
                meanwhile(mount)
            trap.followed.wait(_RENEWS_SECONDS)
            self.stopping.wait(rng.uniform(0.5, 3.0))
            cut = rng.choices(('before', 'after', 'none'), (3, 5, 1))[0]
            if cut == 'after':
                trap.deliver()
                self.stopping.wait(rng.uniform(0.0, 0.3))
            if cut != 'none':
                for link in trap.links:
                    link.hold('both', fault.seconds)
            if cut == 'before':
                self.stopping.wait(rng.uniform(0.0, 1.0))
            trap.deliver()
            self._last(fault)
        finally:
            trap.remove()
        return True

    # ---- workers ----

    def _worker_kill(self, fault):
        worker = self.bench.workers.kill_one(fault.pick)
        self._last(fault)
        return worker

    # ---- an operator ----

    def _evict(self, fault):
        """Evict an entry, waiting or held, of any mount, by any mount."""
        rng = random.Random(fault.pick)
        mount, locks = rng.choice(self.bench.mounts), list(self.bench.locks.all)
        # Locks that have entries most of the time come first.
        rng.shuffle(locks)
        locks.sort(key=lambda lock: not lock.startswith('slow') or rng.random() < 0.5)
        try:
            for lock in locks:
                queue = mount.path(lock, 'queue')
                if entries := os.listdir(queue):
                    break
            else:
                return None
            # The holder is at the head.
            name = rng.choice([sorted(entries)[0], rng.choice(entries)])
            # Python's file objects ask for the size while all threads stand still, also the
            # thread that has to wake a stopped daemon.
            fd = os.open(f'{queue}/{name}', os.O_RDONLY)
            try:
                text = os.read(fd, 65536).decode()
            finally:
                with contextlib.suppress(OSError):
                    os.close(fd)
            fields = dict(line.split(': ', 1) for line in text.splitlines() if ': ' in line)
            fd = os.open(f'{queue}/{name}', os.O_WRONLY)
        except OSError as err:
            if err.errno not in _AWAY + _BUSY:
                raise
            return None
        # os.write() would repeat an interrupted write, and hear that the entry is gone.
        code = 0 if libc.write(fd, b'evict', 5) == 5 else ctypes.get_errno()
        with contextlib.suppress(OSError):
            os.close(fd)
        # After an error the eviction may have been done. So it may be after ENOENT: the answer to
        # the mark was lost, and at the second try the entry has gone.
        if code not in _AWAY + (0, errno.EBUSY, errno.ENOENT):
            raise OSError(code, 'evict')
        return {'by': mount.number, 'lock': lock, 'entry': name, 'errno': code, 'state': fields.get('state'),
                'token': _number(fields.get('token')), 'host': fields.get('host'), 'pid': fields.get('pid')}

    def _lock_remade(self, fault):
        """Remove a lock in a moment when no worker uses it, and make it again. One mount does
        both: requests of another one might arrive late."""
        lock = self._pick(fault, self.bench.locks.removed)
        mount = random.Random(fault.pick).choice(self.bench.mounts)
        certain = self._remove(mount, lock)
        self._last(fault)
        # A request without an answer may still be done, and the kernel may still know the name.
        deadline = time.monotonic() + (0 if certain else _SETTLE_SECONDS)
        made = False
        while not made or time.monotonic() < deadline:
            made = self._change(os.mkdir, mount, lock) in (0, errno.EEXIST)
            self.stopping.wait(0.05)
        return lock

    def _remove(self, mount, lock):
        """Remove the lock; return whether it is certain what has become of it."""
        deadline, certain = time.monotonic() + _REMOVE_SECONDS, True
        while time.monotonic() < deadline:
            code = self._change(os.rmdir, mount, lock)
            if code in (0, errno.ENOENT):
                return certain and code == 0
            certain = certain and code in (None, errno.EBUSY, errno.ENOTEMPTY)
            self.stopping.wait(0.01)
        return certain

    @staticmethod
    def _change(function, mount, lock):
        """Make the change. Returns 0, its errno, or None if it was not tried."""
        # Without a daemon the mount point is a directory like any other.
        if not mount.take_in_hand():
            return None
        with mount.in_hand():
            try:
                function(mount.path(lock))
            except OSError as err:
                if err.errno not in _AWAY + _BUSY + (errno.EEXIST,):
                    raise
                return err.errno
        return 0
