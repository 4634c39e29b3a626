# SPDX-License-Identifier: MIT
"""peers.py - who is measured, and how a worker of each is started.

A peer is opened once for a run. host(n) is then one client machine of it: for
zklockfs a mount, for the others nothing, for each of their processes is a client of
its own. worker() is a process on it that takes locks.
"""

import os

from processes import BenchError, Worker
from servers import Mount

HERE = os.path.dirname(os.path.abspath(__file__))
JAVA = '/usr/share/java/'
JARS = ('curator-recipes', 'curator-framework', 'curator-client', 'zookeeper', 'guava', 'slf4j-api', 'slf4j-nop')


class Host:
    """A client machine without anything that its processes share."""

    def __init__(self, peer, args):
        self.peer, self.args = peer, args

    def worker(self):
        return self.peer.start(self.args)


class MountHost:
    def __init__(self, peer, mount):
        self.peer, self.mount = peer, mount

    def worker(self):
        return self.peer.start([self.peer.bench.tool('files'), 'doors', self.mount.directory])


class Peer:
    """name: as on the command line; title: as in the table; server: what it needs."""

    name = title = server = None
    shared = False             # has a shared mode
    one_client = False         # its threads share one client, as a mount's do
    excludes = True            # is a lock at all
    note = ''

    def __init__(self, bench):
        self.bench = bench
        self.workers = []

    def args(self):
        raise NotImplementedError

    def host(self, number):
        del number
        return Host(self, self.args())

    def start(self, args):
        worker = Worker(self.title, args, self.bench.path(f'{self.name}.log'))
        self.workers.append(worker)
        return worker

    def close(self):
        for worker in self.workers:
            worker.quit()
        self.workers.clear()


class Zklockfs(Peer):
    name, title, server = 'zklockfs', 'zklockfs', 'zookeeper'
    shared = one_client = True
    options = ()

    def __init__(self, bench):
        super().__init__(bench)
        self.mounts = []

    def host(self, number):
        while len(self.mounts) <= number:
            host = f'host{len(self.mounts)}'
            self.mounts.append(Mount(self.bench.zklockfs, self.bench.zookeeper.address,
                                     self.bench.path(f'{self.name}-{host}'), host, self.options))
        return MountHost(self, self.mounts[number])

    def close(self):
        super().close()
        for mount in self.mounts:
            mount.end()
        self.mounts.clear()


class Curator(Peer):
    name, title, server = 'curator', 'Curator InterProcessMutex', 'zookeeper'
    one_client = True
    kind = 'mutex'

    def args(self):
        classpath = ':'.join([self.bench.classes()] + [JAVA + jar + '.jar' for jar in JARS])
        return ['java', '-Xms256m', '-Xmx512m', '-Xshare:auto', '-XX:-UsePerfData', '-cp', classpath,
                'Curator', self.kind, self.bench.zookeeper.address]


class CuratorReadWrite(Curator):
    name, title = 'curator-rw', 'Curator InterProcessReadWriteLock'
    kind = 'readwrite'
    shared = True


class Kazoo(Peer):
    name, title, server = 'kazoo', 'kazoo Lock', 'zookeeper'
    one_client = True
    kind = 'lock'

    def args(self):
        return ['/usr/bin/python3', HERE + '/workers/kazoo_locks.py', self.kind, self.bench.zookeeper.address]


class CRecipe(Peer):
    name, title, server = 'recipe', 'recipe in C', 'zookeeper'
    kind = 'recipe'
    note = 'create, list, delete; one session per thread'

    def args(self):
        return [self.bench.tool('zookeeper'), self.kind, self.bench.zookeeper.address]


class Create(CRecipe):
    name, title = 'create', 'bare create, delete in C'
    kind = 'create'
    excludes = False
    note = 'no lock: the two round trips alone'


class Herd(CRecipe):
    name, title = 'herd', 'herd lock in C'
    kind = 'herd'
    note = 'one node that everybody watches'


class Flock(Peer):
    name, title = 'flock', 'flock(2), local file'
    note = 'one host alone: the floor'

    def args(self):
        directory = self.bench.path('flock')
        os.makedirs(directory, exist_ok=True)
        return [self.bench.tool('files'), 'flock', directory]


PEERS = (Zklockfs, Curator, CuratorReadWrite, Kazoo, CRecipe, Create, Herd, Flock)


def by_name(names):
    known = {peer.name: peer for peer in PEERS}
    for name in names:
        if name not in known:
            raise BenchError(f'no peer {name}: {", ".join(known)}')
    return [known[name] for name in names]
