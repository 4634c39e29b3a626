#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""plot.py - figures as an SVG: plot.py FIGURES.json >plot.svg

plot.py FIGURES.json distance >distance.svg

Horizontal bars: how many times faster zklockfs is where both sides do the same work, on a
logarithmic scale; or what the distance to the servers costs each peer, in milliseconds. An SVG is text,
so this needs no library.
"""

import json
import math
import re
import sys
from xml.sax.saxutils import escape

# Title, scenario, figure. A killed holder is not among them: peers wait for a timeout there, and a
# time of waiting that somebody has chosen makes no ratio.
GROUPS = (
    ('Uncontended: cycles a second', 'uncontended', 'cycles/s'),
    ('One lock, 16 threads: cycles a second', 'hot', 'cycles/s'),
    ('64 locks, 64 threads: cycles a second', 'many', 'cycles/s'),
    ('Hand-off on one host', 'handoff-local', 'p50 us'),
    ('Hand-off between two hosts', 'handoff-remote', 'p50 us'),
)
PEERS = (
    ('curator', 'Curator InterProcessMutex', '#1b6ca8'),
    ('kazoo', 'kazoo Lock', '#5aa9d6'),
    ('go-zookeeper', 'go-zookeeper Lock', '#86c5e8'),
    ('recipe', 'recipe in C', '#9aa5b1'),
    ('etcd', 'etcd Mutex', '#7a9e5b'),
    ('redis', 'Redis SET NX', '#c2703d'),
    ('postgres', 'PostgreSQL row', '#8a6fae'),
)
WIDTH, LEFT, RIGHT, TOP = 860, 250, 70, 86
BAR, GAP, GROUP_GAP = 13, 3, 22
LONGEST = 200              # a longer bar is cut, and shows that
FONT = 'font-family="Helvetica, Arial, sans-serif"'


def _text(x, y, text, size=12, anchor='start', weight='normal', colour='#333'):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" '
            f'fill="{colour}" {FONT}>{escape(text)}</text>')


def _label(ratio):
    return f'{ratio:,.0f}×' if ratio >= 20 else f'{ratio:.1f}×'


def _bars(table):
    """[(group title, [(peer title, colour, ratio)])] of the peers that were measured."""
    found = []
    for title, scenario, figure in GROUPS:
        row = table.get(scenario, {})
        bars = [(name, colour, row[peer][figure]['ratio']) for peer, name, colour in PEERS
                if row.get(peer, {}).get(figure, {}).get('ratio')]
        if bars:
            found.append((title, bars))
    return found


def _head(height, title, subtitle):
    return [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            f'height="{height}" role="img" aria-label="{title}">',
            f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
            _text(20, 32, title, 19, weight='bold', colour='#111'),
            _text(20, 53, subtitle, 12, colour='#666')]


def _grid(x, bottom, text, one=False):
    return [f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom}" '
            f'stroke="{"#333" if one else "#e3e6ea"}" stroke-width="{1.4 if one else 1}"/>',
            _text(x, TOP - 13, text, 11, 'middle', colour='#666')]


def ratios(results):
    variant, each = next(iter(results['variants'].items()))
    groups = _bars(each['medians'])
    drawn = [ratio for _, bars in groups for _, _, ratio in bars]
    low = min(0.5, *drawn) if drawn else 0.5
    high = min(max(10, *drawn), LONGEST) if drawn else 10
    low, high = math.log10(low) - 0.02, math.log10(high) + 0.05
    scale = (WIDTH - LEFT - RIGHT) / (high - low)

    def place(ratio):
        return LEFT + (math.log10(ratio) - low) * scale
    height = TOP + sum(len(bars) * (BAR + GAP) + GROUP_GAP + 16 for _, bars in groups) + 30
    out = _head(height, 'How many times faster zklockfs is',
                f'Same machine, same run, medians of rounds; {variant.split("-")[0]}, '
                f'{"three servers" if variant.endswith("-3") else "one server"}. '
                'Logarithmic; left of 1× the other is faster.')
    bottom = height - 24
    for power in range(math.floor(low), math.ceil(high) + 1):
        for step in (1, 2, 5):
            ratio = step * 10.0 ** power
            if not low <= math.log10(ratio) <= high:
                continue
            x = place(ratio)
            one = ratio == 1
            if one or step == 1 or high - low < 2.2:
                out += _grid(x, bottom, f'{ratio:,g}×', one)
    y = TOP
    for title, bars in groups:
        y += 16
        out.append(_text(20, y, title, 13, weight='bold', colour='#111'))
        y += 6
        for name, colour, ratio in bars:
            x1, x2 = sorted((place(1), place(min(ratio, LONGEST))))
            out.append(f'<rect x="{x1:.1f}" y="{y}" width="{max(x2 - x1, 1):.1f}" height="{BAR}" fill="{colour}"/>')
            if ratio > LONGEST:
                out.append(f'<path d="M{x2 - 26:.1f} {y + BAR + 1} l6 {-BAR - 2} h5 l-6 {BAR + 2} z" fill="#ffffff"/>')
            out.append(_text(40, y + BAR - 3, name, 11, colour='#444'))
            out.append(_text(max(x2, place(1)) + 5, y + BAR - 3, _label(ratio), 11, colour='#222'))
            y += BAR + GAP
        y += GROUP_GAP
    out.append('</svg>')
    return '\n'.join(out) + '\n'


# Title, scenario.
FAR = (('A free lock', 'uncontended'), ('From host to host', 'handoff-remote'))


def distance(results):
    """Milliseconds of each peer, on the first variant with a distance."""
    name, each = next(((name, each) for name, each in results['variants'].items() if name.endswith('ms')), ('', None))
    table = each['medians'] if each else {}
    groups = []
    each_way = float(re.search(r'([\d.]*)ms$', name).group(1)) if name else 1
    for title, scenario in FAR:
        row = table.get(scenario, {})
        bars = [(label, colour, row[peer]['flights']['median'] * each_way)
                for peer, label, colour in (('zklockfs', 'zklockfs', '#b3202a'), *PEERS) if row.get(peer, {}).get('flights')]
        if bars:
            groups.append((title, bars))
    most = max((took for _, bars in groups for _, _, took in bars), default=1)
    step = 10 ** math.floor(math.log10(most)) / 2
    height = TOP + sum(len(bars) * (BAR + GAP) + GROUP_GAP + 16 for _, bars in groups) + 30
    scale = (WIDTH - LEFT - RIGHT) / (most * 1.08)
    out = _head(height, f'Milliseconds, when the servers are {each_way:g} ms away',
                f'A round trip takes {2 * each_way:g} ms, and nobody can be faster. Medians of rounds.')
    for mark in range(math.floor(most * 1.08 / step) + 1):
        out += _grid(LEFT + mark * step * scale, height - 24, f'{mark * step:g}', mark == 0)
    y = TOP
    for title, bars in groups:
        y += 16
        out.append(_text(20, y, title, 13, weight='bold', colour='#111'))
        y += 6
        for label, colour, took in bars:
            out.append(f'<rect x="{LEFT}" y="{y}" width="{took * scale:.1f}" height="{BAR}" fill="{colour}"/>')
            out.append(_text(40, y + BAR - 3, label, 11, colour='#444'))
            out.append(_text(LEFT + took * scale + 5, y + BAR - 3, f'{took:.0f}', 11, colour='#222'))
            y += BAR + GAP
        y += GROUP_GAP
    out.append('</svg>')
    return '\n'.join(out) + '\n'


if __name__ == '__main__':
    with open(sys.argv[1], encoding='utf-8') as figures:
        sys.stdout.write((distance if sys.argv[2:] == ['distance'] else ratios)(json.load(figures)))
