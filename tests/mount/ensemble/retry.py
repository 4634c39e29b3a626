#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The mount command goes on trying for the time of -o retry=: until a name has an address, and
until a server answers. An answer of an ensemble is final, and so is every failure after that."""

import signal

from harness import Stopwatch, ZKLOCKFS, besides_usual, check, check_equal, command, mounted, run, spawn, until


def test(case):
    server = case.server()
    point = case.mount_point()
    source = f'zookeeper-of-the-test:{server.port}'
    case.hosts('')

    def refused(least, most, word, *args):
        watch = Stopwatch()
        status, _, err = besides_usual(command([ZKLOCKFS, *args, point]))
        check_equal(status, 32, f'{args}: {err}')
        check(err.count('\n') == 1 and word in err, f'stderr of {args}: {err!r}')
        check(mounted(point) is None, f'{args} left a mount')
        watch.check(least, most, err.strip())

    refused(0, 2, 'zookeeper-of-the-test: ', source)
    refused(1, 4, 'zookeeper-of-the-test: ', '-o', 'retry=1s', source)
    refused(0, 2, '-o mkroot', '-o', 'retry=1h', f'127.0.0.1:{server.port}/elsewhere')

    # First the name is unknown, then no server answers there, then the server is up.
    server.stop()
    process = spawn([ZKLOCKFS, '-o', 'retry=1m,connect_timeout=1s', source, point])
    watch = Stopwatch()
    until(lambda: watch.seconds() > 1.5, 'it has looked twice')
    check(process.poll() is None, 'it gave up the name')
    case.hosts('127.0.0.1 zookeeper-of-the-test\n')
    watch = Stopwatch()
    until(lambda: watch.seconds() > 2, 'it has tried')
    check(process.poll() is None, 'it gave up the server')
    server.start()
    check_equal(process.wait(60), 0, 'exit status')
    check(mounted(point), 'not mounted')
    check_equal(command(['fusermount3', '-u', point])[0], 0, 'umount')
    until(lambda: not case.daemons(), 'the daemon ends')

    # ^C at the command, or a time limit of whoever runs it: nothing is mounted later.
    server.stop()
    for number in (signal.SIGINT, signal.SIGKILL):
        process = spawn([ZKLOCKFS, '-o', 'retry=1h,connect_timeout=1s', source, point])
        until(lambda: len(case.daemons()) == 2, 'it tries')
        process.send_signal(number)
        check_equal(process.wait(), -number, 'the command')
        until(lambda: not case.daemons(), 'nobody goes on trying')

    refused(1, 4, 'no ZooKeeper server answered', '-o', 'retry=1500ms,connect_timeout=100ms', source)
    server.start()


run(test)
