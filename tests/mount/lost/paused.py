#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wrong clocks (rule 36). A virtual machine was paused for longer than its session. Whether the
wall clock shows the pause or only the processor's counter, no use of the lost lock succeeds,
though no time has passed by any other clock. A wall clock that is set costs a connection and no
lock. Slewed clocks do not make a lease longer."""

import errno
import os
import re
import signal
import threading
import time

from harness import EMULATOR, Stopwatch, check, check_equal, check_errno, is_in_the_call, run, until

FILES = ('SUSPENDED', 'PAUSED', 'SET_BACK', 'SLEWED')


class Machine:
    """A mount whose clocks the test sets."""
    def __init__(self, case, server, name, session='8s', options=()):
        self.relay = case.relay(server)
        self.files = {file: f'{case.directory}/{name}-{file}' for file in FILES}
        self.mount = case.mount(self.relay, name, session=session, options=options,
                                env={**case.preloaded('suspend'), **self.files})
        self.mount.watched = False  # its clocks are not the machine's
        self.mount.allow('lock is lost|does not answer|connection lost|resumed|session|paused|stood still')
        self.mount.mkdir(name)
        self.holder = self.mount.take(name).held()

    def put(self, file, length_ms):
        with open(self.files[file] + '.new', 'wb') as new:
            new.truncate(length_ms)
        os.rename(new.name, self.files[file])

    def lease_left(self):
        return int(self.mount.status()['lease_left'][:-2])

    def doubts(self):
        return int(self.mount.status()['clock_doubts'])

    def pause(self):
        """All traffic ends, too, so that the mount does not notice the pause by it."""
        self.relay.freeze()
        self.since = time.monotonic()
        self.mount.send(signal.SIGSTOP)

    def resume(self, wall_clock_is_set):
        """By most of the mount's clocks, the pause took only a moment."""
        away_ms = int((time.monotonic() - self.since) * 1000) - 50
        self.put('PAUSED', away_ms)
        if not wall_clock_is_set:
            self.put('SET_BACK', away_ms)
        self.mount.send(signal.SIGCONT)


def counter_goes_on():
    with open('/proc/cpuinfo', encoding='utf-8') as file:
        flags = re.search(r'^flags\s*:(.*)$', file.read(), re.MULTILINE)
    return not EMULATOR and bool(flags) and {'constant_tsc', 'nonstop_tsc'} <= set(flags[1].split())


def paused(server, b, machines):
    nexts = []
    for machine in machines:
        name = machine.mount.host
        nexts.append(b.take(name))
        until(lambda lock=name: len(server.entries(lock)) == 2, 'the next one queues')
        check_equal(machine.doubts(), 0, 'doubts before')
        machine.pause()
    for waiter in nexts:
        waiter.held()
    for machine in machines:
        machine.resume(wall_clock_is_set=machine.mount.host == 'wall')
        watch = Stopwatch()
        check_errno(errno.EIO, machine.holder.token)
        watch.check(0, 4, 'until the loss is certain')
        print(f'{machine.mount.host}: EIO after {watch.seconds():.3f} s')
        machine.relay.thaw()
    for machine, waiter in zip(machines, nexts):
        waiter.release()
        machine.mount.ready()
        check_errno(errno.EIO, machine.holder.token)
        check(machine.doubts() >= 1, 'doubts after')
        machine.holder.release()
        machine.mount.take(machine.mount.host).held().release()


def counted_wait(mount):
    return next(float(line.split()[5]) for line in mount.read('.zklockfs', 'locks').splitlines() if line.startswith('set '))


def is_set(machine, waiter, since, queued):
    before = machine.mount.status()
    machine.put('SET_BACK', 20000)
    watch = Stopwatch()
    check(machine.holder.token() > 0, 'held after the clock was set')
    print(f'a read while the wall clock is set: {watch.seconds():.3f} s')
    watch.check(0, 1.5, 'a read while the wall clock is set')
    until(lambda: machine.mount.status()['state'] == 'ready', 'ready again')
    after = machine.mount.status()
    check_equal(int(after['clock_doubts']) - int(before['clock_doubts']), 1, 'doubts')
    check_equal(int(after['connections']) - int(before['connections']), 1, 'connections')
    check_equal(after['session'], before['session'], 'session')
    check(machine.holder.token() > 0 and not waiter.answered(), 'held on')
    # A wait is counted by the ensemble's clock, which is 20 s before this one now.
    ahead = int(after['ensemble_clock'][:-2])
    check(15000 < ahead < 25000, f'the ensemble is {ahead} ms before this host')
    until(lambda: since.seconds() - queued > 1, 'it has waited for a while')
    waited = counted_wait(machine.mount)
    check(0.3 <= waited <= since.seconds() + 1, f'a wait of {since.seconds()} s is counted as {waited} s')


def killed_in_doubt(machine):
    """After the doubt, the next daemon serves the requests that the killed one had read."""
    machine.mount.allow_more('was ended by signal')
    machine.relay.freeze()
    machine.mount.send(signal.SIGSTOP)
    machine.put('SET_BACK', 20000)
    tokens = []
    thread = threading.Thread(target=lambda: tokens.append(machine.holder.token()), daemon=True)
    thread.start()
    until(lambda: is_in_the_call(machine.holder.pid), 'it asks')
    machine.mount.send(signal.SIGCONT)
    time.sleep(0.2)
    machine.mount.send(signal.SIGKILL)
    time.sleep(0.2)
    check(not tokens and thread.is_alive(), 'an answer in doubt')
    machine.relay.thaw()
    until(lambda: tokens, 'the holder is told')
    check_equal(machine.holder.token(), tokens[0], 'the token')
    machine.holder.release()


def slewed(machine):
    doubts = machine.doubts()
    machine.relay.freeze()
    machine.put('SLEWED', 1)

    def shorter():
        left, began = machine.lease_left(), time.monotonic()
        until(lambda: time.monotonic() - began > 0.7, 'some time')
        return left - machine.lease_left()
    # An answer that had left the relay may still come, and make the lease longer once.
    until(lambda: shorter() >= 699, 'after 700 ms the lease is so much shorter')
    machine.relay.thaw()
    check_equal(machine.doubts(), doubts, 'doubts')


def test(case):
    server = case.server(tick_ms=500)
    b = case.mount(server, 'b', session='60s')
    names = ['wall', 'counter'] if counter_goes_on() else ['wall']
    # With on_lost, a doubt must not stop the holders.
    third = Machine(case, server, 'set', session='60s', options=['on_lost=term'])
    check('realtime' in third.mount.status()['clock_watched_by'], 'the sources that watch the clock')
    since = Stopwatch()
    waiter = b.take('set')
    until(lambda: len(server.entries('set')) == 2, 'the waiter queues')
    is_set(third, waiter, since, since.seconds())
    slewed(third)
    third.holder.release()
    waiter.held().release()
    killed_in_doubt(Machine(case, server, 'killed', session='60s', options=['debug']))
    # Made only now: their sessions are short.
    paused(server, b, [Machine(case, server, name) for name in names])


run(test)
