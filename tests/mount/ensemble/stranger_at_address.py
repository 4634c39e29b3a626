#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An address in the list belongs to another ensemble now, or to somebody who answers `srvr` and `conf`. What is said
there changes no lease, ends no mount, and costs no lock: neither a tickTime, nor a limit, nor a version, nor that
the session is over. It is named in the log and in `status`, until the address is mended. Our own server is believed that
somebody has closed the session."""

import errno
import socket
import threading
from types import SimpleNamespace

import rawzk
from harness import CRASHES, ZKLOCKFS, check, check_equal, check_errno, command, run, until

WORDS = {b'srvr': b'Zookeeper version: 3.4.0\nMode: follower\n',
         b'conf': b'tickTime=20000\nminSessionTimeout=40000\nmaxSessionTimeout=400000\n'}


def talker():
    """A few lines of TCP that answer words, and no client."""
    listener = socket.create_server(('127.0.0.1', 0))

    def serve():
        while True:
            with listener.accept()[0] as conn:
                conn.sendall(WORDS.get(conn.recv(4), b''))
    threading.Thread(target=serve, daemon=True).start()
    return SimpleNamespace(port=listener.getsockname()[1], tick_ms=2000)


class Two:
    """A mount that knows a server by two addresses; the second one is another's later."""

    def __init__(self, case, server):
        self.case = case
        self.server = server
        self.first = case.relay(server)
        self.second = case.relay(server)
        self.mount = case.mount(server, session='30s',
                                servers=f'127.0.0.1:{self.first.port},127.0.0.1:{self.second.port}')
        self.mount.allow('.')    # servers go away: the daemon may log anything
        self.mount.mkdir('build')
        self.holder = self.mount.take('build').held()
        self.before = self.mount.status()

    def cut(self, to):
        """The second address leads there, and the first one nowhere."""
        self.first.end()
        self.second.end()
        until(lambda: self.mount.status()['state'] != 'ready', 'the mount notices')
        self.second = self.case.relay(to, port=self.second.port)

    def back(self):
        self.first = self.case.relay(self.server, port=self.first.port)
        self.mount.ready()

    def kept(self):
        """A machine that takes longer than a lease that a given-up renewal has shortened (rule 45) loses the lock for
        that reason, and for no other."""
        if self.mount.metric('losses_total'):
            self.mount.said('no contact with the ensemble, the lease has expired')
            return
        self.holder.do('fsync')
        now = self.mount.status()
        for key in ('session', 'session_timeout', 'tick_time'):
            check_equal(now[key], self.before[key], key)
        check(not now['server_version'].startswith('3.4.0'), now['server_version'])


def settings(case, foreign, why):
    two = Two(case, case.server())
    check_equal(two.before['servers_wrong'], '-', 'nothing is wrong')
    two.cut(foreign)
    two.back()
    wrong = f'server 127.0.0.1:{two.second.port} {why}, and what it says does not count'
    until(lambda: two.mount.status()['servers_wrong'] == wrong, wrong)
    two.mount.said(wrong)
    check('has a tickTime' not in two.mount.log(), two.mount.log())
    two.kept()
    # Mended.
    two.cut(two.server)
    two.back()
    until(lambda: two.mount.status()['servers_wrong'] == '-', 'its word is forgotten')
    two.kept()


def of_another_ensemble(case):
    foreign = case.server(tick_ms=20000)
    settings(case, foreign, 'is of another ensemble')
    home = case.server()
    home.zk.create('/locks')
    home.zk.create('/locks/.zklockfs')
    got, out, err = command([ZKLOCKFS, '--check', f'127.0.0.1:{home.port},127.0.0.1:{foreign.port}'])
    check_equal((got, err), (32, ''), out)
    check('are of different ensembles: /locks/.zklockfs is not the same\n' in out, out)


def of_a_talker(case):
    settings(case, talker(), 'has not shown that it is of this ensemble')


def over_elsewhere(case):
    """The other ensemble has seen more than the mount, so it takes the client, and knows no such session."""
    two = Two(case, case.server())
    foreign = case.server()
    for i in range(300):
        foreign.zk.create(f'/n{i}')
    for _ in range(3):
        two.cut(foreign)
        two.mount.said('a server says that the session is over, ')
        two.mount.said(f'127.0.0.1:{two.second.port} is of another ensemble: whether our session is over is asked elsewhere')
        two.back()
        two.kept()


def over_at_home(case):
    """Somebody has closed it: the lock is lost as soon as that is known."""
    two = Two(case, case.server())
    two.cut(talker())
    rawzk.Client(two.server.port, session=int(two.before['session'], 16)).close()
    two.back()
    check(two.mount.status()['session'] != two.before['session'], 'a new session')
    check_errno(errno.EIO, two.holder.do, 'fsync')


def test(case):
    if CRASHES:
        return
    case.at_once(of_another_ensemble, of_a_talker)
    case.at_once(over_elsewhere, over_at_home)


run(test)
