#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""on_lost=kill: a mount is gone, and its guardian still looks for the processes that lost their
locks. The next mount gets the numbers of that mount from the kernel, and its holder takes a lock by
the file that comes at the same place. It is not mistaken for a loser (rule 34)."""

import os
import signal

from harness import check, command, mounted, run, until

MOUNTS_MAX = 10   # other tests may get the numbers, too
TRIES_MAX = 5


def numbers(mount):
    """Its mount ID and its device."""
    fields = mounted(mount.directory).split()
    return {fields[0], fields[2]}


def mount_and_hold(case, server, lock):
    mount = case.mount(server, session='6s', options=['on_lost=kill'])
    mount.allow('.')
    mount.mkdir(lock)
    return mount, mount.take(lock).held()


def gone(case, server, lock):
    """A mount of the past: its numbers, and the guardian, which stands still."""
    mount, loser = mount_and_hold(case, server, lock)
    was, guardian = numbers(mount), until(lambda: mount.guardian, 'the guardian runs')
    os.kill(guardian, signal.SIGSTOP)
    mount.crash()
    loser.kill()
    loser.gone()
    command(['fusermount3', '-uz', mount.directory])
    return was, guardian


def next_of(case, server, was, lock):
    """A mount with these numbers, and who holds there; None: others got them."""
    for number in range(MOUNTS_MAX):
        mount, holder = mount_and_hold(case, server, f'{lock}-{number}')
        if was & numbers(mount):
            return mount, holder
    return None


def test(case):
    server = case.server(tick_ms=500)
    for number in range(TRIES_MAX):
        was, guardian = gone(case, server, f'past-{number}')
        found = next_of(case, server, was, f'next-{number}')
        os.kill(guardian, signal.SIGCONT)
        # A process of another test that hangs while it is looked at delays that.
        until(lambda: not os.path.exists(f'/proc/{guardian}'), 'the guardian of the past ends by itself', 300)
        until(lambda: not server.entries(f'past-{number}'), 'the session of the past is over')
        if found:
            mount, holder = found
            check(not holder.ended(), 'the holder on the next mount was killed')
            holder.do('fsync')
            holder.release()
            return
    check(False, 'the kernel gives the numbers to no other mount')


run(test)
