# SPDX-License-Identifier: MIT
"""harness.py - what the mount tests share.

A test is one file: it calls run(test), and test(case) starts what it needs

    server = case.server()          a ZooKeeper server of its own
    a = case.mount(server, 'a')     a mount of it, known to the others as host a
    t = a.take('build')             a process that opens the lock file build/lock

In the end every mount must come off, its daemon must have ended with status 0,
its log must have no word that looks like an error, and no entry may be left in
ZooKeeper. Whatever happens to the test, SIGKILL included, a janitor in a session
of its own kills the processes that are left and removes the private directory.
The mounts are in a mount namespace of the test's own and go with its last process.

Nothing here waits by sleeping: until() polls a condition against a deadline.
"""

import collections
import contextlib
import ctypes
import errno
import fcntl
import multiprocessing
import os
import platform
import random
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import traceback

import rawzk

SOURCE_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CC = os.environ.get('CC', 'cc').split()    # may have arguments, as `ccache gcc`
ZKLOCKFS = os.path.abspath(os.environ.get('ZKLOCKFS') or SOURCE_ROOT + '/build/fs/zklockfs')
EMULATOR = os.environ.get('ZKLOCKFS_EMULATOR')   # the program that /proc names, where another one executes ZKLOCKFS

# ZooKeeper's server of Debian, or another one: the class path.
ZOOKEEPER_JARS = os.environ.get('ZOOKEEPER_JARS') or \
    '/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar'
ZOOKEEPER_JVM = os.environ.get('ZOOKEEPER_JVM', '').split()     # more options for all servers

# Options of all mounts, except those of tests that start the program themselves.
OPTIONS = os.environ.get('ZKLOCKFS_OPTIONS', '').split()
NO_KEEPER = 'nokeeper'
# System calls that fail in all mounts, as by the filter of a container engine: EPERM:pidfd_open,statx
REFUSED = os.environ.get('ZKLOCKFS_REFUSED')
# In the place of each reload, the daemon is killed, and its supervisor starts another one.
CRASHES = 'ZKLOCKFS_CRASHES' in os.environ
CRASHES_MAX = 2     # within a session timeout
CASE_SECONDS = int(os.environ.get('ZKLOCKFS_CASE_SECONDS', 1100))  # below meson's timeout
SLOWNESS = float(os.environ.get('ZKLOCKFS_SLOWNESS', 1))           # of this machine
LATE_FACTOR = 10                  # see Stopwatch
WAIT_SECONDS = 60 * SLOWNESS      # of until(): far longer than any step that works
LATE = os.environ.get('ZKLOCKFS_LATE')         # who is late on purpose: unlucky.py
LENT, LENT_TICK_MS = 'ZKLOCKFS_LENT_SERVER', 500   # its port: see LentServer
NO_ANSWER = errno.EHOSTUNREACH, errno.EBUSY    # of a call, after two seconds or without contact
NOBODY = 65534
ALICE, BOB = 1001, 1002

_TROUBLE = re.compile(r'error|fail|assert|sanitizer|leak|warning|cannot unmount', re.IGNORECASE)
_OF_ITSELF = re.compile(r'--\d+-- ')   # by valgrind, which does not know pidfd_open(2)
_USUAL = re.compile(r'which can forget answered writes|the empty mount point is')
_TOO_BUSY = re.compile(r'no reload, .*: (?:it is too slow|writes to the ensemble take too long)$', re.MULTILINE)
_MARK = 'ZKLOCKFS_CASE'
_PASSING = ('zklockfs-log', 'zklockfs-keeper', 'zklockfs-mounts', 'zklockfs-probe')
_PR_SET_PDEATHSIG = 1
_CLONE_NEWNS = 0x20000
_MS_BIND, _MS_REC, _MS_PRIVATE, _MNT_DETACH = 0x1000, 0x4000, 1 << 18, 2

libc = ctypes.CDLL(None, use_errno=True)


# ---- checking and waiting ----

def check(condition, what):
    if not condition:
        raise AssertionError(what)


def check_equal(got, wanted, what):
    check(got == wanted, f'{what}: {got!r} and not {wanted!r}')


def is_in_the_call(pid):
    """Whether the process waits for an answer to a request to a FUSE filesystem. The wchan of a user-mode Linux is
    another function of the same stack."""
    with open(f'/proc/{pid}/wchan', encoding='ascii') as wchan:
        if 'request_wait_answer' in wchan.read():
            return True
    with contextlib.suppress(OSError), open(f'/proc/{pid}/stack', encoding='ascii') as stack:
        return 'request_wait_answer' in stack.read()
    return False


def has_files(pid):
    """Not so of a process that was killed. It may still exist: closing the file of a flock file waits for a daemon
    that was stopped."""
    try:
        return len(os.listdir(f'/proc/{pid}/fd')) > 0
    except OSError:
        return False


def until(condition, what, seconds=WAIT_SECONDS):
    """Wait until the condition is true, and return its value."""
    deadline = time.monotonic() + seconds
    pause = 0.001
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < deadline, f'not within {seconds} s: {what}')
        time.sleep(pause)
        pause = min(pause * 2, 0.02)


def error_name(code):
    return errno.errorcode.get(code, str(code))


def errno_of(function, *args, **kwargs):
    """The errno of a call, 0 if it succeeds. A descriptor that it returned is closed."""
    try:
        result = function(*args, **kwargs)
    except OSError as err:
        return err.errno
    if function is os.open:
        os.close(result)
    return 0


def check_errno(wanted, function, *args, **kwargs):
    got = errno_of(function, *args, **kwargs)
    check(got == wanted, f'{function.__name__}{args}: {error_name(got)} and not {error_name(wanted)}')


