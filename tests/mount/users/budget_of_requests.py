#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What waits for the ensemble has a limit: root, who may have more requests under way than others,
writes many long values in an outage. Those beyond the limit get ENFILE at once, and each write is
answered: of those in the outage some are late by contract."""

import errno
import os
import threading

from harness import NO_ANSWER, check, errno_of, run, until

COUNT = 230
SIZE = 64 * 1024    # and WRITE_COPIES of it for each: more than BUDGET_BYTES


def test(case):
    server = case.server()
    relay = case.relay(server)
    mount = case.mount(relay, session='300s')
    mount.allow('requests')
    lock_files, values = [], []
    for i in range(COUNT):
        mount.mkdir(f'lock{i}')
        lock_files.append(os.open(mount.path(f'lock{i}', 'lock'), os.O_RDWR))
        values.append(os.open(mount.path(f'lock{i}', 'value'), os.O_RDWR))
    answers = [None] * COUNT

    def write(i):
        answers[i] = errno_of(os.pwrite, values[i], bytes(SIZE), 0)
    relay.freeze()
    threads = [threading.Thread(target=write, args=(i,), daemon=True) for i in range(COUNT)]
    for thread in threads:
        thread.start()
    until(lambda: errno.ENFILE in answers, 'a write is refused')
    relay.thaw()
    for thread in threads:
        thread.join(60)
    check(set(answers) <= {0, errno.ENFILE, *NO_ANSWER}, f'answers: {answers}')
    for fd in values + lock_files:
        os.close(fd)


run(test)
