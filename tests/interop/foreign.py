# SPDX-License-Identifier: MIT
"""foreign.py - other clients' locks beside those of a mount, on the same znodes.

The clients are real ones, from Debian's packages; each is a process that takes and
drops on command, the same as in the benchmark: tests/bench/workers/actor.h. A test
says how the two behave to each other:

    waits_for_us       the foreign client queues behind our holder, and holds after it
    we_wait            the other way round
    is_refused_beside  we get EPROTO while its entry is there, and `holder` says why
    order_is_kept      takers of both kinds, one after the other, hold in that order
    we_share_first, they_share_first
                       shared holders of both kinds hold together, and exclusive ones wait for them
    nobody_meets       all as fast as they can: never two inside that exclude each other
    they_follow_a_kill our process dies: the foreign client holds
    killed_holders     a foreign client dies, and a daemon of ours: the others hold when the session has ended
"""

import errno
import os
import random
import re
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(HERE, '..', 'bench')
sys.path[:0] = [os.path.join(HERE, '..', 'mount'), BENCH]
sys.dont_write_bytecode = True

from harness import CASE_SECONDS, WAIT_SECONDS, check, check_equal, check_errno, command, go_build, until
from processes import Worker

JAVA = '/usr/share/java/'
JARS = ':'.join(f'{JAVA}{jar}.jar' for jar in (
    'curator-recipes', 'curator-framework', 'curator-client', 'zookeeper-recipes-lock', 'zookeeper',
    'guava', 'slf4j-api', 'slf4j-nop'))
ROOT = '/locks'
# Long enough for a client that does not wait to take the lock: a take is two round trips.
PATIENCE_SECONDS = 0.5


def _built(args, **options):
    status, out, err = command(args, seconds=CASE_SECONDS, **options)
    check(status == 0, f'{args[0]} ended with {status}: {out}{err}')


def build_java(directory):
    _built(['javac', '-d', directory + '/classes', '-cp', JARS, *(
        f'{sources}/{name}.java' for sources, name in (
            (BENCH + '/workers', 'Actor'), (HERE, 'Recipe'), (HERE, 'Kinds'),
            (HERE + '/../../examples/clients', 'ZklockfsDriver')))])


def build(case):
    """All of Java and Go, once for all parts of a case."""
    build_java(case.directory)
    go_build(case, case.directory + '/gozk', BENCH + '/workers/actor.go', BENCH + '/workers/gozk.go')


def _java(case, name, server):
    return start(case, name, ['java', '-Xmx128m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Xshare:auto',
                              '-XX:-UsePerfData', '-cp', f'{case.directory}/classes:{JARS}', name,
                              f'127.0.0.1:{server.port}', ROOT])


def start(case, name, args):
    worker = Worker(name, args, f'{case.directory}/{name}.log')
    case.cleanups.callback(worker.quit)
    return worker


def java_recipe(case, server):
    return _java(case, 'Recipe', server)


def curator_kinds(case, server):
    return _java(case, 'Kinds', server)


def kazoo(case, server, kind):
    # Debian's Python has Debian's kazoo.
    return start(case, 'kazoo', ['/usr/bin/python3', BENCH + '/workers/kazoo_locks.py', kind,
                                 f'127.0.0.1:{server.port}', ROOT])


def kazoo_kinds(case, server):
    return start(case, 'kinds', ['/usr/bin/python3', HERE + '/kinds.py', f'127.0.0.1:{server.port}', ROOT])


def go_zookeeper(case, server):
    return start(case, 'gozk', [case.directory + '/gozk', f'127.0.0.1:{server.port}', ROOT])


# ---- what they do to each other ----

def queued(server, lock, length):
    until(lambda: len(server.entries(lock)) == length, f'{length} in the queue of {lock}')


