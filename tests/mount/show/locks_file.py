#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`.zklockfs/locks` has a line for each lock that is held or waited for, on any host and by any
client. A line has as many words as the header, whatever is in names and reasons. A user sees what
the user's own `ls` and `cat holder` would show."""

import errno
import os
import signal
import subprocess

import rawzk
from harness import (ALICE, Stopwatch, check, check_equal, check_errno, command, is_in_the_call, run, spawn,
                     until)

COLUMNS = ['LOCK', 'MODE', 'HOLDERS', 'WAITERS', 'HELD', 'WAITED', 'HOST', 'PID', 'UID', 'COMMAND',
           'SINCE', 'TOKEN', 'REASON', 'SLOTS']
CLOSED = [(rawzk.ALL, 'digest', rawzk.digest_id('other:word'))]


def plain(word):
    """The word as the shell's printf decodes it."""
    return subprocess.run(['dash', '-c', 'printf "$1"', '-', word.replace('%', '%%')], check=True,
                          capture_output=True).stdout.decode()


def rows(mount, uid=0, groups=(), meanwhile=lambda: None, gid=None):
    """The lines that this user reads: a dictionary for each lock. `meanwhile`: before they are read."""
    with subprocess.Popen(['sh', '-c', 'exec 3<"$1" && echo && read -r _ && cat <&3', 'sh',
                           mount.path('.zklockfs', 'locks')], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          user=uid, group=uid if gid is None else gid, extra_groups=groups) as reader:
        check_equal(reader.stdout.readline(), b'\n', 'it has the file open')
        meanwhile()
        text = reader.communicate(b'\n')[0].decode()
    check_equal(reader.returncode, 0, 'its status')
    lines = text.splitlines()
    check_equal(lines[0].split(), COLUMNS, 'the header')
    found = {}
    for line in lines[1:]:
        # Python splits words at any white space, awk at blanks and tabs.
        check_equal(line.split(), line.split(' '), 'words')
        check_equal(len(line.split()), len(COLUMNS), f'columns of {line!r}')
        row = dict(zip(COLUMNS, line.split()))
        found[plain(row['LOCK'])] = row
    check_equal(len(found), len(lines) - 1, 'locks, each once')
    return found


def check_row(row, **wanted):
    check_equal({key: row[key] for key in wanted}, wanted, row['LOCK'])


def check_who(server, a, b):
    held = a.take('build').held()
    held.do('write', b'deploy 42 \\ \xe2\x80\x89 now')
    waiter = b.take('build')
    since = Stopwatch()
    until(lambda: len(server.entries('build')) == 2, 'it queues')
    last = b.take('build')
    until(lambda: len(server.entries('build')) == 3, 'the second queues')
    with open(a.path('team/deploy', 'slots'), 'w', encoding='ascii') as slots:
        slots.write('3')
    shared = [b.take('team/deploy', lock_file='shared').held() for _ in range(2)]
    until(lambda: rows(b)['build']['REASON'] != '-' and float(rows(b)['build']['WAITED']) > 0.2, 'time passes')
    until(lambda: rows(a)['team/deploy']['SINCE'] != '-', 'the time is written')
    for mount in (a, b):
        found = rows(mount)
        check_equal(list(found), ['build', 'team/deploy'], 'locks')
        row = found['build']
        check_row(row, MODE='exclusive', HOLDERS='1', WAITERS='2', HOST='a', PID=str(held.pid), UID='0',
                  TOKEN=str(held.token()), COMMAND='python3', SLOTS='1')
        check_equal(plain(row['REASON']), 'deploy 42 \\ \u2009 now', 'the reason')
        check(row['SINCE'].startswith('20') and row['SINCE'].endswith('Z'), row['SINCE'])
        holder = mount.read('build', 'holder')
        check(f'held_since={row["SINCE"]} ' in holder, f'{row["SINCE"]} in {holder}')
        check(0 < float(row['WAITED']) <= float(row['HELD']) + 0.2 <= since.seconds() + 5,
              f'{row["HELD"]}, {row["WAITED"]}')
        row = found['team/deploy']
        check_row(row, MODE='shared', HOLDERS='2', WAITERS='0', WAITED='-', HOST='b', REASON='-', SLOTS='3')
        check(row['PID'] in [str(taker.pid) for taker in shared], row['PID'])
    held.release()
    waiter.held()
    check_row(rows(a)['build'], HOST='b', PID=str(waiter.pid), WAITERS='1', REASON='-')
    waiter.release()
    for taker in (last.held(), *shared):
        taker.release()
    until(lambda: not rows(a), "the other mount's entries are gone")


NAMES = ['a b', 'back\\slash', '\\040', '-', 'tab\u00a0nbsp', 'line\u2028end', 'ideo\u3000graphic', 'LOCK', 'x' * 255,
         '\u202eright', 'ä' * 127, '%n%s', "quote'\"$(id)`"]


