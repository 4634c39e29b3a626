#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A child of a client that would not wait for our entries is in the queue: takers get EPROTO (rule
25); `holder`, the entry and the log say whose it is. When it is gone, the lock can be taken."""

import errno
import os
import uuid

from harness import check, check_equal, check_errno, raw_open, run, until

GUID = f'_c_{uuid.uuid4()}-'
STRANGERS = {
    uuid.uuid4().hex + '__lock__': ('exclusive', 'kazoo'),
    uuid.uuid4().hex + '__rlock__': ('shared', 'kazoo'),
    GUID + '__WRIT__': ('exclusive', "Curator's read-write lock"),
    GUID + '__READ__': ('shared', "Curator's read-write lock"),
    GUID + '-latch-': ('exclusive', "Curator's LeaderLatch"),
    'lock-': ('exclusive', 'DistributedLock of .NET, or zk-lock of npm'),
    'read-': ('shared', 'DistributedLock of .NET'),
    'write-': ('exclusive', 'DistributedLock of .NET'),
    'semaphore-': ('exclusive', 'DistributedLock of .NET'),
    'sh': ('shared', "zk-ruby's shared lock"),
}


def refused(mount, lock, client):
    for lock_file in ('try', 'lock@10s', 'lock'):
        check_errno(errno.EPROTO, raw_open, mount.path(lock, lock_file), os.O_RDWR)
    until(lambda: f'is of a client that ignores our locks ({client}): requests are refused' in mount.log(),
          f'the log names {client}')


def test(case):
    server = case.server()
    mount = case.mount(server)
    mount.allow('ignores our locks|does not wait for')
    for number, (prefix, (mode, client)) in enumerate(STRANGERS.items()):
        lock = f'lock{number}'
        mount.mkdir(lock)
        planted = server.zk.create(f'/locks/{lock}/{prefix}', b'10.0.0.7 web2\nmore', ephemeral=True, sequence=True)
        refused(mount, lock, client)
        holder = mount.read(lock, 'holder')
        check('does not wait for zklockfs' in holder and f' client={client.replace(" ", "_")} ' in holder
              and ' data=10.0.0.7_web2 ' in holder, f'holder: {holder}')
        name, = mount.queue(lock)
        check(name.startswith(planted[-10:] + f'-{mode}-'), f'shown as {name}')
        fields = mount.fields(lock, 'queue', name)
        check_equal((fields['client'], fields['data']), (client, '10.0.0.7 web2'), 'the entry')
        server.zk.delete(planted)
        mount.take(lock).held().release()

    # Curator's semaphore has its entries below two children.
    mount.mkdir('jobs')
    server.zk.create('/locks/jobs/locks')
    mount.take('jobs').held().release()
    server.zk.create('/locks/jobs/leases')
    refused(mount, 'jobs', "Curator's InterProcessSemaphoreV2 or SemaphoreMutex")
    server.zk.delete('/locks/jobs/leases')
    mount.take('jobs').held().release()


run(test)
