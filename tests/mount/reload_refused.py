#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A reload that cannot be: the program that stands there now is missing, is none, crashes, or does
not like what it is to take over. The old one goes on, says why, and nobody notices. No state,
however broken, makes the new one do anything but say no."""

import os
import random
import shutil
import signal
import struct

from harness import ZKLOCKFS, check, check_equal, command, run, until

HEAD = struct.Struct('<QQQQ')    # magic, version, length, sum

SCRIPTS = {
    'says nothing': 'exit 0',
    'does not like it': 'echo it is of another time; exit 1',
    'crashes': 'kill -SEGV $$',
    'second time no': 'test -e "$0.once" && exit 1; touch "$0.once"; echo zklockfs takes over',
    'no exec': 'test -e "$0.twice" && chmod 0 "$0"; touch "$0.twice"; echo zklockfs takes over',
    'copies': 'cat /proc/self/fd/3 >"$0.state"; printf "%s\\n" "$@" >"$0.args"; exit 1',
}


def sum_of(data):
    """FNV-1a, of 8 bytes at a time."""
    total = 0xcbf29ce484222325
    data = bytes(data) + bytes(-len(data) % 8)
    for number, in struct.iter_unpack('<Q', data):
        total = (total ^ number) * 0x100000001b3 & (1 << 64) - 1
    return total


def sealed(state, body, version=None):
    magic, written, _, _ = HEAD.unpack_from(state)
    return HEAD.pack(magic, version or written, HEAD.size + len(body), sum_of(body)) + bytes(body)


class Checker:
    def __init__(self, case, args):
        self.path = os.path.join(case.directory, 'state')
        self.args = args

    def status(self, state):
        with open(self.path, 'wb') as file:
            file.write(state)
        fd = os.open(self.path, os.O_RDONLY)
        status, out, err = command([ZKLOCKFS, f'--check-state={fd}', *self.args], pass_fds=[fd])
        os.close(fd)
        check(status in (0, 1), f'status {status} of a check: {out} {err}')
        check_equal(status == 0, out.startswith('zklockfs '), f'what is said: {out}')
        return status, out


def hostile(checker, state):
    body = state[HEAD.size:]
    dice = random.Random(13)
    check_equal(checker.status(state)[0], 0, 'a good state')
    check('another version' in checker.status(sealed(state, body, 4711))[1], 'another version')
    check('damaged' in checker.status(state[:-1] + bytes([state[-1] ^ 1]))[1], 'a damaged state')
    for length in (0, 1, HEAD.size, len(state) // 2, len(state) - 1):
        check_equal(checker.status(state[:length])[0], 1, f'{length} bytes of a state')
    check_equal(checker.status(state + b'\0')[0], 1, 'a state that goes on')
    for _ in range(20):
        length = dice.randrange(len(body))
        check_equal(checker.status(sealed(state, body[:length]))[0], 1, 'a part of a state')
    for _ in range(100):    # some of them are good
        broken = bytearray(body)
        for _ in range(dice.randrange(1, 4)):
            place = dice.randrange(len(broken) // 8) * 8
            number = dice.choice((0, -1, 1, 1 << 62, -1 << 63, dice.randrange(1 << 32), 255))
            broken[place:place + 8] = struct.pack('<q', number)
        checker.status(sealed(state, broken))


def test(case):
    server = case.server()
    program = os.path.join(case.directory, 'zklockfs')
    shutil.copy(ZKLOCKFS, program)
    mount = case.mount(server, program=program, options=['on_lost=kill'])
    mount.allow('no reload')
    mount.mkdir('build')
    mount.mkdir('file')
    holder = mount.take('build').held()
    token = holder.token()
    waiter = mount.take('build')
    until(lambda: len(server.entries('build')) == 2, 'the waiter queues')
    names = os.scandir(mount.directory)
    next(names)
    locks = os.open(mount.path('.zklockfs', 'locks'), os.O_RDONLY)
    os.read(locks, 8)

    def refused(what):
        lines = mount.log().count('no reload')
        os.kill(mount.process.pid, signal.SIGUSR2)
        until(lambda: mount.log().count('no reload') > lines, f'{what}: the log says why')
        check_equal(holder.token(), token, f'{what}: the token')
        os.mkdir(mount.path(what))
        check(not waiter.answered(), f'{what}: the waiter')
        return mount.log().splitlines()[-1]

    os.rename(program, program + '.away')
    check('No such file' in refused('missing'), 'why: missing')
    os.mkdir(program)
    refused('a directory')
    os.rmdir(program)
    for what, text in SCRIPTS.items():
        with open(program + '.new', 'w', encoding='ascii') as file:
            file.write(f'#!/bin/sh\n{text}\n')
        os.chmod(program + '.new', 0o755)
        os.rename(program + '.new', program)
        line = refused(what)
        print(line)
    os.chmod(program, 0o644)
    check('Permission denied' in refused('not executable'), 'why: not executable')

    with open(program + '.state', 'rb') as file:
        state = file.read()
    with open(program + '.args', encoding='ascii') as file:
        hostile(Checker(case, file.read().splitlines()[1:]), state)

    os.rename(program + '.away', program)
    mount.reload()
    check_equal(holder.token(), token, 'the token after a reload')
    check_equal(server.entries('build')[1:], [name for name in server.entries('build')
                                              if f'.{waiter.pid}-' in name], 'the queue')
    holder.release()
    waiter.held().release()
    os.close(locks)
    check_equal(mount.metric('reloads_total'), 1, 'reloads')


run(test)
