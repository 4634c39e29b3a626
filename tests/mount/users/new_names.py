#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A user looks up one new name after the other, by mkdir(2) without the right to make any, for which the kernel keeps others
out of the directory. A listing answers, the ensemble is not asked for each. What this mount has made is seen at once all the
same, what another one has made after a second. Root, and whoever looks up few names, asks the ensemble."""

import errno
import os
import time

from harness import NOBODY, as_user, check, check_equal, check_errno, run

NAMES = 1000
IN_VAIN = 2             # requests: a sync and a read
AT_FIRST, IN_A_SECOND = 20, 20


def make_many(mount):
    for i in range(NAMES):
        check_errno(errno.EACCES, os.mkdir, mount.path('build', f'new{i}'))


def look_up_many(mount, word):
    for i in range(100):
        check(not os.path.exists(mount.path('build', f'{word}{i}')), 'it is nowhere')


def make_and_look(mount):
    look_up_many(mount, 'before')
    for i in range(20):
        own = mount.path('build', f'own{i}')
        check(not os.path.exists(own), 'it is not made yet')
        os.mkdir(own)
        check(os.path.exists(own), 'it was made here')
        os.rmdir(own)
        check(not os.path.exists(own), 'it was removed here')


def look_until_it_is_there(mount):
    rounds = 0
    while not os.path.exists(mount.path('build/far')):
        look_up_many(mount, f'round{rounds}_')
        rounds += 1


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    a.mkdir('build')

    def requests():
        return int(server.connections()[a.session()]['recved'])

    before, began = requests(), time.monotonic()
    check_equal(as_user(NOBODY, make_many, a), 0, 'many names')
    seconds = time.monotonic() - began
    asked = requests() - before
    print(f'{asked} requests for {NAMES} names in {seconds:.3f} s')
    # In a second one listing and some heartbeats come in addition.
    check(asked < IN_VAIN * (AT_FIRST + IN_A_SECOND * (seconds + 1)) + 20 * (seconds + 1), 'the ensemble is not asked for each')

    os.chmod(a.path('build'), 0o777)
    check_equal(as_user(NOBODY, make_and_look, a), 0, 'what this mount has made')

    check_equal(as_user(NOBODY, look_up_many, a, 'many'), 0, 'many names')
    b.mkdir('build/far')
    check(os.path.exists(a.path('build/far')), 'root sees it at once')
    check_equal(as_user(NOBODY, look_until_it_is_there, a), 0, 'what another has made')

    # Few names: at once.
    for i in range(5):
        a.mkdir(f'quiet{i}')
        path = a.path(f'quiet{i}', 'made')
        check_equal(as_user(NOBODY, os.stat, path), errno.ENOENT, 'before it is made')
        b.mkdir(f'quiet{i}/made')
        check_equal(as_user(NOBODY, os.stat, path), 0, 'right after it was made')


run(test)
