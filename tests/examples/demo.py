#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The demo, from its start to its end, and again on what a killed one has left."""

import os
import re
import shutil
import signal
import subprocess

from gate import at_once, example
from harness import SOURCE_ROOT, ZKLOCKFS, check, check_equal, command, run, spawn, until
from locking import BUILD
from printed import read
from terminals import shape


def holder(state):
    with open(state + '/web1/build/holder', encoding='utf-8') as file:
        return int(re.search(r' pid=(\d+) ', file.read()).group(1))


def check_printed(out):
    """The README's block is part of it, line by line."""
    block, = re.findall(r"(?:^    .*\n)*^    web1\$ zklock -r 'nightly.*\n(?:^    .*\n)*", read('README.md'), re.M)
    printed = shape(out).splitlines()
    for line in shape(block).splitlines():
        check(line in printed, f'the README prints {line!r}, the demo {out}')


def test(case):
    state = os.path.join(case.directory, 'demo')
    environ = {'ZKLOCKFS_DEMO': state, 'ZKLOCKFS_PROGRAM': ZKLOCKFS}

    def mounts():
        with open('/proc/self/mounts', encoding='utf-8') as lines:
            return sorted(line.split()[1] for line in lines if f' {state}/' in line)

    # Killed in the middle of it, and one of its daemons too: a taker and a dead mount are left.
    demo = example('demo', **environ)
    until(lambda: os.path.exists(state + '/first.held'), 'the first taker', 300)
    demo.send_signal(signal.SIGKILL)
    demo.communicate()
    taker = holder(state)
    os.kill(case.daemons()[0], signal.SIGKILL)

    demo = example('demo', **environ)
    out, err = demo.communicate(timeout=300)
    check_equal((demo.returncode, err), (0, ''), f'the demo: {out}')
    tokens = [int(number) for number in re.findall(r'[Tt]oken(?: from its descriptor| is higher)?: (\d+)', out)]
    check(len(tokens) == 3 and tokens == sorted(set(tokens)), f'three tokens that rise: {tokens} in {out}')
    check('try: Resource temporarily unavailable\n    status 1\n' in out and out.count('status 75\n') == 2
          and '    mine' not in out, out)
    check_printed(out)
    check(re.search(r'^    web1: zklock: nightly: the lock is lost: evicted by uid 0 .*; the command is stopped$', out, re.M),
          f'what the job says: {out}')
    times = re.findall(r'to open: (\d+)\.\d ms', out)
    check(len(times) == 2 and all(int(time) < 2000 for time in times), f'hand-overs: {times}')
    check_equal(mounts(), [state + '/web1'], 'what is left')
    check(not os.path.exists(f'/proc/{taker}/exe'), 'a taker of the one before is left')
    check_equal(os.listdir(state + '/web1/build/queue'), [], 'nobody holds')
    # What it proposes to look at. For zklock(1) ZKLOCKFS is a mount.
    proposed = re.findall(r'^    (?:cat|\S*/zklock) .*', out[out.index('The mount stays'):], re.M)
    check_equal([command(line.split(), env={'PATH': os.environ['PATH']}) for line in proposed],
                [(0, '', ''), (0, 'nothing is in the way: it could be taken now\n', '')], f'{proposed} in {out}')
    # A command that a shell has started keeps the lock when the shell is killed, and is named.
    check('keeps the lock, even after kill -9 of the\nshell: zklock why says which.\n' in out, out)
    shell = spawn(['bash', '-c', f'exec 9<>{state}/web1/build/lock; sleep 1000 & echo $!; wait'], stdout=subprocess.PIPE, text=True)
    kept = int(shell.stdout.readline())
    until(lambda: read(f'/proc/{kept}/comm') == 'sleep\n', 'the command runs')
    shell.kill()
    shell.wait()
    _, said, err = command(proposed[1].split(), env={'PATH': os.environ['PATH']})
    check(f'is gone; {kept} (sleep) has the file open' in said, said + err)
    os.kill(kept, signal.SIGKILL)
    until(lambda: not os.listdir(state + '/web1/build/queue'), 'nobody holds')
    check(f'/zklock/zklocktop -m {state}/web1 ' in out or not shutil.which('zklocktop', path=BUILD), out)
    check_equal(at_once('demo', 'stop', **environ), (0, f'all stopped; {SOURCE_ROOT}/build and the installed packages stay\n', ''), 'stop')
    check(not mounts() and not os.path.exists(state), 'something is left')
    check_equal(at_once('demo', 'stop', **environ), (0, 'no demo is running\n', ''), 'stop again')
    check_equal(at_once('demo', '--wrong', **environ)[0], 1, 'usage')


run(test)
