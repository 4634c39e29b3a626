#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""on_lost never stops a process that the taker's user may not signal, nor one that was given
the descriptor while the opener has it open (rule 34): a process that listens at a socket can be
sent any descriptor. When the opener has ended, processes of its user that have the file open are
stopped; when it has closed the file, those that are younger. An opener that has become another user's is not stopped, and the log names it."""

import os
import signal
import socket

from harness import ALICE, BOB, check, die_with_parent, run, state_of, until
from openers import end, evict, process, receive, runs, send


def give(path, uid, stays):
    """Alice's process opens, and sends the descriptor to a process of uid. Returns the pids of the
    receiver and of the sender."""
    near, far = socket.socketpair()
    sender = process(send, path, far, uid=ALICE, stays=stays)
    if not stays:
        os.waitpid(sender, 0)
    receiver = process(receive, near, uid=uid)
    near.close()
    far.close()
    return receiver, sender


def open_as_alice(path):
    """As a program with setuid does: the process is root's again when it has the lock."""
    os.seteuid(ALICE)
    fd = os.open(path, os.O_RDWR)
    os.seteuid(0)
    return fd


def leave(path, told):
    """As `(service &)` in a script: the parent of the service ends. Then the script closes the file."""
    fd = os.open(path, os.O_RDWR)
    life, ours = os.pipe()
    between = os.fork()
    if between == 0:
        if os.fork() == 0:
            os.close(ours)
            os.write(told, b'%d' % os.getpid())
            os.read(life, 1)    # until the opener ends
        os._exit(0)
    os.waitpid(between, 0)
    os.close(fd)


def pass_up(path):
    """As zklock does: a child opens the file, passes it up and closes it."""
    near, far = socket.socketpair()
    if os.fork() == 0:
        die_with_parent()
        fd = os.open(path, os.O_RDWR)
        socket.send_fds(far, [b'.'], [fd])
        os.close(fd)
        signal.pause()
    return receive(near)


def test(case):
    server = case.server(tick_ms=500)
    a = case.mount(server, 'a', session='30s', options=['on_lost=kill'])
    b = case.mount(server, 'b', session='30s')
    a.allow('.')
    os.umask(0)

    def lose(lock, uid, stays):
        a.mkdir(lock)
        receiver, sender = give(a.path(lock, 'lock'), uid, stays)
        check(len(server.entries(lock)) == 1, 'it is held')
        os.waitpid(process(evict, a, lock, uid=ALICE, stays=False), 0)
        if stays:
            until(lambda: not runs(sender), f'{lock}: the opener is stopped')
        return receiver

    # The searches for the opener and for all other processes are over when later ones are done.
    def later():
        os.mkdir(a.path('later'))
        taker = a.take('later').held()
        evict(a, 'later')
        taker.gone()
        until(lambda: not server.entries('later'), 'its entry goes')
        os.rmdir(b.path('later'))
        until(lambda: not os.path.exists(a.path('later')), 'the kernel has forgotten it')

    left = {lock: lose(lock, uid, stays) for lock, uid, stays in
            (('stranger', BOB, True), ('root', 0, True), ('orphan-of-another', BOB, False))}
    later()
    later()
    for lock, receiver in left.items():
        check(runs(receiver), f'{lock}: the process that was given the descriptor was stopped')
        end(receiver)

    a.mkdir('changed')
    changed = process(open_as_alice, a.path('changed', 'lock'))
    evict(a, 'changed')
    a.said(f'changed: could not stop pid {changed} (python3) uid 0: Operation not permitted')
    check(runs(changed), 'it was stopped')
    end(changed)
    check(a.log().count('could not stop') == 1, 'others are named, too')

    a.mkdir('left')
    ours, theirs = os.pipe()
    opener = process(leave, a.path('left', 'lock'), theirs, uid=ALICE)
    service = int(os.read(ours, 20))
    evict(a, 'left')
    until(lambda: state_of(service) in (None, 'Z'), 'the process that alone has the file open is stopped')
    check(runs(opener), 'a process that has closed the file was stopped')
    end(opener)

    a.mkdir('passed')
    parent = process(pass_up, a.path('passed', 'lock'), uid=ALICE)
    evict(a, 'passed')
    later()
    later()
    check(runs(parent), 'a process that is older than the opener was stopped')
    end(parent)

    orphan = lose('orphan', ALICE, False)
    until(lambda: not runs(orphan), 'the process that the opener left behind is stopped')


run(test)
