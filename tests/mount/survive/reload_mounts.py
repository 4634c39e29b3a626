#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A daemon in the background, one with -d, one with credentials, and one of another user than root
are reloaded like any other, and end like any other."""

import os
import re
import signal
import stat
import subprocess

from harness import (ALICE, ZKLOCKFS, as_user, check, check_equal, check_user, command, is_ready, libc, mounted, patiently,
                     raw_open, run, spawn, until)

_MS_BIND = 0x1000


def reload(pid, path):
    """Reload the daemon, and wait until the metrics show it."""
    def reloads():
        with open(path + '/.zklockfs/metrics', encoding='utf-8') as file:
            return int(re.search(r'^zklockfs_reloads_total{.*} (\d+)$', file.read(), re.MULTILINE).group(1))
    before = reloads()
    os.kill(pid, signal.SIGUSR2)
    until(lambda: reloads() > before, 'another program takes over')


def in_background(case, server):
    path = case.mount_point()
    secret = case.directory + '/secret'
    with open(secret, 'w', encoding='ascii') as file:
        file.write('team:password\n')
    os.chmod(secret, 0o600)
    options = f'credentials={secret},host=back,mkroot'
    # A path relative to the directory where it was started, which the daemon has left.
    status, _, err = command([ZKLOCKFS, '-o', options, f'127.0.0.1:{server.port}/private', os.path.relpath(path)])
    check_equal(status, 0, f'the command: {err}')
    daemon, = case.daemons()
    os.mkdir(path + '/back')
    fd = os.open(path + '/back/lock', os.O_RDWR)
    token = os.pread(fd, 64, 0)
    for _ in range(2):
        reload(daemon, path)
        check_equal(os.pread(fd, 64, 0), token, 'the token')
        check_equal(os.stat(f'/proc/{daemon}').st_uid, 0, 'whose it is')
        os.fsync(fd)
    # Users other than root cannot read its memory, which has the password.
    check(as_user(ALICE, raw_open, f'/proc/{daemon}/mem', os.O_RDONLY) != 0, 'its memory can be read')
    os.close(fd)
    check_equal(libc.umount2(path.encode(), 0), 0, 'umount')
    until(lambda: not case.daemons(), 'the daemon ends after the unmount')


def traced(case, server):
    mount = case.mount(server, 'traced', mode='-d')
    mount.mkdir('traced')
    holder = mount.take('traced').held()
    waiter = mount.take('traced')
    until(lambda: len(server.entries('traced')) == 2, 'the waiter queues')
    mount.reload()
    holder.release()
    waiter.held()
    mount.said(f'open O_RDWR traced/lock by pid {waiter.pid}, uid 0: success after')
    waiter.release()
    mount.process.send_signal(signal.SIGTERM)
    mount.check_end()


def of_a_user(case, server):
    device = case.directory + '/fuse'
    os.mknod(device, stat.S_IFCHR, os.stat('/dev/fuse').st_rdev)
    os.chmod(device, 0o666)
    check(libc.mount(device.encode(), b'/dev/fuse', None, _MS_BIND, None) == 0, 'another /dev/fuse')
    case.users()
    os.chmod(case.directory, 0o711)
    os.mkdir(case.directory + '/users')
    path = case.directory + '/users/mount'
    os.mkdir(path)
    os.chown(path, ALICE, ALICE)
    alice = ['setpriv', f'--reuid={ALICE}', f'--regid={ALICE}', '--clear-groups']
    daemon = spawn([*alice, ZKLOCKFS, '-f', '-o', 'host=alice,on_lost=kill', f'127.0.0.1:{server.port}/locks', path],
                   stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    until(lambda: is_ready(path, ALICE), 'it serves')
    check_user(0, ALICE, patiently, os.mkdir, path + '/alice')
    user = spawn([*alice, 'bash', '-c', '''
        exec 9<>"$1/alice/lock" && read -r token <&9 && echo 'held' && read -r _
        exec 8<>"$1/alice/reentrant" && read -r again <&8 && [ "$again" = "$token" ] && echo 'still' && read -r _
        grep '^zklockfs_reloads_total' "$1/.zklockfs/metrics"''', 'user', path],
                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    user.stdin.reconfigure(line_buffering=True)
    check_equal(user.stdout.readline(), 'held\n', 'the user holds')
    daemon.send_signal(signal.SIGUSR2)
    until(lambda: 'taken over' in daemon.stderr.readline(), 'it is reloaded')
    user.stdin.write('\n')
    check_equal(user.stdout.readline(), 'still\n', 'the user holds still')
    daemon.send_signal(signal.SIGUSR2)
    until(lambda: 'taken over' in daemon.stderr.readline(), 'it is reloaded')
    user.stdin.write('\n')
    check(user.stdout.readline().endswith(' 2\n'), 'two reloads')
    check_equal(user.wait(60), 0, 'status of the user')
    daemon.send_signal(signal.SIGTERM)
    check_equal(daemon.wait(60), 0, 'status of the daemon')
    check(mounted(path) is None, 'it is still mounted')


def test(case):
    server = case.server()
    in_background(case, server)
    traced(case, server)
    of_a_user(case, server)


run(test)
