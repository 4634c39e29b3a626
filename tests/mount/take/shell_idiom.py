#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The idiom of the manual in the shells: take, read the token, set a reason,
read the token again."""

import subprocess

from harness import check_equal, run, shells, spawn, until

SCRIPT = '''
exec 9<>"$1/lock" || exit 75
read -r first <&9 || exit 1
echo "deploying version 42 of everything there is" >&9 || exit 74
read -r second <&9 || exit 2
echo x >&9
read -r third <&9 || exit 3
echo "$first $second $third"
read -r _
'''


def test(case):
    server = case.server()
    mount = case.mount(server)
    mount.mkdir('build')
    for shell in shells():
        process = spawn(shell + ['-c', SCRIPT, 'sh', mount.path('build')],
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        words = process.stdout.readline().split()
        entry, = server.entries('build')
        czxid = str(server.zk.exists('/locks/build/' + entry).czxid)
        check_equal(words, [czxid] * 3, f'tokens in {shell}')
        process.communicate(timeout=60)
        until(lambda: not server.entries('build'), 'the lock is free')


run(test)
