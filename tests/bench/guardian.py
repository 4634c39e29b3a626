#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Are all processes that lose their locks at once signalled before the lease ends?

There are very many losers, and one of their users attacks: by very many descriptors, and by
processes that make /proc slow. They stand still in exec, have very many mounts, or (--dear) have
descriptors of which each takes milliseconds to be read. The attacker may delay the end of that
user's own losers, but not the end of other users' losers.

    tests/bench/guardian.py [--losers N] [--orphans N] [--users N] [--descriptors N] [--stuck N]
                            [--dear N]

As root. The guardian is measured by itself (guardian.c): real processes and a tmpfs, no servers."""

import argparse
import glob
import os
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'mount'))
os.environ['ZKLOCKFS_CASE_SECONDS'] = '300'

from harness import SOURCE_ROOT, check, libc, run, spawn
from hostile import dear, dear_by_locks, many, mounts, stand_in_exec
from hungfs import HungFs
from openers import process

EACH = 10000     # descriptors of one process
ATTACKER = 2000  # the first of the losers' users


def build(directory):
    program = directory + '/guardian'
    sources = [path for room in ('fs/guard', 'fs/host', 'lockcore/pure') for path in glob.glob(f'{SOURCE_ROOT}/{room}/*.c')]
    # Whatever the guardian does not call is left out, and so is what that would need.
    subprocess.run(['cc', '-std=c11', '-D_GNU_SOURCE', '-O2', '-ffunction-sections', '-Wl,--gc-sections', '-Ifs', '-Ilockcore',
                    '-o', program, 'tests/bench/guardian.c', *sources, '-lmd'], cwd=SOURCE_ROOT, check=True)
    return program


def attack(case, args):
    """Start the attackers; return their pids."""
    own = case.directory + '/own'
    os.mkdir(own)
    os.chmod(own, 0o777)
    with open(own + '/lock', 'wb'):
        pass
    pids = [process(many, own + '/lock', EACH, uid=ATTACKER) for _ in range(args.descriptors // EACH)]
    for number in range(args.dear):
        work = dear_by_locks if number % 2 else dear
        pids.append(process(work, own + '/lock', args.dear_each, uid=ATTACKER))
    pids.append(process(mounts, own, own + '/lock', 5000, ATTACKER))
    hung = HungFs(case)
    return pids + [stand_in_exec(hung, ATTACKER) for _ in range(args.stuck)]


def test(case):
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    for name, default in (('losers', 16320), ('orphans', 64), ('users', 8), ('descriptors', 100000), ('stuck', 20),
                          ('dear', 40), ('dear-each', 3000)):
        parser.add_argument('--' + name, type=int, default=default)
    args = parser.parse_args()
    lock_files = case.directory + '/doors'
    os.mkdir(lock_files)
    check(libc.mount(b'none', lock_files.encode(), b'tmpfs', 0, b'mode=777') == 0, 'a tmpfs')
    program = build(case.directory)
    attackers = attack(case, args)
    for pid in attackers:
        case.cleanups.callback(os.kill, pid, signal.SIGKILL)
    driver = spawn([program, lock_files, str(args.losers), str(args.orphans), str(args.users)],
                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    check(driver.stdout.readline() == 'ready\n', 'all have their lock files open')
    out, _ = driver.communicate('go\n')
    print(out, end='')
    check(driver.returncode == 0, 'not all were signalled in time')


run(test)
