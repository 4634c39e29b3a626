#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`.zklockfs/metrics` is exactly in Prometheus' text format, and its numbers are those of the
test's own actions."""

import errno
import os
import re
import time

from harness import Stopwatch, check, check_equal, check_errno, run, until

NAME = r'[a-zA-Z_:][a-zA-Z0-9_:]*'
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf'^({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? ([0-9.]+(?:e[+-]?[0-9]+)?|\+Inf|NaN)$')


def check_histogram(name, samples):
    """The buckets rise, the last is +Inf and is the count."""
    buckets = [(labels, value) for (series, labels), value in samples.items() if series == name + '_bucket']
    bounds = [float(re.fullmatch('le="(.*)"', labels).group(1)) for labels, _ in buckets]
    counts = [value for _, value in buckets]
    check(bounds == sorted(set(bounds)) and bounds[-1] == float('inf'), f'bounds {bounds}')
    check(counts == sorted(counts), f'counts {counts}')
    check_equal(counts[-1], samples[(name + '_count', None)], 'the last bucket')
    check((name + '_sum', None) in samples, 'no sum')


def parse(text, point):
    """The samples, (name, labels) -> value. The text must follow the format exactly."""
    samples, kinds, family, with_help = {}, {}, None, set()
    check(text.endswith('\n') and '\n\n' not in text, 'lines')
    for line in text.splitlines():
        helped = re.fullmatch(rf'# HELP ({NAME}) (\S.*)', line)
        typed = re.fullmatch(rf'# TYPE ({NAME}) (counter|gauge|histogram)', line)
        if helped:
            family = helped.group(1)
            check(family not in with_help, f'twice: {line}')
            with_help.add(family)
        elif typed:
            check(typed.group(1) == family and family not in kinds, f'out of place: {line}')
            kinds[family] = typed.group(2)
        else:
            match = SAMPLE.match(line)
            check(match, f'no sample: {line!r}')
            name, labels, value = match.groups()
            labels = ','.join(re.findall(LABEL, labels))
            check(labels.startswith(f'mount="{point}"'), f'of which mount is {line!r}?')
            labels = labels.removeprefix(f'mount="{point}"').removeprefix(',') or None
            base = re.sub('_(bucket|sum|count)$', '', name) if kinds.get(family) == 'histogram' else name
            check_equal(base, family, f'the family of {line!r}')
            check((name, labels) not in samples, f'twice: {line}')
            check(name.startswith('zklockfs_'), f'whose is {line!r}?')
            check((kinds[family] == 'counter') == name.endswith('_total'), f'a counter is _total: {line}')
            samples[(name, labels)] = float(value)
    check_equal(set(kinds), with_help, 'families with a type and with a help')
    for family, kind in kinds.items():
        check(any(re.sub('_(bucket|sum|count)$', '', name) == family or name == family
                  for name, _ in samples), f'nothing of {family}')
        if kind == 'histogram':
            check_histogram(family, samples)
    return samples


class Metrics:
    def __init__(self, mount):
        self.samples = parse(mount.read('.zklockfs', 'metrics'), mount.directory)

    def get(self, name, labels=None):
        return self.samples[('zklockfs_' + name, labels)]


def check_counters(mount, before, wanted):
    after = Metrics(mount)
    for name, by in wanted.items():
        labels = None
        if '{' in name:
            name, labels = name.rstrip('}').split('{')
        grew = after.get(name, labels) - before.get(name, labels)
        check_equal(grew, by, f'{name} {labels or ""}')
    return after


