# SPDX-License-Identifier: MIT
"""proxy.py - the way from a mount to a server, and what can go wrong on it.

Each (mount, server) pair is a Link with a port of its own, so that a fault can
hit one mount, one server or one pair. A thread of its own serves all of them.

Three kinds of faults:

  weather   lasts for a time: hold() keeps back frames up, down or both ways, as a
            network does that loses packets (TCP sends them again later, in order,
            and all at once); delay() makes every frame late; refuse() turns new
            connections away; lead() takes new connections to another address.
  shots     hit one request of a given kind: the connection is cut before the request
            is forwarded, in the middle of it, after it was applied but before its
            answer, or in the middle of the answer.
  traps     meet one renewal of a mount, on whichever of its links it comes: class Trap.

A fault is counted when it has hit something, not when it was asked for.
"""

import asyncio
import collections
import contextlib
import random
import socket
import struct
import threading
import time

import wire

SHOTS = ('cut-before-request', 'half-request', 'cut-before-answer', 'half-answer')
DIRECTIONS = ('up', 'down', 'both')
_BEFORE = ('cut-before-request', 'half-request')
LOWERED_MS = 5000  # a trap lowers the timeout of a renewal to what each server must grant
_LOOK = 0.02       # how soon a gate that was opened early is noticed


class Gate:
    """The state of one direction of a link: open, closed for a time, or slow for a time."""

    def __init__(self):
        self.closed_until = 0.0
        self.delay_until = 0.0
        self.delay = 0.0

    def due(self, now):
        return now + (self.delay if now < self.delay_until else 0)

    def is_closed(self):
        return time.monotonic() < self.closed_until


class Link:
    def __init__(self, proxy, name, address):
        self.proxy, self.name, self.address = proxy, name, address
        self.up, self.down = Gate(), Gate()
        self.shots = []                # [shot, kinds, deadline]
        self.trap = None
        self.refuse_until = 0.0
        self.elsewhere, self.elsewhere_until = None, 0.0
        self.connections = set()
        self.port = None

    def gates(self, direction):
        return {'up': (self.up,), 'down': (self.down,), 'both': (self.up, self.down)}[direction]

    # Called by the thread of the faults: single assignments, which need no lock.

    def hold(self, direction, seconds):
        for gate in self.gates(direction):
            gate.closed_until = max(gate.closed_until, time.monotonic() + seconds)

    def delay(self, direction, delay, seconds):
        for gate in self.gates(direction):
            gate.delay, gate.delay_until = delay, time.monotonic() + seconds

    def refuse(self, seconds):
        self.refuse_until = time.monotonic() + seconds

    def lead(self, address, seconds):
        self.elsewhere, self.elsewhere_until = address, time.monotonic() + seconds

    def shoot(self, shot, kinds, seconds):
        self.shots.append((shot, kinds, time.monotonic() + seconds))

    def reset(self):
        self.proxy.run(self._reset())

    def clear(self):
        self.shots, self.trap = [], None
        self.refuse_until = self.elsewhere_until = 0.0
        for gate in self.gates('both'):
            gate.closed_until = gate.delay_until = 0.0

    async def _reset(self):
        for connection in list(self.connections):
            self.proxy.fired['reset'] += 1
            connection.reset()

    # Called by the proxy's own thread.

    def take_shot(self, kind):
        now = time.monotonic()
        for armed in list(self.shots):
            shot, kinds, deadline = armed
            if now < deadline and kind not in kinds:
                continue
            with contextlib.suppress(ValueError):   # cleared meanwhile
                self.shots.remove(armed)
            if now < deadline:
                self.proxy.fired[f'{shot}: {kind}'] += 1
                return shot
        return None


class Trap:
    """Meets the next renewal of a mount. The renewal is passed on at once, then its answer is lost and
    the mount's network is gone for `cut` seconds. Without `cut` the renewal is kept: its server
    carries it out after deliver(), also if its sender has given it up. `lower`: the timeout
    that it asks for is lowered, as a server with a limit of its own does."""

    def __init__(self, links, cut=None, lower=False):
        self.links, self.cut, self.lower = links, cut, lower
        self.caught, self.followed = threading.Event(), threading.Event()
        self.kept = True
        for link in links:
            link.trap = self

    def remove(self):
        for link in self.links:
            link.trap = None
        self.deliver()

    def deliver(self):
        self.kept = False

    async def meet(self, connection, frame):
        """What of this renewal is passed on."""
        if self.caught.is_set():
            self.followed.set()        # by another one, which is left alone
            return frame
        fired, how = connection.link.proxy.fired, ', lowered' if self.lower else ''
        if self.lower:
            frame = wire.lowered(frame, LOWERED_MS)
        if self.cut is not None:
            connection.is_mute = True
            for link in self.links:
                link.hold('both', self.cut)
            fired[f'renewal without an answer{how}'] += 1
            self.caught.set()
            return frame
        connection.link.connections.discard(connection)    # no reset meets it
        self.caught.set()
        while self.kept:
            await asyncio.sleep(_LOOK)
        fired[f'renewal delivered late{how}'] += 1
        return frame


