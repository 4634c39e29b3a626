#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""zklock(1) and signals: ^C while it waits and while it runs, what is passed on, the status
that is passed through; terminals, no terminal, and standard files that are closed."""

import os
import signal

from gate import Gate, finished, queued
from harness import check, check_equal, command, run, until
from locking import ZKLOCK, Terminal, check_run, children, environment, free, start

SAY = 'trap "echo caught {0}; exit 5" {0}; echo started; while :; do sleep 1 & wait; done'


def waiting(a, b):
    """A signal ends it as it ends any command, and nothing is left in any queue."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        holder = b.take('svcb').held()
        process = start(a, '-w', '10m', 'svca', 'svcb', '--', 'echo', 'ran')
        queued(a, 'svcb', 2)
        process.send_signal(number)
        check_equal(finished(process, -number, f'{number} while it waits'), ('', ''), 'not a word')
        queued(b, 'svcb', 1)
        free(b, 'svca')
        holder.release()
    # What was ignored stays so: nohup.
    holder = b.take('svcb').held()
    process = start(a, 'svcb', '--', 'sh', '-c', 'kill -HUP $$; exit 6', prefix=['env', '--ignore-signal=HUP'])
    queued(a, 'svcb', 2)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGCONT)     # stopped and continued, it keeps its place
    holder.release()
    finished(process, 6, 'nohup')


def first(a, b):
    """Process 1 of a container ends by a signal as every process, also while it waits."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        holder = b.take('svcb').held()
        waits = start(a, 'svca', 'svcb', '--', 'echo', 'ran', prefix=['unshare', '-pf', '--mount-proc'])
        closed = start(a, '-o', 'svcb', '--', 'echo', 'ran', prefix=['unshare', '-pf', '--mount-proc'])
        queued(a, 'svcb', 3)
        for process in waits, closed:
            os.kill(int(children(process.pid)[0]), number)
            check_equal(finished(process, 128 + number, f'{number} while process 1 waits'), ('', ''), 'not a word')
        queued(b, 'svcb', 1)
        free(b, 'svca')
        holder.release()
        process = start(a, 'svca', '--', 'sh', '-c', 'echo started; exec sleep 60', prefix=['unshare', '-pf', '--mount-proc'])
        check_equal(process.stdout.readline(), 'started\n', f'{number}')
        os.kill(int(children(process.pid)[0]), number)
        finished(process, 128 + number, f'{number} while process 1 runs the command')
        free(a, 'svca')


def running(a):
    """What a process sends is passed on, what ends the command ends zklock the same way."""
    for name in ('HUP', 'INT', 'QUIT', 'TERM', 'USR1', 'USR2'):
        process = start(a, 'svca', '--', 'sh', '-c', SAY.format(name))
        check_equal(process.stdout.readline(), 'started\n', name)
        process.send_signal(getattr(signal, 'SIG' + name))
        check_equal(finished(process, 5, name)[0], f'caught {name}\n', name)
    for number in (signal.SIGTERM, signal.SIGINT):
        process = start(a, 'svca', '--', 'sh', '-c', 'echo started; exec sleep 60')
        check_equal(process.stdout.readline(), 'started\n', f'{number}')
        process.send_signal(number)
        finished(process, -number, f'{number} that is not caught')
        free(a, 'svca')
    for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGPIPE):
        process = start(a, 'svca', '--', 'sh', '-c', f'kill -{int(number)} $$')
        finished(process, -number, f'a command that is ended by {number}')
    # Ignored by the caller: still the command's status, and its children can be waited for.
    process = start(a, 'svca', '--', 'sh', '-c', 'sh -c "exit 3"; exit $?', prefix=['env', '--ignore-signal=CHLD'])
    finished(process, 3, 'SIGCHLD ignored')
    # The command starts with the signals as the caller has them.
    show = ['sh', '-c', 'grep -E "^Sig(Blk|Ign|Cgt)" /proc/self/status']
    wanted = command(show)[1]
    check_equal(check_run(a, ['-w', '5', 'svca', '--', *show], 0, 'signals of the command'), wanted, 'signals')


def stopped(session):
    """Whether all processes of the session but its first are stopped."""
    status, out, _ = command(['ps', '-o', 'pid=,stat=', '-s', str(session)])
    others = [line.split()[1] for line in out.splitlines() if int(line.split()[0]) != session]
    return status == 0 and len(others) == 2 and all(state.startswith('T') for state in others)


def terminals(a, b):
    """^C reaches the command once; ^Z stops both and fg goes on; stdin is the command's."""
    terminal = Terminal([ZKLOCK, 'svca', '--', 'sh', '-c',
                         'trap "echo got INT" INT; echo ready; read line; read line; echo line: $line'],
                        environment(a))
    terminal.expect('ready')
    terminal.type('\x03')
    terminal.expect('got INT')
    terminal.type('one\ntwo\n')
    terminal.expect('line: ')
    terminal.end(0, 'a command that reads')
    check_equal(terminal.said.count(b'got INT'), 1, f'^C reaches it once: {terminal.said!r}')

    terminal = Terminal([ZKLOCK, 'svca', '--', 'sh', '-c', 'echo ready; exec sleep 60'], environment(a))
    terminal.expect('ready')
    terminal.type('\x03')
    terminal.end(-signal.SIGINT, '^C while it runs')
    free(a, 'svca')

    # The terminal goes away: of that the leader of the session hears alone, which is zklock here.
    terminal = Terminal([ZKLOCK, 'svca', '--', 'sh', '-c', 'echo ready; exec sleep 60'], environment(a))
    terminal.expect('ready')
    os.close(terminal.fd)
    check_equal(os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1]), -signal.SIGHUP, 'a hang-up')
    free(a, 'svca')

    holder = b.take('svca').held()
    terminal = Terminal([ZKLOCK, '-v', 'svca', '--', 'true'], environment(a))
    queued(a, 'svca', 2)
    terminal.type('\x03')
    terminal.end(-signal.SIGINT, '^C while it waits')
    queued(a, 'svca', 1)
    holder.release()

    # In a shell with job control.
    terminal = Terminal(['bash', '--norc', '--noprofile', '-i'], environment(a, PS1='$ ', TERM='dumb'))
    terminal.expect('$ ')
    terminal.type(f'{ZKLOCK} svca -- sh -c "echo rea\'\'dy; read x; echo re\'\'ad \\$x; exit 4"\n')
    terminal.expect('ready')
    terminal.type('\x1a')
    terminal.expect('Stopped')
    terminal.prompt('Stopped')
    # A process that still reads would take what is typed next.
    until(lambda: stopped(terminal.pid), 'all of it is stopped')
    check_equal(len(a.queue('svca')), 1, 'stopped, and held')
    terminal.said = b''
    terminal.type('fg\n')
    terminal.expect('zklock')
    terminal.type('back\n')
    terminal.expect('read back')
    terminal.prompt('read back')
    terminal.said = b''
    terminal.type('echo status $?\n')
    terminal.expect('status 4')
    terminal.type('exit\n')
    terminal.end(0, 'the shell')


