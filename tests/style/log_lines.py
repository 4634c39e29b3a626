#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The log lines of zklockfs-log(7) are those of the source: each line that is an error, a
warning or a notice begins as a line of the page does, which says its priority, and no line of the
page is made up. They are in alphabetical order of the words that are no placeholders."""

import glob
import re
import sys

PAGE = 'fs/pages/zklockfs-log.7.md'
# As journalctl(1) calls them.
PRIORITIES = {'LC_ERROR': 'err', 'LC_WARNING': 'warning', 'LC_NOTICE': 'notice', 'LC_INFO': 'info'}
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[(),;]|PRI\w+|\w+|\S')


def calls(text):
    """The arguments of each call that logs, as lists of tokens."""
    for call in re.finditer(r'\b(lc_report|config_report|home_met|log_line_of|log_line)\(', text):
        arguments, depth = [[]], 1
        for token in TOKEN.findall(text, call.end()):
            depth += (token == '(') - (token == ')')
            if depth == 0:
                break
            if token == ',' and depth == 1:
                arguments.append([])
            else:
                arguments[-1].append(token)
        yield arguments[1:] if call.group(1) != 'log_line' else arguments


def formats(argument):
    """The texts of an argument: more than one if it has a choice."""
    text = ''
    for token in argument + [';']:
        if token.startswith('"'):
            text += token[1:-1]
        elif not token.startswith('PRI') and text:
            yield text
            text = ''


def words(text):
    """The words of a text, except conversions and words in capitals, which stand for values."""
    text = re.sub(r'%[-.0-9]*[a-z]*|\\.|0x\w*', ' ', text)
    return [word for word in re.findall(r"[\w./'-]+", text)
            if not re.fullmatch(r"[^a-z]*", word)]


def main(root):
    with open(f'{root}/{PAGE}', encoding='utf-8') as page:
        told = dict(re.findall(r'^- `(.*)`\\\n  (?:\*\*([a-z, ]*)\.\*\*)?', page.read(), re.MULTILINE))
    rows, levels = {row: words(row) for row in told}, {row: set() for row in told}
    unknown, count, bad = set(rows), 0, []
    for path in sorted(glob.glob(root + '/fs/**/*.c', recursive=True) + glob.glob(root + '/lockcore/**/*.c', recursive=True)):
        with open(path, encoding='utf-8') as source:
            text = source.read()
        for arguments in calls(text):
            if len(arguments) < 2 or not re.search('LC_(ERROR|WARNING|NOTICE)', ' '.join(arguments[0])):
                continue
            for line in formats(arguments[1]):
                said = words(line)
                there = [row for row in rows if rows[row] == said[:len(rows[row])]]
                unknown.difference_update(there)
                for row in there:
                    levels[row].update(arguments[0])
                count += 1
                if said and not there:
                    bad.append(f'{path}: {PAGE} does not say what this log line means: {line}')
    bad += [f'{PAGE}: no such log line: {row}' for row in unknown]
    for row, after in zip(rows, list(rows)[1:]):
        if [word.lower() for word in rows[row]] > [word.lower() for word in rows[after]]:
            bad.append(f'{PAGE}: not by alphabet: {row} before {after}')
    for row in rows:
        wanted = ', '.join(name for level, name in PRIORITIES.items() if level in levels[row])
        if told[row] != wanted:
            bad.append(f'{PAGE}: {row}: its priority is {wanted!r}, not {told[row]!r}')
    if count < 40:
        bad.append(f'only {count} log lines were found')
    sys.exit('\n'.join(bad) or 0)


main(sys.argv[1])
