# SPDX-License-Identifier: MIT
"""others.py - servers that are no ZooKeeper, for the peers that have locks on them."""

import glob
import os
import pwd
import socket
import subprocess

from processes import BenchError, end, run, start, until


def _listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(('127.0.0.1', port)) == 0


class Etcd:
    """As many members as ZooKeeper has."""

    def __init__(self, place, count):
        self.processes = []
        self.ports = [2379 + 10 * number for number in range(count)]
        self.address = ','.join(f'127.0.0.1:{port}' for port in place.ways(self.ports))
        urls = [f'http://127.0.0.1:{port + 1}' for port in self.ports]
        members = ','.join(f'm{number}={url}' for number, url in enumerate(urls))
        for number, port in enumerate(self.ports):
            directory = place.path(f'etcd{number}')
            client = f'http://127.0.0.1:{port}'
            # etcd 3.4 always waits for the disk; on a tmpfs that costs nothing.
            self.processes.append(start(
                ['etcd', '--name', f'm{number}', '--data-dir', directory,
                 '--listen-client-urls', client, '--advertise-client-urls', client,
                 '--listen-peer-urls', urls[number], '--initial-advertise-peer-urls', urls[number],
                 '--initial-cluster', members, '--logger', 'zap', '--log-level', 'error'],
                directory + '.log', env=dict(os.environ, ETCD_UNSUPPORTED_ARCH='')))
        until(lambda: all(_listens(port) for port in self.ports), 'etcd serves')

    def end(self):
        for process in self.processes:
            end(process)


class Redis:
    def __init__(self, place, count):
        del count
        self.port = place.ways([6379])[0]
        directory = place.path('redis')
        os.makedirs(directory)
        self.process = start(
            ['redis-server', '--bind', '127.0.0.1', '--port', '6379', '--dir', directory, '--save', '',
             '--daemonize', 'no', '--appendonly', 'yes',
             '--appendfsync', 'always' if place.synchronous else 'no'], directory + '.log')
        until(lambda: _listens(6379), 'Redis serves')

    def end(self):
        end(self.process)


class Postgres:
    """Runs as the user postgres, because its programs refuse to run as root."""

    def __init__(self, place, count):
        del count
        self.conninfo = f'host=127.0.0.1 port={place.ways([5432])[0]} user=postgres dbname=postgres'
        found = sorted(glob.glob('/usr/lib/postgresql/*/bin'))
        if not found:
            raise BenchError('no PostgreSQL')
        user = pwd.getpwnam('postgres')
        directory = place.path('postgres')
        os.makedirs(directory)
        os.chown(directory, user.pw_uid, user.pw_gid)

        def as_postgres():
            os.setgroups([])
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
        run([found[-1] + '/initdb', '--no-sync', '--auth=trust', '-D', directory],
            preexec_fn=as_postgres, cwd='/')
        synchronous = 'on' if place.synchronous else 'off'
        self.process = start(
            [found[-1] + '/postgres', '-D', directory, '-c', 'listen_addresses=127.0.0.1',
             '-c', 'unix_socket_directories=', '-c', 'max_connections=300', '-c', f'fsync={synchronous}',
             '-c', f'synchronous_commit={synchronous}'],
            place.path('postgres.log'), preexec_fn=as_postgres, cwd='/')
        # PostgreSQL listens before it serves.
        until(lambda: subprocess.run([found[-1] + '/pg_isready', '-q', '-h', '127.0.0.1'], check=False)
              .returncode == 0, 'PostgreSQL serves')

    def end(self):
        end(self.process)
