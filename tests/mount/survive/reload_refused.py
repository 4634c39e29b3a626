#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A reload that is not possible: the new program is missing, is not a program, crashes, or refuses
the state. The old one goes on, says why, and no user notices. A broken state never crashes the new
program. A mount without a supervisor asks twice."""

import fcntl
import os
import random
import shutil
import signal
import struct

from harness import ZKLOCKFS, check, check_equal, command, run, spawn, until, write_program

HALF = 256 << 20
REQUESTS = 16 << 20
HEAD = 4096
SIZE = HEAD + REQUESTS + 2 * HALF
COMMIT = 64                         # the place in the head
BATCH = struct.Struct('<QQQQ')      # sum, length, number, bytes of answers
F_ADD_SEALS = 1033
SEALS = 0x1 | 0x2 | 0x4             # F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW

SCRIPTS = {
    'says nothing': 'exit 0',
    'does not like it': 'echo it is of another time; exit 1',
    'crashes': 'kill -SEGV $$',
    'second time no': 'test -e "$0.once" && exit 1; touch "$0.once"; echo zklockfs takes over',
    'no exec': 'test -e "$0.twice" && chmod 0 "$0"; touch "$0.twice"; echo zklockfs takes over',
    'copies': 'cp --sparse=always /proc/self/fd/3 "$0.state"; printf "%s\\n" "$@" >"$0.args"; exit 1',
}


def sum_of(data):
    """FNV-1a, by 8 bytes at a time."""
    total = 0xcbf29ce484222325
    data = bytes(data) + bytes(-len(data) % 8)
    for number, in struct.iter_unpack('<Q', data):
        total = (total ^ number) * 0x100000001b3 & (1 << 64) - 1
    return total


class State:
    """The state that a daemon leaves: see fs/store/journal.c."""

    def __init__(self, path):
        with open(path, 'rb') as file:
            check_equal(os.fstat(file.fileno()).st_size, SIZE, 'the size of a state')
            self.head = bytearray(file.read(HEAD))
            word, = struct.unpack_from('<Q', self.head, COMMIT)
            self.number = word >> 32
            self.length = (word & (1 << 31) - 1) * 8
            file.seek(HEAD + REQUESTS + (HALF if word >> 31 & 1 else 0))
            self.log = file.read(self.length)

    def places(self):
        """The places of all bytes that are not in the head of a batch."""
        at = 0
        while at < len(self.log):
            length = BATCH.unpack_from(self.log, at)[1]
            yield from range(at + BATCH.size, at + length)
            at += length

    def summed(self, log):
        log, at = bytearray(log), 0
        while at < len(log):
            length = BATCH.unpack_from(log, at)[1]
            struct.pack_into('<Q', log, at, sum_of(log[at + 8:at + length]))
            at += length
        return log

    def memory(self, log=None, length=None, version=None, size=SIZE, seals=SEALS):
        log = self.log if log is None else log
        head = bytearray(self.head)
        word = self.number << 32 | (self.length if length is None else length) // 8
        struct.pack_into('<Q', head, COMMIT, word)
        if version:
            struct.pack_into('<Q', head, 8, version)
        fd = os.memfd_create('state', os.MFD_ALLOW_SEALING)
        os.truncate(fd, size)
        os.pwrite(fd, head, 0)
        if size == SIZE:
            os.pwrite(fd, log, HEAD + REQUESTS)
        fcntl.fcntl(fd, F_ADD_SEALS, seals)
        return fd


class Checker:
    def __init__(self, args):
        self.args = args

    def status(self, fd):
        status, out, err = command([ZKLOCKFS, f'--check-state={fd}', *self.args], pass_fds=[fd])
        os.close(fd)
        # A taker's record that fits, and that no taker can have, fails an assertion.
        impossible = status == -signal.SIGABRT and 'Assertion' in err
        check(status in (0, 1) or impossible, f'status {status} of a check: {out} {err}')
        check_equal(status == 0, out.startswith('zklockfs '), f'what is said: {out}')
        return status, out


def ends_first(checker, state):
    """If the kernel lacks memory, it rather ends the program that checks than others."""
    told, tell = os.pipe()
    fcntl.fcntl(tell, fcntl.F_SETPIPE_SZ, 4096)
    os.write(tell, bytes(4096))     # it waits, because nobody reads what it says
    fd = state.memory()
    process = spawn([ZKLOCKFS, f'--check-state={fd}', *checker.args], pass_fds=[fd], stdout=tell)
    os.close(tell)
    os.close(fd)

    def score(pid):
        with open(f'/proc/{pid}/oom_score_adj', encoding='ascii') as file:
            return int(file.read())
    until(lambda: score(process.pid) == min(score('self') + 100, 1000), 'the score of the program that checks')
    process.kill()
    process.wait()
    os.close(told)


def hostile(checker, state):
    dice = random.Random(13)
    log = state.log
    check_equal(checker.status(state.memory())[0], 0, 'a good state')
    check('another version' in checker.status(state.memory(version=4711))[1], 'another version')
    check('damaged' in checker.status(state.memory(log[:-1] + bytes([log[-1] ^ 1])))[1],
          'a damaged state')
    for length in (0, 8, 64, len(log) // 16 * 8, len(log) - 8, len(log) + 8, 8 * (1 << 30)):
        check_equal(checker.status(state.memory(length=length))[0], 1, f'{length} bytes of a state')
    check_equal(checker.status(state.memory(size=HEAD))[0], 1, 'a head alone')
    check_equal(checker.status(state.memory(seals=0))[0], 1, 'a state that another process may cut off')
    places = list(state.places())
    for _ in range(100):    # some of these states are good
        broken = bytearray(log)
        for _ in range(dice.randrange(1, 4)):
            broken[dice.choice(places)] = dice.choice((0, 1, 2, 127, 128, 255))
        checker.status(state.memory(state.summed(broken)))


def test(case):
    server = case.server()
    program = os.path.join(case.directory, 'zklockfs')
    shutil.copy(ZKLOCKFS, program)
    mount = case.mount(server, program=program, options=['on_lost=kill', 'nokeeper'])
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
        return [line for line in mount.log().splitlines() if 'no reload' in line][-1]

    os.rename(program, program + '.away')
    check('No such file' in refused('missing'), 'why: missing')
    os.mkdir(program)
    refused('a directory')
    os.rmdir(program)
    for what, text in SCRIPTS.items():
        write_program(program, text)
        line = refused(what)
        print(line)
        check(what != 'crashes' or line.endswith(': it was ended by signal 11'), line)
    os.chmod(program, 0o644)
    check('Permission denied' in refused('not executable'), 'why: not executable')

    with open(program + '.args', encoding='ascii') as file:
        checker, state = Checker(file.read().splitlines()[1:]), State(program + '.state')
    ends_first(checker, state)
    hostile(checker, state)

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