class Connection:
    """One connection through a link: two directions, each a reader and a writer
    with a queue between them, so that a delay does not slow the stream down."""

    def __init__(self, link, near_reader, near_writer):
        self.link = link
        self.near_reader, self.near_writer = near_reader, near_writer
        self.far_reader = self.far_writer = None
        self.targets = {}              # xid -> shot that waits for this answer
        self.up_started = self.down_started = False
        self.is_mute = False           # no answer comes back

    async def run(self):
        address = self.link.address
        if time.monotonic() < self.link.elsewhere_until:
            address = self.link.elsewhere
            self.link.proxy.fired['astray'] += 1
        try:
            self.far_reader, self.far_writer = await asyncio.wait_for(asyncio.open_connection(*address), 5)
        except (OSError, asyncio.TimeoutError):
            self.near_writer.transport.abort()
            return
        self.link.connections.add(self)
        tasks = []
        for reader, writer, gate, inspect in (
                (self.near_reader, self.far_writer, self.link.up, self._request),
                (self.far_reader, self.near_writer, self.link.down, self._answer)):
            queue = asyncio.Queue()
            tasks.append(asyncio.ensure_future(self._read(reader, queue, gate)))
            tasks.append(asyncio.ensure_future(self._write(queue, writer, gate, inspect)))
        # A reader that ends has put its end into the queue; the writer ends after it.
        writers = {tasks[1], tasks[3]}
        try:
            await asyncio.wait(writers, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.link.connections.discard(self)
            for writer in (self.near_writer, self.far_writer):
                writer.close()

    async def _read(self, reader, queue, gate):
        splitter = wire.Splitter()
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                due = gate.due(time.monotonic())
                for frame in splitter.feed(data):
                    queue.put_nowait((due, frame))
        queue.put_nowait((gate.due(time.monotonic()), None))

    async def _write(self, queue, writer, gate, inspect):
        with contextlib.suppress(OSError):
            while True:
                due, frame = await queue.get()
                if (wait := due - time.monotonic()) > 0:
                    self.link.proxy.late += 1
                    await asyncio.sleep(wait)
                if gate.is_closed():
                    self.link.proxy.held += 1
                while gate.is_closed():
                    await asyncio.sleep(_LOOK)
                if frame is None:
                    return
                part = await inspect(frame)
                writer.write(part)
                await writer.drain()
                if 0 < len(part) < len(frame):
                    return

    # Both return what is passed on: all, nothing, or half a frame, after which they cut; or they cut first.

    async def _request(self, frame):
        if not self.up_started:
            self.up_started = True
            trap = self.link.trap if wire.is_renewal(frame) else None
            return await trap.meet(self, frame) if trap else frame
        xid, kind = wire.request(frame)
        shot = self.link.take_shot(kind) if kind else None
        if shot == 'cut-before-request':
            self._cut()
        if shot and shot not in _BEFORE:
            self.targets[xid] = shot
        return frame[:len(frame) // 2] if shot == 'half-request' else frame

    async def _answer(self, frame):
        if self.is_mute:
            return b''
        if not self.down_started:
            self.down_started = True
            return frame
        shot = self.targets.pop(wire.answer_xid(frame), None)
        if shot == 'cut-before-answer':
            self._cut()
        return frame[:len(frame) // 2] if shot == 'half-answer' else frame

    def _cut(self):
        if self.link.proxy.random.random() < 0.5:
            self.reset()
        raise ConnectionAbortedError

    def reset(self):
        for writer in (self.near_writer, self.far_writer):
            conn = writer.get_extra_info('socket')
            with contextlib.suppress(OSError):
                conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
            writer.transport.abort()


class Proxy:
    def __init__(self, seed=0):
        self.fired = collections.Counter()
        self.held = self.late = 0      # frames that met a closed or a slow gate
        self.random = random.Random(seed)
        self.links = {}
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    def link(self, name, address, port=0):
        """A new link, which is found under `name`."""
        link = self.links[name] = Link(self, name, address)
        link.port = self.run(self._listen(link, port))
        return link

    async def _listen(self, link, port):
        async def accept(reader, writer):
            if time.monotonic() < link.refuse_until:
                self.fired['refuse'] += 1
                writer.transport.abort()
                return
            await Connection(link, reader, writer).run()
        server = await asyncio.start_server(accept, '127.0.0.1', port)
        return server.sockets[0].getsockname()[1]

    def clear(self):
        for link in self.links.values():
            link.clear()
