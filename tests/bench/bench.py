#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""zklockfs and its peers, in turn, in the same run.

Rounds go around all peers, so that whatever else the machine does meets all of
them. A figure is the median of the rounds; a ratio is taken within a round, and
then the median of those. Run it by tests/bench/run, which installs what is needed
and makes the namespaces that everything lives in.
"""

import argparse
import json
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import peers
import report
from processes import BenchError, run
from scenarios import EXCLUDING, SCENARIOS, Clients, Lengths
from servers import Place, ZooKeeper

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARIES = {'files': [], 'zookeeper': ['-lzookeeper_st']}


class Bench:
    """What all peers share: a place for files, the tools, the servers."""

    def __init__(self, directory, zklockfs):
        self.directory, self.zklockfs = directory, zklockfs
        self.zookeeper = None
        self.built = {}

    def path(self, name):
        return os.path.join(self.directory, name)

    def tool(self, name):
        """A worker in C, built when it is first asked for."""
        if name not in self.built:
            self.built[name] = self.path('worker-' + name)
            run(['gcc', '-O2', '-std=gnu11', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-o', self.built[name],
                 f'{HERE}/workers/{name}.c', f'{HERE}/workers/actor.c', *LIBRARIES[name], '-pthread'])
        return self.built[name]

    def classes(self):
        if 'classes' not in self.built:
            self.built['classes'] = self.path('classes')
            jars = ':'.join(f'{peers.JAVA}{jar}.jar' for jar in peers.JARS)
            run(['javac', '-d', self.built['classes'], '-cp', jars,
                 HERE + '/workers/Actor.java', HERE + '/workers/Curator.java'])
        return self.built['classes']


def say(line):
    print(line, file=sys.stderr, flush=True)


def measure(scenario, clients, lengths):
    if scenario in EXCLUDING and not clients.peer.excludes:
        return {}
    try:
        return SCENARIOS[scenario](clients, lengths)
    except BenchError as err:
        say(f'  {scenario} {clients.peer.name}: {err}')
        return {}


def rounds(bench, args, lengths):
    """[{scenario: {peer: {figure: value}}}], one for each round."""
    everybody = [Clients(peer(bench)) for peer in peers.by_name(args.only)]
    results = []
    try:
        for number in range(args.rounds):
            results.append({})
            for scenario in args.scenario:
                results[-1][scenario] = row = {}
                # Each goes first once.
                turn = number % len(everybody)
                for clients in everybody[turn:] + everybody[:turn]:
                    row[clients.peer.name] = figures = measure(scenario, clients, lengths)
                    say(f'round {number + 1} {scenario:15} {clients.peer.name:10} '
                        + ' '.join(f'{name}={value:.0f}' for name, value in figures.items()))
    finally:
        for clients in everybody:
            clients.close()
    return results


def leave_others_alone():
    """Our copy of the mount table would keep every file system of it alive."""
    with open('/proc/self/mountinfo', encoding='utf-8', errors='replace') as lines:
        for line in lines:
            fields = line.split()
            if fields[fields.index('-') + 1].startswith('fuse'):
                subprocess.run(['umount', '-l', fields[4]], check=False, stderr=subprocess.DEVNULL)


def arguments():
    parser = argparse.ArgumentParser(prog='tests/bench/run', description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--quick', action='store_true', help='short runs: a few minutes in all')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--scenario', action='append', choices=list(SCENARIOS), help='again for more')
    parser.add_argument('--only', action='append', metavar='PEER', help='again for more; zklockfs is always there')
    parser.add_argument('--json', metavar='FILE', help='all figures')
    parser.add_argument('--directory', required=True, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.scenario = args.scenario or list(SCENARIOS)
    args.only = args.only or [peer.name for peer in peers.PEERS]
    if 'zklockfs' not in args.only:
        args.only.insert(0, 'zklockfs')
    return args


def main():
    args = arguments()
    zklockfs = os.environ['ZKLOCKFS']
    leave_others_alone()
    bench = Bench(args.directory, zklockfs)
    memory = args.directory + '/tmpfs'
    os.makedirs(memory)
    subprocess.run(['mount', '-t', 'tmpfs', 'bench', memory], check=True)
    lengths = Lengths(args.quick)
    began = time.monotonic()
    bench.zookeeper = ZooKeeper(Place(memory, synchronous=False), 1)
    try:
        results = rounds(bench, args, lengths)
    finally:
        bench.zookeeper.end()
    say(f'{time.monotonic() - began:.0f} s')
    table = report.medians(results)
    report.show(table)
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as file:
            json.dump({'rounds': results, 'medians': table}, file, indent=1)
    return 0


if __name__ == '__main__':
    sys.exit(main())
