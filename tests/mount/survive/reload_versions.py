#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds that really differ. A later version, whose state has more than this one knows, takes over
from it, and this one takes over again from the later one. A version that does not understand the
state is refused, with a line that says why. After a crash the program that served goes on, even if
another one was installed meanwhile, such as the refused one."""

import errno
import os
import shutil
import signal

from harness import SOURCE_ROOT, ZKLOCKFS, check, check_equal, command, raw_open, run, until

OTHERS = os.environ.get('OTHER_VERSIONS') or SOURCE_ROOT + '/build/tests/mount'


class Scene:
    def __init__(self, case, server):
        self.known = {}     # how many log lines with a text were seen
        self.program = case.directory + '/zklockfs'
        shutil.copy(ZKLOCKFS, self.program)
        self.mount = mount = case.mount(server, session='6s', program=self.program)
        mount.allow('no reload|was ended by signal')
        for name in ('build', 'file', 'later'):
            mount.mkdir(name)
        self.holder = mount.take('build').held()
        self.token = self.holder.token()
        self.interrupted, self.waiter = (self._queues(server, number) for number in (2, 3))

    def _queues(self, server, number):
        taker = self.mount.take('build')
        until(lambda: len(server.entries('build')) == number, f'{number} stand in the queue')
        return taker

    def install(self, program):
        """Install the program as a package does: another file of the same name."""
        shutil.copy(program, self.program + '.new')
        os.rename(self.program + '.new', self.program)

    def is_well(self):
        check_equal(self.holder.token(), self.token, 'the token')
        self.holder.do('fsync')
        check(not self.interrupted.answered() and not self.waiter.answered(), 'a waiter does not wait')
        os.close(raw_open(self.mount.path('file', 'lock'), os.O_RDWR))

    def lines(self, what):
        return [line for line in self.mount.log().splitlines() if what in line]

    def said(self, what, wanted):
        """Wait for the next log line with `what`, and check it. Another process writes the log."""
        self.known[what] = self.known.get(what, 0) + 1
        line = until(lambda: self.lines(what)[self.known[what] - 1:], f'the log says: {what}')[0]
        check(wanted in line, f'not {wanted!r}: {line}')

    def reload(self, program, before):
        """Reload; the log must name the version from which the program has taken over."""
        self.install(program)
        self.mount.reload()
        self.said('taken over', f' from {before} in ')
        self.is_well()

    def refused(self, program):
        self.install(program)
        self.mount.process.send_signal(signal.SIGUSR2)
        self.said('no reload', 'the state is of another version')
        self.is_well()

    def crash(self, version):
        """The daemon crashes, and the version that served goes on."""
        self.mount.adopt()
        self.said('taken over', f' from {version} after a crash ')
        self.is_well()


def test(case):
    scene = Scene(case, case.server(tick_ms=500))
    later, foreign = OTHERS + '/zklockfs-later', OTHERS + '/zklockfs-foreign'
    this = command([ZKLOCKFS, '--version'])[1].split()[1]

    scene.refused(foreign)
    scene.crash(this)
    # No program is installed any more.
    os.remove(scene.program)
    scene.mount.rest()
    scene.crash(this)

    scene.reload(later, this)
    scene.refused(foreign)
    scene.mount.rest()
    scene.crash('later')
    scene.install(ZKLOCKFS)
    scene.mount.rest()
    scene.crash('later')
    scene.reload(ZKLOCKFS, 'later')
    scene.mount.rest()
    scene.crash(this)

    scene.interrupted.kill(signal.SIGUSR1)
    scene.interrupted.refused(errno.EINTR)
    scene.interrupted.kill()
    scene.holder.release()
    scene.waiter.held().release()
    check_equal(scene.mount.metric('reloads_total'), 2, 'reloads')
    check_equal(scene.mount.metric('adoptions_total'), 5, 'crashes')


run(test)
