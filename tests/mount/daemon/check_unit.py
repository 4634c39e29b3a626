#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`zklockfs --check` reads the file of the unit that mounts there, as systemd would: it says what the next start, or the
next reload, refuses or changes. Where nothing is mounted and no servers are named, that file is what is checked."""

import errno
import os
import signal

from harness import ALICE, NO_KEEPER, ZKLOCKFS, check, check_equal, command, run, until


def set_up(case, point):
    """Another /etc; the file of the unit that mounts there."""
    etc = case.directory + '/etc'
    if not os.path.ismount('/etc'):
        check_equal(command(['cp', '-a', '/etc', etc])[0], 0, 'another /etc')
        os.makedirs(etc + '/zklockfs', exist_ok=True)
        check_equal(command(['mount', '--bind', etc, '/etc'])[0], 0, 'another /etc')
    return f"/etc/zklockfs/{point.strip('/').replace('-', 'x2d').replace('/', '-')}.conf"


def write(file, text):
    with open(file, 'w', encoding='ascii') as settings:
        settings.write(text)


def unmounted(case, source):
    point = case.mount_point()
    file = set_up(case, point)
    unit = point.strip('/').replace('-', '\\x2d').replace('/', '-')

    def wrong(options, why, servers=source):
        write(file, f'SERVERS={servers}\n{options}\n')
        got, out, err = command([ZKLOCKFS, '--check', source, point])
        check_equal((got, err), (32, ''), f'{options}: {out}')
        check_equal([line for line in out.splitlines() if line.startswith(('risk   unit: /', 'wrong'))], [f'wrong  unit: {file}: {why}'], out)
        # The words of a start.
        check_equal(command([ZKLOCKFS, '--check', point]), (1, '', f'zklockfs: {file}: {why}; try zklockfs --help\n'), options)

    wrong('OPTIONS=-o onlost=term,ro=1', "unknown option 'onlost=term' (did you mean on_lost?); 'ro=1': ro takes no value")
    wrong('OPTIONS=audit', 'too many arguments: options stand behind -o, as in -o audit')
    wrong('OPTIONS="-o audit," \\\n session_timeout=5', "too many arguments: options stand behind -o, as in -o session_timeout=5")
    wrong("OPTIONS=-o 'audit,session_timeout=5 '", 'session_timeout=5 : not a duration like 15s or 500ms')
    wrong('#SERVERS=', "bad server list '': it is empty", servers='')
    for name in ('SERVER', 'export SERVERS'):
        write(file, f'{name}={source}\n')
        got, _, err = command([ZKLOCKFS, '--check', point])
        check_equal((got, err), (1, f"zklockfs: {file}: {name}= is no setting: write SERVERS=; bad server list '': it is empty; "
                                    'try zklockfs --help\n'), name)
        got, out, _ = command([ZKLOCKFS, '--check', source, point])
        check(got == 32 and f'risk   unit: {file}: {name}= is no setting: write SERVERS=\n' in out, out)

    # Where another one stands below it, the last line counts.
    write(file, f'SERVERS="{source}"\n OPTIONS = -o adit\nOPTIONS=-o \'on_lost=term\' \\\n  -o host=other,session_timeout=9s\n')
    got, out, err = command([ZKLOCKFS, '--check', point])
    check_equal((got, err), (0, ''), out)
    check(f'risk   unit: {file}: 2 lines are OPTIONS=, and only the last counts: make them one line\n' in out, out)
    check('ok     on_lost: a process could be found' in out and 'session: 9000 ms are granted' in out, out)
    check(out.startswith(f'ok     unit: servers and options are read from {file}\n'), out)
    check(f"risk   mount point: no zklockfs is mounted there: systemctl start 'zklockfs@{unit}'\n" in out, out)
    check('ok     mount point: empty; a mount makes it unusable' in out and 'ok     root: ' in out, out)
    got, out, err = command([ZKLOCKFS, '--check', '-o', 'on_lost=none,session_timeout=7s', point])
    check(got == 0 and 'on_lost:' not in out and 'session: 7000 ms are granted' in out, f'the arguments count: {out}{err}')
    os.chmod(file, 0o600)
    got, _, err = command([ZKLOCKFS, '--check', point], user=ALICE, group=ALICE, extra_groups=())
    check(got in (32, 126) and 'unknown' not in err, f'another user: {err}')
    os.rmdir(point)
    got, out, err = command([ZKLOCKFS, '--check', point])
    check(got == 32 and f'wrong  mount point: {point}: No such file or directory: mkdir -p makes it\n' in out, f'{out}{err}')
    os.mkdir(point)
    os.unlink(file)
    got, _, err = command([ZKLOCKFS, '--check', point])
    check_equal((got, err), (32, f'zklockfs: {point}: no zklockfs is mounted there; {file}: No such file or directory; '
                                 'to check what a mount needs, name the servers, too\n'), 'no file')


def mounted(case, server):
    mount = case.mount(server, 'b', session='12s')
    file = set_up(case, mount.directory)
    source = f'127.0.0.1:{server.port}{mount.root}'
    same = f'session_timeout={mount.session_seconds}s,tick_time={server.tick_ms}ms,host=b'

    def says(options, status, *lines):
        write(file, f'SERVERS={source}\nOPTIONS=-o {options}\n')
        got, out, err = command([ZKLOCKFS, '--check', mount.directory])
        check_equal((got, err), (status, ''), f'{options}: {out}')
        check_equal([line[7:] for line in out.splitlines() if line[7:].startswith('unit: /')], [f'unit: {file}: {line}' for line in lines], out)
        check('ok     mount point: the mount runs with these options\n' in out, out)

    with open(mount.path('.zklockfs', 'options'), encoding='ascii') as text:
        retry = next(line.split()[1] for line in text if line.startswith('retry: '))
    same += f',retry={retry}'
    says(same, 0)
    says(f'"{same},audit"', 0, 'the mount runs with audit no, and not yes: systemctl reload changes it')
    says(f'{same},audit,host=c', 0, 'the mount runs with audit no, and not yes; host b, and not c: no reload changes host: stop the mount when no lock is held, '
                              'and start it again')
    says(f'{same},adit', 32, "unknown option 'adit' (did you mean audit?)")
    says(f'{same},credentials=/nowhere', 32, 'credentials=/nowhere: No such file or directory')


def dead(case, server):
    """A mount whose program was killed."""
    mount = case.mount(server, 'c', options=[NO_KEEPER])
    file = set_up(case, mount.directory)
    write(file, f'SERVERS=127.0.0.1:{server.port}{mount.root}\n')
    mount.send(signal.SIGKILL)
    mount.checked = True
    until(lambda: is_dead(mount.directory), 'the mount is dead')
    got, out, err = command([ZKLOCKFS, '--check', mount.directory])
    check_equal((got, err), (0, ''), out)
    check(f'ok     unit: servers and options are read from {file}\n' in out, out)
    check('risk   mount point: a dead zklockfs is there: mount again\n' in out and 'no zklockfs is' not in out, out)
    check_equal(command(['umount', mount.directory])[0], 0, 'umount')


def is_dead(point):
    try:
        os.stat(point)
    except OSError as error:
        return error.errno == errno.ENOTCONN
    return False


def test(case):
    server = case.server()
    source = f'127.0.0.1:{server.port}/locks'
    unmounted(case, source)
    mounted(case, server)
    dead(case, server)
    check_equal(command(['umount', '/etc'])[0], 0, 'umount')


run(test)
