#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`zklockfs --check` says of each thing that a mount needs whether it is right, as root and as
another user, and ends with 32 if a mount would fail. It leaves nothing behind."""

import contextlib
import os
import re
import select
import signal
import socket
import stat
import subprocess
import threading
import time

from harness import (ALICE, CRASHES, NOBODY, ZKLOCKFS, besides_usual, check, check_equal, command, libc, refused, run,
                     set_immutable, spawn, state_of, until, without_pidfd)

WORDS = '4lw.commands.whitelist=srvr,mntr,cons'
NO_QUORUM = b'This ZooKeeper instance is not currently serving requests\n'


class Checks:
    def __init__(self, case):
        self.case = case

    def says(self, status, words, *args, lines=(), never=(), user=None):
        """`words`: the beginnings of lines, which are all there are, in this order, but that servers answer in any;
        and further `lines`."""
        options = {'user': user, 'group': user, 'extra_groups': ()} if user else {}
        program = self.program if user else ZKLOCKFS
        got, out, err = command([program, '--check', *args], **options)
        what = f'zklockfs --check {" ".join(args)}: {out}{err}'
        check_equal((got, err), (status, ''), what)
        found = [line for line in out.splitlines() if not line[7:].startswith(('/dev/fuse', 'clocks', 'mount point', 'on_lost', 'unit'))]
        check_equal(len(found), len(words), what)
        servers = [start[7:].startswith('server ') for start in words + ['']].index(False)
        found[:servers], words[:servers] = sorted(found[:servers]), sorted(words[:servers])
        for line, start in zip(found, words):
            check(line.startswith(start), f'{line!r} and not {start!r} in {what}')
        for typical, longest in re.findall(r'a write takes ([\d.]+) ms, the longest of \d+ took ([\d.]+) ms', out):
            check(0 < float(typical) <= float(longest), what)
        for line in lines:
            check(line in out, f'no {line!r} in {what}')
        for line in never:
            check(line not in out, f'{line!r} in {what}')


def fake(answer):
    """A server that answers everything so, and closes; None: that answers nothing."""
    listener = socket.create_server(('127.0.0.1', 0))

    def serve():
        kept = []
        while True:
            conn = listener.accept()[0]
            kept.append(conn)
            if answer is not None:
                conn.recv(4)
                conn.sendall(answer)
                conn.shutdown(socket.SHUT_WR)
    threading.Thread(target=serve, daemon=True).start()
    return f'127.0.0.1:{listener.getsockname()[1]}'


def turns_away():
    """A server that answers each word, and takes no client: it has too many of this host."""
    listener = socket.create_server(('127.0.0.1', 0))
    answers = {b'srvr': b'Zookeeper version: 3.9.4\nMode: follower\n', b'conf': b'tickTime=2000\n'}

    def serve():
        while True:
            with listener.accept()[0] as conn:
                conn.sendall(answers.get(conn.recv(4), b''))
    threading.Thread(target=serve, daemon=True).start()
    return f'127.0.0.1:{listener.getsockname()[1]}'


def asking(group):
    """Its processes that ask servers: all but the first, which may be stopped by a sanitizer at its end."""
    found = set()
    for pid in map(int, filter(str.isdigit, os.listdir('/proc'))):
        with contextlib.suppress(OSError):
            if os.getpgid(pid) == group != pid and state_of(pid) not in ('Z', None):
                found.add(pid)
    return found


def signal_all(pids, number):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def start_check(address):
    return spawn([ZKLOCKFS, '--check', address], stdout=subprocess.PIPE, text=True, start_new_session=True)


def stopped_meanwhile():
    """What it says of a server that does not answer is the same after Ctrl-Z and fg."""
    with socket.create_server(('127.0.0.1', 0)) as listener:
        address = f'127.0.0.1:{listener.getsockname()[1]}'
        process = start_check(address)
        with listener.accept()[0] as conn:
            check_equal(conn.recv(4), b'srvr', 'what it asks')
            # Again and again: the time that it gives the server does not begin anew.
            while not select.select([conn], [], [], 0.2)[0]:
                pids = asking(process.pid)
                signal_all(pids, signal.SIGSTOP)
                until(lambda pids=pids: all(state_of(pid) in ('T', 'Z', None) for pid in pids), 'they are stopped')
                signal_all(pids, signal.SIGCONT)
            out = process.communicate()[0]
    check(f'wrong  server {address}: takes the connection and does not answer\n' in out, out)


def wants_to_connect(port):
    with open('/proc/net/tcp', encoding='ascii') as stream:
        return f':{port:04X} 02 ' in stream.read()     # SYN_SENT, proc_net_tcp(5)


def connects_late():
    """A connection that is made while the asking process is stopped is one: then the server has its time."""
    with socket.create_server(('127.0.0.1', 0), backlog=0) as listener:
        port = listener.getsockname()[1]
        address = f'127.0.0.1:{port}'
        with socket.create_connection(listener.getsockname()):    # the queue of the listener is full
            process = start_check(address)
            until(lambda: wants_to_connect(port), 'it wants to connect')
            pids = asking(process.pid)
            signal_all(pids, signal.SIGSTOP)
            stopped = time.monotonic()
            listener.accept()[0].close()
            with listener.accept()[0] as conn:
                while time.monotonic() < stopped + 3.1:    # PROBE_ANSWER_S
                    time.sleep(0.1)
                signal_all(pids, signal.SIGCONT)
                check_equal(conn.recv(4), b'srvr', 'what it asks')
                conn.sendall(NO_QUORUM)
            out = process.communicate()[0]
    check(f'wrong  server {address}: does not serve now' in out, out)


def killed_meanwhile():
    """A server of which nothing was heard is not passed over."""
    with socket.create_server(('127.0.0.1', 0)) as listener:
        process = start_check(f'127.0.0.1:{listener.getsockname()[1]}')
        with listener.accept()[0] as conn:
            check_equal(conn.recv(4), b'srvr', 'what it asks')
            signal_all(asking(process.pid), signal.SIGKILL)
            out = process.communicate()[0]
    check('wrong  servers: not all could be asked' in out, out)
    check_equal(process.returncode, 32, 'its status')


def strangers(checks):
    """What a client meets where no ZooKeeper server can be used."""
    for answer, text in ((b'', 'closes the connection: is it a port for TLS'),
                         (b'\x15\x03\x03\x00\x02\x02\x46', 'is a port for TLS, see zklockfs-tls(7)'),
                         (b'SSH-2.0-OpenSSH_9.2\r\n', 'no ZooKeeper server answers there'),
                         (b'HTTP/1.1 400 Bad Request\r\n\r\n', 'no ZooKeeper server answers there'),
                         (NO_QUORUM, 'does not serve now: too few'),
                         (None, 'takes the connection and does not answer')):
        address = fake(answer)
        checks.says(32, [f'wrong  server {address}: {text}'], address)
    address = turns_away()
    checks.says(32, [f'ok     server {address}: ZooKeeper 3.9.4, follower', 'risk   quorum: only one server is named', 'ok     tickTime',
                     f'risk   server {address}: does not show whether it is of the ensemble', f'wrong  no ZooKeeper server answered at {address} within 10000 ms'], address)
    stopped_meanwhile()
    connects_late()
    killed_meanwhile()
    checks.says(32, ['wrong  server 127.0.0.1:9: Connection refused'], '127.0.0.1:9')
    checks.says(32, ["wrong  none of the servers in 'nosuch.invalid' has an address: nosuch.invalid: "], 'nosuch.invalid')


def settings(checks, server, source):
    version = server.ask('srvr').split()[2].split('-')[0].rstrip(',')
    old = tuple(map(int, version.split('.'))) < (3, 9, 4)
    first = f'{"risk " if old else "ok   "}  server {source}: ZooKeeper {version}, standalone'
    alone = 'risk   quorum: one server'
    tick = 'ok     tickTime: 2000 ms, known by the servers\' limits of sessions'
    session = f'ok     session: 15000 ms are granted by {source}'
    absent = 'ok     root: there is no /locks: the first mount makes it'
    checks.says(0, [first, alone, tick, session, absent], source,
                lines=[', sessions of 4000 to 40000 ms'] + ['can forget answered writes'] * old)
    checks.says(32, [first, alone, tick,
                     f'wrong  server {source}: sessions of 40000 ms at most, and 600000 ms are asked for: lower session_timeout',
                     'risk   session: 40000 ms are granted, and 600000 ms asked for', absent],
                '-o', 'session_timeout=10m', source)
    checks.says(32, [first, alone, tick, 'wrong  the ensemble grants a session of 6000 ms; with a tick of 2000 ms the lease needs 8000 ms at least', absent],
                '-o', 'session_timeout=6s,on_lost=term', source)
    checks.says(0, [first, alone, 'ok     tickTime: 3000 ms, known by -o tick_time=', session, absent],
                '-o', 'tick_time=3s', source)
    checks.says(32, ['risk   server 127.0.0.1:9: Connection refused', first, 'wrong  quorum: a server is standalone',
                     tick, session, absent], '127.0.0.1:9,' + source)

    limits = checks.case.server(config=f'{WORDS}\nminSessionTimeout=5000')
    checks.says(0, [first.split(' server')[0], alone, 'risk   tickTime: not known, 2500 ms is taken', 'ok', 'ok'],
                f'127.0.0.1:{limits.port}')
    longer = checks.case.server(config='minSessionTimeout=20000')
    checks.says(0, [first.split(' server')[0], alone, 'ok     tickTime: 2000 ms',
                    f'risk   server 127.0.0.1:{longer.port}: sessions of 20000 ms at least, and 15000 ms are asked for',
                    'risk   session: 20000 ms are granted', 'ok'], f'127.0.0.1:{longer.port}')
    longer.stop()
    shorter = checks.case.server(tick_ms=200, config='maxSessionTimeout=4000')
    checks.says(32, [first.split(' server')[0], alone, 'ok     tickTime: 2000 ms',
                     f'wrong  server 127.0.0.1:{shorter.port}: sessions of 4000 ms at most: two may hold a lock',
                     'wrong  the ensemble grants a session of 4000 ms; ', 'ok'], f'127.0.0.1:{shorter.port}')
    shorter.stop()
    few = checks.case.server(config='maxClientCnxns=2')
    checks.says(0, ['risk   server', alone, 'ok     tickTime: 2000 ms, known by the servers', 'ok', 'ok'],
                f'127.0.0.1:{few.port}', lines=['maxClientCnxns 2'])
    few.stop()
    limits.stop()


def roots(checks, server, source):
    front = ['', '', 'ok     tickTime', 'ok     session']
    server.zk.create('/locks')
    written = [*front, 'ok     root: /locks is there, and may be written', 'ok     a write takes ']
    checks.says(0, written, source)
    server.zk.create('/locks/.zklockfs')
    checks.says(0, written, source)
    checks.says(32, [*front, 'wrong  there is no /elsewhere in the ensemble: is it misspelt? For a new tree: -o mkroot'], source + '/elsewhere')
    checks.says(0, [*front, 'ok     root: there is no /elsewhere: the first mount'], '-o', 'mkroot', source + '/elsewhere')
    server.zk.create('/gone', ephemeral=True)
    checks.says(32, [*front, 'wrong  /gone is an ephemeral node: it cannot hold locks'], source + '/gone')

    secret = checks.case.directory + '/secret'
    with open(secret, 'w', encoding='ascii') as file:
        file.write('user:password\n')
    os.chmod(secret, 0o600)
    mine = server.client('user:password')
    mine.create('/private', acl=[(31, 'auth', '')])
    checks.says(32, [*front, 'wrong  the ensemble does not let us write below /private, and no credentials are given'], source + '/private')
    checks.says(0, [*front, 'ok     root: /private is there, and may be written with', 'ok     a write'],
                '-o', 'credentials=' + secret, source + '/private')


def refused_alike(checks, source):
    """What a start refuses --check refuses, in the same words."""
    point = checks.case.mount_point()
    plain = checks.case.directory + '/plain'
    with open(plain, 'w', encoding='ascii'):
        pass
    for args in ((source + '/elsewhere', point), (source + '/gone', point), (source + '/private', point),
                 ('nosuch.invalid', point), ('-o', 'session_timeout=6s,on_lost=term', source, point),
                 (source, plain), (source, '/'), (source, point + '/x')):
        status, _, err = command([ZKLOCKFS, '-o', 'noprotect', *args])
        words = err.splitlines()[-1].removeprefix('zklockfs: ').removeprefix(args[-1] + ': ')
        check(status == 32 and len(words) > 10, f'{args}: {status}, {err}')
        got, out, _ = command([ZKLOCKFS, '--check', *args])
        check(got == 32 and any(line.startswith('wrong') and line.endswith(words) for line in out.splitlines()),
              f'{args}: no {words!r} in {out}')


def mount_points(checks, source):
    def at(point, status, line, *args, user=None):
        got, out, _ = command([checks.program if user else ZKLOCKFS, '--check', *args, source, point],
                              **({'user': user, 'group': user, 'extra_groups': ()} if user else {}))
        check(line in out, f'no {line!r} for {point}: {out}')
        if status is not None:
            check_equal(got, status, out)

    point = checks.case.mount_point()
    at(point, 0, 'ok     mount point: empty; a mount makes it unusable')
    at(point, 0, 'risk   mount point: files can be made there', '-o', 'noprotect')
    status, out, err = command(refused([ZKLOCKFS, '--check', source, point], ['statx']))
    check(status == 0 and 'ok     mount point: empty;' in out, f'without statx(2): {status}, {out}{err}')
    check(not set_immutable(point, False), 'it was changed')
    check_equal(besides_usual(command([ZKLOCKFS, source, point])), (0, '', ''), 'the mount')
    at(point, 0, 'ok     mount point: zklockfs is mounted there, state: ready; a start is refused until it is unmounted\n')
    at(point, 0, clocks(point))
    # What only a new mount needs: not of a mount that serves. A user may neither open the device nor let others in.
    os.chmod(checks.case.directory, 0o711)
    device = checks.case.directory + '/fuse'
    os.mknod(device, stat.S_IFCHR | 0o600, os.stat('/dev/fuse').st_rdev)
    check_equal(command(['mount', '--bind', device, '/dev/fuse'])[0], 0, 'a device for root')
    for servers in [], [source]:    # with servers, options are told; they are not compared with another user's
        got, out, _ = command([checks.program, '--check', *servers, point], user=NOBODY, group=NOBODY, extra_groups=())
        check(got == 0 and '/fuse' not in out and 'state: ready' in out and ' and not ' not in out, f'{got}, {out}')
    at(checks.case.mount_point(), 32, 'wrong  /dev/fuse: Permission denied', user=NOBODY)
    check_equal(command(['umount', '/dev/fuse'])[0], 0, 'umount')
    daemons = checks.case.daemons()
    for pid in daemons:
        os.kill(pid, signal.SIGSTOP)
    at(point, 32, 'wrong  mount point: what is mounted there does not answer within 10 s: it is stopped (SIGCONT), or hangs')
    status, out, err = command(without_pidfd([ZKLOCKFS, '--check', source, point]))
    check(status == 32 and 'what is mounted there does not answer' in out, f'without pidfd_open(2): {status}, {out}{err}')
    for pid in daemons:
        os.kill(pid, signal.SIGCONT)
    until(lambda: 'state: ready' in command([ZKLOCKFS, '--check', source, point])[1], 'it goes on')
    status, out, err = command(without_pidfd([ZKLOCKFS, '--check', source, point]))
    check(status == 0 and 'state: ready' in out and 'does not answer' not in out, f'without pidfd_open(2): {status}, {out}{err}')
    below = 'the directory below the mount'
    check(below not in command([ZKLOCKFS, '--check', point])[1], 'what nobody can use')
    set_immutable_below(point, False)
    at(point, 0, f'risk   mount point: files can be made in {below}')
    with open(under(point) + '/file', 'w', encoding='ascii'):
        pass
    out = command([ZKLOCKFS, '--check', point])[1]
    check(f'risk   mount point: {below} is not empty' in out, out)
    os.unlink(under(point) + '/file')
    set_immutable_below(point, True)
    check_equal(libc.umount2(os.fsencode(point), 0), 0, 'umount')
    until(lambda: not checks.case.daemons(), 'the daemon ends')
    at(point, 0, 'ok     mount point: nobody can make files there')
    at(point + '/x', 32, f'wrong  mount point: {point}/x: No such file')
    at('/', 32, 'wrong  mount point: a mount there can be neither seen')

    dash = checks.case.mount_point() + '/zk-locks'
    os.mkdir(dash)
    name = dash.strip('/').replace('-', '\\x2d').replace('/', '-')
    units = [f'{place}/systemd/system/zklockfs@.service' for place in ('/etc', '/run', '/usr/local/lib', '/usr/lib', '/lib')]
    if not any(map(os.path.exists, units)):
        at(dash, 0, 'risk   unit: no zklockfs@.service is installed')
    os.makedirs(checks.case.directory + '/lib/systemd/system')
    with open(checks.case.directory + '/lib/systemd/system/zklockfs@.service', 'w', encoding='ascii'):
        pass
    check_equal(command(['mount', '--bind', checks.case.directory + '/lib', '/usr/local/lib'])[0], 0, 'a unit')
    at(dash, 0, f"ok     unit: systemctl enable --now 'zklockfs@{name}', with its settings in "
                f"/etc/zklockfs/{name.replace(chr(92), '')}.conf")
    check_equal(command(['umount', '/usr/local/lib'])[0], 0, 'umount')

    mine = checks.case.mount_point()
    os.chown(mine, ALICE, ALICE)
    at(mine, None, 'risk   mount point: files can be made there', user=ALICE)
    at(mine, 0, "risk   mount point: it is another user's")
    os.mkdir(mine + '/build')
    at(mine, 0, 'risk   mount point: it is not empty')
    at(mine, None, '/etc/fuse.conf', '-o', 'allow_other', user=ALICE)


def units(checks, source):
    """The settings of a unit, and where its name stands for its mount point."""
    point, etc = checks.case.mount_point(), checks.case.directory + '/etc'
    check_equal(command(['cp', '-a', '/etc', etc])[0], 0, 'another /etc')
    os.makedirs(etc + '/zklockfs', exist_ok=True)
    check_equal(command(['mount', '--bind', etc, '/etc'])[0], 0, 'another /etc')
    name = point.strip('/').replace('-', '\\x2d').replace('/', '-')
    file = f"/etc/zklockfs/{name.replace(chr(92), '')}.conf"

    def says(text, *lines, never=()):
        with open(file, 'w', encoding='ascii') as settings:
            settings.write(text)
        out = command([ZKLOCKFS, '--check', source, point])[1]
        check(all(f'risk   unit: {file}: {line}\n' in out for line in lines) and out.count(f'risk   unit: {file}') == len(lines),
              f'{text!r}: {out}')

    says(f'SERVERS={source}\n#OPTIONS=-o audit\nOPTIONS=-o retry=1m\n')
    says(f'SERVERS={source}\nOPTIONS=-o retry=1m\n  OPTIONS=-o audit\n', '2 lines are OPTIONS=, and only the last counts: make them one line')
    says(f'SERVERS={source}\nSERVERS={source}\n', '2 lines are SERVERS=, and only the last counts: make them one line')
    says(f'SERVER={source}\nOPTION=-o audit\n', 'SERVER= is no setting: write SERVERS=', 'OPTION= is no setting: write OPTIONS=')
    with open('/etc/fstab', 'a', encoding='ascii') as table:
        table.write(f'\n{source} {point} zklockfs _netdev 0 0\n')
    out = command([ZKLOCKFS, '--check', source, point])[1]
    check('ok     unit: a line in /etc/fstab mounts it' in out or 'ok     unit: systemctl enable' in out, out)
    got, _, err = command([ZKLOCKFS, '--reload', point])
    check(got == 32 and f"{point}: no zklockfs is mounted there; this mounts it: systemctl start 'zklockfs@{name}'" in err, err)
    got, _, err = command([ZKLOCKFS, '--reload', name])
    check(got == 32 and f'no zklockfs is mounted there; name the mount point, {point}\n' in err, err)
    out = command([ZKLOCKFS, '--check', source, name])[1]
    check(f'wrong  mount point: {name}: No such file or directory; name the mount point, {point}\n' in out, out)
    for word in (name, f'zklockfs@{name}.service'):
        got, _, err = command([ZKLOCKFS, '--check', word])
        check(got == 1 and f"'{word}' is the name of a unit: name the mount point, {point}; try" in err, err)
    # A name that could be a server's.
    got, out, _ = command([ZKLOCKFS, '--check', 'dev-shm'])
    check(got == 32 and 'wrong  servers: dev-shm is the name of a unit, and /dev/shm its mount point: zklockfs --check /dev/shm\n' in out, out)
    check_equal(command(['umount', '/etc'])[0], 0, 'umount')


def under(point):
    """The directory below a mount, elsewhere."""
    elsewhere = os.path.dirname(point) + '/elsewhere'
    if not os.path.isdir(elsewhere):
        os.mkdir(elsewhere)
        check_equal(command(['mount', '--bind', os.path.dirname(point), elsewhere])[0], 0, 'another place')
    return f'{elsewhere}/{os.path.basename(point)}'


def set_immutable_below(point, on):
    check_equal(set_immutable(under(point), on), not on, 'it was immutable')


def clocks(point):
    """The line about clocks, which the mount there knows."""
    with open(point + '/.zklockfs/status', encoding='ascii') as file:
        names = re.search('^clock_watched_by: (.*)$', file.read(), re.M).group(1)
    with open('/proc/cpuinfo', encoding='ascii') as file:
        virtual = re.search(r'^flags\b.*\bhypervisor\b', file.read(), re.M)
    if virtual and not {'vmclock', 'tsc', 'ptp'} & set(names.split(',')):
        return 'risk   clocks: a pause of this virtual machine is seen only if an agent sets the wall clock'
    return f'ok     clocks: a pause of this {"virtual " if virtual else ""}machine is seen by {names}\n'


def limited_waits(checks, source):
    """A kernel that aborts mounts of which a process waits for long: in this mount namespace, whether it has such
    limits or not. Nothing is mounted, and a mount that is there goes on with its program."""
    point, there, limits = checks.case.mount_point(), checks.case.mount_point(), checks.case.directory + '/limits'
    check_equal(besides_usual(command([ZKLOCKFS, source, there])), (0, '', ''), 'a mount from before')
    os.makedirs(limits + '/fuse')
    for name in ('max_request_timeout', 'default_request_timeout'):
        with open(f'{limits}/fuse/{name}', 'w', encoding='ascii') as file:
            file.write('60\n')
        check_equal(command(['mount', '--bind', limits, '/proc/sys/fs'])[0], 0, 'a limit')
        why = f'fs.fuse.{name} is set: the kernel aborts a mount, holders included, when one process waits for so long: '
        words = why + 'write 0 into it\n'
        got, out, _ = command([ZKLOCKFS, '--check', source])
        check(got == 32 and 'wrong  ' + words in out, f'{got}, {out}')
        got, out, err = command([ZKLOCKFS, source, point])
        check(got == 32 and 'cannot start: ' + words in err, f'{got}, {out}{err}')
        got, out, err = command([ZKLOCKFS, '--reload', '-o', 'log_takes', there])
        check(got != 0 and why + 'unmount, write 0 into it, and mount again\n' in out + err, f'{got}, {out}{err}')
        check_equal(command(['umount', '/proc/sys/fs'])[0], 0, 'umount')
        os.unlink(f'{limits}/fuse/{name}')
    check_equal(command([ZKLOCKFS, '--reload', '-o', 'log_takes', there])[0], 0, 'without a limit')
    check_equal(libc.umount2(os.fsencode(there), 0), 0, 'umount')
    until(lambda: not checks.case.daemons(), 'the daemon ends')


def few_rights(source):
    """What a container may lack; and a standard output that takes nothing."""
    no_mount = ['setpriv', '--bounding-set=-sys_admin', '--inh-caps=-sys_admin']
    got, out, _ = command([*no_mount, ZKLOCKFS, '--check', source])
    check(got == 32 and 'wrong  root may not mount here, for want of CAP_SYS_ADMIN' in out, out)
    got, out, _ = command(['prlimit', '--nofile=4', ZKLOCKFS, '--check', source])
    check(got == 32 and 'wrong  cannot start: 4 files may be open (ulimit -n), and 64 must be' in out, out)
    with open('/dev/full', 'wb') as full, spawn([ZKLOCKFS, '--check', source], stdout=full,
                                                stderr=subprocess.PIPE, text=True) as process:
        err = process.communicate()[1]
    check_equal((process.returncode, err), (32, 'zklockfs: standard output cannot be written\n'), 'a full disk')


def test(case):
    if CRASHES:
        return
    checks = Checks(case)
    # Where other users may run it.
    checks.program = os.path.join(case.directory, 'zklockfs')
    with open(ZKLOCKFS, 'rb') as file, open(checks.program, 'wb') as copy:
        copy.write(file.read())
    os.chmod(checks.program, 0o755)
    strangers(checks)
    server = case.server(config=f'{WORDS}\nmaxSessionTimeout=40000')
    source = f'127.0.0.1:{server.port}'
    settings(checks, server, source)
    check_equal(server.zk.children('/'), ['zookeeper'], 'nodes that are left')
    roots(checks, server, source)
    tree = server.tree('/locks')
    refused_alike(checks, source)
    mount_points(checks, source)
    units(checks, source)
    few_rights(source)
    limited_waits(checks, source)
    # Clients of the test send no pings: this server ends their sessions after 40 s.
    server.raw.close()
    server.raw = None
    check(set(server.tree('/locks')) >= set(tree), 'nodes that were there')
    until(lambda: len([path for path in server.tree('/locks') if 'examined' in path]) == 0, 'no node is left')
    until(lambda: server.metric('zk_global_sessions') <= 2, 'the sessions of the test alone')


run(test)
