# SPDX-License-Identifier: MIT
"""foreign.py - other clients' locks beside those of a mount, on the same znodes.

The clients are real ones, from Debian's packages; each is a process that takes and
drops on command, the same as in the benchmark: tests/bench/workers/actor.h. A test
says how the two behave to each other:

    waits_for_us       the foreign client queues behind our holder, and holds after it
    we_wait            the other way round
    is_refused_beside  we get EPROTO while its entry is there, and `holder` says why
    order_is_kept      takers of both kinds, one after the other, hold in that order
    nobody_meets       both as fast as they can: never two inside
"""

import errno
import os
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(HERE, '..', 'bench')
sys.path[:0] = [os.path.join(HERE, '..', 'mount'), BENCH]
sys.dont_write_bytecode = True

from harness import check, check_equal, check_errno, command, go_build, until
from processes import Worker

JAVA = '/usr/share/java/'
JARS = ':'.join(f'{JAVA}{jar}.jar' for jar in (
    'curator-recipes', 'curator-framework', 'curator-client', 'zookeeper-recipes-lock', 'zookeeper',
    'guava', 'slf4j-api', 'slf4j-nop'))
ROOT = '/locks'
# Long enough for a client that does not wait to take the lock: a take is two round trips.
PATIENCE_SECONDS = 0.5


def _built(args, **options):
    status, out, err = command(args, seconds=90, **options)
    check(status == 0, f'{args[0]} ended with {status}: {out}{err}')


def _java(case, name, source, *args):
    classes = case.directory + '/classes'
    if not os.path.exists(f'{classes}/{name}.class'):
        _built(['javac', '-d', classes, '-cp', JARS, BENCH + '/workers/Actor.java', source])
    return start(case, name, ['java', '-Xmx128m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Xshare:auto',
                              '-XX:-UsePerfData', '-cp', f'{classes}:{JARS}', name, *args])


def start(case, name, args):
    worker = Worker(name, args, f'{case.directory}/{name}.log')
    case.cleanups.callback(worker.quit)
    return worker


def curator(case, server, kind):
    return _java(case, 'Curator', BENCH + '/workers/Curator.java', kind, f'127.0.0.1:{server.port}', ROOT)


def java_recipe(case, server):
    return _java(case, 'Recipe', HERE + '/Recipe.java', f'127.0.0.1:{server.port}', ROOT)


def kazoo(case, server, kind):
    # Debian's Python has Debian's kazoo.
    return start(case, 'kazoo', ['/usr/bin/python3', BENCH + '/workers/kazoo_locks.py', kind,
                                 f'127.0.0.1:{server.port}', ROOT])


def go_zookeeper(case, server):
    program = case.directory + '/gozk'
    go_build(case, program, BENCH + '/workers/actor.go', BENCH + '/workers/gozk.go')
    return start(case, 'gozk', [program, f'127.0.0.1:{server.port}', ROOT])


# ---- what they do to each other ----

def queued(server, lock, length):
    until(lambda: len(server.entries(lock)) == length, f'{length} in the queue of {lock}')


