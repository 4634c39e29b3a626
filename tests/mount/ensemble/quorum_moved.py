#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A rolling restart of an ensemble of three real servers, each of which gets a new address: the
quorum is never lost, and a holder keeps its lock and its token."""

import os
import socket
import subprocess
import tempfile
import types

import rawzk
from harness import SLOWNESS, check, check_equal, patiently, run, spawn, until, zookeeper

TICK_MS = 2000


def free_ports(count):
    sockets = [socket.create_server(('127.0.0.1', 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Member:
    """Its place in the quorum stays, its clients' address changes."""

    def __init__(self, case, number, quorum, port):
        self.number, self.quorum, self.port = number, quorum, port
        self.directory = tempfile.mkdtemp(prefix='member', dir=case.directory)
        os.mkdir(self.directory + '/data')
        with open(self.directory + '/data/myid', 'w', encoding='ascii') as file:
            file.write(f'{number}\n')

    def start(self, address):
        self.address = address
        with open(self.directory + '/zoo.cfg', 'w', encoding='ascii') as config:
            config.write(f'tickTime={TICK_MS}\ninitLimit=20\nsyncLimit=10\ndataDir={self.directory}/data\n'
                         f'clientPort={self.port}\nclientPortAddress={address}\nmaxClientCnxns=0\n'
                         f'4lw.commands.whitelist=*\nadmin.enableServer=false\n{self.quorum}')
        with open(self.directory + '/log', 'a', encoding='ascii') as log:
            self.process = spawn(
                zookeeper(self.directory + '/zoo.cfg'), prompt=15, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def serves(self):
        try:
            with socket.create_connection((self.address, self.port), 1) as conn:
                conn.settimeout(1)
                conn.sendall(b'srvr')
                return b'Mode:' in conn.makefile('rb').read()
        except OSError:
            return False

    def stop(self):
        self.process.kill()
        self.process.wait()


def test(case):
    ports = free_ports(7)
    port = ports[6]
    quorum = ''.join(f'server.{i + 1}=127.0.0.1:{ports[2 * i]}:{ports[2 * i + 1]}\n' for i in range(3))
    members = [Member(case, i + 1, quorum, port) for i in range(3)]

    def publish():
        case.hosts(''.join(f'{member.address} zk{member.number}.test\n' for member in members))

    for member in members:
        member.start(f'127.0.2.{member.number}')
    publish()
    until(lambda: all(member.serves() for member in members), 'the ensemble serves', 90 * SLOWNESS)
    server = types.SimpleNamespace(port=port, tick_ms=TICK_MS, session_ms=rawzk.SESSION_MS)
    mount = case.mount(server, session='15s',
                       servers=','.join(f'zk{member.number}.test:{port}' for member in members))
    mount.allow('connection lost|does not answer|session ended|can forget')
    mount.mkdir('build')
    holder = mount.take('build').held()
    token, session = holder.token(), mount.session()

    for member in members:
        if member.number == 2:
            mount.reload()
        # The leader, too: a new one is elected meanwhile, and the lease lasts that long.
        member.stop()
        member.start(f'127.0.2.{member.number + 10}')
        publish()
        until(member.serves, 'it serves again', 60 * SLOWNESS)
        until(lambda member=member: f'{member.address}:{port}' in mount.status()['addresses'],
              'the mount knows where it is', 60)
        patiently(holder.do, 'fsync')    # the ensemble elects: it may be silent for two seconds
    until(lambda: mount.status()['server'].startswith('127.0.2.1'), 'it uses the new addresses')
    mount.ready()
    check_equal((holder.token(), mount.session()), (token, session), 'token and session')
    holder.release()
    check(mount.status()['sessions'] == '1', 'a session was lost')
    mount.unmount()


run(test)
