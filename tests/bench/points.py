# SPDX-License-Identifier: MIT
"""points.py - the targets of the benchmark, and whether they are met.

A ratio says how many times better zklockfs is than a peer, as the median of the
ratios within each round.
"""

from report import TITLES


def _ratio(table, scenario, figure, peer):
    return table.get(scenario, {}).get(peer, {}).get(figure, {}).get('ratio')


def _value(table, scenario, figure):
    return table.get(scenario, {}).get('zklockfs', {}).get(figure, {}).get('median')


def _at_least(found, text, got, wanted, unit='x'):
    if got is not None:
        found.append({'point': text, 'wanted': f'>= {wanted:g} {unit}', 'got': got, 'ok': got >= wanted})


def _at_most(found, text, got, wanted, unit):
    if got is not None:
        found.append({'point': text, 'wanted': f'<= {wanted:g} {unit}', 'got': got, 'ok': got <= wanted})


def _of_rounds(found, table):
    _at_least(found, '1 uncontended, cycles/s, beside Curator',
              _ratio(table, 'uncontended', 'cycles/s', 'curator'), 2.5)
    _at_least(found, '1 uncontended, cycles/s, beside kazoo', _ratio(table, 'uncontended', 'cycles/s', 'kazoo'), 3)
    for scenario in ('uncontended', 'rested'):
        _at_least(found, f'1 {scenario}, acquire p50, beside Curator',
                  _ratio(table, scenario, 'acquire p50 us', 'curator'), 1)
        _at_least(found, f'1 {scenario}, acquire p50, beside a bare create',
                  _ratio(table, scenario, 'acquire p50 us', 'create'), 1 / 1.3)
    _at_least(found, '2 one hot lock, 16 threads, beside Curator', _ratio(table, 'hot', 'cycles/s', 'curator'), 6)
    _at_least(found, '3 64 threads on 64 locks, beside Curator', _ratio(table, 'many', 'cycles/s', 'curator'), 3)
    _at_least(found, '4 hand-off, same host, p50, beside Curator',
              _ratio(table, 'handoff-local', 'p50 us', 'curator'), 5)
    for peer, wanted in (('curator', 2.2), ('recipe', 1.5), ('go-zookeeper', 1.5)):
        _at_least(found, f'5 hand-off, two hosts, p50, beside {TITLES[peer]}',
                  _ratio(table, 'handoff-remote', 'p50 us', peer), wanted)
    _at_most(found, '6 SIGKILL of the holder until the next holds', _value(table, 'killed', 'max ms'), 20, 'ms')


def _of_distance(found, name, table):
    _at_most(found, f'10 {name}: hand-off between hosts', _value(table, 'handoff-remote', 'flights'), 2.4, 'flights')
    _at_most(found, f'10 {name}: a free lock', _value(table, 'uncontended', 'flights'), 2.4, 'flights')
    ls, long = (_value(table, 'lists', f'{command} ms') for command in ('ls', 'ls -l'))
    if ls and long:
        _at_most(found, f'12 {name}: ls -l of 1,000 locks, beside ls', long / ls, 10, 'times')
    _at_most(found, f'10 {name}: a take each 1.5 s', _value(table, 'usual', 'flights'), 2.6, 'flights')
    for peer in ('curator', 'kazoo', 'go-zookeeper', 'recipe'):
        _at_least(found, f'10 {name}: a take each 1.5 s, beside {TITLES[peer]}',
                  _ratio(table, 'usual', 'acquire p50 us', peer), 1.6)
        _at_least(found, f'10 {name}: hand-off, beside {TITLES[peer]}',
                  _ratio(table, 'handoff-remote', 'p50 us', peer), 1.7)


def _of_reuse(found, name, table, wanted):
    """The default mount beside Redis, which answers from one server's memory: the cycles of a process that
    takes the same lock again and again."""
    cycles = {peer: figures['cycles/s']['median'] for peer, figures in table.get('uncontended', {}).items() if figures}
    if 'zklockfs' in cycles and 'redis' in cycles:
        _at_least(found, f'11 {name}: uncontended, cycles/s, beside Redis',
                  cycles['zklockfs'] / cycles['redis'], wanted)
    if 'zklockfs' in cycles:
        _at_most(found, f'11 {name}: uncontended, acquire p50',
                 table['uncontended']['zklockfs']['acquire p50 us']['median'], 100, 'us')


def _of_requests(found, cases):
    get = {case: figures['requests'] for case, figures in cases.items()}
    _at_most(found, '7 requests, uncontended', get.get('uncontended'), 3, 'requests')
    _at_most(found, '7 requests, held 50 ms', get.get('held 50 ms'), 5, 'requests')
    for case, figure, wanted in (('hand-off,', 'requests', 1.05), ('hand-off alone,', 'requests', 1.05),
                                 ('hand-off alone,', 'bytes', 1.1)):
        queues = [figures[figure] for name, figures in cases.items() if name.startswith(case)]
        if len(queues) > 1:
            _at_most(found, f'7 {figure} of a {case.rstrip(",")} with many waiting, beside 2', queues[-1] / queues[0],
                     wanted, 'times')
    _at_most(found, '7 requests of a take, its hand-off and its end', get.get('hand-off, 2 waiting'), 4, 'requests')


def _of_scale(found, scale):
    crowds = [(name, figures) for name, figures in scale.items() if name.endswith('waiters')]
    if crowds:
        name, figures = crowds[-1]
        waiters = int(name.split()[0])
        _at_most(found, f'8 {name}, beyond 20 MiB', max(figures['RSS MiB'] - 20, 0) * 1024 / waiters, 1,
                 'KiB per waiter')
        _at_most(found, f'8 {name}, ls of the queue', figures['ls queue ms'], 150, 'ms')
        _at_most(found, f'8 {name}, threads of the daemon', figures['threads'], 1, 'thread')
        _at_most(found, f'9 {name}, CPU while they wait', figures['CPU % while waiting'], 1, '%')
    if len(crowds) > 1:
        _at_most(found, f'8 time per grant, {name} beside {crowds[0][0]}',
                 figures['grant us'] / crowds[0][1]['grant us'], 2, 'times')
    crowd, recipe = scale.get('100 mounts'), scale.get('100 sessions of the recipe in C')
    if crowd and recipe:
        _at_least(found, '8 100 mounts on one lock, cycles/s, beside 100 sessions of the recipe',
                  crowd['cycles/s'] / recipe['cycles/s'], 1)
    if 'idle mount' in scale:
        _at_most(found, '9 idle mount, requests but heartbeats and pings', scale['idle mount']['other requests'], 0,
                 'requests')
        _at_most(found, '9 idle mount, heartbeats', scale['idle mount']['heartbeats/s'], 0.5, 'a second')


def judge(results):
    """A line for each point that was measured: on the first variant, and at a distance of 5 ms."""
    found = []
    for number, (name, each) in enumerate(results['variants'].items()):
        if name.endswith('-5ms'):
            _of_distance(found, name, each['medians'])
            _of_reuse(found, name, each['medians'], 50)
        elif number == 0 and not name.endswith('ms'):
            _of_rounds(found, each['medians'])
            _of_reuse(found, name, each['medians'], 3)
    _of_requests(found, results['requests'].get('zklockfs', {}))
    _of_scale(found, results['scale'])
    return found
