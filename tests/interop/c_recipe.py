#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The logic of ZooKeeper's recipe in C, which no package has: it orders all children by the
text behind their last `-`, and watches the child before its own with exists."""

import threading
import time

import foreign
from harness import check, run


class Recipe:
    """Takes locks as the recipe does, each in a thread and a session of its own; the methods are
    those of a Worker."""

    name = 'the C recipe'

    def __init__(self, server):
        self.server = server
        self.times, self.entries, self.clients = {}, {}, {}

    @staticmethod
    def _order(name):
        # strrchr(name, '-') + 1; a name without one ends the recipe's process.
        check('-' in name, f'the recipe cannot read {name}')
        return name.rsplit('-', 1)[1]

    def _wait(self, slot, path, client, entry):
        while True:
            names = sorted(client.children(path), key=self._order)
            place = names.index(entry)
            if place == 0:
                self.times['held', slot] = time.monotonic_ns()
                return
            # In the place of a watch, ask again and again.
            while client.exists(f'{path}/{names[place - 1]}'):
                time.sleep(0.002)

    def take(self, slot, lock, mode='exclusive'):
        check(mode == 'exclusive', 'exclusive only')
        client = self.clients[slot] = self.server.client()
        path = f'{foreign.ROOT}/{lock}'
        entry = client.create(f'{path}/x-{slot:016x}-', ephemeral=True, sequence=True)
        self.entries[slot] = entry
        threading.Thread(target=self._wait, args=(slot, path, client, entry.rsplit('/', 1)[1]),
                         daemon=True).start()

    def has(self, key):
        return key in self.times

    def held(self, slot, seconds=20):
        deadline = time.monotonic() + seconds
        while ('held', slot) not in self.times:
            check(time.monotonic() < deadline, f'slot {slot} of the C recipe does not hold')
            time.sleep(0.002)
        return 0, self.times.pop(('held', slot))

    def drop(self, slot):
        self.times['dropping', slot] = time.monotonic_ns()
        self.clients[slot].delete(self.entries[slot])

    def dropped(self, slot):
        return self.times.pop(('dropping', slot)), time.monotonic_ns()


def test(case):
    server = case.server()
    mount = case.mount(server)
    mount.mkdir('build')
    recipe = Recipe(server)
    foreign.waits_for_us(server, mount, recipe)
    foreign.waits_for_us(server, mount, recipe, 'shared')
    foreign.we_wait(server, mount, recipe)
    foreign.we_wait(server, mount, recipe, 'shared')
    foreign.order_is_kept(server, mount, recipe)
    foreign.nobody_meets([mount], [recipe])


run(test)