def check_hostile(server, mount):
    client = server.client()
    for name in NAMES:
        mount.mkdir(name)
        client.create(f'/locks/{name}/_c_01234567-89ab-cdef-0123-0123456789ab-h.7-lock-',
                      b'uid: 5\ncommand: \xc2\xa0a b\nreason: -\n', ephemeral=True, sequence=True)
    found = rows(mount)
    check_equal(sorted(found), sorted(NAMES), 'locks with such names')
    for row in found.values():
        check_row(row, HOST='h', PID='7', UID='5', COMMAND='\\302\\240a\\040b', REASON='\\055')
    # The tools that read this file.
    path = mount.path('.zklockfs', 'locks')
    for program in (['awk', 'NF != 14 { exit 1 }', path], ['column', '-t', path]):
        status, out, err = command(program, env={**os.environ, 'LC_ALL': 'C.UTF-8'})
        check_equal((status, err), (0, ''), program[0])
    check_equal(len(out.splitlines()), len(NAMES) + 1, 'lines of column -t')
    client.close()
    for name in NAMES:
        os.rmdir(mount.path(name))


def check_foreign(server, mount):
    client, other = server.client(), server.client('other:word')
    for name in ('recipe', 'kazoo', 'secret', 'closed', 'waits'):
        mount.mkdir(name)
    client.create('/locks/recipe/x-', b'\0\xff junk', ephemeral=True, sequence=True)
    client.create('/locks/kazoo/0123456789abcdef0123456789abcdef__lock__', ephemeral=True, sequence=True)
    secret = other.create('/locks/secret/_c_01234567-89ab-cdef-0123-0123456789ab-web.9-lock-', b'uid: 1\n',
                          ephemeral=True, sequence=True, acl=CLOSED)
    other.create('/locks/waits/x-', ephemeral=True, sequence=True)
    mine = mount.take('waits')
    until(lambda: len(server.entries('waits')) == 2, 'it queues')
    acl = client.acl('/locks/closed')
    client.set_acl('/locks/closed', CLOSED)
    found = rows(mount)
    check_equal(list(found), ['closed', 'kazoo', 'recipe', 'secret', 'waits'], 'locks')
    check_equal(list(found['closed'].values()), ['closed'] + 13 * ['-'], 'a lock that is closed')
    check_row(found['recipe'], HOLDERS='1', WAITERS='0', HOST='-', PID='-', UID='-', COMMAND='-', SINCE='-', HELD='-')
    check('does\\040not\\040wait' in found['kazoo']['REASON'], 'why nothing is taken there')
    check_row(found['secret'], HOLDERS='1', HOST='web', PID='9', UID='-', TOKEN='-')
    check_row(found['waits'], HOLDERS='1', WAITERS='1', HOST='-')
    other.set_acl('/locks/closed', acl)
    other.delete(secret)
    other.close()
    client.close()
    mine.held()
    mine.release()


def check_users(mount):
    """A user who may not list a directory sees no lock below it. A user who may not enter it does
    not see the lock of the directory itself, either."""
    for name, mode in (('open', 0o755), ('open/below', 0o755), ('list', 0o711), ('list/below', 0o755),
                       ('none', 0o700), ('none/below', 0o755), ('group', 0o750), ('group/below', 0o755)):
        mount.mkdir(name)
        os.chmod(mount.path(name), mode)
    os.chown(mount.path('group'), 0, 4242)
    takers = [mount.take(name).held() for name in ('open', 'open/below', 'list', 'list/below', 'none',
                                                   'none/below', 'group', 'group/below')]
    mine = ['open', 'open/below', 'list']
    check_equal(sorted(rows(mount)), sorted(taker.path.removeprefix(mount.directory + '/').removesuffix('/lock')
                                            for taker in takers), 'what root sees')
    check_equal(sorted(rows(mount, ALICE)), sorted(mine), 'what Alice sees')
    for meanwhile in (lambda: None, mount.reload):
        check_equal(sorted(rows(mount, ALICE, [17, 4242], meanwhile)), sorted(mine + ['group', 'group/below']),
                    'and as one of the group')
    check_equal(sorted(rows(mount, ALICE, gid=4242)), sorted(mine + ['group', 'group/below']), 'by the first group')
    os.chown(mount.path('none'), ALICE, ALICE)
    check_equal(sorted(rows(mount, ALICE)), sorted(mine + ['none', 'none/below']), 'what is hers')
    for taker in takers:
        taker.release()


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    path = a.path('.zklockfs', 'locks')
    check_equal(a.read('.zklockfs', 'locks').split(), COLUMNS, 'of an empty tree')
    check_errno(errno.EPERM, os.open, path, os.O_WRONLY)
    for name in ('build', 'team', 'team/deploy', 'free', 'free/too'):
        a.mkdir(name)
    check_equal(a.read('.zklockfs', 'locks').split(), COLUMNS, 'of free locks')
    check_who(server, a, b)
    check_hostile(server, a)
    check_foreign(server, a)
    check_users(a)
    until(lambda: a.status()['open_bytes'] == '0', 'nothing is left of what was open')
    # Who is interrupted does not wait for the servers.
    server.freeze()
    reader = spawn(['cat', path], stdout=subprocess.DEVNULL)
    until(lambda: is_in_the_call(reader.pid) or reader.poll() is not None, 'it reads')
    reader.kill()
    until(lambda: reader.poll() is not None, 'it ends')
    server.thaw()
    directory = os.open(a.directory, os.O_RDONLY)   # so the mount lasts, and the daemon ends on its own
    a.process.send_signal(signal.SIGTERM)
    a.check_end()   # it waits for no reader
    os.close(directory)


run(test)
