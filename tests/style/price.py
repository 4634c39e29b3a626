#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""price.py [ROOT] - what each promise costs, in lines of C: a table in Markdown

A promise has rooms and files. A file that is not named counts for its room, and each line counts once.
A name that fits no file any more is said on standard error.
"""

import os
import sys

# Promise, and its files without .c and .h; a name with / at its end is all that is left of a room.
PROMISES = (
    ('a lock ends before the ensemble can give it away: session, lease, heartbeats, doubt',
     'lockcore/session/ lockcore/pure/lease fs/host/pause fs/host/pause_sources fs/host/clock'),
    ('first come, first served, one round trip: entries, hand-over, one decision',
     'lockcore/lock/ lockcore/grant/ lockcore/pure/queue lockcore/pure/name lockcore/'),
    ('open, close, flock and fcntl take and release: holds, places kept over a signal, reentrant',
     'fs/hold/'),
    ('an upgrade or a crash loses no lock: records, supervisor, reload',
     'fs/store/ fs/daemon/mount_records fs/daemon/supervisor fs/daemon/supervisor_run fs/daemon/reload lockcore/adopt '
     'lockcore/pure/codec lockcore/pure/records lockcore/pure/node_data'),
    ('a holder that lost the lock is stopped: on_lost', 'fs/guard/'),
    ('nobody starves others: requests, fair shares, memory of a user, the watchdog',
     'fs/request/ fs/host/budget fs/host/memory fs/host/watchdog lockcore/pure/gate '
     'lockcore/pure/per_user lockcore/session/quota'),
    ('everybody sees who, since when, why: texts, history, .zklockfs/locks',
     'fs/tree/facts fs/tree/view fs/tree/history fs/files/walk fs/files/locks fs/files/viewer '
     'fs/files/text fs/hold/audit fs/host/row fs/host/log fs/request/trace '
     'lockcore/ask/entry_info lockcore/ask/lock_info'),
    ('a lock is made, removed, changed, evicted; value and slots', 'lockcore/ask/ fs/files/value'),
    ('a filesystem: inodes, directories, operations', 'fs/tree/ fs/files/'),
    ('a start says what is wrong: options, servers, --check, the mount point', 'fs/setup/ fs/daemon/check lockcore/examine'),
    ('ZooKeeper, and nothing else, is behind it: the port', 'lockcore/port/'),
    ('the process: main, loop, signals, tables', 'fs/daemon/ fs/host/ lockcore/pure/'),
)


def lines(path):
    with open(path, encoding='utf-8') as file:
        return file.read().count('\n')


def sources(root):
    """{'fs/hold/hold.c': lines}"""
    return {os.path.relpath(os.path.join(path, name), root): lines(os.path.join(path, name))
            for part in ('fs', 'lockcore') for path, _, names in os.walk(os.path.join(root, part))
            for name in names if name.endswith(('.c', '.h'))}


def prices(found):
    """(lines, promise) of each, and the names that fit nothing."""
    owner, missing = {}, []
    named = [(promise, name) for promise, names in PROMISES for name in names.split()]
    for promise, name in sorted(named, key=lambda each: each[1].endswith('/')):     # files before rooms
        files = [file for file in found if file not in owner
                 and (os.path.dirname(file) + '/' == name or file[:-2] == name)]
        owner.update(dict.fromkeys(files, promise))
        missing += [] if files else [name]
    rest = [file for file in found if file not in owner]
    return [(sum(count for file, count in found.items() if owner.get(file) == promise), promise)
            for promise, _ in PROMISES], missing, rest


def main():
    root = sys.argv[1] if sys.argv[1:] else os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..')
    found = sources(root)
    table, missing, rest = prices(found)
    print('| lines | promise |', '|---:|---|', sep='\n')
    for count, promise in sorted(table, reverse=True):
        print(f'| {count:,} | {promise} |')
    print(f'| {sum(found.values()):,} | |')
    for name in missing:
        print(f'{name} is no file any more', file=sys.stderr)
    for file in rest:
        print(f'{file} is in no room of a promise', file=sys.stderr)
    return 1 if rest else 0


if __name__ == '__main__':
    sys.exit(main())
