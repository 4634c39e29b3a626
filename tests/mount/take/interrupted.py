#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A signal ends the wait with EINTR at once. The entry of a process that does not come back
goes after 2 s (rule 22); that of a process that ends, such as a bash stopped by Ctrl-C, goes at
once."""

import errno
import signal
import subprocess

from harness import Stopwatch, check_equal, run, spawn, until


def test(case):
    server = case.server()
    mount = case.mount(server, session='30s')
    mount.mkdir('build')
    holder = mount.take('build').held()

    def queued(count):
        until(lambda: len(server.entries('build')) == count, f'{count} in the queue')

    waiter = mount.take('build')
    queued(2)
    watch = Stopwatch()
    waiter.kill(signal.SIGUSR1)
    waiter.refused(errno.EINTR)
    watch.check(0, 2, 'EINTR')
    queued(1)

    shell = spawn(['bash', '-c', 'exec 9<>"$1" || exit 75; echo taken', 'bash',
                   mount.path('build', 'lock')], stdout=subprocess.PIPE)
    queued(2)
    watch = Stopwatch()
    shell.send_signal(signal.SIGINT)
    out, _ = shell.communicate(timeout=60)
    watch.check(0, 2, 'Ctrl-C')
    check_equal((shell.returncode, out), (-signal.SIGINT, b''), 'how bash ended')
    queued(1)

    holder.release()
    mount.take('build', 'try').held()


run(test)