_FS_IOC_GETFLAGS, _FS_IOC_SETFLAGS, _FS_IMMUTABLE_FL = 0x80086601, 0x40086602, 0x10


def set_immutable(path, on):
    """As chattr(1) does; returns whether it was."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        flags = bytearray(8)
        fcntl.ioctl(fd, _FS_IOC_GETFLAGS, flags)
        was = bool(flags[0] & _FS_IMMUTABLE_FL)
        if was != on:
            flags[0] ^= _FS_IMMUTABLE_FL
            fcntl.ioctl(fd, _FS_IOC_SETFLAGS, bytes(flags))
        return was
    finally:
        os.close(fd)


def as_user(uid, function, *args, groups=()):
    """The errno of a call made by user uid, whose own group has the same number."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups(groups)
            os.setgid(uid)
            os.setuid(uid)
            os._exit(errno_of(function, *args))
        finally:
            os._exit(255)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    check(0 <= status < 255, f'{function.__name__}{args} as user {uid}: the process ended with {status}')
    return status


def check_user(wanted, uid, function, *args, groups=()):
    got = as_user(uid, function, *args, groups=groups)
    check(got == wanted, f'user {uid}: {function.__name__}{args}: '
          f'{error_name(got)} and not {error_name(wanted)}')


def is_ready(point, uid):
    """Whether that user's mount is there and in contact."""
    def look():
        with open(point + '/.zklockfs/status', encoding='utf-8') as status:
            if 'state: ready\n' not in status.read():
                raise OSError(errno.EAGAIN, point)
    return as_user(uid, look) == 0


def raw_open(path, flags):
    """open(2) itself: os.open() calls it again after EINTR."""
    fd = libc.open(os.fsencode(path), flags | os.O_CLOEXEC, 0o666)
    if fd < 0:
        raise OSError(ctypes.get_errno(), 'open', path)
    return fd


def pressed_seconds():
    """How long any process of the machine was ready to run, or waited for a disk, and did not, and how
    long the machine's host let none of it run, so far. None: the kernel does not tell."""
    total = 0
    with contextlib.suppress(OSError):
        for of in ('cpu', 'io'):
            with open('/proc/pressure/' + of, encoding='ascii') as file:
                total += int(re.search(r'^some .*total=(\d+)', file.read(), re.MULTILINE)[1]) / 1e6
        with open('/proc/stat', encoding='ascii') as file:
            return total + int(file.readline().split()[8]) / os.sysconf('SC_CLK_TCK')
    return None


class Stopwatch:
    """Nothing may be done too early. Too late is what takes longer than `most` on a machine at rest:
    time in which processes of this machine waited for a processor or a disk does not count.
    Where the kernel does not tell that time, the limit is LATE_FACTOR times as long."""

    def __init__(self):
        self.start, self.pressed = time.monotonic(), pressed_seconds()

    def seconds(self):
        return time.monotonic() - self.start

    def counted(self):
        took = self.seconds()
        return took / LATE_FACTOR if self.pressed is None else max(took - (pressed_seconds() - self.pressed), 0)

    def check(self, least, most, what):
        took, counted = self.seconds(), self.counted()
        print(f'{what}: {took:.3f} s, of which {counted:.3f} s count')
        check(took >= least and counted <= most, f'{what} took {took:.3f} s, not {least} to {most} s')


def patiently(function, *args):
    """Call a function that a busy server may not answer in time. Then a change may have been made,
    or not."""
    def done():
        code = errno_of(function, *args)
        tried.append(code)
        check(code in (0, *NO_ANSWER) or code == errno.EEXIST and len(tried) > 1,
              f'{function.__name__}{args}: {error_name(code)}')
        return code not in NO_ANSWER
    tried = []
    until(done, f'{function.__name__}{args}')


def keep_nothing():
    os.environ['ASAN_OPTIONS'] = ':'.join((os.environ.get('ASAN_OPTIONS', ''), 'quarantine_size_mb=0',
                                           'thread_local_quarantine_size_kb=0'))


# ---- processes ----

def die_with_parent():
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


_alive = None   # a pipe: the janitor waits until all processes have closed this end


def let_janitor_go():
    """For a forked process: the janitor does not wait for the end of this process."""
    global _alive
    if _alive is not None:
        os.close(_alive)
        _alive = None


def _before_exec():
    die_with_parent()
    # Signals that nohup or a background shell ignores would be ignored in this program, too.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)


def spawn(args, prompt=0, **options):
    """Start a process that does not outlive the test, with Popen's options. `prompt`: it is to get a
    processor before the others of a busy machine, more so if the number is higher. So servers and
    mounts keep their times there: only what a test slows down is slow. See _before_others()."""
    def before_exec():
        _before_exec()
        if prompt:
            with contextlib.suppress(PermissionError):
                os.nice(-prompt)
    process = subprocess.Popen(args, preexec_fn=before_exec, **options)
    if LATE == 'test':
        time.sleep(0.2)
    return process


def command(args, seconds=2 * WAIT_SECONDS, **options):
    """Run a command to its end. Returns its status, stdout and stderr as text."""
    with spawn(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
               text=True, **options) as process:
        try:
            out, err = process.communicate(timeout=seconds)
        except BaseException:
            process.kill()
            raise
        return process.returncode, out, err


