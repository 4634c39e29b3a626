# SPDX-License-Identifier: MIT
"""Compiles the engine and its tests once, and links them again with some of the engine's files
replaced: for mutants.py and mutate.py."""

import glob
import json
import os
import re
import resource
import signal
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CC = os.environ.get('CC', 'cc').split()
FLAGS = ['-std=gnu11', '-D_GNU_SOURCE', '-O1', '-w']
# As in tests/layer/meson.build.
WRAPS = ['-Wl,--wrap=' + name for name in (
    'known_gone', 'known_made', 'loss_by_mark', 'loss_of_node', 'taker_not_made', 'taker_proved', 'taker_step',
    'taker_try_later')]
MEMORY = 6 << 30   # of a mutant; a Java machine reserves more than it takes


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors='replace', check=False, **options)


def run_mutant(command, seconds, endless, env=None):
    """As run(); None: it hangs, which is so many seconds of the processor, so that the load of the
    machine makes no difference, or `endless` seconds in any way. It has a process group of its own: a
    mutant's kill(0), which no PID namespace keeps in, is not for this program."""
    def limit():
        os.setpgrp()
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        done = run(command, preexec_fn=limit, timeout=endless, env=env)
    except subprocess.TimeoutExpired:
        return None
    return None if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL) else done


def compile_file(source, target, engine=ROOT + '/lockcore', flags=()):
    """`engine`: the directory with the headers of lockcore/; `flags`: more of them."""
    folders = [engine, ROOT + '/tests/unit', ROOT + '/tests/world', os.path.dirname(source)]
    done = run([*CC, *FLAGS, *flags, *['-I' + folder for folder in folders], '-c', source, '-o', target])
    if done.returncode:
        raise RuntimeError(f'{source} does not compile:\n{done.stdout}')
    return target


def stem(path):
    return os.path.splitext(os.path.basename(path))[0]


def read(path):
    with open(path, encoding='utf-8') as stream:
        return stream.read()


def find(pattern):
    return sorted(glob.glob(f'{ROOT}/{pattern}', recursive=True))


def engine_sources():
    """All files but the port to ZooKeeper: the ensemble in memory takes its place."""
    return [path for path in find('lockcore/**/*.c') if path not in port_sources()]


def port_sources():
    return find('lockcore/port/*zookeeper*.c')


def is_of_engine(path):
    """Whether a test includes unit.h and headers of lockcore/ only."""
    names = re.findall(r'^#include "(.*)"', read(path), re.M)
    return all(os.path.exists(f'{ROOT}/lockcore/{name}') or name == 'unit.h' for name in names)


def built_objects(build):
    """The objects of a build directory, by their sources: those of its zklockfs and its sim."""
    with open(build + '/compile_commands.json', encoding='utf-8') as commands:
        return {os.path.realpath(f'{build}/{entry["file"]}'): f'{build}/{entry["output"]}' for entry in json.load(commands)
                if entry['output'].startswith(('lockcore/', 'tests/world/libworld', 'tests/sim/sim.p/'))}


class Works:
    """The compiled files, in one temporary directory. `units`: tests with a main() of their own,
    as paths from the root of the repository. `build`: a build directory whose objects are taken."""

    def __init__(self, directory, units, build=None):
        self.directory, self.built = directory, built_objects(build) if build else {}
        self.unit_paths = [f'{ROOT}/{unit}' for unit in units]
        self.engine, self.simulation, self.units = {}, [], {}
        self.world, self.port = directory + '/libworld.a', directory + '/libport.a'

    def build(self, pool):
        engine = engine_sources()
        simulation = [path for path in find('tests/sim/*.c') if not stem(path).startswith('test_')]
        world = [path for path in find('tests/world/*.c') if stem(path) != 'test_world'] + \
            find('tests/layer/rig.c') + find('tests/layer/takers.c')
        port = port_sources() + find('tests/layer/client.c')
        needed = engine + simulation + world + port + self.unit_paths
        todo = {path: pool.submit(compile_file, path, f'{self.directory}/{i}-{stem(path)}.o')
                for i, path in enumerate(needed) if path not in self.built}
        objects = {**self.built, **{path: future.result() for path, future in todo.items()}}
        self.engine = {os.path.basename(path): objects[path] for path in engine}
        self.simulation = [objects[path] for path in simulation]
        self.units = {os.path.relpath(path, ROOT): objects[path] for path in self.unit_paths}
        run(['ar', 'rcs', self.world, *[objects[path] for path in world]])
        run(['ar', 'rcs', self.port, *[objects[path] for path in port]])

    def link(self, unit, replaced, name):
        """Links the simulation, or, if `unit` is not None, that test. `replaced`: other objects for
        some of the engine's files, by the names of these files."""
        program = f'{self.directory}/{name}'
        judge = [self.units[unit]] if unit else self.simulation
        engine = {**self.engine, **replaced}.values()
        wraps = WRAPS if unit and unit.startswith('tests/layer/') and stem(unit) != 'port' else []
        done = run([*CC, *wraps, '-o', program, *judge, *engine, self.world, self.port, '-lcmocka', '-lmd'])
        if done.returncode:
            raise RuntimeError(f'{name} does not link:\n{done.stdout}')
        return program
