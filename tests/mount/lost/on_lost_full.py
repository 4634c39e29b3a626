#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""on_lost: a user may have a quarter of the holders that can be stopped. Beyond that the user
gets ENOLCK, and the log says so. Other users are not affected."""

import os
import resource

from harness import ALICE, BOB, as_user, check_equal, error_name, run

QUARTER = 4096


def open_many(path):
    """Open one file more than the user has places, and take nothing."""
    for _ in range(QUARTER):
        os.open(path, os.O_RDWR)
    os.open(path, os.O_RDWR)


def test(case):
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (QUARTER + 100, max(limit[1], QUARTER + 100)))
    mount = case.mount(case.server(), options=['on_lost=kill'])
    os.umask(0)
    mount.mkdir('build')
    check_equal(error_name(as_user(ALICE, open_many, mount.path('build', 'flock'))), 'ENOLCK', 'too many')
    mount.said(f'requests of uid {ALICE} are refused')
    mount.take('build', uid=BOB).held().release()
    # The places have become free with the end of the process.
    mount.take('build', uid=ALICE).held()
    check_equal(mount.log().count(f'requests of uid {ALICE} are refused'), 1, 'lines of the log')


run(test)
