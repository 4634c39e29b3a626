#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""on_lost never reaches those whom the taker's user might not signal, nor those who were given
the descriptor while its opener lives: whoever listens at a socket can be sent one. Where the
opener has ended, those of his user who have the door open are stopped."""

import os
import signal
import socket

from harness import ALICE, BOB, check, die_with_parent, run, until

# Sent with one descriptor; who receives it reads the first byte only.
MESSAGE = b'a message that is longer'


def process(uid, work, *args):
    """Ends when `work` does; otherwise it waits."""
    ready, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            die_with_parent()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            die_with_parent()
            stays = work(*args)
            os.write(theirs, b'.')
            if stays:
                signal.pause()
        finally:
            os._exit(0)
    os.close(theirs)
    check(os.read(ready, 1) == b'.', f'process {pid} of {uid} works')
    os.close(ready)
    return pid


def runs(pid):
    return os.waitpid(pid, os.WNOHANG)[0] == 0


def send(path, far, stays):
    fd = os.open(path, os.O_RDWR)
    socket.send_fds(far, [MESSAGE], [fd])
    return stays


def has_open(pid, name):
    try:
        return any(os.readlink(f'/proc/{pid}/fd/{fd}').endswith(name) for fd in os.listdir(f'/proc/{pid}/fd'))
    except OSError:
        return False


def give(case, a, b, lock, uid, stays):
    """Alice opens, and sends what she got to somebody. He, and she."""
    near, far = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            die_with_parent()
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            die_with_parent()
            far.close()
            _, ancillary, _, _ = near.recvmsg(1, socket.CMSG_SPACE(16))
            signal.pause()
            del ancillary
        finally:
            os._exit(0)
    near.close()
    sender = process(ALICE, send, a.path(lock, 'lock'), far, stays)
    far.close()
    until(lambda: has_open(pid, f'/{lock}/lock'), f'{uid} has it open')
    if not stays:
        os.waitpid(sender, 0)
    return pid, sender


def test(case):
    server = case.server(tick_ms=500)
    a = case.mount(server, 'a', session='6s', options=['on_lost=kill'])
    b = case.mount(server, 'b', session='6s')
    a.allow('.')
    os.umask(0)

    def lose(lock, uid, stays):
        a.mkdir(lock)
        receiver, sender = give(case, a, b, lock, uid, stays)
        until(lambda: len(server.entries(lock)) == 1, 'it is held')
        entry = a.path(lock, 'queue', a.queue(lock)[0])
        process(ALICE, evict, entry)
        if stays:
            until(lambda: not runs(sender), f'{lock}: the opener is stopped')
        return receiver

    # Both looks, of the opener and of all others, are over when one that came later is done.
    def later():
        os.mkdir(a.path('later'))
        taker = a.take('later').held()
        evict(a.path('later', 'queue', a.queue('later')[0]))
        taker.gone()
        os.rmdir(b.path('later'))

    left = {lock: lose(lock, uid, stays) for lock, uid, stays in
            (('stranger', BOB, True), ('root', 0, True), ('orphan-of-another', BOB, False))}
    later()
    later()
    for lock, receiver in left.items():
        check(runs(receiver), f'{lock}: who was given the descriptor was stopped')
        os.kill(receiver, signal.SIGKILL)
        os.waitpid(receiver, 0)
    orphan = lose('orphan', ALICE, False)
    until(lambda: not runs(orphan), 'whom the opener left behind is stopped')


def evict(path):
    with open(path, 'wb', buffering=0) as entry:
        entry.write(b'evict')


run(test)
