# SPDX-License-Identifier: MIT
"""ensemble.py - three ZooKeeper servers that can be killed, stopped and cut off.

A tick of half a second makes sessions of 4 s possible, so that a minute of test
sees many of them end.
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
_TRUNCATED = re.compile(r'Truncating log to get in sync with the leader 0x([0-9a-f]+)')
_FOLLOWS = re.compile(r'Got zxid 0x([0-9a-f]+) expected')


class Server:
    """One server. Its data outlives kill() and start()."""

    def __init__(self, network, number, count, directory):
        self.network, self.number, self.directory = network, number, directory
        self.process = None
        self.observer_port = None      # of a link to it that no fault touches
        os.makedirs(directory + '/data')
        with open(directory + '/data/myid', 'w', encoding='ascii') as file:
            file.write(str(number))
        peers = ''.join(f'server.{n}={network.address(n)}:2888:3888\n' for n in range(1, count + 1))
        with open(directory + '/zoo.cfg', 'w', encoding='ascii') as file:
            file.write(f'tickTime={TICK_MS}\ninitLimit=10\nsyncLimit=4\ndataDir={directory}/data\n'
                       f'clientPort={PORT}\nclientPortAddress={network.address(number)}\n'
                       f'maxSessionTimeout={rawzk.SESSION_MS}\nmaxClientCnxns=0\n'
                       'autopurge.purgeInterval=1\nautopurge.snapRetainCount=3\n'
                       '4lw.commands.whitelist=*\nadmin.enableServer=false\n'
                       'standaloneEnabled=false\n' + peers)

    def start(self):
        with open(self.directory + '/log', 'a', encoding='utf-8') as log:
            # Elections back off to a minute between messages, and wait 5 s for a
            # peer that is stopped, unless told otherwise.
            self.process = subprocess.Popen(
                self.network.prefix(self.number) +
                zookeeper(self.directory + '/zoo.cfg', '-Dzookeeper.cnxTimeout=500',
                          '-Dzookeeper.fastleader.maxNotificationInterval=1000'),
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
