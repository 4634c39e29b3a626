#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An idle mount can be unmounted, and its daemon ends with 0. While a lock file is open, or somebody
waits, unmounting is EBUSY and disturbs nobody. By force it ends the mount: the daemon says so, ends
with 32 and leaves no dead mount. A daemon takes off its own mount, and no other one that is at its
path by then."""

import ctypes
import errno
import os
import signal
import subprocess

from harness import (ZKLOCKFS, check, check_equal, check_errno, command, libc, mounted, run, spawn, until)


def abort(mount):
    """As root may do with any FUSE connection."""
    minor = mounted(mount.directory).split()[2].split(':')[1]
    control = mount.case.mount_point()
    check_equal(command(['mount', '-t', 'fusectl', 'fusectl', control])[0], 0, 'mount fusectl')
    with open(f'{control}/{minor}/abort', 'w', encoding='ascii') as file:
        file.write('1')
    check_equal(command(['umount', control])[0], 0, 'umount fusectl')


def umount_by_force(mount):
    check_equal(command(['umount', '-f', mount.directory])[0], 32, 'umount -f of a busy mount')


def ended_by_force(case, server):
    for number, how in enumerate((umount_by_force, abort)):
        mount = case.mount(server, f'force{number}', session='6s')
        if number == 0:
            mount.mkdir('forced')
        mount.allow('ended by force')
        holder = mount.take('forced').held()
        how(mount)
        mount.check_end(status=32)
        mount.said('the mount is lost, with 1 lock held')
        check_errno(errno.ENOTCONN, holder.token)
        holder.release()
    # Nothing is open: that is an unmount like others.
    mount = case.mount(server, 'idle')
    check_equal(command(['umount', '-f', mount.directory])[0], 0, 'umount -f of an idle mount')
    mount.check_end()
    until(lambda: not server.entries('forced'), 'the entries go with their sessions')


def another_mount(case, server):
    """After `umount -l` the path may belong to somebody else."""
    old = case.mount(server, 'old')
    old.mkdir('moved')
    holder = old.take('moved').held()
    check_equal(command(['umount', '-l', old.directory])[0], 0, 'umount -l')
    with open(case.directory + '/new.log', 'w', encoding='ascii') as log:
        new = spawn([ZKLOCKFS, '-f', '-o', 'host=new', f'127.0.0.1:{server.port}/locks', old.directory],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    until(lambda: mounted(old.directory) and os.path.exists(old.path('moved', 'try')), 'the new mount')
    there = mounted(old.directory)
    old.checked = True
    os.kill(old.process.pid, signal.SIGTERM)
    check_errno(errno.EAGAIN, os.open, old.path('moved', 'try'), os.O_RDWR)
    holder.release()
    check_equal(old.process.wait(60), 0, f'the old daemon: {old.log()}')
    check_equal(mounted(old.directory), there, 'what is mounted')
    os.close(os.open(old.path('moved', 'lock'), os.O_RDWR))
    os.kill(new.pid, signal.SIGTERM)
    check_equal(new.wait(60), 0, 'the new daemon')
    check_equal(mounted(old.directory), None, 'what is mounted in the end')


def covered(case, server):
    mount = case.mount(server, 'covered')
    check_equal(command(['mount', '-t', 'tmpfs', 'none', mount.directory])[0], 0, 'mount tmpfs')
    os.kill(mount.process.pid, signal.SIGTERM)
    check_equal(mount.process.wait(60), 0, f'the daemon: {mount.log()}')
    mount.checked = True
    mount.said('another filesystem is mounted over')
    check_equal(os.statvfs(mount.directory).f_bavail > 0, True, 'the tmpfs is still there')
    for _ in range(2):
        check_equal(command(['umount', '-l', mount.directory])[0], 0, 'umount')
    check_equal(mounted(mount.directory), None, 'what is mounted')


def test(case):
    server = case.server()
    mount = case.mount(server)
    mount.mkdir('build')

    def busy():
        check_equal(libc.umount2(mount.directory.encode(), 0), -1, 'umount2')
        check_equal(ctypes.get_errno(), errno.EBUSY, 'umount2')
        check(command(['fusermount3', '-u', mount.directory])[0] != 0, 'fusermount3 -u')
        check(mounted(mount.directory), 'it was unmounted')

    holder = mount.take('build').held()
    busy()
    waiter = mount.take('build')
    until(lambda: len(server.entries('build')) == 2, 'the waiter queues')
    busy()
    holder.release()
    waiter.held()
    busy()
    waiter.release()
    mount.unmount()

    # After a lazy unmount the daemon goes on for processes with open files.
    mount = case.mount(server, 'b')
    holder = mount.take('build').held()
    check_equal(command(['fusermount3', '-uz', mount.directory])[0], 0, 'fusermount3 -uz')
    check(holder.token() > 0, 'the holder was disturbed')
    check_equal(len(server.entries('build')), 1, 'the entry')
    holder.release()
    mount.check_end()
    ended_by_force(case, server)
    another_mount(case, server)
    covered(case, server)


run(test)
