#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Open files cost the daemon little memory, and each user has a limit. Equal contents are in
memory once. A user with too much open gets ENFILE, but can go on with what is open. Other users
notice nothing, and closing frees the memory again."""

import errno
import os
import resource

from harness import ALICE, BOB, check, check_equal, check_errno, check_user, keep_nothing, run, until

SAME = 2000
MOST = 8 << 20    # BUDGET_USER_BYTES
FILES = 12000


def open_all(path, count):
    """Open the file count times, or until an error. Returns the descriptors, and 0 or the errno."""
    found = []
    try:
        while len(found) < count:
            found.append(os.open(path, os.O_RDONLY))
    except OSError as err:
        return found, err.errno
    return found, 0


def test(case):
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    keep_nothing()
    server = case.server()
    mount = case.mount(server, 'a')
    mount.mkdir('build')
    for path in (mount.path('build', 'lock'), mount.path('build')):
        os.chmod(path, 0o777)
    holder = os.open(mount.path('build', 'lock'), os.O_RDWR)
    with open(mount.path('build', 'value'), 'wb') as file:
        file.write(os.urandom(64 * 1024))
    value, queue = mount.path('build', 'value'), mount.path('build', 'queue')
    metrics, status = mount.path('.zklockfs', 'metrics'), mount.path('.zklockfs', 'status')

    before = mount.resident()

    def alice():
        same, code = open_all(value, SAME)
        check_equal((len(same), code), (SAME, 0), 'the same value opened many times')
        cost = mount.resident() - before
        print(f'{SAME} open values cost {cost} bytes')
        check(cost < MOST, f'{cost} bytes for {SAME} times the same value')
        mine = os.open(mount.path('build', 'shared'), os.O_RDWR)
        directory = os.open(queue, os.O_RDONLY | os.O_DIRECTORY)
        check_equal(len(os.listdir(directory)), 1, 'the queue')
        more, code = open_all(metrics, FILES)
        print(f'{len(more)} times metrics, {mount.resident() - before} bytes')
        check_equal(code, errno.ENFILE, 'after too many')
        check(len(more) * 1024 < MOST < len(more) * 16384, f'{len(more)} times metrics')
        check(mount.resident() - before < 4 * MOST, 'what one user costs')
        # Use up the rest of the budget; then no file of any kind can be opened.
        rest = more + [fd for path in (status, value, queue) for fd in open_all(path, FILES)[0]]
        for path in (value, status):
            check_errno(errno.ENFILE, os.open, path, os.O_RDONLY)
        check_errno(errno.ENFILE, os.open, mount.path('build', 'flock'), os.O_RDWR)
        check_errno(errno.ENFILE, os.open, mount.path('build', 'shared'), os.O_RDWR)
        check_errno(errno.ENFILE, os.listdir, queue)
        # Another program that takes over charges it all to the same user.
        os.seteuid(0)
        mount.reload()
        os.seteuid(ALICE)
        check_errno(errno.ENFILE, os.open, status, os.O_RDONLY)
        # The user's open files work as before, and other users notice nothing.
        os.fsync(mine)
        os.stat(queue)
        check_equal(len(os.pread(same[-1], 1 << 17, 0)), 64 * 1024, 'the value')
        for uid in (BOB, 0):
            os.seteuid(0)
            check_user(0, uid, os.open, metrics, os.O_RDONLY)
            check_user(0, uid, os.listdir, queue)
            check_user(0, uid, os.open, mount.path('build', 'shared'), os.O_RDWR)
            check_user(0, uid, os.open, mount.path('build', 'flock'), os.O_RDWR)
        os.seteuid(ALICE)
        # Closing frees the memory again.
        for fd in rest:
            os.close(fd)
        again, _ = open_all(metrics, len(more) - 20)
        check_equal(len(again), len(more) - 20, 'opened again')

    os.close(holder)
    child = os.fork()
    if child == 0:
        try:
            os.seteuid(ALICE)
            alice()
            os._exit(0)
        except BaseException as err:
            print(f'{type(err).__name__}: {err}', flush=True)
            os._exit(1)
    check_equal(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0, 'Alice')
    check_user(0, ALICE, os.listdir, queue)
    check_user(0, ALICE, os.open, mount.path('build', 'lock'), os.O_RDWR)
    until(lambda: mount.status()['open_bytes'] == '0', 'nothing is left of what was open')
    mount.allow('open files of uid')


run(test)
