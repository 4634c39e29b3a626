#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The commands of the manual pages that no other test runs, copied from what man(1) shows: those that mount, of
zklockfs(8); those that run a command under locks; those that make certificates, of zklockfs-tls(7)."""

import contextlib
import os
import re
import shutil

from gate import EXAMPLES, Gate, check, check_equal, command
from harness import ZKLOCKFS, besides_usual, run, until
from locking import environment, zklock
from printed import BUSY, indented, shown


def block(page, start):
    """The one that begins so."""
    text, = [text for text in indented(shown(page)) if text.startswith(start)]
    return text


def line(page, start):
    text, = re.findall(rf'^ +({re.escape(start)}.*)$', shown(page), re.MULTILINE)
    return text


def done(text, gate, mount=None, **options):
    """A block, as it is typed; its output."""
    path = f'{gate.tools}:{os.path.dirname(ZKLOCKFS)}:' + environment()['PATH']
    status, out, err = besides_usual(command(['sh', '-e', '-c', text], env=environment(mount, PATH=path), **options))
    check_equal((status, err), (0, ''), text)
    return out


def from_other_tools(gate, mount):
    """Each does what stands beside it, as far as one host can tell."""
    gate.tool('c', 'echo "token ${ZKLOCK_TOKEN:?}"')
    words = sorted(set(re.findall(r'\b(zklock (?:-.*)?(?:p|seats) -- c)$', shown('fs/pages/zklock.1.md'), re.MULTILINE)))
    check(len(words) >= 10, words)
    mount.mkdir('p')
    for text in words:
        lock = text.split()[-3]
        if '--make' in text and lock == 'p':
            os.rmdir(mount.path('p'))
        check(re.fullmatch(r'token [0-9]+\n', done(text, gate, mount)), text)
        slots = re.search('--slots ([0-9]+)', text)
        check_equal(mount.read(lock, 'slots'), slots[1] + '\n' if slots else '1\n', text)
        if '--at-least' in text:
            check('token' not in command(['sh', '-c', text], env=environment(mount))[1], 'a job that another host does')
            check_equal(zklock(mount, 'evict', 'p', 'holder')[0], 0, 'evict')
        until(lambda lock=lock: not mount.queue(lock), f'{text}: the lock is free')
    os.rmdir(mount.path('seats'))
    holder = mount.take('p').held()
    looks = sorted(re.findall(r'\b(?:zklock (?:why|ls|evict) p|cat \S*/p/value)\b[^,\n]*', shown('fs/pages/zklock.1.md')),
                   key=lambda text: 'evict' in text)
    check_equal(len(looks), 4, looks)
    for text in looks:
        check_equal(command(['sh', '-c', text.strip().replace('/mnt/locks', mount.directory)], env=environment(mount))[0],
                    BUSY if ' why ' in text else 0, text)
    holder.kill()
    until(lambda: not mount.queue('p'), 'evicted')
    os.rmdir(mount.path('p'))


def run_under_locks(gate, mount):
    for lock in ('svca', 'svcb', 'svcc', 'db', 'build'):
        mount.mkdir(lock)
    out = done(line('fs/pages/zklock.1.md', "zklock -w 10m -r 'deploy v42'"), gate, mount)
    check_equal(out, 'made deploy\n', 'three locks')
    out = done(line('fs/pages/zklock.1.md', "zklock -r 'schema 17'"), gate, mount)
    check(re.fullmatch(r'migrated --fence [0-9]+\n', out), f'the token is passed on: {out}')
    from_other_tools(gate, mount)
    words = line('fs/pages/zklockfs.5.md', 'flock /mnt/locks')
    check_equal(done(words.replace('/mnt/locks', mount.directory), gate), 'made deploy\n', words)
    os.rmdir(mount.path('build'))


def mounts(case, gate, server):
    """Each in the background, at a place of its own, and given back as it was."""
    server.zk.create('/team')
    server.zk.create('/team/locks')
    for start, servers, point, out in (
            ('zklockfs zk1', 'zk1:2181,zk2:2181,zk3:2181', '/mnt/locks', 'made deploy\n'),
            ('zklockfs -o tick_time', 'zk1,zk2,zk3', '/mnt/team', '')):
        text, directory = block('fs/pages/zklockfs.8.md', start), case.mount_point()
        check(servers in text and point in text, text)
        with contextlib.ExitStack() as after:
            after.callback(os.chmod, directory, 0o755)
            after.callback(command, ['chattr', '-i', directory])
            after.callback(command, ['umount', directory])
            text = text.replace(servers, f'127.0.0.1:{server.port}').replace(point, directory)
            check_equal(done(text.replace('zklock build', f'zklock -m {directory} build'), gate), out, text)
            check(os.path.ismount(directory), f'{text}: nothing is mounted')


def certificates(case, gate):
    directory = case.directory + '/certificates'
    os.mkdir(directory)
    text = block('fs/pages/zklockfs-tls.7.md', 'PATH=').replace('/usr/share/doc/zklockfs/examples', EXAMPLES)
    done(text, gate, cwd=directory)
    words = line('fs/pages/zklockfs-tls.7.md', 'openssl pkcs12')
    done(words + ' -passout pass:secret', gate, cwd=directory)
    check(os.path.getsize(directory + '/server.p12') > 0, words)


def test(case):
    server = case.server()
    gate = Gate(case)
    gate.tool('make', 'echo "made $*"')
    gate.tool('migrate', 'echo "migrated $*"')
    run_under_locks(gate, case.mount(server))
    mounts(case, gate, server)
    check(shutil.which('openssl'), 'openssl is installed')
    certificates(case, gate)


run(test)
