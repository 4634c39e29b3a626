#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which file may know which other file: layers.py ROOT BUILD

By includes: a room knows only the rooms that ROOMS names for it, fs/ knows the engine by lockcore.h
alone (SHARED knows nothing of the engine), lockcore/ knows nothing of FUSE, only the port knows
ZooKeeper, and examples/ knows neither directory.

    fs/ --lockcore.h--> lockcore/ --ensemble.h--> ensemble_zookeeper.c

By the functions and data that the object files define and need: the rooms need each other in the
same order, the files of one directory need each other without a circle (those of ONE_OBJECT count as
one), and nothing needs a file of the directory above. Calls through pointers are callbacks, and may go
upwards.
"""

import os
import re
import subprocess
import sys

# Each room, and the rooms that it may use: the drawings in fs/README.md.
ROOMS = {
    'fs': {
        'store': '',
        'host': 'store',
        'tree': 'host store',
        'guard': 'host store',
        'setup': 'guard tree host store',
        'request': 'tree host store',
        'hold': 'request guard tree host store',
        'files': 'hold request setup guard tree host store',
        'daemon': 'files hold request setup guard tree host store',
    },
    'lockcore': {
        'pure': '',
        'port': 'pure',
        'session': 'port pure',
        'lock': 'session port pure',
        'grant': 'lock session port pure',
        'ask': 'grant lock session port pure',
        '': 'ask grant lock session port pure',   # lockcore.h, the engine's interface
    },
}
ONE_OBJECT = {f'lockcore/lock/{stem}.c' for stem in ('batch', 'entry', 'entry_data', 'loss', 'taker')}
SHARED = ('pure/records.h', 'pure/codec.h', 'pure/per_user.h', 'pure/table.h', 'pure/gate.h')

THREADS = {'pthread.h', 'threads.h', 'semaphore.h'}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]*)[">]', re.M)


def files_below(root, directory, endings):
    for path, _, names in os.walk(os.path.join(root, directory)):
        for name in sorted(names):
            if name.endswith(endings):
                yield os.path.relpath(os.path.join(path, name), root)


# ---- includes ----

def includes(root):
    """(file, whether the included name is quoted, the name)."""
    for directory in (*ROOMS, 'tests', 'examples'):
        for file in files_below(root, directory, ('.c', '.h')):
            with open(os.path.join(root, file), encoding='utf-8') as source:
                for quote, name in INCLUDE.findall(source.read()):
                    yield file, quote == '"', name


def is_port(file):
    return file.startswith(('lockcore/port/ensemble_zookeeper.', 'lockcore/port/zookeeper_'))


def may_use(file, other):
    """Whether a file of a directory may use another file of the same one, by their rooms."""
    directory, room, other_room = file.split('/')[0], room_of(file), room_of(other)
    return other_room == room or other_room in ROOMS[directory][room].split()


def room_of(file):
    return ''.join(file.split('/')[1:-1])


def wrong_include(root, file, quoted, name):
    """Why this include is wrong, or None."""
    def is_in(directory):
        return os.path.exists(os.path.join(root, directory, name))

    if '..' in name.split('/'):
        return 'upwards'
    if name in THREADS:
        # Programs that only take locks may have as many threads as they like.
        return None if file.startswith('tests/bench/workers/') else 'there is one thread'
    if file.startswith('tests/'):
        return None
    if file.startswith('examples/'):
        beside = os.path.exists(os.path.join(root, os.path.dirname(file), name))
        return 'it uses the files of a mount alone' if quoted and not beside else None
    if name.startswith('zookeeper/') or name in ('zookeeper.h', 'zookeeper.jute.h'):
        return None if is_port(file) else 'only the port knows ZooKeeper'
    if name == 'port/ensemble_zookeeper.h':
        return None if file.startswith('fs/daemon/') or is_port(file) else 'only main puts the port in'
    if name == 'port/zookeeper_port.h':
        return None if is_port(file) else 'it is the port alone that shares this'
    if file.startswith('lockcore/') and 'fuse' in name:
        return 'the engine knows nothing of FUSE'
    if not quoted:
        return None
    directory = file.split('/')[0]
    if is_in(directory):
        return None if name == 'lockcore.h' or may_use(file, f'{directory}/{name}') else 'no room below'
    if directory == 'lockcore':
        return 'not of lockcore/'
    return None if name == 'lockcore.h' or name in SHARED else 'fs/ sees lockcore.h alone'


# ---- calls ----

def symbols(root, build):
    """Which source file defines each symbol, and which symbols each file needs."""
    defined, needed = {}, {}
    sources = {(directory, file[len(directory) + 1:].replace('/', '_')): file
               for directory in ROOMS for file in files_below(root, directory, '.c')}
    objects = [os.path.join(build, file) for directory in ROOMS
               for file in files_below(build, directory, '.c.o')]
    listing = subprocess.run(['nm', '-A', '-P', *objects], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
    for line in listing.splitlines():
        file, symbol, kind = line.split()[:3]   # BUILD/fs/zklockfs.p/hold_claim.c.o: claim_take T 0 1f
        directory, _, name = os.path.relpath(file, build).split('/')
        source = sources[directory, name[:-len(".o:")]]
        wanted = needed.setdefault(source, set())
        if kind == 'U':
            wanted.add(symbol)
        elif kind.isupper():
            defined[symbol] = source
    return defined, needed


def knots(graph):
    """The sets of files that need each other in a circle (Tarjan)."""
    order, lowest, stack, found = {}, {}, [], []

    def visit(file):
        order[file] = lowest[file] = len(order)
        stack.append(file)
        for other in graph[file]:
            if other not in order:
                visit(other)
                lowest[file] = min(lowest[file], lowest[other])
            elif other in stack:
                lowest[file] = min(lowest[file], order[other])
        if lowest[file] == order[file]:
            knot = stack[stack.index(file):]
            del stack[stack.index(file):]
            if len(knot) > 1:
                found.append(knot)

    for file in graph:
        if file not in order:
            visit(file)
    return found


def wrong_calls(root, build):
    defined, needed = symbols(root, build)
    def united(file):
        return 'lockcore/lock/taker.c' if file in ONE_OBJECT else file
    graph = {united(file): {} for file in sorted(needed)}
    for file, wanted in needed.items():
        for symbol in sorted(wanted & set(defined)):
            file, other = united(file), united(defined[symbol])
            if other != file:
                graph[file].setdefault(other, []).append(symbol)
    if len(graph) < 50 or sum(map(len, graph.values())) < 200:
        yield f'only {len(graph)} object files were found below {build}'
    for knot in knots(graph):
        circle = ''.join(f'\n\t{file} needs {", ".join(graph[file][other])} of {other}'
                         for file in knot for other in graph[file] if other in knot)
        yield f'these {len(knot)} need each other in a circle:{circle}'
    for file, others in graph.items():
        for other, wanted in others.items():
            if file.startswith('lockcore/') and other.startswith('fs/'):
                yield f'{file} needs {", ".join(wanted)} of {other}: upwards'
            if file.split('/')[0] == other.split('/')[0] and not may_use(file, other):
                yield f'{file} needs {", ".join(wanted)} of {other}: no room below'


# ---- the rooms' own words ----

def unnamed(root):
    """A complaint for each file that the README of its room does not name, and each room that names no tests."""
    for directory, rooms in ROOMS.items():
        for room in rooms:
            with open(os.path.join(root, directory, room, 'README.md'), encoding='utf-8') as readme:
                said = readme.read()
            words = set(re.findall(r'\w+', said))
            if room and '\nTests: ' not in said:
                yield f'{directory}/{room}/README.md does not name the tests of the room'
            for name in os.listdir(os.path.join(root, directory, room)):
                stem, ending = os.path.splitext(name)
                if ending in ('.c', '.h') and stem not in words:
                    yield f'{directory}/{room}/README.md does not name {name}'


def main():
    root, build = sys.argv[1:]
    found = list(includes(root))
    wrong = []
    if len(found) < 500:
        wrong.append(f'only {len(found)} includes were found')
    for file, quoted, name in found:
        why = wrong_include(root, file, quoted, name)
        if why:
            wrong.append(f'{file} includes {name}: {why}')
    wrong += wrong_calls(root, build)
    wrong += unnamed(root)
    print(*wrong, sep='\n', file=sys.stderr)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
