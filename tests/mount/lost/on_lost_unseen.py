#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Without CAP_SYS_PTRACE on_lost finds no process of another user that has inherited a lock's file. The log says so
from the start, and again when a lock is lost; --check says it before. The opener is stopped all the same, also by a
mount that hides its memory, and what it forks, since it has credentials."""

import os
import select
import shlex
import socket

from harness import ALICE, ZKLOCKFS, check, check_equal, command, run, until, write_program
from openers import evict, process, runs

WITHOUT = ['setpriv', '--bounding-set', '-sys_ptrace', '--inh-caps', '-sys_ptrace', ZKLOCKFS]
NOT_FOUND = ("on_lost cannot find other users' processes that inherited a lock's file: CAP_SYS_PTRACE is missing, "
             'or /proc hides them: Permission denied')


def leave(path, ours, theirs):
    """Open it, and have a child that lives as long as somebody has the other end."""
    fd = os.open(path, os.O_RDWR)
    ours.close()
    if os.fork() == 0:
        theirs.recv(1)
        os._exit(0)
    theirs.close()
    return fd


def lose(mount, lock):
    """Returns an end, of which the child has the other one."""
    mount.mkdir(lock)
    ours, theirs = socket.socketpair()
    opener = process(leave, mount.path(lock, 'lock'), ours, theirs, uid=ALICE)
    theirs.close()
    evict(mount, lock)
    until(lambda: not runs(opener), 'the opener is stopped')
    return ours


def has_ended(child):
    return bool(select.select([child], [], [], 0)[0])


def is_a_risk(server, program):
    status, out, err = command([*program, '--check', '-o', 'on_lost=kill', f'127.0.0.1:{server.port}'])
    check_equal((status, err), (0, ''), out)
    check('ok     on_lost: a process could be found' in out, out)
    return f'risk   {NOT_FOUND}\n' in out


def with_credentials(case, server, program):
    """From the start on; and after a reload, when the ZooKeeper client has the credentials."""
    secret = f'{case.directory}/secret'
    with open(secret, 'w', encoding='ascii') as file:
        file.write('team:password\n')
    os.chmod(secret, 0o600)
    for host, before in (('c', 'kill'), ('d', 'none')):
        mount = case.mount(server, host, root='/private', program=program,
                           options=['mkroot', f'credentials={secret}', f'on_lost={before}'])
        mount.allow('CAP_SYS_PTRACE|looked into|evicted|lost|SIGKILL|taken over')
        if before == 'none':
            status, out, err = command([ZKLOCKFS, '--reload', '-o', 'on_lost=kill', mount.directory])
            check_equal(status, 0, out + err)
        lose(mount, host).close()
        mount.said('SIGKILL', 1)


def test(case):
    server = case.server()
    os.umask(0)
    check(is_a_risk(server, WITHOUT), '--check does not say it')
    check(not is_a_risk(server, [ZKLOCKFS]), '--check says it where they are found')

    path = f'{case.directory}/without'
    write_program(path, f'exec {shlex.join(WITHOUT)} "$@"')
    mount = case.mount(server, 'a', options=['on_lost=kill'], program=path)
    mount.allow('CAP_SYS_PTRACE|looked into|evicted|lost|SIGKILL')
    mount.said(NOT_FOUND, 1)
    with lose(mount, 'x') as child:
        mount.said('x: processes that could not be looked into: ', 1)
        check(not has_ended(child), 'it is stopped, though it cannot be found')

    with_credentials(case, server, path)
    other = case.mount(server, 'b', options=['on_lost=kill'])
    other.allow('evicted|lost|SIGKILL')
    with lose(other, 'y') as child:
        until(lambda: has_ended(child), 'a process that is found is stopped')
    check('CAP_SYS_PTRACE' not in other.log() and 'looked into' not in other.log(), other.log())


run(test)
