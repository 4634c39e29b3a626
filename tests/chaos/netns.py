# SPDX-License-Identifier: MIT
"""netns.py - a network of its own: one host per server, and a wire between any two.

Every host is a network namespace with one address. Host 0 is the caller's own, where the mounts
live. A wire can be cut in either direction: the sender's queue gets length 0 and drops every
packet, as a broken switch does. Neither side is told, and connections hang. So servers are cut
from each other while their clients still reach them.

The caller must already live in namespaces that nobody else sees (run does that): the whole
network goes when its processes go.
"""

import os
import subprocess

from harness import until


def _address(host):
    return f'10.0.0.{host if host else 254}'


class Network:
    def __init__(self, servers):
        own = os.readlink('/proc/self/ns/net')
        self.hosts = {0: None}
        for host in range(1, servers + 1):
            # A process that only keeps the namespace alive.
            supervisor = subprocess.Popen(['unshare', '--net', 'sleep', 'infinity'], stdin=subprocess.DEVNULL)
            until(lambda: os.readlink(f'/proc/{supervisor.pid}/ns/net') != own, 'a network namespace')
            self.hosts[host] = supervisor.pid
        for host in self.hosts:
            self._do(host, 'ip', 'link', 'set', 'lo', 'up')
            self._do(host, 'ip', 'address', 'add', _address(host) + '/32', 'dev', 'lo')
        for a in self.hosts:
            for b in self.hosts:
                if a < b:
                    self._wire(a, b)

    def address(self, host):
        return _address(host)

    def prefix(self, host):
        """The words in front of a command that run it on this host; its pid stays the same."""
        pid = self.hosts[host]
        return ['nsenter', f'--net=/proc/{pid}/ns/net', '--'] if pid else []

    def _do(self, host, *args):
        subprocess.run(self.prefix(host) + list(args), check=True)

    def _wire(self, a, b):
        ends = {a: f'w{a}{b}', b: f'w{b}{a}'}
        self._do(b, 'ip', 'link', 'add', ends[b], 'type', 'veth',
                 'peer', 'name', ends[a], 'netns', str(self.hosts[a] or os.getpid()))
        for host in (a, b):
            self._do(host, 'ip', 'link', 'set', ends[host], 'up')
        for host, other in ((a, b), (b, a)):
            self._do(host, 'ip', 'route', 'add', _address(other), 'dev', ends[host],
                     'src', _address(host))

    def cut(self, sender, receiver):
        self._do(sender, 'tc', 'qdisc', 'replace', 'dev', f'w{sender}{receiver}',
                 'root', 'pfifo', 'limit', '0')

    def mend(self, sender, receiver):
        self._do(sender, 'tc', 'qdisc', 'replace', 'dev', f'w{sender}{receiver}',
                 'root', 'pfifo', 'limit', '1000')
