#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The services of zklockfs-idioms(7), A LOSS WHILE THE SERVICE RUNS. Each is told of a loss, by an eviction or without an
ensemble, while its work runs: it stops the work, does not end, waits for its turn again, and leads with a higher token. It
never leads without the lock, and when it is killed the lock is free."""

import re

from gate import Gate, check, check_equal, evict, queued
from harness import WAIT_SECONDS, run, until
from printed import RUNNERS, cast, does_nothing, know_the_locks, programs

LANGUAGES = ['Python', 'Node.js', 'Java', 'Go']


def texts():
    services = programs('A LOSS WHILE THE SERVICE RUNS')
    check_equal([language for language, _ in services], LANGUAGES, 'the services of the page')
    for language, text in services:
        yield language, language, text, RUNNERS[language][2][0]


def says(service, pattern):
    line = service.process.stdout.readline()
    match = re.fullmatch(pattern + '\n', line)
    check(match, f'{service.name}: {line!r}, not {pattern}: {service.process.poll()}')
    return match


def lead(services):
    """Each with a higher token than before."""
    for service in services:
        token = int(says(service, 'leading with token ([0-9]+)')[1])
        check(token > service.token, f'{service.name}: token {token} after {service.token}')
        service.token = token


def evicted(b, services):
    """The one who waits has the lock while the service runs, and the service waits behind it."""
    others = [b.take(service.lock) for service in services]
    for service in services:
        service.queued(b, 2, 1)
        evict(b, service.lock)
    for other, service in zip(others, services):
        other.held()
        says(service, 'stopped')
        service.queued(b, 2, 1)
        check_equal(service.process.poll(), None, f'{service.name} has ended')
        other.release()
    lead(services)


def without_ensemble(server, services):
    """Each stops before the servers can have given the lock to another host."""
    server.freeze()
    for service in services:
        says(service, 'stopped')
    server.thaw()


def end(b, services):
    for service in services:
        service.process.kill()
        service.process.communicate(timeout=WAIT_SECONDS)
        queued(b, service.lock, 0)


def test(case):
    server = case.server(tick_ms=500)
    a, b = case.mount(server, 'a', session='6s'), case.mount(server, 'b')
    gate = Gate(case)
    services = cast(case, gate, texts(), service=True)
    know_the_locks(services, a, b)
    for service in services:
        service.token = 0
        service.start(a.directory)
    lead(services)
    evicted(b, services)
    without_ensemble(server, services)
    lead(services)
    end(b, services)
    does_nothing(case, gate, a, services)
    print('tried', *(service.name for service in services), sep='\n')


run(test)
