#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""zklockfs and its peers, in turn, in the same run.

Rounds go around all peers, so that other work of the machine meets all of them. A
figure is the median of the rounds; a ratio is taken within a round, and the result
is the median of these ratios. Run it by tests/bench/run, which installs the packages
that are needed and makes the namespaces that everything lives in.
"""

import argparse
import json
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import counting
import others
import peers
import plot
import points
import report
import scale
from processes import BenchError, run
from scenarios import EVERYWHERE, EXCLUDING, FAR, SCENARIOS, Clients, Lengths
from servers import Place, ZooKeeper

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARIES = {'files': [], 'zookeeper': ['-lzookeeper_st'], 'redis': ['-lhiredis'], 'postgres': ['-lpq']}
# name: (on a disk and synchronous, number of servers, seconds from a client to them)
VARIANTS = {f'{store}{members}{far}': (store == 'disk', 3 if members else 1, seconds)
            for far, seconds in (('', 0), ('-0.5ms', 0.0005), ('-5ms', 0.005))
            for members in ('', '-3') for store in ('tmpfs', 'disk')}
PARTS = ('rounds', 'requests', 'scale')
COUNTED = ('zklockfs', 'curator', 'kazoo', 'go-zookeeper', 'recipe', 'herd')


def say(line):
    print(line, file=sys.stderr, flush=True)


class Bench:
    """Shared by all peers: a place for files, the tools, the servers of one variant."""

    def __init__(self, directory, zklockfs):
        self.directory, self.zklockfs = directory, zklockfs
        self.zookeeper = None
        self.built, self.servers = {}, {}
        self.place, self.count, self.variants = None, 0, 0

    def path(self, name):
        return os.path.join(self.directory, name)

    # ---- tools, built when they are first asked for ----

    def tool(self, name):
        return self._compile(name, [f'{HERE}/workers/{name}.c', f'{HERE}/workers/actor.c', *LIBRARIES[name], '-pthread'])

    def _compile(self, name, arguments):
        if name not in self.built:
            self.built[name] = self.path('worker-' + name)
            run(['gcc', '-O2', '-std=gnu11', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-o', self.built[name], *arguments])
        return self.built[name]

    def go_tool(self, name):
        if name not in self.built:
            self.built[name] = self.path('worker-' + name)
            run(['go', 'build', '-o', self.built[name], f'{HERE}/workers/actor.go', f'{HERE}/workers/{name}.go'],
                env=dict(os.environ, GO111MODULE='off', GOPATH='/usr/share/gocode', GOFLAGS='',
                         GOCACHE=self.path('go-cache')))
        return self.built[name]

    def classes(self):
        if 'classes' not in self.built:
            self.built['classes'] = self.path('classes')
            jars = ':'.join(f'{peers.JAVA}{jar}.jar' for jar in peers.JARS)
            run(['javac', '-d', self.built['classes'], '-cp', jars,
                 HERE + '/workers/Actor.java', HERE + '/workers/Curator.java'])
        return self.built['classes']

    # ---- servers ----

    def begin(self, variant):
        synchronous, self.count, delay_seconds = VARIANTS[variant]
        self.variants += 1
        directory = self.path(f'{variant}-{self.variants}')
        os.makedirs(directory)
        if not synchronous:
            subprocess.run(['mount', '-t', 'tmpfs', '-o', 'mode=755', 'bench', directory], check=True)
        self.place = Place(directory, synchronous, delay_seconds, self._compile('delay', [HERE + '/delay.c']))
        self.zookeeper = ZooKeeper(self.place, self.count)

    def warm_up(self, seconds):
        """Warm the server up: its JVM compiles the code that it runs, and the peer that is measured
        first should not pay for that."""
        clients = Clients(peers.CRecipe(self))
        worker = clients.worker()
        for number in range(8):
            worker.make(f'bench{number}')
        worker.start_cycles(8, 8, 0, seconds)
        worker.cycles(seconds)
        clients.close()

    def server(self, kind):
        """A server that is no ZooKeeper, started when it is first asked for."""
        if kind not in self.servers:
            made = {'etcd': others.Etcd, 'redis': others.Redis, 'postgres': others.Postgres}[kind]
            self.servers[kind] = made(self.place, self.count)
        return self.servers[kind]

    def end(self):
        for server in [*self.servers.values(), self.zookeeper]:
            server.end()
        self.servers = {}
        self.place.end()
        if not self.place.synchronous:
            subprocess.run(['umount', '-l', self.place.directory], check=False)


# ---- the parts ----

def measure(scenario, clients, lengths):
    if scenario in EXCLUDING and not clients.peer.excludes or scenario == 'shared' and not clients.peer.shared:
        return {}
    try:
        return SCENARIOS[scenario](clients, lengths)
    except BenchError as err:
        say(f'  {scenario} {clients.peer.name}: {err}')
        # End its workers: they may still be at work.
        clients.close()
        return {}


def rounds(bench, names, number_of_rounds, lengths, scenarios):
    """[{scenario: {peer: {figure: value}}}], one for each round."""
    everybody = [Clients(peer(bench)) for peer in peers.by_name(names)]
    results = []
    try:
        for number in range(number_of_rounds):
            results.append({})
            for scenario in scenarios:
                results[-1][scenario] = row = {}
                # Each peer has its turn to go first.
                turn = number % len(everybody)
                for clients in everybody[turn:] + everybody[:turn]:
                    row[clients.peer.name] = figures = measure(scenario, clients, lengths)
                    if figures:
                        say(f'round {number + 1} {scenario:15} {clients.peer.name:13} '
                            + ' '.join(f'{name}={value:.0f}' for name, value in figures.items()))
    finally:
        for clients in everybody:
            clients.close()
    return results


def requests(bench, args):
    found = {}
    for peer in peers.by_name([name for name in args.only if name in COUNTED]):
        try:
            found[peer.name] = counting.requests(bench, lambda peer=peer: Clients(peer(bench)),
                                                 (2, 100) if args.quick else (2, 1000))
        except BenchError as err:
            say(f'  requests {peer.name}: {err}')
        say(f'requests {peer.name}: ' + ' '.join(
            f'{case}={figures["requests"]:.2f}' for case, figures in found.get(peer.name, {}).items()))
    return found


def at_scale(bench, args):
    found = {}

    def part(name, function, *values, peer=peers.Zklockfs):
        clients = Clients(peer(bench))
        try:
            found[name] = function(clients, *values)
        except BenchError as err:
            say(f'  {name}: {err}')
            return
        finally:
            clients.close()
        say(f'{name}: ' + ' '.join(f'{figure}={value:.3g}' for figure, value in found[name].items()))
    many = 2000 if args.quick else 10000
    for waiters in (1000, many):
        part(f'{waiters} waiters', lambda clients, waiters=waiters: scale.waiting(bench, clients, waiters))
    part(f'{many} locks', scale.locks, many)
    part('100 mounts', scale.mounts, 100, 3 if args.quick else 10)
    part('100 sessions of the recipe in C', scale.sessions, 100, 3 if args.quick else 10, peer=peers.CRecipe)
    found['idle mount'] = scale.idle(bench, lambda: Clients(peers.Zklockfs(bench)), 15 if args.quick else 60)
    say('idle mount: ' + ' '.join(f'{figure}={value:.3g}' for figure, value in found['idle mount'].items()))
    return found


# ---- the command ----

def leave_others_alone():
    """Unmount FUSE mounts here: our copy of the mount table would keep them alive."""
    with open('/proc/self/mountinfo', encoding='utf-8', errors='replace') as lines:
        for line in lines:
            fields = line.split()
            if fields[fields.index('-') + 1].startswith('fuse'):
                subprocess.run(['umount', '-l', fields[4]], check=False, stderr=subprocess.DEVNULL)


def machine():
    """The machine that was measured, for comparisons."""
    packages = ('libzookeeper-java', 'libzookeeper-st2', 'libcurator-recipes-java', 'python3-kazoo', 'libfuse3-3',
                'golang-github-samuel-go-zookeeper-dev', 'etcd-server', 'redis-server', 'postgresql')
    versions = subprocess.run(['dpkg-query', '-W', '-f=${Package} ${Version}\n', *packages], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return {'cores': os.cpu_count(), 'kernel': os.uname().release,
            'packages': dict(line.split(' ', 1) for line in versions.splitlines() if ' ' in line)}


def arguments():
    parser = argparse.ArgumentParser(prog='tests/bench/run', description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--quick', action='store_true',
                        help='short runs, tmpfs, one server near and far, the main peers: some seven minutes')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--part', action='append', choices=PARTS, help='again for more; all unless named')
    parser.add_argument('--scenario', action='append', choices=list(SCENARIOS), help='again for more')
    parser.add_argument('--only', action='append', metavar='PEER',
                        help='again for more: ' + ', '.join(peer.name for peer in peers.PEERS)
                        + '; zklockfs is always there')
    parser.add_argument('--variant', action='append', choices=list(VARIANTS),
                        help='where data goes, how many servers, how far away they are: again for more')
    parser.add_argument('--json', metavar='FILE', help='all figures')
    parser.add_argument('--plot', metavar='FILE', help='an SVG of the ratios')
    parser.add_argument('--plot-distance', metavar='FILE', help='an SVG of what a distance costs')
    parser.add_argument('--directory', required=True, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.scenario and not args.part:
        args.part = ['rounds']
    args.part = args.part or list(PARTS)
    args.only = args.only or (list(peers.MAIN) if args.quick else [peer.name for peer in peers.PEERS
                                                                   if peer is not peers.Before])
    args.variant = args.variant or (['tmpfs', 'tmpfs-5ms'] if args.quick else list(VARIANTS))
    if 'zklockfs' not in args.only:
        args.only.insert(0, 'zklockfs')
    return args


def save(args, results):
    """Save the results so far, so that an interrupted run has some, too."""
    results['points'] = points.judge(results)
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as file:
            json.dump(results, file, indent=1)
    if args.plot and results['variants']:
        with open(args.plot, 'w', encoding='utf-8') as file:
            file.write(plot.ratios(results))
    if args.plot_distance and results['variants']:
        with open(args.plot_distance, 'w', encoding='utf-8') as file:
            file.write(plot.distance(results))


def main():
    args = arguments()
    leave_others_alone()
    bench = Bench(args.directory, os.environ['ZKLOCKFS'])
    lengths = Lengths(args.quick)
    results = {'machine': machine(), 'variants': {}, 'requests': {}, 'scale': {}}
    began = time.monotonic()
    for variant in args.variant:
        first = variant == args.variant[0]
        bench.begin(variant)
        try:
            bench.warm_up(2 * lengths.first_warm)
            if 'rounds' in args.part:
                far = bench.place.delay_seconds > 0
                scenarios = args.scenario or list(FAR if far else SCENARIOS if first else EVERYWHERE)
                say(f'---- {variant}')
                names = [name for name in args.only
                         if first and not far or name in (peers.FAR if far else peers.EVERYWHERE)]
                measured = rounds(bench, names, args.rounds, lengths, scenarios)
                results['variants'][variant] = {'rounds': measured, 'medians': report.medians(measured)}
            if first and 'requests' in args.part:
                results['requests'] = requests(bench, args)
            if first and 'scale' in args.part:
                results['scale'] = at_scale(bench, args)
        finally:
            bench.end()
        save(args, results)
    report.show(results)
    print(f'\n{time.monotonic() - began:.0f} s')
    return 0


if __name__ == '__main__':
    sys.exit(main())
