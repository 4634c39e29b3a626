#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""With -o credentials=FILE all nodes are made for that user alone. Mounts and other clients
with the same credentials share locks. Others get EACCES at once. Without the right to write the
root there is no mount. The password is shown nowhere."""

import errno
import os

import rawzk
from harness import (Stopwatch, ZKLOCKFS, besides_usual, check, check_equal, check_errno, command, errno_of, mounted,
                     run, until)

PASSWORD = 'correct-horse-b4ttery'
MINE = [(rawzk.ALL, 'digest', rawzk.digest_id('team:' + PASSWORD))]


def memory(pid):
    """The memory that a process may write to: every copy that it has made is there."""
    with open(f'/proc/{pid}/maps', encoding='utf-8') as maps, open(f'/proc/{pid}/mem', 'rb') as mem:
        for line in maps:
            start, end = (int(part, 16) for part in line.split()[0].split('-'))
            # Sanitizers keep shadows of everything, far too large to look through.
            if line.split()[1].startswith('rw') and end - start < 1 << 28:
                mem.seek(start)
                yield mem.read(end - start)


def shared(case, server, option):
    """Two mounts of a tree that only their credentials open."""
    a = case.mount(server, 'a', root='/private', options=['mkroot', option, 'on_lost=kill'])
    b = case.mount(server, 'b', root='/private', options=[option])
    a.mkdir('build')
    holder = a.take('build').held()
    b.take('build', lock_file='try').refused(errno.EAGAIN)
    waiter = b.take('build')

    client = server.client('team:' + PASSWORD)
    beats = ['.zklockfs/' + name for name in client.children('/private/.zklockfs')]
    entries = ['build/' + name for name in server.entries('build', '/private')]
    check_equal(len(beats), 4, 'heartbeat nodes, and those for pokes')
    check(entries, 'no entry')
    for path in ['', '.zklockfs', 'build'] + beats + entries:
        check_equal(client.acl(f'/private/{path}'.rstrip('/')), MINE, f'the ACL of {path or "the root"}')

    token = holder.token()
    holder.release()
    check(waiter.held().token() > token, 'the token did not rise')
    waiter.do('fsync')
    waiter.release()

    # Another client with the same credentials.
    planted = client.create('/private/build/_c_12345678-1234-1234-1234-123456789012-lock-',
                            ephemeral=True, sequence=True, acl=MINE)
    a.take('build', lock_file='try').refused(errno.EAGAIN)
    waiter = b.take('build')
    client.delete(planted)
    waiter.held().release()
    return a


def new_session(case, server, option):
    """A mount shows its credentials again in its next session."""
    relay = case.relay(server)
    mount = case.mount(server, 'late', '5s', servers=f'127.0.0.1:{relay.port}', root='/private', options=[option])
    mount.allow('connection lost|session ended|does not answer')
    before = mount.status()['session']
    relay.freeze()
    until(lambda: len(server.zk.children('/private/.zklockfs')) == 4, 'the session ends')
    relay.thaw()
    status = until(lambda: mount.status() if mount.status()['state'] == 'ready' else None, 'another session')
    check(status['session'] != before, 'the session is the old one')
    mount.take('build').held().release()


def not_shown(case, mount):
    check_equal(len(case.daemons()), 3, 'daemons and guardians')
    places = [mount.read('.zklockfs', name) for name in os.listdir(mount.path('.zklockfs'))]
    places.append(mount.log())
    for pid in case.daemons():
        for name in ('cmdline', 'environ', 'comm', 'mountinfo'):
            with open(f'/proc/{pid}/{name}', encoding='utf-8', errors='replace') as file:
                places.append(file.read())
        # A guardian does not need the password.
        found = any(PASSWORD.encode() in piece for piece in memory(pid))
        with open(f'/proc/{pid}/comm', encoding='utf-8') as comm:
            check_equal(found, comm.read() != 'zklockfs-guard\n', f'{pid} knows the password')
    for text in places:
        check(PASSWORD not in text, f'the password is shown: {text}')


def refused(server, root, point, *options):
    watch = Stopwatch()
    status, _, err = besides_usual(command([ZKLOCKFS, *options, f'127.0.0.1:{server.port}{root}', point]))
    check_equal(status, 32, f'mount with {options}: {err}')
    check(err.count('\n') == 1 and root in err and PASSWORD not in err, f'stderr: {err!r}')
    check(mounted(point) is None, 'a mount is left')
    watch.check(0, 5, f'refused: {err.strip()}')


def strangers(case, server, option):
    """Mounts of one tree that is open to all, and locks in it that are not."""
    stranger = case.mount(server, 'stranger')
    mount = case.mount(server, 'mount', options=[option])
    stranger.mkdir('open')
    mount.mkdir('closed')
    mount.mkdir('closed/inner')
    holder = mount.take('closed').held()

    def closed_to(what):
        watch = Stopwatch()
        check_equal(what.locks(), ['closed', 'open'], 'the locks that are listed')
        path = what.path('closed')
        check_errno(errno.EACCES, os.stat, path)
        check_errno(errno.EACCES, os.listdir, path)
        check_errno(errno.EACCES, os.listdir, path + '/queue')
        check_errno(errno.EACCES, os.mkdir, path + '/another')
        check_errno(errno.EACCES, os.rmdir, path)
        check_errno(errno.EACCES, os.stat, path + '/inner')
        for name in ('holder', 'queue/0000000000-exclusive-1-mount'):
            check_errno(errno.EACCES, os.open, f'{path}/{name}', os.O_RDONLY)
        for name in ('lock', 'try', 'lock@10s'):
            check_errno(errno.EACCES, os.open, f'{path}/{name}', os.O_RDWR)
        watch.check(0, 5, 'EACCES everywhere')
    closed_to(stranger)
    holder.release()
    mount.take('open').held().release()
    stranger.take('open').held().release()

    # A lock that is closed while it is in use.
    other = server.client('other:word')
    other_alone = [(rawzk.ALL, 'digest', rawzk.digest_id('other:word'))]
    stranger.allow('cannot be deleted')
    mount.allow('cannot be deleted')
    mount.mkdir('both')
    server.client('team:' + PASSWORD).set_acl('/locks/both', rawzk.OPEN_ACL)
    holder = stranger.take('both').held()
    other.set_acl('/locks/both', other_alone)
    waiter = mount.take('both')
    for host in (stranger, mount):
        check_errno(errno.EACCES, os.open, host.path('both', 'lock'), os.O_RDWR)
        # Its own holder bars the way of a try, and when that is known nobody is asked. (So would a waiter that
        # had queued before.)
        code = errno_of(os.open, host.path('both', 'try'), os.O_RDWR)
        check(code == errno.EACCES or (host is stranger and code == errno.EAGAIN), f'try: {code}')
        check_equal(host.locks(), ['both', 'closed', 'open'], 'the locks that are listed')
    holder.do('fsync')   # it holds: nobody took its entry away
    waiter.refused(errno.EACCES)
    holder.release()
    other.set_acl('/locks/both', [(rawzk.READ, 'world', 'anyone')] + other_alone)
    check_errno(errno.EACCES, os.open, stranger.path('both/lock'), os.O_RDWR)
    check_errno(errno.EACCES, os.mkdir, stranger.path('both/below'))
    os.listdir(stranger.path('both/queue'))
    other.set_acl('/locks/both', rawzk.OPEN_ACL)
    mount.take('both').held().release()


def test(case):
    server = case.server()
    server.credentials = 'team:' + PASSWORD
    file = case.directory + '/secret'
    with open(file, 'w', encoding='ascii', opener=lambda path, flags: os.open(path, flags, 0o600)) as out:
        out.write(f'team:{PASSWORD}\n')
    wrong = case.directory + '/wrong'
    with open(wrong, 'w', encoding='ascii', opener=lambda path, flags: os.open(path, flags, 0o600)) as out:
        out.write('team:another')

    not_shown(case, shared(case, server, 'credentials=' + file))
    new_session(case, server, 'credentials=' + file)
    point = case.mount_point()
    refused(server, '/private', point)
    refused(server, '/private', point, '-o', 'mkroot')
    refused(server, '/private', point, '-f', '-o', 'credentials=' + wrong)
    server.client('team:' + PASSWORD).set_acl('/private', rawzk.OPEN_ACL)
    refused(server, '/private', point)   # its .zklockfs
    strangers(case, server, 'credentials=' + file)


run(test)
