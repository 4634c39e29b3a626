#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Where a filter of system calls, or the /proc of another pid namespace, lets on_lost stop nobody, a mount grants
no lock, and its log, status, metrics and --check say so from the start. A filter that can be worked round costs
what is said."""

import errno
import os
import re
import shlex

from harness import Mount, Systemd, ZKLOCKFS, check, check_equal, check_errno, command, raw_open, refused, run, until, write_program

SIGNALS = ['kill', 'pidfd_send_signal']
NOBODY = 'wrong  on_lost could stop nobody here, so no locks are granted: '


class Unguarded(Mount):
    def ready(self):
        until(lambda: self.status().get('state') == 'unguarded', 'it says that it is unguarded')


def behind(case, calls, error):
    """A program that starts zklockfs behind such a filter."""
    path = f'{case.directory}/behind-{error}'
    write_program(path, f'exec {shlex.join(refused([ZKLOCKFS], calls, error))} "$@"')
    return path


def unguarded(case, server, systemd, error):
    mount = Unguarded(case, server, 'a', '15s', f'127.0.0.1:{server.port}', '/locks', ['on_lost=kill'], '-f',
                      behind(case, SIGNALS, error), {'NOTIFY_SOCKET': systemd.path}, '2000ms')
    case.mounts.append(mount)
    mount.allow('on_lost could stop nobody|guardian')
    mount.said(f'on_lost could stop nobody here, so no locks are granted: a process cannot be signalled: '
               f'{os.strerror(error)}', 1)
    lock = errno.errorcode[error]
    mount.mkdir(lock)
    check_errno(errno.ESHUTDOWN, raw_open, mount.path(lock, 'lock'), os.O_RDWR)
    check(re.search(r'^zklockfs_helper_up{.*helper="guardian"} 0$', mount.read('.zklockfs', 'metrics'), re.MULTILINE),
          'the metric of the alert')
    systemd.until_status('NO LOCK IS GRANTED: on_lost has no guardian.*')


def checked(server, program, status, line):
    got, out, err = command([*program, '--check', '-o', 'on_lost=term', f'127.0.0.1:{server.port}'])
    check_equal((got, err), (status, ''), out)
    check(line in out, f'no {line!r} in {out}')


def not_started(case, server):
    """What it cannot do without, and for which there is nothing else, has a line."""
    for call in 'epoll_create1', 'getrandom', 'memfd_create', 'signalfd4':
        got, out, err = command(refused([ZKLOCKFS, '-f', f'127.0.0.1:{server.port}/locks', case.mount_point()], [call]))
        check(got == 32 and f'cannot start: {call.rstrip("4")}: Operation not permitted' in out + err, f'{got}: {out}{err}')


def test(case):
    server, systemd = case.server(), Systemd(case)
    for error in (errno.EPERM, errno.ENOSYS):
        unguarded(case, server, systemd, error)
        why = os.strerror(error)
        checked(server, refused([ZKLOCKFS], SIGNALS, error), 32, f'{NOBODY}a process cannot be signalled: {why}')
        checked(server, refused([ZKLOCKFS], ['pidfd_open'], error), 0, f'risk   pidfd_open: {why}')
    # The leak check needs the pids of /proc.
    checked(server, ['env', 'ASAN_OPTIONS=detect_leaks=0', 'unshare', '--pid', '--fork', ZKLOCKFS], 32,
            f'{NOBODY}/proc is that of another pid namespace')
    not_started(case, server)
    status, out, err = command([ZKLOCKFS, '--check', '-o', 'on_lost=term', f'127.0.0.1:{server.port}'])
    check('ok     on_lost: ' in out and 'pidfd_open' not in out, f'{status}: {out}{err}')
    weak = case.mount(server, 'c', options=['on_lost=kill'], program=behind(case, ['pidfd_open'], errno.EPERM))
    weak.allow('pidfd_open')
    weak.said('pidfd_open: Operation not permitted: nobody can join a holder', 1)
    weak.take('EPERM').held().release()


run(test)
