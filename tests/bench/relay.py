# SPDX-License-Identifier: MIT
"""relay.py - a link to a ZooKeeper server that counts by kind: requests, and bytes of both
directions.

Nothing is changed, delayed or dropped. Pings, the small writes by which a mount keeps
its lease, and its looks at the lock itself (once a second, for its owner and mode) are
counted apart from the requests of the takers.
"""

import collections
import selectors
import socket
import struct
import threading

_LENGTH = struct.Struct('>i')
_HEADER = struct.Struct('>ii')
_OPERATION = struct.Struct('>i?i')
NAMES = {1: 'create', 15: 'create', 2: 'delete', 3: 'exists', 4: 'get', 5: 'set', 8: 'list', 12: 'list',
         9: 'sync', 11: 'ping', 13: 'check', 14: 'multi', -11: 'close', 19: 'create', 101: 'watches',
         105: 'watches'}
_WATCH_EVENT = -1


def _skip_buffer(body, at):
    return at + 4 + max(_LENGTH.unpack_from(body, at)[0], 0)


def _path(body, at):
    return body[at + 4:_skip_buffer(body, at)].decode(errors='replace')


def _skip_operation(kind, body, at):
    """Where an operation of a transaction ends."""
    at = _skip_buffer(body, at)
    if kind in ('create', 'set'):
        at = _skip_buffer(body, at)
    if kind == 'create':
        acls = _LENGTH.unpack_from(body, at)[0]
        at += 4
        for _ in range(acls):
            at = _skip_buffer(body, _skip_buffer(body, at + 4))
    return at + 4


def kind_of(frame):
    """The kind of a request: `create`, `multi(delete create)`, `heartbeat`, `lock data`."""
    number = _HEADER.unpack_from(frame, 0)[1]
    kind = NAMES.get(number, f'type {number}')
    if kind == 'set' and '/.zklockfs/' in _path(frame, 8):
        return 'heartbeat'
    if kind == 'get' and _path(frame, 8).startswith('/locks/') and not _path(frame, 8)[-10:].isdigit():
        return 'lock data'
    if kind != 'multi':
        return kind
    kinds, at = [], 8
    while True:
        number, done, _ = _OPERATION.unpack_from(frame, at)
        at += _OPERATION.size
        if done:
            return f'multi({" ".join(kinds)})'
        kinds.append(NAMES.get(number, str(number)))
        at = _skip_operation(kinds[-1], frame, at)


class _Side:
    """One end of a connection, and the bytes that have come in from there."""

    def __init__(self, conn, client):
        self.conn, self.client = conn, client
        self.rest = b''
        self.other = None
        self.begun = False       # the handshake is no request
        self.asked = {}          # number of a request -> its kind, until it is answered

    def frames(self, data):
        self.rest += data
        at = 0
        while len(self.rest) - at >= 4:
            length = _LENGTH.unpack_from(self.rest, at)[0]
            if len(self.rest) - at < 4 + length:
                break
            frame = self.rest[at + 4:at + 4 + length]
            at += 4 + length
            if self.begun:
                yield frame
            self.begun = True
        self.rest = self.rest[at:]


class Relay:
    def __init__(self, port):
        self.target = port
        self.requests, self.bytes = collections.Counter(), collections.Counter()
        self.notifications = 0
        self.listener = socket.create_server(('127.0.0.1', 0), backlog=4096)
        self.address = f'127.0.0.1:{self.listener.getsockname()[1]}'
        self.lock = threading.Lock()
        self.ended = False
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _accept(self):
        near = _Side(self.listener.accept()[0], True)
        far = _Side(socket.create_connection(('127.0.0.1', self.target)), False)
        near.other, far.other = far, near
        for side in (near, far):
            side.conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.selector.register(side.conn, selectors.EVENT_READ, side)

    def _forward(self, side):
        try:
            data = side.conn.recv(1 << 16)
            # A request is counted before it can be answered.
            self._count(side, data)
            side.other.conn.sendall(data)
        except OSError:
            data = b''
        if not data:
            for each in (side, side.other):
                if each.conn.fileno() >= 0:
                    self.selector.unregister(each.conn)
                    each.conn.close()

    def _count(self, side, data):
        with self.lock:
            for frame in side.frames(data):
                number = _LENGTH.unpack_from(frame, 0)[0]
                if side.client:
                    kind = side.asked[number] = kind_of(frame)
                    self.requests[kind] += 1
                elif number == _WATCH_EVENT:
                    kind = 'notification'
                    self.notifications += 1
                else:
                    kind = side.other.asked.pop(number, 'unknown')
                self.bytes[kind] += len(frame)

    def _run(self):
        while not self.ended:
            for key, _ in self.selector.select(0.5):
                if key.data is None:
                    self._accept()
                elif key.data.conn.fileno() >= 0:
                    self._forward(key.data)

    def counts(self):
        """Requests by kind so far, bytes by kind, and notifications."""
        with self.lock:
            return collections.Counter(self.requests), collections.Counter(self.bytes), self.notifications

    def end(self):
        self.ended = True
        self.thread.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.listener.close()
