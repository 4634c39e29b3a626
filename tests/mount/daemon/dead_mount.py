#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""After kill -9 of a daemon without a supervisor, waiters get ECONNABORTED and holders ENOTCONN, and
the lock passes on after the session timeout. A daemon that is started again clears the dead mount
and serves, also by a symbolic link. A second daemon on a living mount is refused."""

import errno
import os
import signal
import subprocess

from harness import NO_KEEPER, ZKLOCKFS, Stopwatch, besides_usual, check, check_equal, check_errno, command, mounted, run, spawn, until


def test(case):
    server = case.server(tick_ms=500)
    a = case.mount(server, 'a', session='10s', options=[NO_KEEPER])
    b = case.mount(server, 'b', session='60s')
    a.mkdir('build')
    holder = a.take('build').held()
    waiter = a.take('build')
    until(lambda: len(server.entries('build')) == 2, 'the waiter queues')
    elsewhere = b.take('build')

    link = case.directory + '/link'
    os.symlink(a.directory, link)
    again = [ZKLOCKFS, '-f', '-o', f'session_timeout=10s,tick_time=500ms,host=a',
             f'127.0.0.1:{server.port}/locks', link]
    status, _, err = command(again)
    check_equal(status, 32, 'a second mount on a living one')
    check('already' in err and err.count('\n') == 1, err)

    watch = Stopwatch()
    a.send(signal.SIGKILL)
    a.checked = True
    waiter.refused(errno.ECONNABORTED)
    try:
        holder.token()
        check(False, 'a descriptor of a dead mount works')
    except OSError as error:
        check_equal(error.errno, errno.ENOTCONN, 'the holder')
    check_errno(errno.ENOTCONN, os.listdir, a.directory)

    daemon = spawn(again, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    until(lambda: mounted(a.directory) and os.path.exists(a.path('.zklockfs', 'status')), 'it serves again')
    elsewhere.held()
    watch.check(1, 30, 'the lock of the killed daemon')
    elsewhere.release()
    holder.kill()
    os.close(os.open(a.path('build', 'lock'), os.O_RDWR))
    status, _, err = command(['fusermount3', '-u', a.directory])
    check_equal((status, err), (0, ''), 'fusermount3 -u')
    _, err = daemon.communicate(timeout=60)
    check_equal(daemon.returncode, 0, 'the second daemon')
    check(' serves ' in err, err)
    check_equal(besides_usual((0, '', err))[2].count('\n'), 1, err)


run(test)