_REFUSED = """
import ctypes, os, struct, sys
error, calls = int(sys.argv[1]), [int(call) for call in sys.argv[2].split(',')]
code = [(0x20, 0, 0, 0)]                                    # load the number of the call
for left, call in zip(range(len(calls), 0, -1), calls):
    code.append((0x15, left, 0, call))                      # is it this one: to the last line
code += [(0x06, 0, 0, 0x7fff0000), (0x06, 0, 0, 0x50000 | error)]
filter = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *line) for line in code))
if ctypes.CDLL(None).prctl(22, 2, struct.pack('HP', len(code), ctypes.addressof(filter))) == 0:
    os.execvp(sys.argv[3], sys.argv[3:])
"""

# System calls that are newer than some filters and kernels, by their numbers.
_X86 = platform.machine() == 'x86_64'
CALLS = {
    'epoll_create1': 291 if _X86 else 20, 'getrandom': 318 if _X86 else 278,
    'close_range': 436, 'openat2': 437, 'pidfd_open': 434, 'pidfd_send_signal': 424,
    'prctl': 157 if _X86 else 167, 'pipe2': 293 if _X86 else 59, 'fcntl': 72 if _X86 else 25,
    'kill': 62 if _X86 else 129, 'memfd_create': 319 if _X86 else 279, 'statx': 332 if _X86 else 291,
    'timerfd_create': 283 if _X86 else 85, 'timerfd_settime': 286 if _X86 else 86, 'sendto': 44 if _X86 else 206,
    'signalfd4': 289 if _X86 else 74, 'ppoll': 271 if _X86 else 73,
}


def refused(args, calls, error=errno.EPERM):
    """The same command where these system calls fail with that errno, as by the filter of an old container engine."""
    return [sys.executable, '-c', _REFUSED, str(error), ','.join(str(CALLS[call]) for call in calls), *args]


def _refused(args):
    error, _, calls = (REFUSED or '').partition(':')
    return refused(args, calls.split(','), getattr(errno, error)) if REFUSED else args


def without_pidfd(args):
    return refused(args, ['pidfd_open'])


def besides_usual(result):
    """What command() returns, without what a mount says on stderr that begins as it should."""
    status, out, err = result
    return status, out, ''.join(line for line in err.splitlines(True) if not _USUAL.search(line))


def write_program(path, text):
    """Put a script in the place of the file. A process that runs the old file goes on with it."""
    with open(path + '.new', 'w', encoding='utf-8') as file:
        file.write(f'#!/bin/sh\n{text}\n')
    os.chmod(path + '.new', 0o755)
    os.rename(path + '.new', path)


def go_build(case, program, *sources):
    """Debian 13's Go compiles its whole library into a new cache, which takes half a minute of
    processor time. So all tests share one cache, and wait for each other."""
    cache = os.environ.get('GOCACHE') or case.directory + '/go-cache'
    os.makedirs(cache, exist_ok=True)
    with open(cache + '.lock', 'w', encoding='ascii') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        status, out, err = command(['go', 'build', '-o', program, *sources], seconds=CASE_SECONDS, env={
            **os.environ, 'GO111MODULE': 'off', 'GOPATH': '/usr/share/gocode', 'GOFLAGS': '', 'GOCACHE': cache})
    check(status == 0, f'go build ended with {status}: {out}{err}')


def shells():
    return [[name] for name in ('bash', 'dash') if shutil.which(name)] + \
           [['busybox', 'sh'] for name in ('busybox',) if shutil.which(name)]


def mounted(path):
    """The mountinfo line of a mount point, or None."""
    with open('/proc/self/mountinfo', encoding='utf-8', errors='replace') as lines:
        return next((line for line in lines if line.split()[4] == path), None)


