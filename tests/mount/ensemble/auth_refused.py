#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Servers that want credentials and get none, or refuse the credentials that they get. The mount
command says so at once. A mount that meets such a server later says so, too, and tries again: it
may be one of another ensemble."""

import errno
import os

from harness import Stopwatch, ZKLOCKFS, besides_usual, check, check_equal, command, errno_of, run, until

WANTED = ['enforce.auth.enabled=true', 'enforce.auth.schemes=digest']
NOT_TAKEN = ['DigestAuthenticationProvider.enabled=false']


def refused(server, point, word, *options):
    watch = Stopwatch()
    status, _, err = besides_usual(command([ZKLOCKFS, *options, f'127.0.0.1:{server.port}', point]))
    check_equal(status, 32, f'mount with {options}: {err}')
    check(err.count('\n') == 1 and word in err, f'stderr: {err!r}')
    watch.check(0, 5, err.strip())


def test(case):
    server = case.server(properties=WANTED)
    server.credentials = 'team:word'
    file = case.directory + '/secret'
    with open(file, 'w', encoding='ascii', opener=lambda path, flags: os.open(path, flags, 0o600)) as out:
        out.write('team:word')
    option = 'credentials=' + file
    point = case.mount_point()
    refused(server, point, 'wants credentials')
    mount = case.mount(server, 'a', '6s', options=[option])
    mount.mkdir('build')
    holder = mount.take('build').held()
    waiter = mount.take('build')
    check_equal(mount.status()['state'], 'ready', 'state')

    server.stop()
    server.start(NOT_TAKEN)
    refused(server, point, 'not accept', '-o', option)
    mount.allow('credentials|connection lost|session|the lock is lost')
    told = 'a server refuses the credentials, or wants some, as none did before'
    until(lambda: told in mount.status()['no_contact_why'], 'the status says so')
    mount.said(told)
    until(lambda: errno_of(holder.do, 'pread', 64, 0) == errno.EIO, 'the lock is lost')
    for call in (('write', b'x'), ('fsync',)):
        check_equal(errno_of(holder.do, *call), errno.EIO, f'{call} after the loss')
    holder.release()
    check(not waiter.answered(), 'nobody is granted')
    server.stop()
    server.start()
    waiter.held().release()
    check_equal(mount.status()['no_contact_why'], '-', 'contact')


run(test)
