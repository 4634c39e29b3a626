#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is copied from a manual page is what its source says: rendered.py ROOT

Each page is shown by man(1), by groff with no settings but its own, and by mandoc. Each literal block must be there as
it stands in the source, blank by blank, and each word of the text; and no character that nobody typed. man(1) itself
has nothing to say. A line that is copied with root's prompt would do nothing, without a word."""

import collections
import glob
import os
import re
import shutil
import sys

from manual import by_groff, by_man, by_mandoc, complaints, made

TOOLS = ('scdoc', 'man', 'groff', 'mandoc')
BULLET = '•'


def literal_blocks(source):
    """(its first line, its text)"""
    for found in re.finditer(r'^(\t*)```\n(.*?)^\1```\n', source, re.MULTILINE | re.DOTALL):
        text = re.sub('^' + found.group(1), '', found.group(2), flags=re.MULTILINE)
        yield source[:found.start(2)].count('\n') + 1, text


def pattern(lines):
    """These lines, all of them as far to the right as the first. A tab is some blanks."""
    shown = [re.escape(line.replace('\\\\', '\\')).replace('\\\t', ' +') for line in lines]
    return '\n'.join('(?P=indent)' * (number > 0) + line if line else '' for number, line in enumerate(shown))


def differing(block, shown):
    """How many lines of the block are shown before the first that is not; None: all."""
    lines = block.rstrip('\n').split('\n')
    for count in range(len(lines), -1, -1):
        if re.search(rf'^(?P<indent> *){pattern(lines[:count])}$', shown, re.MULTILINE):
            return None if count == len(lines) else count


def words(text):
    """Without the signs that mark a word as bold or underlined: some of them are marks, some are text."""
    return collections.Counter(re.sub('[*_]', '', text).split())


def words_of(source):
    """Without what scdoc(1) takes for a mark at the begin of a line, or its end."""
    text = re.sub(r'^(\t*```$|#+ |; .*|\t*- |[|:][][ <>-]+)|\+\+$', ' ', source.split('\n', 1)[1], flags=re.MULTILINE)
    return words(re.sub(r'\\(.)', r'\1', text))


def wrong(root, page):
    with open(os.path.join(root, page), encoding='utf-8') as file:
        source = file.read()
    for number, line in enumerate(source.split('\n'), 1):
        for lost in re.findall(r'\\([A-Za-z0-9])', line.replace('\\\\', '')):
            yield f'{page}:{number}: the backslash before {lost} is lost: {line}'
    for first, block in literal_blocks(source):
        for number, line in enumerate(block.splitlines(), first):
            if line.startswith('# '):
                yield f"{page}:{number}: a root's prompt makes it a comment: {line}"
    roff = made(root, page)
    for line in complaints(roff).splitlines():
        yield f'{page}: man(1) says: {line}'
    for show in (by_man, by_groff, by_mandoc):
        shown, where = show(roff), show.__name__.replace('_', ' ')
        for first, block in literal_blocks(source):
            count = differing(block, shown)
            if count is not None:
                yield f'{page}:{first + count}: not so {where}: {block.split(chr(10))[count]}'
        missing = words_of(source) - words(shown)
        if missing:
            yield f'{page}: these words are not so {where}: {" ".join(missing)}'
        lines = shown.strip().split('\n')[1:-1]    # the first and the last are the renderer's
        for sign in sorted(set(re.findall('[^\0-\x7f]', '\n'.join(lines))) - set(source) - {BULLET}):
            line = next(line for line in lines if sign in line)
            yield f'{page}: nobody typed the {sign} that is shown {where}: {line.strip()}'


def main():
    root = os.path.abspath(sys.argv[1])
    sources = glob.glob(f'{root}/fs/pages/*.scd') + glob.glob(f'{root}/examples/*/*.scd')
    pages = sorted(os.path.relpath(path, root) for path in sources)
    if not pages or not all(map(shutil.which, TOOLS)):
        sys.exit(77)
    found = [line for page in pages for line in wrong(root, page)]
    print(*found, sep='\n', file=sys.stderr)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