def stays_out(worker, slot, seconds=PATIENCE_SECONDS):
    """Check that the worker does not hold, although it has had the time to."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        check(not worker.has(('held', slot)), f'{worker.name} holds beside us')
        time.sleep(0.01)


def waits_for_us(server, mount, worker, door='lock', mode='exclusive', lock='build'):
    ours = mount.take(lock, door).held()
    worker.take(1, lock, mode)
    queued(server, lock, 2)
    stays_out(worker, 1)
    released = time.monotonic_ns()
    ours.release()
    _, held = worker.held(1)
    check(held >= released, 'it held before we released')
    worker.drop(1)
    worker.dropped(1)
    queued(server, lock, 0)


def we_wait(server, mount, worker, door='lock', mode='exclusive', lock='build'):
    worker.take(1, lock, mode)
    worker.held(1)
    check_errno(errno.EAGAIN, os.open, mount.path(lock, 'try'), os.O_RDWR)
    check('znode' in str(mount.fields(lock, 'queue', mount.queue(lock)[0])), 'its entry is shown')
    ours = mount.take(lock, door)
    queued(server, lock, 2)
    check(not ours.answered(PATIENCE_SECONDS), f'we hold beside {worker.name}')
    worker.drop(1)
    dropping, _ = worker.dropped(1)
    check(ours.held().when * 1e9 >= dropping, 'we held before it dropped')
    ours.release()
    queued(server, lock, 0)


def is_refused_beside(server, mount, worker, mode, lock='build'):
    worker.take(1, lock, mode)
    worker.held(1)
    for door in ('try', 'lock', 'lock@5s', 'shared'):
        check_errno(errno.EPROTO, os.open, mount.path(lock, door), os.O_RDWR)
    check('does not wait for zklockfs' in mount.read(lock, 'holder'), 'the holder file says why')
    queued(server, lock, 1)
    worker.drop(1)
    worker.dropped(1)
    queued(server, lock, 0)
    mount.take(lock).held().release()
    queued(server, lock, 0)


def long_held(server, lock):
    """Wait until the first entry says since when it holds. This changes the entry, so the next
    client looks at the queue, and watches again."""
    path = f'/locks/{lock}/{server.entries(lock)[0]}'
    until(lambda: b'held_since' in server.zk.get(path)[0], 'it says since when it holds')
    until(lambda: path in map(str.strip, server.ask('wchc').splitlines()), f'{path} is watched')


def order_is_kept(server, mount, worker, lock='build', hurries=True):
    """Our takers and theirs wait in turn behind one holder of ours."""
    first = mount.take(lock).held()
    takers = []
    for number in range(1, 7):
        if number % 2:
            worker.take(number, lock)
            takers.append(None)
        else:
            takers.append(mount.take(lock))
        queued(server, lock, number + 1)
    first.release()
    times = []
    for number, taker in enumerate(takers, 1):
        if taker:
            times.append(int(taker.held().when * 1e9))
            if not hurries and taker is not takers[-1]:
                long_held(server, lock)
            taker.release()
        else:
            times.append(worker.held(number)[1])
            worker.drop(number)
            worker.dropped(number)
    check_equal(times, sorted(times), 'the order in which they held')
    queued(server, lock, 0)


def _hammer(path, until_seconds, holds):
    while time.monotonic() < until_seconds:
        fd = os.open(path, os.O_RDWR)
        held = time.monotonic_ns()
        os.sched_yield()
        holds.append((held, time.monotonic_ns()))
        os.close(fd)


def nobody_meets(mount, worker, seconds=3, lock='hot'):
    """Both take the lock all the time, two threads of ours, two slots of theirs."""
    mount.mkdir(lock)
    deadline = time.monotonic() + seconds
    ours, theirs = [], []
    threads = [threading.Thread(target=_hammer, args=(mount.path(lock, 'lock'), deadline, ours),
                                daemon=True)
               for _ in range(2)]
    for thread in threads:
        thread.start()
    worker.take(0, lock)
    slot = 0
    while time.monotonic() < deadline:
        _, held = worker.held(slot)
        # Not before: two slots that ask at once may hold in any order.
        worker.take(1 - slot, lock)
        worker.drop(slot)
        dropping, _ = worker.dropped(slot)
        theirs.append((held, dropping))
        slot = 1 - slot
    worker.held(slot)
    worker.drop(slot)
    worker.dropped(slot)
    for thread in threads:
        thread.join()
    print(f'{len(ours)} holds of ours, {len(theirs)} of {worker.name}')
    check(len(ours) > 20 and len(theirs) > 20, f'{len(ours)} holds of ours, {len(theirs)} of theirs')
    holds = sorted(ours + theirs)
    for before, after in zip(holds, holds[1:]):
        check(before[1] <= after[0], f'two inside at once: {before} and {after}')
