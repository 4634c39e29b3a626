#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The daemon is killed at numbered points of its whole run, also while it takes over, under
processes that take locks by many lock files, wait, and are interrupted. They record their locks with
times; these records alone must show that locks were never held by two at a time, that tokens rise,
and that no process got an error. $ZKLOCKFS_KILLS is how often each of the mounts is killed."""

import contextlib
import errno
import fcntl
import json
import os
import random
import signal
import time

from harness import NO_ANSWER, SLOWNESS, check, check_equal, die_with_parent, let_janitor_go, libc, run, until
from kill_points import KillPoints

KILLS = int(os.environ.get('ZKLOCKFS_KILLS', 3))
SEED = int(os.environ.get('ZKLOCKFS_SEED', 1))
SECONDS = int(12 * SLOWNESS)    # of a session: a machine under load starts another daemon within its lease
POINTS = 120        # in a turn or two of the daemon, or while it takes over
LOCKS = ('one', 'two')
NO_ANSWER_SECONDS = 1.9     # before them such an error is right only without contact


class Worker:
    """A process that takes locks until it is told to stop, and then reports."""

    def __init__(self, case, mount, name, work):
        self.path = os.path.join(case.directory, f'worker-{name}.json')
        self.name = name
        self.stop, theirs = os.pipe()[::-1]
        self.pid = os.fork()
        if self.pid:
            os.close(theirs)
            return
        status = 1
        try:
            let_janitor_go()
            die_with_parent()
            signal.alarm(0)
            os.close(self.stop)
            os.set_blocking(theirs, False)
            signal.signal(signal.SIGALRM, lambda *_: None)
            report = {'holds': [], 'errors': [], 'unreached': []}
            self.work(mount, theirs, report, work)
            with open(self.path, 'w', encoding='ascii') as file:
                json.dump(report, file)
            status = 0
        finally:
            os._exit(status)

    def work(self, mount, stop, report, work):
        dice = random.Random(f'{SEED} {self.name}')
        while True:
            try:
                if os.read(stop, 1) == b'':
                    return
            except BlockingIOError:
                pass
            began = time.monotonic()
            try:
                work(mount, dice, report)
            except OSError as err:
                late = err.errno in NO_ANSWER and time.monotonic() - began >= NO_ANSWER_SECONDS
                if err.errno != errno.EINTR and not late:
                    kind = 'unreached' if err.errno in NO_ANSWER else 'errors'
                    report[kind].append(f'{self.name}: {err} at {time.monotonic()}')

    def end(self):
        os.close(self.stop)

    def report(self):
        check_equal(os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), 0, f'how {self.name} ends')
        with open(self.path, encoding='ascii') as file:
            return json.load(file)


def hold(fd, lock, how, dice, report):
    """Hold the lock for a moment, and record the time in which it was certainly held."""
    begin = time.monotonic()
    token = int(os.pread(fd, 64, 0))
    time.sleep(dice.random() * 0.004)
    if dice.random() < 0.3:
        os.write(fd, b'a reason\n')
    check_equal(int(os.pread(fd, 64, 0)), token, 'the token')
    report['holds'].append((lock, how, begin, time.monotonic(), token))


def by_lock_file(mount, dice, report):
    lock = dice.choice(LOCKS)
    lock_file = dice.choice(('lock', 'lock', 'lock@30s', 'shared', 'try', 'reentrant'))
    try:
        fd = os.open(mount.path(lock, lock_file), os.O_RDWR)
    except BlockingIOError:
        return
    try:
        hold(fd, lock, 'shared' if lock_file == 'shared' else 'exclusive', dice, report)
    finally:
        os.close(fd)


def by_flock(mount, dice, report):
    lock = dice.choice(LOCKS)
    fd = os.open(mount.path(lock, 'flock'), os.O_RDWR)
    how = dice.choice(('exclusive', 'exclusive', 'shared'))
    kind = fcntl.LOCK_EX if how == 'exclusive' else fcntl.LOCK_SH
    try:
        if dice.random() < 0.5:
            fcntl.flock(fd, kind)
        else:
            fcntl.lockf(fd, kind)
        hold(fd, lock, how, dice, report)
    finally:
        os.close(fd)


def interrupted(mount, dice, report):
    """Wait for a lock, but only a moment: then a signal interrupts the open."""
    signal.setitimer(signal.ITIMER_REAL, 0.001 + dice.random() * 0.01)
    lock = dice.choice(LOCKS)
    fd = libc.open(os.fsencode(mount.path(lock, 'lock')), os.O_RDWR | os.O_CLOEXEC)
    signal.setitimer(signal.ITIMER_REAL, 0)
    if fd >= 0:
        try:
            hold(fd, lock, 'exclusive', dice, report)
        finally:
            os.close(fd)


def looks(mount, dice, report):
    """Look at files that need no lock and make none."""
    lock = dice.choice(LOCKS)
    dice.choice((lambda: os.listdir(mount.path(lock, 'queue')),
                 lambda: mount.read(lock, 'holder'),
                 lambda: os.stat(mount.path(lock)),
                 lambda: os.listdir(mount.directory),
                 mount.status))()
    report['looks'] = report.get('looks', 0) + 1


def changes(mount, dice, report):
    """Write to the ensemble. A change that fails may have been made. Only holders write values."""
    path = mount.path(f'made-{os.getpid()}')
    for change in (lambda: os.mkdir(path), lambda: os.rmdir(path), lambda: write_value(mount, dice)):
        try:
            change()
        except OSError as err:
            if err.errno not in (errno.EIO, errno.EEXIST, errno.ENOENT, errno.EACCES):
                raise
    report['looks'] = report.get('looks', 0) + 1


def write_value(mount, dice):
    with open(mount.path(dice.choice(LOCKS), 'value'), 'w', encoding='ascii') as file:
        file.write(f'{dice.random()}\n')


def check_holds(holds):
    """No two holds at a time, except shared ones; and tokens rise."""
    for lock in LOCKS:
        last = {'exclusive': None, 'shared': None}      # the hold of each kind that ended last
        token = 0
        for hold_ in sorted((hold for hold in holds if hold[0] == lock), key=lambda hold: hold[2]):
            how, begin, end = hold_[1:4]
            for other in [last['exclusive']] + ([last['shared']] if how == 'exclusive' else []):
                check(other is None or other[3] <= begin, f'at the same time: {other} and {hold_}')
            if how == 'exclusive':
                check(hold_[4] > token, f'tokens do not rise: {token} and {hold_}')
                token = hold_[4]
            if last[how] is None or last[how][3] < end:
                last[how] = hold_


def is_ready(mount):
    with contextlib.suppress(OSError):
        return bool(mount.daemon) and mount.status().get('state') == 'ready'
    return False


def torment(case, server, number):
    dice = random.Random(f'{SEED} {number}')
    points = KillPoints(case, number)
    root = f'/locks{number}'
    options = ['mkroot'] + (['on_lost=kill'] if number % 2 else [])
    mount = case.mount(server, f'a{number}', session=f'{SECONDS}s', root=root, options=options, env=points.env)
    other = case.mount(server, f'b{number}', session='60s', root=root, options=['mkroot'])
    mount.allow('.')
    for lock in LOCKS:
        mount.mkdir(lock)
    works = [(mount, by_lock_file), (mount, by_lock_file), (mount, by_lock_file), (mount, by_flock), (mount, by_flock),
             (mount, interrupted), (mount, looks), (mount, changes), (other, by_lock_file), (other, interrupted)]
    workers = [Worker(case, at, f'{number}-{i}-{work.__name__}', work) for i, (at, work) in enumerate(works)]
    where, kills, poisoned = {}, 0, False
    while points.kills + kills < KILLS:
        before = points.kills + kills
        if number == 0:     # a kill at any instruction
            time.sleep(dice.random() * 0.01)
            mount.send(signal.SIGKILL)
            kills += 1
        else:
            points.arm(dice.randrange(1, POINTS), dice.randrange(1, POINTS) if dice.random() < 0.5 else 0)
        until(lambda: points.kills + kills > before and not points.armed, 'it is killed')
        where[points.where] = where.get(points.where, 0) + 1
        # If one request saw two kills, the supervisor believes that the request is the cause.
        until(lambda: is_ready(mount) or 'the same request' in mount.log(), 'another one goes on')
        poisoned = 'the same request' in mount.log()
        if poisoned:
            break
        time.sleep(SECONDS + 0.1)   # at most two crashes within the session timeout
    for worker in workers:
        worker.end()
    reports = [worker.report() for worker in workers]
    holds = [hold for report in reports for hold in report['holds']]
    errors = [error for report in reports for error in report['errors']]
    if not any('connection lost' in at.log() for at in (mount, other)):
        errors += [error for report in reports for error in report['unreached']]
    print(f'{number}: {points.kills + kills} kills, {len(holds)} holds, {errors[:5]} errors; {where}')
    check_holds(holds)
    if poisoned:
        mount.checked = True
        return
    check(not errors, f'{len(errors)} errors: {errors[:5]}')
    check(all(report['holds'] or report.get('looks') for report in reports), 'a taker never had a lock')
    check(mount.metric('adoptions_total') > 0, 'the adoptions')


def test(case):
    server = case.server(tick_ms=500)
    case.at_once(*(lambda part, number=number: torment(part, server, number) for number in range(3)))


run(test)
