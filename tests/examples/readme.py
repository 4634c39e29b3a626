#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the README prints is what happens: each block is replayed on two mounts, and its output compared but
for numbers and times, or another test runs it: ELSEWHERE. A block that no test knows fails. So do
a command and a file of its tables that are not there. And the tables of zklockfs(5) have the keys,
columns and metrics that a mount shows, no others."""

import os
import re
import shlex
import subprocess
import textwrap

from gate import Gate, check, check_equal, command, evict, queued, spawn, until
from harness import WAIT_SECONDS, ZKLOCKFS, run
from locking import BUILD, environment
from printed import BUSY, read, table
from terminals import Shell, shape, shows

README = read('README.md')
# What stands in the first line of a block, and why it is not run here.
ELSEWHERE = {
    'web1: cron': 'a drawing',
    'examples/demo': 'demo.py runs it; tests/debian/fresh runs both',
    'tests/run': 'the test that runs this one',
    "web1$ zklock -r 'nightly": 'demo.py compares it with what the demo prints',
    '0 3 * * *': 'states.py runs each line for crontab(5)',
    "echo 'OPTIONS=": 'tests/debian/ensemble runs these lines of zklockfs-guide(7)',
    'command exec': 'idioms.py runs it beside the same script of other pages',
}


def blocks():
    """The indented lines that stand together."""
    return [textwrap.dedent(text) for text in re.findall(r'(?:^ {4}.*\n)+', README, re.MULTILINE)]


def block(start):
    """The one that begins so."""
    text, = [text for text in blocks() if text.startswith(start)]
    return text


def rows(heading):
    """The first column of a table, and the rest."""
    table = README[README.index(f'\n{heading}\n'):].split('\n\n')[0]
    return [line.strip('| ').split(' | ', 1) for line in table.strip().splitlines()[2:]]


def words(text):
    """What is set as code."""
    return re.findall(r'`([^`]+)`', text)


def terminals(gate, mounts):
    """A prompt names the host; what follows it is its output. The third host, which only looks, is the second."""
    shells = {host: Shell(mount, gate) for host, mount in zip(('web1', 'web2', 'web3'), (*mounts, mounts[1]))}
    text = block('web1$ exec')
    waits = []
    for host, typed, output in re.findall(r'^(\w+)\$ (.*)\n((?:(?!\w+\$ ).*\n)*)', text, re.MULTILINE):
        shells[host].type(typed)
        if '# waits' in typed:
            queued(mounts[0], 'build', 2, 1)
            shows(mounts[0], 'build', 'reason=deploying v42')
            waits.append(host)
            continue
        busy = BUSY if typed.startswith('zklock why') else 0
        check_equal(shape(shells[host].said(busy)), shape(output), typed)
    check(waits, 'nobody has waited')
    for host in waits:
        check_equal(shells[host].said(), '', 'the one who waited')
        shows(mounts[0], 'build', f'host={host} ')
    for shell in shells.values():
        shell.end()
    queued(mounts[0], 'build', 0)


def install(case, server, mount):
    """The package is tests/debian's; here are the other lines."""
    build, install_it, mkdir, check_it, settings, enable, lock = block('fs/debian/build').splitlines()
    check(os.access(os.path.join(os.path.dirname(__file__), '../..', build.split()[0]), os.X_OK), build)
    package = build.split()[1]
    check(install_it.startswith(f'apt install {package}/zklockfs_') and 'copy the file there' in install_it, install_it)
    point = mkdir.split()[-1]
    servers = re.search(r'SERVERS=(\S+)\'', settings).group(1)
    check_equal(shlex.split(check_it, comments=True)[1:], ['--check', servers, point], 'what is checked')
    directory = case.mount_point()
    status, out, err = command([ZKLOCKFS, '--check', f'127.0.0.1:{server.port}/locks', directory])
    check(status == 0 and out.count('\n') > 5 and not err, f'{status} {out}{err}')
    unit = point.strip('/').replace('/', '-')
    check(f'/etc/zklockfs/{unit}.conf' in settings and f'--now zklockfs@{unit} ' in enable, unit)
    check_equal(command(['sh', '-c', lock.replace('/mnt/locks', mount.directory)]), (0, '', ''), lock)
    mode = os.stat(mount.path('nightly', 'lock')).st_mode
    check_equal(mode & 0o777, 0o600, 'the mode of nightly/lock: who may take it can keep root from the job of that lock, in silence')


def service(gate, a, b):
    start, *settings = block('ExecStart=').splitlines()
    check_equal(settings, ['Restart=always', 'RestartSec=5s', 'KillMode=mixed'], 'the settings')
    idiom = read('fs/pages', 'zklockfs-idioms.7.md')
    check('\n'.join([start, *settings]) in idiom, 'the service of zklockfs-idioms(7)')
    program = start.split()[-1]
    gate.tool('run-scheduler', gate_words(gate, 'scheduler'))
    a.mkdir('scheduler')
    line = start.split('=', 1)[1].replace('/usr/bin/zklock', f'{BUILD}/zklock').replace(program, 'run-scheduler')
    environ = environment(a, PATH=f'{gate.tools}:{os.environ["PATH"]}')
    first, second = (spawn(shlex.split(line), env=environ, stdin=subprocess.DEVNULL, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2))
    for _ in (first, second):
        visitor = gate.arrived('scheduler')
        gate.nobody('one works, the other stands by')
        shows(b, 'scheduler', 'reason=leader')
        visitor.let(0)
    for process in (first, second):
        check_equal(process.communicate(timeout=WAIT_SECONDS), ('', ''), 'the service')


def gate_words(gate, name):
    return 'exec ' + ' '.join(map(shlex.quote, gate.visitor(name)))