def test(case):
    began = int(time.time())
    server = case.server()
    mount = case.mount(server, 'web"1\\')
    other = case.mount(server, 'b')
    check_equal(sorted(os.listdir(mount.path('.zklockfs'))), ['history', 'locks', 'metrics', 'options', 'status'], 'files about the mount')
    check_errno(errno.EACCES if os.getuid() else errno.EPERM, os.open, mount.path('.zklockfs/metrics'), os.O_RDWR)
    text = mount.read('.zklockfs', 'metrics')
    for name in ('metrics', 'status', 'locks', 'history'):
        path = mount.path('.zklockfs', name)
        check(began <= os.stat(path).st_mtime <= time.time() + 1, f'{name} is of {os.stat(path).st_mtime}')
        first = os.stat(path).st_mtime
        until(lambda path=path, first=first: os.stat(path).st_mtime > first, f'the time of {name} goes on')
    check(os.stat(mount.path('.zklockfs', 'metrics')).st_size >= 2 * len(text), 'the size is no upper bound')
    mount.mkdir('build')

    start = Metrics(mount)
    check('host="web\\"1\\\\"' in text, 'the host is not quoted')
    check_equal([label for (name, label), value in start.samples.items()
                 if name == 'zklockfs_state' and value], ['state="ready"'], 'the state')
    check_equal(start.get('session_timeout_seconds'), 15, 'the session timeout')
    check_equal(start.get('tick_time_seconds'), server.tick_ms / 1000, 'the tick')
    check(5 < start.get('lease_left_seconds') <= 15, 'the lease')
    for name in ('takes_total', 'grants_total', 'losses_total', 'holders', 'entries', 'wait_seconds_count'):
        check_equal(start.get(name), 0, name)
    check_equal((start.get('sessions_total'), start.get('connections_total')), (1, 1), 'sessions')

    # A hold, a try, a timed wait, a killed waiter, a hand-over.
    holder = mount.take('build').held()
    waiter = mount.take('build')
    until(lambda: len(server.watches(mount.session())) >= 2, 'it queues, and is watched')
    mount.take('build', lock_file='try').refused(errno.EAGAIN)
    mount.take('build', lock_file='lock@100ms').refused(errno.ETIMEDOUT)
    killed = mount.take('build')
    until(lambda: Metrics(mount).get('waiters') == 2 and len(server.entries('build')) == 3, 'it queues')
    killed.kill()
    until(lambda: Metrics(mount).get('entries') == 2, 'it leaves')
    now = Metrics(mount)
    check_equal((now.get('holders'), now.get('waiters')), (1, 1), 'holders, waiters')
    check(100 < now.get('entry_bytes') < 400, 'bytes of the entries')
    holder.release()
    waiter.held()
    now = check_counters(mount, start, {
        'takes_total': 5, 'grants_total': 2, 'hand_offs_total': 1, 'abandoned_total': 1,
        'failures_total{errno="EAGAIN"}': 1, 'failures_total{errno="ETIMEDOUT"}': 1,
        'failures_total{errno="ENOLCK"}': 0, 'losses_total': 0, 'wait_seconds_count': 2})
    check(0 < now.get('wait_seconds_sum') < 10, 'the sum of waiting')

    # A waiter that waits for long enough to be seen; a holder with a deleted entry.
    slow = other.take('build')
    until(lambda: len(server.entries('build')) == 2, 'it queues')
    third = mount.take('build')
    until(lambda: len(server.entries('build')) == 3, 'it queues')
    before = now
    server.zk.delete('/locks/build/' + server.entries('build')[0])
    mount.allow('the lock is lost')
    slow.held()
    until(lambda: Metrics(mount).get('losses_total') == 1, 'the loss is counted')
    check_counters(mount, before, {'evictions_total': 1, 'losses_total': 1, 'takes_total': 1})
    waited = Stopwatch()
    until(lambda: waited.seconds() > 0.6, 'time passes')
    slow.release()
    third.held()
    now = check_counters(mount, before, {
        'grants_total': 1, 'wait_seconds_count': 1, 'hand_offs_total': 0,
        'wait_seconds_bucket{le="0.5"}': 0, 'wait_seconds_bucket{le="10"}': 1})
    check(0.6 < now.get('wait_seconds_sum') - before.get('wait_seconds_sum') < 10, 'how long it waited')

    # Requests are the server's count, without pings and the greeting.
    recved = int(server.connections()[mount.session()]['recved'])
    check(0.8 * recved - 3 <= now.get('requests_total') <= recved + 3,
          f'{now.get("requests_total")} requests, the server says {recved}')

    server.stop()
    case.mounts[-1].allow('.')
    mount.allow('.')
    other.allow('.')
    until(lambda: Metrics(mount).get('state', 'state="ready"') == 0, 'it sees that the server has gone')
    server.start()
    mount.ready()
    check_equal(Metrics(mount).get('connections_total'), 2, 'connections')
    third.release()


run(test)
