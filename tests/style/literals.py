#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A true or false that a call passes says which parameter it is: emit(front, /* closes = */ false).
clang-tidy (bugprone-argument-comment) compares that name with the parameter's. literals.py ROOT"""

import glob
import re
import sys

# No calls, or of a macro whose parameter has no name that says more.
NO_CALLS = {'if', 'while', 'for', 'switch', 'return', 'sizeof', 'case', 'assert', 'atomic_store'}
SKIPPED = r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\]|\\.)+\'|//[^\n]*|^[ \t]*#[^\n]*(?:\\\n[^\n]*)*'
TOKEN = re.compile(r'(/\*.*?\*/)|(' + SKIPPED + r')|(\w+)|(\S)', re.DOTALL | re.MULTILINE)


def bare(text):
    """The lines with a literal that is a whole argument of a call, and has no name before it."""
    tokens = [(match.group(0), match.start()) for match in TOKEN.finditer(text) if not match.group(2)]
    opened = []     # what stands before each open bracket; None: it begins no call
    for i, (token, start) in enumerate(tokens):
        before = tokens[i - 1][0] if i else ''
        if token in ('(', '[', '{'):
            is_call = token == '(' and re.fullmatch(r'[A-Za-z_]\w*|\)', before) and before not in NO_CALLS
            opened.append(before if is_call else None)
        elif token in (')', ']', '}'):
            del opened[-1:]
        elif token in ('true', 'false') and opened and opened[-1] and before in ('(', ',') and tokens[i + 1][0] in (',', ')'):
            yield text.count('\n', 0, start) + 1


def main(root):
    for text, count in (('f(true);', 1), ('f(a,\n  false, b);', 1), ('f(/* on = */ true);', 0), ('x = {1, true};', 0),
                        ('f(a == true, "(true)");', 0), ('p->f(false)', 1), ('assert(false);', 0), ('f((struct s){.a = true});', 0)):
        if len(list(bare(text))) != count:
            sys.exit(f'literals.py does not understand {text!r}')
    paths = sorted(path for part in ('fs', 'lockcore') for path in glob.glob(f'{root}/{part}/**/*.c', recursive=True))
    found = []
    for path in paths:
        with open(path, encoding='utf-8') as file:
            found += [f'{path}:{line}: a true or false without its name' for line in bare(file.read())]
    print(*found, sep='\n', file=sys.stderr)
    sys.exit(1 if found or len(paths) < 120 else 0)


main(sys.argv[1])
