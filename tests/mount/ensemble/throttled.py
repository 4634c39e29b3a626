#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A server that throttles answers some requests with "not done, try again": so that is done. No
taker gets ENOLCK, no lock that is held is lost, and the log says why the server was left."""

import errno
import os
import threading

from harness import check, check_equal, run, until

# One request at a time; whoever had to wait for 10 ms is sent away.
THROTTLES = ['request_throttle_max_requests=1', 'request_throttle_stall_time=20', 'throttled_op_wait_time=10']


def test(case):
    server = case.server(properties=THROTTLES)
    mount = case.mount(server, session='20s')
    mount.allow('throttles|connection lost')
    mount.mkdir('held')
    for number in range(8):
        mount.mkdir(f'lock{number}')
    holder = mount.take('held').held()
    answers = {0: 0}
    over = threading.Event()

    def open_and_close(number):
        while not over.is_set():
            try:
                os.close(os.open(mount.path(f'lock{number}', 'lock'), os.O_RDWR))
                answers[0] += 1
            except OSError as err:
                answers[err.errno] = answers.get(err.errno, 0) + 1

    threads = [threading.Thread(target=open_and_close, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: server.metric('zk_throttled_ops') >= 20 and answers[0] >= 20, 'requests are throttled', 60)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    print(answers)
    check(set(answers) <= {0, errno.EHOSTUNREACH}, f'what takers get: {answers}')
    check_equal(holder.do('fsync'), None, 'fsync')
    check(holder.token() > 0, 'it is held')
    mount.said('the server throttles requests')
    check('refuses' not in mount.log(), mount.log())
    holder.release()


run(test)
