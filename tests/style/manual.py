# SPDX-License-Identifier: MIT
"""manual.py - the manual pages as people read them. Each is made from its Markdown as the build makes it.

    text = by_man(made(root, 'fs/pages/zklockfs.5.md'))
    for block in indented(text): ...
"""

import os
import re
import subprocess
import tempfile
import textwrap

# Wide enough that no cell of a table breaks a line; literal lines are never broken.
WIDTH = 300
# These have a place in what groff and man(1) read from the environment.
ENVIRONMENT = {'PATH': os.environ['PATH'], 'LC_ALL': 'C.UTF-8', 'MANWIDTH': str(WIDTH), 'SOURCE_DATE_EPOCH': '0'}
# What groff 1.23 does by itself. Older ones, and Debian's man.local, show these characters as they are typed.
TYPOGRAPHIC = r"""
.char - \[hy]
.char ' \[cq]
.char ` \[oq]
.char ^ \[u02C6]
.char ~ \[u02DC]
.char \- \N'45'
.nh
"""


def output(words, text):
    done = subprocess.run(words, input=text, encoding='utf-8', stdout=subprocess.PIPE, env=ENVIRONMENT, check=True)
    return re.sub('.\b', '', done.stdout)    # bold and underlined


def made(root, page):
    return output([os.path.join(root, 'fs/pages/man.py'), os.path.join(root, page)], '')


def by_man(roff):
    """As on this system."""
    return output(['man', '-l', '-'], roff)


def complaints(roff):
    """What man(1) says beside the page, on a terminal of 80 columns, and what mandoc warns of."""
    said = subprocess.run(['man', '-l', '-'], input=roff, encoding='utf-8', stdout=subprocess.DEVNULL, check=True,
                          stderr=subprocess.PIPE, env={**ENVIRONMENT, 'MANWIDTH': '80'}).stderr
    return said + subprocess.run(['mandoc', '-Tlint', '-Wwarning'], input=roff, encoding='utf-8', stdout=subprocess.PIPE,
                                 check=False).stdout


def by_groff(roff):
    """As groff shows it where no distribution has changed its settings."""
    head, body = roff.split('\n.nh\n', 1)    # behind .TH, which switches hyphenation on
    with tempfile.TemporaryDirectory() as macros:
        with open(os.path.join(macros, 'man.local'), 'w', encoding='ascii'):
            words = ['groff', '-t', '-man', '-Tutf8', '-P-cbou', f'-M{macros}', f'-rLL={WIDTH}n']
            return output(words, head + TYPOGRAPHIC + body)


def by_mandoc(roff):
    """As on Alpine, Void and the BSDs."""
    return output(['mandoc', '-Tutf8', '-O', f'width={WIDTH}'], roff)


def indented(text):
    """What stands further right than paragraphs do: literal blocks, and bodies of lists."""
    return [textwrap.dedent(found) for found in re.findall(r'(?:^ {8,}.*\n(?:\n(?= {8}))?)+', text, re.MULTILINE)]
