#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""rules.py ROOT: lockcore/RULES.md has the numbered safety rules.

Each rule begins with one sentence in bold and says why, by which code, and by which tests. No sentence is long. Each
number that a comment, a page or a mutant cites is a rule, and the mutants and files that the rules name exist.
"""

import os
import re
import sys

RULES, MUTANTS = 'lockcore/RULES.md', 'tests/sim/mutants.py'
SENTENCE_WORDS, LINE = 40, 120
CITING = ('.c', '.h', '.py', '.sh', '.md', '.build')
# They tell of what was there: rules by the numbers that they had.
HISTORY = ('.github/CHANGELOG.md', 'tests/FIGURES.md')


def text(*parts):
    with open(os.path.join(*parts), encoding='utf-8') as file:
        return file.read()


def sources(root):
    for directory, below, names in os.walk(root):
        below[:] = sorted(name for name in below if name not in ('.git', '__pycache__') and not name.startswith('build'))
        for name in sorted(names):
            path = os.path.relpath(os.path.join(directory, name), root)
            if name.endswith(CITING) and path not in HISTORY:
                yield path


def wrong_form(number, rule):
    first = rule.split('\n', maxsplit=1)[0]
    if not re.fullmatch(r'\*\*\d+\. [^*]+\.\*\*', first):
        yield f'rule {number} does not begin with a sentence in bold, in one line: {first}'
    for part in ('*Why:*', '*Code:*', '*Tests:*'):
        if rule.count(part) != 1:
            yield f'rule {number}: {part} is not there, or not once'


def long_sentences(rules):
    """Of what holds, and why: code and tests are lists."""
    prose = re.sub(r'^\*(Code|Tests):\*(?s:.*?)(?=^\n|\Z)|^\|.*$', '', rules, flags=re.MULTILINE)
    for paragraph in re.split(r'\n\n|\n(?=- )|\*\*\n|\*Why:\*', prose):
        for sentence in re.split(r'(?<=[.!?:;])\*{0,2} (?=[^a-z])', ' '.join(paragraph.split())):
            if len(sentence.split()) > SENTENCE_WORDS:
                yield f'{RULES}: {len(sentence.split())} words: {sentence}'


def wrong_references(root, numbers):
    cited = 0
    for file in sources(root):
        # A reference may go on in the next line, of a comment, too.
        body = re.sub(r'\s+', ' ', re.sub(r'\n\s*(\*|#)? ?', ' ', text(root, file)))
        for number in re.findall(r'\d+', ' '.join(re.findall(r'\b[Rr]ules? (\d+(?:(?:, | and | to )\d+)*)', body))):
            cited += 1
            if int(number) not in numbers:
                yield f'{file}: there is no rule {number} in {RULES}'
    if cited < 150:
        yield f'only {cited} references to rules were found'


def main():
    root = sys.argv[1]
    rules, mutants = text(root, RULES), text(root, MUTANTS)
    found = re.split(r'^(?=\*\*\d+\.)|^## ', rules, flags=re.MULTILINE)
    found = [(int(re.match(r'\*\*(\d+)', rule).group(1)), rule) for rule in found if re.match(r'\*\*\d+\.', rule)]
    numbers = [number for number, _ in found]
    wrong = [f'rule {number} is there twice' for number in set(numbers) if numbers.count(number) > 1]
    if len(numbers) < 30:
        wrong.append(f'few rules were found: {numbers}')
    for number, rule in found:
        wrong += wrong_form(number, rule)
    wrong += long_sentences(rules)
    wrong += [f'{RULES}: over {LINE} characters: {line}' for line in rules.split('\n')
              if len(line) > LINE and not line.startswith('|')]
    wrong += wrong_references(root, numbers)

    mutant_names = {name: number for number, name in re.findall(r"^mutant\((\d+), '(\w+)'", mutants, re.MULTILINE)}
    if len(mutant_names) < 300:
        wrong.append(f'only {len(mutant_names)} mutants were found')
    wrong += [f'{name} is a mutant of rule {number}, which is not there' for name, number in mutant_names.items()
              if int(number) not in numbers]
    names = set(re.findall(r'`([^`]+)`', rules))
    wrong += [f'{RULES} names {name}, which is not there' for name in sorted(names)
              if re.match(r'(tests|fs|lockcore)/', name) and not os.path.exists(os.path.join(root, name))]
    wrong += [f'{RULES} names {name}, which is no mutant' for name in sorted(names)
              if re.fullmatch(r'[a-z]+(_[a-z]+)+', name) and not name.startswith('on_lost') and name not in mutant_names]
    print(*wrong, sep='\n', file=sys.stderr)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
