#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The services of zklockfs-idioms(7). Each waits for its lock and leads until it has lost the lock: by
an eviction, or without an ensemble, and then it ends before another one can lead. When it is killed the
lock is free. It never leads without the lock. tests/debian/service_life tries the unit of the page."""

from gate import Gate, check, check_equal, evict, queued
from harness import run
from printed import LOST, RUNNERS, cast, does_nothing, know_the_locks, programs


def texts():
    services = programs('SERVICES')
    check_equal([language for language, _ in services], list(RUNNERS)[3:], 'the services of the page')
    for language, text in services:
        yield language, language, text, RUNNERS[language][2][0]


def lead(services, mount):
    for service in services:
        service.start(mount.directory)
    for service in services:
        service.leads()


def wait(a, b, services):
    others = [b.take(service.lock).held() for service in services]
    for service in services:
        service.start(a.directory)
    for service in services:
        service.queued(b, 2, 1)
    for other in others:
        other.release()
    for service in services:
        service.leads()


def lose(b, services):
    for service in services:
        evict(b, service.lock)
    for service in services:
        check_equal(service.ends(LOST, 'evicted'), '', 'it led once')
        queued(b, service.lock, 0)


def are_killed(b, services):
    for service in services:
        service.process.kill()
        service.process.communicate()
        queued(b, service.lock, 0)


def have_no_ensemble(server, services):
    server.freeze()
    for service in services:
        service.ends(LOST, 'the ensemble is away')
    server.thaw()


def test(case):
    server = case.server(tick_ms=500)
    a, b = case.mount(server, 'a', session='6s'), case.mount(server, 'b')
    gate = Gate(case)
    services = cast(case, gate, texts(), service=True)
    know_the_locks(services, a, b)
    wait(a, b, services)
    lose(b, services)
    lead(services, a)
    are_killed(b, services)
    does_nothing(case, gate, a, services)
    lead(services, a)
    have_no_ensemble(server, services)
    check(len(services) >= len(RUNNERS) - 4, 'the services')
    print('tried', *(service.name for service in services), sep='\n')


run(test)