def told(a, b):
    """On a terminal it says whom it waits for, and again when that has changed."""
    holder = b.take('svca').held()
    holder.do('write', b'schema 17\x1b[2J')
    first = start(b, '-r', 'cleaning up', 'svca', '--', 'sleep', '1000')
    queued(a, 'svca', 2)
    [waiter] = until(lambda: children(first.pid), 'the process that waits')
    terminal = Terminal([ZKLOCK, 'svcb', 'svca', '--', 'echo', 'ran'], environment(a), columns=250)
    terminal.expect('svca: waiting for process ' + f'{holder.pid} (python3) on b, which has held it for ')
    terminal.expect('s: schema 17?[2J; 1 before you')
    holder.release()
    terminal.expect(f'svca: waiting for process {waiter} (sleep) on b, which has held it for ')
    terminal.expect('s: cleaning up\r\n')
    check_equal(terminal.said.count(b'schema 17'), 1, 'it is said once')
    first.terminate()
    terminal.end(0, 'a wait on a terminal')
    check(terminal.said.endswith(b'ran\r\n'), f'{terminal.said!r}')
    finished(first, -signal.SIGTERM, 'the holder')
    # Not with -q, and to nobody's mail.
    holder = b.take('svca').held()
    quiet = Terminal([ZKLOCK, '-q', '-w', '2500ms', 'svca', '--', 'true'], environment(a))
    mail = start(a, '-w', '2500ms', '-E', '3', 'svca', '--', 'true')
    quiet.end(75, 'quiet')
    check_equal(quiet.said, b'', '-q')
    check('waiting' not in finished(mail, 3, 'no terminal')[1], 'no terminal')
    holder.release()


def closed_files(gate, a):
    """No lock becomes a standard file, and what is closed stays closed for the command."""
    for redirect in ('<&-', '>&-', '2>&-', '<&- >&- 2>&-'):
        log = a.directory + '.out'
        status, _, _ = command(['sh', '-c', f'"$@" {redirect}', 'sh', ZKLOCK, 'svca', '--', 'sh', '-c',
                                f'{{ echo $ZKLOCK_FD_1; ls -l /proc/$$/fd; }} >{log}'], env=environment(a))
        check_equal(status, 0, redirect)
        with open(log, encoding='utf-8') as lines:
            check(int(lines.readline()) > 2, f'{redirect}: a lock became a standard file')
            found = {line.split()[-3]: line.split()[-1] for line in lines if '->' in line}
        lock_file = a.path('svca', 'flock')
        check(lock_file in found.values(), f'{redirect}: {found}')
        for fd, sign in (('0', '<&-'), ('1', ' >&-'), ('2', '2>&-')):
            if sign in ' ' + redirect:
                check(fd not in found or found[fd] == log, f'{redirect}: {found}')
    # No terminal, no session.
    process = start(a, 'svca', '--', *gate.visitor(), start_new_session=True)
    gate.arrived().let(8)
    finished(process, 8, 'no terminal')
    status, out, err = command(['setsid', '-w', ZKLOCK, 'svca', '--', 'sh', '-c', 'exit 9'], env=environment(a))
    check_equal((status, out, err), (9, '', ''), 'setsid')
    # Output that nobody takes.
    status, _, _ = command(['sh', '-c', '"$@" >/dev/full', 'sh', ZKLOCK, 'ls', 'svca'], env=environment(a))
    check_equal(status, 74, 'ls to a full disk')
    # Input is the command's, to the last byte.
    process = start(a, 'svca', '--', 'cat', stdin=-1)
    out, _ = process.communicate('all of it\n', timeout=60)
    check_equal((process.returncode, out), (0, 'all of it\n'), 'stdin')
    until(lambda: not os.path.exists(f'/proc/{process.pid}'), 'it has ended')


def test(case):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)   # nohup(1) ignores it
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    for name in ('svca', 'svcb'):
        a.mkdir(name)
    gate = Gate(case)
    waiting(a, b)
    first(a, b)
    running(a)
    terminals(a, b)
    told(a, b)
    closed_files(gate, a)


run(test)
