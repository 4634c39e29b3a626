#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Servers that want credentials and get none, or refuse the credentials that they get. The mount
command says so at once. A mount that meets such a server later ends."""

import errno
import os

from harness import Stopwatch, ZKLOCKFS, besides_usual, check, check_equal, command, run, until

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
    waiter.refused(errno.ESHUTDOWN)
    for call in (('write', b'x'), ('pread', 64, 0), ('fsync',)):
        try:
            holder.do(*call)
            check(False, f'{call} after the loss')
        except OSError as err:
            check_equal(err.errno, errno.EIO, f'{call} after the loss')
    holder.release()
    mount.check_end(10, status=32)
    server.stop()
    server.start()
    until(lambda: not server.entries('build'), 'the entries go with their session')


run(test)
