# SPDX-License-Identifier: MIT
"""stores.py - what the locks protect: counters, in two kinds of stores.

Plain: a number in a file. The last write wins, so only the lock keeps updates from
being lost.

Fenced: a log of small records. It refuses the tokens of former holders: the token of
an exclusive holder may not be smaller than any before it, the token of a sharer not
smaller than that of an exclusive holder. A read shows its token, too; otherwise an
older holder could come between a read and the write that belongs to it. The check and
the record are one step under a lock of the store's own. A record is one write of a few
bytes: a writer that is killed leaves all of it or nothing, so the log has every
accepted increment.
"""

import fcntl
import os
import struct

# R, W or S (a read by a sharer), token, value; the largest token of exclusive holders,
# and of sharers, including the token of this record
_RECORD = struct.Struct('<cqqqq')


class Plain:
    def __init__(self, path):
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def read(self):
        return int(os.pread(self.fd, 32, 0) or b'0')

    def write(self, value):
        # All numbers have one length, so that a smaller one leaves nothing of a larger one.
        os.pwrite(self.fd, b'%020d' % value, 0)


class Fenced:
    def __init__(self, path):
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)

    def _last(self):
        """Of the last record: the value and the two largest tokens."""
        at = os.fstat(self.fd).st_size - _RECORD.size
        if at < 0:
            return 0, 0, 0
        return _RECORD.unpack(os.pread(self.fd, _RECORD.size, at))[2:]

    def _step(self, kind, token, value=None):
        """Append a record. Returns the value after it, or None if the store refuses it."""
        fcntl.lockf(self.fd, fcntl.LOCK_EX)
        try:
            last, alone, shared = self._last()
            if token < alone or (kind != b'S' and token < shared):
                return None
            if kind == b'S':
                shared = max(shared, token)
            else:
                alone = token
            value = last if value is None else value
            os.write(self.fd, _RECORD.pack(kind, token, value, alone, shared))
            return value
        finally:
            fcntl.lockf(self.fd, fcntl.LOCK_UN)

    def read(self, token):
        return self._step(b'R', token)

    def share(self, token):
        return self._step(b'S', token)

    def write(self, token, value):
        return self._step(b'W', token, value)


def records(path):
    """[(kind, token, value)] of a fenced store."""
    with open(path, 'rb') as file:
        return [record[:3] for record in
                ((kind.decode(), *rest) for kind, *rest in _RECORD.iter_unpack(file.read()))]
