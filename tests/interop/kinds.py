#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""kinds.py - kazoo's locks of several kinds, one client for all: kinds.py - SERVERS ROOT

The kind is the first word of the lock's name: `zklockfs-3` is a lock that is taken by the classes of
examples/clients/. The commands are those of tests/bench/workers/actor.h. Debian's Python, for Debian's
kazoo.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE + '/../bench/workers', HERE + '/../../examples/clients']
sys.dont_write_bytecode = True

import kazoo_locks
import zklockfs_kazoo
from kazoo.recipe.lock import Lock, ReadLock, WriteLock


class Reader(zklockfs_kazoo.Shared, ReadLock):
    """As from 2.9.0 on: it does not wait for later writers (kazoo issue 649)."""
    _NODE_NAME, _EXCLUDE_NAMES = ReadLock._NODE_NAME, ReadLock._EXCLUDE_NAMES


class CuratorWriter(Lock):
    _NODE_NAME, _EXCLUDE_NAMES = '__WRIT__', ['__WRIT__', '__READ__']


class CuratorReader(zklockfs_kazoo.Shared):
    _NODE_NAME, _EXCLUDE_NAMES = '__READ__', ['__WRIT__']


KINDS = {
    'zklockfs': (zklockfs_kazoo.Exclusive, zklockfs_kazoo.Shared),
    'lock': (Lock, None),
    'rw': (WriteLock, Reader),
    'curatorrw': (CuratorWriter, CuratorReader),
}


class Kinds(kazoo_locks.Actor):
    def lock(self, name, mode):
        kind = KINDS[name.split('-')[0]][mode == 'shared']
        return kind(self.client, self.root + name, 'kazoo')


kazoo_locks.guarded(kazoo_locks.main, Kinds('', *sys.argv[1:])).join()
