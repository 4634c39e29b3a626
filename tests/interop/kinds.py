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

KINDS = {
    'zklockfs': (zklockfs_kazoo.Exclusive, zklockfs_kazoo.Shared),
}


class Kinds(kazoo_locks.Actor):
    def lock(self, name, mode):
        kind = KINDS[name.split('-')[0]][mode == 'shared']
        return kind(self.client, self.root + name, 'kazoo')


kazoo_locks.guarded(kazoo_locks.main, Kinds('', *sys.argv[1:])).join()