def deploy(gate, a):
    line = block('zklock -w').strip()
    for lock in re.search(r"'deploy v42' (.*) --", line).group(1).split():
        a.mkdir(lock)
    gate.tool('make', gate_words(gate, 'make'))
    environ = environment(a, PATH=f'{gate.tools}:{BUILD}:{os.environ["PATH"]}')
    process = spawn(['sh', '-c', line], env=environ, stdin=subprocess.DEVNULL, text=True,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    visitor = gate.arrived('make')
    shows(a, 'svcb', 'reason=deploy v42')
    visitor.let(0)
    check_equal((process.communicate(timeout=WAIT_SECONDS), process.returncode), (('', ''), 0), line)


def semaphore(gate, a):
    line = block('zklock --make').strip()
    slots = int(re.search(r'--slots (\d+)', line)[1])
    gate.tool('simulate', gate_words(gate, 'simulate'))
    environ = environment(a, PATH=f'{gate.tools}:{BUILD}:{os.environ["PATH"]}')
    jobs = [spawn(['sh', '-c', line], env=environ, stdin=subprocess.DEVNULL) for _ in range(slots + 1)]
    inside = [gate.arrived('simulate') for _ in range(slots)]
    gate.nobody('one more than there are slots')
    inside.pop().let(0)
    for visitor in (*inside, gate.arrived('simulate')):
        visitor.let(0)
    check_equal([job.wait(WAIT_SECONDS) for job in jobs], [0] * len(jobs), line)


def python(a, b):
    """It holds while it deploys; it hears of a loss, and that nothing is mounted."""
    text = block('with open').replace('/mnt/locks', a.directory)

    def holds(token):
        check(f'token={token} ' in a.read('build', 'holder'), 'it holds')

    def loses(_):
        evict(b, 'build')
        queued(b, 'build', 0)

    exec(text, {'deploy': holds})
    local = text.replace(f'{a.directory}/build/lock', '/dev/null')
    for what, program, wrong in ((loses, text, OSError), (holds, local, ValueError)):
        try:
            exec(program, {'deploy': what})
        except wrong:
            continue
        raise AssertionError(f'no {wrong.__name__}')
    queued(b, 'build', 0)


def files(a):
    for names, _ in rows('| file in a lock\'s directory | what it does |'):
        for name in words(names):
            # A lock file with a time is not listed; looking at it takes nothing.
            os.stat(a.path('build', name))


def at_three(a):
    """Each question has a command that answers it."""
    taker = a.take('build').held()
    run_ones = []
    for _, answer in rows('| question | command |'):
        for text in words(answer):
            if text.startswith('zklockfs '):
                status, out, err = command([ZKLOCKFS, *text.replace('/mnt/locks', a.directory).split()[1:]])
                check(status == 0 and 'the mount runs with these options' in out, f'{text}: {status} {out}{err}')
                run_ones.append('--check')
            if not text.startswith('zklock ') and text != 'zklocktop':
                continue
            text = text.replace('LOCK', 'build') + (' -V' if text == 'zklocktop' else '')
            status, out, err = command(['sh', '-c', text], env=environment(a))
            check(status == (BUSY if ' why ' in text else 0) and out, f'{text}: {status} {out}{err}')
            run_ones.append(text.split()[1])
    check_equal(run_ones, ['why', 'ls', '-V', 'history', 'status', 'evict', '--check'], 'what was run')
    taker.state()
    until(lambda: a.queue('build') == [], 'the evicted entry goes')
    taker.kill()


def names(heading):
    """What the table, or the list, below that heading of zklockfs(5) explains."""
    part = read('fs/pages/zklockfs.5.md').split(f'\n### {heading}\n')[1].split('\n#')[0]
    cells = re.findall(r'^- \*\*(.*)\*\*\\$', part, re.MULTILINE) or [row[0] for row in table('fs/pages/zklockfs.5.md', heading)]
    return {name for cell in cells for name in re.split('[,;] ', cell)}


def reference(a):
    """What zklockfs(5) says of the files that tell."""
    check_equal(names('.zklockfs/status'), set(a.status()), 'keys of status')
    shown = set(re.findall(r'^# TYPE zklockfs_(\w+)', a.read('.zklockfs', 'metrics'), re.MULTILINE))
    check_equal(names('.zklockfs/metrics'), shown, 'metrics')
    for name in ('locks', 'history'):
        check_equal(names(f'.zklockfs/{name}'), set(a.read('.zklockfs', name).split('\n')[0].split()), name)
    taker = a.take('build').held()
    check_equal(names('queue/'), set(a.fields('build', 'queue', *a.queue('build'))), 'keys of an entry')
    taker.release()
    check_equal(set(os.listdir(a.path('.zklockfs'))),
                set(re.findall(r'^### \.zklockfs/(\w+)$', read('fs/pages', 'zklockfs.5.md'), re.MULTILINE)), 'files')


def test(case):
    unknown = [text for text in blocks() if not any(text.strip().startswith(start) for start in (
        'web1$ exec', 'fs/debian/build', 'ExecStart=', 'zklock -w', 'zklock --make', 'with open', *ELSEWHERE))]
    check(not unknown, f'blocks that no test knows: {unknown}')
    server = case.server()
    web1, web2 = case.mount(server, 'web1'), case.mount(server, 'web2')
    gate = Gate(case)
    web1.mkdir('build')
    until(lambda: 'build' in web2.locks(), 'both see the lock')
    terminals(gate, (web1, web2))
    install(case, server, web1)
    service(gate, web1, web2)
    deploy(gate, web1)
    semaphore(gate, web1)
    python(web1, web2)
    files(web1)
    reference(web1)
    at_three(web1)


run(test)
