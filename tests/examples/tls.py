#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""examples/tls/: a mount reaches a server that speaks TLS alone by the tunnel. Who has no
certificate of the CA is refused, and so is a server that is another. What is held survives the
end of the tunnel. Root alone reaches the tunnel; who reaches it all the same has no rights on
what was made with credentials=."""

import contextlib
import errno
import os
import re
import signal
import socket
import ssl
import struct
import subprocess

import gate
import rawzk
from harness import (ALICE, NOBODY, WAIT_SECONDS, Server, check, check_equal, check_user,
                     command, errno_of, libc, run, spawn, until)
from printed import shown

CLONE_NEWNET = 0x40000000
SECURE, TUNNEL = 2281, 921      # in the shipped files
TUNNELS = (TUNNEL, TUNNEL + 1, TUNNEL + 2)


def done(args, **options):
    status, out, err = command(args, **options)
    check_equal(status, 0, f'{args}: {out}{err}')


def shipped(name, **instead):
    with open(gate.path('tls/' + name), encoding='utf-8') as file:
        text = file.read()
    for old, new in instead.items():
        check(old in text, f'{name} does not say {old}')
        text = text.replace(old, new)
    return text


def written(path, text):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    return path


class Authority:
    """A CA, and what it has signed."""

    def __init__(self, case, name, *issued):
        self.directory = f'{case.directory}/{name}'
        os.mkdir(self.directory)
        for words in (['ca'], *issued):
            done([gate.path('tls/certificates'), *words], cwd=self.directory)

    def path(self, name):
        return f'{self.directory}/{name}'


class SecureServer(Server):
    """Its one port speaks TLS; `port` is that of the tunnel to it."""

    jars = Server.jars + ':/usr/share/java/netty-codec.jar'

    def __init__(self, case, authority):
        self.authority = authority
        self.store = None
        super().__init__(case, 2000, (), '')

    def find_port(self):
        self.port = TUNNEL
        return True

    def listens(self):
        text = shipped('zoo.cfg', **{'/etc/zookeeper/server.pem': self.authority.path('zk1.pem'),
                                     '/etc/zookeeper/ca.pem': self.authority.path('ca.pem')})
        if self.store:
            text = re.sub(r'^ssl\.keyStore.*\n', '', text, flags=re.M) + self.store
        return text + 'secureClientPortAddress=127.0.0.1\n'

    def keep_in_pkcs12(self):
        """As the page says."""
        path = self.directory + '/server.p12'
        done(['openssl', 'pkcs12', '-export', '-in', self.authority.path('zk1.pem'), '-out', path,
              '-passout', 'pass:word'])
        self.store = (f'ssl.keyStore.location={path}\nssl.keyStore.type=PKCS12\nssl.keyStore.password=word\n')


class Tunnel:
    """As the unit starts it: not by root, but with the right to have such ports."""

    def __init__(self, case, authority):
        config = written(case.directory + '/tunnel.conf', shipped(
            'tunnel.conf', **{'/etc/zklockfs/host.pem': authority.path('web1.pem'),
                              '/etc/zklockfs/ca.pem': authority.path('ca.pem')}))
        os.chown(authority.path('web1.pem'), NOBODY, NOBODY)
        os.chmod(authority.directory, 0o711)
        self.args = ['setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups', '--no-new-privs',
                     '--inh-caps=-all,+net_bind_service', '--ambient-caps=+net_bind_service',
                     'stunnel4', config]
        self.log = case.directory + '/tunnel.log'
        self.process = None

    def start(self):
        with open(self.log, 'a', encoding='utf-8') as log:
            self.process = spawn(self.args, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(lambda: self.process.poll() is not None or all(reached(port) for port in TUNNELS), 'the tunnel')
        check(self.process.poll() is None, f'the tunnel has ended: {self.said()}')

    def end(self, number):
        self.process.send_signal(number)
        self.process.wait(WAIT_SECONDS)

    def said(self):
        with open(self.log, encoding='utf-8', errors='replace') as log:
            return log.read()


def reach(port):
    socket.create_connection(('127.0.0.1', port), WAIT_SECONDS).close()


def reached(port):
    """Where the tunnel meets another server than it should, it may end the connection at once."""
    return errno_of(reach, port) in (0, errno.ECONNRESET)


def bind(port):
    with socket.socket() as sock:
        sock.bind(('127.0.0.1', port))


def answer(sock, word=b'srvr'):
    """What comes back to it; nothing when the connection is ended."""
    with contextlib.suppress(OSError), sock:
        sock.settimeout(WAIT_SECONDS)
        sock.sendall(word)
        return sock.recv(4096)
    return b''


def asked(authority, certificate=None):
    """The server itself, for a client that shows this certificate."""
    context = ssl.create_default_context(cafile=authority.path('ca.pem'))
    if certificate:
        context.load_cert_chain(certificate)
    sock = socket.create_connection(('127.0.0.1', SECURE), WAIT_SECONDS)
    try:
        return answer(context.wrap_socket(sock, server_hostname='zk1'))
    except ssl.SSLError:
        return b''


def who_is_let_in(ours, theirs):
    check(b'Mode:' in asked(ours, ours.path('web1.pem')), 'a host of ours is not let in')
    check_equal(asked(ours), b'', 'no certificate')
    check_equal(asked(ours, theirs.path('web1.pem')), b'', 'a certificate of another CA')
    check_equal(answer(socket.create_connection(('127.0.0.1', SECURE)), b'no record of TLS'), b'', 'without TLS')


def other_servers(tunnel):
    """What listens at zk2 is zk1, at zk3 one of another CA that lets in everybody."""
    for port in TUNNELS[1:]:
        check_equal(answer(socket.create_connection(('127.0.0.1', port))), b'', f'what answers at {port}')
    for why in ('Rejected by CERT at depth=0: CN=zk1', 'Rejected by CERT at depth=0: CN=zk3'):
        check(why in tunnel.said(), f'the tunnel does not say {why!r}: {tunnel.said()}')


def survives(mount, what):
    """A holder does not notice, nor does the queue."""
    holder, waiter = mount.take('build').held(), mount.take('build')
    gate.queued(mount, 'build', 2)
    token, session = holder.token(), mount.session()
    what(lambda: until(lambda: mount.status()['state'] != 'ready', 'the connection is lost'))
    mount.ready()
    check_equal((holder.token(), mount.session()), (token, session), 'token and session')
    holder.do('fsync')
    check(not waiter.answered(), 'a waiter got the lock')
    holder.release()
    check(waiter.held().token() > token, 'the next token')
    waiter.release()


def password_of(session):
    """What the server makes of the id: 16 bytes of java.util.Random."""
    seed, password = (session ^ 0xB3415C00 ^ 0x5DEECE66D) & (1 << 48) - 1, b''
    for _ in range(4):
        seed = (seed * 0x5DEECE66D + 11) & (1 << 48) - 1
        password += struct.pack('<I', seed >> 16)
    return password


def end_session(session):
    """By a connection without credentials: comes back to the session, and closes it."""
    def packet(data):
        return struct.pack('>i', len(data)) + data
    with socket.create_connection(('127.0.0.1', TUNNEL), WAIT_SECONDS) as sock:
        sock.sendall(packet(struct.pack('>iqiqi16s?', 0, 0, 15000, session, 16, password_of(session), False)))
        check(sock.recv(4096), 'the server does not answer')
        sock.sendall(packet(struct.pack('>ii', 1, -11)))
        while sock.recv(4096):
            pass


def keep_out(case, server):
    """First without the rule: a client that has no credentials, but the tunnel."""
    secret = written(case.directory + '/secret', 'team:correct-horse\n')
    os.chmod(secret, 0o600)
    private = case.mount(server, 'b', root='/private', options=['mkroot', 'credentials=' + secret])
    private.mkdir('build')
    holder = private.take('build').held()
    entry = server.client('team:correct-horse').children('/private/build')[0]
    check_user(0, ALICE, reach, TUNNEL)
    stranger = server.client()
    for path in ('/private/build/' + entry, '/private/build'):
        for attempt in (lambda: stranger.delete(path), lambda: stranger.children(path)):
            try:
                attempt()
            except rawzk.ZkError as refused:
                check_equal(refused.code, rawzk.NOAUTH, path)
            else:
                raise AssertionError(f'{path} is open to every client of the tunnel')
    holder.do('fsync')
    session = private.session()

    def is_lost():
        end_session(session)    # which the mount may have taken back before it was closed
        return errno_of(holder.do, 'fsync') == errno.EIO
    until(is_lost, 'the session is ended, and the lock lost')
    until(lambda: private.status()['state'] == 'ready' and private.session() != session, 'another session')
    holder.release()

    done(['nft', '-f', gate.path('tls/tunnel.nft')])
    done(['nft', '-f', gate.path('tls/tunnel.nft')])    # again, at a restart
    for port in TUNNELS:
        check_user(errno.ECONNREFUSED, ALICE, reach, port)
        check(reached(port), 'root is kept out')


def asked_by_hand(ours):
    """With the command of the page."""
    words = re.search(r'^ +(\(printf srvr.*?)\n\n', shown('fs/pages/zklockfs-tls.7.md'), re.MULTILINE | re.DOTALL).group(1)
    out = command(['sh', '-c', words.replace('host.pem', 'web1.pem')], cwd=ours.directory)[1]
    check('Zookeeper version' in out, f'asked by hand: {out}')


def test(case):
    check_equal(libc.unshare(CLONE_NEWNET), 0, 'a network of its own')
    done(['ip', 'link', 'set', 'lo', 'up'])
    case.hosts('127.0.0.1 zk1 zk2\n127.0.0.3 zk3\n')
    ours = Authority(case, 'ours', ['server', 'zk1'], ['host', 'web1'])
    theirs = Authority(case, 'theirs', ['server', 'zk3'], ['host', 'web1'])
    impostor = spawn(['openssl', 's_server', '-quiet', '-accept', f'127.0.0.3:{SECURE}', '-cert', theirs.path('zk3.pem')],
                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: errno_of(lambda: socket.create_connection(('127.0.0.3', SECURE)).close()) == 0, 'the impostor')
    tunnel = Tunnel(case, ours)
    tunnel.start()
    case.servers.append(SecureServer(case, ours))
    server = case.servers[0]
    who_is_let_in(ours, theirs)
    asked_by_hand(ours)
    other_servers(tunnel)
    keep_out(case, server)

    mount = case.mount(server, 'a', '60s', servers=','.join(f'127.0.0.1:{port}' for port in TUNNELS))
    for each in case.mounts:
        each.allow('connection lost|session ended|is lost')
    mount.mkdir('build')
    check_equal(mount.status()['server'], f'127.0.0.1:{TUNNEL}', 'the server')

    def killed(lost):
        tunnel.end(signal.SIGKILL)
        check_user(errno.EACCES, ALICE, bind, TUNNEL)
        lost()
        tunnel.start()

    def restarted(lost):
        server.stop()
        lost()
        server.keep_in_pkcs12()
        server.start()
    survives(mount, killed)
    survives(mount, restarted)
    for each in case.mounts:
        each.ready()
    impostor.kill()


run(test)
