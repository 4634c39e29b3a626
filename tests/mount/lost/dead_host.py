#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A host dies with a lock. While its session lasts, the entry of its holder says since when it was
not renewed; then the log and the history of the next holder say whose session had ended. A lock that
was given back is granted without such words."""

import os
import re

from harness import ZKLOCKFS, check, check_equal, command, run, until


def renewed_ago(mount, lock):
    text = mount.fields(lock, 'queue', mount.queue(lock)[0])['renewed_ago']
    return int(text.removesuffix('ms')) if text != '-' else None


def why(mount, lock):
    zklock = os.path.join(os.path.dirname(os.path.dirname(ZKLOCKFS)), 'examples', 'zklock', 'zklock')
    return command([zklock, 'why', lock], env={**os.environ, 'ZKLOCKFS': mount.directory})[1]


def test(case):
    server = case.server(tick_ms=500)
    dead, lives = case.mount(server, 'web2', session='10s'), case.mount(server, 'web1', session='6s')
    for lock in ('build', 'other'):
        lives.mkdir(lock)
    # Handed over after a wait of more than a second: nothing is said of a session.
    first = dead.take('other').held()
    second = lives.take('other')
    until(lambda: float(lives.metric('oldest_wait_seconds')) > 1.2, 'it waits for a while')
    first.release()
    second.held().release()

    holder = dead.take('build').held()
    holder.do('write', b'deploy v42')
    waiter = lives.take('build')
    until(lambda: len(server.entries('build')) == 2, 'it queues')
    until(lambda: renewed_ago(lives, 'build') is not None, 'its session is renewed')
    check(renewed_ago(lives, 'build') < 5000, 'it is renewed in time')
    dead.crash()
    until(lambda: renewed_ago(lives, 'build') > 2500, 'it is not renewed any more')
    until(lambda: 'its host has not renewed its session for ' in why(lives, 'build'), 'zklock why says so')
    check(not waiter.answered(), 'the session lives still')
    waiter.held()
    line = (rf'build: granted to pid {waiter.pid} \(python3\) uid 0 after \d+\.\d s, when the session of web2, '
            rf'pid {holder.pid} \(python3\), had ended; its reason: deploy v42$')
    until(lambda: re.search(line, lives.log(), re.MULTILINE), 'the log says after whom')
    lives.reload()
    waiter.release()
    row = until(lambda: next((line.split() for line in lives.read('.zklockfs', 'history').splitlines()
                              if line.split()[1] == 'build'), None), 'the history')
    check_equal((row[5], row[11]), ('closed', f'granted\\040after\\040the\\040session\\040of\\040pid\\040{holder.pid}'
                                    '\\040(python3)\\040on\\040web2\\040had\\040ended'), f'the history: {row}')
    check_equal(lives.log().count('when the session of'), 1, 'lines about sessions')
    command(['umount', '-l', dead.directory])
    holder.kill()


run(test)
