#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""zklockfs-ensemble(7) from its first line to its last: each command is copied from what man(1) shows. The release archive is a
stand-in, with Debian's server in it; the three hosts are three directories, and three addresses of a network namespace.
What is held stays held when the servers restart, are upgraded, and when one is replaced."""

import os
import re
import shutil
import socket
import subprocess
import sys
import types

from gate import EXAMPLES, Gate, check, check_equal, command
from harness import ZKLOCKFS, ZOOKEEPER_JARS, libc, run, spawn, until
from printed import indented, shown

PAGE, PRINTED = 'fs/pages/zklockfs-ensemble.7.md', '3.9.4'
NAMES = ('zk1', 'zk2', 'zk3')
CLONE_NEWNET = 0x40000000
USER = 1005
# What systemd does for one host, by its unit.
SYSTEMCTL = '''
case $1 in stop|restart)
    pid=$(cat "$ROOT/pid")
    kill "$pid"
    while readlink -q "/proc/$pid/exe" >/dev/null; do sleep 0.05; done
esac
case $1 in start|restart)
    set -f
    setpriv --reuid=zookeeper --regid=zookeeper --clear-groups \\
        $(sed -n 's/^ExecStart=//p' "$ROOT/etc/systemd/system/zookeeper.service") </dev/null >>"$ROOT/log" 2>&1 &
    echo $! >"$ROOT/pid"
esac
'''


def block(start):
    text, = [text for text in indented(shown(PAGE)) if text.startswith(start)]
    return text


class Host:
    def __init__(self, case, gate, number):
        self.number, self.name, self.root = number, NAMES[number - 1], f'{case.directory}/host{number}'
        self.work = case.directory + '/work'
        self.environ = {**os.environ, 'ROOT': self.root,
                        'PATH': f'{gate.tools}:{os.path.dirname(ZKLOCKFS)}:{os.environ["PATH"]}'}

    def done(self, text):
        """What is typed on this host; what it prints."""
        status, out, err = command(['bash', '-e', '-c', text], env=self.environ, cwd=self.work)
        check_equal((status, ''.join(line for line in err.splitlines(True) if 'warning: ' not in line and not line.startswith('waits: '))), (0, ''), text)
        return out

    def install(self, version):
        os.makedirs(self.root, exist_ok=True)
        out = self.done(block('./install').replace(PRINTED, version).replace(' 1 ', f' {self.number} '))
        with open(self.root + '/etc/systemd/system/zookeeper.service', encoding='utf-8') as unit:
            started = re.search(r'^ExecStart=(.*)$', unit.read(), re.MULTILINE)[1]
        check_equal(out.splitlines()[-1], started, 'what starts the server')
        check_equal(os.readlink(self.root + '/opt/zookeeper/current'), f'apache-zookeeper-{version}-bin', 'the program')
        return out

    def mode(self):
        """leader or follower, as soon as it is."""
        return self.done(f'./status -w {self.name}').split()[2]


def release(case, version):
    """An archive, its checksum and its signature."""
    top, work = f'apache-zookeeper-{version}-bin', case.directory + '/work'
    for part in ('lib', 'conf', 'bin'):
        os.makedirs(f'{work}/{top}/{part}')
    for jar in ZOOKEEPER_JARS.split(':'):
        shutil.copy(jar, f'{work}/{top}/lib/')
    for text in (f'tar -czf {top}.tar.gz {top}', f'rm -r {top}', f'sha512sum {top}.tar.gz >{top}.tar.gz.sha512',
                 f'gpg -q --batch --passphrase "" --armor --detach-sign {top}.tar.gz'):
        check_equal(command(['sh', '-c', text], cwd=work)[0], 0, text)


def signed(case, version):
    """The reader's own key ring does not have the key."""
    work = case.directory + '/work'
    for text in ('gpg -q --batch --passphrase "" --quick-gen-key releases@example.org ed25519 sign never',
                 'gpg -q --armor --export >KEYS'):
        check_equal(command(['sh', '-c', text], cwd=work)[0], 0, text)
    release(case, version)
    os.environ['GNUPGHOME'] = case.directory + '/gnupg2'
    os.mkdir(os.environ['GNUPGHOME'], 0o700)
    text = block('sha512sum').replace(PRINTED, version)
    status, out, err = command(['sh', '-e', '-c', text], cwd=work)
    check(status == 0 and out.endswith(': OK\n') and 'Good signature' in err, f'{text}: {out}{err}')
    with open(f'{work}/apache-zookeeper-{version}-bin.tar.gz', 'ab') as file:
        file.write(b'x')
    check(command(['sh', '-e', '-c', text], cwd=work)[0] != 0, 'another archive is refused')
    with open(f'{work}/apache-zookeeper-{version}-bin.tar.gz', 'r+b') as file:
        file.truncate(os.path.getsize(file.name) - 1)
    os.environ['GNUPGHOME'] = case.directory + '/gnupg'


