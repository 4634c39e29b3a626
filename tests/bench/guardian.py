#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Are all who lose their locks at once signalled before the lease ends? With very many losers, beside
very many descriptors of others, and beside those who make /proc slow.

    tests/bench/guardian.py [--losers N] [--orphans N] [--users N] [--descriptors N] [--stuck N]

As root. The guardian is measured by itself (guardian.c): real processes and a tmpfs, no servers."""

import argparse
import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'mount'))
os.environ['ZKLOCKFS_CASE_SECONDS'] = '300'

from harness import ALICE, SOURCE_ROOT, check, libc, run, spawn
from hostile import many, mounts, process, stand_in_exec
from hungfs import HungFs

SOURCES = ['guardian', 'guard', 'round', 'crew', 'process', 'scan', 'slots', 'slot_index', 'family', 'who', 'clock', 'log']
EACH = 10000     # descriptors of one process


def build(directory):
    program = directory + '/guardian'
    subprocess.run(['cc', '-std=c11', '-D_GNU_SOURCE', '-O2', '-Ifs', '-Ilockcore', '-o', program,
                    'tests/bench/guardian.c', *(f'fs/{name}.c' for name in SOURCES)], cwd=SOURCE_ROOT, check=True)
    return program


def attack(case, args):
    own = case.directory + '/own'
    os.mkdir(own)
    with open(own + '/lock', 'wb'):
        pass
    for _ in range(args.descriptors // EACH):
        process(many, own + '/lock', EACH, uid=ALICE)
    process(mounts, own, own + '/lock', 5000)
    hung = HungFs(case)
    for _ in range(args.stuck):
        stand_in_exec(hung)


def test(case):
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    for name, default in (('losers', 16320), ('orphans', 64), ('users', 8), ('descriptors', 100000), ('stuck', 20)):
        parser.add_argument('--' + name, type=int, default=default)
    args = parser.parse_args()
    doors = case.directory + '/doors'
    os.mkdir(doors)
    check(libc.mount(b'none', doors.encode(), b'tmpfs', 0, b'mode=777') == 0, 'a tmpfs')
    attack(case, args)
    driver = spawn([build(case.directory), doors, str(args.losers), str(args.orphans), str(args.users)],
                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    check(driver.stdout.readline() == 'ready\n', 'all have their doors open')
    out, _ = driver.communicate('go\n')
    print(out, end='')
    check(driver.returncode == 0, 'not all were signalled in time')


run(test)
