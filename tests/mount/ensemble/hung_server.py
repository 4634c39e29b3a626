#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A server that takes requests and answers nothing. A waiting request is nudged with a small
read, then the mount goes to the next server (rule 4), and the holder is not disturbed. A name service that is away disturbs nobody either."""

import contextlib
import socket
import struct
import threading

from harness import Stopwatch, check, command, run, until

EXISTS = 3


class Way:
    """A path to the server that can keep the answers back. It counts the reads of `/`."""

    def __init__(self, port):
        self.port = port
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.open = threading.Event()
        self.open.set()
        self.nudges = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def address(self):
        return f'127.0.0.1:{self.listener.getsockname()[1]}'

    def _accept(self):
        while True:
            near = self.listener.accept()[0]
            far = socket.create_connection(('127.0.0.1', self.port))
            for source, target, forth in ((near, far, True), (far, near, False)):
                threading.Thread(target=self._copy, args=(source, target, forth), daemon=True).start()

    def _copy(self, source, target, forth):
        frames = source.makefile('rb')
        try:
            while True:
                size = frames.read(4)
                if size.isalpha():   # a four-letter word, or its answer
                    while size:
                        target.sendall(size)
                        size = frames.read1()
                    break
                body = frames.read(struct.unpack('>i', size)[0])
                if forth and len(body) == 14 and struct.unpack('>i', body[4:8])[0] == EXISTS:
                    self.nudges += 1
                if not forth:
                    self.open.wait()
                target.sendall(size + body)
        except (OSError, struct.error):
            pass
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)


def test(case):
    server = case.server()
    ways = [Way(server.port), Way(server.port)]
    mount = case.mount(server, servers=','.join(way.address() for way in ways))
    mount.allow('does not answer|connection lost|resumed')
    mount.mkdir('build')
    holder = mount.take('build').held()
    session = mount.session()
    used, = (way for way in ways if way.address() == mount.status()['server'])

    watch = Stopwatch()
    used.open.clear()
    until(lambda: used.nudges > 0, 'what is not answered is nudged')
    until(lambda: mount.status()['server'] not in (used.address(), '-'), 'the other way is used')
    watch.check(0, 12, 'to the other server, within the lease')
    mount.ready()
    check(mount.session() == session, 'the same session')
    holder.do('fsync')
    used.open.set()

    # Servers by name, and the name service goes away: its answer is remembered.
    case.hosts('127.0.0.1 zookeeper-of-the-test\n')
    named = case.mount(server, 'n', servers=f'zookeeper-of-the-test:{server.port}')
    named.allow('connection lost|resumed')
    case.hosts('')
    waiter = named.take('build')
    until(lambda: len(server.entries('build')) == 2, 'the waiter queues')
    server.stop()
    server.start()
    named.ready()
    holder.release()
    waiter.held()
    waiter.release()
    check(command(['getent', 'hosts', 'zookeeper-of-the-test'])[0] != 0, 'the name is unknown now')


run(test)
