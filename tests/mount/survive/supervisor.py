#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The process that was started is a supervisor, which starts the daemon. Its parent sees no difference:
in signals, also those of a terminal or to both processes, in systemd's protocol, in the exit
status, in the command in the background. When the supervisor is killed the daemon goes on."""

import contextlib
import errno
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import time

from harness import (SLOWNESS, WAIT_SECONDS, ZKLOCKFS, besides_usual, check, check_equal, command, errno_of, mounted, run, spawn, until, write_program)

OPTIONS = ['on_lost=kill']
SESSION = f'{int(15 * SLOWNESS)}s'


def name_of(pid):
    with open(f'/proc/{pid}/comm', encoding='ascii') as file:
        return file.read().strip()


def score_of(pid):
    with open(f'/proc/{pid}/oom_score_adj', encoding='ascii') as file:
        return file.read()


def may_lower():
    """Whether the score may be lowered: even root may not everywhere."""
    return command(['sh', '-c', 'echo -1000 >/proc/self/oom_score_adj'])[0] == 0


def line_of(path, key):
    """None: the process has ended."""
    try:
        with open(path, encoding='ascii') as lines:
            return next(line.split(':')[1].strip() for line in lines if line.startswith(key + ':'))
    except (FileNotFoundError, ProcessLookupError):
        return None


def leaves(mount):
    """Wait until the mount begins to leave: its mount point goes."""
    until(lambda: mounted(mount.directory) is None, 'the mount point goes')


def processes(case, server):
    mount = case.mount(server, 'processes', session='60s', options=OPTIONS)
    supervisor, daemon = mount.process.pid, mount.daemon
    check_equal((name_of(supervisor), name_of(daemon)), ('zklockfs-keeper', os.path.basename(ZKLOCKFS)[:15]), 'the names')
    wanted = '-1000\n' if may_lower() else score_of('self')
    check_equal((score_of(supervisor), score_of(daemon)), (wanted, score_of('self')), 'the scores by which the kernel chooses a process to kill')
    check_equal(os.stat(f'/proc/{supervisor}/mem').st_uid, 0, 'whose its memory is')
    mount.mkdir('processes')
    holder = mount.take('processes').held()
    token = holder.token()
    mount.reload()
    check_equal((mount.daemon, holder.token()), (daemon, token), 'the daemon and the token over a reload')
    mount.reload()
    # One SIGTERM, to the supervisor, after reloads.
    mount.process.send_signal(signal.SIGTERM)
    leaves(mount)
    check_equal(holder.token(), token, 'it is served until the end')
    holder.release()
    mount.check_end()
    check(not os.path.exists(f'/proc/{daemon}'), 'the daemon is left')


def small_files(case, server):
    """Mounted by a shell with `ulimit -f`: the records are a file in memory, and are kept all the same.
    A limit that may not be raised is named."""
    program = os.path.join(case.directory, 'limited')
    write_program(program, f'ulimit -Sf 8\nexec {ZKLOCKFS} "$@"\n')
    _, _, err = command(['setpriv', '--bounding-set=-sys_resource', 'bash', '-c', 'ulimit -f 8; exec "$@"', 'limited',
                         ZKLOCKFS, f'127.0.0.1:{server.port}/locks', case.mount_point()])
    check('ulimit -f' in err, f'a hard limit: {err}')
    mount = case.mount(server, 'small', program=program)
    mount.mkdir('small')
    holder = mount.take('small').held()
    token, before = holder.token(), mount.daemon
    os.kill(before, signal.SIGKILL)
    until(lambda: mount.daemon not in (None, before), 'another daemon goes on')
    check_equal(holder.token(), token, 'the token after a crash')
    holder.release()
    mount.process.send_signal(signal.SIGTERM)
    mount.check_end()


def poor_starts(case, server):
    """What a parent may leave to its child: SIGCHLD ignored; no standard input."""
    process = spawn(['perl', '-e', '$SIG{CHLD} = "IGNORE"; exec @ARGV', ZKLOCKFS, '-f', '-o', 'connect_timeout=1s',
                     '127.0.0.1:1', case.mount_point()], stderr=subprocess.DEVNULL)
    check_equal(process.wait(WAIT_SECONDS), 32, 'the end of a start without a server')
    program = os.path.join(case.directory, 'closed')
    write_program(program, f'exec {ZKLOCKFS} "$@" <&-\n')
    mount = case.mount(server, 'closed', program=program)
    mount.mkdir('closed')
    holder = mount.take('closed').held()
    token = holder.token()
    mount.reload()
    mount.adopt()
    check_equal(holder.token(), token, 'the token')
    holder.release()
    mount.process.send_signal(signal.SIGTERM)
    mount.check_end()


def signals(case, server, name, send):
    """A signal counts once, also if both processes get it; a second signal counts as the second."""
    mount = case.mount(server, name, session=SESSION, options=OPTIONS)
    mount.mkdir(name)
    holder = mount.take(name).held()
    send(mount)
    leaves(mount)
    check_equal(mount.process.poll(), None, 'the supervisor')
    holder.token()
    holder.do('fsync')
    send(mount)
    until(lambda: mount.process.poll() is not None, 'the daemon leaves')
    check_equal(mount.process.returncode, 0, 'the status')
    mount.checked = True
    check(errno_of(holder.do, 'pread', 64, 0) != 0, 'the descriptor still reads')
    holder.gone()    # by the guardian
    until(lambda: not server.entries(name), 'the session ends')


def of_both(case, server):
    def send(mount):
        daemon = mount.daemon
        mount.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(ProcessLookupError):   # the supervisor has passed it on, and that was enough
            os.kill(daemon, signal.SIGTERM)
    signals(case, server, 'both', send)


def of_both_backwards(case, server):
    def send(mount):
        mount.send(signal.SIGHUP)
        mount.process.send_signal(signal.SIGHUP)
    signals(case, server, 'backwards', send)


def of_both_late(case, server):
    """Both get a signal, and the supervisor is slow, as on a busy machine."""
    mount = case.mount(server, 'late', session='60s', options=OPTIONS)
    mount.mkdir('late')
    holder = mount.take('late').held()
    mount.process.send_signal(signal.SIGSTOP)
    mount.process.send_signal(signal.SIGTERM)
    mount.send(signal.SIGTERM)
    leaves(mount)
    time.sleep(1.5)
    mount.process.send_signal(signal.SIGCONT)
    until(lambda: not pending(mount.process.pid), 'the supervisor has the signal')
    holder.token()
    holder.do('fsync')
    holder.release()
    mount.check_end()


def of_both_stopped(case, server):
    """Both are sent a signal before the daemon sees any; the supervisor's comes first, or last."""
    def send(mount):
        supervisor, daemon = mount.process.pid, mount.daemon
        mount.send(signal.SIGSTOP)
        until(lambda: line_of(f'/proc/{daemon}/status', 'State').startswith('T'), 'the daemon stands still')
        for pid in (daemon, supervisor) if mounted(mount.directory) else (supervisor, daemon):
            os.kill(pid, signal.SIGTERM)
            until(lambda: not pending(supervisor) and line_of(f'/proc/{supervisor}/status', 'State').startswith('S'),
                  'the supervisor has passed it on')
        os.kill(daemon, signal.SIGCONT)
    signals(case, server, 'stopped', send)


