# SPDX-License-Identifier: MIT
"""fs/ for mutate.py: the daemon and the unit tests of its files, compiled once and linked again with
one file replaced; and what a mutant has to pass, cases of tests/mount among it.

A mutant can do anything that root may, such as kill whoever it takes for a loser. So whatever runs it
is in a PID namespace of its own, which ends with it, and in a mount namespace."""

import os
import re
import signal
import sys
import threading

from works import CC, ROOT, compile_file, find, is_of_engine, read, run, stem

sys.path.insert(0, ROOT + '/tests/mount')
import harness  # noqa: E402

FLAGS = ['-DZKLOCKFS_VERSION="0"', '-DZKLOCKFS_WATCHDOG=250', '-DZKLOCKFS_CHECK_RECORDS',
         *run(['pkg-config', '--cflags', 'fuse3']).stdout.split(), f'-I{ROOT}/fs']
LIBRARIES = ['-lfuse3', '-lzookeeper_st', '-lcmocka', '-lmd']

# The cases for a mutant of a room: those that try most of it in a second come first; and behind them
# those for a mutant of a file, which need longer, or are no use for other files.
CASES = {place: names.split() for place, names in {
    'fs/daemon/check.c': 'daemon/check_option daemon/check_unit daemon/user_mount',
    'fs/daemon/contact.c': 'ensemble/contact_told take/log_takes',
    'fs/daemon/loop.c': 'lost/paused ensemble/unusable',
    'fs/daemon/main.c': 'ensemble/tick_time daemon/daemon daemon/check_option ensemble/credentials',
    'fs/daemon/reload.c': 'survive/reload_options',
    'fs/files/ops.c': 'survive/remembered',
    'fs/files/sweep.c': 'show/looked_through',
    'fs/files/value.c': 'users/budget_of_requests',
    'fs/guard/guardian.c': 'survive/helpers_killed',
    'fs/guard/look.c': 'take/descriptor_hidden',
    'fs/guard/trial.c': 'lost/on_lost_unseen',
    'fs/host/log.c': 'daemon/check_option',
    'fs/host/subuid.c': 'users/subordinate',
    'fs/request/inbox.c': 'lost/paused',
    'fs/request/open_file.c': 'show/history',
    'fs/request/parked.c': 'survive/crash_answers',
    'fs/request/request.c': 'survive/crash_answers',
    'fs/setup/covers.c': 'daemon/covered',
    'fs/setup/mountpoint.c': 'daemon/sigterm',
    'fs/setup/ready.c': 'survive/supervisor',
    'daemon': """take/two_mounts survive/reload survive/reload_refused daemon/trace daemon/bad_arguments daemon/sigterm
        show/status show/metrics survive/remembered users/users_in_turn ensemble/server_restart
        survive/reload_on_lost ensemble/retry
        survive/crash_answers daemon/sigterm_twice daemon/unmount daemon/drain""",
    'files': """take/open_flags flock/fcntl_calls flock/flock_calls show/directory show/holder show/locks_file
        show/queue_entry show/queue_listing users/value users/value_unseen queue/lock_names queue/nothing_else take/fsync
        take/timed_names show/history queue/mkdir_rmdir users/chown users/ownership users/authority take/slots_file
        show/metrics users/chmod queue/evict survive/reload""",
    'guard': """take/two_mounts lost/on_lost_full flock/flock_on_lost lost/innocent lost/next_mount
        lost/lost_before_handover survive/reload_on_lost lost/on_lost_given lost/on_lost""",
    'hold': """take/two_mounts take/shared take/try_lock_file take/last_close flock/flock_calls flock/fcntl_calls take/mapped
        take/reason take/reentrant take/try_after_close take/interrupted take/killed_waiter flock/flock_refused
        flock/flock_interrupted take/fencing_token take/watches take/opener_gone take/reentrant_family survive/reload
        take/linger take/log_takes show/history take/ahead take/timed_names lost/lease_over
        lost/suspended survive/reload_on_lost flock/upgrade_kept flock/flock_lost
        users/invisible""",
    'host': """take/two_mounts take/reentrant take/reentrant_family users/invisible show/history daemon/daemon take/linger
        daemon/bad_arguments survive/reload users/budget take/log_takes take/timed_names lost/suspended lost/paused
        daemon/sigterm""",
    'request': """take/two_mounts take/interrupted flock/fcntl_calls flock/flock_interrupted take/killed_waiter
        take/opener_gone take/watches daemon/trace take/poll survive/reload users/users_in_turn queue/mkdir_rmdir users/budget
        users/chmod
        daemon/drain""",
    'setup': """daemon/version_and_help daemon/bad_arguments daemon/mount_point ensemble/ipv6
        ensemble/root_node ensemble/hung_names ensemble/credentials daemon/check_option survive/reload daemon/dead_mount
        ensemble/server_restart ensemble/server_list ensemble/servers_tried ensemble/retry ensemble/unusable
        ensemble/tick_time""",
    'store': """take/two_mounts survive/reload survive/reload_refused survive/crash_answers survive/remembered
        survive/helpers_killed""",
    'tree': """show/directory show/locks_file show/queue_entry show/queue_listing show/holder show/history take/timed_names
        queue/lock_names users/value users/ownership queue/mkdir_rmdir queue/removed_lock survive/reload show/metrics
        show/status take/slots_file users/chmod""",
}.items()}


