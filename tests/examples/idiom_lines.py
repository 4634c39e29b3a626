#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What zklockfs-idioms(7) prints besides its programs: how each language calls a busy lock, a semaphore, the statement that
checks a token, in SQLite and, where it is installed, in PostgreSQL, and the service of a timer."""

import glob
import os
import re
import sqlite3
import subprocess

from gate import Gate, check, check_equal, command, queued
from harness import go_build, run
from locking import environment, zklock
from printed import BUSY, indented, shown, table

PAGE = 'fs/pages/zklockfs-idioms.7.md'
# A file, what compiles it, what runs it, and a program that opens its argument for writing, and says what that fails with.
PROGRAMS = {
    'Python': ('p.py', '', 'python3 {}', '''
import sys
try:
    open(sys.argv[1], 'wb')
except OSError as error:
    print(type(error).__name__)
'''),
    'Perl': ('p.pl', '', 'perl {}', '''
use Errno;
open(my $file, '+<', $ARGV[0]) or print grep { $!{$_} } qw(EAGAIN ETIMEDOUT);
'''),
    'Ruby': ('p.rb', '', 'ruby {}', '''
begin
  File.open(ARGV[0], 'r+')
rescue SystemCallError => e
  puts e.class
end
'''),
    'PHP': ('p.php', '', 'php {}', '''<?php
@fopen($argv[1], 'r+') or print(preg_replace('/.*: /', '', error_get_last()['message']));
'''),
    'Node.js': ('p.js', '', 'node {}', '''
try { require('fs').openSync(process.argv[2], 'r+') } catch (e) { console.log(e.code) }
'''),
    'Java': ('p.java', '', 'java -XX:TieredStopAtLevel=1 {}', '''
class P { public static void main(String[] a) throws Exception {
    try { new java.io.FileOutputStream(a[0]); }
    catch (java.io.IOException e) { System.out.println(e.getClass().getSimpleName() + ": " + e.getMessage().replaceFirst(".* \\\\(", "(")); }
} }
'''),
    'Go': ('p.go', 'go', '{}.bin', '''
package main
import ("errors"; "fmt"; "os"; "syscall")
func main() {
    _, err := os.OpenFile(os.Args[1], os.O_WRONLY, 0)
    if errors.Is(err, syscall.EAGAIN) { fmt.Println("syscall.EAGAIN") }
    if errors.Is(err, syscall.ETIMEDOUT) { fmt.Println("syscall.ETIMEDOUT") }
}
'''),
    'C': ('p.c', 'cc -o {}.bin {}', '{}.bin', '''
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
int main(int argc, char **argv) {
    (void)argc;
    if (open(argv[1], O_WRONLY) < 0)
        puts(errno == EAGAIN ? "EAGAIN" : errno == ETIMEDOUT ? "ETIMEDOUT" : "?");
    return 0;
}
'''),
}


def block(start):
    text, = [text for text in indented(shown(PAGE)) if text.startswith(start)]
    return text.strip()


def languages(case, mount):
    """The table has what each program says."""
    rows = table(PAGE, 'ERRORS IN EACH LANGUAGE')
    check_equal([row[0] for row in rows], list(PROGRAMS), 'languages')
    holder = mount.take('build').held()
    for language, *names in rows:
        file, compiler, runner, text = PROGRAMS[language]
        path = f'{case.directory}/{file}'
        with open(path, 'w', encoding='utf-8') as source:
            source.write(text.lstrip())
        if language == 'Go':
            go_build(case, path + '.bin', path)
        elif compiler:
            subprocess.run(compiler.replace('{}', path).split(), check=True)
        for door, name in zip(('try', 'lock@100ms'), names):
            status, out, err = command([*runner.replace('{}', path).split(), mount.path('build', door)],
                                       env={**os.environ, 'LC_ALL': 'C'})
            check_equal((out.strip(), status), (name, 0), f'{language}, {door}: {err}')
    holder.release()


def semaphore(mount):
    text = block('mkdir /mnt/locks/simulator').replace('/mnt/locks', mount.directory)
    check_equal(command(['sh', '-e', '-c', text]), (0, '', ''), text)
    holders = [mount.take('simulator').held() for _ in range(2)]
    waiter = mount.take('simulator')
    queued(mount, 'simulator', 3, 2)
    for holder in holders:
        holder.release()
    waiter.held().release()


def fencing(case, tokens):
    """A later token writes, the earlier one no more."""
    create, update = block('CREATE TABLE'), block('UPDATE account')
    early, late = (update.replace('4967301', str(token)) for token in tokens)
    insert = 'INSERT INTO account VALUES (1, 100, 0);'
    store = sqlite3.connect(':memory:')
    store.execute(create)
    store.execute(insert)
    check_equal([store.execute(line).rowcount for line in (early, late, late, early)], [1, 1, 1, 0], 'SQLite')
    programs = glob.glob('/usr/lib/postgresql/*/bin/initdb')
    if not programs:
        print('NOT RUN: PostgreSQL is not installed')
        return
    data, programs = case.directory + '/postgres', os.path.dirname(programs[0])
    os.mkdir(data)
    os.chmod(case.directory, 0o755)
    subprocess.run(['chown', 'nobody', data], check=True)

    def as_nobody(*words, text=None):
        done = subprocess.run(['setpriv', '--reuid=nobody', '--clear-groups', *words], input=text, text=True, cwd='/',
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        check_equal(done.returncode, 0, f'{words}: {done.stdout}')
        return done.stdout
    as_nobody(f'{programs}/initdb', '-D', data, '-A', 'trust', '-U', 'nobody')
    as_nobody(f'{programs}/pg_ctl', '-w', '-D', data, '-l', data + '/log', '-o', f"-k {data} -h ''", 'start')
    try:
        said = as_nobody('psql', '-h', data, '-U', 'nobody', '-v', 'ON_ERROR_STOP=1', 'postgres',
                         text='\n'.join((create, insert, early, late, late, early)))
    finally:
        as_nobody(f'{programs}/pg_ctl', '-w', '-D', data, '-m', 'immediate', 'stop')
    check_equal(re.findall(r'^UPDATE (\d)', said, re.MULTILINE), ['1', '1', '1', '0'], said)


def timer(mount, gate):
    """The lock is kept when the service has ended; the other host's service does nothing then, and is no failure."""
    line = re.search(r'^ExecStart=(.*)$', block('[Service]\nType=oneshot'), re.MULTILINE)[1].replace('/usr/bin/', '')
    mount.mkdir('nightly')
    gate.tool('backup', 'exit 0')
    environ = environment(mount)
    environ['PATH'] = f'{gate.tools}:{environ["PATH"]}'
    check_equal(command(['sh', '-c', line], env=environ), (0, '', ''), line)
    check('reason=kept_until' in mount.read('nightly', 'holder').replace(' ', '_'), 'it is kept')
    check_equal(zklock(mount, '-n', 'nightly', '--', 'true')[0], BUSY, 'kept')
    gate.tool('backup', 'exit 3')
    check_equal(command(['sh', '-c', line], env=environ), (0, '', ''), 'the other host')


def test(case):
    gate, server = Gate(case), case.server()
    mount = case.mount(server)
    mount.mkdir('build')
    tokens = []
    for _ in range(2):
        holder = mount.take('build').held()
        tokens.append(int(holder.token()))
        holder.release()
    languages(case, mount)
    semaphore(mount)
    fencing(case, tokens)
    timer(mount, gate)


run(test)
