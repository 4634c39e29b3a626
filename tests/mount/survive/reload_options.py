#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A mount goes on with other options, by zklockfs --reload, mount -o remount or a unit's file: holders keep lock and
token, waiters their places, and what is not allowed is refused with the reason, and changes nothing. After a crash, and
after a reload without a word, the options are those that were taken over last. Where on_lost changes, nobody whose lease
is good is stopped, and who loses is. A server's other port is another server."""

import errno
import os
import shutil
from fcntl import LOCK_EX

from harness import ALICE, ZKLOCKFS, as_user, check, check_equal, command, run, until, write_program
from locker import Locker

BUSY = ('it is too slow', 'writes to the ensemble take too long')


def change(*args, status=0, says=''):
    """zklockfs --reload; a busy machine refuses it, and it may be asked for again."""
    def done():
        result = command([ZKLOCKFS, '--reload', *args])
        return None if any(busy in result[2] for busy in BUSY) else result
    got, out, err = until(done, f'zklockfs --reload {args}')
    check_equal((got, out), (status, ''), f'zklockfs --reload {args}: {err}')
    check(says in err and (not says or err.count('\n') == 1), f'zklockfs --reload {args} says {err!r}')


def option(mount, name):
    return mount.fields('.zklockfs', 'options')[name]


def source(mount):
    return f'127.0.0.1:{mount.server.port}{mount.root}'


def all_of(mount, *more):
    """The whole command line of the mount, and more."""
    return '-o', ','.join([f'session_timeout={mount.session_seconds}s', f'tick_time={mount.server.tick_ms}ms',
                           f'host={mount.host}', *more]), source(mount), mount.directory


def crowd(mount, server, lock):
    """One who holds and one who waits, and what shall not change of them."""
    mount.mkdir(lock)
    holder = mount.take(lock).held()
    waiter = mount.take(lock)
    until(lambda: len(server.entries(lock)) == 2, 'the waiter queues')
    token, entries = holder.token(), server.entries(lock)

    def stay(what):
        check_equal((holder.token(), server.entries(lock)), (token, entries), f'{what}: the token, and the queue')
        check(not waiter.answered() and not holder.ended(), f'{what}: the waiter, and the holder')

    def end():
        holder.release()
        waiter.held().release()
    return stay, end


def taken(case, server):
    mount = case.mount(server, 'a', session='30s')
    mount.allow('no reload')
    stay, end = crowd(mount, server, 'build')
    change('-o', 'log_takes,drain=5s,metrics_locks=5', mount.directory)
    stay('what is named')
    check_equal([option(mount, name) for name in ('log_takes', 'drain', 'session_timeout', 'host')],
                ['yes', '5s', '30s', 'a'], 'what is named changes, and the rest stays')
    mount.said('options: drain 60s -> 5s; log_takes no -> yes\n', 1)
    mount.mkdir('logged')
    mount.take('logged').held().release()
    mount.said('logged: granted')
    change(*all_of(mount, 'noreuse', 'drain=5s', 'session_timeout=40s', 'umask=077', 'audit'),
           says='the session that the mount has is of 30000ms: the longer session_timeout counts')
    stay('all of it')
    check_equal([option(mount, name) for name in ('log_takes', 'reuse', 'session_timeout', 'drain')],
                ['no', 'no', '40s', '5s'], 'the whole command line')
    before = mount.read('.zklockfs', 'options').split('reloads:')[0]
    mount.adopt()
    stay('a crash')
    check_equal(mount.read('.zklockfs', 'options').split('reloads:')[0], before, 'after a crash')
    mount.reload()
    stay('a reload without a word')
    check_equal(mount.read('.zklockfs', 'options').split('reloads:')[0], before, 'after a reload without a word')
    change(mount.directory)
    change('-o', 'reuse,noaudit', mount.directory)
    check_equal([option(mount, name) for name in ('reuse', 'audit', 'drain')], ['yes', 'no', '5s'], 'taken off')
    stay('all')
    # What is in force is told, and the locks still rest on it: so it can be taken back.
    longer = 'risk   mount point: the session that the mount has is of 30000ms, and session_timeout is longer'
    check_equal([option(mount, name) for name in ('session_timeout', 'session_timeout_in_force')], ['40s', '30000ms'], 'the session')
    check(longer in command([ZKLOCKFS, '--check', mount.directory])[1], 'a longer session is asked for')
    out = command([ZKLOCKFS, '--check', *all_of(mount, 'drain=5s', 'umask=077')])[1]
    check('session_timeout 40s, and not 30s' in out and '--reload with these arguments changes it' in out, out)
    change('-o', 'session_timeout=29s', mount.directory, status=32, says='session_timeout of 29000 ms needs a restart')
    change('-o', 'session_timeout=30s', mount.directory)
    check_equal(option(mount, 'session_timeout'), '30s', 'taken back')
    check(longer not in command([ZKLOCKFS, '--check', mount.directory])[1], 'it is what the session has')
    stay('a session_timeout that is taken back')
    end()


