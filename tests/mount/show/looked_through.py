#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who looks up the names of a directory one after the other, as ls -l does, has the next ones asked about together: it
takes far less than a round trip for each. What is changed on this host shows at once all the same, and what another
host changes after a second."""

import os
import stat
import time

from harness import check, check_equal, run, until

LOCKS, DELAY = 80, 0.15    # a round trip takes twice as long


def names_of(mount):
    return [entry.name for entry in os.scandir(mount.path('many')) if entry.name.startswith('n')]


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def look_through(mount, names):
    for name in names:
        check(stat.S_ISDIR(os.lstat(mount.path('many', name)).st_mode), name)


def changed_here(mount, names):
    """Right behind the look-up of a name before it, whether the answer has come or not."""
    for number in (7, 15, 31):
        look_through(mount, names_of(mount)[:number])
        gone, other = names[number + 1], names[number + 2]
        os.rmdir(mount.path('many', gone))
        check(not os.path.exists(mount.path('many', gone)), f'{gone} is there')
        os.chmod(mount.path('many', other), 0o700)
        check_equal(mode(mount.path('many', other)), 0o700, 'the mode')
        mount.mkdir(f'many/{gone}')
        check_equal(mode(mount.path('many', gone)), 0o777 & ~mount_umask(), 'the mode of a new lock')


def mount_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def changed_elsewhere(mount, other, names):
    look_through(mount, names_of(mount))
    os.chmod(other.path('many', names[40]), 0o711)
    os.rmdir(other.path('many', names[50]))
    until(lambda: mode(mount.path('many', names[40])) == 0o711, 'the mode shows')
    until(lambda: not os.path.exists(mount.path('many', names[50])), 'the lock is gone')
    check(names[50] not in names_of(mount), 'it is listed')
    check_equal(mode(mount.path('many', names[51])), mode(other.path('many', names[51])), 'its neighbour')


def test(case):
    server = case.server()
    relay = case.relay(server, delay=DELAY)
    far, near = case.mount(server, 'far', servers=f'127.0.0.1:{relay.port}'), case.mount(server, 'near')
    near.mkdir('many')
    names = [f'n{number:03}' for number in range(LOCKS)]
    for name in names:
        near.mkdir(f'many/{name}')
    until(lambda: os.path.isdir(far.path('many')), 'the directory shows')
    check_equal(sorted(names_of(far)), names, 'the names')
    began = time.monotonic()
    look_through(far, names_of(far))
    took = time.monotonic() - began
    # No machine is fast enough for that with one name after the other.
    check(took < LOCKS * 2 * DELAY, f'{LOCKS} round trips, one after the other: {took:.1f} s')
    changed_here(far, names)
    changed_elsewhere(far, near, names)


run(test)
