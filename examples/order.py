#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""order.py - a lock for each order, created when it is needed, and removed afterwards.

    order.py /mnt/locks/orders/4711 ship --order 4711

The directory above, /mnt/locks/orders, exists, and is writable for whoever runs this. All hosts may do this at once,
for the same order, too:

  - mkdir fails where the lock exists. Then it is used.
  - rmdir fails where somebody holds the lock or waits for it. Then it stays, and the last one removes it.
  - open fails where somebody has removed the lock between our mkdir and our open. Then it is created again.

So a lock is removed only while nobody uses it. Tokens rise, also from one lock to the next one of that name.

Status: that of the command; 69 not mounted, or no contact; 74 the lock was lost.
"""

import errno
import os
import subprocess
import sys

TRIES = 100


def leave(status, what):
    print(f'{sys.argv[0]}: {what}', file=sys.stderr)
    sys.exit(status)


def take(lock):
    for _ in range(TRIES):
        try:
            os.mkdir(lock)
        except FileExistsError:
            pass
        try:
            return open(lock + '/lock', 'r+b', buffering=0)     # waits
        except FileNotFoundError:       # somebody has removed it
            pass
    raise OSError(errno.ENOENT, 'no lock can be created: is the filesystem mounted?')


def work(lock, command):
    with take(lock) as lock_file:
        token = lock_file.read().decode(errors='replace').strip()
        if not token.isdigit():     # a local file
            leave(69, f'{lock}: no token: is the filesystem mounted?')
        status = subprocess.run(command, env={**os.environ, 'TOKEN': token}, check=False).returncode
        lock_file.seek(0)
        lock_file.read()                 # was it held to the end?
        return status


def remove(lock):
    try:
        os.rmdir(lock)
    except OSError as error:
        # Somebody uses it, has removed it, or it is that of another user.
        if error.errno not in (errno.EBUSY, errno.ENOENT, errno.EPERM):
            print(f'{sys.argv[0]}: {lock} stays: {error.strerror}', file=sys.stderr)


def main():
    if len(sys.argv) < 3:
        leave(64, 'usage: order.py LOCK COMMAND [ARGUMENT...]')
    lock, command = sys.argv[1], sys.argv[2:]
    try:
        status = work(lock, command)
    except OSError as error:
        leave(74 if error.errno == errno.EIO else 69, f'{lock}: {error.strerror}')
    finally:
        remove(lock)
    return status


if __name__ == '__main__':
    sys.exit(main())
