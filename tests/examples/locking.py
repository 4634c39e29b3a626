# SPDX-License-Identifier: MIT
"""locking.py - what the tests of zklock(1) and zklocktop(1) share: the programs as they are
built, started beside a mount."""

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import tempfile
import time

import gate     # noqa: F401   it says where harness.py is
from harness import SOURCE_ROOT, WAIT_SECONDS, check, check_equal, command, spawn, until

BUILD = os.environ.get('ZKLOCK_BUILD') or SOURCE_ROOT + '/build/examples/zklock'
ZKLOCK = os.path.join(BUILD, 'zklock')
SOURCE = os.path.join(SOURCE_ROOT, 'examples', 'zklock')


def environment(mount=None, **more):
    """The test's own, with the mount; None: without any."""
    environ = {name: value for name, value in os.environ.items()
               if name != 'ZKLOCKFS' and not name.startswith('ZKLOCK_')}
    environ.update(LC_ALL='C.UTF-8', PATH=BUILD + ':' + environ['PATH'])
    if mount:
        environ['ZKLOCKFS'] = mount.directory
    environ.update(more)
    return environ


def zklock(mount, *words, **more):
    """Run it to the end; status, stdout, stderr."""
    return command([ZKLOCK, *words], env=environment(mount, **more))


def start(mount, *words, **options):
    """Start it, by another program whose words are `prefix`; its output as text."""
    environ = options.pop('env', None) or environment(mount)
    return spawn([*options.pop('prefix', ()), ZKLOCK, *words], **{'stdin': subprocess.DEVNULL, 'stdout': subprocess.PIPE,
                                      'stderr': subprocess.PIPE, 'text': True, 'env': environ, **options})


def check_run(mount, words, status, what, err=None):
    """It ends with this status and says that on stderr; what it says on stdout."""
    got, out, said = zklock(mount, *words)
    check_equal(got, status, f'{what}: {out}{said}')
    if err is not None:
        check(err in said, f'{what}: it says {said!r} and not {err!r}')
    return out


def entries(mount, lock):
    """The fields of each entry of the queue."""
    return [mount.fields(lock, 'queue', name) for name in mount.queue(lock)]


def free(mount, lock):
    until(lambda: not mount.queue(lock), f'{lock} is free')


def evict(mount, lock, process=None):
    """Take the lock from that process or a child of it, or from whoever is there; what another host
    lists may be a second old."""
    def done():
        for name in mount.queue(lock):
            with contextlib.suppress(FileNotFoundError):
                if process is None or any(f'-{pid}-' in name for pid in (process.pid, *children(process.pid))):
                    lock_file = os.open(mount.path(lock, 'queue', name), os.O_WRONLY)
                    try:
                        return os.write(lock_file, b'evict\n')
                    finally:
                        os.close(lock_file)
        return False
    until(done, f'an entry of {lock} to evict')


def children(pid):
    with contextlib.suppress(OSError), open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as file:
        return file.read().split()
    return []


def alive(pid):
    try:
        with open(f'/proc/{pid}/status', encoding='utf-8', errors='replace') as status:
            return '\nState:\tZ' not in status.read()
    except OSError:
        return False


class Terminal:
    """A process in a session of its own that has a terminal of its own."""

    def __init__(self, args, environ, rows=24, columns=80):
        self.status = None
        self.said = b''
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                signal.alarm(0)
                for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGINT, signal.SIGPIPE):
                    signal.signal(number, signal.SIG_DFL)
                resize(0, rows, columns)
                os.closerange(3, 65536)
                os.execvpe(args[0], args, environ)
            finally:
                os._exit(127)

    def read(self, seconds):
        """What has come; b'' if nothing has within so long, or nothing comes any more."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return b''
        try:
            data = os.read(self.fd, 65536)
        except OSError:     # EIO: its last process has closed it
            return b''
        self.said += data
        return data

    def expect(self, text):
        deadline = time.monotonic() + WAIT_SECONDS
        while text.encode() not in self.said:
            self.read(0.1)
            check(time.monotonic() < deadline, f'the terminal shows {self.said!r} and not {text!r}')

    def prompt(self, after):
        """The shell's prompt has come behind this text: what was typed before could be lost."""
        until(lambda: (self.read(0.02), b'\n$ ' in self.said.split(after.encode())[-1])[1], 'the prompt')

    def type(self, text):
        os.write(self.fd, text.encode())

    def ended(self):
        self.read(0.02)
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def end(self, status, what):
        try:
            until(self.ended, what + ' ends')
        except AssertionError:
            print(f'the terminal shows {self.said!r}')
            raise
        check_equal(self.status, status, f'{what}: status; it said {self.said!r}')
        os.close(self.fd)

    def kill(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.status = -9
            os.close(self.fd)


def resize(fd, rows, columns):
    import fcntl
    import struct
    import termios
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))


class Screen:
    """A program in a terminal of tmux(1), which says what stands on it."""

    def __init__(self, case, args, environ, columns=80, rows=24):
        socket = tempfile.mkdtemp(prefix='tmux', dir=case.directory) + '/socket'
        self.tmux = ['tmux', '-S', socket, '-f', '/dev/null', '-u']
        # It says with which status it ended, and stays for that to be read.
        script = 'trap : INT; "$@"; echo "ended with $?"; stty -a | tr ";" "\\n" | grep -o -e "-*icanon" -e "-*echo "; read -r _'
        self._do('new-session', '-d', '-x', str(columns), '-y', str(rows), 'sh', '-c', script, 'sh', *args,
                 env=environ)
        self.session = self._do('display-message', '-p', '#{pane_pid}').strip()
        case.cleanups.callback(self.end)

    def _do(self, *words, **options):
        status, out, err = command([*self.tmux, *words], **options)
        check_equal((status, err), (0, ''), f'tmux {words[0]}')
        return out

    def text(self):
        return self._do('capture-pane', '-p')

    def lines(self):
        return self.text().split('\n')[:-1]

    def chosen(self):
        """The line that is reversed."""
        return [line for line in self._do('capture-pane', '-p', '-e').split('\n') if re.search(r'\x1b\[(0;)?7m', line)]

    def keys(self, *keys):
        self._do('send-keys', *keys)

    def resize(self, columns, rows):
        self._do('resize-window', '-x', str(columns), '-y', str(rows))

    def expect(self, condition, what):
        """Until the lines are as wanted; the lines."""
        found = []

        def there():
            found[:] = self.lines()
            return condition(found)
        try:
            until(there, what)
        except AssertionError:
            print('\n'.join(found))
            raise
        return found

    def shows(self, *texts, not_there=()):
        return self.expect(lambda lines: all(any(text in line for line in lines) for text in texts)
                           and not any(text in line for text in not_there for line in lines), texts)

    def _all_ended(self):
        states = command(['ps', '-o', 'stat=', '-s', self.session])[1].split()
        return all(state.startswith('Z') for state in states)

    def end(self):
        """None of its processes has a file of the mount open any more."""
        command([*self.tmux, 'kill-server'])
        until(self._all_ended, 'its processes end')
