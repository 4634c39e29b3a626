#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""proxy_test.py - each fault of the proxy does what its name says, in front of a server that
answers every request with its xid and remembers it. What is held back must come
late; what is not has a minute."""

import contextlib
import os
import socket
import struct
import sys
import threading
import time
import unittest

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
sys.dont_write_bytecode = True

import wire
from proxy import SHOTS, Proxy, Trap

CREATE, DELETE, GET = 15, 2, 4
MINUTE = 60


def _frame(*numbers):
    return struct.pack('>i', 4 * len(numbers)) + struct.pack(f'>{len(numbers)}i', *numbers)


class Server:
    def __init__(self):
        self.seen = []                 # xids
        self.greetings = []            # the timeout and the session of each handshake
        self.last_seen = None
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.address = self.listener.getsockname()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self.listener.accept()[0],), daemon=True).start()

    def _serve(self, conn):
        splitter, greeted = wire.Splitter(), False
        with contextlib.suppress(OSError), conn:
            while data := conn.recv(65536):
                for frame in splitter.feed(data):
                    xid = wire.request(frame)[0] if greeted else -100
                    if not greeted and len(frame) > 16:
                        self.greetings.append(struct.unpack_from('>iq', frame, 16))
                    if greeted:
                        self.last_seen = time.monotonic()
                        self.seen.append(xid)
                    conn.sendall(_frame(xid, 0, 0, 0))
                    greeted = True


class Client:
    def __init__(self, link):
        self.conn = socket.create_connection(('127.0.0.1', link.port), MINUTE)
        self.splitter, self.frames, self.raw = wire.Splitter(), [], b''
        self.conn.sendall(_frame(0, 0, 0))
        assert self.answer() == -100

    @classmethod
    def greet(cls, link, timeout_ms, session):
        """A client that has sent a whole handshake, and waits for no answer."""
        self = cls.__new__(cls)
        self.conn = socket.create_connection(('127.0.0.1', link.port), MINUTE)
        self.splitter, self.frames, self.raw = wire.Splitter(), [], b''
        self.conn.sendall(struct.pack('>iiqiqi', 32, 0, 0, timeout_ms, session, 16) + bytes(4))
        return self

    def send(self, xid, kind):
        self.conn.sendall(_frame(xid, kind, 7, 7))

    def answer(self):
        """The xid, or None: the connection was cut."""
        while not self.frames:
            try:
                data = self.conn.recv(65536)
            except ConnectionResetError:
                data = b''
            if not data:
                return None
            self.raw += data
            self.frames += self.splitter.feed(data)
        return wire.answer_xid(self.frames.pop(0))

    def ask(self, xid, kind):
        self.send(xid, kind)
        return self.answer()


class ProxyTest(unittest.TestCase):
    def setUp(self):
        self.server, self.proxy = Server(), Proxy()
        self.addCleanup(self.server.listener.close)
        self.link = self.proxy.link(('mount', 1), self.server.address)

    def test_passes_on(self):
        client = Client(self.link)
        self.assertEqual([client.ask(xid, CREATE) for xid in (1, 2, 3)], [1, 2, 3])
        self.assertEqual(self.server.seen, [1, 2, 3])

    def test_shots(self):
        applied = {'cut-before-request': False, 'half-request': False,
                   'cut-before-answer': True, 'half-answer': True}
        for shot in SHOTS:
            client = Client(self.link)
            self.server.seen.clear()
            self.link.shoot(shot, ('create',), MINUTE)
            self.assertEqual(client.ask(1, GET), 1)
            self.assertEqual(client.ask(2, DELETE), 2)
            length = len(client.raw)
            self.assertIsNone(client.ask(3, CREATE), shot)
            self.assertEqual(3 in self.server.seen, applied[shot], shot)
            self.assertEqual(len(client.raw) > length, shot == 'half-answer', shot)
            self.assertEqual(self.proxy.fired[f'{shot}: create'], 1)
            # A shot hits only once.
            self.assertEqual(Client(self.link).ask(4, CREATE), 4)

    def test_shot_runs_out(self):
        self.link.shoot('cut-before-request', ('create',), -1)
        self.assertEqual(Client(self.link).ask(1, CREATE), 1)

    def until(self, happened):
        deadline = time.monotonic() + MINUTE
        while not happened():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def until_seen(self, xid):
        self.until(lambda: xid in self.server.seen)

    def test_answer_of_renewal_is_lost(self):
        other = self.proxy.link(('mount', 2), self.server.address)
        trap = Trap([self.link, other], cut=10 * MINUTE, lower=True)
        scout = Client.greet(self.link, 9000, 0)
        self.assertEqual(scout.answer(), -100)
        self.assertFalse(trap.caught.is_set())
        renewal = Client.greet(self.link, 9000, 5)
        self.until(trap.caught.is_set)
        # The network is gone, on the other links, too.
        Client.greet(other, 9000, 5)
        self.until(lambda: len(self.server.greetings) == 2)
        self.assertEqual(self.server.greetings, [(9000, 0), (5000, 5)])
        # When the network comes back, this answer does not.
        trap.remove()
        for link in trap.links:
            link.clear()
        self.until(lambda: len(self.server.greetings) == 3)
        self.assertEqual(self.server.greetings[2], (9000, 5))
        renewal.send(1, GET)
        self.until_seen(1)
        renewal.conn.settimeout(0.1)
        self.assertRaises(TimeoutError, renewal.answer)

    def test_renewal_is_late(self):
        """The sender gives it up, and another one is answered; then the first one arrives."""
        for lower in (False, True):
            self.server.greetings.clear()
            trap = Trap([self.link], lower=lower)
            Client.greet(self.link, 9000, 5).conn.close()
            self.until(trap.caught.is_set)
            self.link.reset()
            self.assertEqual(Client.greet(self.link, 8000, 5).answer(), -100)
            self.assertTrue(trap.followed.is_set())
            self.assertEqual(self.server.greetings, [(8000, 5)])
            # What keeps packets from the mount keeps nothing that is on its way.
            self.link.hold('both', 10 * MINUTE)
            trap.deliver()
            self.until(lambda: len(self.server.greetings) == 2)
            self.assertEqual(self.server.greetings[1], (5000 if lower else 9000, 5))
            trap.remove()
            self.link.clear()

    def test_hold_up(self):
        client = Client(self.link)
        start = time.monotonic()
        self.link.hold('up', 0.3)
        client.send(1, CREATE)
        client.send(2, CREATE)
        self.until_seen(1)
        self.assertGreaterEqual(self.server.last_seen - start, 0.3)
        self.assertEqual([client.answer(), client.answer()], [1, 2])

    def test_hold_down(self):
        client = Client(self.link)
        start = time.monotonic()
        self.link.hold('down', 0.3)
        self.assertEqual(client.ask(1, CREATE), 1)
        self.assertGreaterEqual(time.monotonic() - start, 0.3)
        # The server applies it at once.
        self.link.hold('down', 10 * MINUTE)
        client.send(2, CREATE)
        self.until_seen(2)

    def test_end_of_connection_is_held_back(self):
        """A request that was sent before its client gave up arrives late, and is still applied."""
        client = Client(self.link)
        self.link.hold('up', 0.2)
        client.send(1, CREATE)
        client.conn.close()
        self.until_seen(1)
        self.assertEqual(self.server.seen, [1])

    def test_delay(self):
        client = Client(self.link)
        start = time.monotonic()
        self.link.delay('both', 0.1, 10 * MINUTE)
        xids = list(range(1, 5 * MINUTE + 1))
        for xid in xids:
            client.send(xid, CREATE)
        self.assertEqual([client.answer() for _ in xids], xids)
        self.assertTrue(0.2 <= time.monotonic() - start < MINUTE, 'late, but not one by one, which takes a minute')

    def test_reset_and_refuse(self):
        client = Client(self.link)
        self.link.refuse(10 * MINUTE)
        self.link.reset()
        self.assertIsNone(client.answer())
        with self.assertRaises((OSError, AssertionError)):
            Client(self.link)
        self.link.clear()
        self.assertEqual(Client(self.link).ask(1, CREATE), 1)

    def test_lead(self):
        stranger, client = Server(), Client(self.link)
        self.link.lead(stranger.address, 10 * MINUTE)
        self.assertEqual(client.ask(1, CREATE), 1)
        self.assertEqual(Client(self.link).ask(2, CREATE), 2)
        self.link.clear()
        self.assertEqual(Client(self.link).ask(3, CREATE), 3)
        self.assertEqual((self.server.seen, stranger.seen), ([1, 3], [2]))

    def test_dead_server(self):
        self.server.listener.shutdown(socket.SHUT_RDWR)   # close() waits for accept()
        with self.assertRaises((OSError, AssertionError)):
            Client(self.link)


if __name__ == '__main__':
    unittest.main(warnings='ignore')   # sockets stay open until the process ends
