#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""unlucky.py - the mount tests on a machine that gives the processor to somebody else at a bad moment.

    tests/mount/unlucky.py takers|test|daemons|all [NAME...]

takers: each taker of the harness opens its lock file up to a second late.
test: the test goes on a moment late when it has started a process.
daemons: processes of the daemon are stopped again and again, for up to 0.3 s.

A test that needs luck fails here in one run, which it would do in one of a thousand. Each test of the ordinary
build runs once, two at a time; what fails is named, with its output. Ends with 1 if one failed."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading

BUILD = pathlib.Path(__file__).resolve().parents[2] / 'build'
WAYS = 'takers', 'test', 'daemons'
STOP_MAX = 0.3      # seconds: far less than a session


def children(root):
    """The processes below this one: pid, name, state."""
    found, parents = {}, [root]
    for pid in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError), open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as file:
            name, _, rest = file.read().partition('(')[2].rpartition(')')
            state, parent = rest.split()[:2]
            found.setdefault(int(parent), []).append((int(pid), name, state))
    while parents:
        for child in found.get(parents.pop(), ()):
            parents.append(child[0])
            yield child


def stop_daemons(root, over):
    while not over.wait(random.uniform(0.01, 0.5)):
        daemons = [pid for pid, name, state in children(root) if name.startswith('zklockfs') and state in 'SR']
        if daemons:
            pid = random.choice(daemons)
            with contextlib.suppress(OSError):      # it may have ended
                os.kill(pid, signal.SIGSTOP)
                over.wait(random.uniform(0.01, STOP_MAX))
                os.kill(pid, signal.SIGCONT)


def run(way, test):
    """Whether it passes, and what it says."""
    environ = {**os.environ, **test['env'], 'ZKLOCKFS_LATE': way}
    process = subprocess.Popen(test['cmd'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               env=environ, text=True, errors='replace', start_new_session=True)
    over = threading.Event()
    stopper = threading.Thread(target=stop_daemons, args=(process.pid, over)) if way == 'daemons' else None
    if stopper:
        stopper.start()
    out = process.communicate()[0]
    over.set()
    if stopper:
        stopper.join()
    return process.returncode == 0, out


def main(arguments):
    if arguments[:1] == ['all']:
        ways = WAYS
    elif arguments[:1] and arguments[0] in WAYS:
        ways = arguments[:1]
    else:
        print(__doc__, file=sys.stderr)
        return 64
    tests = json.loads(subprocess.check_output(['meson', 'introspect', '--tests', BUILD], text=True))
    tests = [test for test in tests if test['suite'] == ['zklockfs:mount'] and
             (test['name'] in arguments[1:] if arguments[1:] else not test['name'].endswith(('-alone', '-crashed')))]
    if unknown := set(arguments[1:]) - {test['name'] for test in tests}:
        print(f'unlucky.py: no such test in {BUILD}: {", ".join(sorted(unknown))}', file=sys.stderr)
        return 64
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for way in ways:
            for test, (passed, out) in zip(tests, pool.map(lambda test, way=way: run(way, test), tests)):
                print(f'{way}: {test["name"]}: {"OK" if passed else "FAIL"}', flush=True)
                if not passed:
                    failed += 1
                    print(out, file=sys.stderr, flush=True)
    print(f'{len(ways) * len(tests) - failed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
