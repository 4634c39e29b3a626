#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs as cron runs them, in several shells on two mounts: never two at a time, no job is lost,
and `try` makes a job skip its turn with status 75."""

import os
import subprocess

from harness import check, check_equal, run, shells, spawn, until

JOBS, ROUNDS = 6, 5

# Read, wait, write: two jobs at a time would lose a step.
JOB = '''
for round in %s; do
    exec 9<>"$1/lock" || exit 75
    read -r count <"$2"
    sleep 0.01 9>&-
    echo $((count + 1)) >"$2"
    exec 9>&-
done
''' % ' '.join(map(str, range(ROUNDS)))

SKIP = 'exec 9<>"$1/try" || exit 75; echo ran; exit 0'


def test(case):
    server = case.server()
    mounts = case.mount(server, 'a'), case.mount(server, 'b')
    mounts[0].mkdir('build')
    counter = case.directory + '/counter'
    with open(counter, 'w', encoding='ascii') as file:
        file.write('0\n')

    kinds = shells()
    jobs = [spawn(kinds[job % len(kinds)] + ['-c', JOB, 'sh', mounts[job % 2].path('build'), counter])
            for job in range(JOBS)]
    for job in jobs:
        check_equal(job.wait(timeout=60), 0, 'status of a job')
    with open(counter, encoding='ascii') as file:
        check_equal(file.read(), f'{JOBS * ROUNDS}\n', 'steps')

    for mount in mounts:
        for shell in kinds:
            def skip():
                job = spawn(shell + ['-c', SKIP, 'sh', mount.path('build')], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
                out, err = job.communicate(timeout=60)
                return job.returncode, out, err
            until(lambda: not server.entries('build'), 'the lock is free')
            check_equal(skip(), (0, 'ran\n', ''), f'{shell}, a free lock')
            until(lambda: not server.entries('build'), 'a job that ends gives the lock back')
            fd = os.open(mounts[0].path('build', 'lock'), os.O_RDWR)
            status, out, err = skip()
            os.close(fd)
            # A failed exec ends every shell but bash, with a status of its own.
            wanted = {'bash': 75, 'dash': 2, 'busybox': 1}[shell[0]]
            check(status == wanted and out == '' and err, f'{shell}: {status} {out} {err}')


run(test)
