#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The names of the servers get other addresses, one after the other, as in a rolling restart on
Kubernetes: the mount keeps its session and its locks, also over a reload and a crash. A name that
had no address at the start counts as soon as it has one, and an address that no name has any more
is not used again: it may be somebody else's by now. When no server was to be found for so long that
the session has ended, the mount goes on where the names are then. A name service without news
changes nothing."""

import os
import socket

from harness import check, check_equal, run, until

NAMES = ['zk1.test', 'zk2.test', 'zk3.test']


class Foreign:
    """Somebody else at an old address, who is not to be called."""

    def __init__(self, case, address, port):
        self.socket = socket.create_server((address, port))
        self.socket.setblocking(False)
        case.cleanups.callback(self.socket.close)

    def was_called(self):
        try:
            self.socket.accept()[0].close()
        except BlockingIOError:
            return False
        return True


class Places:
    """Which name has which addresses, and relays there to the server."""

    def __init__(self, case, server):
        self.case, self.server, self.port = case, server, 0
        self.of, self.relays = {}, {}

    def put(self, name, *addresses):
        self.of[name] = addresses
        for address in addresses:
            self.relays[address] = self.case.relay(self.server, address, self.port)
            self.port = self.relays[address].port

    def publish(self):
        self.case.hosts(''.join(f'{address} {name}\n' for name, of in self.of.items() for address in of))

    def leave(self, *addresses):
        for address in addresses:
            self.relays.pop(address).end()


def in_session(case, server):
    """All of it within one session, and with one token."""
    places, foreign = Places(case, server), []
    for number, name in enumerate(NAMES):
        places.put(name, f'127.0.1.{number + 1}')
    places.publish()
    mount = case.mount(server, session='10s', servers=','.join(f'{name}:{places.port}' for name in NAMES + ['later.test']))
    mount.allow('connection lost|left out|does not answer')
    until(lambda: 'later.test: Name or service not known: left out until it has an address; the others are used'
          in mount.log(), 'the log says which name is left out')
    mount.mkdir('build')
    holder = mount.take('build').held()
    waiter = mount.take('build')
    until(lambda: len(server.entries('build')) == 2, 'both queue')
    session, token = mount.session(), holder.token()

    def move(name, *addresses):
        """Like a pod: it is gone, and comes back elsewhere. Then somebody gets its old address."""
        before = places.of[name]
        places.leave(*before)
        places.put(name, *addresses)
        places.publish()
        until(lambda: all(f'{address}:' in mount.status()['addresses'] for address in addresses) and
              not any(f'{address}:' in mount.status()['addresses'] for address in before),
              f'the mount knows where {name} is')
        mount.ready()
        holder.do('fsync')
        check_equal((mount.session(), holder.token()), (session, token), 'session and token')
        foreign.extend(Foreign(case, address, places.port) for address in before)

    move(NAMES[0], '127.0.1.11')
    mount.reload()
    move(NAMES[1], '127.0.1.12', '127.0.1.13')      # as a headless service has them
    mount.adopt()
    move(NAMES[2], '127.0.1.14')

    # All at once: the lease does not last until the names are looked up by the way.
    gone = [address for name in NAMES for address in places.of[name]]
    for number, name in enumerate(NAMES):
        places.put(name, f'127.0.1.{number + 15}')
    places.publish()
    places.leave(*gone)
    until(lambda: mount.status()['server'] in [f'127.0.1.{number}:{places.port}' for number in (15, 16, 17)],
          'the mount goes there')
    mount.ready()
    holder.do('fsync')

    # All names go but one, and that had no address at first.
    places.put('later.test', '127.0.1.20')
    places.publish()
    until(lambda: '127.0.1.20:' in mount.status()['addresses'], 'a name has an address')
    gone = [address for name in NAMES for address in places.of.pop(name)]
    places.publish()
    until(lambda: mount.status()['addresses'] == f'127.0.1.20:{places.port}', 'the others have none')
    places.leave(*gone)
    until(lambda: mount.status()['server'] == f'127.0.1.20:{places.port}', 'it goes there')
    mount.ready()
    holder.do('fsync')
    check_equal((mount.session(), holder.token()), (session, token), 'session and token')
    holder.release()
    waiter.held().release()
    check(not any(other.was_called() for other in foreign), 'an address was used that no name has any more')
    check(mount.status()['sessions'] == '1', 'a session was lost')
    check_equal(os.listdir(mount.path('build/queue')), [], 'the queue')


def after_the_session(case, server):
    relay = case.relay(server, '127.0.0.2')
    case.hosts('127.0.0.2 zookeeper-of-the-test\n')
    mount = case.mount(server, 'b', session='6s', servers=f'zookeeper-of-the-test:{relay.port}')
    mount.allow('connection lost|session ended|lock is lost')
    mount.mkdir('alone')
    holder = mount.take('alone').held()
    waiter = mount.take('alone')
    until(lambda: len(server.entries('alone')) == 2, 'both queue')
    session = mount.session()

    # A name service that is gone is no reason to give anything up.
    case.hosts('')
    relay.end()
    until(lambda: mount.status()['state'] == 'lost', 'the lease ends')
    until(lambda: len(server.entries('alone')) == 0, 'the session ends')
    check_equal(mount.session(), session, 'the session that the mount knows')
    check_equal(mount.status()['addresses'], f'127.0.0.2:{relay.port}', 'the addresses')

    moved = case.relay(server, '127.0.0.3', relay.port)
    case.hosts('127.0.0.3 zookeeper-of-the-test\n127.0.0.2 zookeeper-of-the-test\n')
    until(lambda: mount.status()['state'] == 'ready', 'it finds the server')
    check_equal(mount.status()['server'], f'127.0.0.3:{moved.port}', 'the server')
    mount.said('new addresses: 127.0.0.2')
    waiter.held()
    holder.release()
    waiter.release()
    until(lambda: not [pid for pid in case.daemons() if pid != mount.daemon], 'no process is left')
    check(os.listdir(mount.path('alone/queue')) == [], 'the queue')


def test(case):
    server = case.server(tick_ms=500)
    in_session(case, server)
    case.mounts[0].unmount()
    after_the_session(case, server)


run(test)