def refused(case, server):
    mount = case.mount(server, 'b', session='30s')
    mount.allow('no reload')
    secret = case.directory + '/secret'
    with open(secret, 'w', encoding='ascii', opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write('me:secret\n')
    stay, end = crowd(mount, server, 'file')
    before = mount.read('.zklockfs', 'options').split('refused:')[0]

    def no(*args, says, status=32):
        change(*args, status=status, says=says)
        stay(says)
        check_equal(mount.read('.zklockfs', 'options').split('refused:')[0], before, 'the options')

    no('-o', 'session_timeout=20s', mount.directory, says='session_timeout of 20000 ms needs a restart: the locks rest on a session of 30000 ms')
    no(*all_of(mount)[:2], source(mount).replace('/locks', '/other'), mount.directory, says='root cannot change from /locks to /other')
    no('-o', f'credentials={secret}', mount.directory, says='credentials cannot change from - to ' + secret)
    no('-o', 'nokeeper', mount.directory, says='keeper cannot change')
    no('-o', 'host=c', mount.directory, says='host cannot change from b to c')
    no('-o', 'ro', mount.directory, says='ro cannot change')
    no('-o', 'clients=kazoo', mount.directory, says='clients cannot change')
    no('-o', 'tick_time=20s,on_lost=term', mount.directory, says='is too short: these options need')
    no('-o', 'on_lost=stop', mount.directory, says='on_lost=stop: must be none, term or kill', status=1)
    no('-o', 'nonsense', mount.directory, says="unknown option 'nonsense'", status=1)
    check_equal(as_user(ALICE, os.open, mount.path('.zklockfs', 'options'), os.O_WRONLY), errno.EACCES,
                'another user')
    no(case.mount_point(), says='no zklockfs is mounted there')
    program = case.directory + '/program'
    shutil.copy(ZKLOCKFS, program + '.away')
    other = case.mount(server, 'd', session='30s', program=shutil.copy(ZKLOCKFS, program))
    other.allow('.')
    stays, ends = crowd(other, server, 'other')
    write_program(program, 'case $1 in --check-state=*) exec "$0.away" "$@";; esac\nexit 3')
    change('-o', 'log_takes', other.directory, status=32, says='did not serve, and the mount goes on as it was')
    stays('a program that does not serve')
    check_equal(option(other, 'log_takes'), 'no', 'the former options')
    ends()
    end()


def losers(case, server):
    """The guardian comes, changes and goes while locks are held, and a crash is no reason to stop anybody."""
    mount = case.mount(server, 'c', session='12s')
    mount.allow('lost|stop|evict|was ended by signal')
    stay, end = crowd(mount, server, 'deep')
    mount.mkdir('advisory')
    locker = Locker(mount, 'advisory')
    locker.do('flock', locker.do('open'), LOCK_EX)
    bystander = Locker(mount, 'advisory')
    bystander.do('open')
    wanted = ['kill', 'kill', 'term', 'none', 'kill', 'none', 'term']
    for round_, on_lost in enumerate(wanted):
        lock = f'loser{round_}'
        mount.mkdir(lock)
        loser = mount.take(lock).held()
        change('-o', f'on_lost={on_lost}', mount.directory)
        check_equal((option(mount, 'on_lost'), mount.status()['on_lost']), (on_lost, on_lost), 'on_lost')
        until(lambda on_lost=on_lost: (mount.guardian is None) == (on_lost == 'none'), 'the guardian comes, or goes')
        if round_ == 4:
            mount.adopt()
        entry, = mount.queue(lock)
        with open(mount.path(lock, 'queue', entry), 'w', encoding='ascii') as file:
            file.write('evict\n')
        if on_lost == 'none':
            until(lambda lock=lock: not server.entries(lock), 'the entry is gone')
            check(not loser.ended(), 'nobody is stopped')
            loser.release()
        else:
            loser.gone()
        stay(on_lost)
        check(not locker.ended() and not bystander.ended(), 'who holds by flock, and who holds nothing')
    entry, = server.entries('advisory')
    server.zk.delete('/locks/advisory/' + entry)
    locker.gone()
    stay('another loses')
    check(not bystander.ended(), 'who holds nothing')
    end()


def dead(case, server):
    """The new guardian knows when the lease ends, also if the daemon is dead."""
    mount = case.mount(server, 'g', session='12s')
    mount.allow('.')
    mount.mkdir('dead')
    holder = mount.take('dead').held()
    change('-o', 'on_lost=kill', mount.directory)
    mount.crash()
    holder.gone()
    command(['umount', '-l', mount.directory])
    until(lambda: not server.entries('dead'), 'its session ends after its lease')


def another_port(case, server):
    """The client of ZooKeeper compares addresses without their ports."""
    first, second = case.relay(server), case.relay(server)
    mount = case.mount(server, 'e', session='20s', servers=f'127.0.0.1:{first.port}')
    mount.allow('connection lost|does not answer')
    stay, end = crowd(mount, server, 'port')
    change(*all_of(mount)[:2], f'127.0.0.1:{second.port}/locks', mount.directory)
    until(lambda: mount.status()['addresses'] == f'127.0.0.1:{second.port}', 'the address')
    first.end()
    until(lambda: mount.status()['server'] == f'127.0.0.1:{second.port}', 'it goes there')
    mount.ready()
    stay('the other port')
    mount.reload()
    stay('once more')
    end()


def by_mount(case, server):
    mount = case.mount(server, 'f', session='30s')
    mount.allow('no reload')
    stay, end = crowd(mount, server, 'tree')

    def remount(options):
        return command([ZKLOCKFS, source(mount), mount.directory, '-o',
                        'rw,remount,nosuid,nodev,relatime,user_id=0,group_id=0,default_permissions,allow_other,' + options])
    status, _, err = until(lambda: None if any(busy in (got := remount('log_takes'))[2] for busy in BUSY) else got, 'remount')
    check_equal((status, err), (0, ''), 'remount')
    check_equal([option(mount, name) for name in ('log_takes', 'session_timeout')], ['yes', '30s'], 'what remount names')
    status, _, err = remount('session_timeout=10s')
    check(status == 32 and 'session_timeout of 10000 ms needs a restart' in err, f'refused: {status} {err}')
    stay('remount')
    status, out, _ = command([ZKLOCKFS, '--check', *all_of(mount, 'retry=60s', 'on_lost=term')])
    check('the mount runs with on_lost none, and not term; log_takes yes, and not no: zklockfs --reload with these arguments' in out, out)
    for args in (['-o', 'host=other,log_takes', mount.directory], all_of(mount, 'host=other,log_takes')):
        out = command([ZKLOCKFS, '--check', *args])[1]
        check(f'host {mount.host}, and not other: no reload changes host: stop the mount when' in out, out)
    status, out, _ = command([ZKLOCKFS, '--check', mount.directory])
    check(status == 0 and 'the mount runs with these options' in out and 'session: 30000 ms' in out, out)
    status, out, _ = command([ZKLOCKFS, '--check', *all_of(mount, 'log_takes', 'retry=60s')])
    check('the mount runs with these options' in out, out)
    end()


def test(case):
    server = case.server(tick_ms=500)
    case.at_once(*(lambda part, what=what: what(part, server)
                   for what in (taken, refused, losers, dead, another_port, by_mount)))


run(test)
