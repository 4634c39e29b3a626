#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The manual page of a page in Markdown: man.py NAME.SECTION.md >NAME.SECTION

A code host shows the Markdown, man(1) what this writes. It knows what these pages use, and refuses the rest, since
Markdown takes a mistake for text: # NAME(SECTION), ## and ###, paragraphs, ``` blocks, tables, "- " before a point of a
list, "- TERM\\" before the lines that explain a term, **bold**, `code` (man(1) underlines it), links to other pages, and
\\ before a sign that is meant. A blank line stands between blocks. groff has typographic signs for some: SIGNS."""

import os
import re
import sys
import time

SIGNS = {'\\': r'\e', '-': r'\-', "'": r'\(aq', '`': r'\(ga', '^': r'\(ha', '~': r'\(ti', '"': r'\(dq'}
INLINE = re.compile(r'''`(?P<code>[^`]+)`(?!`)
    | \*\*(?P<bold>[^\s*`\\](?:[^*`\\]*[^\s*`\\])?)\*\*(?!\*)
    | \[(?P<page>[\w-]+)\((?P<section>\d)\)\]\((?P=page)\.(?P=section)\.md\)
    | \\(?P<sign>[!-/:-@[-`{-~])
    | (?P<break>\\\n)
    | (?P<text>\w+(?:_+\w+)*|[^\w`*\\<_])''', re.VERBOSE)
# What is text for INLINE, and something else for a code host, outside of code and links and without a backslash.
MARKS = re.compile(r'<|~~|&#?\w+;|!\[|\]\(|\]\[|\]:|https?://|www\.|\t|[ ]\n|\b_|_\b')
NO_MARKS = re.compile(r'`[^`]+`|\[([\w-]+)\((\d)\)\]\(\1\.\2\.md\)|\\[!-/:-@[-`{-~]')
# Lines that begin so are text for no code host, or not for each of them.
STARTS = re.compile(r'[ >|<#]|[-+*=~]+$|[-+*][ ]|\d+[.)]([ ]|$)|```|~~~')
# Without hyphenation and justification, which .TH switches on, and without pages on a terminal. groff then warns of each
# word that widens the column of a table: the category of 4. man(1) reads in the first line that there are tables.
HEAD = r"""'\" t
.TH "{}" "{}" "{}"
.nh
.ad l
.if n .pl 1000i
.warn (\n[.warn] - (\n[.warn] / 4 % 2 * 4))"""


class Page:
    def __init__(self, path, lines):
        self.path, self.lines, self.out = path, lines, []

    def refuse(self, number, why):
        sys.exit(f'{self.path}:{number + 1}: {why}: {self.lines[number]}')

    @staticmethod
    def typed(text):
        return ''.join(SIGNS.get(sign, sign) for sign in text)

    def text(self, number, source):
        """The running text that begins in this line, as lines of roff."""
        marks = MARKS.search(NO_MARKS.sub('.', source))
        if marks:
            self.refuse(number, f'not known here: {marks.group(0)!r}')
        done, at = '', 0
        while at < len(source):
            found = INLINE.match(source, at) or self.refuse(number, f'not known here: {source[at:at + 20]!r}')
            before, at = source[at - 1:at], found.end()
            after = source[at:at + 1]
            if found['bold']:
                # CommonMark opens and closes nothing between a sign and a letter.
                if (before.isalnum() and not found['bold'][0].isalnum()) or (after.isalnum() and not found['bold'][-1].isalnum()):
                    self.refuse(number, 'no bold between a sign and a letter')
                done += rf'\fB{self.typed(found["bold"])}\fR'
            elif found['code']:
                done += rf'\fI{self.typed(found["code"])}\fR'
            elif found['page']:
                done += rf'\fB{self.typed(found["page"])}\fR({found["section"]})'
            else:
                done += '\n.br\n' if found['break'] else self.typed(found['sign'] or found['text'])
        # A line that ends with a sign ends no sentence, after which two blanks would come.
        return re.sub(r'(\W)$', r'\1\&', re.sub(r'^\.(?!br$)', r'\&.', done, flags=re.MULTILINE), flags=re.MULTILINE)

    def literal(self, lines):
        self.out += ['.nf', '.RS 4', *(re.sub(r'^(?=\.)', r'\&', self.typed(line.expandtabs(4))) for line in lines), '.fi', '.RE']

    def table(self, number, rows):
        for row, line in enumerate(rows):
            cells = re.split(r'(?<!\\) \| ', line[2:-2])
            columns = len(cells) if row == 0 else columns
            if not (line.startswith('| ') and line.endswith(' |') and len(cells) == columns and len(rows) > 2):
                self.refuse(number + row, f'not a row of {columns} cells')
            if row == 0:
                self.out += ['.TS', 'l ' * (columns - 1) + 'lx.']
            if row == 1 and cells != ['---'] * columns:
                self.refuse(number + row, 'this row has --- in each cell')
            elif row != 1:
                shown = (self.text(number + row, re.sub(r'\\(\|)', r'\1', cell)) for cell in cells)
                self.out.append('\t'.join('T{\n' + (cell if row else rf'\fB{cell}\fR') + '\nT}' for cell in shown))
        self.out.append('.TE')

    def item(self, number, lines, tight):
        """A point of a list, or a term with what explains it."""
        if lines[0].endswith('\\'):
            self.out += [self.text(number, lines[0][:-1]), '.RS 4']
            self.blocks(number + 1, lines[1:], follows=False)
            self.out.append('.RE')
            return
        count = next((count for count, line in enumerate(lines) if not line), len(lines))
        self.out += ['.PD 0'] * tight + [r'.IP \(bu 4', *['.PD'] * tight, self.text(number, '\n'.join(lines[:count]))]
        if any(lines[count:]):
            self.out.append('.RS 4')
            self.blocks(number + count, lines[count:])
            self.out.append('.RE')

    def blocks(self, number, lines, follows=True):
        """What stands in these lines. follows: a blank line comes before it."""
        at = 0
        while at < len(lines):
            if not lines[at]:
                at += 1
                continue
            end = next((end for end in range(at, len(lines)) if not lines[end]), len(lines))
            heading = re.fullmatch(r'(##|###) (\S.*)', lines[at]) if end == at + 1 else None
            if follows and not heading and not re.match(r'- .*(?<!\\)$', lines[at]):
                self.out.append('.P')
            if lines[at] == '```':
                if '```' not in lines[at + 1:]:
                    self.refuse(number + at, 'this block has no end')
                end = lines.index('```', at + 1) + 1
                self.literal(lines[at + 1:end - 1])
            elif heading:
                self.out.append(f'.{"SH" if heading[1] == "##" else "SS"} {self.text(number + at, heading[2])}')
            elif lines[at].startswith('|'):
                self.table(number + at, lines[at:end])
            elif lines[at].startswith('- '):
                end = next((end for end in range(at + 1, len(lines)) if not re.match(r'  |$', lines[end])), len(lines))
                body = [re.sub('^  ', '', line) for line in [lines[at][2:], *lines[at + 1:end]]]
                self.item(number + at, body, at > 0 and lines[at - 1] != '')
            else:
                for line in range(at, end):
                    if STARTS.match(lines[line]):
                        self.refuse(number + line, 'no line of a paragraph begins so')
                self.out.append(self.text(number + at, '\n'.join(lines[at:end])))
            at, follows = end, not heading
            if at < len(lines) and lines[at] and lines[at - 1] and not lines[at].startswith('- '):
                self.refuse(number + at, 'there is no blank line before it')


def roff(path):
    name, section, _ = os.path.basename(path).rsplit('.', 2)
    with open(path, encoding='utf-8') as file:
        page = Page(path, file.read().split('\n'))
    if page.lines[0] != f'# {name}({section})' or page.lines[1]:
        page.refuse(0, f'the first line is # {name}({section}), and a blank one follows')
    day = time.strftime('%Y-%m-%d', time.gmtime(int(os.environ.get('SOURCE_DATE_EPOCH', time.time()))))
    page.blocks(1, page.lines[1:])
    return '\n'.join([HEAD.format(page.typed(name), section, day), *page.out])


if __name__ == '__main__':
    print(roff(sys.argv[1]))
