#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A user's own mount, by fusermount3: it serves that user alone, stops the user's processes
that lose a lock, clears away its dead predecessor, and leaves like root's mount. With
allow_other it serves all, and says whom it cannot stop."""

import errno
import os
import re
import signal
import subprocess

from harness import (ALICE, BOB, NO_KEEPER, NOBODY, ZKLOCKFS, Taker, check, check_equal, check_user, command, is_ready, mounted,
                     raw_open, run, spawn, until)

class UserMount:
    def __init__(self, case, server, point, *options):
        self.point = point
        self.log = open(case.directory + '/user.log', 'a+', encoding='utf-8')
        self.process = spawn(['setpriv', f'--reuid={ALICE}', f'--regid={ALICE}', '--clear-groups', ZKLOCKFS, '-f',
                              '-o', ','.join(['host=a,on_lost=kill,session_timeout=20s,tick_time=500ms,retry=1m', *options]),
                              f'127.0.0.1:{server.port}/locks', point],
                             stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        until(lambda: self.process.poll() is not None or is_ready(point, ALICE), 'it serves')
        check(self.process.poll() is None, self.said())

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def end(self, number, status):
        self.process.send_signal(number)
        check_equal(self.process.wait(60), status, f'how it ends: {self.said()}')


def check_says(line, source, point, uid):
    _, out, err = command([ZKLOCKFS, '--check', source, point], user=uid, group=uid, extra_groups=())
    check(line in out, f'for {uid}: {out}{err}')


def test(case):
    server = case.server(tick_ms=500)
    case.fuse_for_all()
    point = case.mount_point()
    os.chown(point, ALICE, ALICE)
    lock_file = point + '/build/lock'

    mount = UserMount(case, server, point, NO_KEEPER)
    check_user(0, ALICE, os.mkdir, point + '/build')
    check_user(0, ALICE, os.mkdir, point + '/own')
    check_user(0, ALICE, raw_open, lock_file, os.O_RDWR)
    for uid in (0, BOB, NOBODY):
        check_user(errno.EACCES, uid, os.listdir, point)

    source = f'127.0.0.1:{server.port}/locks'
    check_says('ok     mount point: zklockfs is mounted there, for another user; ', source, point, 0)
    check_says('ok     mount point: zklockfs is mounted there, state: ready; ', source, point, ALICE)

    def take():
        case.takers.append(Taker(lock_file, os.O_RDWR, ALICE))
        case.takers[-1].held()
        return case.takers[-1]

    loser = take()
    for entry in server.entries('build'):
        server.zk.delete(f'/locks/build/{entry}')
    until(loser.ended, 'the taker that has lost the lock is killed')

    holder = take()
    mount.end(signal.SIGKILL, -signal.SIGKILL)
    check_user(errno.ENOTCONN, ALICE, os.listdir, point)
    check_says('risk   mount point: a dead zklockfs is there: mount again\n', source, point, ALICE)
    holder.kill()
    until(holder.ended, 'the holder ends')

    mount = UserMount(case, server, point)
    holder = take()
    mount.process.send_signal(signal.SIGTERM)
    until(lambda: not mounted(point), 'nobody else finds it')
    check_equal(mount.process.poll(), None, 'it serves the holder')
    holder.release()
    check_equal(mount.process.wait(60), 0, 'how it ends')
    check('cannot stop' not in mount.said(), 'it is asked to stop no other user')
    spared(case, server, point)


def spared(case, server, point):
    """Another user's process, which the guardian may not signal."""
    case.instead('/etc/fuse.conf', 'user_allow_other\n')
    mount = UserMount(case, server, point, 'allow_other')
    until(lambda: 'on_lost cannot stop the processes of other users' in mount.said(), 'a line at the start')
    os.chmod(point + '/build/lock', 0o666)
    own, other = (Taker(f'{point}/{lock}/lock', os.O_RDWR, uid) for lock, uid in (('own', ALICE), ('build', BOB)))
    case.takers += [own, other]
    own.held()
    other.held()
    until(lambda: f'build: its taker, pid {other.pid}, is of uid {BOB}, and could not be stopped' in mount.said(),
          'a line for the other one')
    for lock in ('own', 'build'):
        for entry in server.entries(lock):
            server.zk.delete(f'/locks/{lock}/{entry}')
    until(own.ended, 'the own one is killed')
    until(lambda: f'build: could not stop pid {other.pid} (python3) uid {BOB}: Operation not permitted' in mount.said(),
          'and it is said that the other one is not')
    until(lambda: f'own: sent SIGKILL to pid {own.pid} (python3) uid {ALICE}: the lock is lost' in mount.said(),
          'and of the own one that it is')
    check(f'of uid {ALICE}, and could not' not in mount.said(), mount.said())
    for name in ('not_stopped_total{.*}', 'stopped_total{.*"SIGKILL"}'):
        until(lambda name=name: re.search(rf'^zklockfs_{name} 1$', metrics(point), re.MULTILINE), f'the metric {name}')
    check(not other.ended(), 'it goes on')
    other.kill()
    mount.end(signal.SIGTERM, 0)


def metrics(point):
    with open(point + '/.zklockfs/metrics', encoding='utf-8') as file:
        return file.read()


run(test)