class Taker:
    """A process of its own that opens one lock file and then does what it is told."""

    def __init__(self, path, flags, uid):
        self.path = path
        self.status = None
        self.conn, theirs = multiprocessing.Pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._child(theirs, flags, uid)
            finally:
                os._exit(1)
        theirs.close()
        self.conn.recv()
        if LATE == 'test':
            time.sleep(0.3)

    def _child(self, conn, flags, uid):
        signal.alarm(0)
        for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGUSR1, lambda *_: None)   # a handler, for EINTR
        # This closes above all the lock files that the test itself holds.
        os.closerange(3, conn.fileno())
        os.closerange(conn.fileno() + 1, 65536)
        if uid:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
        die_with_parent()
        conn.send('started')
        if LATE == 'takers':
            time.sleep(random.uniform(0, 1))
        self._serve(conn, flags)

    @staticmethod
    def _obey(function, *args):
        try:
            result = function(*args)
            return 0, result, time.monotonic()
        except OSError as err:
            return err.errno, None, time.monotonic()

    def _open(self, flags):
        return raw_open(self.path, flags)

    def _serve(self, conn, flags):
        reply = self._obey(self._open, flags)
        fd = reply[1]
        while True:
            conn.send(reply)
            name, args = conn.recv()
            reply = self._obey(getattr(os, name), fd, *args)

    def answered(self, seconds=0):
        return self.conn.poll(seconds)

    def _answer(self, seconds=WAIT_SECONDS):
        check(self.conn.poll(seconds), f'taker {self.pid} of {self.path}: no answer in {seconds} s')
        return self.conn.recv()

    def answer(self, seconds=WAIT_SECONDS):
        """0 or an errno; self.when is the time of the answer."""
        code, _, self.when = self._answer(seconds)
        return code

    def held(self, seconds=WAIT_SECONDS):
        """Check that the taker got the lock."""
        code = self.answer(seconds)
        check(code == 0, f'open {self.path}: {error_name(code)}')
        return self

    def refused(self, wanted, seconds=WAIT_SECONDS):
        code = self.answer(seconds)
        check(code == wanted, f'open {self.path}: {error_name(code)} and not {error_name(wanted)}')

    def do(self, name, *args):
        """os.NAME(fd, ...) in the taker's process."""
        self.conn.send((name, args))
        code, result, _ = self._answer()
        if code:
            raise OSError(code, name)
        return result

    def token(self):
        return int(self.do('pread', 64, 0))

    def release(self):
        self.do('close')

    def kill(self, number=signal.SIGKILL):
        os.kill(self.pid, number)

    def ended(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = status
        return self.status is not None

    def state(self):
        """For the story of a test that failed."""
        with contextlib.suppress(OSError, EOFError):
            if self.ended():
                return f'ended with {self.status:#x}'
            if self.answered():
                return 'answered ' + error_name(self.conn.recv()[0])
            with open(f'/proc/{self.pid}/wchan', encoding='ascii') as wchan:
                return 'waits in ' + wchan.read()
        return 'unknown'

    def gone(self, seconds=WAIT_SECONDS):
        until(self.ended, f'taker {self.pid} of {self.path} ends', seconds)


class Successor(Taker):
    """One that has to get the lock after the end of these processes: it looks for them itself, as the test may come
    late. Its open gives ENOTUNIQ if one of them still has a file open then."""

    def __init__(self, mount, lock, pids):
        self.former = pids
        super().__init__(mount.path(lock, 'lock'), os.O_RDWR, 0)
        mount.case.takers.append(self)

    def _open(self, flags):
        fd = super()._open(flags)
        if any(map(has_files, self.former)):
            raise OSError(errno.ENOTUNIQ, 'open', self.path)
        return fd


# ---- servers ----

def zookeeper(config, *options, jars=ZOOKEEPER_JARS):
    """The command of a ZooKeeper server that asks little of the machine, with more options of its JVM."""
    return ['java', '-Xmx256m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Xshare:auto', *ZOOKEEPER_JVM,
            '-XX:-UsePerfData', '-Dzookeeper.forceSync=no', '-Dzookeeper.preAllocSize=1024',
            '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn', *options, '-cp', jars,
            'org.apache.zookeeper.server.quorum.QuorumPeerMain', config]


class Server:
    """One ZooKeeper server. Its data outlives stop() and start()."""

    jars = ZOOKEEPER_JARS

    def __init__(self, case, tick_ms, properties, config):
        self.case = case
        self.config = config            # more lines of zoo.cfg, which count more than the first ones
        self.tick_ms = tick_ms
        self.properties = list(properties)
        self.session_ms = rawzk.SESSION_MS   # of the longest session
        self.credentials = None         # of self.zk
        self.directory = tempfile.mkdtemp(prefix='server', dir=case.directory)
        self.process = None
        self.raw = None
        for _ in range(20):
            if self.find_port() and self._started():
                return
        raise AssertionError('no ZooKeeper server: ' + self.log())

    def find_port(self):
        """Choose another port, and tell whether it is free."""
        # Below the range that outgoing connections take their ports from.
        self.port = random.randrange(15000, 31000)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            return errno_of(probe.bind, ('127.0.0.1', self.port)) == 0

    def log(self):
        with open(self.directory + '/log', encoding='utf-8', errors='replace') as log:
            return log.read()

    def listens(self):
        """The lines of zoo.cfg about the port."""
        return f'clientPort={self.port}\nclientPortAddress=127.0.0.1\n'

    def _started(self):
        with open(self.directory + '/zoo.cfg', 'w', encoding='utf-8') as config:
            config.write(f'tickTime={self.tick_ms}\ndataDir={self.directory}/data\n{self.listens()}'
                         f'maxSessionTimeout={self.session_ms}\nmaxClientCnxns=0\n'
                         f'4lw.commands.whitelist=*\nadmin.enableServer=false\n{self.config}\n')
        with open(self.directory + '/log', 'a', encoding='utf-8') as log:
            self.process = spawn(
                zookeeper(self.directory + '/zoo.cfg', *('-Dzookeeper.' + name for name in self.properties),
                          jars=self.jars),
                prompt=15, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def answers():
            # A connection that came too early may never be answered: ask again soon.
            with contextlib.suppress(OSError):
                answer = self.ask('srvr', 0.3 * SLOWNESS)
                return 'Mode:' in answer or 'not in the whitelist' in answer
            return self.process.poll() is not None
        until(answers, 'the ZooKeeper server starts', 60 * SLOWNESS)
        return self.process.poll() is None

    def runs(self):
        return self.process.poll() is None

    def start(self, properties=()):
        """Start again, with Java properties such as `enforce.auth.enabled=true`."""
        self.properties = list(properties)
        check(self._started(), 'the ZooKeeper server did not start again: ' + self.log())

    def stop(self):
        self.raw = None
        self.process.kill()
        self.process.wait()

    def freeze(self):
        os.kill(self.process.pid, signal.SIGSTOP)
        until(lambda: _stands_still(self.process.pid), 'the server stands still')

    def thaw(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def ask(self, word, timeout=60):
        return rawzk.four_letters(self.port, word, timeout)

    def client(self, credentials=None):
        """A client with a session of its own, which ends with the case."""
        client = rawzk.Client(self.port, credentials)
        self.case.cleanups.callback(client.close)
        return client

    @property
    def zk(self):
        if self.raw is None:
            self.raw = self.client(self.credentials)
        return self.raw

    def entries(self, lock, root='/locks'):
        """The numbered children of a lock, in the order of their numbers."""
        names = [name for name in self.zk.children(f'{root}/{lock}') if re.search(r'\d{10}$', name)]
        return sorted(names, key=lambda name: name[-10:])

    def tree(self, path):
        """All nodes from this one downwards."""
        return [path] + [node for name in sorted(self.zk.children(path)) for node in self.tree(f'{path}/{name}')]

    def connections(self):
        """Session id -> the server's counters of its connection."""
        found = {}
        for line in self.ask('cons').splitlines():
            values = dict(re.findall(r'(\w+)=(\w+)', line))
            if 'sid' in values:
                found[int(values['sid'], 16)] = values
        return found

    def watches(self, session):
        """The paths that a session watches."""
        found, current = [], None
        for line in self.ask('wchc').splitlines():
            if line.startswith('0x'):
                current = int(line, 16)
            elif line.strip() and current == session:
                found.append(line.strip())
        return found

    def metric(self, name):
        return int(re.search(rf'^{name}\t(\d+)', self.ask('mntr'), re.MULTILINE).group(1))


class LentServer(Server):
    """A server that somebody else has started, and ends, so that many cases in turn need no time for
    one of their own. It cannot be stopped. What the case before has left there goes first."""

    def __init__(self, case, port):
        self.case, self.port, self.tick_ms = case, port, LENT_TICK_MS
        self.credentials = self.raw = None
        for name in set(self.zk.children('/')) - {'zookeeper'}:
            for node in reversed(self.tree('/' + name)):
                self.zk.delete(node)

    def runs(self):
        return True

    def log(self):
        return ''


def _stands_still(pid):
    """Whether every thread is stopped: some may go on for a moment."""
    for task in os.listdir(f'/proc/{pid}/task'):
        with contextlib.suppress(OSError), open(f'/proc/{pid}/task/{task}/status', encoding='utf-8') as status:
            if '\nState:\tT' not in status.read():
                return False
    return True


class Relay:
    """A path to a server. It can be frozen: then the link hangs, and refuses nothing. Whatever goes through it takes
    `delay` seconds."""

    def __init__(self, case, server, address, port, delay):
        family = socket.AF_INET6 if ':' in address else socket.AF_INET
        listener = socket.create_server((address, port), family=family)
        self.port = listener.getsockname()[1]
        self.tick_ms = server.tick_ms
        self.pid = os.fork()
        if self.pid == 0:
            try:
                die_with_parent()
                signal.alarm(0)
                self._forward(listener, server.port, delay)
            finally:
                os._exit(1)
        listener.close()
        case.cleanups.callback(self.end)

    @staticmethod
    def _forward(listener, port, delay):
        import selectors
        selector = selectors.DefaultSelector()
        selector.register(listener, selectors.EVENT_READ)
        late = collections.deque()   # (when it goes on, from, to, what; nothing: the end)
        while True:
            for key, _ in selector.select(max(0, late[0][0] - time.monotonic()) if late else None):
                if key.fileobj is listener:
                    near = listener.accept()[0]
                    far = socket.create_connection(('127.0.0.1', port))
                    selector.register(near, selectors.EVENT_READ, far)
                    selector.register(far, selectors.EVENT_READ, near)
                    continue
                data = b''
                with contextlib.suppress(OSError):
                    data = key.fileobj.recv(65536)
                if not data:
                    selector.unregister(key.fileobj)
                late.append((time.monotonic() + delay, key.fileobj, key.data, data))
            while late and late[0][0] <= time.monotonic():
                _, source, target, data = late.popleft()
                with contextlib.suppress(OSError):   # its end is read, too
                    if data:
                        target.sendall(data)
                        continue
                for conn in (source, target):
                    if conn.fileno() >= 0 and conn in selector.get_map():
                        selector.unregister(conn)
                    conn.close()

    def freeze(self):
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self):
        os.kill(self.pid, signal.SIGCONT)

    def end(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0


# ---- mounts ----

class Mount:
    def __init__(self, case, server, host, session, servers, root, options, mode, program, env, tick):
        self.case = case
        self.server = server
        self.host = host
        self.root = root
        self.directory = tempfile.mkdtemp(prefix='mount', dir=case.directory)
        self.log_path = self.directory + '.log'
        # Long turns count only at full speed and with the clocks of the machine.
        self.watched = 'ZKLOCKFS_UNDER_VALGRIND' not in os.environ
        self.allowed = None
        self.checked = False
        self.crashes = []
        if CRASHES:
            session = '6s' if 'on_lost=term' in options else '4s'
        self.session_seconds = int(session.rstrip('s')) if session.endswith('s') else 0
        ticks = [f'tick_time={tick}'] if tick else []
        # A busy server may not answer the first connection in time.
        every = [f'session_timeout={session}', *ticks, f'retry={int(WAIT_SECONDS)}s', f'host={host}'] + OPTIONS
        self.kept = NO_KEEPER not in every + list(options)
        with open(self.log_path, 'w', encoding='utf-8') as log:
            self.process = spawn(_refused([program, mode, '-o', ','.join(every + list(options)),
                                           servers + root, self.directory]),
                                 prompt=10, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                 env={**os.environ, **env})
        until(lambda: mounted(self.directory) or self.process.poll() is not None, 'the mount appears')
        check(self.process.poll() is None, f'zklockfs ended with {self.process.poll()}: {self.log()}')
        self.ready()

    def path(self, *parts):
        return os.path.join(self.directory, *parts)

    def mkdir(self, lock, mode=0o777):
        patiently(os.mkdir, self.path(lock), mode)

    def take(self, lock, lock_file='lock', flags=os.O_RDWR, uid=0):
        taker = Taker(self.path(lock, lock_file), flags, uid)
        self.case.takers.append(taker)
        return taker

    def locks(self):
        return sorted(name for name in os.listdir(self.directory) if name != '.zklockfs')

    def queue(self, lock):
        return sorted(os.listdir(self.path(lock, 'queue')))

    def read(self, *parts):
        with open(self.path(*parts), encoding='utf-8', errors='replace') as file:
            return file.read()

    def fields(self, *parts):
        """A file of `key: value` lines."""
        return dict(line.split(': ', 1) for line in self.read(*parts).splitlines() if ': ' in line)

    def status(self):
        return self.fields('.zklockfs', 'status')

    def ready(self):
        until(lambda: self.status().get('state') == 'ready', 'the mount is ready')

    def session(self):
        return int(self.status()['session'], 16)

    @property
    def daemon(self):
        """The pid of the daemon: the process started here, or with a supervisor its child."""
        if not self.kept:
            return self.process.pid
        with open(f'/proc/{self.process.pid}/task/{self.process.pid}/children', encoding='ascii') as children:
            return next((int(pid) for pid in children.read().split() if _name(pid) not in (None, 'zklockfs-keeper')), 0)

    @property
    def guardian(self):
        """The pid of the guardian, a child of the daemon; None: there is none."""
        with open(f'/proc/{self.daemon}/task/{self.daemon}/children', encoding='ascii') as children:
            return next((int(pid) for pid in children.read().split() if _name(pid) == 'zklockfs-guard'), None)

    def send(self, number):
        """A signal to the daemon itself."""
        os.kill(self.daemon, number)

    def crash(self):
        """Kill the daemon, and its supervisor first. check_end() then checks nothing."""
        daemon = self.daemon
        self.process.kill()
        self.process.wait()
        if self.kept:
            os.kill(daemon, signal.SIGKILL)
            until(lambda: state_of(daemon) in (None, 'Z'), 'the daemon is dead')
        self.checked = True

    def process_status(self, key):
        with open(f'/proc/{self.daemon}/status', encoding='ascii') as lines:
            return next(line.split(':')[1].strip() for line in lines if line.startswith(key + ':'))

    def metric(self, name):
        return float(re.search(rf'^zklockfs_{name}{{[^}}]*}} (.*)$', self.read('.zklockfs', 'metrics'),
                               re.MULTILINE).group(1))

    def reload(self):
        """Have another program, or the same one again, take over, and wait for it."""
        if CRASHES:
            self.rest()
            self.adopt()
            return
        before, refused, asked = self.metric('reloads_total'), len(_TOO_BUSY.findall(self.log())), 0

        def taken_over():
            nonlocal asked
            if self.metric('reloads_total') > before:
                return True
            # A busy machine refuses it, and it may be asked for again.
            if len(_TOO_BUSY.findall(self.log())) - refused == asked:
                os.kill(self.process.pid, signal.SIGUSR2)
                asked += 1
            return False
        until(taken_over, 'another program takes over')

    def rest(self, crashes=1):
        """Wait until so many more crashes do not come too soon after the last ones."""
        def rested():
            self.crashes = [at for at in self.crashes if time.monotonic() - at < self.session_seconds + 0.1]
            return len(self.crashes) + crashes <= CRASHES_MAX
        until(rested, 'it may crash again')

    def adopt(self, number=signal.SIGKILL):
        """Kill the daemon, and wait until another one goes on."""
        self.allow_more('was ended by signal')
        before, daemon = self.metric('adoptions_total'), self.daemon
        os.kill(daemon, number)
        until(lambda: self.metric('adoptions_total') > before, 'another daemon goes on')
        self.crashes.append(time.monotonic())   # later than the supervisor saw it

    def resident(self):
        """Resident bytes of the daemon. The sanitizer must not keep freed memory: such a test
        calls keep_nothing() before the mount."""
        return int(self.process_status('VmRSS').split()[0]) * 1024

    def allow(self, pattern):
        """Log lines that match the pattern are no reason to fail."""
        self.allowed = re.compile(pattern, re.IGNORECASE)

    def allow_more(self, pattern):
        self.allow(f'{self.allowed.pattern}|{pattern}' if self.allowed else pattern)

    def log(self):
        with open(self.log_path, encoding='utf-8', errors='replace') as log:
            return log.read()

    def said(self, text, times=None):
        """Wait until the log has this text, which another process writes later; so often and no more."""
        until(lambda: self.log().count(text) >= (times or 1), f'{text!r} in the log:\n{self.log()}')
        check(times in (None, self.log().count(text)), f'{text!r} more than {times} times in the log:\n{self.log()}')

    def unmount(self):
        # A process that was killed, and is nobody's child here, may still be about to end.
        def unmounted():
            status, _, err = command(['fusermount3', '-u', self.directory])
            check(status == 0 or 'busy' in err, f'fusermount3 -u {self.host}: {err}')
            return status == 0
        until(unmounted, f'fusermount3 -u {self.host}')
        self.check_end()

    def check_end(self, seconds=WAIT_SECONDS, status=0):
        """Check that the daemon ends with this status, and that its log shows no trouble."""
        if self.checked:
            return
        self.checked = True
        until(lambda: self.process.poll() is not None, f'the daemon of {self.host} ends', seconds)
        check_equal(self.process.returncode, status, f'exit status of the daemon of {self.host}')
        trouble = [line for line in self.log().splitlines() if _TROUBLE.search(line)
                   and not _OF_ITSELF.match(line)
                   and not (self.allowed and self.allowed.search(line))]
        check(not trouble, 'the daemon said:\n' + '\n'.join(trouble))
        turns = [line for line in self.log().splitlines() if 'watchdog:' in line]
        check(not turns or not self.watched,
              '\n'.join(['a turn of the loop took too long:'] + turns + ['all of its log:', self.log()]))
        check(mounted(self.directory) is None, f'{self.host} is still mounted')


class Systemd:
    """What hears sd_notify(3)."""

    def __init__(self, case):
        self.path = case.directory + '/notify'
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.setblocking(False)
        self.said = []

    def listen(self):
        try:
            while True:
                self.said.append(self.socket.recv(4096).decode())
        except BlockingIOError:
            return self.said

    def status(self):
        return next((text.removeprefix('STATUS=').rstrip('\n') for text in reversed(self.listen())
                     if text.startswith('STATUS=')), '')

    def until_status(self, pattern):
        return until(lambda: re.fullmatch(pattern, self.status()), pattern)


# ---- the case ----

class Case:
    def __init__(self, directory):
        self.directory = directory
        self.servers, self.mounts, self.takers = [], [], []
        self.cleanups = contextlib.ExitStack()

    def server(self, tick_ms=500 if CRASHES else 2000, properties=(), config=''):
        lent = LENT in os.environ and not self.servers and not properties and not config
        self.servers.append(LentServer(self, int(os.environ[LENT])) if lent else
                            Server(self, tick_ms, properties, config))
        return self.servers[-1]

    def mount(self, server, host='a', session='15s', servers=None, root='/locks', options=(),
              mode='-f', program=None, env=None, tick=None):
        servers = servers or f'127.0.0.1:{server.port}'
        self.mounts.append(Mount(self, server, host, session, servers, root, options, mode,
                                 program or ZKLOCKFS, env or {},
                                 f'{server.tick_ms}ms' if tick is None else tick))
        return self.mounts[-1]

    def relay(self, server, address='127.0.0.1', port=0, delay=0):
        return Relay(self, server, address, port, delay)

    def library(self, name):
        """Of that name.c here, to be preloaded into a daemon."""
        library = f'{self.directory}/{name}.so'
        status, _, err = command([*CC, '-shared', '-fPIC', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-Werror',
                                  '-o', library, f'{SOURCE_ROOT}/tests/mount/{name}.c'])
        check_equal((status, err), (0, ''), 'cc')
        return library

    def preloaded(self, name):
        """The environment of a daemon with that library."""
        return {'LD_PRELOAD': self.library(name),
                'ASAN_OPTIONS': os.environ.get('ASAN_OPTIONS', '') + ':verify_asan_link_order=0'}

    def hosts(self, text, name_server=None):
        """Give the test an /etc/hosts of its own, and no other name service than name_server."""
        self.instead('/etc/hosts', '127.0.0.1 localhost\n' + text)
        self.instead('/etc/nsswitch.conf', 'passwd: files\ngroup: files\nhosts: files'
                      + (' dns\n' if name_server else '\n'))
        if name_server:
            self.instead('/etc/resolv.conf', f'nameserver {name_server}\noptions timeout:30 attempts:1\n')

    def users(self):
        """Give ALICE a name, which fusermount3 needs."""
        self.instead('/etc/passwd', f'root:x:0:0::/root:/bin/sh\nalice:x:{ALICE}:{ALICE}::/:/bin/sh\n')

    def fuse_for_all(self):
        """Users may mount by fusermount3: a /dev/fuse as udev makes it, in the test's own mount namespace."""
        device = self.directory + '/fuse'
        os.mknod(device, stat.S_IFCHR, os.stat('/dev/fuse').st_rdev)
        os.chmod(device, 0o666)
        os.chmod(self.directory, 0o711)
        check(libc.mount(device.encode(), b'/dev/fuse', None, _MS_BIND, None) == 0, 'another /dev/fuse')
        self.users()

    def instead(self, path, text):
        mine = os.path.join(self.directory, os.path.basename(path))
        first = not os.path.exists(mine)
        with open(mine, 'w', encoding='ascii') as file:
            file.write(text)
        if first:
            check(libc.mount(mine.encode(), path.encode(), None, _MS_BIND, None) == 0, f'another {path}')

    def mount_point(self):
        return tempfile.mkdtemp(prefix='mount', dir=self.directory)

    def daemons(self):
        """The pids of all zklockfs processes of this case, except those that end by themselves."""
        return [pid for pid in _marked(self.directory)
                if _executable(pid) == os.path.realpath(EMULATOR or ZKLOCKFS) and _name(pid) not in _PASSING]

    def _drop_takers(self):
        for taker in self.takers:
            with contextlib.suppress(OSError):
                if not taker.ended():
                    taker.kill()
        for taker in self.takers:
            taker.gone()
        for name in os.listdir('/proc/self/fd'):
            with contextlib.suppress(OSError):
                if os.readlink('/proc/self/fd/' + name).startswith(self.directory + '/mount'):
                    os.close(int(name))

    def at_once(self, *parts):
        """Run parts of the test, part(case), at the same time: each in a process of its own, with
        mounts and takers of its own, which come off there. The servers are shared. A slow
        machine runs them one after the other."""
        sys.stdout.flush()
        started = (self._start_part(part) for part in parts)
        statuses = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                    for pid in (started if SLOWNESS > 1 else list(started))]
        check(not any(statuses), f'parts of the test failed: {statuses}')

    def _start_part(self, part):
        pid = os.fork()
        if pid:
            return pid
        status = 1
        try:
            die_with_parent()
            signal.alarm(0)
            self.mounts, self.takers, self.cleanups = [], [], contextlib.ExitStack()
            for server in self.servers:
                server.raw = None
            with self.cleanups:
                part(self)
                self._all_off()
            status = 0
        except BaseException:
            traceback.print_exc()
            self.story()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def _all_off(self):
        self._drop_takers()
        for mount in self.mounts:
            if not mount.checked:
                # A mount that goes before it hears of the last close looks through /proc in a
                # limited time, which valgrind may not keep.
                if 'ZKLOCKFS_UNDER_VALGRIND' in os.environ:
                    until(lambda mount=mount: mount.status()['holders'] == '0', 'the mount hears of the last close')
                mount.unmount()

    def finish(self):
        """The end of a test that has passed so far: all must come off cleanly."""
        self._all_off()
        closed = Stopwatch()
        for server in self.servers:
            # The server reads the end of a session after the daemon has ended.
            while server.runs() and (left := list(self._entries(server, '/locks'))):
                check(closed.counted() < 1, f'left behind: {left}')
                time.sleep(0.01)

    def _entries(self, server, path):
        for name in server.zk.children(path) if server.zk.exists(path) else ():
            stat = server.zk.exists(f'{path}/{name}')
            if stat and not stat.ephemeral_owner:
                yield from self._entries(server, f'{path}/{name}')
            elif stat and re.search(r'_c_.*\.\d+[a-z_-]+\d{10}$', name, re.IGNORECASE):
                yield f'{path}/{name}'

    def story(self):
        for taker in self.takers:
            print(f'---- taker {taker.pid} of {taker.path}: {taker.state()}', file=sys.stderr)
        for server in self.servers:
            with contextlib.suppress(Exception):
                print('---- nodes:', *server.tree('/locks'), sep='\n', file=sys.stderr)
        for mount in self.mounts:
            print(f'---- daemon of {mount.host}, status {mount.process.poll()}:\n{mount.log()}',
                  file=sys.stderr)
            # A mount that hangs must not end the story.
            status = spawn(['cat', mount.path('.zklockfs', 'status')], stdout=sys.stderr, stderr=sys.stderr)
            with contextlib.suppress(subprocess.TimeoutExpired):
                status.wait(2)


def state_of(pid):
    """The letter, as in ps(1); None: there is no such process."""
    with contextlib.suppress(OSError), open(f'/proc/{pid}/status', encoding='utf-8', errors='replace') as status:
        return re.search(r'^State:\t(\S)', status.read(), re.MULTILINE).group(1)
    return None


def _executable(pid):
    with contextlib.suppress(OSError):
        return os.readlink(f'/proc/{pid}/exe')
    return None


def _name(pid):
    with contextlib.suppress(OSError), open(f'/proc/{pid}/comm', encoding='utf-8', errors='replace') as comm:
        return comm.read().rstrip('\n')
    return None


def _marked(directory):
    """All processes that were started with this case's directory as their mark."""
    mark = f'{_MARK}={directory}'.encode()
    found = []
    for name in os.listdir('/proc'):
        with contextlib.suppress(OSError):
            if name.isdigit():
                with open(f'/proc/{name}/environ', 'rb') as environ:
                    if mark in environ.read().split(b'\0'):
                        found.append(int(name))
    return found


def _clean_up(directory):
    deadline = time.monotonic() + 20
    while os.path.exists(directory) and time.monotonic() < deadline:
        pids = _marked(directory)
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not pids:
            for above, names, _ in os.walk(directory):
                for name in names:
                    with contextlib.suppress(OSError):
                        set_immutable(os.path.join(above, name), False)
            shutil.rmtree(directory, ignore_errors=True)
        time.sleep(0.01)


def _start_janitor(directory):
    """Fork the process that cleans up when this one has ended, in any way."""
    end, ours = os.pipe()
    pid = os.fork()
    if pid:
        os.close(end)
        return pid, ours
    os.setsid()
    os.close(ours)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        os.read(end, 1)
        _clean_up(directory)
    finally:
        os._exit(0)


def _own_namespace():
    """A mount lives until the last namespace that has a copy of it is gone. So keep our mounts
    out of the namespaces of other tests, and their mounts out of this one."""
    check(libc.unshare(_CLONE_NEWNS) == 0, 'unshare: ' + os.strerror(ctypes.get_errno()))
    check(libc.mount(None, b'/', None, _MS_REC | _MS_PRIVATE, None) == 0, 'a private tree')
    with open('/proc/self/mountinfo', encoding='utf-8', errors='replace') as lines:
        foreign = [line.split()[4] for line in lines if ' - fuse.zklockfs ' in line]
    for path in foreign:
        libc.umount2(os.fsencode(path), _MNT_DETACH)


def _before_others():
    """Where the kernel shares the processors among sessions (sched(7), autogroup), nice(2) has an effect
    within one alone: so the session of this test comes before those of others. Meson makes one for
    each test."""
    if os.getsid(0) == os.getpid():
        with contextlib.suppress(OSError), open('/proc/self/autogroup', 'w', encoding='ascii') as group:
            group.write('-10')


def _too_late(*_):
    raise TimeoutError(f'the test ran for more than {CASE_SECONDS} s')


def _stop(*_):
    raise SystemExit('stopped by a signal')


def run(test):
    """Run test(case) and exit: 0, or 1 with the story on stderr."""
    global _alive
    base = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
    directory = os.path.realpath(tempfile.mkdtemp(prefix='zklockfs-', dir=base))
    os.chmod(directory, 0o755)
    os.environ[_MARK] = directory
    janitor, _alive = _start_janitor(directory)
    _before_others()
    _own_namespace()
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGALRM, _too_late)
    signal.alarm(CASE_SECONDS)
    case = Case(directory)
    status = 1
    try:
        with case.cleanups:
            test(case)
            case.finish()
        status = 0
    except BaseException:
        traceback.print_exc()
        case.story()
    signal.alarm(0)
    sys.stdout.flush()
    os.close(_alive)
    os.waitpid(janitor, 0)
    os._exit(status)
