#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Somebody deletes an entry in ZooKeeper: a waiter gets ECANCELED, behind a holder of its own mount
when its turn comes. A holder gets EIO on every use from then on, and the next taker gets the lock."""

import errno

from harness import check, check_errno, run, until


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    for mount in (a, b):
        mount.allow('build')
    a.mkdir('build')
    takers = []
    for mount in (a, a, b, a, b):
        takers.append(mount.take('build'))
        until(lambda: len(server.entries('build')) == len(takers), 'the taker queues')
    holder, evicted, far_evicted, waiter, remote = takers
    holder.held()

    def delete(place):
        server.zk.delete('/locks/build/' + server.entries('build')[place])

    delete(2)
    far_evicted.refused(errno.ECANCELED)
    delete(1)
    check(not waiter.answered() and not remote.answered(), 'granted while the lock was held')

    def is_lost(taker):
        try:
            taker.token()
        except OSError as err:
            return err.errno == errno.EIO
        return False

    for taker, heir in ((holder, waiter), (waiter, remote)):
        delete(0)
        if taker == holder:
            evicted.refused(errno.ECANCELED)
        heir.held()
        until(lambda: is_lost(taker), 'the holder is told')
        for call in (('read', 64), ('pread', 64, 0), ('write', b'x'), ('fsync',)):
            check_errno(errno.EIO, taker.do, *call)
        taker.release()
    check(remote.token() > 0, 'the last one holds')


run(test)
