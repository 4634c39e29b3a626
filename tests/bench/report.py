# SPDX-License-Identifier: MIT
"""report.py - medians and ratios, as a table."""

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
            figures = {figure for each in results for figure in each[scenario][peer]}
            for figure in sorted(figures):
                pairs = [(each[scenario]['zklockfs'].get(figure), each[scenario][peer].get(figure))
                         for each in results]
                values = [theirs for _, theirs in pairs if theirs is not None]
                ratios = [ours / theirs if higher_is_better(figure) else theirs / ours
                          for ours, theirs in pairs if ours and theirs]
                row[figure] = {'median': statistics.median(values), 'least': min(values), 'most': max(values),
                               'ratio': statistics.median(ratios) if ratios else None}
    return table


def number(value):
    return f'{value:,.0f}' if value >= 100 else f'{value:.3g}'


def show(table):
    for scenario, row in table.items():
        figures = list(dict.fromkeys(figure for each in row.values() for figure in each))
        print(f'\n{scenario}')
        print(f'  {"":34}' + ''.join(f'{figure:>24}' for figure in figures))
        for peer, values in row.items():
            if not values:
                continue
            cells = ''
            for figure in figures:
                cell = values.get(figure)
                text = '-' if cell is None else number(cell['median'])
                if cell and cell['ratio'] and peer != 'zklockfs':
                    text += f' ({cell["ratio"]:.2f}x)'
                cells += f'{text:>24}'
            print(f'  {TITLES[peer]:34}{cells}')
    print('\nIn brackets: how many times better zklockfs is, within the same round; below 1 it is worse.')
