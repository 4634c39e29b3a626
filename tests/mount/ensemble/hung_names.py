#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A name service that takes questions and answers nothing. The mount asks it when the servers
are away, and goes on serving meanwhile. The process that asks keeps no file of the mount open."""

import contextlib
import errno
import os
import signal
import socket

from harness import Stopwatch, check, check_errno, run, until

NAME_SERVER = '127.0.0.54'   # port 53, as it must be


def open_files(pid):
    for fd in os.listdir(f'/proc/{pid}/fd'):
        with contextlib.suppress(FileNotFoundError):
            yield os.readlink(f'/proc/{pid}/fd/{fd}')


def test(case):
    server = case.server(tick_ms=500)
    relay = case.relay(server, '127.0.0.2')
    silent = socket.socket(type=socket.SOCK_DGRAM)
    silent.bind((NAME_SERVER, 53))
    silent.settimeout(60)
    case.hosts('127.0.0.2 zookeeper-of-the-test\n', NAME_SERVER)
    mount = case.mount(server, session='3s', servers=f'zookeeper-of-the-test:{relay.port}')
    mount.allow('connection lost')
    mount.mkdir('build')
    check('/dev/fuse' in open_files(mount.daemon), 'its device')

    case.hosts('', NAME_SERVER)
    relay.end()
    check(b'zookeeper-of-the-test' in silent.recv(4096), 'the question')
    askers = [pid for pid in case.daemons() if pid != mount.daemon]
    check(askers, 'a process that asks')
    watch = Stopwatch()
    check(mount.status()['state'] != 'ready', 'the state')
    check_errno(errno.EHOSTUNREACH, os.open, mount.path('build', 'try'), os.O_RDWR)
    for asker in askers:
        check('/dev/fuse' not in open_files(asker), 'the process that asks has the mount open')
        check(os.path.exists(f'/proc/{asker}'), 'it asks no more')
    mount.process.send_signal(signal.SIGTERM)
    mount.check_end()
    watch.check(0, 8, 'all that, without an answer')
    until(lambda: not case.daemons(), 'nobody is left')


run(test)
