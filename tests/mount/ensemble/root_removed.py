#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Somebody removes the mounted sub-tree. It is reported missing in one log line, and is used again
when it is there again. Only the start of a mount makes it, also where it is /locks."""

import errno
import os

import rawzk
from harness import Stopwatch, check, check_errno, errno_of, run, until


def remove(zk, path):
    """Remove a node and all nodes below it, also those that the mount makes meanwhile."""
    def removed():
        try:
            for name in zk.children(path):
                remove(zk, f'{path}/{name}')
            zk.delete(path)
        except rawzk.ZkError as err:
            if err.code not in (rawzk.NONODE, rawzk.NOTEMPTY):
                raise
            return err.code == rawzk.NONODE
        return True
    until(removed, f'{path} is removed')


def lost(taker):
    try:
        taker.do('pread', 64, 0)
    except OSError as err:
        return err.errno == errno.EIO
    return False


def test(case):
    server = case.server()
    zk = server.zk
    zk.create('/team')
    zk.create('/team/locks')
    made, missed = case.mount(server, 'made'), case.mount(server, 'missed', root='/team/locks')
    for mount in (made, missed):
        mount.allow('has removed|is lost|heartbeats')
        mount.mkdir('build')
    holders = [made.take('build').held(), missed.take('build').held()]
    remove(zk, '/locks')
    remove(zk, '/team')
    for holder in holders:
        until(lambda holder=holder: lost(holder), 'the holder has lost')
        holder.release()

    for mount in (made, missed):
        mount.said('has removed')
    watch = Stopwatch()
    until(lambda: errno_of(os.stat, missed.path('build')) == errno.ENOENT, 'the kernel has forgotten the name')
    check_errno(errno.ENOENT, os.mkdir, missed.path('other'))
    watch.check(0, 5, 'ENOENT')
    until(lambda: watch.seconds() > 3, 'some heartbeats')
    missed.said('has removed /team/locks', 1)
    check_errno(errno.ENOENT, os.mkdir, made.path('other'))
    check(zk.exists('/team') is None, 'it was made')
    check(zk.exists('/locks') is None, 'it was made')

    # The next start makes it, and all go on.
    again = case.mount(server, 'again')
    made.said('/locks is there again')
    made.mkdir('other')
    taker = made.take('other').held()
    check_errno(errno.EAGAIN, os.open, again.path('other/try'), os.O_RDWR)
    taker.release()

    zk.create('/team')
    zk.create('/team/locks')
    until(lambda: os.listdir(missed.directory) == ['.zklockfs'], 'it is there again')
    missed.mkdir('build')
    missed.take('build').held().release()
    missed.said('/team/locks is there again')
    remove(zk, '/team')
    until(lambda: missed.log().count('has removed /team/locks') == 2, 'another line')
    check(missed.process.poll() is None, 'it has ended')
    missed.unmount()


run(test)
