#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One user makes the daemon remember as much as possible: opens each kind of file very many
times, and makes up names. This shows how large the daemon gets, and how another user is served
meanwhile. A daemon that is killed for its memory may take the locks of all users with it.

    memory.py [OPENS [KIND...]]    100000 opens of each kind, a fiftieth of that for files that
                                   list a long queue; ZKLOCKFS=PATH for another daemon

Ends with 1 if the daemon has more than LIMIT, or another user was refused or waited."""

import contextlib
import errno
import os
import resource
import select
import sys
import threading
import time

os.environ.setdefault('ZKLOCKFS_CASE_SECONDS', '1800')
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + '/../mount')

from harness import ALICE, BOB, check, check_equal, die_with_parent, run  # noqa: E402

OPENS = int(sys.argv[1]) if len(sys.argv) > 1 else 100000
ENTRIES = 4500
KINDS = ('names', 'value', 'queue', 'holder', 'status', 'metrics', 'slots', 'flock')
SLOW = ('queue', 'holder')
THREADS = 50
LIMIT = 200 << 20       # bytes of the daemon, several times those that it counts
PATIENCE = 5.0          # seconds for another user's take


def open_one(mount, kind, number):
    if kind == 'names':
        os.stat(mount.path('build', f'lock@{number}ms'))
    elif kind == 'queue':
        os.listdir(os.open(mount.path('build', 'queue'), os.O_RDONLY | os.O_DIRECTORY))
    elif kind in ('status', 'metrics'):
        os.open(mount.path('.zklockfs', kind), os.O_RDONLY)
    else:
        os.open(mount.path('build', kind), os.O_RDWR if kind == 'flock' else os.O_RDONLY)


def as_alice(mount, kind, numbers):
    """Open files, or look names up, until an error. Each user pays for long lists, so many threads
    read them."""
    os.setgid(ALICE)
    os.setuid(ALICE)
    opened, codes = [], []

    def open_some(numbers):
        try:
            for number in numbers:
                open_one(mount, kind, number)
                opened.append(number)
        except OSError as err:
            codes.append(err.errno)
    count = THREADS if kind in SLOW else 1
    threads = [threading.Thread(target=open_some, args=(numbers[i::count],)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(opened), max(codes, default=0)


def as_bob(mount, end):
    """Take another lock, look at it and give it back, again and again. Returns the slowest time,
    and how often."""
    os.setgid(BOB)
    os.setuid(BOB)
    slowest, count = 0, 0
    while not select.select([end], [], [], 0)[0]:
        start = time.monotonic()
        fd = os.open(mount.path('other', 'lock'), os.O_RDWR)
        with open(mount.path('other', 'holder'), encoding='ascii') as file:
            check(file.read().startswith('0'), 'Bob is not the holder')
        os.close(fd)
        slowest = max(slowest, time.monotonic() - start)
        count += 1
    return f'{slowest} {count}'


def child(function, *args):
    """A process that calls the function, tells its result, and ends when it is told to."""
    told, tell = os.pipe()
    ended, end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            die_with_parent()
            os.close(end)
            result = function(*args) if function is as_alice else function(*args, ended)
            os.write(tell, repr(result).encode())
            os.read(ended, 1)
        except BaseException as err:
            os.write(tell, repr(f'{type(err).__name__}: {err}').encode())
        finally:
            os._exit(0)
    os.close(tell)
    os.close(ended)
    return pid, told, end


def processes(kind):
    """The numbers for each of Alice's processes: none has more descriptors than its limit."""
    count = OPENS // 50 if kind in SLOW else OPENS
    each = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 100
    return [range(first, min(first + each, count)) for first in range(0, count, each)]


def attack(mount, kind):
    before = most = mount.resident()
    bob, bob_told, bob_end = child(as_bob, mount)
    start = time.monotonic()
    alices = [child(as_alice, mount, kind, numbers) for numbers in processes(kind)]
    opened, code = 0, 0
    for _, told, _ in alices:
        while not select.select([told], [], [], 0.1)[0]:
            most = max(most, mount.resident())
        one = eval(os.read(told, 4096))
        check(isinstance(one, tuple), f'Alice: {one}')
        opened, code = opened + one[0], code or one[1]
    took = time.monotonic() - start
    with_all = mount.resident()
    os.write(bob_end, b'x')
    bob_says = eval(os.read(bob_told, 4096))
    for pid, told, end in [(bob, bob_told, bob_end), *alices]:
        with contextlib.suppress(BrokenPipeError):
            os.write(end, b'x')
        os.waitpid(pid, 0)
        os.close(told)
        os.close(end)
    slowest, count = map(float, bob_says.split())
    print(f'{kind:8} {opened:7} {errno.errorcode.get(code, "-"):7} {took:6.1f} s  {before >> 10:8} {max(most, with_all) >> 10:8} '
          f'{mount.resident() >> 10:8} KiB   {count:6.0f} {slowest * 1000:8.1f} ms', flush=True)
    check(code in (0, errno.ENFILE, errno.ENOLCK), f'Alice got {code}')
    check(max(most, with_all) < LIMIT, f'{with_all} bytes')
    check(slowest < PATIENCE, f'Bob waited {slowest} s')


def test(case):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    server = case.server()
    mount = case.mount(server, session='30s')
    for name in ('build', 'other'):
        mount.mkdir(name, 0o755)
        os.chmod(mount.path(name, 'lock'), 0o666)
    holder = os.open(mount.path('build', 'lock'), os.O_RDWR)
    with open(mount.path('build', 'value'), 'wb') as file:
        file.write(os.urandom(64 * 1024))
    os.close(holder)
    client = server.client()
    for number in range(ENTRIES):
        client.create(f'/locks/build/_c_01234567-89ab-cdef-0123-{number:012x}-web{number % 9}.{number + 1}-lock-',
                      b'', ephemeral=True, sequence=True)
    mount.allow('of uid')
    print('what       opens until        took        before     most    after         Bob  slowest')
    for kind in sys.argv[2:] or KINDS:
        attack(mount, kind)
    check_equal(mount.status()['state'], 'ready', 'the mount')
    client.close()


run(test)
