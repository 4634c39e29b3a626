#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`ls -l` of the queue shows the owners of the entries, the holders, and since when each has
waited or held. An entry reads as `key: value` lines about its taker, on every mount."""

import datetime
import os
import re
import shutil
import time

from harness import NOBODY, check, check_equal, run, until

TIME = r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$'


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace('Z', '+00:00')).timestamp()


def test_held_since(mounts, taker, queued, held):
    """All mounts show since when the taker has waited and held, once it has held for a moment."""
    for mount in mounts:
        name = mount.queue('build')[0]
        fields = until(lambda: (found := mount.fields('build', 'queue', name))['held_since'] != '-' and found,
                       f'{mount.host} knows since when it holds')
        line = dict(part.split('=') for part in mount.read('build', 'holder').split()[1:])
        for key, least, most in (('queued_since', *queued), ('held_since', *held)):
            check(re.match(TIME, fields[key]), fields[key])
            check(least - 0.05 <= seconds(fields[key]) <= most + 0.05, f'{key} is {fields[key]}, not {least} to {most}')
            check_equal(line[key], fields[key], key + ' in holder')
        check_equal(line['command'], fields['command'].replace(' ', '_'), 'command in holder')
        check_equal(line['pid'], str(taker.pid), 'pid in holder')
        until(lambda: os.stat(mount.path('build', 'queue', name)).st_mtime == seconds(fields['held_since']),
              f'the time of its file on {mount.host}')


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    os.umask(0)
    a.mkdir('build')
    before = time.time()
    holder = a.take('build', uid=NOBODY).held()
    asking = time.time()
    waiter = b.take('build')
    until(lambda: len(server.entries('build')) == 2, 'the waiter queues')
    asked = time.time()
    test_held_since((a, b), holder, (before, asking), (before, asking))

    for mount in (a, b):
        names = mount.queue('build')
        check_equal([name[10:] for name in names],
                    [f'-exclusive-{holder.pid}-a', f'-exclusive-{waiter.pid}-b'], 'the names')
        for name, node, taker, uid, state, mode in (
                (names[0], server.entries('build')[0], holder, NOBODY, 'held', 0o100777),
                (names[1], server.entries('build')[1], waiter, 0, 'waiting', 0o100666)):
            stat = os.stat(mount.path('build', 'queue', name))
            check_equal((stat.st_uid, oct(stat.st_mode)), (uid, oct(mode)), f'owner and mode of {name}')
            check(before - 5 < stat.st_mtime < time.time() + 5, f'arrival of {name}: {stat.st_mtime}')

            text = mount.read('build', 'queue', name)
            check(stat.st_size >= len(text), 'the size is no upper bound')
            fields = mount.fields('build', 'queue', name)
            check_equal(fields['state'], state, 'state')
            check_equal(fields['mode'], 'exclusive', 'mode')
            check_equal(fields['host'], name[-1], 'host')
            check_equal(fields['pid'], str(taker.pid), 'pid')
            check_equal(fields['uid'], str(uid), 'uid')
            check_equal(fields['token'], str(server.zk.exists(f'/locks/build/{node}').czxid), 'token')
            check(fields['znode'].endswith(node), fields['znode'])
            check(re.match(TIME, fields['queued_since']), fields['queued_since'])
            if state == 'waiting':
                check_equal(fields['held_since'], '-', 'of a waiter')
                check(stat.st_mtime == seconds(fields['queued_since']), 'the time of its file')

        # Readers that ask for the size first must see the text too.
        copy = case.directory + '/copy'
        shutil.copyfile(mount.path('build', 'queue', names[1]), copy)
        with open(copy, encoding='utf-8') as file:
            check(f'pid: {waiter.pid}\n' in file.read(), 'a copy of the entry')

    released = time.time()
    holder.release()
    waiter.held()
    test_held_since((a, b), waiter, (asking, asked), (released, time.time()))
    name, = a.queue('build')
    check_equal(a.fields('build', 'queue', name)['state'], 'held', 'state after the release')
    # The kernel may remember an entry's attributes for a second.
    until(lambda: os.stat(a.path('build', 'queue', name)).st_mode == 0o100777, 'its mode')


run(test)
