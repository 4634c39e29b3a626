#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""SIGTERM, SIGINT and SIGHUP end an idle mount. With a holder, the mount point goes, new takers
and waiters are refused, the holder keeps its lock, and the daemon ends with the hold. Without
contact, the daemon does not end before its entries are deleted (rule 27). SIGUSR1, SIGQUIT and
SIGALRM are ignored."""

import contextlib
import errno
import os
import signal

from harness import Systemd, check, check_equal, check_errno, libc, mounted, run, until


def children(pid):
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as file:
        return {int(child) for child in file.read().split()}


def to_all(case, server):
    """systemd sends SIGTERM to each process that it finds in the unit, also to one that the daemon
    has started in order to leave: the mount point goes all the same."""
    for number in range(10):
        mount = case.mount(server, f'all{number}')
        before, daemon = children(mount.daemon), mount.daemon
        mount.process.send_signal(signal.SIGTERM)
        while mounted(mount.directory) and mount.process.poll() is None:
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                for child in children(daemon) - before:
                    os.kill(child, signal.SIGTERM)
            check('cannot unmount' not in mount.log(), mount.log())
        mount.check_end()


def test(case):
    server = case.server()
    to_all(case, server)
    systemd = Systemd(case)
    mount, b = case.mount(server, 'a', env={'NOTIFY_SOCKET': systemd.path}), case.mount(server, 'b')
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        idle = case.mount(server, number.name.lower())
        idle.process.send_signal(number)
        idle.check_end()

    mount.mkdir('build')
    holder = mount.take('build').held()
    token = holder.token()
    # Other signals, to all processes of the mount at once, end nothing.
    everybody = [mount.process.pid, mount.daemon, *case.daemons()]
    for number in (signal.SIGUSR1, signal.SIGQUIT, signal.SIGALRM):
        for pid in everybody:
            os.kill(pid, number)
        check_equal(holder.token(), token, f'the token after {number.name}')
    check_equal(mount.process.poll(), None, 'the supervisor')
    waiter = mount.take('build')
    until(lambda: len(server.entries('build')) == 2, 'the waiter queues')
    remote = b.take('build')
    until(lambda: len(server.entries('build')) == 3, 'the remote waiter queues')
    directory = os.open(mount.path('build'), os.O_PATH | os.O_DIRECTORY)

    mount.process.send_signal(signal.SIGTERM)
    waiter.refused(errno.ESHUTDOWN)
    until(lambda: mounted(mount.directory) is None, 'the mount point goes')
    mount.said('no new requests; waiting for 1 holder, 1 waiter is refused')
    check_errno(errno.ESHUTDOWN, os.open, 'lock', os.O_RDWR, dir_fd=directory)
    check_errno(errno.ESHUTDOWN, os.open, 'try', os.O_RDWR, dir_fd=directory)
    os.close(directory)

    until(lambda: len(server.entries('build')) == 2, 'the refused waiter leaves the queue')
    check_equal(holder.token(), token, 'the token')
    check_equal(holder.do('write', b'finishing\n'), 10, 'a write')
    holder.do('fsync')
    check(not remote.answered(), 'the lock was given away')
    check_equal(mount.process.poll(), None, 'the daemon')
    systemd.until_status('Shutting down, waiting for holders; 1 holder, 0 waiters; 0 losses since the start')
    check('STOPPING=1\n' in systemd.said, systemd.said)
    # The bare directory can be mounted on again, though the daemon still serves its holder.
    check_equal(os.listdir(mount.directory), [], 'the bare mount point')

    holder.release()
    remote.held()
    mount.check_end()
    check_equal(libc.umount2(mount.directory.encode(), 0), -1, 'umount of nothing')
    remote.release()

    cut_off = case.mount(server, 'c')
    cut_off.allow('connection lost|resumed')
    b.allow('connection lost|resumed')
    holder = cut_off.take('build').held()
    server.stop()
    until(lambda: cut_off.status()['state'] != 'ready', 'it knows')
    cut_off.process.send_signal(signal.SIGTERM)
    holder.release()
    server.start()
    cut_off.check_end()
    check_equal(server.entries('build'), [], 'what it has left behind')


run(test)
