#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""fenced-store.py - a tiny store that refuses old tokens.

    fenced-store.py FILE put TOKEN KEY TEXT     status 1 when the token is too low
    fenced-store.py FILE get TOKEN KEY          the same, for reading before writing
    fenced-store.py FILE show KEY               for reading only

A holder that has lost its lock gets EIO; but this cannot stop a write that it sent before
and that is still on its way. The store can: it keeps the highest token that it has seen and
refuses lower ones. Comparing and writing are one transaction, or a late write might come
in between. A get shows its token too: from then on no former holder changes the text.
"""

import sqlite3
import sys


def main(file, verb, *words):
    db = sqlite3.connect(file, timeout=60, isolation_level=None)
    db.execute('CREATE TABLE IF NOT EXISTS seen (one INTEGER PRIMARY KEY CHECK (one = 1), token INTEGER)')
    db.execute('CREATE TABLE IF NOT EXISTS texts (key TEXT PRIMARY KEY, text TEXT, token INTEGER)')
    db.execute('BEGIN IMMEDIATE')
    if verb in ('put', 'get'):
        token, *words = int(words[0]), *words[1:]
        highest, = db.execute('SELECT max(token) FROM seen').fetchone()
        if highest is not None and token < highest:
            return f'refused: token {token} is older than {highest}'
        db.execute('INSERT OR REPLACE INTO seen VALUES (1, ?)', (token,))
    if verb == 'put':
        key, text = words
        db.execute('INSERT OR REPLACE INTO texts VALUES (?, ?, ?)', (key, text, token))
    else:
        key, = words
        for text, in db.execute('SELECT text FROM texts WHERE key = ?', (key,)):
            print(text)
    db.execute('COMMIT')
    return 0


if __name__ == '__main__':
    if [*sys.argv, '', ''][2] not in ('put', 'get', 'show'):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
