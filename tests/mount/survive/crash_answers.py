#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The daemon is killed while requests wait for their answers. The next daemon answers requests that
only read, and confirms a lock. A change, which may have been made or not, gets EIO. Requests that
no daemon had read are served as usual."""

import errno
import os
import signal
import threading

from harness import check, check_equal, errno_of, run, until

FUTEX = ('202', '98')   # of x86_64 and aarch64: the thread waits for another one


class Asking(threading.Thread):
    """A call that waits, and its result."""

    def __init__(self, function, *args):
        super().__init__(daemon=True)
        self.call, self.came = lambda: errno_of(function, *args), None
        self.start()

    def run(self):
        self.came = self.call()

    def waits(self):
        """Wait until the call waits for an answer of the daemon."""
        def asked():
            check(self.is_alive(), f'a call has ended: {self.came}')
            with open(f'/proc/self/task/{self.native_id}/syscall', encoding='ascii') as file:
                return file.read().split()[0] not in ('running', *FUTEX)
        until(asked, 'it waits for an answer')
        return self

    def ends(self, wanted, what):
        self.join(60)
        check(not self.is_alive(), f'{what} does not end')
        check_equal(self.came, wanted, what)


def test(case):
    server = case.server()
    mount = case.mount(server, 'a', session='60s')
    for lock in ('asked', 'held', 'changed'):
        mount.mkdir(lock)
    holder = os.open(mount.path('held', 'lock'), os.O_RDWR)
    token = os.pread(holder, 64, 0)
    directory = os.open(mount.path('changed'), os.O_RDONLY)
    value = os.open(mount.path('held', 'value'), os.O_WRONLY)
    mount.ready()

    # The ensemble does not answer, so all of them wait when the daemon is killed.
    server.freeze()
    asked = [Asking(os.listdir, mount.path('asked', 'queue')), Asking(os.stat, mount.path('none'))]
    confirmed = Asking(os.fsync, holder)
    changed = [Asking(os.fchmod, directory, 0o700), Asking(os.write, value, b'text')]
    for call in (*asked, *changed, confirmed):
        call.waits()
    mount.status()      # the daemon reads and answers this after them
    mount.send(signal.SIGSTOP)
    unread = Asking(os.stat, mount.path('held', 'lock')).waits()
    mount.allow_more('was ended by signal')
    mount.send(signal.SIGKILL)
    for call, what in zip(changed, ('chmod', 'a value that is written')):
        call.ends(errno.EIO, what)
    server.thaw()
    unread.ends(0, 'what was not read')
    asked[0].ends(0, 'a directory that is read')
    asked[1].ends(errno.ENOENT, 'a name that is looked up')
    confirmed.ends(0, 'fsync')
    check_equal(os.pread(holder, 64, 0), token, 'the token')
    for fd in (holder, directory, value):
        os.close(fd)


run(test)
