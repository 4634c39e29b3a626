#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The mount finds out what the servers' settings are: the lease is computed from their tickTime,
whatever the option says, and what cannot be known is said, in the log and in `status`: the tick, a
version that forgets writes, a session that was cut."""

import os

from harness import CRASHES, ZKLOCKFS, besides_usual, check, check_equal, command, mounted, libc, run, until

WORDS = '4lw.commands.whitelist=srvr,mntr,cons'


def status(mount, key, value):
    until(lambda: mount.status()[key] == value, f'{key}: {value}, and not {mount.status()[key]}')


def sessions(server):
    return server.metric('zk_global_sessions')


def told(case):
    """By conf: no option is needed, and a wrong one does no harm."""
    server = case.server(tick_ms=3000)
    before = sessions(server)
    for tick, by in (('', 'conf'), ('1s', 'conf'), ('3s', 'option'), ('4s', 'option')):
        mount = case.mount(server, tick=tick)
        status(mount, 'tick_time', '4000ms' if tick == '4s' else '3000ms')
        status(mount, 'tick_time_by', by)
        raised = 'has a tickTime of 3000 ms by its conf: the lease is computed from it, not from ' + \
            ('1000' if tick == '1s' else '2000')
        if by == 'conf':
            mount.said(raised)
        else:
            check(raised not in mount.log(), f'the log with tick_time={tick}')
        mount.unmount()
    until(lambda: sessions(server) == before, 'no session is left')

    # With such a tick no lease fits into the session.
    point = case.mount_point()
    got, _, err = command([ZKLOCKFS, '-o', 'session_timeout=6s', f'127.0.0.1:{server.port}', point])
    check_equal(got, 32, 'a session that is too short')
    check('grants a session of 6000 ms; with a tick of 3000 ms the lease needs 7000 ms' in err, err)
    check(mounted(point) is None, 'it was mounted')


def by_sessions(case):
    """conf is closed, as by default. Limits of 2 and 20 times the same show the tick."""
    server = case.server(tick_ms=3000, config=f'{WORDS}\nmaxSessionTimeout=60000')
    before = sessions(server)
    mount = case.mount(server, tick='')
    status(mount, 'tick_time', '3000ms')
    status(mount, 'tick_time_by', 'sessions')
    mount.said('has a tickTime of 3000 ms by its limits of sessions')
    until(lambda: sessions(server) == before + 1, 'no session is left but that of the mount')


def by_nobody(case):
    """The limits were set, so the tick cannot be known: the option is believed. Another one is as
    good as none."""
    server = case.server(tick_ms=3000, config='4lw.commands.whitelist=srvr\nminSessionTimeout=4000')
    mount = case.mount(server, tick='')
    status(mount, 'tick_time_by', '-')
    status(mount, 'tick_time', '2000ms')
    mount.said('does not tell its tickTime; if it is more than 2000 ms, two may hold a lock')
    mount.unmount()
    mount = case.mount(server, tick='3s')
    status(mount, 'tick_time_by', 'option')
    check(mount.status()['server_version'] != '-', 'it has not asked before it served')
    check('tickTime' not in mount.log(), mount.log())


def grows(case):
    """A server is started with longer ticks: held locks stay, once a new connection has proved it."""
    server = case.server()
    mount = case.mount(server, session='100s')  # longer than the servers need to come back
    mount.allow_more('connection lost')
    mount.mkdir('build')
    holder = mount.take('build').held()
    beats = mount.metric('requests_total')
    until(lambda: mount.metric('requests_total') >= beats + 5, 'the lease rests on heartbeats')
    server.stop()
    server.tick_ms = 3000
    server.start()
    status(mount, 'tick_time', '3000ms')
    mount.said('the tickTime of the servers has grown: held locks are in doubt')
    mount.ready()
    holder.do('fsync')
    # The next program knows it at once.
    mount.reload()
    check_equal(mount.status()['tick_time'], '3000ms', 'after a reload')
    status(mount, 'tick_time_by', 'conf')
    holder.do('fsync')
    holder.release()


def said(case):
    """On the terminal, once, and in `status`."""
    server = case.server(config='maxSessionTimeout=40000')
    point = case.mount_point()
    got, out, err = command([ZKLOCKFS, '-o', 'session_timeout=10m,noprotect', f'127.0.0.1:{server.port}', point])
    check_equal((got, out), (0, ''), err)
    version = server.ask('srvr').split()[2].split('-')[0].rstrip(',')
    with open(point + '/.zklockfs/status', encoding='utf-8') as text:
        shown = dict(line.rstrip('\n').split(': ', 1) for line in text)
    check_equal(shown['session_timeout'], '40000ms', 'the session')
    check_equal(err.count('the ensemble grants a session of 40000 ms, and 600000 ms were asked for\n'), 1, err)
    old = tuple(map(int, version.split('.'))) < (3, 9, 4)
    check_equal(shown['server_version'],
                version + (', which can forget answered writes: use 3.9.4 or later' if old else ''), 'the version')
    check_equal(err.count(f'is ZooKeeper {version}, which can forget answered writes: use 3.9.4 or later\n'),
                int(old), err)
    check_equal(besides_usual((0, '', err))[2].count('\n'), 1, err)
    check_equal(libc.umount2(os.fsencode(point), 0), 0, 'umount')
    until(lambda: not case.daemons(), 'the daemon ends')


def test(case):
    if CRASHES:
        return
    case.at_once(told, by_sessions)
    case.at_once(by_nobody, grows)
    said(case)


run(test)
