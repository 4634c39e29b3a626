# SPDX-License-Identifier: MIT
"""hungfs.py - another filesystem that hangs: a FUSE mount with one file, `file`, which never
answers a FLUSH. A process that closes that file stands still. A process that closes it by exec,
because it is close-on-exec, stands still in exec, where the kernel holds the process's exec
lock. Then ps(1), and every process that reads /proc/PID/stat, stands still too. Tests with such
a mount run alone."""

import ctypes
import os
import select
import signal
import stat
import struct
import tempfile

from harness import WAIT_SECONDS, check, die_with_parent, libc

_LOOKUP, _FORGET, _GETATTR, _OPEN, _RELEASE, _FLUSH, _INIT, _INTERRUPT = 1, 2, 3, 14, 18, 25, 26, 36
_ROOT, _FILE = 1, 2
_LONG = 3600
_ENOSYS, _ENOENT = 38, 2


def _attributes(node):
    mode = stat.S_IFDIR | 0o755 if node == _ROOT else stat.S_IFREG | 0o666
    return struct.pack('<6Q10I', node, 0, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def _answer(opcode, node, body):
    """An errno, or the data of the answer; None: no answer."""
    if opcode == _INIT:
        return struct.pack('<4I2H2I2HI7I', 7, 31, 65536, 0, 16, 12, 65536, 1, 32, 0, 0, *[0] * 7)
    if opcode == _LOOKUP:
        if node != _ROOT or body.rstrip(b'\0') != b'file':
            return _ENOENT
        return struct.pack('<4Q2I', _FILE, 0, _LONG, _LONG, 0, 0) + _attributes(_FILE)
    if opcode == _GETATTR:
        return struct.pack('<Q2I', _LONG, 0, 0) + _attributes(node)
    if opcode == _OPEN:
        return struct.pack('<Q2I', 0, 0, 0)
    if opcode == _RELEASE:
        return b''
    return None if opcode in (_FORGET, _FLUSH, _INTERRUPT) else _ENOSYS


def _serve(device, told):
    while True:
        request = os.read(device, 1 << 18)
        _, opcode, unique, node = struct.unpack_from('<IIQQ', request)
        answer = _answer(opcode, node, request[40:])
        if opcode == _FLUSH:
            os.write(told, b'.')
        if answer is None:
            continue
        error, data = (-answer, b'') if isinstance(answer, int) else (0, answer)
        os.write(device, struct.pack('<IiQ', 16 + len(data), error, unique) + data)


class HungFs:
    def __init__(self, case):
        self.directory = tempfile.mkdtemp(prefix='hung', dir=case.directory)
        device = os.open('/dev/fuse', os.O_RDWR | os.O_CLOEXEC)
        options = f'fd={device},rootmode=40000,user_id=0,group_id=0,allow_other'
        check(libc.mount(b'toy', self.directory.encode(), b'fuse', 0, options.encode()) == 0,
              'a toy mount: ' + os.strerror(ctypes.get_errno()))
        self.flushes, told = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                signal.alarm(0)
                die_with_parent()
                _serve(device, told)
            finally:
                os._exit(1)
        os.close(device)
        os.close(told)
        self.path = self.directory + '/file'
        case.cleanups.callback(self.end)

    def caught(self):
        """Wait until one more process stands still."""
        check(select.select([self.flushes], [], [], WAIT_SECONDS)[0], 'nobody closes the file')
        os.read(self.flushes, 1)

    def end(self):
        """End the mount: the processes that stand still there go on."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0
