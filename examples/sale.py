#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sale.py - many buyers, few items, and a payment between the check and the sale.

    sale.py DATABASE stock N                            open a sale of N items
    sale.py DATABASE buy ORDER LOCK PAY [ARGUMENT...]   buy one; LOCK may be -: no lock
    sale.py DATABASE report

    for n in $(seq 20); do sale.py shop.db buy order-$n /mnt/locks/shop sleep 0.1 & done; wait

A buyer checks that an item is left, pays by the command PAY (which finds $ORDER),
and then records the sale. The payment is outside of the database, so this cannot be one
transaction: without the lock many buyers see the last item and pay, and it is sold many times.

Three things make it correct:
  - the lock: from the check to the sale there is one buyer at a time, on all hosts;
  - the order's number: an interrupted buyer tries again with the same one, and it counts once;
  - the fencing token: the check writes it to the database, and a sale with another one is
    refused. So a buyer that was frozen while paying, and has lost the lock meanwhile, sells
    nothing because of its old check. The check has to write the token: if
    only sales did, a late sale could come between the check and the sale of the next buyer.

Status of buy: 0 sold, 1 sold out, 2 not paid, 69 no such lock or nothing is mounted, 77 no
permission for it, 74 the lock was lost meanwhile: try again with the same order.
"""

import contextlib
import errno
import os
import sqlite3
import subprocess
import sys

TABLES = '''
CREATE TABLE stock (items INTEGER, token INTEGER);
CREATE TABLE orders (number TEXT PRIMARY KEY, token INTEGER);
'''
WORDS = {'stock': 1, 'buy': 3, 'report': 0}     # behind the verb, at least
LEFT = 'SELECT items - (SELECT count(*) FROM orders) FROM stock'


@contextlib.contextmanager
def transaction(db):
    db.execute('BEGIN IMMEDIATE')
    with db:    # COMMIT, or ROLLBACK after an exception
        yield


def leave(status, what):
    print(f'{sys.argv[0]}: {what}', file=sys.stderr)
    sys.exit(status)


def take(lock, order):
    """The open lock, and its token."""
    try:
        lock_file = open(lock + '/lock', 'r+b', buffering=0)     # waits
        token = lock_file.read().decode(errors='replace').strip()
        if not token.isdigit():     # a local file
            leave(69, f'{lock}: no token: is the filesystem mounted?')
        lock_file.write(order.encode())
        return lock_file, int(token)
    except OSError as error:
        leave({errno.EIO: 74, errno.EACCES: 77}.get(error.errno, 69), f'{lock}: {error.strerror}')


@contextlib.contextmanager
def turn(lock, order):
    """Our turn, with its token; without a lock it is always everybody's."""
    if lock == '-':
        yield 0
        return
    lock_file, token = take(lock, order)
    with lock_file:
        yield token


def look(db, order, token):
    """What is to be said without a payment: sold before, sold out. Or None."""
    with transaction(db):
        if db.execute('SELECT token FROM stock').fetchone()[0] > token:
            return 'too late'
        db.execute('UPDATE stock SET token = ?', (token,))
        if db.execute('SELECT 1 FROM orders WHERE number = ?', (order,)).fetchone():
            return 'sold before'
        return None if db.execute(LEFT).fetchone()[0] > 0 else 'sold out'


def sell(db, order, token):
    with transaction(db):
        if db.execute('SELECT token FROM stock').fetchone()[0] != token:
            return 'too late'
        db.execute('INSERT OR IGNORE INTO orders VALUES (?, ?)', (order, token))
        return 'sold'


def buy(db, order, lock, *pay):
    with turn(lock, order) as token:
        said = look(db, order, token)
        if not said:
            if subprocess.call(pay, env={**os.environ, 'ORDER': order}):
                leave(2, 'not paid')
            said = sell(db, order, token)
    print(said)
    return {'sold': 0, 'sold before': 0, 'sold out': 1, 'too late': 74}[said]


def main(database, verb, *words):
    if verb not in WORDS or len(words) < WORDS[verb] or verb != 'buy' and len(words) > WORDS[verb]:
        leave(64, __doc__)
    db = sqlite3.connect(database, timeout=60, isolation_level=None)
    if verb == 'stock':
        db.executescript(TABLES)
        db.execute('INSERT INTO stock VALUES (?, 0)', (int(words[0]),))
        return 0
    if verb == 'buy':
        return buy(db, *words)
    sold, = db.execute('SELECT count(*) FROM orders').fetchone()
    print(f'{sold} sold, {db.execute(LEFT).fetchone()[0]} left')
    return 0


if __name__ == '__main__':
    if len(sys.argv) < 3:
        leave(64, __doc__)
    sys.exit(main(*sys.argv[1:]))
