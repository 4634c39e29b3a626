#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How much do the fast tests notice? Small mutants of lockcore/ or fs/ are made at random, and each has
to pass some ten seconds of tests: of lockcore/ those of single layers, the unit tests, and the first
seeds of the simulation; of fs/ the unit tests of its file and some of tests/mount.

    mutate.py [--part fs] [--count N] [--seed N] [--jobs N] [--file NAME]... [--list]

A mutant differs from the source in one place: a condition is negated, && stands for || or < for
<=, true for false, + for -, or a call or an assignment is left out. The program finds the places
by the tokens of the source. It prints how each mutant was noticed, then the survivors and the
share of the noticed ones. A survivor is a rule without a test, or a change that makes no
difference: equivalent.py has the changes that are known to make none, each with its reason.

mutants.py goes the other way: it takes out rules by name, and names the test that has to fail."""

import argparse
import collections
import concurrent.futures
import itertools
import os
import random
import re
import sys
import tempfile

sys.dont_write_bytecode = True
import frontend
from equivalent import EXPLAINED
from works import ROOT, Works, compile_file, engine_sources, find, is_of_engine, read, run_mutant, stem

SEEDS = '1..600'   # of the simulation: some seconds; such a range has seeds of all profiles
HANGS = 40         # a test that needs more seconds of the processor counts as hanging
ENDLESS = 300      #   and one that takes more seconds in any way

Token = collections.namedtuple('Token', 'kind text start')
Site = collections.namedtuple('Site', 'file line what start end new')

# ---- places ----

def name_of(path):
    """As it is called here and in equivalent.py; some files of both parts have the same base name."""
    return os.path.relpath(path, ROOT) if path.startswith(ROOT + '/fs/') else os.path.basename(path)


TOKENS = re.compile(r'''
    (?P<comment> /\*.*?\*/ | //[^\n]* )
  | (?P<line>    ^[ \t]*\#(?:\\\n|[^\n])* )
  | (?P<text>    "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' )
  | (?P<word>    [A-Za-z_]\w* )
  | (?P<number>  \d[\w.]* )
  | (?P<op>      <<= | >>= | \.\.\. | -> | \+\+ | -- | && | \|\| | [-+*/%&|^!=<>]= | << | >> | [^\s\w] )
''', re.VERBOSE | re.DOTALL | re.MULTILINE)

# A definition of a function, whose name is the group.
FUNCTION = re.compile(r'^\w[^\n;={]*?(\w+)\(', re.MULTILINE)

OTHER = {'&&': '||', '||': '&&', '<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '!=', '!=': '==',
         '+': '-', '-': '+', '+=': '-=', '-=': '+=', '++': '--', '--': '++',
         'true': 'false', 'false': 'true'}
ASSIGNS = {'=', '+=', '-=', '*=', '/=', '%=', '&=', '|=', '^=', '<<=', '>>='}
# No test of behaviour can see that such a call is missing: a check, a line of the log, a leak.
UNSEEN = {'assert', 'lc_report', 'config_report', 'log_line', 'free'}


def tokens_of(text):
    return [Token(match.lastgroup, match.group(), match.start()) for match in TOKENS.finditer(text)
            if match.lastgroup not in ('comment', 'line')]


def closing(tokens, i):
    """The index of the parenthesis that closes the one at i."""
    depth = 0
    for k in range(i, len(tokens)):
        depth += {'(': 1, ')': -1}.get(tokens[k].text, 0)
        if depth == 0:
            return k
    raise ValueError('a parenthesis is not closed')


def is_binary(tokens, i):
    before = tokens[i - 1]
    return before.kind in ('word', 'number', 'text') and before.text != 'return' or before.text in (')', ']')


def statement_end(tokens, i):
    """The index of the semicolon that ends the statement at i; None if a brace or a parenthesis
    ends it."""
    depth = 0
    for k in range(i, len(tokens)):
        text = tokens[k].text
        depth += {'(': 1, '[': 1, ')': -1, ']': -1}.get(text, 0)
        if depth < 0 or text in '{}':
            return None
        if text == ';' and depth == 0:
            return k
    return None


def dropped(tokens, i):
    """The kind of the statement at i, and the index of its semicolon; None if it is neither a call
    nor an assignment. Declarations are not."""
    end = statement_end(tokens, i)
    if end is None or tokens[i].kind != 'word' or tokens[i].text in UNSEEN:
        return None
    if tokens[i + 1].text == '(':
        return ('call', end) if closing(tokens, i + 1) == end - 1 else None
    k = i + 1
    while k < end:
        if tokens[k].text in ('.', '->'):
            k += 2
        elif tokens[k].text == '[':
            depth = 0
            while True:
                depth += {'[': 1, ']': -1}.get(tokens[k].text, 0)
                k += 1
                if depth == 0:
                    break
        else:
            return ('assignment', end) if tokens[k].text in ASSIGNS | {'++', '--'} else None
    return None


def sites_of(path):
    text, file = read(path), name_of(path)
    tokens = tokens_of(text)
    sites, braces, parens = [], 0, 0

    def add(what, first, last, new):
        start, end = tokens[first].start, tokens[last].start + len(tokens[last].text)
        sites.append(Site(file, text.count('\n', 0, start) + 1, what, start, end, new))

    unseen = -1
    for i, token in enumerate(tokens):
        if token.text in UNSEEN and tokens[i + 1].text == '(':
            unseen = closing(tokens, i + 1)
        if i <= unseen:
            continue
        if token.text in ('if', 'while') and token.kind == 'word' and tokens[i + 1].text == '(':
            last = closing(tokens, i + 1)
            old = text[tokens[i + 2].start:tokens[last].start]
            add('negated: ' + token.text, i + 2, last - 1, f'!({old})')
        if braces and token.text in OTHER and (token.text not in '+-<>' or is_binary(tokens, i)):
            add(f'{token.text} is {OTHER[token.text]}', i, i, OTHER[token.text])
        if braces and parens == 0 and i and tokens[i - 1].text in (';', '{', '}', ')', ':', 'else'):
            found = dropped(tokens, i)
            if found:
                add('dropped ' + found[0], i, found[1], ';')
        braces += {'{': 1, '}': -1}.get(token.text, 0)
        parens += {'(': 1, ')': -1}.get(token.text, 0)
    return sites


def changed_line(texts, site):
    """The first line, without its indentation: of the engine if something is dropped, else of the
    mutant."""
    text = texts[site.file]
    if not site.what.startswith('dropped'):
        text = text[:site.start] + site.new + text[site.end:]
    return text.split('\n')[site.line - 1].strip()


def shown(texts, site):
    return f'{site.file}:{site.line}: {site.what}: {changed_line(texts, site)}'


def key_of(texts, site):
    """The first columns of a row of equivalent.py."""
    function = ['', *FUNCTION.findall(texts[site.file], 0, site.start)][-1]   # none: in a table before them
    return site.file, function, site.what, changed_line(texts, site)


def explain(texts, site):
    """The reason why no test can notice the mutant, or None."""
    key = key_of(texts, site)
    return next((row[-1] for row in EXPLAINED if row[:-1] == key), None)


def check_explained(texts, sites):
    sources = {name_of(path) for part in ('lockcore', 'fs') for path in find(part + '/**/*.[ch]')}
    gone = {row[0] for row in EXPLAINED} - sources
    if gone:
        sys.exit(f'equivalent.py is out of date: there is no {", ".join(sorted(gone))}')
    known = {key_of(texts, site) for site in sites if site.file in {row[0] for row in EXPLAINED}}
    for row in EXPLAINED:
        if row[0] in texts and row[:-1] not in known:
            sys.exit(f'equivalent.py is out of date: no such mutant: {row[:-1]}')


# ---- tests ----

def trial(command, environment):
    """How the command fails, or None."""
    done = run_mutant(command, HANGS, ENDLESS, {**os.environ, **environment})
    if not done:
        return 'hangs'
    if done.returncode == 0:
        return None
    lines = done.stdout.splitlines()
    for mark in ('VIOLATION ', '[  FAILED  ] ', 'Assertion ', 'AssertionError: ', 'Error: '):
        words = [line.split(mark)[1] for line in lines if mark in line]
        if words:
            return words[0]
    return f'ends with {done.returncode}'


def notice(works, files, replaced, name):
    """The first test that fails of those for these files, and its message; or None."""
    for what, command, environment in works.steps(files, replaced, name):
        word = trial(command, environment)
        if word and environment:
            word = trial(command, environment)   # a busy machine can fail a mount test, but not twice
        if word:
            return f'{what}: {word}'
    return None


def examine(works, texts, site, number):
    """How the mutant was noticed; '' if it was not; None if it does not compile."""
    name, text = f'mutant-{number}', texts[site.file]
    source = f'{works.directory}/{name}-{os.path.basename(site.file)}'
    with open(source, 'w', encoding='utf-8') as stream:
        stream.write(text[:site.start] + site.new + text[site.end:])
    try:
        mutated = compile_file(source, source + '.o', flags=works.flags)
    except RuntimeError:
        return None
    word = notice(works, {site.file}, {site.file: mutated}, name)
    os.unlink(f'{works.directory}/{name}')
    return word or ''


def judges():
    """The tests of lockcore/ alone that need a second at most; the quickest come first."""
    own = [stem(path) for path in find('tests/unit/*.c') if is_of_engine(path)]
    layers = [path for path in find('tests/layer/*.c') if stem(path) not in ('client', 'rig', 'takers')]
    return [os.path.relpath(path, ROOT) for path in layers] + \
        [f'tests/unit/{name}.c' for name in own] + \
        [os.path.relpath(path, ROOT) for path in find('tests/sim/test_*.c')]


class Engine(Works):
    """lockcore/, as frontend.py has fs/."""
    flags = ()

    def __init__(self, directory):
        super().__init__(directory, judges())

    def steps(self, _, replaced, name):
        """(what, command, environment) of each test. It is to be done before the next one is asked for."""
        for unit in self.units:
            yield stem(unit), [self.link(unit, replaced, name)], {}
        yield 'sim', [self.link(None, replaced, name), '--seeds', SEEDS], {}


# ---- the course ----

def examine_some(works, pool, texts, sites, count):
    """Yields (site, how it was noticed) for the first `count` sites whose mutants compile."""
    sites, numbers, running = iter(sites), itertools.count(), collections.deque()
    while count > 0:
        for site in itertools.islice(sites, min(count, 16) - len(running)):
            running.append((site, pool.submit(examine, works, texts, site, next(numbers))))
        if not running:
            return
        site, future = running.popleft()
        if future.result() is not None:
            yield site, future.result()
            count -= 1


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n', maxsplit=1)[0])
    parser.add_argument('--part', choices=('lockcore', 'fs'), default='lockcore')
    parser.add_argument('--count', type=int, default=60, help='so many mutants (60)')
    parser.add_argument('--seed', type=int, default=1, help='which ones (1)')
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--file', action='append', metavar='NAME', help='of these files only')
    parser.add_argument('--list', action='store_true', help='show them, and do nothing')
    return parser.parse_args()


def examine_all(works, texts, sites, options):
    """Prints each mutant; returns how many there were, and the survivors."""
    count, survivors = 0, []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        works.build(pool)
        word = pool.submit(notice, works, {site.file for site in sites}, {}, 'original').result()
        if word:
            sys.exit(f'the original itself fails: {word}')
        for site, word in examine_some(works, pool, texts, sites, options.count):
            count += 1
            print(f'{"noticed" if word else "SURVIVES"}: {shown(texts, site)}' + (f' -- {word[:90]}' if word else ''), flush=True)
            if not word:
                survivors.append(site)
    return count, survivors


def course(texts, sites, options, make):
    """`make(directory)`: the works."""
    print(f'{len(sites)} places', flush=True)
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o711)   # daemon/user_mount runs the program as another user
        count, survivors = examine_all(make(directory), texts, sites, options)
    print('\nsurvivors:')
    for site in sorted(survivors):
        print(shown(texts, site) + (f' -- {explain(texts, site)}' if explain(texts, site) else ''))
    explained = sum(explain(texts, site) is not None for site in survivors)
    print(f'{count} mutants, {count - len(survivors)} noticed ({100 - 100 * len(survivors) // max(count, 1)} %), '
          f'{explained} explained')


def main():
    options = parse()
    sources = [path for path in (frontend.sources() if options.part == 'fs' else engine_sources())
               if not options.file or os.path.basename(path) in options.file]
    texts = {name_of(path): read(path) for path in sources}
    sites = [site for path in sources for site in sites_of(path)]
    check_explained(texts, sites)
    random.Random(options.seed).shuffle(sites)
    if options.list:
        for site in sites[:options.count]:
            print(shown(texts, site))
    elif options.part == 'fs':
        frontend.with_servers(options.jobs, lambda ports: course(
            texts, sites, options, lambda place: frontend.Frontend(place, ports)))
    else:
        course(texts, sites, options, Engine)


if __name__ == '__main__':
    main()
