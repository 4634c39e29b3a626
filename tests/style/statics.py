#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No two files of a directory have static functions of the same name, and no static function has
the name of a global one: in a debugger or a profile the name alone tells which one is meant. No
global function is in both directories: the linker would take one of them without a message. No two
structs of the program have the same name. statics.py ROOT"""

import collections
import glob
import re
import sys

DIRECTORIES = ('fs', 'lockcore')
# A definition or declaration begins in the first column.
FUNCTION = re.compile(r'^(\w[^;={()#]*?)\b(\w+)\([^;{]*[;{]', re.M)
STRUCT = re.compile(r'^(?:static )?struct (\w+) \{', re.M)
DEFINITION = re.compile(r'^(\w[^;={()#]*?)\b(\w+)\([^;{]*\{', re.M)

wrong = []
rooms, structs = collections.defaultdict(set), collections.defaultdict(set)
for directory in DIRECTORIES:
    static, others, count = collections.defaultdict(set), collections.defaultdict(set), 0
    for file in glob.glob(f'{sys.argv[1]}/{directory}/**/*.c', recursive=True):
        with open(file, encoding='utf-8') as source:
            text = source.read()
        for kind, name in FUNCTION.findall(text):
            (static if 'static' in kind.split() else others)[name].add(file)
            count += 1
        for kind, name in DEFINITION.findall(text):
            if 'static' not in kind.split():
                rooms[name].add(directory)
    for file in glob.glob(f'{sys.argv[1]}/{directory}/**/*.[ch]', recursive=True):
        with open(file, encoding='utf-8') as source:
            for name in STRUCT.findall(source.read()):
                structs[name].add(file)
    if count < 200:
        wrong.append(f'only {count} functions were found in {directory}/')
    wrong += [f'{name} is a function in each of {" ".join(sorted(files | others[name]))}'
              for name, files in sorted(static.items()) if len(files | others[name]) > 1]
wrong += [f'{name} is a function for all in each of {" ".join(sorted(found))}/'
          for name, found in sorted(rooms.items()) if len(found) > 1]
wrong += [f'struct {name} is defined in each of {" ".join(sorted(files))}'
          for name, files in sorted(structs.items()) if len(files) > 1]
if len(structs) < 100:
    wrong.append(f'only {len(structs)} structs were found')
print(*wrong, sep='\n', file=sys.stderr)
sys.exit(1 if wrong else 0)
