#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A ZooKeeper quota is used up: takers get ENOLCK, and the log says why. Takers that have
entries keep them, and other locks are not affected."""

import errno
import os

from harness import check, check_equal, check_errno, run, until


def limit(server, lock, count):
    quota = f'/zookeeper/quota/locks/{lock}'
    if not server.zk.exists('/zookeeper/quota/locks'):
        server.zk.create('/zookeeper/quota/locks')
    server.zk.create(quota)
    server.zk.create(quota + '/zookeeper_limits',
                     b'count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=%d' % count)
    server.zk.create(quota + '/zookeeper_stats', b'count=1,bytes=0')


def test(case):
    server = case.server(properties=['enforceQuota=true'])
    mount = case.mount(server)
    mount.allow('refuses entries')
    mount.mkdir('full')
    mount.mkdir('free')
    limit(server, 'full', 3)   # the lock and two entries
    holder, waiter = mount.take('full').held(), mount.take('full')
    until(lambda: len(server.entries('full')) == 2, 'the waiter queues')
    refused = [mount.take('full') for _ in range(5)]
    crowd = [mount.take('free', 'shared') for _ in range(5)]
    for taker in refused:
        taker.refused(errno.ENOLCK)
    for taker in crowd:
        taker.held()
    check_errno(errno.ENOLCK, os.mkdir, mount.path('full', 'below'))
    check_equal(mount.log().count('/locks/full: the ensemble refuses entries'), 1, 'lines of the log')
    check(holder.token() > 0 and not waiter.answered(), 'the others were disturbed')
    holder.release()
    waiter.held().release()
    until(lambda: not server.entries('full'), 'the lock is free')
    mount.take('full').held()


run(test)
