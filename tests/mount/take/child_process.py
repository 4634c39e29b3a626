#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A process with an open lock file runs a child, or another program in its place (rule 29). exec
closes the close-on-exec descriptors, as most languages open files, and the kernel waits for the
mount meanwhile. The test does this for every way of having the lock, in every language that is
installed. Each process first waits for longer than the mount remembers the process."""

import shutil

from harness import WAIT_SECONDS, check_equal, command, run, spawn, until

FLOCK = {
    'python3': 'import fcntl, os, sys, time; f = open(sys.argv[1], "r+"); fcntl.flock(f, 2); '
               'time.sleep(.05); os.system("true"); os.read(f.fileno(), 1); os.execvp("true", ["true"])',
    'perl': 'use Fcntl ":flock"; open(F, "+<", $ARGV[0]) or die; flock(F, 2) or die; '
            'select(undef, undef, undef, .05); system("true"); exec("true")',
    'ruby': 'f = File.open(ARGV[0], "r+"); f.flock(File::LOCK_EX); sleep 0.05; system("true"); exec("true")',
    'php': '$f = fopen($argv[1], "r+"); flock($f, LOCK_EX); usleep(50000); system("true");',
    'node': 'const f = require("fs").openSync(process.argv[1], "r+"); setTimeout(() => '
            'require("child_process").execSync("true"), 50)',
}
ARGUMENTS = {'python3': ['-c'], 'perl': ['-e'], 'ruby': ['-e'], 'php': ['-r'], 'node': ['-e']}
# fcntl(2), and the lock files that are taken by opening.
FCNTL = ('import fcntl, os, sys, time; f = open(sys.argv[1], "r+"); fcntl.lockf(f, fcntl.LOCK_EX); '
         'time.sleep(.05); os.system("true"); os.execvp("true", ["true"])')
OPEN = ('import os, sys, time; f = os.open(sys.argv[1], os.O_RDWR); os.read(f, 64); time.sleep(.05); '
        'os.system("true"); g = os.open(sys.argv[2], os.O_RDWR); os.system("true"); '
        'os.execvp("true", ["true"])')
# The opener runs another program while its child locks the file that both have open.
SHARED = ('import fcntl, os, sys, time; f = os.open(sys.argv[1], os.O_RDWR | os.O_CLOEXEC); end = os.pipe()\n'
          'if os.fork() == 0:\n'
          '    os.close(end[0])\n'
          '    for _ in range(200): fcntl.flock(f, 2); time.sleep(.0005); fcntl.flock(f, 8)\n'
          '    os._exit(0)\n'
          'os.set_inheritable(end[0], True); time.sleep(.05)\n'
          'os.execvp("sh", ["sh", "-c", f"for i in 1 2 3; do true; done; cat <&{end[0]}"])')


def test(case):
    server = case.server()
    for options in ([], ['on_lost=kill']):
        mount = case.mount(server, f'a{len(case.mounts)}', options=options)
        mount.mkdir(mount.host)
        lock_file = mount.path(mount.host)

        def finishes(what, args):
            status, out, err = command(args, seconds=WAIT_SECONDS)
            check_equal((status, out, err), (0, '', ''), what)

        for name, program in FLOCK.items():
            if shutil.which(name):
                finishes(name, [name, *ARGUMENTS[name], program, lock_file + '/flock'])
        finishes('fcntl', ['python3', '-c', FCNTL, lock_file + '/flock'])
        finishes('a shared file', ['python3', '-c', SHARED, lock_file + '/flock'])
        for first in ('lock', 'shared', 'try', 'lock@5s', 'reentrant'):
            second = 'reentrant' if first != 'shared' else 'shared'
            finishes(first, ['python3', '-c', OPEN, f'{lock_file}/{first}', f'{lock_file}/{second}'])
        until(lambda: not server.entries(mount.host), 'nobody has it any more')
    # No other process has to wait for them.
    with spawn(['ps', '-eo', 'pid,wchan'], stdout=-1) as process:
        process.communicate(timeout=60)
        check_equal(process.returncode, 0, 'ps')


run(test)
