# SPDX-License-Identifier: MIT
"""report.py - the figures of a run."""

import collections

_SHOWN = 40     # violations written out; the rest are counted


def _table(title, counter):
    print(f'{title}:')
    for name, number in sorted(counter.items()):
        print(f'  {number:8d}  {name}')


def show(args, took, faults, proxy, result):
    print(f'seed {args.seed}, {args.seconds:g} s of faults, {took:.0f} s in all')
    # The faults count shots that were armed; the proxy counts shots that have hit.
    hits = collections.Counter({f'hit, {name}': number for name, number in proxy.fired.items()})
    hits['frames held back'], hits['frames delayed'] = proxy.held, proxy.late
    _table(f'faults ({sum(faults.values())})', faults)
    _table('what they did on the links', hits)
    verdict(result)


def verdict(result):
    _table('histories', result.figures)
    kinds = collections.Counter(what for what, _ in result.violations)
    for what, text in result.violations[:_SHOWN]:
        print(f'VIOLATION, {what}: {text}')
    print(f'violations: {len(result.violations)}' +
          ''.join(f', {what} {number}' for what, number in sorted(kinds.items())))
