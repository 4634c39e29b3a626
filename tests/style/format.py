#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The C sources are formatted as .clang-format says. No line is longer than 100 columns, and none
ends in blanks. The formatter does not look at the length of comments, so this test does. No comment
of the program begins with a word that leaves its subject to the reader: "Of an entry:".

The test uses only clang-format 14 of Debian 12: other versions break some lines elsewhere. Without
it only the lengths and the ends of lines are checked.
"""

import pathlib
import re
import subprocess
import sys

COLUMNS = 100
ROOMS = ['fs', 'lockcore', 'tests', 'examples']
WITHOUT_SUBJECT = re.compile(r'/\*\s*(Of|And|Which|It|That|For|As)\b')


def find_formatter():
    for name in 'clang-format-14', 'clang-format':
        try:
            said = subprocess.run([name, '--version'], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            continue
        if ' version 14.' in said.stdout:
            return name
    return None


def check_lines(path, is_program):
    good = True
    for number, line in enumerate(path.read_text(encoding='utf-8').split('\n'), 1):
        if len(line.expandtabs(8)) > COLUMNS:
            print(f'{path}:{number}: more than {COLUMNS} columns')
            good = False
        if line != line.rstrip():
            print(f'{path}:{number}: blanks at the end')
            good = False
        found = is_program and WITHOUT_SUBJECT.search(line)
        if found:
            print(f'{path}:{number}: the comment begins with "{found.group(1)}": what does it speak of?')
            good = False
    return good


def main():
    root = pathlib.Path(sys.argv[1])
    sources = sorted(path for room in ROOMS for path in (root / room).rglob('*.[ch]'))
    assert root / 'fs/daemon/main.c' in sources
    good = all([check_lines(path, path.relative_to(root).parts[0] in ('fs', 'lockcore', 'examples')) for path in sources])
    formatter = find_formatter()
    if not formatter:
        print('no clang-format 14 here: only the lengths and the ends of lines were checked')
        return 0 if good else 1
    found = subprocess.run([formatter, '--style=file', '--dry-run', *sources],
                           capture_output=True, text=True, check=True)
    for path in sorted({line.split(':')[0] for line in found.stderr.split('\n') if ': warning: ' in line}):
        print(f'{path}: run {formatter} -i on it')
        good = False
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
