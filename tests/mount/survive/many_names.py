#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""More made-up names than a mount remembers, while the oldest of them are in use. A daemon that
goes on after a crash or a reload still knows the names of all open files."""

import os

from harness import check_equal, run

NAMES_MAX = 16384   # NODE_TRANSIENT_MAX
USED = 8


def test(case):
    a = case.mount(case.server(), session='30s')
    takers = []
    for number in range(USED):
        a.mkdir(f'used{number}')
        takers.append(a.take(f'used{number}', 'lock@1000s').held())
    tokens = [taker.token() for taker in takers]
    for number in range(NAMES_MAX - USED + 1):
        os.stat(a.path('used0', f'lock@{2000 + number}s'))
    for step in (a.reload, a.adopt):
        step()
        check_equal([taker.token() for taker in takers], tokens, 'the tokens')
    # Names that nobody uses are forgotten again, by and by.
    for number in range(USED):
        os.stat(a.path('used0', f'lock@{20000 + number}s'))
    check_equal([taker.token() for taker in takers], tokens, 'the tokens')


run(test)
