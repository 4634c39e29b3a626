#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A server that takes a renewal of the session gives it a timeout of its own choice, and the answer that tells it may
never come (rule 45). A way to the server does what servers of other limits do: it lowers the timeout that a renewal
asks for. The loser is stopped before the next one holds when the answer is lost with the network, and when a renewal
that was given up is carried out late, after another one was answered, by this daemon or by the one after a crash. A
server that stands still gets no renewal at all, and costs no lock. A server that has just begun to serve gets the
renewal on a connection of its own."""

import contextlib
import os
import select
import socket
import struct
import threading
import time

from harness import CRASHES, Successor, check, run, until

SHORT_MS = 6000
LOST = 'connection lost|resumed|does not answer|lease is over|lock is lost|session ended|stopped|clock may'


class Way:
    """Every connection through it leads to the server. A scout's request has no session, a renewal has one."""

    def __init__(self, port):
        self.port = port
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.address = f'127.0.0.1:{self.listener.getsockname()[1]}'
        self.lock = threading.Lock()
        self.ends = []
        self.renewals = self.scouts = 0
        self.shorten = False     # the next renewal gets a shorter session, and its answer is lost with the network
        self.keep = False        # the next renewal is kept
        self.kept = None         #   it, and its connection to the server
        self.starting = False    # a connection that comes now is closed at its first request, also later
        self.silent = False      # nothing comes from the server any more
        self.cut = threading.Event()   # nothing passes any more, and nobody is told
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            near = self.listener.accept()[0]
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near):
        if self.cut.is_set():
            threading.Event().wait()
        early = self.starting
        if early and not select.select([near], [], [], 0.1)[0]:
            self.starting = False   # while this one waits for its scout
        far = socket.create_connection(('127.0.0.1', self.port))
        with self.lock:
            self.ends += [near, far]
        with contextlib.suppress(OSError, struct.error):
            first = near.recv(4, socket.MSG_WAITALL)
            if first.isalpha():   # a four-letter word
                far.sendall(first)
            elif len(first) == 4:
                request = bytearray(near.recv(struct.unpack('>i', first)[0], socket.MSG_WAITALL))
                if not self._goes_on(far, first, request):
                    return
                if early:
                    near.close()
                    return
                far.sendall(first + request)
            threading.Thread(target=self._copy, args=(far, near, True), daemon=True).start()
            self._copy(near, far, False)

    def _goes_on(self, far, first, request):
        """False: nothing more happens on this connection."""
        is_renewal = struct.unpack('>q', request[16:24])[0] != 0
        with self.lock:
            self.renewals += is_renewal
            self.scouts += not is_renewal
        if is_renewal and self.keep:
            self.keep = False
            struct.pack_into('>i', request, 12, SHORT_MS)
            self.kept = far, first + request
            return False
        if is_renewal and self.shorten:
            struct.pack_into('>i', request, 12, SHORT_MS)
            self.cut.set()
            far.sendall(first + request)
            return False
        return True

    def _copy(self, source, target, down):
        with contextlib.suppress(OSError):
            while True:
                data = source.recv(65536)
                if self.cut.is_set() or (down and self.silent):
                    threading.Event().wait()
                if not data:
                    break
                target.sendall(data)
        for end in source, target:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def break_all(self):
        with self.lock:
            for end in self.ends:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            self.ends = []

    def deliver(self):
        """The server carries out the renewal that was kept."""
        far, request = self.kept
        far.sendall(request)


def through(case, server, name, on_lost='kill', count=1):
    way = Way(server.port)
    mount = case.mount(server, name, servers=','.join(count * [way.address]), session='15s',
                       options=[f'on_lost={on_lost}'])
    mount.allow(LOST)
    mount.mkdir(name)
    return way, mount, mount.take(name).held()


def answer_lost(case, server, other):
    way, _, holder = through(case, server, 'lost')
    after = Successor(other, 'lost', [holder.pid])
    until(lambda: len(server.entries('lost')) == 2, 'both queue')
    way.shorten = True
    way.break_all()
    after.held()
    check(way.scouts > 0 and way.renewals == 1, f'{way.scouts} scouts, {way.renewals} renewals')


def late(case, server, other, name, crash):
    way, mount, holder = through(case, server, name)
    after = Successor(other, name, [holder.pid])
    until(lambda: len(server.entries(name)) == 2, 'both queue')
    way.keep = True
    way.break_all()
    until(lambda: way.kept, 'a renewal is kept')
    if crash:
        mount.adopt()
    until(lambda: way.renewals == 2, 'another renewal leaves')
    mount.ready()
    holder.do('fsync')
    way.cut.set()
    way.deliver()
    after.held()


def late_in_one_process(case, server, other):
    late(case, server, other, 'late', crash=False)


def late_after_a_crash(case, server, other):
    late(case, server, other, 'crash', crash=True)


def silent_server(case, server, other):
    """The lock is kept while nothing comes from the server for 8 s of the 15."""
    way, mount, holder = through(case, server, 'silent', 'term')
    session = mount.session()
    way.silent = True
    way.break_all()
    began = time.monotonic()
    until(lambda: way.scouts > 1, 'a scout is on its way')
    until(lambda: time.monotonic() > began + 8, 'it is silent for 8 s')
    check(way.renewals == 0, f'{way.renewals} renewals went to a silent server')
    way.silent = False
    way.break_all()
    mount.ready()
    holder.do('fsync')
    check(way.renewals == 1 and mount.session() == session, 'another session')
    holder.release()


def starting_server(case, server, other):
    """It closes connections that came before it was ready, so the renewal does not go on one of these."""
    # With two addresses the client goes on at once. So its connection is there before its scout's.
    way, mount, holder = through(case, server, 'starting', count=2)
    session = mount.session()
    way.starting = True
    way.break_all()
    until(lambda: not way.starting, 'it begins to serve')
    mount.ready()
    holder.do('fsync')
    check(way.renewals == 1 and mount.session() == session, f'{way.renewals} renewals, or another session')
    holder.release()


def unused_session(case, server, other):
    """A session whose renewal was given up is replaced when nobody holds or waits."""
    way, mount, holder = through(case, server, 'unused')
    session = mount.session()
    way.keep = True
    way.break_all()
    until(lambda: way.renewals == 2, 'another renewal leaves')
    mount.ready()
    holder.do('fsync')
    mount.take('unused', 'shared')   # it waits
    until(lambda: len(server.entries('unused')) == 2, 'both queue')
    waiter = mount.case.takers[-1]
    holder.release()
    waiter.held()                    # with what the renewal leaves of the lease
    check(mount.session() == session, 'the session of a holder')
    waiter.release()

    def begins_anew():
        status = mount.status()    # one look: between two of them the mount may have no session
        return status['state'] == 'ready' and int(status['session'], 16) != session

    until(begins_anew, 'a new session begins')
    mount.said('a server never answered')


def test(case):
    server = case.server(tick_ms=2000)
    other = case.mount(server, 'b')
    parts = [answer_lost, late_in_one_process, silent_server, starting_server, unused_session]
    if not CRASHES and 'nokeeper' not in os.environ.get('ZKLOCKFS_OPTIONS', ''):
        parts.append(late_after_a_crash)
    case.at_once(*((lambda case, part=part: part(case, server, other)) for part in parts))


run(test)
