#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""zklockfs-guide(7), line by line. What has a host's prompt is typed on two mounts, and its output compared but for
numbers and times. Each other line stands in a page whose test runs it: ELSEWHERE."""

import os
import re

from gate import Gate, check, check_equal, queued, until
from harness import SOURCE_ROOT, run
from printed import BUSY, crontab, indented, read, shown
from terminals import Shell, shape, shows

PAGE = 'fs/pages/zklockfs-guide.7.md'
# Which tests run the lines of these pages.
ELSEWHERE = {
    'README.md': 'readme.py and tests/debian/fresh',
    'fs/pages/zklockfs-ensemble.7.md': 'ensemble.py',
    'fs/pages/zklockfs-idioms.7.md': 'tests/debian/service_life runs its unit',
}
# What systemd does for one host, by the unit of the page and by that of the mount.
SYSTEMCTL = r'''
case $1 in
enable)
    setsid $(sed -n 's|/usr/bin/||g; s|^ExecStart=||p' UNIT) </dev/null >/dev/null 2>&1 &
    echo $! >"$HOST.pid" ;;
stop)
    kill "$(cat "$HOST.pid")"
    while readlink -q "/proc/$(cat "$HOST.pid")/exe" >/dev/null; do sleep 0.05; done ;;
esac
'''


def plain(line):
    """Without its comment, and without the ports, which are the usual ones."""
    return re.sub(r':2181\b', '', re.sub(r'  +#.*', '', line)).strip()


def stands_elsewhere(text):
    lines = {plain(line) for page in ELSEWHERE for line in read(page).splitlines()}
    for line in text.splitlines():
        line = plain(line.replace('./zklockfs_', '/tmp/packages/zklockfs_'))
        check(not line or line in lines or re.sub(r'^0 3 \* \* \* root ', '', line) in crontab(), f'no test runs {line}')


def servers(text):
    """What each does instead differs: the test has one, which stands still."""
    return re.sub(r'(; N\.N\.N\.N:N: [^;\n]*)+$', '; each server', text, flags=re.MULTILINE)


class Hosts:
    def __init__(self, gate, mounts):
        self.gate, self.mounts = gate, dict(zip(('web1', 'web2'), mounts))
        self.shells = {host: Shell(mount, gate) for host, mount in self.mounts.items()}
        for host, shell in self.shells.items():
            shell.type(f'export HOST={gate.path}-{host}')
            check_equal(shell.said(), '', host)

    def play(self, text):
        check(text.startswith('web'), text)
        for host, typed, output in re.findall(r'^(\w+)\$ (.*)\n((?:(?!\w+\$ ).*\n)*)', text, re.MULTILINE):
            if typed.startswith('systemctl reload'):
                self.reload(host)
                continue
            self.shells[host].type(typed)
            said = self.shells[host].said(BUSY if typed.startswith('zklock why') else 0)
            check_equal(servers(shape(said)), servers(shape(output)), f'{host}$ {typed}')
            self.seen(host, typed)

    def seen(self, host, typed):
        """The other host sees what was typed on this one, before it goes on."""
        mount = self.mounts['web2' if host == 'web1' else 'web1']
        lock = typed.split('/')[-1]
        if typed.startswith('mkdir'):
            until(lambda: lock in mount.locks(), f'{lock} is there')
        elif typed.endswith('&'):
            lock, reason = re.search(r"(\w+) -- ", typed)[1], re.search("'(.*)'", typed)[1]
            queued(mount, lock, 1, 1)
            shows(mount, lock, reason)
        elif typed.startswith('systemctl'):
            queued(mount, 'scheduler', 2 if host == 'web2' else 1, 1)
            shows(mount, 'scheduler', 'command=run-scheduler')
            shows(mount, 'scheduler', 'reason=leader')

    def reload(self, host):
        """As zklockfs --reload of the unit does it, with a lock held."""
        check(re.search(r'^ExecReload=\S+/zklockfs --reload ', read('fs/system/zklockfs@.service.in'), re.MULTILINE), 'the unit has a reload')
        mount = self.mounts[host]
        holder = mount.take('deploy').held()
        token = holder.token()
        mount.reload()
        check_equal(holder.token(), token, 'the lock is held after the upgrade')
        mount.said('has taken over')
        holder.release()

    def end(self):
        self.shells['web2'].type('systemctl stop scheduler')
        self.shells['web2'].said()
        for shell in self.shells.values():
            shell.end()


def test(case):
    gate = Gate(case)
    blocks = [text for text in indented(shown(PAGE)) if 'zklockfs-guide(7)' not in text]
    unit, = [text for text in blocks if text.startswith('[Unit]')]
    gate.tool('systemctl', SYSTEMCTL.replace('UNIT', gate.tools + '/scheduler.service'))
    with open(gate.tools + '/scheduler.service', 'w', encoding='utf-8') as file:
        file.write(unit)
    gate.tool('backup', ' '.join(gate.visitor('backup')))
    gate.tool('run-scheduler', "trap 'kill $!; exit' TERM\nsleep 1000 &\nwait")
    server = case.server()
    mounts = [case.mount(server, host) for host in ('web1', 'web2')]
    hosts, played = Hosts(gate, mounts), 0
    for text in blocks:
        if not re.match(r'web\d\$', text):
            stands_elsewhere(text)
            continue
        outage = 'does not answer' in text
        if outage:
            server.freeze()
            until(lambda: mounts[0].status()['state'] == 'lost' and mounts[0].status()['servers_tried'] != '-', 'the outage is known')
        hosts.play(text)
        if outage:
            server.thaw()
            until(lambda: mounts[0].status()['state'] == 'ready', 'the ensemble is back')
        played += 1
    check_equal(played, 7, 'blocks with a prompt')
    hosts.end()
    gate.nobody('each time another host had the lock, or nobody could')


run(test)
