# SPDX-License-Identifier: MIT
"""stores.py - what the locks protect: two counters, of two ways of being careful.

Plain: a number in a file. Whoever writes last wins, so only the lock keeps
updates from being lost.

Fenced: a log of small records, refusing tokens lower than the largest seen; a
read shows its token too, or an older holder could slip in between a read and the
write that goes with it. The check and the record are one step under a lock of the
store's own. A record is one write of a few bytes: a writer that is killed leaves
all of it or nothing, so the log knows of every accepted increment.
"""

import fcntl
import os
import struct

_RECORD = struct.Struct('<cqqq')       # R or W, token, value, pid


class Plain:
    def __init__(self, path):
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def read(self):
        return int(os.pread(self.fd, 32, 0) or b'0')

    def write(self, value):
        # Of one length, so that a smaller number leaves nothing of a larger one.
        os.pwrite(self.fd, b'%020d' % value, 0)


class Fenced:
    def __init__(self, path):
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)

    def _last(self):
        """The last record's token, and the last value."""
        at = os.fstat(self.fd).st_size - _RECORD.size
        if at < 0:
            return 0, 0
        _, token, value, _ = _RECORD.unpack(os.pread(self.fd, _RECORD.size, at))
        return token, value

    def _append(self, kind, token, value):
        os.write(self.fd, _RECORD.pack(kind, token, value, os.getpid()))

    def read(self, token):
        """The value, or None: refused."""
        fcntl.lockf(self.fd, fcntl.LOCK_EX)
        try:
            largest, value = self._last()
            if token < largest:
                return None
            self._append(b'R', token, value)
            return value
        finally:
            fcntl.lockf(self.fd, fcntl.LOCK_UN)

    def write(self, token, value):
        """False: refused."""
        fcntl.lockf(self.fd, fcntl.LOCK_EX)
        try:
            if token < self._last()[0]:
                return False
            self._append(b'W', token, value)
            return True
        finally:
            fcntl.lockf(self.fd, fcntl.LOCK_UN)


def records(path):
    """[(kind, token, value)] of a fenced store."""
    with open(path, 'rb') as file:
        return [(kind.decode(), token, value)
                for kind, token, value, _ in _RECORD.iter_unpack(file.read())]
