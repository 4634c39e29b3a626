#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which file may know which other file: layers.py ROOT BUILD

By includes: fs/ knows the engine by lockcore.h alone (per_user.h, table.h and fair.h know nothing
of the engine), lockcore/ knows nothing of FUSE, only the port knows ZooKeeper, and examples/ knows
neither directory.

    fs/ --lockcore.h--> lockcore/ --ensemble.h--> ensemble_zookeeper.c

By the functions and data that the object files define and need: the files of one directory need
each other without a circle, nothing needs a file of the directory above, and the tour in the
README names each file behind all files that it needs. Calls through pointers are callbacks, and
may go upwards.
"""

import os
import re
import subprocess
import sys

DIRECTORIES = ('fs', 'lockcore')

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
    for directory in DIRECTORIES + ('tests', 'examples'):
        for file in files_below(root, directory, ('.c', '.h')):
            with open(os.path.join(root, file), encoding='utf-8') as source:
                for quote, name in INCLUDE.findall(source.read()):
                    yield file, quote == '"', name


def is_port(file):
    return file.startswith(('lockcore/ensemble_zookeeper.', 'lockcore/zookeeper_'))


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
    if name == 'ensemble_zookeeper.h':
        return None if file == 'fs/main.c' or is_port(file) else 'only main puts the port in'
    if name == 'zookeeper_port.h':
        return None if is_port(file) else 'it is the port alone that shares this'
    if file.startswith('lockcore/'):
        if 'fuse' in name:
            return 'the engine knows nothing of FUSE'
        return None if not quoted or is_in('lockcore') else 'not of lockcore/'
    if name not in ('lockcore.h', 'per_user.h', 'table.h', 'fair.h') and is_in('lockcore') and not is_in('fs'):
        return 'fs/ sees lockcore.h alone'
    return None


# ---- calls ----

def symbols(build):
    """Which source file defines each symbol, and which symbols each file needs."""
    defined, needed = {}, {}
    objects = [os.path.join(build, file) for directory in DIRECTORIES
               for file in files_below(build, directory, '.c.o')]
    listing = subprocess.run(['nm', '-A', '-P', *objects], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
    for line in listing.splitlines():
        file, symbol, kind = line.split()[:3]   # BUILD/fs/zklockfs.p/hold.c.o: hold_take T 0 1f
        directory, _, name = os.path.relpath(file, build).split('/')
        source = f'{directory}/{name[:-len(".o:")]}'
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


def tour(root):
    """The number of the item of the tour that names each file first."""
    with open(os.path.join(root, 'README.md'), encoding='utf-8') as readme:
        text = readme.read().split('## A tour of the source')[1].split('\n## ')[0]
    items, directory = {}, None
    for number, item in enumerate(re.split(r'^\d+\. ', text, flags=re.M)[1:]):
        for place, name in re.findall(r'`(?:(\w+)/)?(\w+)\.[ch]`', item):
            directory = place or directory
            items.setdefault(f'{directory}/{name}.c', number)
    return items


def wrong_calls(root, build):
    defined, needed = symbols(build)
    graph = {file: {} for file in sorted(needed)}
    items = tour(root)
    for file, wanted in needed.items():
        for symbol in sorted(wanted & set(defined)):
            if defined[symbol] != file:
                graph[file].setdefault(defined[symbol], []).append(symbol)
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
        if file not in items:
            yield f'the tour in the README does not name {file}'
            continue
        for other in others:
            if items.get(other, -1) > items[file]:
                yield f'{file} needs {other}, and the tour in the README names that later'


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
    print(*wrong, sep='\n', file=sys.stderr)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
