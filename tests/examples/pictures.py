#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pictures.py [draw] - zklocktop in a terminal with locks of three hosts, as in the README's pictures

With `draw` it writes them, and waits for times that are worth to be seen. Without, it is a test: what a
real terminal shows now is what the pictures show, but for numbers and times."""

import os
import re
import subprocess
import sys
from xml.sax.saxutils import escape, unescape

from gate import EXAMPLES, Gate, queued
from harness import WAIT_SECONDS, check_equal, run, until
from locking import BUILD, Screen, environment, start

DRAW = 'draw' in sys.argv[1:]
COLUMNS, ROWS = 88, 12
HELD = r'[3-9]\.|\d\d' if DRAW else r'0\.[3-9]|[1-9]'     # for so many seconds, before the next one comes
WIDTH, HEIGHT, MARGIN = 8.4, 19, 14     # of a character, and around all of them
# Lock, host, command, reason, options; a waiter follows the holder.
HOLDS = (
    ('nightly', 'db1', 'backup', 'full backup, 340 GB'),
    ('deploy', 'web1', 'deploy.sh', 'deploying v42'),
    ('deploy', 'web2', 'deploy.sh', 'deploying v43'),
    ('deploy', 'db1', 'rollback', 'back to v41'),
    ('schema', 'db1', 'migrate', 'schema 17'),
    ('schema', 'web2', 'migrate', 'schema 17'),
    ('licences', 'web1', 'simulate', 'case 17'),
    ('licences', 'web2', 'simulate', 'case 18'),
)


def picture(lines, chosen):
    """The SVG of these lines, with the chosen one reversed."""
    width, height = COLUMNS * WIDTH + 2 * MARGIN, len(lines) * HEIGHT + 2 * MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
           f'height="{height}" role="img" aria-label="zklocktop">',
           f'<rect width="{width:.0f}" height="{height}" rx="6" fill="#1d2329"/>']
    for row, line in enumerate(lines):
        y = MARGIN + row * HEIGHT
        colour = '#dfe5ea'
        if line in chosen:
            out.append(f'<rect x="{MARGIN}" y="{y}" width="{COLUMNS * WIDTH:.0f}" height="{HEIGHT}" fill="{colour}"/>')
            colour = '#1d2329'
        out.append(f'<text x="{MARGIN}" y="{y + 14}" font-size="14" fill="{colour}" xml:space="preserve" '
                   f'textLength="{len(line) * WIDTH:.0f}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace">'
                   f'{escape(line)}</text>')
    return '\n'.join([*out, '</svg>']) + '\n'


def shape(lines):
    text = ' '.join(' '.join(lines).split())
    return re.sub(r'\d+', 'N', re.sub(r'\b(\d+m)?\d+(\.\d+)?m?s\b', 'T', text))


def same(name, lines, chosen):
    """Draw it, or see that it has been drawn so."""
    path = os.path.join(EXAMPLES, 'zklock', name)
    if DRAW:
        with open(path, 'w', encoding='utf-8') as file:
            file.write(picture(lines, chosen))
    with open(path, encoding='utf-8') as file:
        drawn = re.findall(r'<text [^>]*>(.*)</text>', file.read())
    check_equal(shape(map(unescape, drawn)), shape(lines), f'{name}: tests/examples/pictures.py draw')


def seen(screen):
    """The lines on the screen, without the blank ones between the last lock and the keys."""
    lines = screen.lines()
    chosen = {re.sub(r'\x1b\[[0-9;]*m', '', line).rstrip() for line in screen.chosen()}
    while len(lines) > 2 and not lines[-2]:
        del lines[-2]
    return [*lines[:-1], '', lines[-1]], chosen


def test(case):
    server = case.server()
    mounts = {host: case.mount(server, host) for host in ('web1', 'web2', 'db1')}
    gate, web1 = Gate(case), mounts['web1']
    for lock in ('nightly', 'deploy', 'schema', 'licences'):
        web1.mkdir(lock)
    with open(web1.path('licences', 'slots'), 'w', encoding='ascii') as slots:
        slots.write('3\n')
    until(lambda: all('licences' in mount.locks() for mount in mounts.values()), 'all see the locks')
    for command in {command for _, _, command, _ in HOLDS}:
        gate.tool(command, 'exec ' + ' '.join(gate.visitor(command)))
    queue, processes = {}, []
    for lock, host, command, reason in HOLDS:
        environ = environment(mounts[host], PATH=f'{gate.tools}:{BUILD}:{os.environ["PATH"]}')
        processes.append(start(None, '-q', '-r', reason, lock, '--', command, env=environ, stderr=subprocess.DEVNULL))
        queue[lock] = queue.get(lock, 0) + 1
        queued(web1, lock, queue[lock])
        # The file counts in tenths of a second, and the order is by time.
        until(lambda lock=lock: re.search(rf'^{lock} \w+ \d \d ({HELD})', web1.read('.zklockfs', 'locks'),
                                          re.MULTILINE), f'{lock} is held for longer')
    # Where a host has it, in the mount namespace of this test alone.
    for words in (['-t', 'tmpfs', 'mnt', '/mnt'], ['--bind', '-m', web1.directory, '/mnt/locks']):
        subprocess.run(['mount', *words], check=True)
    screen = Screen(case, [f'{BUILD}/zklocktop', '-m', '/mnt/locks', '-d', '200ms'], environment(), COLUMNS, ROWS)
    screen.shows('case 17', '4 locks, 2 waited for')
    same('locks.svg', *seen(screen))
    screen.keys('Enter')
    screen.shows('deploy: 1 held, 2 waiting', 'deploying v43', 'back to v41')
    same('queue.svg', *seen(screen))
    screen.keys('q')
    screen.shows('ended with 0')
    subprocess.run(['umount', '/mnt/locks', '/mnt'], check=True)
    for _ in HOLDS:
        gate.arrived().let()
    for process in processes:
        check_equal(process.wait(timeout=WAIT_SECONDS), 0, 'zklock')


run(test)
