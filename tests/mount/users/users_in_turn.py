#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A user with hundreds of requests at the same time does not make another user wait for all of
them. Requests that the daemon has read and not yet served survive a reload and a crash, and
processes that wait for them can be killed."""

import multiprocessing
import os
import signal
import threading

from harness import ALICE, BOB, check, check_equal, command, die_with_parent, errno_of, error_name, let_janitor_go, run, until

MANY = 600


def token(path):
    return int(os.pread(os.open(path, os.O_RDWR), 64, 0))


def error(path):
    return error_name(errno_of(os.stat, path))


class Crowd:
    """A process of one user with many threads. Each asks for one path; the daemon is stopped."""

    def __init__(self, uid, ask, paths):
        self.conn, theirs = multiprocessing.Pipe()
        self.count = len(paths)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                signal.alarm(0)
                let_janitor_go()
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
                die_with_parent()
                self._ask(ask, paths, theirs)
            finally:
                os._exit(1)
        theirs.close()
        until(lambda: self._waiting() == self.count, 'all wait for the daemon')

    @staticmethod
    def _ask(ask, paths, conn):
        answers = [None] * len(paths)

        def ask_one(i):
            answers[i] = ask(paths[i])

        threading.stack_size(128 * 1024)
        threads = [threading.Thread(target=ask_one, args=(i,)) for i in range(len(paths))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        conn.send(answers)
        conn.recv()

    def _waiting(self):
        found = 0
        for task in os.listdir(f'/proc/{self.pid}/task'):
            with open(f'/proc/{self.pid}/task/{task}/wchan', encoding='ascii') as wchan:
                found += wchan.read() == 'request_wait_answer'
        return found

    def answers(self):
        check(self.conn.poll(60), 'some are not answered')
        found = self.conn.recv()
        self.end()
        return found

    def answered(self):
        check_equal(self.answers(), ['ENOENT'] * self.count, 'the answers')

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def gather(mount, word):
    """Requests of two users for a stopped daemon. The first user has far more of them."""
    mount.send(signal.SIGSTOP)
    crowd = Crowd(ALICE, error, [mount.path('.zklockfs', f'{word}{i}') for i in range(MANY)])
    return crowd, Crowd(BOB, error, [mount.path('.zklockfs', f'{word}bob')])


def in_turn(mount):
    """The tokens tell in which order the daemon served the takers. All threads first look up their
    lock files, then open them."""
    for i in range(MANY + 1):
        mount.mkdir(f'lock{i}')
    mount.send(signal.SIGSTOP)
    crowd = Crowd(ALICE, token, [mount.path(f'lock{i}', 'lock') for i in range(MANY)])
    one = Crowd(BOB, token, [mount.path(f'lock{MANY}', 'lock')])
    mount.send(signal.SIGCONT)
    mine = one.answers()[0]
    before = sum(other < mine for other in crowd.answers())
    print(f'the other user was served after {before} of {MANY} takers')
    check(before < MANY / 6, 'he waited for more')


def over(mount, change):
    """Another daemon takes over in the middle of the requests."""
    crowd, one = gather(mount, change.__name__)
    mount.send(signal.SIGCONT)
    one.answered()
    change()
    crowd.answered()


def killed(mount):
    crowd, one = gather(mount, 'killed')
    os.kill(crowd.pid, signal.SIGKILL)
    mount.send(signal.SIGCONT)
    one.answered()
    crowd.end()
    check_equal(command(['ls', mount.directory])[0], 0, 'ls')


def test(case):
    os.umask(0)
    server = case.server()
    mount = case.mount(server, session='300s')   # its daemon is stopped until all threads wait
    in_turn(mount)
    over(mount, mount.reload)
    over(mount, mount.adopt)
    killed(mount)


run(test)
