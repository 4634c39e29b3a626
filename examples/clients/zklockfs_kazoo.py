# SPDX-License-Identifier: MIT
"""zklockfs_kazoo.py - kazoo's lock in the same queue as zklockfs, Curator, go-zookeeper and the
recipes of ZooKeeper. kazoo's own locks use names for which none of these waits.

    with Exclusive(client, '/locks/build', 'web1 4242'):    # client: a KazooClient
        ...

Arguments and methods are those of kazoo.recipe.lock.Lock. The second argument is the lock's path on
the ensemble, the third is shown in `queue/` and `holder`. All of your programs must use these
classes: kazoo's own would not wait for them.

zklockfs waits for Exclusive and Shared, and they wait for zklockfs. Shared ones hold together with
the file `shared` and with Shared of ZklockfsDriver.java. They do not wait for zk-ruby.
"""

import re

from kazoo.recipe.lock import Lock


class Exclusive(Lock):
    _NODE_NAME = '-lock-'
    _EXCLUDE_NAMES = ['-']                  # everybody's names end so, before the number


class Shared(Lock):
    _NODE_NAME = '-rlock-'
    _EXCLUDE_NAMES = ['(?<!-rlock)-']       # all but shared ones

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # Before 2.9.0 kazoo finds its place only among names that it waits for.
        patterns = '|'.join([*self._exclude_names, re.escape(self.prefix)])
        self._contenders_re = re.compile(rf'(?:{patterns})(-?\d{{10}})$')
