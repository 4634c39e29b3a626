#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Many processes ask about a long queue at the same time (rule 37). Few requests answer them,
each answer shows the state after the question, and no taker waits for them."""

import os
import threading
import time

from harness import SLOWNESS, Stopwatch, check, check_equal, run

ENTRIES = 800
THREADS = 40
ROUNDS = 25


class Crowd:
    def __init__(self, ask):
        self.wrong = []
        self.threads = [threading.Thread(target=self._ask, args=(ask,)) for _ in range(THREADS)]
        for thread in self.threads:
            thread.start()

    def _ask(self, ask):
        try:
            for _ in range(ROUNDS):
                ask()
        except (OSError, AssertionError) as err:
            self.wrong.append(err)

    def join(self):
        for thread in self.threads:
            thread.join()
        check_equal(self.wrong, [], 'what went wrong')


def test(case):
    server = case.server()
    mount = case.mount(server)
    mount.mkdir('build')
    mount.mkdir('other')
    client = server.client()
    for i in range(ENTRIES):
        client.create(f'/locks/build/_c_01234567-89ab-cdef-0123-{i:012x}-web.{i + 1}-lock-', b'pid: 1\n',
                      ephemeral=True, sequence=True)

    def requests():
        return int(server.connections()[mount.session()]['recved'])

    def ask():
        holder = mount.read('build', 'holder')
        check(holder.startswith('0000000000-exclusive-1-web '), f'the holder: {holder!r}')
    before = requests()
    watch = Stopwatch()
    crowd = Crowd(ask)
    took = []
    for _ in range(20):
        before_it = time.monotonic()
        os.close(os.open(mount.path('other', 'lock'), os.O_RDWR))
        took.append(time.monotonic() - before_it)
    crowd.join()
    watch.check(0, 20, 'reading holder a thousand times')
    # One after the other, each reading would need two requests.
    asked = requests() - before
    check(asked < THREADS * ROUNDS / 2, f'{asked} requests')
    # A Stopwatch would count nothing: the crowd itself presses the machine all the time.
    check(sorted(took)[10] < 0.5 * SLOWNESS, f'takes beside it: {took}')

    # The kernel lets them read one directory at the same time.
    before = requests()
    Crowd(lambda: check_equal(len(mount.queue('build')), ENTRIES, 'entries')).join()
    asked = requests() - before
    check(asked < THREADS * ROUNDS / 2, f'{asked} requests for listings')

    client.close()

    # A taker is shown to each process that asks after the taker has come.
    def come():
        fd = os.open(mount.path('other', 'shared'), os.O_RDWR)
        mine = [name for name in mount.queue('other') if f'-{os.getpid()}-' in name]
        os.close(fd)
        check(mine, 'it holds and is not in the queue')
    Crowd(come).join()


run(test)
