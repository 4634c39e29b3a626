#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`ls -l` of the queue shows whose the entries are and who holds; an entry
reads as `key: value` lines about its taker, on every mount."""

import os
import re
import shutil
import time

from harness import NOBODY, check, check_equal, run, until


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    os.umask(0)
    a.mkdir('build')
    before = time.time()
    holder = a.take('build', uid=NOBODY).held()
    waiter = b.take('build')
    until(lambda: len(server.entries('build')) == 2, 'the waiter queues')

    for mount in (a, b):
        names = mount.queue('build')
        check_equal([name[10:] for name in names],
                    [f'-exclusive-{holder.pid}-a', f'-exclusive-{waiter.pid}-b'], 'the names')
        for name, node, taker, uid, state, mode in (
                (names[0], server.entries('build')[0], holder, NOBODY, 'held', 0o100755),
                (names[1], server.entries('build')[1], waiter, 0, 'waiting', 0o100644)):
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
            check(re.match(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$', fields['since']), fields['since'])

        # Readers that ask for the size first must see the text too.
        copy = case.directory + '/copy'
        shutil.copyfile(mount.path('build', 'queue', names[1]), copy)
        with open(copy, encoding='utf-8') as file:
            check(f'pid: {waiter.pid}\n' in file.read(), 'a copy of the entry')

    holder.release()
    waiter.held()
    name, = a.queue('build')
    check_equal(a.fields('build', 'queue', name)['state'], 'held', 'state after the release')
    # The kernel may remember an entry's attributes for a second.
    until(lambda: os.stat(a.path('build', 'queue', name)).st_mode == 0o100755, 'its mode')


run(test)
