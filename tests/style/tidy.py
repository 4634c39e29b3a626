#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""clang-tidy finds nothing in the sources, with the checks of .clang-tidy. tidy.py BUILD [--all|--deep]

clang's own warnings are among the checks, so that clang accepts the sources as gcc does. The
sources of the tests are looked at with --all only, since there are as many of them as of all
others. So they are with --deep, which runs the static analyzer, too, and takes some minutes. The
test uses only clang-tidy 14 of Debian 12: each version has other checks.
"""

import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOMS = ['fs', 'lockcore', 'examples']
TIDY = 'clang-tidy-14'


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    root = pathlib.Path(__file__).resolve().parents[2]
    if not shutil.which(TIDY):
        print(f'no {TIDY} here')
        return 77
    with open(build / 'compile_commands.json', encoding='utf-8') as database:
        sources = {(build / entry['file']).resolve() for entry in json.load(database)}
    rooms = ROOMS + ['tests'] * ('--all' in sys.argv or '--deep' in sys.argv)
    sources = sorted(source for source in sources if source.relative_to(root).parts[0] in rooms)
    assert root / 'fs/daemon/main.c' in sources
    checks = [] if '--deep' in sys.argv else ['--checks=-clang-analyzer-*']

    def look(source):
        return subprocess.run([TIDY, '-p', build, '--quiet', *checks, source], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in pool.map(look, sources):
            bad += done.returncode != 0
            sys.stdout.write(done.stdout if done.returncode == 0 else done.stdout or done.stderr)
    print(f'{len(sources)} files, {bad} with findings')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
