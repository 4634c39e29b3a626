#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A close followed by a new open on the same mount never meets its own dying
entry: `try` right after close always succeeds when nobody else is queued."""

import os

from harness import run


def test(case):
    mount = case.mount(case.server())
    mount.mkdir('build')
    door = mount.path('build', 'try')
    for _ in range(200):
        os.close(os.open(door, os.O_RDWR))


run(test)
