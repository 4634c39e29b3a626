#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is printed exists: pages.py ROOT ZKLOCKFS ZKLOCK

README.md and the other Markdown: each link leads to a file, each name of a file of the source is one; a function that
the README of a directory of the source names is defined in the file that is named with it, or else in that directory;
the README is easy to read, and names the two commands that do all the set-up; what an upgrade
breaks fits into the package's changelog. The manual pages: each section and page that they name is there,
their first lines have the words that people search for, commands and options that they print are known,
no sentence is long, and none has a phrase over which a native speaker stumbles.
"""

import fnmatch
import os
import re
import subprocess
import sys

# What makes a text hard is the length of its sentences and paragraphs, and code between the words.
SENTENCE_WORDS, PARAGRAPH_SENTENCES, SENTENCE_CODES = 26, 4, 4
# The reader sees a command before so many words.
FIRST_BLOCK = 130
# The main job, and the tests.
SETUP = ('examples/demo', 'tests/run')
# fs/debian/build puts four blanks in front, and lintian wants no more than 80.
CHANGE_WIDTH = 76
# A reference may have longer sentences than the README.
PAGE_SENTENCE_WORDS = 50
# What no page says, and what it says instead.
CREATED = 'lock|file|directory|entry|entries|node|mount|filesystem'
PHRASES = {re.compile(phrase): instead for phrase, instead in {
    r'(?<!`)\b([Ss]ome|[Aa]ny|[Nn]o|[Ee]very)body\b': 'the passive, or who it is: another host, no process, all users',
    r'\bgo(es|ing)? on\b(?! the)|\bwent on\b': 'keeps running, continues, stays',
    r'\banew\b|\bfor ever\b|\bmeanwhile\b': 'again, forever, in the meantime',
    r'\bends? with (the status |status )?\d': 'exits with',
    r'\b(is|are|was|were) over\b': 'has ended, has passed',
    r'\b[Bb]elow (an(other)? )?[*_`]?(zklock|sudo)\b': 'under, that zklock has started',
    r'\bbut (for|with) ': 'except',
    r'\bshall\b': 'must, is to',
    rf'\bma(ke|kes|de|king) (a|an|the|each|no|new|another)? ?(new )?({CREATED})s?\b(?! (un|im|point))': 'creates',
    r', of which\b|, which then\b': 'a sentence of its own',
    r'(^|[.:;] )Who (is|has|can|may|wants|comes|takes|makes|asks) [^?]*$': 'whoever, a process that',
    r'\b[Bb]y [_`]-': 'with',
}.items()}


def text(*parts):
    with open(os.path.join(*parts), encoding='utf-8') as file:
        return file.read()


def tracked(root, *patterns):
    """Files of the tree, a checkout or a source archive, without what .gitignore names."""
    for directory, below, names in os.walk(root):
        below[:] = sorted(name for name in below if name not in ('.git', '__pycache__') and not name.startswith('build'))
        for name in sorted(names):
            if any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
                yield os.path.relpath(os.path.join(directory, name), root)


# ---- Markdown ----

def wrong_links(root, file):
    base = os.path.dirname(file)
    for target in re.findall(r'\]\(([^)#\s]+)(?:#[^)]*)?\)', text(root, file)):
        if not target.startswith(('http:', 'https:')) and not os.path.exists(os.path.join(root, base, target)):
            yield f'{file}: {target} is not there'


def wrong_files(root, file):
    """Names of files of the source that are set as code."""
    for name in re.findall(r'`((?:fs|lockcore|tests|examples)/[\w./-]+)`', text(root, file)):
        if not os.path.exists(os.path.join(root, name)):
            yield f'{file}: {name} is not there'


# A definition begins in the first column.
DEFINITION = re.compile(r'^\w[^;={()#]*?\b(\w+)\([^;{]*\{', re.MULTILINE)
SOURCES = ('fs/', 'lockcore/', 'examples/zklock/')


def definitions(root):
    """{file: its functions}"""
    return {file: set(DEFINITION.findall(text(root, file)))
            for file in tracked(root, '*.c', '*.h') if file.startswith(SOURCES)}


def source_file(readme, name, defined):
    """The file that the README means: from the root, beside it, or in a directory beside its own. None: there is none."""
    here = os.path.dirname(readme)
    paths = [os.path.normpath(os.path.join(base, name)) for base in ('', here, os.path.dirname(here))]
    return next((path for path in paths if path in defined), None)


def wrong_functions(root, readme, defined):
    """`f()` and `g()` in `file.c`; and `f()` without a file."""
    flat = ' '.join(text(root, readme).split())
    for name in re.findall(r'`([\w/.-]+\.[ch])`', flat):
        if not source_file(readme, name, defined) and not os.path.exists(os.path.join(root, name)):
            yield f'{readme}: {name} is not there'
    placed = re.compile(r'((?:`\w+\(\)`(?:, | and )?)+) in `([\w/.-]+\.[ch])`')
    for names, name in placed.findall(flat):
        file = source_file(readme, name, defined)
        for function in re.findall(r'`(\w+)\(\)`', names):
            if file and function not in defined[file]:
                yield f'{readme}: {function}() is not in {file}'
    here = os.path.dirname(readme) + '/'
    near = here if here.count('/') > 1 else ('fs/', 'lockcore/')
    for function in re.findall(r'`(\w+)\(\)`', placed.sub('', flat)):
        if not any(function in functions for file, functions in defined.items() if file.startswith(near)):
            yield f'{readme}: {function}() is nowhere in {near}'


def paragraphs(markdown):
    """The running text: without headings, blocks and tables; each point of a list is a paragraph."""
    for part in re.split(r'\n\n|\n(?=- )', markdown):
        if not part.startswith(('#', '    ', '|', '\n', '      ', '![')):
            yield ' '.join(part.removeprefix('- ').split())


def hard_to_read(file, markdown):
    before = markdown[:markdown.index('\n    ')]
    if len(before.split()) > FIRST_BLOCK:
        yield f'{file}: the first block comes after {len(before.split())} words'
    for paragraph in paragraphs(markdown):
        # A link is one word of code or of text, whatever it leads to.
        sentences = re.split(r'(?<=[.!?:])\*{0,2} (?=[^a-z])', re.sub(r'\]\([^)]*\)', ']', paragraph))
        if len(sentences) > PARAGRAPH_SENTENCES:
            yield f'{file}: a paragraph of {len(sentences)} sentences: {paragraph[:60]}...'
        for sentence in sentences:
            words = len(re.sub('`[^`]*`', 'code', sentence).split())
            if words > SENTENCE_WORDS or sentence.count('`') > 2 * SENTENCE_CODES:
                yield f'{file}: {words} words, {sentence.count("`") // 2} of code: {sentence}'


def wrong_size(root):
    readme = text(root, 'README.md')
    yield from hard_to_read('README.md', readme)
    for command in SETUP:
        if not re.search(f'^    {command} ', readme, re.MULTILINE) or not os.access(os.path.join(root, command), os.X_OK):
            yield f'README.md: it does not print the command {command}'
    breaks = re.search(r'^### .*?(?=^### )', text(root, '.github/CHANGELOG.md'), re.MULTILINE | re.DOTALL).group(0)
    for line in breaks.splitlines():
        if len(line) > CHANGE_WIDTH:
            yield f'CHANGELOG.md: over {CHANGE_WIDTH} characters: {line}'


# ---- English ----

def sentences_of(body):
    """(line, sentence) of a manual page or of Markdown: all but headings, blocks, and what a program prints."""
    body = re.sub(r'^( *)```\n.*?^\1```$', lambda block: '\n' * block.group(0).count('\n'), body,
                  flags=re.MULTILINE | re.DOTALL)
    found, begun = [], False
    for number, line in enumerate(body.split('\n'), 1):
        mark = re.match(r' *- | *\|[- |]*', line)
        if not line.strip() or line.startswith(('#', '    ')):
            begun = False
        elif begun and not mark:
            found[-1][1] += ' ' + line.strip()
        else:
            found.append([number, line[mark.end() if mark else 0:].strip()])
            begun = not line.endswith('\\')      # a term, which what explains it follows
    for number, paragraph in found:
        for sentence in re.split(r'(?<=[.!?])[*_`)]* (?=[^a-z])|(?<=:) (?=[A-Z])| \| ', paragraph):
            yield number, sentence


def hard_english(file, body):
    if file.endswith('zklockfs-log.7.md'):      # what the program prints, as it prints it
        body = re.sub(r'^- `.*`\\$', '', body, flags=re.MULTILINE)
    for number, sentence in sentences_of(body):
        count = len(sentence.split())
        if count > PAGE_SENTENCE_WORDS:
            yield f'{file}:{number}: {count} words: {sentence}'
        for phrase, instead in PHRASES.items():
            if phrase.search(sentence):
                yield f'{file}:{number}: {phrase.search(sentence).group(0)!r}, say: {instead}: {sentence}'


# ---- manual pages ----

def page_files(root):
    return [file for file in tracked(root, '*.md') if file.startswith('fs/pages/')]


def pages(root):
    """{'zklockfs(5)': text}"""
    found = {}
    for file in page_files(root):
        name, section, _ = os.path.basename(file).rsplit('.', 2)
        found[f'{name}({section})'] = text(root, file)
    return found


def wrong_references(found):
    """[page(n)](page.n.md), and **SECTION** in or of it."""
    headings = {name: set(re.findall(r'^###? (.*)$', other, re.MULTILINE)) for name, other in found.items()}
    for page, body in found.items():
        for name in re.findall(r'(?<!\[)\b(zklock[\w-]*\*{0,2}\(\d\))(?!\]\()', re.sub('```.*?```|`.*?`', '', body.split('\n', 1)[1], flags=re.DOTALL)):
            yield f'{page}: {name} is no link'
        flat = ' '.join(body.split())
        for heading, name, section in re.findall(
                r'\b([A-Z]{2,}(?: [A-Z]{2,})*)(?:\*\*)? (?:in|of) \[(zklock[\w-]*)\((\d)\)\]', flat):
            if heading not in headings.get(f'{name}({section})', ()):
                yield f'{page}: {name}({section}) has no section {heading}'
        # Without a page it is one of this page. What stands in bold may be something else, such as an errno.
        for see, heading in re.findall(r'(\bsee )?(?:\*\*)?\b([A-Z]{2,}(?: [A-Z]{2,})*)\b(?:\*\*)(?! (?:in|of) \[)', flat) + \
                re.findall(r'([,:(] see )([A-Z]{2,}(?: [A-Z]{2,})*)\b(?! (?:in|of) \[)', flat):
            if heading not in headings[page] and (see or any(heading in other for other in headings.values())):
                yield f'{page}: it has no section {heading}'


def wrong_names(found):
    for page, body in found.items():
        name = re.search(r'^## NAME\n\n(.*)$', body, re.MULTILINE).group(1)
        if not re.search(r'\block', name.split(' - ', 1)[1]):
            yield f'{page}: nobody finds {name!r} by: man -k lock'


# ---- commands ----

def help_of(program):
    return subprocess.run([program, '--help'], text=True, stdout=subprocess.PIPE, check=True).stdout


def wrong_commands(root, found, zklockfs, zklock):
    """Sub-commands and options in what is printed."""
    mount, command = help_of(zklockfs), help_of(zklock)
    verbs = set(re.findall(r'^ +zklock \[-m DIR\] (\w+)', command, re.MULTILINE))
    options = set(re.findall(r'(?<!\w)--?[a-zA-Z][\w-]*', command))
    mount_options = set(re.findall(r'[a-z_]{2,}', mount))
    every = {'README.md': text(root, 'README.md'), 'examples/README.md': text(root, 'examples/README.md'), **found}
    if len(verbs) < 5 or len(options) < 20:
        yield f'only these are known: {sorted(verbs)} {sorted(options)}'
    for where, body in every.items():
        for line in re.findall(r'^ *(?:[$#] |.* root )?(zklock .*)$', body, re.MULTILINE):
            words = line.split(' -- ')[0].split()
            for word in words[1:]:
                if re.fullmatch(r'--?[a-zA-Z][\w-]*', word) and word not in options:
                    yield f'{where}: zklock has no option {word}'
        for verb, rest in re.findall(r'[`*]zklock ([a-z]+)\b([^`*]*)', body):
            if verb not in verbs and ' --' not in rest:
                yield f'{where}: zklock has no command {verb}'
        for option in re.findall(r'`-o ([a-z_]+)[=`]', body):
            if option not in mount_options:
                yield f'{where}: zklockfs has no option {option}'


def main():
    root, zklockfs, zklock = sys.argv[1:]
    markdown = list(tracked(root, '*.md'))
    found = pages(root)
    wrong = [*wrong_size(root), *wrong_references(found), *wrong_names(found),
             *wrong_commands(root, found, zklockfs, zklock)]
    if len(markdown) < 15:
        wrong.append('few texts were found')
    defined = definitions(root)
    if sum(map(len, defined.values())) < 2000:
        wrong.append('few functions were found')
    for file in (*page_files(root), 'README.md', 'examples/README.md', 'tests/bench/README.md'):
        wrong += hard_english(file, text(root, file))
    for file in markdown:
        wrong += wrong_links(root, file)
        if file.startswith(SOURCES) and not file.startswith('fs/pages/'):
            wrong += wrong_functions(root, file, defined)
        if file != '.github/CHANGELOG.md':      # it tells of what was there
            wrong += wrong_files(root, file)
    print(*wrong, sep='\n', file=sys.stderr)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
