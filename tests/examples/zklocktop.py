#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""zklocktop(1) in a terminal of tmux(1): what it shows, the keys, eviction, hostile texts,
sizes, and a mount that does not answer."""

import os
import re
import signal

from gate import queued
from harness import ALICE, check, check_equal, command, run, until
from locking import BUILD, Screen, environment

TOP = os.path.join(BUILD, 'zklocktop')
FOOT = 'Enter queue'


def words(lines, row):
    """The words of a line of the list, 0 is the first below the heads."""
    return lines[2 + row].split()


def names(lines):
    return [line.split()[0] for line in lines[2:-1] if line.strip()]


def hold(mount, lock, reason=None, lock_file='lock'):
    taker = mount.take(lock, lock_file).held()
    if reason is not None:
        taker.do('write', reason.encode())
    return taker


def shown(mount, text):
    until(lambda: text in mount.read('.zklockfs', 'locks'), f'{text!r} in .zklockfs/locks')


def listing(case, a, b):
    """The longest wait first, then the longest hold; other orders; the choice stays."""
    old = hold(a, 'old', 'schema 17')
    # The file counts in tenths of a second.
    until(lambda: re.search(r'^old exclusive 1 0 (0\.[3-9]|[1-9])', a.read('.zklockfs', 'locks'), re.MULTILINE),
          'the first is held for longer')
    new = hold(b, 'new', 'two\twords')
    first = b.take('new')
    queued(a, 'new', 2)
    second = a.take('new')
    queued(a, 'new', 3)
    shown(a, 'schema')
    screen = Screen(case, [TOP, '-d', '100ms'], environment(a))
    lines = screen.shows('schema 17', 'two?words', '2 locks, 1 waited for, by longest wait. ready, lease ', FOOT)
    check_equal(len(lines), 24, 'lines')
    check(all(len(line) <= 80 for line in lines), 'wider than the screen')
    check_equal(lines[1].split(), ['LOCK', 'HELD', 'WAITED', 'Q', 'HOST', 'COMMAND', 'REASON'], 'heads')
    check_equal((names(lines), words(lines, 0)[3:5]), (['new', 'old'], ['2', 'b']), 'by wait')
    check(re.fullmatch(r'\d+m?s', words(lines, 0)[1]) and re.fullmatch(r'\d+m?s', words(lines, 0)[2]), lines[2])
    check_equal(words(lines, 1)[2:5], ['-', '0', 'a'], 'nobody waits')

    screen.keys('Down', 's')
    lines = screen.shows('by longest hold')
    check_equal(names(lines), ['old', 'new'], 'by hold')
    chosen = screen.chosen()
    check(len(chosen) == 1 and 'schema 17' in chosen[0], f'the line that is reversed: {chosen}')
    screen.keys('s')
    check_equal(names(screen.shows('by name')), ['new', 'old'], 'by name')
    # The line that was chosen in the first order is `old`, wherever it has gone.
    screen.keys('Enter')
    lines = screen.shows('old: 1 held, 0 waiting', 'Esc all locks')
    check_equal((words(lines, 0)[1:3], words(lines, 0)[4:6]), (['held', 'exclusive'], ['a', str(old.pid)]), 'a queue')
    check_equal(words(lines, 0)[7:], ['schema', '17'], 'its reason')
    third = b.take('old')
    lines = screen.shows('old: 1 held, 1 waiting')
    check_equal((words(lines, 1)[1], words(lines, 1)[4:6]), ('waiting', ['b', str(third.pid)]), 'live')
    for key in ('Escape', 'Left', 'BSpace'):
        screen.keys(key)
        screen.shows('by name', FOOT)
        screen.keys('Enter')
        screen.shows('old: 1 held, 1 waiting')
    for key in ('h', '?'):
        screen.keys(key)
        screen.shows('any key goes back', 'h ?     this help', not_there=('NUMBER',))
        screen.keys('e')
        screen.shows('old: 1 held, 1 waiting', 'Esc all locks', not_there=(' y/n',))
    # Esc with a key right behind it, as Alt sends it: first the one, then the other.
    screen.keys('M-s')
    screen.shows('by longest wait', FOOT)
    screen.keys('q')
    screen.shows('ended with 0', 'icanon', not_there=('-icanon', '-echo', 'LOCK'))
    screen.end()
    for taker in (old, new):
        taker.release()
    for taker in (third, first, second):
        taker.held().release()


def eviction(case, a, b):
    holder, waiter = hold(b, 'new', 'mine'), a.take('new')
    queued(a, 'new', 2)
    screen = Screen(case, [TOP, '-d', '100ms'], environment(a))
    screen.shows('mine')
    # Asked, and not done.
    screen.keys('e')
    lines = screen.shows(f'Evict process {holder.pid} (python3) on b from new?', ' y/n', 'It loses the lock.')
    check('new: 1 held, 1 waiting' in lines[0], lines[0])
    for key in ('n', 'Enter', 'q', 'Escape'):
        screen.keys(key)
        screen.shows('nobody was evicted')
        screen.keys('e')
        screen.shows(' y/n')
    check_equal(len(a.queue('new')), 2, 'nobody was evicted')
    # Asked about one that has gone meanwhile: not the one in its place.
    holder.release()
    waiter.held()
    screen.shows('new: 1 held, 0 waiting', ' y/n')
    screen.keys('y')
    screen.shows('is gone already')
    check_equal(len(a.queue('new')), 1, 'the other one was not evicted')
    screen.keys('e')
    screen.shows(' y/n')
    screen.keys('y')
    screen.shows(': evicted', 'new: 0 held, 0 waiting')
    check_equal(a.queue('new'), [], 'evicted')
    waiter.release()
    # Several hold: it does not choose for the user.
    takers = [hold(mount, 'new', 'both', 'shared') for mount in (a, b)]
    screen.keys('Escape')
    screen.shows('both', FOOT)
    screen.keys('e')
    screen.shows('several hold it: choose one')
    screen.keys('Down', 'e')
    last = a.queue('new')[1]
    screen.shows(f'Evict process {last.split("-")[2]} (python3) on {last.split("-")[3]} from new?', ' y/n')
    screen.keys('y')
    screen.shows('new: 1 held, 0 waiting')
    check(last not in a.queue('new'), 'the chosen one')
    screen.end()
    # Who may not.
    left = takers[0] if f'-{takers[0].pid}-' in a.queue('new')[0] else takers[1]
    screen = Screen(case, ['setpriv', f'--reuid={ALICE}', '--clear-groups', TOP, '-d', '100ms'], environment(a))
    screen.shows('both')
    screen.keys('e')
    screen.shows(' y/n')
    screen.keys('y')
    screen.shows("only its user, the lock's owner and root may")
    check_equal(len(a.queue('new')), 1, 'not evicted')
    screen.end()
    for taker in takers:
        taker.release()
    check(left, 'one was left')


def hostile(case, a):
    """Nothing that others write moves the cursor, hides a line or makes one."""
    evil = 'evil\u202e\u200b $(id) ü漢字'
    a.mkdir(evil)
    one = hold(a, evil, '\x1b[2J\x1b]0;title\x07\u202edesrever\nnew 0s 0s')
    two = hold(a, 'new', 'e\u0301\u2028x\t' + '漢' * 60)
    shown(a, '漢漢')
    screen = Screen(case, [TOP, '-d', '100ms'], environment(a))
    lines = screen.shows('evil?? $(id) ü漢字', '?[2J?]0;title', 'e?', 'x?漢', '漢~')
    check_equal(len(names(lines)), 2, f'two locks: {lines}')
    check(not set('\u202e\u200b\u2028\u0301') & set(''.join(lines)), lines)
    screen.keys('s', 's', 'Enter')
    screen.shows('evil?? $(id) ü漢字: 1 held')
    screen.end()
    # In a locale that has no such characters, on an old terminal.
    screen = Screen(case, ['env', 'TERM=vt100', 'LC_ALL=C', TOP], environment(a))
    lines = screen.shows('$(id) ??', 'e?????')
    check(''.join(lines).isascii(), lines)
    screen.keys('q')
    screen.shows('ended with 0')
    screen.end()
    one.release()
    two.release()


def many(case, a, b):
    """More than the screen holds; and screens of all sizes."""
    lock_files = []
    for i in range(60):
        a.mkdir(f'many{i:02}')
        lock_files.append(os.open(a.path(f'many{i:02}', 'lock'), os.O_RDWR))
    shown(b, 'many59')
    screen = Screen(case, [TOP, '-d', '100ms'], environment(b))
    screen.shows('60 locks', 'many00', 'many20', not_there=('many21',))
    screen.keys('NPage', 'NPage')
    screen.shows('many42')
    screen.keys('End')
    screen.shows('many59', not_there=('many38',))
    screen.keys('Home')
    screen.shows('many00')
    for columns, rows in ((200, 50), (40, 10), (20, 3), (5, 2), (2, 1), (80, 24)):
        screen.resize(columns, rows)
        lines = screen.expect(lambda lines, rows=rows: len(lines) == rows, f'{rows} rows')
        check(all(len(line) <= columns for line in lines), f'{columns} columns: {lines}')
    screen.shows('many00', 'many20', FOOT)
    screen.resize(120, 24)
    lines = screen.shows('PID')
    check_equal(words(lines, 0)[5], str(os.getpid()), 'the process, where there is room')
    screen.end()
    for lock_file in lock_files:
        os.close(lock_file)


def several(case, a, b):
    """With slots: how many of how many; one lock is one."""
    with open(a.path('old', 'slots'), 'w', encoding='ascii') as slots:
        slots.write('3')
    takers = [hold(mount, 'old') for mount in (a, b)]
    waiter = b.take('old', 'shared')
    queued(a, 'old', 3)
    screen = Screen(case, [TOP, '-d', '100ms'], environment(a))
    lines = screen.shows('1 lock, 1 waited for')
    check_equal((lines[1].split()[:3], words(lines, 0)[2]), (['LOCK', 'HELD', 'N'], '2/3'), 'how many hold')
    screen.keys('Enter')
    screen.shows('old: 2 of 3 held, 1 waiting')
    screen.keys('Down', 'Down', 'e')
    screen.shows(f'Evict process {waiter.pid} (python3) on b from old?', 'It waits no longer')
    screen.end()
    for taker in takers:
        taker.release()
    waiter.held().release()
    with open(a.path('old', 'slots'), 'w', encoding='ascii') as slots:
        slots.write('1')


def away(case, server, a):
    """In an outage both views say so, and since when; none looks like a free lock."""
    taker = hold(a, 'new', 'mine')
    shown(a, 'mine')
    screens = [Screen(case, [TOP, '-d', '100ms'], environment(a)) for _ in range(2)]
    for screen in screens:
        screen.shows('mine')
    screens[1].keys('Enter')
    screens[1].shows('new: 1 held')
    server.stop()
    for screen, head in zip(screens, ('suspended, lease ', 'new: not known')):
        lines = screen.shows('the ensemble does not answer (since ', head, 'q quit')
        check(re.search(r'answer \(since \d\d:\d\d:\d\d, for \d+m?s\)', lines[2]), lines[2])
    server.start()
    screens[0].shows('1 lock', 'ready', 'mine')
    screens[1].shows('new: 1 held', 'mine')
    for screen in screens:
        screen.end()
    taker.release()


def no_answer(case, server, a):
    """The mount stands still, the keys do not."""
    taker = hold(a, 'new', 'mine')
    shown(a, 'mine')
    screen = Screen(case, [TOP, '-d', '100ms'], environment(a))
    screen.shows('mine')
    a.send(signal.SIGSTOP)
    screen.shows('no answer for')
    screen.keys('s')
    screen.keys('q')
    screen.shows('ended with 0')
    a.send(signal.SIGCONT)
    screen.end()

    screen = Screen(case, [TOP, '-d', '100ms'], environment(a))
    screen.shows('mine')
    server.freeze()
    screen.expect(lambda lines: re.search('the ensemble (did|does) not answer|no answer for', '\n'.join(lines)), 'told')
    server.thaw()
    screen.shows('mine', 'ready', FOOT)
    screen.keys('C-c')
    screen.shows('ended with', 'icanon', not_there=('-icanon',))
    screen.end()
    taker.release()


def refused(a):
    for args, status, err in (([TOP], 64, 'not a terminal'), ([TOP, 'x'], 64, 'too many words'),
                              ([TOP, '-Z'], 64, 'zklocktop: no option is named -Z: try zklocktop --help\n'),
                              ([TOP, '--dealy=5s'], 64, 'zklocktop: no option is named --dealy=5s (did you mean --delay?): try'),
                              ([TOP, '-m'], 64, 'zklocktop: -m needs a value: '), ([TOP, '--help=x'], 64, '--help takes no value'),
                              ([TOP, '-d', 'x'], 64, "'x' is no time")):
        got, out, said = command(args, env=environment(a))
        check_equal((got, out), (status, ''), f'{args}: {said}')
        check(err in said, said)
    check_equal(command([TOP, '--version'], env=environment())[0], 0, '--version')
    status, out, _ = command([TOP, '--help'], env=environment())
    check_equal((status, max(map(len, out.splitlines())) <= 90), (0, True), '--help')


def dumb(case, a):
    screen = Screen(case, ['env', 'TERM=dumb', TOP], environment(a))
    screen.shows('cannot move its cursor', 'ended with 69')
    screen.end()
    screen = Screen(case, ['env', 'TERM=no-such-terminal', TOP], environment(a))
    screen.shows('ended with 69')
    screen.end()


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    for mount in (a, b):
        mount.allow('.')
    for name in ('old', 'new'):
        a.mkdir(name)
    listing(case, a, b)
    eviction(case, a, b)
    hostile(case, a)
    many(case, a, b)
    refused(a)
    dumb(case, a)
    several(case, a, b)
    no_answer(case, server, a)
    away(case, server, a)


run(test)
