#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""zklock(1), where another filesystem is mounted over a part of the mount, as whoever may write there can do by
fusermount3: it takes nothing there for a lock, says what is mounted where, and ends with 69."""

import ctypes
import os
import re
import subprocess

from harness import ALICE, NO_KEEPER, SOURCE_ROOT, ZKLOCKFS, check, check_equal, command, is_ready, libc, run, spawn, until
from locking import ZKLOCK, environment

LOCK_FILES = ('lock', 'flock', 'reentrant')
STATX = 332     # x86-64
NAMED = re.compile(r'another filesystem \((\S+)(?: of user (\d+))?\) is mounted on (\S+) and hides it: umount (\S+)\n')
WITHOUT = f"""
import ctypes, errno, os, struct, sys
# Load the number of the call; is it {STATX}; then EPERM; else it is allowed.
code = ((0x20, 0, 0, 0), (0x15, 0, 1, {STATX}), (0x06, 0, 0, 0x50000 | errno.EPERM), (0x06, 0, 0, 0x7fff0000))
filter = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *line) for line in code))
libc = ctypes.CDLL(None)
if libc.prctl(22, 2, struct.pack('HP', len(code), ctypes.addressof(filter))) == 0:
    os.execv(sys.argv[1], sys.argv[1:])
"""


def umount(path):
    check_equal(command(['umount', path])[0], 0, 'umount ' + path)


def make_lock(directory):
    """What looks like a lock that is held by nobody."""
    os.makedirs(directory + '/queue')
    for name in LOCK_FILES:
        with open(f'{directory}/{name}', 'w', encoding='ascii') as lock_file:
            lock_file.write('4294967299\n')


def refused(case, words, where, kind='tmpfs', user=None, **options):
    """zklock does not run the command, nor does a command that looks say anything else."""
    ran = case.directory + '/ran'
    status, out, err = command([*words, '--', 'touch', ran] if 'evict' not in words and 'ls' not in words and
                               'why' not in words else words, env=environment(), **options)
    check(not os.path.exists(ran), f'{words}: the command ran')
    said = NAMED.search(out + err)
    check_equal((status, said and said.groups()), (69, (kind, user, where, where)), f'{words}: {out}{err}')


def by_path(case, a, where, kind='tmpfs', user=None):
    """In each way to name the lock."""
    link = f'{case.directory}/above/{os.path.basename(a.directory)}'
    for lock_file in ([], ['-R'], ['-s']):
        refused(case, [ZKLOCK, '-n', '-r', '1', *lock_file, '-m', a.directory, 'team/build'], where, kind, user)
    for words in (['-n', a.path('team/build')], ['-n', link + '/team/build'], ['-n', '-m', link, 'team/build'],
                  ['-n', '-m', a.path('team'), 'build']):
        refused(case, [ZKLOCK, *words], where, kind, user)
    refused(case, ['python3', '-c', WITHOUT, ZKLOCK, '-n', a.path('team/build')], where, kind, user)
    refused(case, [ZKLOCK, '-n', '-m', '.', 'team/build'], where, kind, user, cwd=a.directory)
    for words in (['why', 'team/build'], ['ls', 'team/build'], ['evict', 'team/build', 'holder']):
        refused(case, [ZKLOCK, '-m', a.directory, *words], where, kind, user)


def directories(case, a):
    for name in ('team', 'team/build'):
        where = a.path(name)
        check(libc.mount(b'tmpfs', where.encode(), b'tmpfs', 0, None) == 0, os.strerror(ctypes.get_errno()))
        make_lock(a.path('team/build'))
        by_path(case, a, where)
        compared(a, False)
        umount(where)
    # Neither does a link lead to another lock.
    where = a.path('team')
    check(libc.mount(b'tmpfs', where.encode(), b'tmpfs', 0, None) == 0, os.strerror(ctypes.get_errno()))
    os.symlink(a.path('other'), where + '/build')
    by_path(case, a, where)
    umount(where)


def in_the_lock(case, a):
    """The queue and single files: what is not hidden can be used."""
    where = a.path('team/build/queue')
    check(libc.mount(b'tmpfs', where.encode(), b'tmpfs', 0, None) == 0, os.strerror(ctypes.get_errno()))
    for words in (['why', 'team/build'], ['ls', 'team/build'], ['evict', 'team/build', 'holder']):
        refused(case, [ZKLOCK, '-m', a.directory, *words], where)
    check_equal(command([ZKLOCK, '-n', a.path('team/build'), '--', 'true'], env=environment())[0], 0, 'the lock itself')
    umount(where)

    local = case.directory + '/local'
    with open(local, 'w', encoding='ascii') as lock_file:
        lock_file.write('4294967299\n')
    for lock_file, options in (('flock', []), ('reentrant', ['-R'])):
        where = a.path('team/build', lock_file)
        check(libc.mount(local.encode(), where.encode(), None, 0x1000, None) == 0, os.strerror(ctypes.get_errno()))
        status, out, err = command([ZKLOCK, '-n', *options, a.path('team/build'), '--', 'true'], env=environment())
        said = NAMED.search(err)
        check_equal((status, said and said[3]), (69, where), f'{lock_file}: {out}{err}')
        umount(where)

    # The entry of a holder: that it holds cannot be seen, and is not guessed.
    holder = a.take('team/build').held()
    where = a.path('team/build/queue', a.queue('team/build')[0])
    check(libc.mount(local.encode(), where.encode(), None, 0x1000, None) == 0, os.strerror(ctypes.get_errno()))
    status, out, err = command([ZKLOCK, '-m', a.directory, 'why', 'team/build'], env=environment())
    check(status == 75 and 'an entry cannot be seen' in out and where in out and 'waits' not in out, f'{status} {out}{err}')
    out = command([ZKLOCK, '-m', a.directory, 'ls', 'team/build'], env=environment())[1]
    check(' covered ' in out, out)
    refused(case, [ZKLOCK, '-m', a.directory, 'evict', 'team/build', os.path.basename(where)], where,
            kind=os.popen(f'findmnt -no FSTYPE {where}').read().strip())
    check(holder.token() > 0, 'it was not evicted')
    umount(where)
    holder.release()


def compared(a, same):
    """What zklockfs-idioms(7) says to programs without zklock."""
    with open(SOURCE_ROOT + '/fs/pages/zklockfs-idioms.7.md', encoding='utf-8') as page:
        line = next(line.lstrip() for line in page if line.lstrip().startswith('[ "$(stat -c %d - <&9)"'))
    line = 'exec 9<>"$1/flock" && ' + line.replace('/mnt/locks', a.directory)
    check_equal(command(['sh', '-c', line, 'sh', a.path('team/build')]), (0 if same else 69, '', ''), line)


def another_zklockfs(case, server, a):
    """A user's own mount, for all, of the same type, over a directory of that user's."""
    where = a.path('team')
    os.chown(where, ALICE, ALICE)
    mount = spawn(['setpriv', f'--reuid={ALICE}', f'--regid={ALICE}', '--clear-groups', ZKLOCKFS, '-f', '-o',
                   f'host=b,retry=1m,allow_other,tick_time={server.tick_ms}ms,{NO_KEEPER}',
                   f'127.0.0.1:{server.port}/locks/alice', where], stdin=subprocess.DEVNULL)
    until(lambda: mount.poll() is not None or is_ready(where, ALICE), 'it serves')
    os.mkdir(where + '/build')
    by_path(case, a, where, 'fuse.zklockfs', str(ALICE))
    umount(where)
    check_equal(mount.wait(60), 0, 'how it ends')


def test(case):
    server = case.server()
    server.zk.create('/locks', b'')
    server.zk.create('/locks/alice', b'')
    a = case.mount(server)
    case.fuse_for_all()
    case.instead('/etc/fuse.conf', 'user_allow_other\n')
    os.symlink(case.directory, case.directory + '/above')
    os.umask(0)
    for name in ('team', 'team/build', 'other'):
        a.mkdir(name)
    os.umask(0o022)
    compared(a, True)
    directories(case, a)
    in_the_lock(case, a)
    another_zklockfs(case, server, a)
    check_equal(command([ZKLOCK, '-n', a.path('team/build'), '--', 'true'], env=environment())[0], 0, 'nothing hides it')


run(test)
