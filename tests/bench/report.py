# SPDX-License-Identifier: MIT
"""report.py - medians and ratios, as tables."""

import statistics

import peers

TITLES = {peer.name: peer.title for peer in peers.PEERS}


def higher_is_better(figure):
    return figure.endswith('/s')


def medians(results):
    """{scenario: {peer: {figure: {'median': m, 'ratio': how many times better zklockfs is}}}}"""
    table = {}
    for scenario in results[0]:
        table[scenario] = {}
        for peer in results[0][scenario]:
            row = table[scenario][peer] = {}
            figures = dict.fromkeys(figure for each in results for figure in each[scenario][peer])
            for figure in figures:
                pairs = [(each[scenario]['zklockfs'].get(figure), each[scenario][peer].get(figure))
                         for each in results]
                values = [theirs for _, theirs in pairs if theirs is not None]
                ratios = [ours / theirs if higher_is_better(figure) else theirs / ours
                          for ours, theirs in pairs if ours and theirs]
                row[figure] = {'median': statistics.median(values), 'least': min(values), 'most': max(values),
                               'ratio': statistics.median(ratios) if ratios else None}
    return table


def number(value):
    return f'{value:,.0f}' if abs(value) >= 100 else f'{value:.3g}'


def _show_scenario(title, row):
    figures = list(dict.fromkeys(figure for each in row.values() for figure in each))
    if not figures:
        return
    print(f'\n{title}')
    print(f'  {"":34}' + ''.join(f'{figure:>21}' for figure in figures))
    # zklockfs first, then the others in the order of PEERS.
    for peer in [peer for peer in TITLES if row.get(peer)]:
        cells = ''
        for figure in figures:
            cell = row[peer].get(figure)
            text = '-' if cell is None else number(cell['median'])
            if cell and cell['ratio'] and peer != 'zklockfs':
                ratio = cell['ratio']
                text += f' ({number(ratio)}x)' if ratio >= 10 else f' ({ratio:.2f}x)'
            cells += f'{text:>21}'
        print(f'  {TITLES[peer]:34}{cells}')


def _show_requests(requests):
    if not requests:
        return
    cases = list(dict.fromkeys(case for each in requests.values() for case in each))
    print('\nRequests at the server per cycle (and notifications; bytes both ways; watches on the server)')
    print(f'  {"":34}' + ''.join(f'{case:>32}' for case in cases))
    for peer, row in requests.items():
        cells = ''
        for case in cases:
            figures = row.get(case)
            text = '-'
            if figures:
                text = f'{figures["requests"]:.2f}'
                if figures['notifications']:
                    text += f' + {figures["notifications"]:.2f}'
                text += f' ; {figures["bytes"]:,.0f}'
                if 'watches' in figures:
                    text += f' ; {figures["watches"]}'
            cells += f'{text:>32}'
        print(f'  {TITLES[peer]:34}{cells}')
    for case, figures in requests.get('zklockfs', {}).items():
        print(f'  zklockfs, {case}: ' + ', '.join(f'{kind} {count:.2f}' for kind, count
                                                   in sorted(figures['kinds'].items())))


def show(results):
    for variant, each in results['variants'].items():
        print(f'\n==== {variant}')
        for scenario, row in each['medians'].items():
            _show_scenario(scenario, row)
    _show_requests(results['requests'])
    for name, figures in results['scale'].items():
        print(f'\n{name}: ' + ', '.join(f'{figure} {number(value)}' for figure, value in figures.items()))
    if results['variants']:
        print('\nIn brackets: how many times better zklockfs is, within the same round; below 1 it is worse.')
    print()
    for point in results['points']:
        print(f'{"yes" if point["ok"] else "NO ":4} {point["point"]:62} {point["wanted"]:>20}   '
              f'{number(point["got"]) if point["got"] >= 100 else format(point["got"], ".2f")}')
