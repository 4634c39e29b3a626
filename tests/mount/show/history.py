#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`.zklockfs/history` has the holds that have ended: how, whose, how long, and why; a user sees
only the user's own holds. `-o audit` writes the same to the log, without a limit; without this
option the log has no such lines."""

import errno
import os
import re
import subprocess
import time

from harness import ALICE, BOB, check, check_equal, check_errno, command, run, until

COLUMNS = ['ENDED', 'LOCK', 'MODE', 'WAITED', 'HELD', 'END', 'PID', 'UID', 'COMMAND', 'SINCE', 'TOKEN', 'BY', 'REASON']
MOST = 1000
TIME = r'20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z'


def rows(mount, uid=0):
    text = subprocess.run(['cat', mount.path('.zklockfs', 'history')], check=True, capture_output=True, user=uid,
                          group=uid, extra_groups=[]).stdout.decode()
    lines = text.splitlines()
    check_equal(lines[0].split(), COLUMNS, 'the header')
    for line in lines:
        check_equal(len(line.split()), len(COLUMNS), f'columns of {line!r}')
    return [dict(zip(COLUMNS, line.split())) for line in lines[1:]]


def check_last(mount, **wanted):
    row = until(lambda: next((row for row in rows(mount)[-1:] if row['END'] == wanted['END'] and
                              row['PID'] == wanted['PID']), None), f'{wanted} in the history')
    check_equal({key: row[key] for key in wanted}, wanted, 'the last hold')
    check(re.fullmatch(TIME, row['ENDED']) and re.fullmatch(TIME, row['SINCE']) and row['SINCE'] <= row['ENDED'],
          f'times: {row}')
    return row


def held_for_a_while(mount, taker):
    """Wait until the file of all locks says that the lock has been held for more than 0.1 s."""
    lock = os.path.basename(os.path.dirname(taker.path))
    until(lambda: float(mount.read('.zklockfs', 'locks').splitlines()[1].split()[4]) > 0.1, f'{lock} is held')


def check_ends(server, mount):
    one = mount.take('build').held()
    one.do('write', b'deploying v42\\')
    held_for_a_while(mount, one)
    two = mount.take('build')
    until(lambda: len(server.entries('build')) == 2, 'it queues')
    time.sleep(0.2)   # so long it waits at least
    token = one.token()
    one.release()
    row = check_last(mount, LOCK='build', MODE='exclusive', END='closed', PID=str(one.pid), UID='0', COMMAND='python3',
                     TOKEN=str(token), BY='-', REASON='deploying\\040v42\\134')
    check(float(row['WAITED']) < 20 and 0.1 <= float(row['HELD']) < 60, f'how long it waited and held: {row}')

    two.held()
    held_for_a_while(mount, two)
    two.kill()
    row = check_last(mount, LOCK='build', END='exited', PID=str(two.pid), REASON='-')
    check(0.1 <= float(row['WAITED']) < 60, f'how long it waited: {row["WAITED"]}')

    three = mount.take('build', lock_file='shared').held()
    with open(mount.path('build', 'queue', mount.queue('build')[0]), 'w', encoding='ascii') as entry:
        entry.write('evict')
    row = check_last(mount, LOCK='build', MODE='shared', END='evicted', PID=str(three.pid))
    check(re.fullmatch(rf'uid\\0400\\040pid\\040{os.getpid()}\\040\(.+\)\\040on\\040a', row['BY']), row['BY'])

    four = mount.take('build').held()
    server.zk.delete('/locks/build/' + server.entries('build')[0])
    row = check_last(mount, LOCK='build', END='lost', PID=str(four.pid))
    check('deleted' in row['BY'], row['BY'])
    four.release()
    check_equal(len(rows(mount)), 4, 'each once')


def check_users(mount):
    for uid in (ALICE, BOB):
        mount.take('build', uid=uid).held().release()
    until(lambda: len(rows(mount)) == 6, 'two more')
    check_equal([row['UID'] for row in rows(mount, ALICE)], [str(ALICE)], 'what Alice sees')


def check_bounds(mount, copy):
    """The history has the last thousand holds. tail(1) gives the last one, cp(1) copies all, and no
    size makes a program stop before the end."""
    for _ in range(MOST + 50):
        os.close(os.open(mount.path('other', 'lock'), os.O_RDWR))
    until(lambda: len(rows(mount)) == MOST, 'so many holds')
    until(lambda: {row['UID'] for row in rows(mount) if row['LOCK'] != 'other'} == {str(ALICE), str(BOB)},
          "root's others are forgotten, and not those of users with few")
    last = mount.take('build').held()
    last.do('write', b'the last one')
    last.release()
    until(lambda: 'the\\040last\\040one' in mount.read('.zklockfs', 'history'), 'it is there')
    for program in ('tail', '-n', '1'), ('busybox', 'tail', '-n', '1'), ('awk', 'END { print }'):
        status, out, _ = command([*program, mount.path('.zklockfs', 'history')])
        check(status == 0 and out.endswith('the\\040last\\040one\n') and out.count('\n') == 1, f'{program}: {out!r}')
    check_equal(command(['cp', mount.path('.zklockfs', 'history'), copy]), (0, '', ''), 'cp')
    with open(copy, encoding='utf-8') as file:
        check_equal(file.read(), mount.read('.zklockfs', 'history'), 'the copy')
    check_equal(os.stat(mount.path('.zklockfs', 'history')).st_size, 0, 'the size')
    with open(mount.path('.zklockfs', 'history'), 'rb') as file:
        check_errno(errno.ESPIPE, os.lseek, file.fileno(), 0, os.SEEK_SET)   # as a pipe: it is read once


def test(case):
    server = case.server()
    mount, quiet = case.mount(server, 'a', options=['audit']), case.mount(server, 'b')
    mount.mkdir('build')
    mount.mkdir('other')
    os.chmod(mount.path('build', 'lock'), 0o666)
    mount.allow('the lock is lost')
    check_equal(rows(mount), [], 'of nothing')
    check_ends(server, mount)
    check_users(mount)
    check_bounds(mount, os.path.join(case.directory, 'copy'))
    quiet.take('build').held().release()
    until(lambda: len(rows(quiet)) == 1, 'the other mount has a history of its own')

    def audited():
        return [line for line in mount.log().splitlines() if ': audit: ' in line]
    wanted = len(rows(mount)) + 6 + 51
    until(lambda: len(audited()) >= wanted, 'a line for each hold')   # the log is written later
    lines = audited()
    check_equal(len(lines), wanted, 'a line for each hold')
    check(re.search(r': audit: build exclusive pid \d+ \(python3\) uid 0 waited \d+\.\d s held \d+\.\d s token \d+ closed; '
                    r'reason: deploying v42\\$', lines[0]), lines[0])
    check(re.search(r' evicted by uid 0 pid \d+ \(.+\) on a; reason: -$', lines[2]), lines[2])
    check('audit' not in quiet.log() and 'granted' not in mount.log(), 'what nobody asked for')


run(test)