def pending(pid):
    return int(line_of(f'/proc/{pid}/status', 'ShdPnd') or '0', 16)


def of_the_daemon(case, server):
    signals(case, server, 'daemon', lambda mount: mount.send(signal.SIGTERM))


def of_the_supervisor(case, server):
    signals(case, server, 'keeper', lambda mount: mount.process.send_signal(signal.SIGINT))


def terminal(case, server):
    """^C reaches both, and counts once."""
    path = case.mount_point()
    master, slave = pty.openpty()
    daemon = spawn(['setsid', '-c', ZKLOCKFS, '-f', '-o', 'host=terminal,tick_time=500ms',
                    f'127.0.0.1:{server.port}/locks', path], stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    until(lambda: os.path.exists(path + '/.zklockfs/status') or daemon.poll() is not None, 'it serves')
    os.mkdir(path + '/terminal')
    held = os.open(path + '/terminal/lock', os.O_RDWR)
    os.write(master, b'\x03')
    until(lambda: mounted(path) is None, 'the mount point goes')
    os.fsync(held)
    check_equal(daemon.poll(), None, 'it serves the holder')
    os.close(held)
    check_equal(daemon.wait(60), 0, 'the status')
    said = b''
    try:
        while part := os.read(master, 4096):
            said += part
    except OSError as err:
        check_equal(err.errno, errno.EIO, 'the terminal')
    check_equal(said.count(b'shutting down'), 1, f'what it says: {said}')


def systemd(case, server):
    """READY=1 and STOPPING=1 come from the process that systemd has started."""
    words = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    words.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    words.bind(case.directory + '/notify')
    words.settimeout(WAIT_SECONDS)

    def heard(wanted, process):
        text = b'STATUS='
        while text.startswith(b'STATUS='):    # which the daemon sends, at any time
            text, credentials, _, _ = words.recvmsg(4096, socket.CMSG_SPACE(12))
        pid, _, _ = struct.unpack('iii', credentials[0][2])
        check_equal((text, pid), (wanted, process), 'the message to systemd, and its sender')

    for how in ('umount', 'term', 'supervisor killed'):
        path = case.mount_point()
        process = spawn([ZKLOCKFS, '-f', '-o', 'host=systemd', f'127.0.0.1:{server.port}/locks', path],
                        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                        env={**os.environ, 'NOTIFY_SOCKET': case.directory + '/notify'})
        heard(b'READY=1\n', process.pid)
        check(mounted(path), 'it is not mounted')
        if how == 'umount':
            check_equal(command(['umount', path])[0], 0, 'umount')
            heard(b'STOPPING=1\n', process.pid)
        elif how == 'term':
            process.terminate()
            heard(b'STOPPING=1\n', process.pid)
        else:
            daemon, = (pid for pid in case.daemons() if os.stat(path) and line_of(f'/proc/{pid}/status', 'PPid') ==
                       str(process.pid))
            process.kill()
            process.wait()
            os.kill(daemon, signal.SIGTERM)
            heard(b'STOPPING=1\n', daemon)
            until(lambda: not os.path.exists(f'/proc/{daemon}'), 'the daemon ends')
            continue
        check_equal(process.wait(60), 0, 'the status')


def supervisor_killed(case, server):
    """The daemon goes on, and says so once."""
    mount = case.mount(server, 'orphan', session=SESSION, options=OPTIONS)
    mount.allow('the keeper was killed')
    mount.mkdir('orphan')
    holder = mount.take('orphan').held()
    daemon = mount.daemon
    mount.process.kill()
    mount.process.wait()
    mount.said('the keeper was killed')
    mount.checked = True
    token = holder.token()
    with open(mount.path('.zklockfs', 'metrics'), encoding='utf-8') as file:
        before = re.search(r'^zklockfs_reloads_total{.*} (\d+)$', file.read(), re.MULTILINE).group(1)
    os.kill(daemon, signal.SIGUSR2)
    until(lambda: 'reloads_total' in mount.read('.zklockfs', 'metrics') and
          mount.metric('reloads_total') > float(before), 'it is reloaded')
    check_equal(holder.token(), token, 'the token')
    # The daemon's parent is no supervisor now: each signal counts.
    os.kill(daemon, signal.SIGTERM)
    leaves(mount)
    holder.do('fsync')
    os.kill(daemon, signal.SIGTERM)
    until(lambda: not os.path.exists(f'/proc/{daemon}'), 'the daemon leaves now')
    holder.gone()
    until(lambda: not server.entries('orphan'), 'the session ends')
    check_equal(mount.log().count('the keeper was killed'), 1, 'how often it says so')


def killed_at_the_start(case, server):
    """A supervisor, or its daemon, is killed before the mount is there: the command says so, or ends as the daemon did.
    Nothing is mounted, and no other daemon is started."""
    relay = case.relay(server)
    relay.freeze()

    def children(pid):
        with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as file:
            return list(map(int, file.read().split()))

    def supervisors(pid):
        """The child before the supervisor, which looks at the mount point, may end in between."""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            return [child for child in children(pid) if name_of(child) == 'zklockfs-keeper']
        return []

    def start(*options):
        path = case.mount_point()
        return path, spawn([ZKLOCKFS, *options, '-o', 'host=start,connect_timeout=60s', f'127.0.0.1:{relay.port}/locks', path],
                           stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    path, process = start()
    supervisor = until(lambda: supervisors(process.pid), 'the supervisor')[0]
    daemon = until(lambda: children(supervisor), 'the daemon')[0]
    os.kill(supervisor, signal.SIGKILL)
    check_equal(process.wait(60), 32, 'the status')
    check('the daemon ended before it could mount' in process.stderr.read(), 'what is said')
    until(lambda: not os.path.exists(f'/proc/{daemon}'), 'the daemon ends')
    check(mounted(path) is None, 'it is mounted')

    path, process = start('-f')
    until(lambda: name_of(process.pid) == 'zklockfs-keeper', 'its name')
    os.kill(until(lambda: children(process.pid), 'the daemon')[0], signal.SIGKILL)
    check_equal(process.wait(60), -signal.SIGKILL, 'how the supervisor ends')
    check(mounted(path) is None, 'it is mounted')


def runs_in_the_background(daemon):
    """Whether this daemon and its supervisor do. Daemons of other parts may end meanwhile."""
    with contextlib.suppress(OSError, TypeError):
        supervisor = int(line_of(f'/proc/{daemon}/status', 'PPid'))
        return os.readlink(f'/proc/{daemon}/cwd') == '/' and name_of(supervisor) == 'zklockfs-keeper' and \
            os.getsid(daemon) == daemon and os.getsid(supervisor) == supervisor
    return False


def start_errors(case, server):
    """With and without a supervisor, a failed start has the same status and the same line, in the
    foreground and in the background. And the processes of a mount in the background."""
    for extra in ([], ['-f']):
        path = case.mount_point()
        said = []
        for options in ('host=e', 'host=e,nokeeper'):
            said.append(besides_usual(command([ZKLOCKFS, *extra, '-o', options,
                                               f'127.0.0.1:{server.port}/none/at/all', path])))
        check_equal(said[0][0], 32, 'the status')
        check_equal(said[1], said[0], 'without a supervisor')
        check(mounted(path) is None, 'it is mounted')
    path = case.mount_point()
    said = command([ZKLOCKFS, '-o', 'host=back', f'127.0.0.1:{server.port}/locks', path])
    check_equal(besides_usual(said), (0, '', ''), 'the command')
    check(mounted(path), 'it is not mounted when the command returns')
    daemon, = (pid for pid in case.daemons() if runs_in_the_background(pid))
    supervisor = int(line_of(f'/proc/{daemon}/status', 'PPid'))
    check_equal(os.readlink(f'/proc/{supervisor}/cwd'), '/', 'the directory of the supervisor')
    for pid in (daemon, supervisor):
        check_equal({os.readlink(f'/proc/{pid}/fd/{fd}') for fd in range(3)}, {'/dev/null'}, 'its descriptors')
    check_equal(command(['umount', path])[0], 0, 'umount')
    until(lambda: not os.path.exists(f'/proc/{supervisor}'), 'the supervisor ends with the daemon')


def test(case):
    server = case.server(tick_ms=500)
    case.at_once(*(lambda part, what=what: what(part, server)
                   for what in (processes, small_files, of_both, of_both_backwards, of_both_late, of_both_stopped, of_the_daemon,
                                of_the_supervisor)))
    case.at_once(*(lambda part, what=what: what(part, server)
                   for what in (terminal, systemd, supervisor_killed, killed_at_the_start, start_errors,
                                poor_starts)))


run(test)
