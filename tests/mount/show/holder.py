#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`holder` has one line for the holder, with its entry, pid and token, and the reason at the
end, on every mount. It is empty when the lock is free."""

import os
import shutil

from harness import check, check_equal, command, run, until


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    a.mkdir('build')
    for mount in (a, b):
        check_equal(mount.read('build', 'holder'), '', 'holder of a free lock')

    taker = a.take('build').held()
    waiter = b.take('build')
    until(lambda: len(server.entries('build')) == 2, 'the waiter queues')
    taker.do('write', b'deploying v42\n')
    entry = a.queue('build')[0]
    for mount in (a, b):
        until(lambda: 'deploying' in mount.read('build', 'holder'), 'the reason is shown')
        text = mount.read('build', 'holder')
        check_equal(text.count('\n'), 1, f'lines in {text!r}')
        check(text.endswith('deploying v42\n'), f'the reason is not last: {text!r}')
        for word in (entry, str(taker.pid), str(taker.token()), 'a'):
            check(any(word == part or part.endswith('=' + word) for part in text.split()),
                  f'no {word} in {text!r}')
        check(os.stat(mount.path('build', 'holder')).st_size >= len(text), 'the size is no upper bound')
        copy = case.directory + '/copy'
        shutil.copyfile(mount.path('build', 'holder'), copy)
        with open(copy, encoding='utf-8') as file:
            check_equal(file.read(), text, 'a copy')
        # sendfile(2) reads nothing of a file with size 0.
        for words in [['cat']] + [['busybox', 'cat']] * bool(shutil.which('busybox')):
            check_equal(command([*words, mount.path('build', 'holder')])[1], text, ' '.join(words))
        with open(copy, 'wb') as out, open(mount.path('build', 'holder'), 'rb') as file:
            check_equal(os.sendfile(out.fileno(), file.fileno(), 0, 65536), len(text), 'sendfile')
        for words in (['wc', '-c'], ['tail', '-c', '4'], ['tail', '-n', '1'], ['head', '-n', '1']):
            _, near, _ = command([*words, mount.path('build', 'holder')])
            _, wanted, _ = command([*words, copy])
            check_equal(near.split()[0], wanted.split()[0], f'{words}')

    taker.release()
    waiter.held()
    check(b.queue('build')[0] in b.read('build', 'holder'), 'the next holder is not shown')
    waiter.release()
    until(lambda: a.read('build', 'holder') == '', 'nobody holds it')


run(test)
