# SPDX-License-Identifier: MIT
"""clan.py - processes that descend from each other and open lock files when they are told.

    p = Clan(case).member()         a child of the test
    c = p.fork()                    a child of p, with every descriptor of p
    r = c.open(path).held()         each open has a thread of its own in c
    r.token(); r.close()

Each process answers while its opens wait. All processes end with the case, also when
their parents have ended before.
"""

import errno
import fcntl
import os
import signal
import threading
from multiprocessing.connection import Client, Listener

from harness import WAIT_SECONDS, check, error_name, raw_open, until


def _obey(address):
    """The loop of a member. It knows its open files by the numbers of the openings."""
    signal.alarm(0)
    signal.signal(signal.SIGUSR1, lambda *_: None)   # a handler, for EINTR
    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    files = {}

    def begin():
        conn = Client(address, 'AF_UNIX')
        conn.send(os.getpid())
        return conn, threading.Lock()

    def answer(conn, lock, number, function, *args):
        try:
            result = 0, function(*args)
        except OSError as err:
            result = err.errno, None
        with lock:
            conn.send((number, *result))

    def open_file(number, path, flags):
        files[number] = raw_open(path, flags)

    conn, lock = begin()
    while True:
        number, name, *args = conn.recv()
        if name == 'open':
            threading.Thread(target=answer, args=(conn, lock, number, open_file, number, *args),
                             daemon=True).start()
        elif name == 'fork':
            if os.fork() == 0:
                conn.close()
                conn, lock = begin()
        elif name == 'become':
            path, program = args
            os.open(path, os.O_RDONLY)   # closed by exec
            os.execvp(program[0], program)
        elif name == 'ignore':
            answer(conn, lock, number, lambda: signal.signal(args[0], signal.SIG_IGN) and None)
        else:
            answer(conn, lock, number, getattr(fcntl if name in ('flock', 'lockf') else os, name),
                   files[args[0]], *args[1:])


class Opening:
    def __init__(self, member, path, flags):
        self.member, self.path = member, path
        self.number = member.say('open', path, flags)

    def answered(self, seconds=0):
        return self.member.heard(self.number, seconds)

    def _answer(self, seconds):
        what = f'open {self.path} by {self.member.pid}'
        check(self.answered(seconds), f'{what}: no answer in {seconds} s')
        return what, self.member.answers.pop(self.number)[0]

    def errno(self, seconds=WAIT_SECONDS):
        return self._answer(seconds)[1]

    def held(self, seconds=WAIT_SECONDS):
        what, code = self._answer(seconds)
        check(code == 0, f'{what}: {error_name(code)}')
        return self

    def refused(self, wanted, seconds=WAIT_SECONDS):
        what, code = self._answer(seconds)
        check(code == wanted, f'{what}: {error_name(code)} and not {error_name(wanted)}')

    def do(self, name, *args):
        """os.NAME(fd, ...) in the member's process."""
        return self.member.ask(name, self.number, *args)

    def token(self):
        return int(self.do('pread', 64, 0))

    def close(self):
        self.do('close')


class Member:
    """A process. For the case it is one of the takers, which end with the case."""

    def __init__(self, clan, pid, conn):
        self.clan, self.pid, self.conn = clan, pid, conn
        self.path = 'a clan'
        self.answers, self.last, self.status = {}, 0, None
        clan.case.takers.append(self)

    def say(self, name, *args):
        self.last += 1
        self.conn.send((self.last, name, *args))
        return self.last

    def heard(self, number, seconds):
        while number not in self.answers and self.conn.poll(seconds):
            other, *answer = self.conn.recv()
            self.answers[other] = answer
        return number in self.answers

    def ask(self, name, *args):
        number = self.say(name, *args)
        check(self.heard(number, WAIT_SECONDS), f'{name} by {self.pid}: no answer')
        code, result = self.answers.pop(number)
        if code:
            raise OSError(code, name)
        return result

    def open(self, path, flags=os.O_RDWR):
        return Opening(self, path, flags)

    def refused(self, wanted, path, flags=os.O_RDWR):
        self.open(path, flags).refused(wanted)

    def fork(self):
        self.say('fork')
        return self.clan.greet()

    def become(self, path, *program):
        """Run another program, by an exec that closes the file `path`."""
        self.say('become', path, program)

    def ignore(self, number):
        self.ask('ignore', number)

    def kill(self, number=signal.SIGKILL):
        os.kill(self.pid, number)

    def ended(self):
        """Also true of a zombie, which has closed its files. Reading `status` never blocks."""
        try:
            with open(f'/proc/{self.pid}/status', encoding='utf-8', errors='replace') as status:
                return '\nState:\tZ' in status.read()
        except OSError as err:
            return err.errno in (errno.ENOENT, errno.ESRCH)

    def state(self):
        """For the story of a test that failed."""
        return 'ended' if self.ended() else 'is there'

    def gone(self, seconds=WAIT_SECONDS):
        until(self.ended, f'process {self.pid} ends', seconds)


class Clan:
    def __init__(self, case):
        self.case = case
        self.address = os.path.join(case.directory, f'clan{len(case.takers)}')
        self.listener = Listener(self.address, 'AF_UNIX', backlog=16)
        case.cleanups.callback(self.listener.close)

    def greet(self):
        conn = self.listener.accept()
        return Member(self, conn.recv(), conn)

    def member(self):
        pid = os.fork()
        if pid == 0:
            try:
                os.closerange(3, 65536)
                _obey(self.address)
            finally:
                os._exit(1)
        return self.greet()