def permissions(host):
    for path, mode, uid in (('var/lib/zookeeper', 0o750, USER), ('etc/zookeeper/zoo.cfg', 0o644, 0),
                            ('opt/zookeeper', 0o755, 0), ('etc/systemd/system/zookeeper.service', 0o644, 0)):
        found = os.stat(f'{host.root}/{path}')
        check_equal((found.st_mode & 0o777, found.st_uid), (mode, uid), path)


def mistakes(host, version):
    archive = f'apache-zookeeper-{version}-bin.tar.gz'
    for words, said in ((f'{archive} 1 zk1 zk2', 'an even number'), (f'{archive} 1 zk1', 'name three'),
                        (f'{archive} 4 zk1 zk2 zk3', 'NUMBER'), (f'{archive} x zk1 zk2 zk3', 'NUMBER'),
                        ('none.tar.gz 1 zk1 zk2 zk3', 'no archive'), (f'{archive} 2 zk1 zk2 zk3', 'is that of server 1')):
        status, _, err = command(['bash', '-c', './install ' + words], env=host.environ, cwd=host.work)
        check(status == 1 and said in err, f'{words}: {status} {err}')


def silent(host):
    """Something takes the connection, and no server answers."""
    with socket.create_server(('127.0.2.1', 2181)):
        check_equal(command(['./status', 'zk1'], env=host.environ, cwd=host.work), (1, 'zk1 - no answer within 2 s\n', ''), 'status')


def alone(host):
    """One server of three runs."""
    text = block('./status').replace('-w ', '')

    def said():
        status, out, err = command(['sh', '-c', text], env=host.environ, cwd=host.work)
        lines = out.splitlines()
        return (status, err, lines[2]) == (1, '', 'zk3 - Connection refused') and 'zk1 - runs, and has no quorum' in lines
    until(said, 'a server without a quorum, and one that does not run')
    # Who waits for a server is told what it does.
    waits = spawn(['./status', '-w', 'zk3'], env=host.environ, cwd=host.work, stderr=subprocess.PIPE, text=True)
    check_equal(waits.stderr.readline(), 'waits: zk3 - Connection refused\n', 'status -w')
    waits.kill()
    waits.communicate()


def checked(host, point):
    """Nothing is wrong, and no risk but the version of Debian's server, and that no package is installed."""
    text = block('zklockfs --check').replace('/mnt/locks', point)
    out = command(['sh', '-c', text], env=host.environ)[1]
    check(out.count('\nok ') > 3 and out.count('tickTime 2000 ms, sessions of 4000 to 40000 ms') == 3, out)
    bad = [line for line in out.splitlines() if not line.startswith('ok ') and
           'can forget answered writes' not in line and 'no zklockfs@.service is installed' not in line]
    check_equal(bad, [], f'{text}: {out}')


def restarted(hosts, version, holder, token):
    """One after the other, the leader last."""
    for host in sorted(hosts, key=lambda host: host.mode() == 'leader'):
        out = host.install(version)
        check('zoo.cfg is there, and stays as it is' in out, out)
        host.done(block('systemctl restart').replace('zk1', host.name))
        check_equal(holder.token(), token, f'{host.name} was restarted')


