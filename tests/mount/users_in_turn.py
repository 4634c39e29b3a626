#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A user with hundreds of requests at the same time does not make another user wait for all of
them. What the daemon has read and not yet served survives a reload and a crash, and
processes that wait for it can be killed."""

import multiprocessing
import os
import signal
import threading

from harness import ALICE, BOB, check, check_equal, command, die_with_parent, errno_of, error_name, let_janitor_go, run, until

MANY = 300      # lines of the trace that fit into a pipe
AT_ONCE = 64    # so many are served in the order of their coming


class Crowd:
    """Threads of one user. Each looks up a name that is not there, and is asked for it once."""

    def __init__(self, mount, uid, count, word):
        self.conn, theirs = multiprocessing.Pipe()
        self.count = count
        self.pid = os.fork()
        if self.pid == 0:
            try:
                signal.alarm(0)
                let_janitor_go()
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
                die_with_parent()
                self._ask([mount.path('.zklockfs', f'{word}{i}') for i in range(count)], theirs)
            finally:
                os._exit(1)
        theirs.close()
        until(lambda: self._waiting() == count, 'all wait for the daemon')

    @staticmethod
    def _ask(paths, conn):
        answers = [None] * len(paths)

        def ask(i):
            answers[i] = error_name(errno_of(os.stat, paths[i]))

        threading.stack_size(128 * 1024)
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(paths))]
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

    def answered(self):
        check(self.conn.poll(20), 'some are not answered')
        check_equal(self.conn.recv(), ['ENOENT'] * self.count, 'the answers')
        self.end()

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def gather(mount, word):
    """Of two users, the first of whom has far more."""
    mount.send(signal.SIGSTOP)
    crowd = Crowd(mount, ALICE, MANY, word)
    return crowd, Crowd(mount, BOB, 1, word + 'bob')


def in_turn(mount):
    crowd, one = gather(mount, 'turn')
    mount.send(signal.SIGCONT)
    one.answered()
    crowd.answered()
    lookups = 'lookup .zklockfs/turn'
    until(lambda: mount.log().count(lookups) == MANY + 1, 'the trace shows all answers')
    answers = [line for line in mount.log().splitlines() if lookups in line]
    place = next(i for i, line in enumerate(answers) if 'turnbob' in line)
    print(f'the other user was served after {place} of {MANY} requests')
    check(place <= AT_ONCE + 2, 'he waited for more')


def over(mount, change):
    """Another program goes on in the middle of it."""
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
    server = case.server()
    mount = case.mount(server, mode='-d')
    in_turn(mount)
    over(mount, mount.reload)
    over(mount, mount.adopt)
    killed(mount)


run(test)
