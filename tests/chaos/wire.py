# SPDX-License-Identifier: MIT
"""wire.py - as much of ZooKeeper's protocol as the proxy has to understand.

Everything is a frame: four bytes of length, then that many bytes. The first
frame of either direction is the handshake; after it a request begins with its
xid and type, an answer with the xid of its request. Negative xids are pings,
watch events and the like, which cannot be matched with single requests.
"""

import struct

_LENGTH = struct.Struct('>i')
_REQUEST = struct.Struct('>ii')
_FRAME_MAX = 64 << 20

# The handshake of a client: version, last zxid, timeout in ms, session. A renewal has a session.
_HANDSHAKE = struct.Struct('>iqiq')

# The requests that faults aim at. Both creates are one kind; most `set` are heartbeats.
KINDS = {1: 'create', 15: 'create', 2: 'delete', 14: 'multi', 5: 'set'}


class Splitter:
    """Cuts a stream into whole frames, their lengths included."""

    def __init__(self):
        self.rest = b''

    def feed(self, data):
        self.rest += data
        frames, at = [], 0
        while len(self.rest) - at >= 4:
            length = _LENGTH.unpack_from(self.rest, at)[0]
            if not 0 <= length <= _FRAME_MAX:
                # A four-letter word, or garbage: pass it on as it is.
                frames.append(self.rest[at:])
                at = len(self.rest)
                break
            if len(self.rest) - at < 4 + length:
                break
            frames.append(self.rest[at:at + 4 + length])
            at += 4 + length
        self.rest = self.rest[at:]
        return frames


def request(frame):
    """(xid, kind) of a request; the kind is None if no fault aims at it."""
    if len(frame) < 12:
        return None, None
    xid, number = _REQUEST.unpack_from(frame, 4)
    return xid, KINDS.get(number)


def is_renewal(frame):
    """Whether this first frame of a client takes a session to the server."""
    return len(frame) >= 4 + _HANDSHAKE.size and _HANDSHAKE.unpack_from(frame, 4)[3] != 0


def lowered(frame, timeout_ms):
    """The same handshake, which asks for no more than this timeout."""
    version, zxid, timeout, session = _HANDSHAKE.unpack_from(frame, 4)
    return (frame[:4] + _HANDSHAKE.pack(version, zxid, min(timeout, timeout_ms), session) +
            frame[4 + _HANDSHAKE.size:])


def answer_xid(frame):
    return _LENGTH.unpack_from(frame, 4)[0] if len(frame) >= 8 else None
