#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""zklock(1) in surroundings that nobody expects: an environment of odd strings, or of systemd, a standard error
that takes nothing, limits of file sizes, a /proc without lists of children."""

import ctypes
import fcntl
import os
import sys

from gate import Gate, finished
from harness import check, check_equal, command, libc, run
from locking import ZKLOCK, alive, entries, environment, evict, free, start

MS_BIND = 0x1000


def odd_environment(a):
    """A string without `=` is nobody's variable, and was not removed for ever."""
    libc.execve.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p), ctypes.POINTER(ctypes.c_char_p)]
    odd = ['ZKLOCK_X', 'ZKLOCK_' + 'y' * 100 + '=1', 'ZKLOCK_TOKEN_7=1', 'OTHER', 'KEPT=2']
    environ = [f'{name}={value}' for name, value in environment(a).items()] + odd
    words = [ZKLOCK, 'svca', '--', 'sh', '-c', 'tr "\\0" "\\n" </proc/$$/environ']
    def vector(strings):
        return (ctypes.c_char_p * (len(strings) + 1))(*[string.encode() for string in strings], None)
    into, out_of = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.dup2(out_of, 1)
        libc.execve(ZKLOCK.encode(), vector(words), vector(environ))
        os._exit(99)
    os.close(out_of)
    with open(into, encoding='utf-8', errors='replace') as lines:
        found = lines.read().splitlines()
    check_equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, 'an odd environment')
    left = sorted(line.split('=')[0] for line in found if line.startswith('ZKLOCK_'))
    check_equal(left, ['ZKLOCK_FD_1', 'ZKLOCK_NAME_1', 'ZKLOCK_TOKEN', 'ZKLOCK_TOKEN_1'], 'its own variables')
    check('KEPT=2' in found, 'a variable of others')


def activated(case, a):
    """A service that systemd activates has its sockets and its watchdog also below zklock."""
    given = case.directory + '/given'
    with open(given, 'w', encoding='ascii') as file:
        file.write('socket\n')
    by_systemd = ['sh', '-c', 'export LISTEN_FDS=1 LISTEN_PIDFDID=7 "LISTEN_PID=$(($$ + $1))" "WATCHDOG_PID=$(($$ + $1))"; '
                  'given=$2; shift 2; exec "$@" 3<"$given"', 'sh']
    show = ['sh', '-c', 'echo "$(($LISTEN_PID - $$)) $(($WATCHDOG_PID - $$)) $LISTEN_FDS ${LISTEN_PIDFDID-none}"; cat <&3']
    for close in [], ['-o']:
        status, out, err = command([*by_systemd, '0', given, ZKLOCK, *close, 'svca', '--', *show], env=environment(a))
        check_equal((status, out, err), (0, '0 0 1 none\nsocket\n', ''), f'activated {close}')
    # What is meant for another process stays as it is.
    others = ['sh', '-c', 'echo "$LISTEN_PID $WATCHDOG_PID $LISTEN_PIDFDID"']
    status, out, _ = command([ZKLOCK, 'svca', '--', *others],
                             env=environment(a, LISTEN_PID='1', WATCHDOG_PID='1', LISTEN_PIDFDID='7'))
    check_equal((status, out), (0, '1 1 7\n'), "another's")


def full_pipe():
    """Both ends, and nothing more goes in."""
    out, into = os.pipe()
    fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, 4096)
    fcntl.fcntl(into, fcntl.F_SETFL, os.O_NONBLOCK)
    try:
        while True:
            os.write(into, b'x' * 4096)
    except BlockingIOError:
        fcntl.fcntl(into, fcntl.F_SETFL, 0)
    return out, into


def closed_pipe():
    out, into = os.pipe()
    os.close(out)
    return None, into


def deaf(gate, a, b):
    """Nobody hears what it says: the command is stopped all the same, and all of it."""
    for what, make in (('a full pipe', full_pipe), ('a closed pipe', closed_pipe),
                       ('/dev/full', lambda: (None, os.open('/dev/full', os.O_WRONLY)))):
        out, into = make()
        process = start(a, '-v', '-k', '200ms', 'svca', 'svcb', '--', 'sh', '-c', 'trap "" TERM; "$@"', 'sh', *gate.visitor(),
                        stderr=into)
        visitor = gate.arrived()
        evict(b, 'svcb', process)
        visitor.gone()
        finished(process, 74, what)
        free(b, 'svca')
        # In the end, too; and a command that is not there.
        for words, status in ((['--at-most', '1ms', 'svca', '--', 'sleep', '60'], 124),
                              (['svca', '--', 'no-such-command'], 127)):
            finished(start(a, *words, stderr=into), status, f'{what}: {words}')
        # Its status, and not the signal of a pipe.
        holder = b.take('svca').held()
        if out is None:
            finished(start(a, '-n', 'svca', '--', 'true', stderr=into), 75, what)
        holder.release()
        free(a, 'svca')
        for fd in (out, into):
            if fd is not None:
                os.close(fd)


def small_files(gate, a, b):
    """ulimit -f: no file may grow. The lock is worth more than its reason."""
    limited = ['sh', '-c', 'ulimit -f 0; exec "$@"', 'sh']
    process = start(a, '-r', 'y' * 300, '--at-least', '1s', 'svca', '--', *gate.visitor(), prefix=limited)
    visitor = gate.arrived()
    check_equal(entries(b, 'svca')[0]['reason'], '-', 'no reason')
    visitor.let(3)
    _, err = finished(process, 3, 'ulimit -f 0')
    check_equal(err.count('others do not see the reason: File too large'), 1, f'it says so: {err}')
    free(b, 'svca')
    # The command has the limit, and the signal as it was.
    status, out, _ = command([*limited, ZKLOCK, 'svca', '--', 'sh', '-c', 'ulimit -f; echo x >"$0"; echo $?',
                              a.directory + '.new'], env=environment(a))
    check_equal((status, out.split()[0]), (-25 if len(out.split()) == 1 else 0, '0'), f'its limit: {out}')
    process = start(a, 'svca', '--', 'sh', '-c', 'kill -XFSZ $$')
    finished(process, -25, 'SIGXFSZ')


def no_children(gate, a, b):
    """Kernels without CONFIG_PROC_CHILDREN: all that the command has started is stopped."""
    process = start(a, '-k', '0', 'svca', '--', 'sh', '-c', '"$@" & wait', 'sh', 'sh', '-c', '"$@"; :', 'sh', *gate.visitor())
    visitor = gate.arrived()
    for pid in (process.pid, *children_of(process.pid)):
        lists = f'/proc/{pid}/task/{pid}/children'.encode()
        check_equal(libc.mount(b'/dev/null', lists, None, MS_BIND, None), 0, 'an empty list')
    evict(b, 'svca')
    visitor.gone()
    finished(process, 74, 'no lists of children')
    check(not alive(visitor.pid), 'a child of a child')


def children_of(pid):
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as children:
        found = [int(child) for child in children.read().split()]
    return found + [below for child in found for below in children_of(child)]


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    for mount in (a, b):
        mount.allow('.')
    for name in ('svca', 'svcb'):
        a.mkdir(name)
    gate = Gate(case)
    odd_environment(a)
    activated(case, a)
    deaf(gate, a, b)
    small_files(gate, a, b)
    no_children(gate, a, b)


run(test)
