#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No file of fs/ and lockcore/ has more than 1,000 lines, no function more than 70, and no struct more
than 30: what is longer has several jobs. sizes.py ROOT"""

import pathlib
import re
import sys

FILE, FUNCTION, STRUCT = 1000, 70, 30
# Longer, and why.
ALLOWED = {
    'struct lc_config': 'all that a caller says to the engine, each with its words',
}
# A definition begins in the first column, and so does the brace that ends it.
BLOCK = re.compile(r'^(?P<head>(?:\w[^;={}]*?\n)?(?:struct \w+ (?=\{)|\{))(?P<body>.*?)^\}', re.M | re.S)


def long_blocks(text):
    """(what, lines) of each definition that is too long."""
    for found in BLOCK.finditer(text):
        lines = found.group().count('\n') + 1
        head = found.group('head')
        if re.fullmatch(r'struct \w+ ', head):
            name, most = head.strip(), STRUCT
        else:
            name, most = (re.findall(r'\w+(?=\()', head) or ['?'])[0] + '()', FUNCTION
            lines = found.group('body').count('\n') + 1
        if lines > most and name not in ALLOWED:
            yield name, lines


def main():
    root = pathlib.Path(sys.argv[1])
    files = [path for part in ('fs', 'lockcore') for path in sorted((root / part).rglob('*.[ch]'))]
    wrong = [] if len(files) > 200 else [f'only {len(files)} files were found']
    blocks = 0
    for path in files:
        text = path.read_text(encoding='utf-8')
        blocks += len(BLOCK.findall(text))
        if text.count('\n') > FILE:
            wrong.append(f'{path}: {text.count(chr(10))} lines')
        wrong += [f'{path}: {name} has {lines} lines' for name, lines in long_blocks(text)]
    if blocks < 1500:
        wrong.append(f'only {blocks} functions and structs were found')
    print(*wrong, sep='\n', file=sys.stderr)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
