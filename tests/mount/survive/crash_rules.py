#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""When a killed daemon cannot be replaced, everything is at once as without a supervisor: waiters get
ECONNABORTED, holders ENOTCONN, on_lost acts in time, the lock passes on, and the supervisor ends by the
daemon's signal. This is so when the new daemon hangs or fails, after too many crashes, when one
request kills two daemons, and when the lease is over. Actions of users while no daemon serves
have their effect as soon as the new daemon serves."""

import contextlib
import errno
import os
import select
import signal
import stat
import subprocess
import threading

from harness import (ALICE, SLOWNESS, ZKLOCKFS, Stopwatch, Successor, as_user, check, check_equal, check_errno, check_user,
                     command, errno_of, is_ready, libc, mounted, patiently, raw_open, run, spawn, until)
from kill_points import KillPoints

# A machine under load starts another daemon within a lease of such a session.
SECONDS = int(12 * SLOWNESS)
SESSION = f'{SECONDS}s'
_MS_BIND = 0x1000


class Scene:
    """A holder and a waiter on the mount, and a waiter on another host."""

    def __init__(self, case, server, name, options=(), session=SESSION, **more):
        self.name = name
        self.a = case.mount(server, 'a-' + name, session=session, options=options, **more)
        self.b = case.mount(server, 'b-' + name, session='60s')
        self.a.allow('.')
        self.a.mkdir(name)
        self.holder = self.a.take(name).held()
        self.token = self.holder.token()
        self.waiter = self.a.take(name)
        until(lambda: len(server.entries(name)) == 2, 'the waiter queues')
        self.elsewhere = Successor(self.b, name, [self.holder.pid] if 'on_lost=kill' in options else ())
        until(lambda: len(server.entries(name)) == 3, 'another host queues')

    def is_lost(self, why, stopped=False):
        """Check that the mount has ended as a mount without a supervisor does."""
        until(lambda: self.a.process.poll() is not None, 'the supervisor ends')
        check_equal(self.a.process.returncode, -signal.SIGKILL, 'how the supervisor ends')
        self.a.checked = True
        self.a.said(why)
        self.waiter.refused(errno.ECONNABORTED)
        if stopped:
            self.holder.gone()
        else:
            check_errno(errno.ENOTCONN, self.holder.do, 'pread', 64, 0)
            self.holder.kill()
        self.elsewhere.held()
        check(self.elsewhere.token() > self.token, 'the token does not rise')
        self.elsewhere.release()
        check_errno(errno.ENOTCONN, os.listdir, self.a.directory)
        check_equal(command(['umount', '-l', self.a.directory])[0], 0, 'umount')

    def goes_on(self):
        check_equal(self.holder.token(), self.token, 'the token')
        self.holder.do('fsync')
        check(not self.waiter.answered() and not self.elsewhere.answered(), 'a waiter does not wait')


def hangs(case, server):
    """A daemon that hangs is killed when the lease is over, and the holder is stopped before."""
    points = KillPoints(case, 'hangs')
    scene = Scene(case, server, 'hangs', ['on_lost=kill'], env=points.env)
    points.wait()
    watch = Stopwatch()
    scene.a.send(signal.SIGKILL)
    scene.is_lost('does not serve before its lease ends', stopped=True)
    watch.check(1, 3.5 * SECONDS, 'a daemon that hangs')


def ends(case, server):
    points = KillPoints(case, 'ends')
    scene = Scene(case, server, 'ends', env=points.env)
    points.end()
    watch = Stopwatch()
    scene.a.send(signal.SIGKILL)
    until(lambda: scene.waiter.answered(), 'the waiter is told')
    watch.check(0, 2 * SLOWNESS, 'a daemon that fails')
    scene.is_lost('ended with status 3 instead of going on')


def too_often(case, server):
    scene = Scene(case, server, 'often')
    for _ in range(2):
        scene.a.adopt()
        scene.goes_on()
    scene.a.send(signal.SIGKILL)
    scene.is_lost('too many crashes within the session timeout')


def not_too_often(case, server):
    scene = Scene(case, server, 'seldom', session=f'{3 * SECONDS}s')
    for _ in range(4):
        scene.a.rest()
        scene.a.adopt()
        scene.goes_on()
    check_equal(scene.a.metric('adoptions_total'), 4, 'so often')
    scene.holder.release()
    scene.waiter.held().release()
    scene.elsewhere.held().release()


def lease_over(case, server):
    """The server hangs, and the lease is over before the daemon is killed."""
    relay = case.relay(server)
    scene = Scene(case, server, 'over', servers=f'127.0.0.1:{relay.port}')
    relay.freeze()
    until(lambda: errno_of(scene.holder.do, 'pread', 64, 0) == errno.EIO, 'the holder has lost')
    scene.a.send(signal.SIGKILL)
    relay.thaw()
    scene.is_lost('the lease is over')


def poison(case, server):
    """A request kills each daemon that answers it."""
    points = KillPoints(case, 'poison')
    scene = Scene(case, server, 'poison', env=points.env)
    points.poison(1)
    check_errno(errno.ECONNABORTED, os.statvfs, scene.a.directory)
    scene.is_lost('the same request has ended two daemons')


def no_poison(case, server):
    """A request kills one daemon, and the next one is killed before it serves anything."""
    points = KillPoints(case, 'innocent')
    scene = Scene(case, server, 'innocent', env=points.env)
    points.wait()
    points.poison(1)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(os.statvfs(scene.a.directory)), daemon=True)
    thread.start()
    points.waits()
    points.poison(0)
    scene.a.allow_more('was ended by signal')
    scene.a.send(signal.SIGKILL)
    points.go()
    scene.goes_on()
    until(lambda: answers, 'the request is answered')
    scene.holder.release()
    scene.waiter.held().release()
    scene.elsewhere.held().release()


def meanwhile(case, server):
    """While no daemon serves, one waiter is interrupted, one is killed, and one comes; one holder
    is evicted, one is killed, and one loses its lock while it polls."""
    points = KillPoints(case, 'meanwhile')
    # All this has to fit into a lease, also on a slow machine.
    scene = Scene(case, server, 'meanwhile', session=f'{3 * SECONDS}s', env=points.env)
    for name in ('evicted', 'shy', 'other'):
        scene.a.mkdir(name)
    interrupted, killed = scene.a.take('meanwhile'), scene.a.take('meanwhile')
    until(lambda: len(server.entries('meanwhile')) == 5, 'they queue')
    evicted, behind = scene.a.take('evicted').held(), scene.b.take('evicted')
    closed, next_one = scene.a.take('other').held(), scene.b.take('other')
    until(lambda: len(server.entries('evicted')) == 2 and len(server.entries('other')) == 2, 'they queue')
    shy = os.open(scene.a.path('shy', 'lock'), os.O_RDWR)
    poll = select.poll()
    poll.register(shy, 0)
    woken = []
    thread = threading.Thread(target=lambda: woken.append(poll.poll(60000)), daemon=True)
    thread.start()
    points.wait()
    scene.a.send(signal.SIGKILL)
    points.waits()
    interrupted.kill(signal.SIGUSR1)
    killed.kill()
    entry = scene.b.queue('evicted')[0]
    with open(scene.b.path('evicted', 'queue', entry), 'w', encoding='ascii') as file:
        file.write('evict\n')
    server.zk.delete('/locks/shy/' + server.entries('shy')[0])
    closed.kill()           # no daemon hears of its close
    late = scene.a.take('meanwhile')
    check(not interrupted.answered() and not killed.ended(), 'a taker was served without a daemon')
    points.go()
    scene.goes_on()
    interrupted.refused(errno.EINTR)
    killed.gone()
    until(lambda: errno_of(evicted.do, 'pread', 64, 0) == errno.EIO, 'the evicted one has lost')
    behind.held().release()
    next_one.held().release()
    until(lambda: woken, 'the poller is woken')
    check(woken[0][0][1] & select.POLLERR, 'what it is told')
    os.close(shy)
    evicted.release()
    interrupted.kill()
    scene.holder.release()
    scene.waiter.held().release()
    scene.elsewhere.held().release()
    late.held().release()


def told_to_leave(case, server):
    """SIGTERM while no daemon serves: the new daemon leaves in order."""
    points = KillPoints(case, 'told')
    scene = Scene(case, server, 'told', env=points.env)
    points.wait()
    scene.a.send(signal.SIGKILL)
    points.waits()
    scene.a.process.terminate()
    points.go()
    until(lambda: mounted(scene.a.directory) is None, 'the mount point goes')
    scene.waiter.refused(errno.ESHUTDOWN)
    check_equal(scene.holder.token(), scene.token, 'the token')
    scene.holder.do('fsync')
    scene.holder.release()
    scene.elsewhere.held().release()
    until(lambda: scene.a.process.poll() is not None, 'the supervisor ends')
    check_equal(scene.a.process.returncode, 0, 'how the supervisor ends')
    scene.a.checked = True


def in_background(case, server):
    """A mount in the background, with credentials, which each new daemon reads. Two kills."""
    secret = case.directory + '/secret'
    with open(secret, 'w', encoding='ascii') as file:
        file.write('team:password\n')
    os.chmod(secret, 0o600)
    path = case.mount_point()
    options = f'on_lost=kill,credentials={secret},host=back,mkroot,retry=1m,session_timeout={SESSION},tick_time=500ms'
    status, _, err = command([ZKLOCKFS, '-o', options, f'127.0.0.1:{server.port}/private', os.path.relpath(path)])
    check_equal(status, 0, f'the command: {err}')

    def daemons():
        found = {}
        for pid in case.daemons():
            with contextlib.suppress(OSError):
                with open(f'/proc/{pid}/cmdline', encoding='utf-8') as file:
                    if 'host=back' in file.read():
                        with open(f'/proc/{pid}/comm', encoding='ascii') as comm:
                            found.setdefault(comm.read().strip(), []).append(pid)
        return found

    def daemon():
        """A process that it has forked has its name, too, for a moment."""
        return until(lambda: (found := daemons().get('zklockfs', ())) and len(found) == 1 and found[0], 'one daemon')

    patiently(os.mkdir, path + '/back')
    fd = os.open(path + '/back/lock', os.O_RDWR)
    token = os.pread(fd, 64, 0)
    guardian = until(lambda: daemons().get('zklockfs-guard'), 'the guardian has its name')
    for _ in range(2):
        os.kill(daemon(), signal.SIGKILL)
        check_equal(os.pread(fd, 64, 0), token, 'the token')
        os.fsync(fd)
    check_equal(daemons()['zklockfs-guard'], guardian, 'the guardian')
    last = daemon()
    check_equal([os.readlink(f'/proc/{last}/fd/{number}') for number in range(3)], 3 * ['/dev/null'], 'descriptors')
    check(as_user(ALICE, raw_open, f'/proc/{last}/mem', os.O_RDONLY) != 0, 'its memory can be read')
    os.close(fd)
    check_equal(command(['umount', path])[0], 0, 'umount')
    until(lambda: not daemons(), 'all of it ends')


def of_a_user(case, server):
    case.users()
    os.chmod(case.directory, 0o711)
    path = case.directory + '/users'
    os.mkdir(path)
    os.chown(path, ALICE, ALICE)
    device = case.directory + '/fuse'
    os.mknod(device, stat.S_IFCHR, os.stat('/dev/fuse').st_rdev)
    os.chmod(device, 0o666)
    check(libc.mount(device.encode(), b'/dev/fuse', None, _MS_BIND, None) == 0, 'another /dev/fuse')
    alice = ['setpriv', f'--reuid={ALICE}', f'--regid={ALICE}', '--clear-groups']
    supervisor = spawn([*alice, ZKLOCKFS, '-f', '-o',
                    f'host=alice,on_lost=kill,retry=1m,tick_time=500ms,session_timeout={SESSION}',
                    f'127.0.0.1:{server.port}/locks', path], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, prompt=10)
    until(lambda: is_ready(path, ALICE), 'it serves')
    check_user(0, ALICE, patiently, os.mkdir, path + '/alice')
    user = spawn([*alice, 'bash', '-c', '''
        exec 9<>"$1/alice/lock" && read -r token <&9 && echo held && read -r _
        exec 8<>"$1/alice/reentrant" && read -r again <&8 && [ "$again" = "$token" ] && echo still''', 'user', path],
                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    check_equal(user.stdout.readline(), 'held\n', 'the user holds')
    with open(f'/proc/{supervisor.pid}/task/{supervisor.pid}/children', encoding='ascii') as children:
        os.kill(int(children.read()), signal.SIGKILL)
    until(lambda: 'has taken over' in supervisor.stderr.readline(), 'another one goes on')
    user.stdin.write('\n')
    user.stdin.close()
    check_equal(user.stdout.readline(), 'still\n', 'the user holds, and his shell is known as the same process')
    check_equal(user.wait(60), 0, 'status of the user')
    supervisor.terminate()
    check_equal(supervisor.wait(60), 0, 'status of the supervisor')
    check(mounted(path) is None, 'it is still mounted')


def test(case):
    server = case.server(tick_ms=500)
    case.at_once(*(lambda part, what=what: what(part, server) for what in (hangs, ends, too_often, not_too_often, in_background)))
    case.at_once(*(lambda part, what=what: what(part, server)
                   for what in (lease_over, poison, no_poison, meanwhile, told_to_leave, of_a_user)))


run(test)
