#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A lock file can be open where /proc does not show it: in flight over a socket, behind a mapping,
with io_uring (rule 35). That no process was found is no reason to pass a lost lock on. It passes
on at the last close, or when the session would have ended. Where a thorough search finds a
descriptor, its opener is stopped: under another name in another mount namespace, or in a
thread's own table, or in a process without its first thread."""

import ctypes
import os
import signal
import socket
import struct
import threading

from harness import Stopwatch, check, die_with_parent, libc, run, state_of, until
from openers import evict, other_name, process, runs

_CLONE_FILES = 0x400
_IO_URING_SETUP, _IO_URING_REGISTER, _REGISTER_FILES = 425, 427, 2
_PROT_READ, _MAP_PRIVATE, _PAGE = 1, 2, 4096
T = 15  # seconds of a session: far longer than all that is done before its end

libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


# Each function opens the lock file in a way of its own, in a process of its own, and returns the object
# that keeps the lock file open.

def in_flight(path, _):
    pair = socket.socketpair()
    fd = os.open(path, os.O_RDWR)
    socket.send_fds(pair[0], [b'x'], [fd])
    os.close(fd)
    return pair


def mapping(path, _):
    fd = os.open(path, os.O_RDWR)
    address = libc.mmap(None, _PAGE, _PROT_READ, _MAP_PRIVATE, fd, 0)
    check(address not in (None, ctypes.c_void_p(-1).value), 'mmap: ' + os.strerror(ctypes.get_errno()))
    os.close(fd)


def registered(path, _):
    fd = os.open(path, os.O_RDWR)
    ring = libc.syscall(_IO_URING_SETUP, 4, ctypes.create_string_buffer(256))
    if ring < 0:
        return mapping(path, _)     # switched off on this machine
    files = struct.pack('i', fd)
    check(libc.syscall(_IO_URING_REGISTER, ring, _REGISTER_FILES, files, 1) == 0, 'io_uring_register')
    os.close(fd)


def own_table(path, _):
    fd = os.open(path, os.O_RDWR)
    parted = threading.Event()

    def part():
        check(libc.unshare(_CLONE_FILES) == 0, 'unshare')
        parted.set()
        signal.pause()
    threading.Thread(target=part, daemon=True).start()
    parted.wait()
    os.close(fd)
    return fd


def end_first_thread(tell):
    def live_on():
        until(lambda: state_of(os.getpid()) == 'Z', 'the first thread has ended')
        os.write(tell, b'.')
        signal.pause()
    threading.Thread(target=live_on, daemon=True).start()
    libc.syscall({'x86_64': 60, 'aarch64': 93}[os.uname().machine], 0)     # _exit(2) ends all


def no_first_thread(path, _):
    """A child has it, of which the first thread has ended; the opener has it no longer."""
    fd = os.open(path, os.O_RDWR)
    ready, tell = os.pipe()
    if os.fork() == 0:
        try:
            die_with_parent()
            end_first_thread(tell)
        finally:
            os._exit(1)
    os.close(fd)
    check(os.read(ready, 1) == b'.', 'the child is ready')


def test(case):
    server = case.server(tick_ms=500)
    a = case.mount(server, 'a', session=f'{T}s', options=['on_lost=kill'])
    b = case.mount(server, 'b', session=f'{T}s')
    a.allow('.')
    waiters, openers = {}, {}

    def lose(lock, way):
        b.mkdir(lock)
        openers[lock] = process(way, a.path(lock, 'lock'), case.directory + '/' + way.__name__)
        waiters[lock] = b.take(lock)
        until(lambda: len(server.entries(lock)) == 2, 'the waiter queues')
        evict(b, lock)
        a.said(f'{lock}: the lock is lost')

    def status(lock):
        return os.waitstatus_to_exitcode(os.waitpid(openers[lock], 0)[1])

    watch = Stopwatch()
    for way in (other_name, own_table, no_first_thread):
        lock = way.__name__.replace('_', '-')
        lose(lock, way)
        check(way == no_first_thread or status(lock) == -signal.SIGKILL, f'{lock} was not stopped')
        waiters[lock].held().release()
    check(watch.seconds() < T - 1, 'too slow to tell')
    os.kill(openers['no-first-thread'], signal.SIGKILL)

    watch = Stopwatch()
    hidden = {way.__name__.replace('_', '-'): way for way in (in_flight, mapping, registered)}
    for lock, way in hidden.items():
        lose(lock, way)
        lose(lock + '-closed', way)
    # Meanwhile the guardian looks for them more than once.
    until(lambda: watch.seconds() > 2, 'a while')
    for lock in hidden:
        for lost in (lock, lock + '-closed'):
            check(not waiters[lost].answered(), f'{lost}: the next one holds beside the taker that lost it')
            check(runs(openers[lost]), f'{lost}: stopped for what was not seen')
        os.kill(openers[lock + '-closed'], signal.SIGKILL)
        waiters[lock + '-closed'].held().release()
    check(watch.seconds() < T - 1, 'too slow to tell')
    for lock in hidden:
        waiters[lock].held()
        watch.check(T - 0.5, T + 4, lock)
        waiters[lock].release()
        os.kill(openers[lock], signal.SIGKILL)
    # The kernel closes the files of an io_uring some time after the end of its process.
    until(lambda: libc.umount2(a.directory.encode(), 0) == 0, 'nothing is open any more')
    a.check_end()


run(test)
