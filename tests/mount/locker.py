# SPDX-License-Identifier: MIT
"""locker.py - a process that locks files by flock(2) and fcntl(2) as it is told.

    p = Locker(mount, 'build')          its lock file is build/flock
    fd = p.do('open')                   a descriptor of that process
    p.do('flock', fd, LOCK_EX)          waits for the answer, or raises OSError
    p.ask('flock', fd, LOCK_EX)         does not wait; answered(), then got() or fails(errno)
"""

import ctypes
import fcntl
import os
import select
import signal
import struct
import threading

from harness import Taker, check, check_equal, die_with_parent, errno_of, error_name, libc, raw_open

F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW = 36, 37, 38
_FLOCK = 'hhqqi4x'   # struct flock


def whole(kind, start=0, length=0, whence=os.SEEK_SET):
    return struct.pack(_FLOCK, kind, whence, start, length, 0)


def raw_flock(fd, operation):
    """flock(2) itself: fcntl.flock() calls it again after EINTR."""
    if libc.flock(fd, operation) < 0:
        raise OSError(ctypes.get_errno(), 'flock')


def setlk(fd, kind, command=fcntl.F_SETLK, *place):
    fcntl.fcntl(fd, command, whole(kind, *place))


def raw_setlkw(fd, kind, command=fcntl.F_SETLKW):
    if libc.fcntl(fd, command, whole(kind)) < 0:
        raise OSError(ctypes.get_errno(), 'fcntl')


def getlk(fd, kind, command=fcntl.F_GETLK):
    """The type and the pid of a lock that is in the way, or None."""
    found = struct.unpack(_FLOCK, fcntl.fcntl(fd, command, whole(kind)))
    return None if found[0] == fcntl.F_UNLCK else (found[0], found[4])


def fork_and(name, *args):
    """Call the function in a child, which then ends. Returns the errno."""
    pid = os.fork()
    if pid == 0:
        os._exit(errno_of(_FUNCTIONS[name], *args))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def fork_and_keep(name=None, *args):
    """Start a child with all open files, which calls the function and then does nothing more."""
    end, ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        die_with_parent()
        if name:
            _FUNCTIONS[name](*args)
        os.close(ready)
        signal.pause()
    os.close(ready)
    os.read(end, 1)
    os.close(end)
    return pid


def in_threads(*calls):
    """Make all calls at the same time; return their errnos."""
    codes = [None] * len(calls)

    def call(i, name, *args):
        codes[i] = errno_of(_FUNCTIONS[name], *args)

    threads = [threading.Thread(target=call, args=(i, *calls[i])) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return codes


def close_after(lock_file, fd):
    """Close the descriptor when the lock of the lock file is free."""
    with open(lock_file, 'r+', encoding='ascii') as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        os.close(fd)


def poll(fd, events, seconds=0):
    """poll(2) on one descriptor; return its events."""
    poller = select.poll()
    poller.register(fd, events)
    found = poller.poll(seconds * 1000)
    return found[0][1] if found else 0


_FUNCTIONS = {'flock': fcntl.flock, 'raw_flock': raw_flock, 'setlk': setlk, 'getlk': getlk,
              'raw_setlkw': raw_setlkw, 'siginterrupt': signal.siginterrupt,
              'fork_and': fork_and, 'lockf': fcntl.lockf,
              'fork_and_keep': fork_and_keep, 'poll': poll,
              'in_threads': in_threads, 'close_after': close_after}


class Locker(Taker):
    def __init__(self, mount, lock, lock_file='flock', uid=0):
        super().__init__(mount.path(lock, lock_file), 0, uid)
        mount.case.takers.append(self)

    def _serve(self, conn, flags):
        functions = dict(_FUNCTIONS)
        functions['open'] = lambda flags=os.O_RDWR: raw_open(self.path, flags)
        while True:
            name, args = conn.recv()
            conn.send(self._obey(functions.get(name) or getattr(os, name), *args))

    def ask(self, name, *args):
        self.conn.send((name, args))

    def got(self):
        code, result, self.when = self._answer()
        check(code == 0, f'{self.path} by {self.pid}: {error_name(code)}')
        return result

    def fails(self, wanted, name=None, *args):
        """Check the error of the call that was asked for, or of this call."""
        if name:
            self.ask(name, *args)
        code, _, self.when = self._answer()
        check_equal(error_name(code), error_name(wanted), f'{name or "the call"}{args} by {self.pid}')

    def do(self, name, *args):
        self.ask(name, *args)
        code, result, _ = self._answer()
        if code:
            raise OSError(code, name)
        return result
