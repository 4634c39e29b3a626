#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""util-linux flock(1) on the lock file `flock`, unchanged: -n -w -E -s -x -o -u -c -F, on the
file and on a descriptor that a shell has open, between two mounts."""

import subprocess

from harness import Stopwatch, check, check_equal, command, run, shells, spawn, until

# The recommended lines for scripts, with a status of its own for a busy lock.
SCRIPT = '''
exec 9<>"$1" || exit 71
flock -n -E 75 9 || exit
read -r token <&9 || exit 74
case $token in ''|*[!0-9]*) exit 73;; esac
echo "by a script" >&9 || exit 72
echo "$token"
read -r line
flock -u 9
read -r line <&9 && exit 70
exit 0
'''


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    a.mkdir('build')
    until(lambda: 'build' in b.locks(), 'b sees the lock')
    here, there = a.path('build', 'flock'), b.path('build', 'flock')

    def queued(count):
        until(lambda: len(server.entries('build')) == count, f'{count} in the queue')

    def flock(*args):
        return command(['flock', *args])

    def holder(*args):
        """flock(1) with a command that holds until its input ends."""
        process = spawn(['flock', *args, 'sh', '-c', 'echo held; read line; exit 7'],
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        check_equal(process.stdout.readline(), 'held\n', f'flock {args}')
        return process

    def end(process, status=7):
        process.stdin.close()
        check_equal(process.wait(60), status, 'status of the command')

    # On the file: flock(1) ends with the command's status, and no entry stays.
    check_equal(flock(here, 'sh', '-c', 'exit 5')[0], 5, 'status')
    check_equal(flock('-x', here, '-c', 'echo $((6 * 7))')[1], '42\n', '-c')
    check_equal(flock('-F', here, 'sh', '-c', 'exit 4')[0], 4, '-F')
    queued(0)

    # Held on one mount, asked for on both.
    for options in ((), ('-x',), ('-F',)):
        process = holder(*options, here)
        for path in (here, there):
            check_equal(flock('-n', path, 'true')[0], 1, '-n')
            check_equal(flock('-n', '-s', path, 'true')[0], 1, '-n -s')
            check_equal(flock('-n', '-E', '75', path, 'true')[0], 75, '-E')
            watch = Stopwatch()
            check_equal(flock('-w', '0.3', '-E', '76', path, 'true')[0], 76, '-w')
            watch.check(0.3, 3, 'flock -w 0.3')
        waiter = spawn(['flock', '-w', '60', there, 'echo', 'mine'], stdout=subprocess.PIPE, text=True)
        queued(2)
        until(lambda: len(a.queue('build')) == 2, 'the other mount shows the waiter')
        check_equal(a.queue('build')[1].split('-')[2:], [str(waiter.pid), 'b'], 'the waiter')
        end(process)
        check_equal(waiter.communicate(timeout=60), ('mine\n', None), 'the waiter')
        queued(0)

    # Shared.
    readers = [holder('-s', here), holder('-s', there)]
    check_equal(flock('-s', '-n', here, 'true')[0], 0, 'a third one')
    check_equal(flock('-n', there, 'true')[0], 1, 'exclusive beside them')
    writer = spawn(['flock', there, 'echo', 'mine'], stdout=subprocess.PIPE, text=True)
    queued(3)
    check_equal(flock('-s', '-n', here, 'true')[0], 1, 'behind the writer')
    end(readers[0])
    end(readers[1])
    check_equal(writer.communicate(timeout=60)[0], 'mine\n', 'the writer')

    # The command's children keep the lock, unless -o closed it before.
    for option, status in (((), 1), (('-o',), 0)):
        left = spawn(['flock', *option, here, 'sh', '-c', 'sleep 1000 >/dev/null & echo $!'],
                     stdout=subprocess.PIPE, text=True)
        child = int(left.communicate(timeout=60)[0])
        queued(status)      # flock(1) may have ended a moment before
        check_equal(flock('-n', there, 'true')[0], status, f'a child left behind, {option}')
        command(['kill', '-9', str(child)])
        queued(0)

    # On a descriptor: taken by flock(1), which ends, for the shell, which stays.
    for shell in shells():
        first = spawn([*shell, '-c', SCRIPT, 'script', here], stdin=subprocess.PIPE,
                      stdout=subprocess.PIPE, text=True)
        token = int(first.stdout.readline())
        check(token > 0, 'the token')
        entry = a.queue('build')[0]
        check_equal(entry.split('-')[2], str(first.pid), f'{shell}: the holder is the shell')
        until(lambda: 'by a script' in b.read('build', 'holder'), 'the reason')
        for path in (here, there):
            check_equal(command([*shell, '-c', SCRIPT, 'script', path])[0], 75, f'{shell}: busy')
        check_equal(flock('-n', there, 'true')[0], 1, f'{shell}: flock FILE meanwhile')
        first.communicate('\n', timeout=60)
        check_equal(first.returncode, 0, f'{shell}: after the unlock')
        queued(0)

    # The end of the shell gives the lock back at once.
    first = spawn(['bash', '-c', SCRIPT, 'script', there], stdin=subprocess.PIPE,
                  stdout=subprocess.PIPE, text=True)
    first.stdout.readline()
    waiter = spawn(['flock', here, 'echo', 'mine'], stdout=subprocess.PIPE, text=True)
    queued(2)
    watch = Stopwatch()
    first.kill()
    check_equal(waiter.communicate(timeout=60)[0], 'mine\n', 'the next one')
    watch.check(0, 2, 'after kill -9')

    # The wrong file of the lock.
    check(flock('-n', a.path('build', 'try'), 'true')[0] != 0, 'flock(1) on another lock file')


run(test)
