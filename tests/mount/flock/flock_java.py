#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Java's FileChannel.lock() and tryLock() on the lock file `flock`, against flock(1) and the other
lock files, between two mounts."""

import errno
import os
import subprocess

from harness import check, check_equal, check_errno, command, run, spawn, until


class Java:
    def __init__(self, path):
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'FlockJava.java')
        self.process = spawn(['java', '-XX:TieredStopAtLevel=1', '-XX:-UsePerfData', source, path],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, command):
        self.process.stdin.write(command + '\n')
        self.process.stdin.flush()

    def answer(self):
        return self.process.stdout.readline().strip()

    def do(self, command):
        self.ask(command)
        return self.answer()


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    a.mkdir('build')
    until(lambda: 'build' in b.locks(), 'b sees the lock')

    def queued(count):
        until(lambda: len(server.entries('build')) == count, f'{count} in the queue')

    p, q = Java(a.path('build', 'flock')), Java(b.path('build', 'flock'))
    check_equal(p.do('lock'), 'valid', 'lock()')
    check_equal(a.queue('build')[0].split('-')[1:3], ['exclusive', str(p.process.pid)], 'the entry')
    check_equal(p.do('write'), 'valid', 'the reason')
    token = int(p.do('read').split()[1])
    until(lambda: 'from java' in b.read('build', 'holder'), 'the reason')
    check_equal(q.do('try'), 'busy', 'tryLock()')
    for mount in (a, b):
        check_equal(command(['flock', '-n', mount.path('build', 'flock'), 'true'])[0], 1, 'flock(1)')
        check_errno(errno.EAGAIN, os.open, mount.path('build', 'try'), os.O_RDWR)
    q.ask('lock')
    queued(2)
    check_equal(p.do('release'), 'free', 'release()')
    check_equal(q.answer(), 'valid', 'the next one')
    check(int(q.do('read').split()[1]) > token, 'the token rises')
    p.ask('lock')
    queued(2)
    q.process.kill()
    check_equal(p.answer(), 'valid', 'after kill -9')
    check_equal(p.do('release'), 'free', 'release()')

    q = Java(b.path('build', 'flock'))
    check_equal((p.do('shared'), q.do('shared')), ('valid', 'valid'), 'two that share')
    check_equal(command(['flock', '-n', a.path('build', 'flock'), 'true'])[0], 1, 'flock(1)')
    check_equal(command(['flock', '-sn', a.path('build', 'flock'), 'true'])[0], 0, 'flock(1) -s')
    check_equal(p.do('release'), 'free', 'release()')
    check_equal(q.do('release'), 'free', 'release()')
    queued(0)
    check_equal(p.do('byte'), 'valid', 'the first byte, as ActiveMQ locks it')
    check_equal((q.do('byte'), q.do('try')), ('busy', 'busy'), 'the whole file')
    check_equal(p.do('release'), 'free', 'release()')
    queued(0)
    check(p.do('part').startswith('error: Invalid argument'), 'a part of the file')
    check_equal(p.do('try'), 'valid', 'tryLock()')
    for java in (p, q):
        java.process.stdin.close()
        check_equal(java.process.wait(60), 0, 'how java ended')
    queued(0)


run(test)
