# SPDX-License-Identifier: MIT
"""peers.py - the peers that are measured, and how a worker of each is started.

A peer is opened once for a run. host(n) is then one client machine of it: for
zklockfs a mount, for the others nothing, because each of their processes is a client
of its own. worker() is a process on this machine that takes locks.
"""

import os
import tempfile

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
        return self.peer.start([self.peer.bench.tool('files'), 'open', self.mount.directory])


class Peer:
    """name: as on the command line; title: as in the table; server: the kind that it needs."""

    name = title = server = None
    shared = False             # has a shared mode
    one_client = False         # its threads share one client, as a mount's do
    excludes = True            # it is a lock
    queues = True              # a waiter has an entry, and waiters are served in order
    settle_seconds = 0.04      # much more than a waiter and the holder need to come to rest
    dead_seconds = 0.0         # how long a lock outlives its process, as configured here
    dead_note = ''             # the same by its documentation
    note = ''

    def __init__(self, bench):
        self.bench = bench
        self.workers = []

    def args(self):
        raise NotImplementedError

    def settle(self):
        """Seconds, with time for ten round trips to servers that are far away."""
        return self.settle_seconds + 20 * self.bench.place.delay_seconds

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
    options = ('noprotect',)
    program = property(lambda self: self.bench.zklockfs)

    def __init__(self, bench):
        super().__init__(bench)
        self.mounts = []

    def host(self, number):
        while len(self.mounts) <= number:
            host = f'host{len(self.mounts)}'
            self.mounts.append(Mount(self.program, self.bench.zookeeper.way,
                                     tempfile.mkdtemp(prefix=f'{self.name}-{host}-', dir=self.bench.directory),
                                     host, self.options))
        return MountHost(self, self.mounts[number])

    def close(self):
        super().close()
        for mount in self.mounts:
            mount.end()
        self.mounts.clear()


class Before(Zklockfs):
    """Another build of zklockfs, ZKLOCKFS_BEFORE: what has a change cost? ZKLOCKFS_BEFORE_OPTIONS
    are its own, if it does not know those of this one."""
    options = tuple(os.environ.get('ZKLOCKFS_BEFORE_OPTIONS', 'noprotect').split())
    name, title = 'before', 'zklockfs, another build'
    program = property(lambda self: os.environ['ZKLOCKFS_BEFORE'])


class NoReuse(Zklockfs):
    """Each take makes an entry of its own, also the next one of the same process."""
    name, title = 'noreuse', 'zklockfs -o noreuse'
    options = ('noprotect', 'noreuse')


class Curator(Peer):
    name, title, server = 'curator', 'Curator InterProcessMutex', 'zookeeper'
    one_client = True
    dead_seconds, dead_note = 15.0, 'session timeout, 60 s unless set'
    kind = 'mutex'

    def args(self):
        classpath = ':'.join([self.bench.classes()] + [JAVA + jar + '.jar' for jar in JARS])
        return ['java', '-Xms256m', '-Xmx512m', '-Xshare:auto', '-XX:-UsePerfData', '-cp', classpath,
                'Curator', self.kind, self.bench.zookeeper.way]


class CuratorReadWrite(Curator):
    name, title = 'curator-rw', 'Curator InterProcessReadWriteLock'
    kind = 'readwrite'
    shared = True


class Kazoo(Peer):
    name, title, server = 'kazoo', 'kazoo Lock', 'zookeeper'
    one_client = True
    dead_seconds, dead_note = 15.0, 'session timeout, 10 s unless set'
    kind = 'lock'

    def args(self):
        return ['/usr/bin/python3', HERE + '/workers/kazoo_locks.py', self.kind, self.bench.zookeeper.way]


class KazooReadWrite(Kazoo):
    name, title = 'kazoo-rw', 'kazoo ReadLock, WriteLock'
    kind = 'readwrite'
    shared = True


class GoZooKeeper(Peer):
    name, title, server = 'go-zookeeper', 'go-zookeeper Lock', 'zookeeper'
    one_client = True
    dead_seconds, dead_note = 15.0, 'session timeout, as its caller sets it'

    def args(self):
        return [self.bench.go_tool('gozk'), self.bench.zookeeper.way]


class CRecipe(Peer):
    name, title, server = 'recipe', 'recipe in C', 'zookeeper'
    dead_seconds, dead_note = 15.0, 'session timeout, as its caller sets it'
    kind = 'recipe'
    note = 'create, list, delete; one session per thread'

    def args(self):
        return [self.bench.tool('zookeeper'), self.kind, self.bench.zookeeper.way]


class Create(CRecipe):
    name, title = 'create', 'bare create, delete in C'
    kind = 'create'
    excludes = False
    note = 'no lock: the two round trips alone'


class Herd(CRecipe):
    name, title = 'herd', 'herd lock in C'
    kind = 'herd'
    queues = False
    note = 'one node that everybody watches'


class Etcd(Peer):
    name, title, server = 'etcd', 'etcd concurrency.Mutex', 'etcd'
    dead_seconds, dead_note = 10.0, 'TTL of the lease, 60 s unless set'
    note = 'one lease per thread'
    # Its servers look at a new watch ten times a second.
    settle_seconds = 0.15

    def args(self):
        return [self.bench.go_tool('etcd'), self.bench.server('etcd').address]


class Redis(Peer):
    name, title, server = 'redis', 'Redis SET NX PX', 'redis'
    queues = False
    dead_seconds, dead_note = 10.0, 'TTL, as its caller sets it'
    note = 'tried again every millisecond; no queue'

    def args(self):
        return [self.bench.tool('redis'), '127.0.0.1', str(self.bench.server('redis').port)]


class Postgres(Peer):
    name, title, server = 'postgres', 'PostgreSQL unique row', 'postgres'
    note = 'the inserting transaction stays open'

    def args(self):
        return [self.bench.tool('postgres'), self.bench.server('postgres').conninfo]


class Flock(Peer):
    name, title = 'flock', 'flock(2), local file'
    note = 'one host alone: the floor'

    def args(self):
        directory = self.bench.path('flock')
        os.makedirs(directory, exist_ok=True)
        return [self.bench.tool('files'), 'flock', directory]


PEERS = (Zklockfs, Before, NoReuse, Curator, CuratorReadWrite, Kazoo, KazooReadWrite, GoZooKeeper, CRecipe, Create, Herd,
         Etcd, Redis, Postgres, Flock)
# The peers on storage and ensembles other than the first.
EVERYWHERE = ('zklockfs', 'noreuse', 'curator', 'kazoo', 'recipe', 'create', 'etcd', 'redis', 'postgres')
# The peers where the servers are far away.
FAR = ('zklockfs', 'noreuse', 'curator', 'kazoo', 'go-zookeeper', 'recipe', 'etcd', 'redis', 'postgres')
# --quick measures these and no others.
MAIN = ('zklockfs', 'noreuse', 'curator', 'curator-rw', 'kazoo', 'go-zookeeper', 'recipe', 'create', 'flock')


def by_name(names):
    known = {peer.name: peer for peer in PEERS}
    for name in names:
        if name not in known:
            raise BenchError(f'no peer {name}: {", ".join(known)}')
    return [known[name] for name in names]