def stays_out(worker, slot, seconds=PATIENCE_SECONDS):
    """Check that the worker does not hold, although it has had the time to."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        check(not worker.has(('held', slot)), f'{worker.name} holds beside us')
        time.sleep(0.01)


def waits_for_us(server, mount, worker, lock_file='lock', mode='exclusive', lock='build', hurries=True):
    ours = mount.take(lock, lock_file).held()
    worker.take(1, lock, mode)
    queued(server, lock, 2)
    stays_out(worker, 1)
    if not hurries:
        long_held(server, [mount], lock)
    released = time.monotonic_ns()
    ours.release()
    _, held = worker.held(1)
    check(held >= released, 'it held before we released')
    worker.drop(1)
    worker.dropped(1)
    queued(server, lock, 0)


def we_wait(server, mount, worker, lock_file='lock', mode='exclusive', lock='build'):
    worker.take(1, lock, mode)
    worker.held(1)
    check_errno(errno.EAGAIN, os.open, mount.path(lock, 'try'), os.O_RDWR)
    check('znode' in str(mount.fields(lock, 'queue', mount.queue(lock)[0])), 'its entry is shown')
    ours = mount.take(lock, lock_file)
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
    for lock_file in ('try', 'lock', 'lock@5s', 'shared'):
        check_errno(errno.EPROTO, os.open, mount.path(lock, lock_file), os.O_RDWR)
    check('does not wait for zklockfs' in mount.read(lock, 'holder'), 'the holder file says why')
    queued(server, lock, 1)
    worker.drop(1)
    worker.dropped(1)
    queued(server, lock, 0)
    mount.take(lock).held().release()
    queued(server, lock, 0)


def long_held(server, mounts, lock):
    """Wait until the first entry says since when it holds. This changes the entry, so the next
    client looks at the queue, and watches again."""
    path = f'/locks/{lock}/{server.entries(lock)[0]}'
    ours = [mount.session() for mount in mounts]

    def others_watch():
        sessions = re.split(r'^0x', server.ask('wchc'), flags=re.MULTILINE)[1:]
        return any(path in map(str.strip, session.splitlines()) and int(session.split(None, 1)[0], 16) not in ours
                   for session in sessions)
    until(lambda: b'held_since' in server.zk.get(path)[0], 'it says since when it holds')
    until(others_watch, f'{path} is watched')


def order_is_kept(server, mount, worker, lock='build', hurries=True, other=None):
    """Our takers and theirs wait in turn behind one holder of ours. `other`: a second mount."""
    first = mount.take(lock).held()
    takers = []
    for number in range(1, 7):
        if number % 2:
            worker.take(number, lock)
            takers.append(None)
        else:
            takers.append((other if other and number % 4 else mount).take(lock))
        queued(server, lock, number + 1)
    if not hurries:
        long_held(server, [mount, other or mount], lock)
    first.release()
    times = []
    for number, taker in enumerate(takers, 1):
        if taker:
            times.append(int(taker.held().when * 1e9))
            if not hurries and taker is not takers[-1]:
                long_held(server, [mount, other or mount], lock)
            taker.release()
        else:
            times.append(worker.held(number)[1])
            worker.drop(number)
            worker.dropped(number)
    check_equal(times, sorted(times), 'the order in which they held')
    queued(server, lock, 0)


def we_share_first(server, mount, worker, lock):
    """A shared holder of theirs comes into ours; an exclusive taker of ours waits for both."""
    ours = mount.take(lock, 'shared').held()
    worker.take(1, lock, 'shared')
    worker.held(1)
    writer = mount.take(lock)
    queued(server, lock, 3)
    ours.release()
    check(not writer.answered(PATIENCE_SECONDS), f'we hold beside {worker.name}')
    worker.drop(1)
    worker.dropped(1)
    writer.held().release()
    queued(server, lock, 0)


def they_share_first(server, mount, worker, lock):
    """The same the other way round."""
    worker.take(1, lock, 'shared')
    worker.held(1)
    ours = mount.take(lock, 'shared').held()
    worker.take(2, lock)
    queued(server, lock, 3)
    worker.drop(1)
    worker.dropped(1)
    stays_out(worker, 2)
    ours.release()
    worker.held(2)
    worker.drop(2)
    worker.dropped(2)
    queued(server, lock, 0)


def killed_holders(server, mount, doomed_mount, worker, doomed, lock, slot, hurries=True):
    """A client of theirs dies while we wait for it, and one of our daemons, without a supervisor, while they
    wait. Returns what to check when both sessions have ended, after anything else: a function of the
    time before which nobody may hold."""
    theirs, ours = lock + '-theirs', lock + '-ours'
    for name in (theirs, ours):
        mount.mkdir(name)
    if doomed:
        doomed.take(slot, theirs)
        doomed.held(slot)
        taker = mount.take(theirs)
        queued(server, theirs, 2)
    doomed_mount.take(ours).held()
    worker.take(slot, ours)
    queued(server, ours, 2)
    if not hurries:
        long_held(server, [doomed_mount], ours)

    def followed(killed):
        if doomed:
            check(taker.held().when * 1e9 >= killed, f'we held beside {doomed.name}')
            taker.release()
        check(worker.held(slot)[1] >= killed, f'{worker.name} held beside us')
        worker.drop(slot)
        worker.dropped(slot)
    return followed


def they_follow_a_kill(server, mount, worker, lock, hurries=True):
    ours = mount.take(lock).held()
    worker.take(1, lock)
    queued(server, lock, 2)
    if not hurries:
        long_held(server, [mount], lock)
    killed = time.monotonic_ns()
    ours.kill()
    check(worker.held(1)[1] >= killed, f'{worker.name} held beside us')
    worker.drop(1)
    worker.dropped(1)
    queued(server, lock, 0)


def _hammer(mount, lock, enough, shared, holds):
    while not enough():
        mode = random.choice(['exclusive', 'shared']) if shared else 'exclusive'
        fd = os.open(mount.path(lock, 'shared' if mode == 'shared' else 'lock'), os.O_RDWR)
        held = time.monotonic_ns()
        os.sched_yield()
        holds.append((held, time.monotonic_ns(), mode, mount.host))
        os.close(fd)


def _hammer_theirs(worker, lock, enough, shared, holds):
    def take(slot):
        modes[slot] = random.choice(['exclusive', 'shared']) if shared else 'exclusive'
        worker.take(slot, lock, modes[slot])
    modes, slot = {}, 0
    take(slot)
    while True:
        _, held = worker.held(slot)
        last = enough()
        # Not before: two slots that ask at once may hold in any order.
        if not last:
            take(1 - slot)
        worker.drop(slot)
        dropping, _ = worker.dropped(slot)
        holds.append((held, dropping, modes[slot], worker.name))
        slot = 1 - slot
        if last:
            return


def nobody_meets(mounts, workers, lock, seconds, shared, least=20):
    """All take the lock all the time, for so long and until ours and theirs have held so often: two
    threads of ours, two slots of each of theirs. `workers`: each with whether it has a shared mode."""
    deadline = time.monotonic() + seconds
    ours, theirs, failed = [], [], []

    def enough():
        past = time.monotonic() - deadline
        return past >= 0 and (min(len(ours), len(theirs)) >= least or past > WAIT_SECONDS or bool(failed))

    def guarded(*args):
        try:
            args[0](*args[1:])
        except BaseException as err:
            failed.append(err)
    threads = [threading.Thread(target=guarded, args=(_hammer, mount, lock, enough, shared, ours))
               for mount in mounts for _ in range(2 if len(mounts) == 1 else 1)]
    threads += [threading.Thread(target=guarded, args=(_hammer_theirs, worker, lock, enough, shares, theirs))
                for worker, shares in workers]
    for thread in threads:
        thread.daemon = True
        thread.start()
    for thread in threads:
        thread.join()
    check(not failed, f'{failed}')
    holds = sorted(ours + theirs)
    together = 0
    for number, after in enumerate(holds):
        for before in holds[max(number - 20, 0):number]:
            if before[1] > after[0]:
                check(before[2] == after[2] == 'shared', f'two inside at once: {before} and {after}')
                together += before[3] != after[3]
    print(f'{lock}: {len(ours)} holds of ours, {len(theirs)} of theirs, {together} together')
    check(min(len(ours), len(theirs)) >= least, f'{len(ours)} holds of ours, {len(theirs)} of theirs')
