#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A lock that was used here is remembered while its node is watched: who comes back later than the kernel remembers
asks the ensemble nothing before the take. What another host has changed shows as ever: owner and mode, a lock that was
removed, and made again, also when contact was lost meanwhile. So many locks at most are remembered."""

import os
import stat
import time

from harness import check, check_equal, errno_of, run, until

LOCKS = 40
MANY, MANY_MAX = 300, 256     # IDLE_MAX in lock.c


def rest():
    """The kernel asks the daemon again."""
    over = time.monotonic() + 1.1
    until(lambda: time.monotonic() > over, 'a second is over')


def use(mount, name):
    os.close(os.open(mount.path(name, 'lock'), os.O_RDWR))


def mode(mount, name):
    return stat.S_IMODE(os.stat(mount.path(name)).st_mode)


def watched(server, mount, names):
    watches = server.watches(mount.session())
    return sum(f'/locks/{name}' in watches for name in names)


def remember(server, mount, names):
    """Each is used, and asked about after that."""
    for name in names:
        use(mount, name)
    rest()
    for name in names:
        os.stat(mount.path(name))
    until(lambda: watched(server, mount, names) == len(names), 'the locks are watched')
    rest()


def asks_nothing(server, mount, names):
    remember(server, mount, names)
    before = mount.metric('requests_total')
    for name in names:
        os.stat(mount.path(name))
        os.stat(mount.path(name, 'value'))
    asked = mount.metric('requests_total') - before
    check(asked < len(names) / 2, f'{asked} requests for {len(names)} locks')


def changed_elsewhere(server, mount, other):
    """Twice: what is remembered after the first change may change, too."""
    for wanted in (0o700, 0o755):
        remember(server, mount, ['0'])
        os.chmod(other.path('0'), wanted)
        until(lambda: mode(mount, '0') == wanted, 'the mode shows')
    remember(server, mount, ['0'])
    was = os.stat(mount.path('0')).st_ino
    os.rmdir(other.path('0'))
    until(lambda: not os.path.exists(mount.path('0')), 'the lock is gone')
    other.mkdir('0')
    until(lambda: errno_of(os.stat, mount.path('0')) == 0, 'the new lock shows')
    check(os.stat(mount.path('0')).st_ino != was, 'the file of the former lock')
    use(mount, '0')
    # Removed and made again before anybody looks: the take meets the new lock.
    remember(server, mount, ['0'])
    os.rmdir(other.path('0'))
    other.mkdir('0')
    until(lambda: errno_of(use, mount, '0') == 0, 'the new lock is taken')


def changed_while_away(server, relay, mount, other):
    remember(server, mount, ['1'])
    mount.allow('connection lost|does not answer')
    relay.freeze()
    until(lambda: mount.status()['state'] != 'ready', 'contact is lost')
    os.chmod(other.path('1'), 0o700)
    relay.thaw()
    mount.ready()
    until(lambda: mode(mount, '1') == 0o700, 'the mode shows')
    asks_nothing(server, mount, [str(number) for number in range(LOCKS)])


def so_many(server, mount):
    names = [f'many{number}' for number in range(MANY)]
    for name in names:
        mount.mkdir(name)
        use(mount, name)
    rest()
    for name in reversed(names):
        os.stat(mount.path(name))
    found = watched(server, mount, names)
    check(0 < found <= MANY_MAX, f'{found} locks are watched')


def test(case):
    server = case.server()
    relay = case.relay(server)
    mount = case.mount(server, 'a', servers=f'127.0.0.1:{relay.port}')
    other = case.mount(server, 'b')
    names = [str(number) for number in range(LOCKS)]
    for name in names:
        mount.mkdir(name)
    check_equal(watched(server, mount, names), 0, 'watches of locks that nobody has used')
    asks_nothing(server, mount, names)
    changed_elsewhere(server, mount, other)
    changed_while_away(server, relay, mount, other)
    so_many(server, mount)


run(test)
