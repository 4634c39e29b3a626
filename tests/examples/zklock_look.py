#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""zklock ls, why and evict; the help and the page, and the completion of bash."""

import fcntl
import os
import re
import signal
import subprocess

from gate import Gate, queued
from harness import ALICE, BOB, SOURCE_ROOT, Stopwatch, check, check_equal, command, errno_of, libc, refused, run, spawn, until, without_pidfd
from locking import SOURCE, ZKLOCK, check_run, environment, evict, free, start, zklock


def by(user, mount, *words):
    return command([ZKLOCK, *words], env=environment(mount), user=user, group=user, extra_groups=[])


def queue(a, b):
    """ls of one lock: the holders and the waiters, in order."""
    check_equal(check_run(a, ['ls', 'svca'], 0, 'an empty queue').split()[:3], ['NUMBER', 'STATE', 'MODE'], 'ls')
    holder = b.take('svca').held()
    holder.do('write', 'größer'.encode())
    waiter = a.take('svca', 'shared')
    queued(b, 'svca', 2)
    until(lambda: 'größer' in a.read('svca', 'holder'), 'the reason')
    lines = [line.split() for line in check_run(a, ['ls', 'svca'], 0, 'ls').splitlines()]
    check_equal([line[1:3] + line[4:6] for line in lines[1:]],
                [['held', 'exclusive', 'b', str(holder.pid)], ['waiting', 'shared', 'a', str(waiter.pid)]], 'ls')
    check_equal(lines[1][-1], 'größer', 'reason')
    check(re.fullmatch(r'\d+m?s', lines[1][3]), f'since when: {lines[1]}')
    check_equal(check_run(a, ['ls', a.path('svca')], 0, 'ls by a path').splitlines()[1].split()[5],
                str(holder.pid), 'ls by a path')
    check_run(a, ['ls', 'svcx'], 66, 'ls of no lock', 'svcx: no such lock')

    # evict: by number, by name, who holds.
    number = lines[2][0]
    check_run(a, ['evict', 'svca', '999'], 66, 'evict nobody', 'no such entry')
    a.mkdir('fresh')
    first = b.take('fresh').held()
    check('0000000000-' in a.queue('fresh')[0], 'its first entry')
    check_run(a, ['evict', 'fresh', ''], 66, 'evict nobody', 'no such entry')
    check('evicted' in check_run(a, ['evict', 'fresh', '0'], 0, 'evict the first', 'is stopped only'), 'evict the first')
    first.kill()
    until(lambda: not a.queue('fresh'), 'nobody holds')
    os.rmdir(a.path('fresh'))
    check_equal(by(ALICE, a, 'evict', 'svca', 'holder')[0], 77, 'evict by a stranger')
    check_equal(len(b.queue('svca')), 2, 'nobody was evicted')
    check('-a: evicted\n' in check_run(b, ['evict', 'svca', number.lstrip('0')], 0, 'evict a waiter'), 'evict')
    waiter.refused(125)     # ECANCELED
    # An open, and then one for writing, would wait 45 s for this lease.
    lease = os.open(a.path('svca', 'queue', a.queue('svca')[0]), os.O_RDONLY)
    fcntl.fcntl(lease, fcntl.F_SETSIG, signal.SIGCHLD)
    fcntl.fcntl(lease, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    watch = Stopwatch()
    check_equal(check_run(a, ['ls', 'svca'], 0, 'ls').splitlines()[1].split()[:2], lines[1][:2], 'ls beside a lease')
    check_run(a, ['why', 'svca'], 75, 'why beside a lease')
    fcntl.fcntl(lease, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    check('-b: evicted\n' in check_run(a, ['evict', 'svca', 'holder'], 0, 'evict the holder',
                                        f'process {holder.pid} (python3) on b is stopped only if zklock started it, or if its mount has on_lost'), 'evict')
    watch.check(0, 20, 'zklock beside a lease')
    os.close(lease)
    until(lambda: not a.queue('svca'), 'evicted')
    check_run(a, ['evict', 'svca', 'holder'], 66, 'nobody holds', 'nobody holds svca')
    holder.release()

    # Each of these is found to be gone at once.
    holder = a.take('svca').held()
    waiters = [a.take('svca') for _ in range(8)]
    until(lambda: len(a.queue('svca')) == 9, 'they wait')
    watch = Stopwatch()
    check_equal(check_run(a, ['evict', 'svca', *a.queue('svca')[1:]], 0, 'evict eight').count('-a: evicted\n'), 8, 'evict eight')
    watch.check(0, 5, 'zklock evict of eight')
    for waiter in waiters:
        waiter.refused(125)
    holder.release()
    until(lambda: not a.queue('svca'), 'free')

    # The holder's mount does not read the mark: nobody may believe that the lock is free.
    holder = b.take('svca').held()
    b.watched = False
    b.send(signal.SIGSTOP)
    check('-b: marked for eviction\n' in check_run(a, ['evict', 'svca', 'holder'], 0, 'evict from a mount that stands still',
                                                    'it still has its place'), 'marked')
    check_equal(len(a.queue('svca')), 1, 'the entry')
    b.send(signal.SIGCONT)
    until(lambda: not a.queue('svca'), 'evicted')
    holder.release()


def everything(a, b):
    """ls: what is held or waited for anywhere, in columns, with texts as they were written."""
    check_equal(len(check_run(a, ['ls'], 0, 'nothing').splitlines()), 1, 'nothing is held')
    a.mkdir('two words')
    holder, other = b.take('two words').held(), b.take('svcb', 'shared').held()
    holder.do('write', b'schema 17\\ \x1b[2J')
    waiter = a.take('two words')
    queued(b, 'two words', 2)
    until(lambda: 'schema' in a.read('.zklockfs', 'locks'), 'the reason')
    heads, first, second = check_run(a, ['ls'], 0, 'ls').splitlines()
    check_equal(heads.split(), ['LOCK', 'HELD', 'HOST', 'PID', 'COMMAND', 'TOKEN', 'WAITERS', 'WAITED', 'HOLDERS', 'REASON'],
                'ls')
    check_equal(first.split()[0] + second.split(None, 1)[0], 'svcbtwo', 'by name')
    check_equal(second[heads.index('HOST'):].split()[:2], ['b', str(holder.pid)], second)
    check_equal(second[heads.index('WAITERS'):].split()[0], '1', second)
    check_equal(second[heads.index('REASON'):], 'schema 17\\ ?[2J', second)
    check_equal(first[heads.index('REASON'):], '-', first)
    # A part of the mount has no such file.
    a.mkdir('two words/below')
    check_run(None, ['-m', a.path('two words'), 'ls'], 69, 'ls of a part', 'is this the whole mount?')
    check_run(None, ['-m', a.path('two words'), 'why', 'below'], 0, 'why in a part')
    waiter.kill()
    holder.release()
    other.release()
    # A name cannot look like more columns than it is.
    a.mkdir('x  10s\u00a0\u2003\u3000web9')
    holder = a.take('x  10s\u00a0\u2003\u3000web9').held()
    until(lambda: 'x ?10s???web9  ' in check_run(a, ['ls'], 0, 'ls'), 'a name with blanks')
    holder.release()
    until(lambda: errno_of(os.rmdir, a.path('x  10s\u00a0\u2003\u3000web9')) == 0, 'the lock is removed')
    os.rmdir(a.path('two words/below'))
    until(lambda: errno_of(os.rmdir, a.path('two words')) == 0, 'the lock is removed')


def asked_by_why(mount):
    before = mount.metric('requests_total')
    check('\n150 wait for it already\n' in check_run(mount, ['why', 'svcb'], 75, 'why'), 'why')
    asked = mount.metric('requests_total') - before
    check(asked < 50, f'zklock why asks {asked} times')


def asked_by_ls(mount):
    before = mount.metric('requests_total')
    check_equal(len(check_run(mount, ['ls', 'svcb'], 0, 'ls').splitlines()), 1 + 151, 'a pipe gets all')
    return mount.metric('requests_total') - before


def add_waiters(server):
    """150 of a mount on host a; they go with the client."""
    name = '_c_' + '-'.join(['12345678', '1234', '1234', '1234', '%012x']) + '-a.%d-lock-'
    client = server.client()
    for i in range(150):
        client.create('/locks/svcb/' + name % (i, 1000 + i), ephemeral=True, sequence=True)
    return client


def long_queue(server, a, b):
    """What a look at a lock asks depends on its holders, not on its waiters; a terminal gets a hundred lines."""
    holder = a.take('svcb').held()
    client = add_waiters(server)
    queued(a, 'svcb', 151)
    asked_by_why(a)
    # A machine that stands still for a moment asks for some of them again.
    until(lambda: asked_by_ls(a) < 151 + 50, 'a pipe gets all by one walk')
    master, slave = os.openpty()
    with spawn([ZKLOCK, 'ls', 'svcb'], env=environment(a), stdout=slave) as process:
        os.close(slave)
        lines = os.fdopen(master, errors='replace')
        shown = []
        try:
            for line in lines:
                shown.append(line.rstrip())
        except OSError:    # EIO: nobody has the terminal open any more
            pass
    lines.close()
    check_equal((process.returncode, len(shown), shown[-1]),
                (0, 1 + 100 + 1, 'and 51 more; zklock ls svcb | cat lists all'), shown[-2:])
    holder.release()
    client.close()
    queued(a, 'svcb', 0)
    # Of a holder on another mount, its own mount alone knows who is below it.
    holder = b.take('svcb').held()
    client = add_waiters(server)
    queued(a, 'svcb', 151)
    asked_by_why(a)
    holder.release()
    client.close()
    queued(a, 'svcb', 0)


def set_slots(mount, lock, count):
    with open(mount.path(lock, 'slots'), 'w', encoding='ascii') as slots:
        slots.write(str(count))


def why(a, b):
    def says(words, status, text, user=0):
        got, out, err = by(user, a, 'why', *words)
        check_equal((got, err), (status, ''), f'why {words}: {out}')
        check(text in out, f'why {words}: {out!r} and not {text!r}')

    says(['svca'], 0, 'it could be taken now')
    says(['svcx'], 66, f'there is no such lock; this creates it: mkdir -p {a.path("svcx")}\n')
    holder = b.take('svca').held()
    waiter = b.take('svca')
    queued(a, 'svca', 2)
    says(['svca'], 75, f'held by process {holder.pid} (python3) on b for ')
    says(['svca'], 75, '1 waits for it already\n')
    says(['-s', 'svca'], 75, f'held by process {holder.pid}')
    holder.release()
    waiter.held().release()
    holder = b.take('svca', 'shared').held()
    says(['-s', 'svca'], 0, 'it could be taken now')
    says(['svca'], 75, 'shared by process')
    check_equal(zklock(a, '-n', '-s', 'svca', '--', 'true')[0], 0, 'so it is')
    holder.release()
    set_slots(a, 'svca', 2)
    holder = b.take('svca').held()
    says(['svca'], 0, 'it could be taken now')
    other = b.take('svca').held()
    says(['svca'], 75, 'it has 2 slots, 2 are held')
    check_equal(check_run(a, ['ls'], 0, 'ls').splitlines()[1].split()[8], '2/2', 'how many of how many')
    other.release()
    holder.release()
    # Where no reason is given, none is printed, and no name of a program twice.
    holder = b.take('svca').held()
    by_zklock = start(b, 'svca', '--', 'sleep', '1000')
    until(lambda: 'reason=sleep\n' in a.read('svca', 'holder'), 'two hold')
    out = check_run(a, ['why', 'svca'], 75, 'why')
    check(re.match(rf'held by process {holder.pid} \(python3\) on b for [^:\n]+\nheld by process \d+ \(sleep\) on b for [^:\n]+\n', out), out)
    holder.release()
    set_slots(a, 'svca', 1)
    refusal = zklock(a, '-n', 'svca', '--', 'true')[2]
    check(re.search(r'  held by process \d+ \(sleep\) on b for [^:\n]+$', refusal, re.MULTILINE), refusal)
    by_zklock.terminate()
    by_zklock.communicate()
    set_slots(a, 'svca', 2)
    says(['svca'], 77, 'you (user 1002) may not write to its lock files', BOB)
    # One's own.
    out = check_run(a, ['svcb', '--', 'sh', '-c', f'{ZKLOCK} why svcb; echo $?'], 0, "one's own")
    check('this is your own hold: you would wait for yourself' in out and out.endswith('75\n'), out)
    check_run(a, ['svcb', '--', ZKLOCK, '-n', 'svcb', '--', 'true'], 75, "one's own", 'this is your own hold: use -R')
    # Who waits for it is told so, also where no terminal is.
    inner = spawn([ZKLOCK, '-m', a.directory, 'svcb', '--', ZKLOCK, '-m', a.directory, 'svcb', '--', 'true'],
                  stderr=subprocess.PIPE, text=True)
    line = inner.stderr.readline()
    check('zklock: svcb: waiting for process' in line and 'this is your own hold: use -R' in line, line)
    inner.terminate()
    inner.communicate()
    # Not that of another process.
    holder = a.take('svcb').held()
    check('your own' not in zklock(a, '-n', 'svcb', '--', 'true')[2], "another's")
    holder.release()


class Script:
    """A shell that takes a lock, and another one when it is told; perhaps by a process below it."""

    def __init__(self, first, second, below=False):
        again = f'( : 8<>"{second}"; : )' if below else f'exec 8<>"{second}"'
        self.process = spawn(['bash', '-c', f'exec 9<>"{first}" || exit; echo held; read -r _; {again}'],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                             start_new_session=True)
        self.pid = self.process.pid
        check_equal(self.process.stdout.readline(), 'held\n', 'a lock')

    def go_on(self):
        self.process.stdin.write('\n')
        self.process.stdin.flush()

    def end(self):
        os.killpg(self.pid, signal.SIGKILL)
        self.process.communicate()


def chains(a, b):
    """Who waits for whom; a circle is called a deadlock. Only what is certain is told as such."""
    def said(mount, lock):
        return check_run(mount, ['why', lock], 75, 'why')

    set_slots(a, 'svca', 1)
    # A chain, then a circle over two mounts.
    scripts = [Script(a.path('svca', 'lock'), a.path('svcb', 'lock')),
               Script(b.path('svcb', 'lock'), b.path('svca/deep', 'lock')),
               Script(a.path('svca/deep', 'lock'), a.path('svca', 'lock'))]
    pids = [script.pid for script in scripts]
    check('wait' not in said(a, 'svca'), 'nobody waits')
    for script, lock in zip(scripts[:2], ('svcb', 'svca/deep')):
        script.go_on()
        queued(a, lock, 2)
    for mount in (a, b):
        out = said(mount, 'svca')
        check(re.search(rf'^held by process {pids[0]} \(bash\) on a .*\n  it waits for svcb:\n'
                        rf'    held by process {pids[1]} \(bash\) on b .*\n      it waits for svca/deep:\n'
                        rf'        held by process {pids[2]} \(bash\) on a .*\n$', out), out)
    scripts[2].go_on()
    queued(b, 'svca', 2)
    out = said(b, 'svca')
    check('\ndeadlock: these wait for each other until one gives up or is evicted:\n'
          f'  process {pids[0]} (bash) on a holds svca and waits for svcb\n'
          f'  process {pids[1]} (bash) on b holds svcb and waits for svca/deep\n'
          f'  process {pids[2]} (bash) on a holds svca/deep and waits for svca\n1 waits for it already\n' in out, out)
    for script in scripts:
        script.end()
    for lock in ('svca', 'svcb', 'svca/deep'):
        free(a, lock)

    # With two slots, the other holder may end it.
    set_slots(a, 'svca', 2)
    other = b.take('svca').held()
    scripts = [Script(a.path('svca', 'lock'), a.path('svcb', 'lock')), Script(b.path('svcb', 'lock'), b.path('svca', 'lock'))]
    for script, lock, count in zip(scripts, ('svcb', 'svca'), (2, 3)):
        script.go_on()
        queued(a, lock, count)
    out = said(b, 'svcb')
    check('\nthese wait for each other:\n' in out and 'deadlock:' not in out and
          '\n  unless another holder of svca releases it, this is a deadlock\n' in out, out)
    for script in scripts:
        script.end()
    other.release()
    for lock in ('svca', 'svcb'):
        free(a, lock)
    set_slots(a, 'svca', 1)

    # Below the holder: certain on its own host alone.
    scripts = [Script(a.path('svca', 'lock'), a.path('svcb', 'lock'), below=True),
               Script(b.path('svcb', 'lock'), b.path('svca', 'lock'), below=True)]
    for script, lock in zip(scripts, ('svcb', 'svca')):
        script.go_on()
        queued(a, lock, 2)
    out = said(a, 'svca')
    check(re.search(rf'^held by process {scripts[0].pid} .*\n  below it process \d+ \(bash\) on a waits for svcb:\n', out), out)
    check(re.search(rf'\nperhaps a deadlock: process \d+ \(bash\) on b waits for svca; `zklock why svcb` on b tells '
                    rf'whether it is below process {scripts[1].pid}\n', out), out)
    check('\ndeadlock' not in out, out)
    for script in scripts:
        script.end()
    for lock in ('svca', 'svcb', 'svca/deep'):
        free(a, lock)

    # Many below the holder that wait for one lock are told of once.
    lock = a.path('svca', 'lock')
    crowd = spawn(['bash', '-c', f'exec 9<>"{lock}" || exit; for i in 1 2 3; do ( : 8<>"{lock}" ) & done; wait'],
                  start_new_session=True)
    queued(a, 'svca', 4)
    out = said(a, 'svca')
    check(out.count('deadlock:') == 1 and out.endswith('3 wait for it already\n'), out)
    os.killpg(crowd.pid, signal.SIGKILL)
    crowd.wait()
    free(a, 'svca')

    # The same number on another mount is another process: of another container, for example.
    holder = Script(a.path('svca', 'lock'), b.path('svcb', 'lock'))
    last = a.take('svcb').held()
    holder.go_on()
    queued(a, 'svcb', 2)
    out = said(a, 'svca')
    check('wait' not in out, out)
    holder.end()
    last.release()


def gone(a):
    """The process that took it has ended, and a child has the file."""
    for lock_file in ('exec 9<>"$1/lock"', 'exec 9<>"$1/flock"; flock 9'):
        status, out, _ = command(['bash', '-c', lock_file + '; sleep 1000 >/dev/null 2>&1 & echo $$ $!', 'bash', a.path('svca')])
        parent, child = out.split()
        check_equal(status, 0, 'the parent ends')
        out = check_run(a, ['why', 'svca'], 75, 'why')
        check(out.startswith(f'held by process {parent} (bash) on a ') and
              f'\n  process {parent} is gone; {child} (sleep) has the file open\n' in out, out)
        status, out, _ = command(refused([ZKLOCK, 'why', 'svca'], ['statx']), env=environment(a))
        check_equal((status, f'{child} (sleep) has the file open\n' in out), (75, True), f'without statx(2): {out}')
        # In another pid namespace the number means nothing.
        status, out, _ = command(['unshare', '--pid', '--fork', '--mount-proc', ZKLOCK, 'why', 'svca'], env=environment(a))
        check_equal((status, 'gone' in out), (75, False), out)
        os.kill(int(child), 9)
        free(a, 'svca')
    # A process that lives on without the file.
    script = 'exec 9<>"$1/lock"; (sleep 1000 >/dev/null 2>&1 & echo $!); exec 9>&-; echo closed; read -r _'
    parent = spawn(['bash', '-c', script, 'bash', a.path('svca')], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child = parent.stdout.readline().strip()
    check_equal(parent.stdout.readline(), 'closed\n', 'the parent')
    out = check_run(a, ['why', 'svca'], 75, 'why')
    check(f'\n  process {parent.pid} has closed the file; {child} (sleep) has the file open\n' in out, out)
    os.kill(int(child), 9)
    free(a, 'svca')
    parent.communicate('\n')


def hidden(a):
    """Where /proc hides the processes of others, nobody found is not nobody there."""
    hide = ['unshare', '-m', 'sh', '-c', 'mount -t proc -o hidepid=2 proc /proc && exec setpriv "$@"', 'sh',
            f'--reuid={ALICE}', f'--regid={ALICE}', '--clear-groups', ZKLOCK, '-m', a.directory, 'why', 'svca']
    os.chmod(a.path('svca', 'lock'), 0o666)
    holder = a.take('svca').held()
    status, out, err = command(hide)
    check(status == 75 and out.startswith(f'held by process {holder.pid} ') and 'gone' not in out, f'{out}{err}')
    holder.release()
    status, out, _ = command(['bash', '-c', 'exec 9<>"$1/lock"; sleep 1000 >/dev/null 2>&1 & echo $$ $!', 'bash', a.path('svca')])
    parent, child = out.split()
    status, out, err = command(hide)
    check(status == 75 and f'process {parent} is gone; root can see who has the file open\n' in out, f'{out}{err}')
    os.kill(int(child), signal.SIGKILL)
    free(a, 'svca')


def past(a, b):
    """history and status, as a person reads them."""
    os.umask(0)
    a.mkdir('public')
    os.umask(0o22)
    holder = a.take('public', uid=ALICE).held()
    holder.do('write', b'two words \xe2\x80\xa8 x')
    evict(b, 'public')
    until(lambda: errno_of(holder.do, 'pread', 1, 0) == 5, 'lost')
    holder.release()
    lines = check_run(a, ['history', 'public'], 0, 'history').splitlines()
    check_equal(lines[0].split(), ['ENDED', 'LOCK', 'MODE', 'HELD', 'WAITED', 'END', 'USER', 'PID', 'COMMAND', 'TOKEN',
                                   'BY', 'REASON'], 'heads')
    check({line.split()[1] for line in lines[1:]} == {'public'}, lines)
    check(re.fullmatch(rf'\d\d:\d\d:\d\d +public +exclusive +\S+ +\S+ +evicted +\S+ +{holder.pid} +python3 +\d+ +'
                       r'uid 0 pid \d+ \(python3\) on b +two words \?+ x', lines[-1]), lines[-1])
    check({'public', 'svca'} <= {line.split()[1] for line in check_run(a, ['history'], 0, 'history').splitlines()[1:]}, 'all')
    check_equal(check_run(a, ['history', 'svcx'], 66, 'history of no lock', 'zklock: svcx: no such lock\n'), '', 'no heads')
    os.mkdir(a.path('idle'))
    out = check_run(a, ['history', 'idle'], 0, 'history of a new lock', 'no hold of idle has ended on this mount')
    check_equal(len(out.splitlines()), 1, out)
    os.rmdir(a.path('idle'))
    status, out, err = by(ALICE, a, 'history')
    check_equal((status, 'your own holds' in err), (0, True), err)
    check(str(holder.pid) in out and 'svca' not in out, out)
    out = check_run(a, ['status'], 0, 'status')
    check(out.startswith(f'{a.directory}: the ensemble answers') and re.search(r'\nsession timeout +15\.0s\n', out), out)
    os.rmdir(a.path('public'))
    # A text that one read does not bring whole.
    for number in range(20):
        check_run(a, ['-r', f'{number} ' + 'x' * 4000, 'svca', '--', 'true'], 0, 'a long reason')
    until(lambda: len(a.read('.zklockfs', 'history')) > 80000, 'the last one has ended')
    lines = check_run(a, ['history', 'svca'], 0, 'history').splitlines()[-20:]
    check_equal([line.split()[-2] for line in lines], [str(number) for number in range(20)], 'all that have ended')
    check_run(None, ['-m', a.path('svca'), 'status'], 69, 'a part', 'is this the whole mount?')


def away(server, a):
    """In an outage each of them says so, since when, and what the servers do."""
    holder = a.take('svca').held()
    server.stop()
    until(lambda: a.status()['state'] == 'suspended', 'the outage is known')
    # As long as the name was looked up a moment ago, the holder of this mount is in the way: 75.
    until(lambda: zklock(a, '-n', 'svca', '--', 'true')[0] == 69, 'the name is not known any more')
    told = r'the ensemble does not answer \(since \d\d:\d\d:\d\d, for \d+m?s\)'
    for words in (['ls'], ['ls', 'svca'], ['why', 'svca'], ['why', 'no-such-lock'], ['status'], ['evict', 'svca', 'holder'],
                  ['-n', 'svca', '--', 'true'], ['-w', '100ms', 'svca', '--', 'true']):
        status, out, err = zklock(a, *words)
        check_equal(status, 69, f'{words}: {out}{err}')
        check(re.search(told, out + err), f'{words}: {out}{err}')
    check_run(a, ['history'], 0, 'history')
    check('\nno contact since ' in zklock(a, 'status')[1], 'since when')
    until(lambda: re.search(told + rf'.*; 127\.0\.0\.1:{server.port}: Connection refused', zklock(a, 'why', 'svca')[1]),
          'what the server does')
    server.start()
    a.ready()
    holder.kill()    # which may have lost it
    holder = a.take('svca').held()
    check_run(a, ['why', 'svca'], 75, 'why')
    holder.release()


def stopped(a, b):
    """The daemon of the mount is stopped, and nothing that it is asked comes back. And what nobody can read."""
    a.watched = False
    a.send(signal.SIGSTOP)
    looking = [spawn([ZKLOCK, *words], env=environment(a), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
               for words in (['status'], ['why', 'svca'], ['ls'], ['history'], ['evict', 'svca', 'holder'])]
    for process in looking:
        out, err = process.communicate()
        check_equal((process.returncode, out), (69, ''), f'{process.args}: {err}')
        check('the daemon of the mount does not answer: it is stopped' in err, err)
    a.send(signal.SIGCONT)
    a.ready()
    status, out, err = command(without_pidfd([ZKLOCK, 'status']), env=environment(a))
    check(status == 0 and 'the ensemble answers' in out, f'without pidfd_open(2): {status}, {out}{err}')
    for words in (['status'], ['ls'], ['--help']):
        with open('/dev/full', 'wb') as full, spawn([ZKLOCK, *words], env=environment(b), stdout=full,
                                                    stderr=subprocess.PIPE, text=True) as process:
            err = process.communicate()[1]
        check_equal((process.returncode, err), (74, 'zklock: standard output: No space left on device\n'), f'{words}')


def pages():
    """The help, the page and the completion have the same options."""
    status, out, err = zklock(None, '--help')
    check_equal((status, err), (0, ''), '--help')
    check_equal([line for line in out.splitlines() if len(line) > 80], [], 'wider than 80 columns')
    options = set(re.findall(r'(?<![\w-])--?[a-zA-Z][\w-]*', '\n'.join(re.findall(r'^ +(-.*)', out, re.MULTILINE))))
    check(len(options) > 20, f'options: {options}')
    with open(os.path.join(SOURCE, '../../fs/pages/zklock.1.md'), encoding='utf-8') as page:
        lines = [line for line in page if line.startswith('- **-')]
    found = {option for line in lines for option in re.findall(r'\*\*(--?[\w-]+)\*\*', line)}
    check_equal(found, options, 'the page')
    with open(os.path.join(SOURCE, 'zklock.bash'), encoding='utf-8') as text:
        words = re.search(r"local options='(.*?)'", text.read(), re.DOTALL).group(1).split()
    check_equal(set(words), options, 'the completion of bash')
    with open(os.path.join(SOURCE, '_zklock'), encoding='utf-8') as text:
        words = re.findall(r"'(?:\([^)]*\))?(?:\{([^}]*)\})?'?(--?[\w-]+)?\[", text.read())
    check_equal({word for both in words for text in both for word in text.split(',') if word}, options, 'the completion of zsh')
    with open(os.path.join(SOURCE, 'zklock.fish'), encoding='utf-8') as text:
        rows = '\n'.join(line for line in text if line.startswith('complete -c zklock '))
    words = re.findall(r' -(?:s (\w)|l ([\w-]+))(?= )', rows)
    check_equal({'-' + short if short else '--' + long for short, long in words}, options, 'the completion of fish')
    with open(os.path.join(SOURCE_ROOT, 'meson.build'), encoding='utf-8') as meson:
        version = re.search(r"version: '(.*?)'", meson.read()).group(1)
    check_equal(zklock(None, '-V')[1], f'zklock {version}\n', '--version')


def complete(a, line):
    """What bash would put behind this line."""
    words = line.split(' ')
    script = '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _zklock; printf "%s\\n" "${COMPREPLY[@]}"'
    status, out, err = command(['bash', '--norc', '-c', script, 'bash', SOURCE + '/zklock.bash', *words],
                               env=environment(a))
    check_equal((status, err), (0, ''), line)
    return [line for line in out.split('\n') if line]


def by_fish(a, line):
    """What fish offers behind this line."""
    status, out, err = command(['fish', '--no-config', '-c', 'source $argv[1]; complete -C $argv[2]',
                                SOURCE + '/zklock.fish', line], env=environment(a))
    check_equal((status, err), (0, ''), line)
    return {line.split('\t')[0] for line in out.splitlines()}


def fish(a, b):
    evil = '$(touch ran)'
    for line, wanted in (
            ('zklock svc', {'svca', 'svcb'}),
            ('zklock -w 5s svca ', {evil, 'svca', 'svcb', '--'}),
            ('zklock ', {evil, 'svca', 'svcb', 'ls', 'why', 'history', 'status', 'evict'}),
            ('zklock svca/d', {'svca/deep'}),
            ('zklock wh', {'why'}), ('zklock ls svcb', {'svcb'}), ('zklock why svca ', set()), ('zklock status ', set()),
            ('zklock evict ', {evil, 'svca', 'svcb'}),
            ('zklock --ma', {'--make'}), ('zklock --make --mode 75', {'755'}), ('zklock --slots ', set()),
            (f'zklock -m {b.directory} svcb', {'svcb'}),
            ('zklock svca -- mkfif', {'mkfifo'})):
        found = by_fish(a if '-m' not in line else None, line)
        check_equal(found, wanted, f'fish: {line}')


def completion(a, b):
    evil = '$(touch ran)'
    a.mkdir(evil)
    for line, wanted in (
            ('zklock svc', ['svca', 'svcb']),
            ('zklock -w 5s svca svcb ', ['\\$\\(touch\\ ran\\)', 'svca', 'svcb', '--']),
            ('zklock svca/d', ['svca/deep']),
            ('zklock wh', ['why']),
            ('zklock ls svcb', ['svcb']),
            ('zklock ls ', ['\\$\\(touch\\ ran\\)', 'svca', 'svcb']),
            ('zklock why svca ', []),
            ('zklock why -', ['-m', '--mount', '-s', '--shared']),
            ('zklock hi', ['history']),
            ('zklock history svcb', ['svcb']),
            ('zklock stat', ['status']),
            ('zklock status ', []),
            ('zklock evict ', ['\\$\\(touch\\ ran\\)', 'svca', 'svcb']),
            ('zklock --at', ['--at-most', '--at-least']),
            ('zklock --mak', ['--make']), ('zklock --make --slots 3 svca ', ['\\$\\(touch\\ ran\\)', 'svca', 'svcb', '--']),
            ('zklock --make --mode 75', ['755']),
            ('zklock --ah', ['--ahead']), ('zklock --ahead 1 --ah', ['--ahead']), ('zklock --ahead ', []),
            (f'zklock -m {b.directory} svcb', ['svcb']),
            ('zklock evict svca h', ['holder']),
            ('zklock svca -- mkfif', ['mkfifo'])):
        environ = a if '-m' not in line else None
        check_equal(sorted(set(complete(environ, line))), sorted(wanted), line)
    holder = a.take('svca').held()
    check_equal(complete(a, 'zklock evict svca '), ['holder', *a.queue('svca')], 'entries')
    check_equal(by_fish(a, 'zklock evict svca '), {'holder', *a.queue('svca')}, 'entries, in fish')
    holder.release()


def only(b, *words):
    """Without `b`, and nothing says which mount is meant."""
    status, out, err = command(['unshare', '-m', 'sh', '-c', 'umount -l "$1"; shift; exec "$@"', 'sh', b.directory,
                                *words], env=environment())
    check_equal((status, err), (0, ''), f'{words}: {out}')
    return out


def mount_fake(case):
    """A filesystem that every user may mount; no server answers there. Its source is the mounter's text."""
    device = os.open('/dev/fuse', os.O_RDWR | os.O_CLOEXEC)
    fake = case.directory + '/fake'
    os.mkdir(fake)
    options = f'fd={device},rootmode=40000,user_id={ALICE},group_id={ALICE},allow_other'
    check(libc.mount(b'x,user_id=0,', fake.encode(), b'fuse.zklockfs', 0, options.encode()) == 0, 'a mount')
    return device, fake


def others_mount(a, b, device, fake):
    """Another user's is not looked at unless it is named."""
    only(b, ZKLOCK, 'ls')
    check_equal(only(b, 'bash', '-c', f'. {SOURCE}/zklock.bash; _zklock_mount'), a.directory, 'the only mount')
    os.close(device)
    check_equal(command(['umount', '-l', fake])[0], 0, 'umount')


def test(case):
    server = case.server()
    fake = mount_fake(case)
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    a.allow('.')
    b.allow('.')
    for name in ('svca', 'svcb', 'svca/deep'):
        a.mkdir(name, 0o755)
    gate = Gate(case)
    process = start(a, 'svca', '--', *gate.visitor())
    gate.arrived().let()
    process.communicate()
    queue(a, b)
    everything(a, b)
    why(a, b)
    long_queue(server, a, b)
    pages()
    others_mount(a, b, *fake)
    chains(a, b)
    gone(a)
    hidden(a)
    past(a, b)
    completion(a, b)
    fish(a, b)
    stopped(a, b)
    away(server, a)


run(test)
