# SPDX-License-Identifier: MIT
"""ensemble.py - three ZooKeeper servers that can be killed, stopped and cut off.

A tick of half a second makes short sessions possible, so that a minute of test
sees many of them end. Each server limits sessions in its own way.
"""

import contextlib
import os
import re
import signal
import subprocess

import rawzk
from harness import check, until, zookeeper

TICK_MS = 500
PORT = 2181
# Limits of session timeouts that a server can have, (minimum, maximum) in ms. From a minimum a mount
# concludes a tick of half as long, and ends if its session is too short for that tick. So no
# minimum is above 4 s, and no maximum below the 5 s that a server must grant to whoever asks
# for them (zklockfs-running(7)).
LIMITS = ((2 * TICK_MS, rawzk.SESSION_MS), (4000, rawzk.SESSION_MS), (2 * TICK_MS, 9000))
_TRUNCATED = re.compile(r'Truncating log to get in sync with the leader 0x([0-9a-f]+)')
_FOLLOWS = re.compile(r'Got zxid 0x([0-9a-f]+) expected')


class Server:
    """One server. Its data outlives kill() and start(). Its limits are its own."""

    def __init__(self, network, number, count, directory):
        self.network, self.number, self.directory = network, number, directory
        self.process = None
        self.observer_port = None      # of a link to it that no fault touches
        os.makedirs(directory + '/data')
        with open(directory + '/data/myid', 'w', encoding='ascii') as file:
            file.write(str(number))
        self.peers = ''.join(f'server.{n}={network.address(n)}:2888:3888\n' for n in range(1, count + 1))
        self.limits = None
        self.limit(LIMITS[(number - 1) % len(LIMITS)])

    def limit(self, limits):
        """From its next start on the server has these limits."""
        self.limits = limits
        with open(self.directory + '/zoo.cfg', 'w', encoding='ascii') as file:
            file.write(f'tickTime={TICK_MS}\ninitLimit=10\nsyncLimit=4\ndataDir={self.directory}/data\n'
                       f'clientPort={PORT}\nclientPortAddress={self.network.address(self.number)}\n'
                       f'minSessionTimeout={limits[0]}\nmaxSessionTimeout={limits[1]}\nmaxClientCnxns=0\n'
                       'autopurge.purgeInterval=1\nautopurge.snapRetainCount=3\n'
                       '4lw.commands.whitelist=*\nadmin.enableServer=false\n'
                       'standaloneEnabled=false\n' + self.peers)

    def start(self):
        with open(self.directory + '/log', 'a', encoding='utf-8') as log:
            # Elections back off to a minute between messages, and wait 5 s for a
            # peer that is stopped, unless told otherwise.
            self.process = subprocess.Popen(
                self.network.prefix(self.number) +
                zookeeper(self.directory + '/zoo.cfg', '-Dzookeeper.cnxTimeout=500',
                          '-Dzookeeper.fastleader.maxNotificationInterval=1000',
                          # A renewal that the proxy keeps must not be too late for its connection.
                          '-Dzookeeper.nio.sessionlessCnxnTimeout=60000'),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def running(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        if self.running():
            self.process.send_signal(signal.SIGCONT)

    def truncated(self):
        """The last transactions of this server's history where the leader of a later epoch has cut
        it off. A leader of the same epoch cuts off proposals only, and proposes them again."""
        found, last = [], None
        with open(self.directory + '/log', encoding='utf-8', errors='replace') as log:
            for line in log:
                cut, follows = _TRUNCATED.search(line), _FOLLOWS.search(line)
                if cut:
                    last = int(cut[1], 16)
                elif follows and last is not None:
                    if int(follows[1], 16) >> 32 > last >> 32:
                        found.append(last)
                    last = None
        return found

    def mode(self):
        """leader, follower, or None if the server does not serve or does not answer."""
        with contextlib.suppress(OSError):
            for line in rawzk.four_letters(self.observer_port, 'srvr', 0.3).splitlines():
                if line.startswith('Mode: '):
                    return line[len('Mode: '):]
        return None


class Stranger:
    """A server of another ensemble."""

    def __init__(self, directory):
        self.address = '127.0.0.1', PORT
        os.makedirs(directory + '/stranger')
        with open(directory + '/stranger/zoo.cfg', 'w', encoding='ascii') as file:
            file.write(f'tickTime={4 * TICK_MS}\ndataDir={directory}/stranger\nclientPort={PORT}\n'
                       f'clientPortAddress={self.address[0]}\nmaxClientCnxns=0\nadmin.enableServer=false\n'
                       '4lw.commands.whitelist=*\n')
        with open(directory + '/stranger/log', 'w', encoding='ascii') as log:
            self.process = subprocess.Popen(zookeeper(directory + '/stranger/zoo.cfg'), stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)


class Ensemble:
    def __init__(self, network, directory, proxy, count=3):
        self.servers = [Server(network, number, count, f'{directory}/server{number}')
                        for number in range(1, count + 1)]
        for server in self.servers:
            link = proxy.link(('observer', server.number), (network.address(server.number), PORT))
            server.observer_port = link.port
            server.start()
        self.wait()

    def wait(self, seconds=60):
        """Wait until all servers serve."""
        until(lambda: sorted(map(str, self.modes())) == ['follower'] * (len(self.servers) - 1) + ['leader'],
              'all servers serve', seconds)

    def modes(self):
        return [server.mode() for server in self.servers]

    def leader(self):
        return next((server for server in self.servers if server.mode() == 'leader'), None)

    def followers(self):
        return [server for server in self.servers if server.mode() == 'follower']

    def addresses(self):
        """Of the servers themselves, without a link."""
        return ','.join(f'{server.network.address(server.number)}:{PORT}' for server in self.servers)

    def client(self):
        """A session that only looks, at a server that serves."""
        for server in self.servers:
            with contextlib.suppress(OSError):
                if server.mode():
                    client = rawzk.Client(server.observer_port)
                    client.conn.settimeout(10)
                    return client
        check(False, 'no server serves')
        return None
