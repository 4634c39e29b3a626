#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A ZooKeeper quota is used up: takers get ENOLCK, and the log says why. Takers that have
entries keep them, and other locks are not affected. Whatever users fill, locks that are held stay
held: heartbeats and fsync write no data. A mount that cannot make its own nodes does not start, and says
why."""

import errno
import os

from harness import ZKLOCKFS, besides_usual, check, check_equal, check_errno, command, errno_of, run, until


def limit(server, lock, count=-1, used=b'count=1,bytes=0', size=-1):
    quota = f'/zookeeper/quota/{lock}'
    above = quota.rpartition('/')[0]
    if not server.zk.exists(above):
        server.zk.create(above)
    server.zk.create(quota)
    server.zk.create(quota + '/zookeeper_limits',
                     b'count=-1,bytes=-1=;byteHardLimit=%d;countHardLimit=%d' % (size, count))
    server.zk.create(quota + '/zookeeper_stats', used)


def filled_by_a_user(case, server):
    """The byte quota of the whole tree; the server counts what is below /bytes by itself."""
    limit(server, 'bytes', used=b'count=0,bytes=0', size=4000)
    a = case.mount(server, 'a', session='8s', root='/bytes', options=['mkroot'])
    a.allow('refuses')
    a.mkdir('job')
    a.mkdir('user')
    holder = a.take('job').held()
    mine = os.open(a.path('user', 'lock'), os.O_RDWR)
    value = os.open(a.path('user', 'value'), os.O_WRONLY)
    for size in (1000, 100, 10, 1):
        for _ in range(10):
            full = errno_of(os.write, value, b'x' * size)
    check_equal(full, errno.ENOLCK, 'another byte')
    node = next(name for name in server.zk.children('/bytes/.zklockfs') if '-' not in name)
    node = f'/bytes/.zklockfs/{node}'
    check_equal(server.zk.get(node)[0], b'', 'the data of heartbeats')
    start = server.zk.exists(node).version
    until(lambda: server.zk.exists(node).version > start + 3, 'heartbeats', 40)
    check_equal(holder.do('fsync'), None, 'fsync')
    check(holder.token() > 0 and os.pread(mine, 64, 0), 'they are held')
    # A mount that starts needs no bytes.
    b = case.mount(server, 'b', session='8s', root='/bytes')
    b.allow('refuses')
    check_errno(errno.EAGAIN, os.open, b.path('job', 'try'), os.O_RDWR)
    holder.release()
    os.close(value)
    os.close(mine)
    a.unmount()
    b.unmount()


def no_more_nodes(case, server):
    """Of a tree that has as many nodes as it may have; nobody could take a lock there."""
    for root, made, why in (('/bare', [], 'cannot make /bare/.zklockfs: a quota is full'),
                            ('/count', ['/.zklockfs'], 'the ensemble refuses heartbeats below /count/.zklockfs: a quota is full')):
        for below in ('', *made):
            server.zk.create(root + below, b'0123456789abcdef')
        limit(server, root[1:], 1 + len(made), used=b'count=%d,bytes=0' % (1 + len(made)))
        status, _, err = besides_usual(command([ZKLOCKFS, '-o', 'connect_timeout=3s', f'127.0.0.1:{server.port}{root}',
                                                case.mount_point()]))
        lines = err.splitlines()
        check_equal((status, len(lines)), (32, 2), err)
        check(lines[0].endswith(': ' + why) and lines[1].endswith(': not mounted within 3000 ms: ' + why), err)


def test(case):
    server = case.server(properties=['enforceQuota=true'])
    mount = case.mount(server)
    mount.allow('refuses entries')
    mount.mkdir('full')
    mount.mkdir('free')
    limit(server, 'locks/full', 3)   # the lock and two entries
    holder, waiter = mount.take('full').held(), mount.take('full')
    until(lambda: len(server.entries('full')) == 2, 'the waiter queues')
    refused = [mount.take('full') for _ in range(5)]
    crowd = [mount.take('free', 'shared') for _ in range(5)]
    for taker in refused:
        taker.refused(errno.ENOLCK)
    for taker in crowd:
        taker.held()
    check_errno(errno.ENOLCK, os.mkdir, mount.path('full', 'below'))
    mount.said('/locks/full: the ensemble refuses entries', 1)
    check(holder.token() > 0 and not waiter.answered(), 'the others were disturbed')
    holder.release()
    waiter.held().release()
    until(lambda: not server.entries('full'), 'the lock is free')
    mount.take('full').held()
    filled_by_a_user(case, server)
    no_more_nodes(case, server)


run(test)
