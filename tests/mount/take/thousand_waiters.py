#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Thousands of opens that wait on one mount need no thread: the mount goes on answering. Most of
them are killed at once, the others get the lock, and no entry is left, nor the memory."""

import os
import signal

from crowd import Crowd
from harness import Stopwatch, check_equal, run, until

DOOMED, PATIENT = 3000, 500


def test(case):
    server = case.server()
    mount = case.mount(server, session='30s')
    mount.mkdir('build')
    mount.mkdir('other')
    fd = os.open(mount.path('build', 'lock'), os.O_RDWR)
    small = mount.resident()
    doomed, patient = Crowd(mount.path('build', 'lock'), DOOMED), Crowd(mount.path('build', 'lock'), PATIENT)
    until(lambda: len(server.entries('build')) == 1 + DOOMED + PATIENT, 'all wait', 60)

    large = mount.resident()
    check_equal(mount.process_status('Threads'), '1', 'threads of the daemon')
    watch = Stopwatch()
    check_equal(len(mount.queue('build')), 1 + DOOMED + PATIENT, 'the listed queue')
    watch.check(0, 1, 'ls queue')
    watch = Stopwatch()
    os.close(os.open(mount.path('other', 'lock'), os.O_RDWR))
    watch.check(0, 1, 'another lock')

    watch = Stopwatch()
    os.kill(doomed.pid, signal.SIGKILL)
    os.waitpid(doomed.pid, 0)
    until(lambda: len(server.entries('build')) == 1 + PATIENT, 'the entries of the killed go')
    watch.check(0, 10, 'killing most of them')

    watch = Stopwatch()
    os.close(fd)
    check_equal(patient.served(), PATIENT, 'served')
    watch.check(0, 30, 'serving the others')
    until(lambda: not server.entries('build'), 'no entry is left')
    with open(f'/proc/{mount.daemon}/maps', encoding='utf-8') as maps:
        if 'libasan' not in maps.read():    # which keeps what is free
            until(lambda: mount.resident() - small < (large - small) / 2, 'the kernel gets the memory back')


run(test)
