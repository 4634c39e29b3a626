#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The libraries of zklockfs-idioms(7), each on the `flock` of a lock. Those that work keep others
out on both mounts, and wait as the page says: in the queue, or by trying again. The others fail,
and none of them believes that it has the lock. And what a scanner does to a mount that it watches, and
what becomes of a lock by mkdir(1) or by noclobber."""

import contextlib
import ctypes
import errno
import os
import re
import shutil
import struct
import subprocess
import threading

from gate import check, check_equal, queued, spawn, until
from harness import errno_of, go_build, libc, run
from printed import table

DEBIAN_PYTHON = '/usr/bin/python3'     # the one that Debian's libraries are for

SHELL = ['sh', '-c']
PYTHON = [DEBIAN_PYTHON, '-c']
HOLD = 'print("held", flush=True); sys.stdin.readline()'

GO = '''package main
import ("bufio"; "fmt"; "log"; "os"; "github.com/gofrs/flock")
func main() {
	lock := flock.New(os.Args[1])
	if err := lock.Lock(); err != nil { log.Fatal(err) }
	fmt.Println("held")
	bufio.NewReader(os.Stdin).ReadString('\\n')
	lock.Unlock()
}
'''
RUST = '''fn main() {
    let path = std::env::args().nth(1).unwrap();
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    file.lock().unwrap();
    println!("held");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}
'''
JAVA = '''import java.io.*;
public class Lock {
    public static void main(String[] args) throws IOException {
        try (RandomAccessFile file = new RandomAccessFile(args[0], "rw")) {
            file.getChannel().lock();
            System.out.println("held");
            System.in.read();
        }
    }
}
'''
NODE = '''require("proper-lockfile").lock(process.argv[1])
    .then(() => { console.log("held"); process.stdin.on("data", () => process.exit(0)); })
    .catch(error => { console.error(String(error)); process.exit(1); });'''

HELD = 'sh -c "echo held; read -r _"'
# Programs that tests/run does not install.
OPTIONAL = {'chpst(8) -l': 'chpst'}

# Each takes the lock of the file that is its last argument, says so, and ends with the next line.
PROGRAMS = {
    'flock(1)': SHELL + ['exec flock "$1" sh -c "echo held; read -r _"', 'sh'],
    'setlock(8)': [*SHELL, f'exec setlock "$1" {HELD}', 'sh'],
    'chpst(8) -l': [*SHELL, f'exec chpst -l "$1" {HELD}', 'sh'],
    's6-setlock(1)': [*SHELL, f'exec s6-setlock "$1" {HELD}', 'sh'],
    'lckdo(1) -w': [*SHELL, f'exec lckdo -w "$1" {HELD}', 'sh'],
    'with-lock-ex(1)': [*SHELL, f'exec with-lock-ex -w "$1" {HELD}', 'sh'],
    'zsh: zsystem flock': ['zsh', '-fc', 'zmodload zsh/system; zsystem flock "$1" && echo held && read -r _; exit 0',
                           'zsh'],
    'Python: fcntl.flock': PYTHON + ['import fcntl, sys; f = open(sys.argv[1], "r+"); '
                                     'fcntl.flock(f, fcntl.LOCK_EX); ' + HOLD],
    'Python: fcntl.lockf': PYTHON + ['import fcntl, sys; f = open(sys.argv[1], "r+"); '
                                     'fcntl.lockf(f, fcntl.LOCK_EX); ' + HOLD],
    'Python: filelock': PYTHON + ['import filelock, sys\nwith filelock.FileLock(sys.argv[1]): ' + HOLD],
    'Python: portalocker': PYTHON + ['import portalocker, sys\n'
                                     'with portalocker.Lock(sys.argv[1], timeout=60): ' + HOLD],
    'Python: fasteners': PYTHON + ['import fasteners, sys\n'
                                   'with fasteners.InterProcessLock(sys.argv[1]): ' + HOLD],
    'Python: lockfile': PYTHON + ['import lockfile, sys\nwith lockfile.LockFile(sys.argv[1]): ' + HOLD],
    'Perl: flock': ['perl', '-e', 'use Fcntl ":flock"; $| = 1; open(F, ">>", $ARGV[0]) or die $!; '
                    'flock(F, LOCK_EX) or die $!; print "held\\n"; <STDIN>'],
    'Ruby: File#flock': ['ruby', '-e', '$stdout.sync = true; File.open(ARGV[0], File::RDWR | File::CREAT) '
                         '{ |f| f.flock(File::LOCK_EX); puts "held"; $stdin.gets }'],
    'PHP: flock': ['php', '-r', '$f = fopen($argv[1], "c+"); flock($f, LOCK_EX) or exit(1); '
                   'echo "held\\n"; fgets(STDIN);'],
    'Java: FileChannel.lock': ['java', '-XX:TieredStopAtLevel=1', '-XX:-UsePerfData', '{}/Lock.java'],
    'Go: gofrs/flock': ['{}/go-lock'],
    'Rust: File::lock': ['{}/rust-lock'],
    'Node.js: proper-lockfile': ['node', '-e', NODE],
    'dotlockfile(1)': SHELL + ['dotlockfile -r 0 -l "$1" && echo held && read -r _', 'sh'],
}


def compiled(case):
    directory = case.directory
    for name, text in (('Lock.java', JAVA), ('lock.go', GO), ('lock.rs', RUST)):
        with open(f'{directory}/{name}', 'w', encoding='utf-8') as source:
            source.write(text)
    go_build(case, directory + '/go-lock', directory + '/lock.go')
    return bool(shutil.which('rustc')) and subprocess.run(
        ['rustc', '-o', directory + '/rust-lock', directory + '/lock.rs'], check=False,
        stderr=subprocess.DEVNULL).returncode == 0    # before 1.89 there is no File::lock


@contextlib.contextmanager
def scanner(directory):
    """Watches the mount as an on-access scanner does, and allows each open."""
    fan_class_content, fan_mark_add_mount, fan_open_perm, at_fdcwd, fan_allow = 4, 0x11, 0x10000, -100, 1
    event = struct.Struct('=IBBHQii')
    fd = libc.fanotify_init(fan_class_content, os.O_RDONLY)
    check(fd >= 0, f'fanotify_init: {os.strerror(ctypes.get_errno())}')
    check(libc.fanotify_mark(fd, fan_mark_add_mount, ctypes.c_uint64(fan_open_perm), at_fdcwd,
                             directory.encode()) == 0, 'fanotify_mark')
    os.set_blocking(fd, False)
    ended = threading.Event()

    def allow():
        while not ended.wait(0.005):
            with contextlib.suppress(OSError):
                opened = event.unpack_from(os.read(fd, event.size))[5]
                os.write(fd, struct.pack('=iI', opened, fan_allow))
                os.close(opened)
    thread = threading.Thread(target=allow)
    thread.start()
    yield
    ended.set()
    thread.join()
    os.close(fd)


def is_scanned(mount):
    mount.mkdir('scanned')
    with scanner(mount.directory):
        mount.take('scanned').refused(errno.EPERM)
        mount.take('scanned', 'try').refused(errno.EPERM)
        check_equal(subprocess.call(['flock', '-n', mount.path('scanned', 'flock'), 'true']), 0, 'flock(1)')
    mount.take('scanned', 'try').held().release()


def is_made(a, b):
    """A directory is made once on all hosts, and outlives its maker; a file is never made."""
    script = 'mkdir "$1/directory" && echo held && exec sleep 1h'
    maker = spawn([*SHELL, script, 'sh', a.directory], stdout=subprocess.PIPE, text=True)
    check_equal(maker.stdout.readline(), 'held\n', 'the first mkdir')
    maker.kill()
    maker.communicate()
    for mount in (a, b):
        check_equal(errno_of(os.mkdir, mount.path('directory')), errno.EEXIST, 'mkdir after its maker was killed')
    file = a.path('directory', 'lock')
    for shell in ('bash', 'dash', 'busybox sh'):
        status = subprocess.call([*shell.split(), '-c', 'set -C; >"$1"', 'sh', file], stderr=subprocess.DEVNULL)
        check(status > 0, f'{shell}: noclobber made a lock file')
    check_equal(errno_of(os.open, file, os.O_RDWR | os.O_CREAT | os.O_EXCL), errno.EEXIST, 'O_EXCL')
    queued(b, 'directory', 0)


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    environ = {**os.environ, 'NODE_PATH': '/usr/share/nodejs'}
    has_rust = compiled(case)

    def start(name, lock):
        words = [word.replace('{}', case.directory) for word in PROGRAMS[name]]
        return spawn([*words, a.path(lock, 'flock')], env=environ, stdin=subprocess.PIPE,
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def holds(name, process, lock):
        check_equal(process.stdout.readline(), 'held\n', name)
        queued(b, lock, 1, 1)
        for mount in (a, b):
            mount.take(lock, 'try').refused(errno.EAGAIN)
        process.communicate('\n', timeout=60)
        check_equal(process.returncode, 0, f'how {name} ended')
        queued(b, lock, 0)

    def refusals():
        return int(re.search(r'^zklockfs_failures_total{.*errno="EAGAIN".*} (\d+)',
                             a.read('.zklockfs', 'metrics'), re.MULTILINE).group(1))

    def waits(name, lock, how):
        other, before = b.take(lock).held(), refusals()
        process = start(name, lock)
        if how == 'in the queue':
            queued(b, lock, 2, 1)
        else:
            until(lambda: refusals() >= before + 3, f'{name} tries again')
            queued(b, lock, 1, 1)
        other.release()
        holds(name, process, lock)

    rows = table('fs/pages/zklockfs-idioms.7.md', 'LIBRARIES')
    check_equal(sorted(name for name, _, _ in rows), sorted(PROGRAMS), 'the libraries of the page')
    for number, (name, works, how) in enumerate(rows):
        if name.startswith('Rust') and not has_rust or not shutil.which(OPTIONAL.get(name, 'sh')):
            print(f'NOT RUN: {name}')
            continue
        lock = f'lock{number}'
        a.mkdir(lock)
        process = start(name, lock)
        if works == 'yes':
            holds(name, process, lock)
            waits(name, lock, how)
        else:
            out, err = process.communicate(timeout=60)
            check(process.returncode > 0 and out == '', f'{name}: {process.returncode} {out} {err}')
        print('tried', name)
    is_scanned(a)
    is_made(a, b)


run(test)
