#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An address that a mount knows leads to another ensemble, or to its own without its data or with
an older backup. The mount grants and makes nothing there, says what it met, remembers its
ensemble over a reload and a crash, and goes on where that is. A restart accepts the other one: so one
that a crash or force ends there ends with 1, for which systemd starts no other."""

import errno
import os
import shutil
import signal

from harness import CRASHES, check, check_equal, command, errno_of, run, until

STRAYS = 'connection lost|session ended|lock is lost|another ensemble|closes each|does not answer'


def state(mount):
    return mount.status()['state']


def strays(mount, text):
    """It says so everywhere, and takes nothing."""
    until(lambda: state(mount) == 'another_ensemble' and text in mount.status()['no_contact_why'], text, 40)
    mount.said(text)
    check_equal(mount.status()['session'], '-', 'the session')
    check('zklockfs_state{mount="' + mount.directory + '",state="another_ensemble"} 1' in
          mount.read('.zklockfs', 'metrics'), 'the metric')
    check_equal(errno_of(os.open, mount.path('build/try'), os.O_RDWR), errno.EHOSTUNREACH, 'a try')


def moved_addresses(case, right, mount_b):
    """Returns with the lock free."""
    wrong = case.server(tick_ms=500)
    relay = case.relay(right, '127.0.0.1')
    a = case.mount(right, 'a', session='4s', servers=f'127.0.0.1:{relay.port}')
    a.allow(STRAYS)
    a.adopt()
    first = a.take('build').held()
    other = mount_b.take('build')
    until(lambda: len(right.entries('build')) == 2, 'both queue')

    def move(to):
        nonlocal relay
        relay.end()
        relay = case.relay(to, '127.0.0.1', relay.port)

    # Nothing is there, and the default root is made at the start alone.
    move(wrong)
    other.held()
    strays(a, 'we find no /locks/.zklockfs there; ours: made 20')
    first.release()
    waits = a.take('build')
    check(wrong.zk.exists('/locks') is None, 'it has made /locks')

    # The same root, and a lock that is free.
    wrong.zk.create('/locks')
    wrong.zk.create('/locks/build')
    wrong.zk.create('/locks/.zklockfs')
    tree = wrong.tree('/locks')
    strays(a, f'127.0.0.1:{relay.port} is another ensemble: /locks/.zklockfs there: made 20')
    if not CRASHES:     # a crash without a lease ends the mount
        a.reload()
    strays(a, 'is another ensemble: /locks/.zklockfs there: made 20')
    check_equal(wrong.tree('/locks'), tree, 'nodes that were made')
    check(not waits.answered(), 'two hold the lock')

    move(right)
    until(lambda: state(a) == 'ready', 'it finds the right one', 60)
    check_equal(a.status()['no_contact_why'], '-', 'why')
    until(lambda: len(right.entries('build')) == 2, 'both queue')
    check(not waits.answered(), 'two hold the lock')
    other.release()
    waits.held().release()

    move(wrong)
    strays(a, 'is another ensemble: /locks/.zklockfs there: made 20')
    a.unmount()
    again = case.mount(wrong, 'a', session='4s')
    again.take('build').held().release()
    again.unmount()
    if not CRASHES:
        crash_there(case, right, wrong)


def crash_there(case, home, other):
    """Also when it was reloaded there, and has heard of no server since. And one whose servers are just away: the
    next one may find them."""
    there = "it waits at another ensemble, and only an administrator's restart accepts that"
    for how, status, why in (('there', 1, there), ('reloaded', 1, there), ('forced', 1, there),
                             ('away', -signal.SIGKILL, 'the lease is over')):
        relay = case.relay(home, '127.0.0.1')
        mount = case.mount(home, 'a', session='4s', servers=f'127.0.0.1:{relay.port}')
        mount.allow(STRAYS)
        if how == 'forced':
            mount.take('build').held()   # so that the mount is busy
        relay.end()
        if how == 'away':
            until(lambda: state(mount) == 'lost', 'the lease ends')
        else:
            relay = case.relay(other, '127.0.0.1', relay.port)
            strays(mount, 'is another ensemble')
        if how == 'reloaded':
            relay.freeze()
            mount.reload()
        if how == 'forced':
            check_equal(command(['umount', '-f', mount.directory])[0], 32, 'umount -f of a busy mount')
        else:
            mount.send(signal.SIGKILL)
        check_equal(mount.process.wait(), status, 'how the supervisor ends: ' + how)
        mount.said(f'the mount is lost, with 0 locks held, {why}' if how == 'forced' else
                   f'the daemon was ended by signal 9, and the mount is lost: {why}')
        mount.checked = True
        if how != 'forced':
            check_equal(command(['umount', '-l', mount.directory])[0], 0, 'the dead mount')


def lost_data(case, server, mount):
    """The server comes back with a backup, then without its data."""
    data = server.directory + '/data'
    server.stop()
    shutil.copytree(data, data + '.backup')
    server.start()
    until(lambda: state(mount) == 'ready', 'it is back')
    holder = mount.take('build').held()
    server.stop()

    # What the mount has seen is not in the backup. Its ensemble is the same.
    shutil.rmtree(data)
    os.rename(data + '.backup', data)
    server.start()
    mount.said('closes each connection: it has no quorum, or less data')
    until(lambda: state(mount) == 'ready', 'it goes on', 40)
    holder.release()
    mount.take('build').held().release()

    server.stop()
    shutil.rmtree(data)
    server.start()
    strays(mount, 'is another ensemble, or ours without its data: we find no /locks/.zklockfs there')
    check(server.zk.exists('/locks') is None, 'it has made /locks')


def test(case):
    server = case.server(tick_ms=500)
    b = case.mount(server, 'b', session='4s')
    b.allow(STRAYS)
    b.mkdir('build')
    moved_addresses(case, server, b)
    lost_data(case, server, b)
    b.unmount()
    again = case.mount(server, 'b', session='4s')   # for an administrator
    again.mkdir('build')
    again.take('build').held().release()


run(test)
