# SPDX-License-Identifier: MIT
"""by_logic.py - clients that no package of Debian has, by their logic: ZooKeeper's recipe in C, and
zk-ruby."""

import contextlib
import re
import threading
import time

import foreign
import rawzk
from harness import WAIT_SECONDS, check


class Client:
    """Takes locks, each in a thread and a session of its own; the methods are those of a Worker. `entry`
    has the name of a taker's entry without its number, and `blocker` the entry that it waits for."""

    def __init__(self, server):
        self.server = server
        self.times, self.entries, self.clients = {}, {}, {}

    def _wait(self, slot, path, client, entry):
        while True:
            blocker = self.blocker(client.children(path), entry)
            if not blocker:
                self.times['held', slot] = time.monotonic_ns()
                return
            # In the place of a watch, ask again and again.
            while client.exists(f'{path}/{blocker}'):
                time.sleep(0.002)

    def take(self, slot, lock, mode='exclusive'):
        client = self.clients[slot] = self.server.client()
        path = f'{foreign.ROOT}/{lock}'
        self.entries[slot] = client.create(f'{path}/{self.entry(slot, mode)}', ephemeral=True, sequence=True)
        threading.Thread(target=self._wait, args=(slot, path, client, self.entries[slot].rsplit('/', 1)[1]),
                         daemon=True).start()

    def has(self, key):
        return key in self.times

    def held(self, slot, seconds=WAIT_SECONDS):
        deadline = time.monotonic() + seconds
        while ('held', slot) not in self.times:
            check(time.monotonic() < deadline, f'slot {slot} of {self.name} does not hold')
            time.sleep(0.002)
        return 0, self.times.pop(('held', slot))

    def drop(self, slot):
        self.times['dropping', slot] = time.monotonic_ns()
        self.clients[slot].delete(self.entries[slot])

    def dropped(self, slot):
        return self.times.pop(('dropping', slot)), time.monotonic_ns()


class Recipe(Client):
    """It orders all children by the text behind their last `-`; one without it ends the recipe's
    process."""

    name = 'the C recipe'

    @staticmethod
    def entry(slot, mode):
        check(mode == 'exclusive', 'exclusive only')
        return f'x-{slot:016x}-'

    @staticmethod
    def blocker(names, entry):
        check(all('-' in name for name in names), f'the recipe cannot read {names}')
        names = sorted(names, key=lambda name: name.rsplit('-', 1)[1])
        place = names.index(entry)
        return place and names[place - 1]


class Ruby(Client):
    """It orders all children by the digits at their end, and removes a lock that it leaves empty."""

    name = 'zk-ruby'

    @staticmethod
    def entry(slot, mode):
        return 'sh' if mode == 'shared' else 'ex'

    @staticmethod
    def blocker(names, entry):
        def number(name):
            return int(re.search(r'\d*$', name).group() or 0)
        lower = [name for name in names if number(name) < number(entry)
                 and (entry.startswith('ex') or name.startswith('ex'))]
        return max(lower, key=number, default=None)

    def drop(self, slot):
        super().drop(slot)
        with contextlib.suppress(rawzk.ZkError):
            self.clients[slot].delete(self.entries[slot].rsplit('/', 1)[0])
