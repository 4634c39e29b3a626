#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The main promise (rules 1 to 3): a holder that is cut off from the ensemble is told that the
lock is lost before anybody else gets the lock."""

import errno
import time

from harness import Stopwatch, check, run, until


def test(case):
    server = case.server(tick_ms=500)
    for way in ('the link hangs', 'the daemon was stopped'):
        relay = case.relay(server)
        cut, b = case.mount(relay, 'cut', session='3s'), case.mount(server, 'b', session='3s')
        cut.allow('.')
        lock = way.replace(' ', '-')
        b.mkdir(lock)
        holder = cut.take(lock).held()
        waiter = b.take(lock)
        until(lambda: len(server.entries(lock)) == 2, 'the waiter queues')

        watch = Stopwatch()
        if way == 'the link hangs':
            relay.freeze()
            last_use = None
            while True:
                # Success means: held at some instant during the call.
                began = time.monotonic()
                try:
                    holder.token()
                except OSError as err:
                    check(err.errno == errno.EIO, f'{err}')
                    break
                last_use = began
                time.sleep(0.002)
                check(watch.counted() < 15, 'the lock is never lost')
            waiter.held()
            check(last_use < waiter.when, 'used after the next one had it')
            print(f'told {waiter.when - last_use:.3f} s before the next one had the lock')
            check(watch.counted() < 15, 'the lock was lost too late')
            relay.thaw()
        else:
            cut.send(19)   # SIGSTOP
            waiter.held()
            # The daemon wakes up after the end of its lease: it reads the clock at every use.
            cut.send(18)   # SIGCONT
            try:
                holder.token()
                check(False, 'used after the next one had it')
            except OSError as err:
                check(err.errno == errno.EIO, f'{err}')
        watch.check(0, 20, way)
        cut.ready()
        holder.release()
        waiter.release()
        cut.unmount()
        b.unmount()


run(test)
