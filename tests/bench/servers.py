# SPDX-License-Identifier: MIT
"""servers.py - the servers of all peers, each started for this run alone.

All servers listen on 127.0.0.1 of a network namespace of our own, so the usual
ports are free. A place is where data goes: tmpfs, without waiting for the disk, or
a disk, with every write synchronous.
"""

import contextlib
import os
import re
import socket

from processes import BenchError, end, run, start, until

ZOOKEEPER_JARS = '/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar'


class Place:
    """Where servers keep their data, whether they wait for it, and how far away they are."""

    def __init__(self, directory, synchronous, delay_seconds, delay_tool):
        self.directory, self.synchronous = directory, synchronous
        self.delay_seconds, self.delay_tool = delay_seconds, delay_tool     # each way
        self.delays = []
        os.makedirs(directory, exist_ok=True)
        os.chmod(directory, 0o755)

    def path(self, name):
        return os.path.join(self.directory, name)

    def ways(self, ports):
        """The ports by which clients reach these ports."""
        if not self.delay_seconds:
            return ports
        ways = [port + 10000 for port in ports]
        pairs = [str(port) for pair in zip(ways, ports) for port in pair]
        log = self.path(f'delay-{ports[0]}.log')
        self.delays.append(start([self.delay_tool, str(int(self.delay_seconds * 1e6)), *pairs], log))
        until(lambda: os.path.getsize(log) > 0, 'the way with a delay is open')
        return ways

    def end(self):
        for process in self.delays:
            end(process)


# ---- ZooKeeper ----

def four_letters(port, word, timeout=5):
    with socket.create_connection(('127.0.0.1', port), timeout) as conn:
        conn.sendall(word.encode())
        answer = b''
        while data := conn.recv(65536):
            answer += data
        return answer.decode()


class ZooKeeper:
    """One server, or an ensemble of several."""

    def __init__(self, place, count):
        self.ports = [2181 + number for number in range(count)]
        self.processes = []
        # The addresses for clients; a relay may replace them.
        self.way = ','.join(f'127.0.0.1:{port}' for port in place.ways(self.ports))
        members = ''.join(f'server.{n + 1}=127.0.0.1:{2888 + n}:{3888 + n}\n' for n in range(count))
        for number, port in enumerate(self.ports):
            directory = place.path(f'zookeeper{number}')
            os.makedirs(directory + '/data')
            with open(directory + '/data/myid', 'w', encoding='ascii') as file:
                file.write(str(number + 1))
            with open(directory + '/zoo.cfg', 'w', encoding='ascii') as file:
                file.write(f'tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir={directory}/data\n'
                           f'clientPort={port}\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\n'
                           '4lw.commands.whitelist=*\nadmin.enableServer=false\n'
                           + ('standaloneEnabled=false\n' + members if count > 1 else ''))
            self.processes.append(start(
                ['java', '-Xms512m', '-Xmx512m', '-Xshare:auto', '-XX:-UsePerfData',
                 '-Dzookeeper.forceSync=' + ('yes' if place.synchronous else 'no'),
                 '-Dorg.slf4j.simpleLogger.defaultLogLevel=error', '-cp', ZOOKEEPER_JARS,
                 'org.apache.zookeeper.server.quorum.QuorumPeerMain', directory + '/zoo.cfg'],
                directory + '/log'))
        until(lambda: all(self._serves(port) for port in self.ports), 'ZooKeeper serves')

    @staticmethod
    def _serves(port):
        with contextlib.suppress(OSError):
            return 'Mode:' in four_letters(port, 'srvr', 0.5)
        return False

    def metric(self, name):
        return int(re.search(rf'^{name}\t(\d+)', four_letters(self.ports[0], 'mntr'), re.MULTILINE).group(1))

    def connections(self):
        """Session id -> the counters of its connection, of all servers."""
        found = {}
        for port in self.ports:
            for line in four_letters(port, 'cons').splitlines():
                values = dict(re.findall(r'(\w+)=(\w+)', line))
                if 'sid' in values:
                    found[int(values['sid'], 16)] = values
        return found

    def end(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


# ---- zklockfs: a mount is the client of one host ----

class Mount:
    def __init__(self, program, server, directory, host, options=()):
        self.directory = directory
        self.log = directory + '.log'
        self.process = start([program, '-f', '-o', ','.join([f'host={host}', 'tick_time=2s', *options]),
                              server + '/locks', directory], self.log)
        until(self._ready, f'the mount {host}')

    def _ready(self):
        if self.process.poll() is not None:
            with open(self.log, encoding='utf-8', errors='replace') as log:
                raise BenchError('zklockfs has ended: ' + log.read()[-1000:])
        return self.status().get('state') == 'ready'

    def status(self):
        with contextlib.suppress(OSError):
            with open(self.directory + '/.zklockfs/status', encoding='utf-8') as file:
                return dict(line.rstrip('\n').split(': ', 1) for line in file if ': ' in line)
        return {}

    def _daemon(self):
        """The daemon's pid. Its parent, the supervisor, does nothing."""
        with open(f'/proc/{self.process.pid}/task/{self.process.pid}/children', encoding='ascii') as file:
            return file.read().split()[0]

    def cpu_seconds(self):
        with open(f'/proc/{self._daemon()}/stat', encoding='ascii') as file:
            values = file.read().rsplit(')', 1)[1].split()
        return (int(values[11]) + int(values[12])) / os.sysconf('SC_CLK_TCK')

    def _process_status(self, key):
        with open(f'/proc/{self._daemon()}/status', encoding='ascii') as lines:
            return int(next(line for line in lines if line.startswith(key + ':')).split()[1])

    def memory_kib(self):
        return self._process_status('VmRSS')

    def threads(self):
        return self._process_status('Threads')

    def end(self):
        run(['umount', '-l', self.directory])
        end(self.process)
