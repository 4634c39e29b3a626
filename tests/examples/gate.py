# SPDX-License-Identifier: MIT
"""gate.py - what the tests of examples/ share.

An example runs a command while it has a lock. Here that command is a visitor: it comes
to the test's gate, tells what it finds in its environment, and stays until it is let go: visitor.py.

    gate = Gate(case)
    process = example('licence.sh', a.path('lock'), *gate.visitor('first'))
    visitor = gate.arrived('first')
    visitor.let(3)      # it ends with this status
"""

import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, '..', '..', 'examples')
sys.path.insert(0, os.path.join(HERE, '..', 'mount'))
sys.dont_write_bytecode = True

from harness import NOBODY, WAIT_SECONDS, check, check_equal, command, spawn, until, write_program


class Visitor:
    def __init__(self, conn):
        self.conn = conn
        self.pid = struct.unpack('iII', conn.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        with conn.makefile('rb') as lines:
            self.name, self.environ = json.loads(lines.readline())

    def let(self, status=0):
        self.conn.sendall(str(status).encode())
        self.gone()

    def gone(self):
        """It has ended, by itself or not."""
        self.conn.settimeout(WAIT_SECONDS)
        with contextlib.suppress(ConnectionResetError):
            check_equal(self.conn.recv(1), b'', 'a visitor that goes')
        self.conn.close()


class Gate:
    def __init__(self, case):
        self.path = os.path.join(tempfile.mkdtemp(prefix='gate', dir=case.directory), 'gate')
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(256)
        case.cleanups.callback(self.close)

    def close(self):
        self.listener.close()

    @property
    def tools(self):
        """A directory of programs that the examples find before all others: tool()."""
        return os.path.dirname(self.path)

    def tool(self, name, text):
        write_program(f'{self.tools}/{name}', text)

    def visitor(self, name='visitor'):
        """The command to be run under the lock."""
        return [sys.executable, os.path.join(HERE, 'visitor.py'), self.path, name]

    def arrived(self, name=None):
        self.listener.settimeout(WAIT_SECONDS)
        visitor = Visitor(self.listener.accept()[0])
        check(name in (None, visitor.name), f'{visitor.name} came and not {name}')
        return visitor

    def nobody(self, what):
        self.listener.settimeout(0)
        try:
            visitor = Visitor(self.listener.accept()[0])
        except BlockingIOError:
            return
        raise AssertionError(f'{what}: {visitor.name} came')


def path(name):
    return os.path.normpath(os.path.join(EXAMPLES, name))


def example(name, *words, shell=(), **environ):
    """Start it; its output as text."""
    return spawn([*shell, path(name), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                 stderr=subprocess.PIPE, text=True, env={**os.environ, **environ})


def finished(process, status, what):
    """Both outputs of a process that ends, with this status."""
    out, err = process.communicate(timeout=WAIT_SECONDS)
    check_equal(process.returncode, status, f'{what}: {out}{err}')
    return out, err


def at_once(name, *words, shell=(), **environ):
    """Run it to the end; status, stdout, stderr."""
    return command([*shell, path(name), *words], env={**os.environ, **environ})


def broken(case, mount):
    """What it is like where a lock cannot be taken, and nobody else has it: a name for it, the
    directory in which the locks would be, and the user who tries, if not root. Where that is
    `local` the caller makes files there, with the text behind the colon."""
    dead = case.mount(case.servers[0], 'dead')
    until(lambda: set(mount.locks()) <= set(dead.locks()), 'it has all locks')
    dead.crash()
    mount.mkdir('elsewhere')
    yield 'nothing mounted', case.mount_point(), 0
    yield 'local', case.mount_point(), 0
    yield 'local:deploying v41\n', case.mount_point(), 0
    yield 'daemon dead', dead.directory, 0
    yield 'typing error', mount.path('elsewhere'), 0
    yield 'no permission', mount.directory, NOBODY


def queued(mount, lock, count, held=None):
    """So many stand in the queue, and so many of them hold."""
    def there():
        with contextlib.suppress(FileNotFoundError):    # one that has just gone
            modes = [entry.stat().st_mode for entry in os.scandir(mount.path(lock, 'queue'))]
            return len(modes) == count and held in (None, sum(mode & 0o100 != 0 for mode in modes))
        return False
    until(there, f'{count} in the queue of {lock}, {held} of them hold')


def evict(mount, lock, place=0):
    """Take the lock from the taker at that place, as an operator does."""
    entry = mount.queue(lock)[place]
    with open(mount.path(lock, 'queue', entry), 'w', encoding='ascii') as file:
        file.write('evict\n')
