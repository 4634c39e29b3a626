#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hundreds of processes of one family wait for `reentrant`, many generations below the ancestor
that gets the lock. All join its hold, and no turn of the loop takes long: the watchdog would say
so."""

import os

from clan import Clan
from harness import check_equal, run, until

COUNT, GENERATIONS = 500, 45
# Many processes. Each writes a byte when it has the lock, and keeps the lock until stdin ends.
CROWD = '''
exec <"$4" >"$5"
crowd() {
    i=0
    while [ $i -lt "$2" ]; do
        ( exec 9<>"$1"; printf x; read -r end ) <&0 &
        i=$((i + 1))
    done
    wait
}
below() {
    if [ "$3" -gt 0 ]; then
        ( below "$1" "$2" $(($3 - 1)); : )
    else
        crowd "$@"
    fi
}
below "$@"
'''


def test(case):
    server = case.server()
    mount = case.mount(server, 'a')
    mount.mkdir('build')
    clan = Clan(case)
    stranger = mount.take('build').held()
    # The crowd descends from a process that waits before them.
    ancestor = clan.member()
    child = ancestor.fork()
    above = ancestor.open(mount.path('build', 'reentrant'))
    until(lambda: len(server.entries('build')) == 2, 'the ancestor queues')
    fifos = [f'{case.directory}/{name}' for name in ('end', 'joined')]
    for fifo in fifos:
        os.mkfifo(fifo)
    end, joined = (os.open(fifo, os.O_RDWR) for fifo in fifos)
    child.become('/dev/null', 'dash', '-c', CROWD, 'crowd', mount.path('build', 'reentrant'),
                 str(COUNT), str(GENERATIONS), *fifos)
    until(lambda: len(server.entries('build')) == COUNT + 2, 'all of them queue', 60)
    stranger.release()
    above.held()
    count = 0
    while count < COUNT:
        count += len(os.read(joined, 4096))
    until(lambda: len(server.entries('build')) == 1, 'all hold by one entry')
    check_equal(len(mount.queue('build')), 1, 'entries in the queue')
    os.close(end)
    above.close()
    until(lambda: not server.entries('build'), 'the lock is free')


run(test)
