#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A start that fails says for each server what it met, and for each name that it has no address; on
a terminal it says so while it still waits. A mount that has lost contact says it in its status and
in the log. Nothing is said of it when contact is back."""

import contextlib
import os
import socket
import threading
import time

from harness import ZKLOCKFS, check, check_equal, command, run, spawn, until

NO_QUORUM = b'This ZooKeeper instance is not currently serving requests\n'


class Stranger:
    """Something that listens, and is no server of ours."""

    def __init__(self, case, serve):
        self.socket = socket.create_server(('127.0.0.1', 0))
        self.address = f'127.0.0.1:{self.socket.getsockname()[1]}'
        self.serve = serve
        threading.Thread(target=self._run, daemon=True).start()
        case.cleanups.callback(self.socket.close)

    def _run(self):
        with contextlib.suppress(OSError):
            while True:
                conn = self.socket.accept()[0]
                threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, conn):
        with conn, contextlib.suppress(OSError):
            self.serve(conn)


def hangs_up(_):
    pass


def hangs_up_when_asked(conn):
    conn.recv(4)


def alerts(conn):
    conn.recv(4)
    conn.sendall(b'\x15\x03\x03\x00\x02\x02\x0a')


def is_ssh(conn):
    conn.sendall(b'SSH-2.0-OpenSSH_9.2\r\n')
    conn.recv(4096)


def has_no_quorum(conn):
    if conn.recv(4) == b'srvr':
        conn.sendall(NO_QUORUM)


def is_silent(conn):
    while conn.recv(4096):
        pass


def never_ends(conn):
    while True:
        conn.sendall(b'x')
        time.sleep(0.1)     # it is as slow as that


KINDS = (
    (hangs_up, 'closes the connection: is it a port for TLS (zklockfs-tls(7)), or are there too many connections'),
    (hangs_up_when_asked, 'closes the connection: is it a port for TLS (zklockfs-tls(7)), or are there too many'),
    (alerts, 'is a port for TLS, see zklockfs-tls(7)'),
    (is_ssh, 'no ZooKeeper server answers there'),
    (has_no_quorum, 'does not serve now: too few servers of the ensemble serve (no quorum)'),
    (never_ends, 'no ZooKeeper server answers there'),
    (is_silent, 'takes the connection and does not answer'),
)


def a_start_that_fails(case):
    strangers = [Stranger(case, serve) for serve, _ in KINDS]
    words = {stranger.address: word for stranger, (_, word) in zip(strangers, KINDS)}
    words['127.0.0.1:1'] = 'Connection refused'
    point = case.mount_point()
    status, _, err = command([ZKLOCKFS, '-o', 'connect_timeout=3s', ','.join([*words, 'nowhere.test']), point])
    check_equal((status, err.count('no ZooKeeper server answered at ')), (32, 1), f'status, and lines like {err!r}')
    for address, word in words.items():
        check(f'{address}: {word}' in err, f'{address}: {word!r} is not in {err!r}')
    check('nowhere.test: Name or service not known' in err, f'the name that has no address: {err!r}')


def on_a_terminal(case):
    point = case.mount_point()
    ours, theirs = os.openpty()
    process = spawn([ZKLOCKFS, '-o', 'connect_timeout=1h', '127.0.0.1:1', point], stderr=theirs)
    os.close(theirs)
    said = b''
    while b'127.0.0.1:1: Connection refused' not in said:
        said += os.read(ours, 4096)
    check(b'no session yet, waiting ' in said, f'it says {said!r}')
    check(process.poll() is None, 'it goes on waiting')
    for pid in case.daemons():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 15)
    process.wait()
    os.close(ours)
    until(lambda: not case.daemons(), 'the daemon ends')


def an_outage(case):
    server = case.server()
    mount = case.mount(server, session='6s')
    mount.allow('connection lost|no contact|session ended')
    check_equal(mount.status()['servers_tried'], '-', 'nothing is wrong')
    server.stop()
    refused = f'127.0.0.1:{server.port}: Connection refused'
    until(lambda: mount.status()['servers_tried'] == refused, 'the status says it')
    mount.said(f'until contact is back: {refused}')
    server.start()
    until(lambda: mount.status()['state'] == 'ready', 'contact is back', 40)
    check_equal(mount.status()['servers_tried'], '-', 'nothing is wrong')


def test(case):
    case.hosts('')
    a_start_that_fails(case)
    on_a_terminal(case)
    an_outage(case)


run(test)