def replaced(host, version, holder, token):
    host.done('systemctl stop zookeeper')
    shutil.rmtree(host.root)
    host.install(version)
    host.done('systemctl start zookeeper')
    check_equal(host.mode(), 'follower', 'the new server')
    check_equal(holder.token(), token, 'a server was replaced')


def restored(hosts):
    data = f'{hosts[0].root}/var/lib/zookeeper'
    hosts[0].done(block('tar -C /var/lib/zookeeper -czf').replace('/var/lib/zookeeper', data))
    for host in hosts:
        host.done('systemctl stop zookeeper')
    for host in hosts:
        shutil.rmtree(f'{host.root}/var/lib/zookeeper/version-2')
        host.done(block('tar -C /var/lib/zookeeper -xzf').replace('/var/lib/zookeeper', f'{host.root}/var/lib/zookeeper'))
        host.done('systemctl start zookeeper')
    hosts[0].done(block('./status'))


def ensemble(case, gate, hosts, mount):
    a = mount('a')
    a.mkdir('build')
    holder = a.take('build').held()
    with open(a.path('build', 'slots'), 'w', encoding='ascii') as slots:
        slots.write('1')
    token = holder.token()
    waiter = a.take('build')
    release(case, '3.8.1')
    restarted(hosts, '3.8.1', holder, token)
    replaced(next(host for host in hosts if host.mode() == 'follower'), '3.8.1', holder, token)
    check_equal(a.status()['sessions'], '1', 'sessions')
    check(not waiter.answered(), 'the waiter waits')
    holder.release()
    waiter.held().do('write', b'v42')
    with open(a.path('build', 'slots'), 'w', encoding='ascii') as slots:
        slots.write('5')
    waiter.release()
    until(lambda: not a.queue('build'), 'the lock is free')
    a.unmount()
    restored(hosts)
    b = mount('b')
    check_equal(b.read('build', 'slots'), '5\n', 'slots, from the backup')


def test(case):
    check(libc.unshare(CLONE_NEWNET) == 0, 'a network of its own')
    check_equal(command(['ip', 'link', 'set', 'lo', 'up'])[0], 0, 'ip link')
    case.hosts(''.join(f'127.0.2.{number} {name}\n' for number, name in enumerate(NAMES, 1)))
    case.instead('/etc/passwd', f'root:x:0:0::/root:/bin/sh\nzookeeper:x:{USER}:{USER}::/:/bin/sh\n')
    case.instead('/etc/group', f'root:x:0:\nzookeeper:x:{USER}:\n')
    os.environ.update(GNUPGHOME=case.directory + '/gnupg', HOME=case.directory)
    os.mkdir(os.environ['GNUPGHOME'], 0o700)
    shutil.copytree(EXAMPLES + '/ensemble', case.directory + '/work')
    gate = Gate(case)
    gate.tool('systemctl', SYSTEMCTL)
    case.cleanups.callback(command, ['gpgconf', '--kill', 'gpg-agent'])
    signed(case, '3.8.0')
    hosts = [Host(case, gate, number) for number in (1, 2, 3)]
    silent(hosts[0])
    try:
        for host in hosts:
            host.install('3.8.0')
            if host is hosts[1]:
                alone(hosts[0])
            host.done('systemctl start zookeeper')
        permissions(hosts[0])
        mistakes(hosts[0], '3.8.0')
        check_equal(sorted(line.split()[2] for line in hosts[0].done(block('./status')).splitlines()),
                    ['follower', 'follower', 'leader'], 'an ensemble')
        checked(hosts[0], case.mount_point())
        ensemble(case, gate, hosts, lambda name: case.mount(types.SimpleNamespace(tick_ms=2000, port=0), name,
                                                            servers='zk1,zk2,zk3'))
    except BaseException:
        for host in hosts:
            with open(host.root + '/log', encoding='utf-8', errors='replace') as log:
                print(host.name, log.read()[-4000:], file=sys.stderr)
        raise


run(test)
