#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sale.py: many buyers on two mounts and few items, in a real database. Without the lock
it oversells; with it never, also when orders are repeated and buyers freeze or die. The figures are
those of the story in examples/README.md."""

import os
import sqlite3

from gate import Gate, at_once, evict, example, finished, queued
from harness import check, check_equal, run, until
from printed import read

ITEMS, BUYERS = 5, 20


class Shop:
    def __init__(self, case, gate, name):
        self.gate, self.database = gate, os.path.join(case.directory, name)
        self.do('stock', str(ITEMS))

    def do(self, *words):
        status, out, err = at_once('sale.py', self.database, *words)
        check_equal((status, err), (0, ''), f'{words}')
        return out

    def buyer(self, order, lock):
        return example('sale.py', self.database, 'buy', order, lock, *self.gate.visitor(order))

    def orders(self):
        with sqlite3.connect(self.database) as db:
            return db.execute('SELECT number, token FROM orders ORDER BY token').fetchall()


def without(shop):
    """All have looked before the first one sells: that is how it happens, made certain."""
    buyers = [shop.buyer(f'order {number}', '-') for number in range(BUYERS)]
    inside = [shop.gate.arrived() for _ in buyers]
    for visitor in inside:
        visitor.let()
    for buyer in buyers:
        check_equal(finished(buyer, 0, 'a buyer')[0], 'sold\n', 'a buyer is told')
    check_equal(len(shop.orders()), BUYERS, 'orders')
    report = f'{BUYERS} sold, {ITEMS - BUYERS} left\n'
    check_equal(shop.do('report'), report, 'it oversells')
    story = read('examples', 'README.md')
    check(report in story and f'stock {ITEMS}\n' in story and f'    {ITEMS} sold, 0 left\n' in story, 'the story')


def the_same_order(shop):
    """Twice at the same time, without a lock: it counts once."""
    buyers = [shop.buyer('order', '-') for _ in range(2)]
    for visitor in [shop.gate.arrived() for _ in buyers]:
        visitor.let()
    for buyer in buyers:
        check_equal(finished(buyer, 0, 'a buyer')[0], 'sold\n', 'says')
    check_equal(shop.orders(), [('order', 0)], 'orders')


def with_the_lock(shop, a, b):
    """The same rush, each order twice at the same time, on either mount."""
    buyers = [shop.buyer(f'order {number}', mount.path('shop'))
              for number in range(BUYERS) for mount in (a, b)]
    waiting, paid = len(buyers), []
    while len(paid) < ITEMS:
        visitor = shop.gate.arrived()
        shop.gate.nobody('a second one pays')
        paid.append(visitor.environ['ORDER'])
        visitor.let()
    said = [buyer.communicate(timeout=60)[0] + str(buyer.returncode) for buyer in buyers]
    shop.gate.nobody('one more pays')
    check_equal(len(set(paid)), ITEMS, 'each pays once')
    check_equal(sorted(number for number, _ in shop.orders()), sorted(paid), 'each buyer who has paid has it')
    tokens = [token for _, token in shop.orders()]
    check(len(set(tokens)) == ITEMS and min(tokens) > 0, f'tokens: {tokens}')
    check_equal((said.count('sold\n0'), said.count('sold before\n0'), said.count('sold out\n1')),
                (ITEMS, ITEMS, waiting - 2 * ITEMS), 'what the buyers are told')
    check_equal(shop.do('report'), f'{ITEMS} sold, 0 left\n', 'it never oversells')
    for mount in (a, b):
        queued(mount, 'shop', 0)


def trouble(shop, a, b):
    """The lock is lost while one pays; one dies while it pays. They come again."""
    for number in range(ITEMS - 1):
        buyer = shop.buyer(f'order {number}', a.path('shop'))
        shop.gate.arrived().let()
        finished(buyer, 0, 'a buyer')
    frozen = shop.buyer('frozen', a.path('shop'))
    paying = shop.gate.arrived('frozen')
    other = shop.buyer('other', b.path('shop'))
    queued(b, 'shop', 2)
    evict(b, 'shop')
    late = shop.gate.arrived('other')
    # It is first to sell, but not the last that looked.
    paying.let()
    check_equal(finished(frozen, 74, 'a buyer that has lost the lock')[0], 'too late\n', 'says')
    late.let()
    check_equal(finished(other, 0, 'the buyer after it')[0], 'sold\n', 'says')
    check_equal(finished(shop.buyer('frozen', a.path('shop')), 1, 'again')[0], 'sold out\n', 'says')
    check_equal(shop.do('report'), f'{ITEMS} sold, 0 left\n', 'after a loss')


def death(shop, a, b):
    buyer = shop.buyer('order', a.path('shop'))
    paying = shop.gate.arrived('order')
    buyer.kill()
    buyer.wait()
    again = shop.buyer('order', b.path('shop'))
    shop.gate.arrived('order').let()
    paying.let()
    check_equal(finished(again, 0, 'again')[0], 'sold\n', 'says')
    check_equal(finished(shop.buyer('order', a.path('shop')), 0, 'once more')[0], 'sold before\n', 'says')
    check_equal(len(shop.orders()), 1, 'orders')
    # A payment that fails sells nothing.
    poor = shop.buyer('poor', a.path('shop'))
    shop.gate.arrived('poor').let(1)
    check_equal(finished(poor, 2, 'a buyer who cannot pay')[0], '', 'says')
    check_equal(len(shop.orders()), 1, 'orders')


def test(case):
    server = case.server()
    a, b = case.mount(server, 'a'), case.mount(server, 'b')
    for mount in (a, b):
        mount.allow('evicted|lost')
    a.mkdir('shop')
    until(lambda: 'shop' in b.locks(), 'b sees the lock')
    gate = Gate(case)
    without(Shop(case, gate, 'unlocked'))
    the_same_order(Shop(case, gate, 'twice'))
    with_the_lock(Shop(case, gate, 'locked'), a, b)
    trouble(Shop(case, gate, 'trouble'), a, b)
    death(Shop(case, gate, 'death'), a, b)


run(test)
