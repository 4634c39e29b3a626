#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A manual page says the same to all of its readers: rendered.py ROOT

Each page is shown as a code host shows its Markdown, by cmark-gfm, and by man(1), by groff with no settings but its own,
and by mandoc. The renderings are compared, not the source: each literal block must be there sign by sign, and all have
the same words, none more. man(1) and mandoc have nothing to complain of. traps.7.md has the signs that mean something to
one of them, and MISTAKES what fs/pages/man.py has to refuse. A line that is copied with root's prompt would do nothing,
without a word."""

import collections
import glob
import html.parser
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(__file__), '..', '..', 'fs', 'pages'))

import man
from manual import by_groff, by_man, by_mandoc, complaints, made

TOOLS = ('cmark-gfm', 'man', 'groff', 'mandoc')
TRAPS = 'tests/style/traps.7.md'
# Of each of these a code host makes something else than man.py would, or nothing.
MISTAKES = [
    'an *emphasis*', 'an _emphasis_', 'a stray ` sign', 'a stray ** sign', '**bold **', '** bold**', '**x=**DUR',
    'DUR**=x**', 'a <LOCK> here', 'a ~~line~~', 'see https://example.org/', 'see www.example.org', 'an &amp; sign',
    'a lost \\n', '1. first', '1) first', '+ point', '* point', '> quote', '    code', '---', '===', '#heading',
    'text\n- point', 'text\n```\nblock\n```', '```\nblock', '```\nblock\n```\ntext', '- point\ntext', 'text\n# heading',
    '#### heading', '| a |\n| --- |\n| b | c |', '| a | b |\n| b | c |\n| b | c |', '[page](other.md)',
    '[zklockfs(5)](zklockfs.8.md)', '![picture](x.png)', '[x]: y', 'a\ttab', 'two blanks  \nat the end', '~~~\nblock\n~~~',
    '`` `x` ``', 'a `code\n\nparagraph`',
]


class Reader(html.parser.HTMLParser):
    """What HTML shows: the literal blocks, the text of all else, and where links lead."""

    def __init__(self):
        super().__init__()
        self.blocks, self.text, self.links, self.literal = [], '', [], False

    def handle_starttag(self, tag, attrs):
        if tag == 'pre':
            self.literal = True
            self.blocks.append('')
        if tag not in ('a', 'code', 'strong'):
            self.text += '\n'
        self.links += [value for name, value in attrs if name == 'href']

    def handle_endtag(self, tag):
        self.literal = self.literal and tag != 'pre'

    def handle_data(self, data):
        self.text += data
        if self.literal:
            self.blocks[-1] += data


def refused(path):
    try:
        man.roff(path)
    except SystemExit as why:
        return str(why)
    return None


def by_host(path):
    words = ['cmark-gfm', *'-e table -e strikethrough -e autolink -e tasklist'.split(), path]
    reader = Reader()
    reader.feed(subprocess.run(words, encoding='utf-8', stdout=subprocess.PIPE, check=True).stdout)
    reader.close()
    return reader


def pattern(lines):
    """These lines, all of them as far to the right as the first."""
    return '\n'.join('(?P=indent)' * (number > 0) + re.escape(line) if line else '' for number, line in enumerate(lines))


def differing(block, shown):
    """The first line of the block that is shown otherwise; None: there is none."""
    lines = block.expandtabs(4).rstrip('\n').split('\n')
    for count in range(len(lines), -1, -1):
        if re.search(rf'^(?P<indent> *){pattern(lines[:count])}$', shown, re.MULTILINE):
            return None if count == len(lines) else lines[count]


def bag(text):
    return collections.Counter(re.sub('•', ' ', text).split())


def wrong(root, page):
    path = os.path.join(root, page)
    if refused(path):
        yield refused(path)
        return
    host = by_host(path)
    for link in host.links:
        if not os.path.exists(os.path.join(os.path.dirname(path), link)):
            yield f'{page}: the code host makes a link: {link}'
    for block in host.blocks:
        for line in block.splitlines():
            if line.startswith('# '):
                yield f"{page}: a root's prompt makes it a comment: {line}"
    roff = made(root, page)
    for line in complaints(roff).splitlines():
        yield f'{page}: as roff: {line}'
    for show in (by_man, by_groff, by_mandoc):
        lines, where = show(roff).strip().split('\n')[1:-1], show.__name__.replace('_', ' ')
        shown = '\n'.join(lines)
        for block in host.blocks:
            line = differing(block, shown)
            if line is not None:
                yield f'{page}: not so {where}: {line}'
        title, _, text = host.text.strip().partition('\n')
        for these, those, what in ((text, shown, 'missing'), (shown, text, 'too much')):
            words = bag(these) - bag(those)
            if words:
                yield f'{page}, {title}: {what} {where}: {" ".join(words)}'


def not_refused():
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, 'page.7.md')
        for mistake in MISTAKES:
            with open(path, 'w', encoding='utf-8') as page:
                page.write(f'# page(7)\n\n## NAME\n\n{mistake}\n')
            if not refused(path):
                yield f'man.py does not refuse a page with {mistake!r}'


def main():
    root = os.path.abspath(sys.argv[1])
    if not all(map(shutil.which, TOOLS)):
        sys.exit(77)
    pages = sorted(os.path.relpath(path, root) for path in glob.glob(f'{root}/fs/pages/*.md'))
    found = [line for page in (*pages, TRAPS) for line in wrong(root, page)] + list(not_refused())
    if len(pages) < 10 or not by_host(os.path.join(root, TRAPS)).blocks:
        found.append('few pages were found')
    print(*found, sep='\n', file=sys.stderr)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
