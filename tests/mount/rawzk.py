# SPDX-License-Identifier: MIT
"""rawzk.py - a second, independent view into the ensemble.

A ZooKeeper client of the few requests that the tests need, written from the
protocol (jute over a socket) and not from the library the daemon uses. One
connection, one request at a time; it never pings, so it asks for a session far
longer than any test.
"""

import base64
import collections
import hashlib
import socket
import struct

NONODE, NOAUTH, NODEEXISTS, NOTEMPTY, THROTTLED = -101, -102, -110, -111, -127
SESSION_MS = 600 * 1000

_CREATE, _DELETE, _EXISTS, _GET, _SET, _GET_ACL, _SET_ACL = 1, 2, 3, 4, 5, 6, 7
_CHILDREN2, _CHECK, _MULTI, _AUTH, _CLOSE = 12, 13, 14, 100, -11
_CREATE_CONTAINER, _CREATE_TTL = 19, 21
_AUTH_XID = -4

READ, WRITE, CREATE, DELETE, ADMIN, ALL = 1, 2, 4, 8, 16, 31
OPEN_ACL = [(ALL, 'world', 'anyone')]

_STAT = struct.Struct('>qqqqiiiqiiq')
Stat = collections.namedtuple('Stat', 'czxid mzxid ctime mtime version cversion aversion '
                              'ephemeral_owner data_length children pzxid')


class ZkError(Exception):
    def __init__(self, code):
        super().__init__(f'ZooKeeper error {code}')
        self.code = code


def _buffer(data):
    return struct.pack('>i', len(data)) + data


def _string(text):
    return _buffer(text.encode('utf-8', 'surrogateescape'))


def digest_id(credentials):
    """The id that the server computes from `user:password`."""
    digest = hashlib.sha1(credentials.encode()).digest()
    return credentials.split(':')[0] + ':' + base64.b64encode(digest).decode()


def _acl(acl):
    return struct.pack('>i', len(acl)) + b''.join(
        struct.pack('>i', perms) + _string(scheme) + _string(who) for perms, scheme, who in acl)


class _Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, layout):
        values = struct.unpack_from(layout, self.data, self.at)
        self.at += struct.calcsize(layout)
        return values if len(values) > 1 else values[0]

    def buffer(self):
        length = max(self.take('>i'), 0)
        self.at += length
        return self.data[self.at - length:self.at]

    def string(self):
        return self.buffer().decode('utf-8', 'surrogateescape')

    def stat(self):
        return Stat(*self.take(_STAT.format))


def four_letters(port, word, timeout):
    """The answer to one of the server's four-letter words."""
    with socket.create_connection(('127.0.0.1', port), timeout) as conn:
        conn.sendall(word.encode())
        return b''.join(iter(lambda: conn.recv(65536), b'')).decode()


def password_of(session):
    """The password of a session: java.util.Random, begun with the id."""
    seed = ((session ^ 0xB3415C00) ^ 0x5DEECE66D) % 2 ** 48
    password = b''
    while len(password) < 16:
        seed = (seed * 0x5DEECE66D + 11) % 2 ** 48
        password += struct.pack('<I', seed >> 16)
    return password


class Client:
    def __init__(self, port, credentials=None, session=0, timeout_ms=SESSION_MS):
        """session: the id of another client's, to be in it. Its server closes the other client's connection."""
        self.conn = socket.create_connection(('127.0.0.1', port), 60)
        self.xid = 0
        password = password_of(session) if session else bytes(16)
        self._send(struct.pack('>iqiq', 0, 0, timeout_ms, session) + _buffer(password) + b'\0')
        answer = _Reader(self._receive())
        _, _, self.session = answer.take('>iiq')
        if credentials:
            self._send(struct.pack('>iii', _AUTH_XID, _AUTH, 0) + _string('digest') +
                       _string(credentials))
            xid, _, code = _Reader(self._receive()).take('>iqi')
            assert xid == _AUTH_XID, xid
            if code:
                raise ZkError(code)

    def _send(self, packet):
        self.conn.sendall(_buffer(packet))

    def _exactly(self, length):
        data = b''
        while len(data) < length:
            more = self.conn.recv(length - len(data))
            if not more:
                raise ConnectionError('the server closed the connection')
            data += more
        return data

    def _receive(self):
        return self._exactly(struct.unpack('>i', self._exactly(4))[0])

    def _ask(self, kind, body):
        code = THROTTLED
        while code == THROTTLED:    # a server that is busy has not done it
            self.xid += 1
            self._send(struct.pack('>ii', self.xid, kind) + body)
            answer = _Reader(self._receive())
            xid, _, code = answer.take('>iqi')
            assert xid == self.xid, (xid, self.xid)
        if code:
            raise ZkError(code)
        return answer

    def create(self, path, data=b'', ephemeral=False, sequence=False, acl=()):
        """Make a node; return its path, with the number of a sequential one."""
        flags = struct.pack('>i', ephemeral | sequence << 1)
        return self._ask(_CREATE, _string(path) + _buffer(data) + _acl(acl or OPEN_ACL) + flags).string()

    def create_container(self, path):
        return self._ask(_CREATE_CONTAINER, _string(path) + _buffer(b'') + _acl(OPEN_ACL) + struct.pack('>i', 4)).string()

    def create_ttl(self, path, ttl_ms):
        request = _string(path) + _buffer(b'') + _acl(OPEN_ACL) + struct.pack('>iq', 5, ttl_ms)
        return self._ask(_CREATE_TTL, request).string()

    def acl(self, path):
        """The (permissions, scheme, id) of a node."""
        answer = self._ask(_GET_ACL, _string(path))
        return [(answer.take('>i'), answer.string(), answer.string())
                for _ in range(answer.take('>i'))]

    def set_acl(self, path, acl):
        self._ask(_SET_ACL, _string(path) + _acl(acl) + struct.pack('>i', -1))

    def delete(self, *paths):
        """Delete the nodes, all of them or none."""
        self._multi(_DELETE, paths)

    def check(self, path):
        """Whether the node is there: the leader's word, which no later read of this client is behind."""
        try:
            self._multi(_CHECK, [path])
        except ZkError as err:
            if err.code != NONODE:
                raise
            return False
        return True

    def _multi(self, operation, paths):
        body = b''
        for path in paths:
            body += struct.pack('>i?i', operation, False, -1) + _string(path) + struct.pack('>i', -1)
        answer = self._ask(_MULTI, body + struct.pack('>i?i', -1, True, -1))
        for _ in paths:
            kind, _, code = answer.take('>i?i')
            if kind == -1:
                code = answer.take('>i') or code
                if code:
                    raise ZkError(code)

    def exists(self, path):
        """The node's Stat, or None."""
        try:
            return self._ask(_EXISTS, _string(path) + b'\0').stat()
        except ZkError as err:
            if err.code != NONODE:
                raise
            return None

    def get(self, path):
        answer = self._ask(_GET, _string(path) + b'\0')
        return answer.buffer(), answer.stat()

    def set(self, path, data):
        self._ask(_SET, _string(path) + _buffer(data) + struct.pack('>i', -1))

    def children(self, path):
        answer = self._ask(_CHILDREN2, _string(path) + b'\0')
        return [answer.string() for _ in range(answer.take('>i'))]

    def close(self):
        """End the session: its ephemeral nodes go at once."""
        try:
            self._ask(_CLOSE, b'')
        except OSError:
            pass   # the server is away, and the session with it
        self.conn.close()