def sources():
    return find('fs/**/*.c')


def with_servers(count, function):
    """Calls function(ports) beside so many ZooKeeper servers, and ends the program."""
    def test(case):
        signal.alarm(0)
        servers = [case.server(tick_ms=harness.LENT_TICK_MS) for _ in range(count)]
        function([server.port for server in servers])
        for server in servers:
            server.stop()
    harness.run(test)


def alone(*command, crowd=False):
    """The command in a PID namespace. Its first process is none of the test's: for the daemon it is a
    parent that tells nothing. A mutant may fork without end: a test without a `crowd` gets few processes,
    where such a limit is of the namespace alone."""
    few = not crowd and tuple(map(int, os.uname().release.split('.')[:2])) >= (6, 14)
    return ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc', 'sh', '-c',
            ('echo 2000 >/proc/sys/kernel/pid_max; ' if few else '') + '"$@"; exit $?', 'sh', *command]


class Frontend:
    flags = FLAGS

    def __init__(self, directory, ports):
        """`ports`: of servers that the cases borrow, one for each thread that calls steps()."""
        for place in CASES:
            if not os.path.exists(f'{ROOT}/{place if "/" in place else "fs/" + place}'):
                raise RuntimeError(f'CASES is out of date: there is no {place}')
        self.directory, self.ports, self.mine = directory, iter(ports), threading.local()
        self.objects, self.engine, self.tests = {}, [], {}
        # Of each unit test, the files of fs/ that are linked to it: known when it is built.
        self.parts = {name: set() for name in map(stem, find('tests/unit/*.c'))
                      if name != 'zklock' and not is_of_engine(f'{ROOT}/tests/unit/{name}.c')}

    def build(self, pool):
        todo = {path: pool.submit(compile_file, path, f'{self.directory}/{i}-{stem(path)}.o', flags=FLAGS)
                for i, path in enumerate(sources() + find('lockcore/**/*.c') +
                                         [f'{ROOT}/tests/unit/{name}.c' for name in self.parts])}
        objects = {os.path.relpath(path, ROOT): future.result() for path, future in todo.items()}
        self.objects = {name: file for name, file in objects.items() if name.startswith('fs/')}
        self.engine = [file for name, file in objects.items() if name.startswith('lockcore/')]
        self.tests = {name: objects[f'tests/unit/{name}.c'] for name in self.parts}
        run(['ar', 'rcs', self.directory + '/libengine.a', *self.engine])
        members = {os.path.basename(file): name for name, file in self.objects.items()}
        run(['ar', 'rcs', self.directory + '/libparts.a',
             *(file for name, file in self.objects.items() if name != 'fs/daemon/main.c')])
        for name in self.parts:
            listed = run([*CC, '-Wl,-t,-t', '-o', self.directory + '/traced', self.tests[name], *self.libraries()])
            self.parts[name] = {members[member] for member in re.findall(r'libparts\.a\)?\(?([\w-]+\.o)', listed.stdout)}
            if not self.parts[name]:
                raise RuntimeError(f'of {name} no parts are known:\n{listed.stdout}')

    def libraries(self):
        return [self.directory + '/libparts.a', self.directory + '/libengine.a', *LIBRARIES]

    def link(self, unit, replaced, name):
        """Links the daemon, or that unit test. What is replaced comes before the library that has it, too."""
        program = f'{self.directory}/{name}'
        own = [self.tests[unit], *replaced.values()] if unit else {**self.objects, **replaced}.values()
        done = run([*CC, '-o', program, *own, *self.libraries()])
        if done.returncode:
            raise RuntimeError(f'{name} does not link:\n{done.stdout}')
        return program

    def steps(self, files, replaced, name):
        """(what, command, environment) of each test for a mutant of these files. A step is to be done
        before the next one is asked for."""
        for unit, parts in self.parts.items():
            if files & parts:
                yield f'unit {unit}', alone(self.link(unit, replaced, name)), {}
        program = self.link(None, replaced, name)
        if not hasattr(self.mine, 'port'):
            self.mine.port = next(self.ports)
        places = [*sorted({file.split('/')[1] for file in files}), *sorted(files)]
        for case in dict.fromkeys(case for place in places for case in CASES.get(place, ())):
            path = f'{ROOT}/tests/mount/{case}.py'
            own = re.search(r'server\.(stop|freeze|credentials)\b', read(path))
            yield case, alone('python3', path, crowd=True), {
                'ZKLOCKFS': program, 'PYTHONPATH': ROOT + '/tests/mount', 'PYTHONDONTWRITEBYTECODE': '1',
                'ZKLOCKFS_SLOWNESS': os.environ.get('ZKLOCKFS_SLOWNESS', '0.4'), 'ZKLOCKFS_CASE_SECONDS': '100',
                **({} if own else {harness.LENT: str(self.mine.port)})}
