#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""checker_test.py - the checker on histories made by hand: good ones, and a bad one for each
kind of violation. Times are milliseconds."""

import errno
import os
import sys
import unittest

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
sys.dont_write_bytecode = True

import checker
from holds import History

MS = 10**6


class Story:
    """The history of one worker."""

    def __init__(self, worker='w', mount=0, guarded=False):
        self.worker, self.mount, self.guarded, self.events = worker, mount, guarded, []

    def say(self, kind, c=None, r=None, **fields):
        event = {'e': kind, **fields}
        if c is not None:
            event['c'] = c * MS
        if r is not None:
            event['r'] = r * MS
        self.events.append(event)
        return self

    def take(self, token, c, r, lock_file='lock', lock='hot', mode='exclusive'):
        self.say('open', c=c, lock=lock, lock_file=lock_file, mode=mode, signal=False).say('held', c, r)
        return self if token is None else self.check(token, r, r + 1)

    def share(self, token, c, r):
        return self.take(token, c, r, 'shared', mode='shared')

    def refused(self, code, c, r, lock_file='lock', signal=False, **more):
        self.say('open', c=c, lock='hot', lock_file=lock_file, signal=signal, **more)
        return self.say('fail', c, r, errno=code)

    def check(self, token, c, r, how='read', code=0):
        return self.say('check', c, r, how=how, errno=code, token=None if code else token)

    def lost(self, c, r, how='read'):
        return self.check(None, c, r, how, errno.EIO)

    def release(self, c):
        return self.say('release', c)

    def update(self, value, c, r, checked=None, store='naive'):
        """A read at c, and a write of value + 1 that is done at r."""
        self.say('read', c, c + 1, store=store, value=value)
        return self.say('write', r - 1, r, store=store, value=value + 1,
                        checked=None if checked is None else checked * MS)

    def look(self, value, c, store='naive'):
        return self.say('look', c, c + 1, store=store, value=value)

    def value(self, number, token, c, code=0):
        return self.say('value', c, c + 1, number=number, errno=code, token=token)

    def burst(self, takes, requests, locks=32):
        return self.say('burst', 0, 1000, locks=locks, takes=takes, requests=requests)

    def fence(self, op, ok, value, c):
        return self.say('fence', c, c + 1, op=op, ok=ok, value=value)

    def end(self, c):
        return self.say('done', c, c + 1, lock='hot').say('exit')


def eviction(c, r, token=1, code=0, mount=0):
    return 'evict', {'lock': 'hot', 'host': f'm{mount}', 'token': token, 'errno': code, 'state': 'held'}, c, r


class Checker(unittest.TestCase):
    def judge(self, *stories, faults=(), records=(), left=(), problems=(), killed=(), ends=True,
              slots=1, truncated=()):
        result = checker.Result()
        journal = [{'e': 'begin', 'locks': ['hot'], 'slots': {'hot': slots}, 'sessions': [4, 4, 4]}]
        journal += [{'e': 'fault', 'kind': kind, 'target': target, 'c': c * MS, 'r': r * MS}
                    for kind, target, c, r in faults]
        journal += [{'e': 'kill', 'process': name, 'c': c * MS} for name, c in killed]
        journal += [{'e': 'quiet', 'c': 0}, {'e': 'end', 'left': left, 'problems': problems, 'truncated': truncated}]
        gone = {name for name, _ in killed}
        histories = []
        for story in stories:
            if ends and story.worker not in gone:
                story.end(100000)
            histories.append(History(story.worker, story.mount, story.guarded, story.events,
                                     result.complain, ['hot']))
        checker.judge(result, journal, histories, {'hot': records})
        return result

    def good(self, *stories, **more):
        result = self.judge(*stories, **more)
        self.assertEqual(result.violations, [])
        return result

    def bad(self, what, *stories, **more):
        found = {kind for kind, _ in self.judge(*stories, **more).violations}
        self.assertIn(what, found)

    # ---- one holder ----

    def test_one_after_the_other(self):
        self.good(Story('a').take(1, 0, 10).check(1, 20, 21).release(30),
                  Story('b').take(2, 5, 31).check(2, 40, 41).release(50))

    def test_two_at_once(self):
        self.bad('two holders', Story('a').take(1, 0, 10).check(1, 40, 41).release(50),
                 Story('b').take(2, 5, 30).check(2, 35, 36).release(60))

    def test_one_inside_the_other(self):
        self.bad('two holders', Story('a').take(1, 0, 10).check(1, 90, 91).release(95),
                 Story('c').take(2, 15, 20).release(22), Story('b').take(3, 5, 50).release(60))

    def test_overlap_that_proves_nothing(self):
        """a was not seen to hold after 20; the lock may have passed on then."""
        self.good(Story('a').take(1, 0, 10).check(1, 20, 21).lost(60, 61).release(70),
                  Story('b').take(2, 5, 30).check(2, 50, 51).release(80))

    def test_success_without_an_instant(self):
        """a's check began after b's check had returned, so a held at an instant after b did, though
        its token is smaller."""
        self.bad('two holders', Story('a').take(1, 0, 10).check(1, 60, 90).release(95),
                 Story('b').take(2, 5, 50).check(2, 51, 52).release(55))

    def test_success_with_an_instant(self):
        """a's check took long: it held when it was asked, b came while it was answered."""
        self.good(Story('a').take(1, 0, 10).check(1, 20, 90).lost(95, 96).release(97),
                  Story('b').take(2, 5, 50).check(2, 60, 61).release(62))

    def test_chain_without_an_instant(self):
        """No two holds certainly overlap, but in the order of the tokens no instant is left for c:
        its open had returned before a's and b's checks began."""
        self.bad('two holders', Story('a').take(1, 0, 40).check(1, 30, 41).release(42),
                 Story('b').take(2, 0, 39).check(2, 38, 45).release(46),
                 Story('c').take(3, 0, 29).release(47))

    def test_opened_inside_another_hold_without_token(self):
        self.bad('two holders', Story('a').take(1, 0, 10).check(1, 90, 91).release(95),
                 Story('b').take(None, 20, 30).lost(31, 32).release(33))

    def test_late_to_see_that_it_was_opened(self):
        """b held while it was opened, and saw that when a held already."""
        self.good(Story('a').take(1, 0, 25).check(1, 90, 91).release(95),
                  Story('b').take(None, 20, 30).lost(31, 32).release(33))

    def test_killed_worker_claims_nothing_more(self):
        self.good(Story('a').take(1, 0, 10), Story('b').take(2, 5, 30).release(40), killed=[('a', 20)])

    def test_stopped_daemon_claims_nothing_more(self):
        self.good(Story('a').take(1, 0, 10).lost(11, 9000).release(9001),
                  Story('b', 1).take(2, 5, 5000).check(2, 6000, 6001).release(7000),
                  faults=[('daemon-pause-long', 0, 11, 8999)])

    def test_stopped_daemon_that_still_says_yes(self):
        self.bad('two holders', Story('a').take(1, 0, 10).check(1, 8000, 9000).release(9001),
                 Story('b', 1).take(2, 5, 5000).check(2, 6000, 6001).check(2, 9500, 9501).release(9600),
                 faults=[('daemon-pause-long', 0, 11, 8999)])

    # ---- some share it ----

    def test_sharers(self):
        """Sharers hold in any order; a holder that does not share comes after them."""
        self.good(Story('a').share(1, 0, 20).check(1, 80, 81).release(90),
                  Story('b').share(2, 0, 10).check(2, 40, 41).release(50),
                  Story('c').take(3, 0, 95).check(3, 96, 97).release(98),
                  Story('d').share(4, 0, 99).release(100))

    def test_exclusive_one_among_sharers(self):
        self.bad('two holders', Story('a').share(1, 0, 10).check(1, 40, 41).release(50),
                 Story('b').take(2, 5, 30).check(2, 35, 36).release(60))
        self.bad('two holders', Story('b').take(1, 0, 10).check(1, 40, 41).release(60),
                 Story('a').share(2, 5, 30).check(2, 35, 36).release(50))

    def test_exclusive_one_behind_the_longest_sharer(self):
        self.bad('two holders', Story('a').share(1, 0, 10).check(1, 90, 91).release(95),
                 Story('b').share(2, 0, 15).check(2, 20, 21).release(22),
                 Story('c').take(3, 5, 30).release(31))

    def test_sharer_without_an_instant(self):
        self.bad('two holders', Story('a').take(1, 0, 10).check(1, 60, 90).release(95),
                 Story('b').share(2, 5, 50).check(2, 51, 52).release(55))
        self.bad('two holders', Story('a').share(1, 0, 10).check(1, 60, 90).release(95),
                 Story('b').take(2, 5, 50).check(2, 51, 52).release(55))

    def test_sharer_before_its_turn(self):
        """Its entry is behind that of an exclusive holder, which holds later."""
        self.bad('two holders', Story('a').take(4, 0, 30).check(4, 32, 33).release(40),
                 Story('b').share(5, 0, 10).check(5, 12, 13).release(20))

    def test_sharer_opened_inside_another_hold_without_token(self):
        self.bad('two holders', Story('a').take(1, 0, 10).check(1, 90, 91).release(95),
                 Story('b').share(None, 20, 30).lost(31, 32).release(33))
        self.good(Story('a').share(1, 0, 10).check(1, 90, 91).release(95),
                  Story('b').share(None, 20, 30).lost(31, 32).release(33))

    def test_sharers_by_flock(self):
        self.bad('two holders',
                 Story('a').take(1, 0, 10, 'flock', mode='shared').check(1, 40, 41).release(50),
                 Story('b').take(2, 5, 30, 'flock').check(2, 35, 36).release(60))
        self.good(Story('a').take(1, 0, 10, 'flock', mode='shared').check(1, 40, 41).release(50),
                  Story('b').take(2, 5, 30, 'flock', mode='shared').check(2, 35, 36).release(60))

    def test_conversion_is_two_holds(self):
        self.good(Story('a').take(1, 0, 10, 'flock', mode='shared').release(20).take(3, 20, 60, 'flock')
                  .release(70), Story('b').take(2, 5, 30).check(2, 45, 46).release(50))
        self.bad('two holders', Story('a').take(1, 0, 10, 'flock', mode='shared').release(20)
                 .take(3, 20, 40, 'flock').release(70),
                 Story('b').take(2, 5, 30).check(2, 45, 46).release(50))

    def test_what_is_shared_changes(self):
        reader = Story('a').share(1, 0, 10).look(7, 12).look(8, 40).check(1, 50, 51).release(60)
        self.bad('shared', reader)
        # Also beside an earlier holder that certainly had the lock to the end.
        self.bad('shared', reader, Story('b').take(0, 0, 1).update(7, 2, 3).check(0, 4, 5).release(6))

    def test_what_is_shared_changes_by_a_loser(self):
        self.good(Story('b').take(1, 0, 10).update(7, 12, 5000).lost(5001, 5002).release(5003),
                  Story('a').share(2, 5, 4000).look(7, 4100).look(8, 5100).check(2, 5200, 5201).release(5300))

    def test_what_was_shared_changes(self):
        """The sharer did not certainly hold at the later look."""
        self.good(Story('a').share(1, 0, 10).look(7, 12).check(1, 20, 21).look(8, 40).lost(50, 51)
                  .release(60))

    # ---- slots ----

    def test_slots(self):
        self.good(Story('a').take(1, 0, 10).check(1, 40, 41).release(50),
                  Story('b').take(2, 5, 30).check(2, 60, 61).release(70),
                  Story('c').take(3, 5, 52).check(3, 58, 59).release(70), slots=2)

    def test_one_more_than_slots(self):
        self.bad('two holders', Story('a').take(1, 0, 10).check(1, 40, 41).release(50),
                 Story('b').take(2, 5, 30).check(2, 60, 61).release(70),
                 Story('c').take(3, 5, 35).check(3, 58, 59).release(70), slots=2)

    def test_slots_without_an_instant(self):
        stories = [Story('a').take(1, 0, 10).check(1, 60, 90).release(95),
                   Story('b').take(2, 0, 10).check(2, 60, 90).release(95),
                   Story('c').take(3, 5, 50).check(3, 51, 52).release(55)]
        self.bad('two holders', *stories, slots=2)
        self.good(*stories, slots=3)

    def test_slots_and_sharers(self):
        self.bad('two holders', Story('a').share(1, 0, 10).check(1, 40, 41).release(50),
                 Story('b').take(2, 5, 30).check(2, 35, 36).release(60), slots=3)

    def test_slots_and_a_place_that_was_kept(self):
        """c came back to a place that it had before b came; b did not have to wait for it."""
        stories = [Story('b').take(5, 0, 10).release(20), Story('c').take(4, 15, 30).release(40)]
        self.good(*stories, slots=2)
        self.bad('token', *stories)

    def test_sharers_token_falls(self):
        self.bad('token', Story('a').share(5, 0, 10).release(20), Story('b').take(4, 15, 30).release(40))
        self.bad('token', Story('a').take(5, 0, 10).release(20), Story('b').share(4, 15, 30).release(40))
        self.bad('token', Story('a').share(5, 0, 10).release(20), Story('b').share(5, 15, 30).release(40))

    # ---- evictions and removals ----

    def test_evicted(self):
        self.good(Story('a').take(1, 0, 10).lost(30, 31).release(32)
                  .refused(errno.ECANCELED, 40, 60), faults=[eviction(20, 25), eviction(45, 46)])

    def test_evicted_before_it_comes_back(self):
        self.good(Story('a').refused(errno.EINTR, 0, 20, signal=True).refused(errno.ECANCELED, 40, 60),
                  faults=[eviction(25, 30)])

    def test_not_evicted(self):
        for faults in ([], [eviction(20, 25)], [eviction(70, 75)], [eviction(45, 46, mount=1)]):
            self.bad('errno', Story('a').refused(errno.ECANCELED, 40, 60), faults=faults)

    def test_forgotten_by_the_ensemble(self):
        """Epoch 2 was cut off after its 5th transaction, though a holder had got the 7th."""
        def stories(token, at):
            return (Story('a').take(token, 0, 10).value(7, token, 12).release(20),
                    Story('b').refused(errno.ECANCELED, 15, at),
                    Story('c').take(3 << 32, 30, 40).value(6, 3 << 32, 42).release(50))
        self.good(*stories(2 << 32 | 7, 60), truncated=[2 << 32 | 5])
        for token, at, truncated in ((2 << 32 | 7, 60, []), (2 << 32 | 7, 60, [2 << 32 | 7]),
                                     (2 << 32 | 7, 60, [1 << 32 | 5]), (2 << 32 | 5, 60, [2 << 32 | 5])):
            self.bad('value', *stories(token, at), truncated=truncated)
            # A cut without a proof excuses an entry that has gone, but no value.
            if truncated != [token]:
                self.bad('errno', *stories(token, at), truncated=truncated)
        self.bad('errno', Story('a').take(2 << 32 | 7, 0, 10).release(20),
                 Story('b').refused(errno.ECANCELED, 50000, 50100), truncated=[2 << 32 | 5])

    def test_entry_gone_after_a_cut(self):
        """The cut came after the open of the last entry that was kept, and before the next epoch's
        first grant."""
        def stories(c, r):
            return (Story('a').take(2 << 32 | 5, 5000, 5010).release(5020),
                    Story('b').refused(errno.ECANCELED, c, r),
                    Story('c').take(3 << 32, 9000, 9010).release(9020))
        self.good(*stories(5030, 6000), truncated=[2 << 32 | 5])
        self.good(*stories(5030, 20000), truncated=[2 << 32 | 5])
        for c, r in ((3000, 3990), (9011, 9500)):
            self.bad('errno', *stories(c, r), truncated=[2 << 32 | 5])
        self.bad('errno', *stories(5030, 6000))

    PROOF = 2 << 32 | 9

    def forgot(self):
        """The proof that the ensemble has forgotten what came after 5 in epoch 2, from 1000 to 2500."""
        return (Story('k').take(2 << 32 | 5, 1000, 1001, lock='warm').release(1002),
                Story('p').take(self.PROOF, 2000, 2010, lock='warm').release(2020),
                Story('n').take(3 << 32, 2490, 2500, lock='warm').release(2510))

    def test_entry_lives_again(self):
        """a's entry was deleted, b was granted, the delete was forgotten, and a was granted."""
        def stories(got, token=2 << 32 | 4):
            return (Story('b').take(token, 0, got).check(token, got + 2, got + 3).release(got + 5),
                    Story('a').take(2 << 32 | 3, 0, 3000).check(2 << 32 | 3, 3100, 3101).release(3200))
        result = self.good(*self.forgot(), *stories(1500), truncated=[2 << 32 | 5])
        self.assertEqual(result.figures['holds granted while the ensemble forgot'], 4)
        # Right before and right after the window, and without a proof.
        for got in (990, 2502):
            self.bad('two holders', *self.forgot(), *stories(got), truncated=[2 << 32 | 5])
        self.bad('two holders', *self.forgot(), *stories(1500))
        self.bad('two holders', *self.forgot(), *stories(1500), truncated=[2 << 32 | 9])

    def test_eviction_is_forgotten(self):
        def story():
            return Story('a').take(2 << 32 | 3, 0, 10).check(2 << 32 | 3, 40000, 40001).release(40002)
        self.good(*self.forgot(), story(), faults=[eviction(1900, 1990, 2 << 32 | 3)], truncated=[2 << 32 | 5])
        for at, truncated in ((1900, ()), (20000, [2 << 32 | 5])):
            self.bad('evicted', *self.forgot(), story(), faults=[eviction(at, at + 5, 2 << 32 | 3)],
                     truncated=truncated)

    def test_two_holders_while_the_ensemble_forgets(self):
        for first, second in ((1500, 1510), (3000, 3010)):
            self.bad('two holders', *self.forgot(),
                     Story('a').take(2 << 32 | 3, 0, first).check(2 << 32 | 3, first + 90, first + 91),
                     Story('b').take(2 << 32 | 4, 0, second).check(2 << 32 | 4, second + 5, second + 6),
                     truncated=[2 << 32 | 5])

    def test_stores_while_the_ensemble_forgets(self):
        def stories(got):
            one, other = 2 << 32 | 4, 2 << 32 | 3
            return (Story('b').take(one, 0, got).update(7, got + 1, got + 3).value(8, one, got + 4)
                    .check(one, got + 6, got + 7).release(got + 8),
                    Story('a').take(other, 0, 9000).fence('write', False, None, 9010).value(9, other, 9020)
                    .update(7, 9030, 9033).check(other, 9040, 9041).release(9050))
        self.good(*self.forgot(), *stories(1500), truncated=[2 << 32 | 5])
        for what in ('fenced', 'unfenced', 'value', 'two holders'):
            self.bad(what, *self.forgot(), *stories(8800), truncated=[2 << 32 | 5])
            self.bad(what, *self.forgot(), *stories(1500))

    def test_fenced_store_while_the_ensemble_forgets(self):
        one, other = 2 << 32 | 4, 2 << 32 | 3
        records = [('W', one, 1), ('W', other, 1)]
        def stories(got):
            return (Story('b').take(one, 0, got).release(got + 1), Story('a').take(other, 0, 9000).release(9001))
        self.good(*self.forgot(), *stories(1500), records=records, truncated=[2 << 32 | 5])
        self.bad('fenced', *self.forgot(), *stories(8800), records=records, truncated=[2 << 32 | 5])
        self.bad('fenced', *self.forgot(), *stories(1500), records=records)

    def test_shared_while_the_ensemble_forgets(self):
        def stories(got):
            return (Story('b', guarded=True).take(2 << 32 | 4, 0, got).update(7, 9020, 9023).release(9024),
                    Story('a').share(2 << 32 | 3, 0, 9000).look(7, 9010).look(8, 9030)
                    .check(2 << 32 | 3, 9040, 9041).release(9050))
        self.good(*self.forgot(), *stories(1500), truncated=[2 << 32 | 5])
        self.bad('shared', *self.forgot(), *stories(8800), truncated=[2 << 32 | 5])
        self.bad('shared', *self.forgot(), *stories(1500))

    def test_guardian_stands_still(self):
        """A paused machine: the guardian stands still, too, but not the worker."""
        def stories():
            return (Story('a', guarded=True).take(1, 0, 10).update(7, 12, 5000).lost(5001, 5002),
                    Story('b').take(2, 5, 4000).update(7, 4001, 4003).check(2, 4004, 4005).release(4006))
        for kind in ('daemon-machine-pause', 'daemon-machine-pause-long'):
            self.good(*stories(), faults=[(kind, 0, 11, 5000)])
        # The write came after the pause, the open too late, the pause was another machine's, or
        # only the daemon was stopped.
        for fault in (('daemon-machine-pause', 0, 11, 4999), ('daemon-machine-pause', 0, 9, 5000),
                      ('daemon-machine-pause', 1, 11, 5000), ('daemon-pause-long', 0, 11, 5000)):
            self.bad('unfenced', *stories(), faults=[fault])

    def test_evicted_and_holds_on(self):
        story = Story('a').take(1, 0, 10).check(1, 12000, 12001).release(12002)
        self.bad('evicted', story, faults=[eviction(20, 25)])
        # The eviction may not have been done, or it meant another holder.
        self.good(story, faults=[eviction(20, 25, code=errno.EHOSTUNREACH)])
        self.good(story, faults=[eviction(20, 25, token=2)])

    def test_evicted_right_before_it_writes(self):
        stories = [Story('a').take(1, 0, 10).update(7, 12, 60, 55, 'careful').lost(61, 62).release(63),
                   Story('b').take(2, 5, 57).update(7, 58, 59, 57, 'careful').check(2, 70, 71).release(72)]
        self.good(*stories, faults=[eviction(55, 56)])
        self.bad('unfenced', *stories)
        # A guarded holder is gone before the next one holds.
        stories[0].guarded = True
        self.bad('unfenced', *stories, faults=[eviction(55, 56)])

    def test_time_over_right_before_it_writes(self):
        def stories(lock_file):
            return [Story('a').take(1, 0, 10, lock_file).update(7, 12, 60, 55, 'careful').lost(61, 62).release(63),
                    Story('b').take(2, 5, 57).update(7, 58, 59, 57, 'careful').check(2, 70, 71).release(72)]
        self.good(*stories('lock@most=47ms'))
        for lock_file in ('lock', 'lock@least=47ms'):
            self.bad('unfenced', *stories(lock_file))

    def test_converted_when_it_is_lost(self):
        former = Story('a').take(5, 0, 10, 'flock').release(20)
        self.good(former.refused(errno.EIO, 21, 8000, 'flock', converts=True))
        self.bad('errno', Story('a').take(5, 0, 10, 'flock').release(20).refused(errno.EIO, 21, 8000, 'flock'))

    def test_removed(self):
        story = Story('a').refused(errno.ENOENT, 40, 60)
        self.good(story, faults=[('lock-remade', 'hot', 30, 50)])
        for removal in (('warm', 30, 50), ('hot', 10, 30), ('hot', 70, 80)):
            self.bad('errno', Story('a').refused(errno.ENOENT, 40, 60), faults=[('lock-remade', *removal)])
        self.good(Story('a').refused(errno.ENOENT, 1040, 1060, 'flock'), faults=[('lock-remade', 'hot', 30, 50)])
        late = Story('a').refused(errno.ENOENT, 2060, 2070, 'flock')
        self.bad('errno', late, faults=[('lock-remade', 'hot', 30, 50)])
        # Until then the mount could not ask the ensemble.
        self.good(late, faults=[('lock-remade', 'hot', 30, 50), ('mount-cut-off', 0, 40, 2055)])

    def test_forgotten_to_be_made_again(self):
        holder = Story('b').take(2 << 32 | 7, 40, 60).release(70)
        story = Story('a').refused(errno.ENOENT, 80, 90)
        removal = ('lock-remade', 'hot', 30, 50)
        self.good(holder, story, faults=[removal], truncated=[2 << 32 | 5])
        self.bad('errno', holder, story, faults=[removal])

    # ---- bursts ----

    def test_bursts(self):
        def bursts(*more):
            story = Story('a')
            for takes, requests in [(600, 1400)] * 7 + list(more):
                story = story.burst(takes, requests)
            return story

        self.good(bursts((600, 1100)))
        self.bad('bursts', bursts((600, 1400), (20, 10)))
        self.bad('bursts', bursts((600, 1400)).burst(600, 1000, locks=3))
        self.good(bursts((300, 900), (300, 900)))

    # ---- tokens ----

    def test_token_twice(self):
        self.bad('token', Story('a').take(1, 0, 10).release(20), Story('b').take(1, 5, 30).release(40))

    def test_token_falls(self):
        self.bad('token', Story('a').take(5, 0, 10).release(20), Story('b').take(4, 15, 30).release(40))

    def test_grants_out_of_order(self):
        """Both waited at the same time; the later entry was served first."""
        self.bad('two holders', Story('a').take(5, 0, 10).check(5, 12, 13).release(20),
                 Story('b').take(4, 0, 30).check(4, 32, 33).release(40))

    def test_token_changes(self):
        self.bad('token', Story('a').take(1, 0, 10).check(2, 20, 21).release(30))

    def test_lost_lock_comes_back(self):
        self.bad('came back', Story('a').take(1, 0, 10).lost(20, 21).check(1, 22, 23).release(30))

    def test_ensemble_could_not_be_asked(self):
        story = (Story('a').take(1, 0, 10).check(None, 20, 2020, 'fsync', errno.EHOSTUNREACH)
                 .check(1, 2022, 2023).release(2030).refused(errno.EHOSTUNREACH, 2040, 2041))
        self.good(story, faults=[('leader-stop', 1, 15, 2000), ('reset', 2, 1000, 1001)])

    def test_token_could_not_be_asked_for(self):
        self.good(Story('a').take(None, 0, 10).check(None, 20, 2020, 'read', errno.EHOSTUNREACH)
                  .check(1, 2022, 2023).release(2030), faults=[('leader-stop', 1, 15, 2000)])

    def test_ensemble_could_be_asked(self):
        for story in (Story('a').take(1, 0, 10).check(None, 20, 2020, 'fsync', errno.EHOSTUNREACH),
                      Story('a').refused(errno.EHOSTUNREACH, 2040, 2041)):
            self.bad('errno', story, faults=[('worker-kill', 'b', 15, 2000), ('reset', 2, 30000, 30001)])

    # ---- errors and times ----

    def test_errors_promised(self):
        self.good(Story('a').refused(errno.EINTR, 0, 1, signal=True)
                  .refused(errno.EAGAIN, 2, 3, 'try').refused(errno.EAGAIN, 3, 4, 'try@least=9ms')
                  .refused(errno.ETIMEDOUT, 4, 104, 'lock@100ms,most=9ms')
                  .refused(errno.EHOSTUNREACH, 4, 104, 'lock@100ms')
                  .refused(errno.ENOTCONN, 200, 201), faults=[('daemon-kill', 0, 150, 300)])

    def test_errors_not_promised(self):
        for code, lock_file in ((errno.EINTR, 'lock'), (errno.EAGAIN, 'lock'), (errno.ENOENT, 'lock'),
                           (errno.ENOLCK, 'try'), (errno.ESHUTDOWN, 'lock'), (errno.ETIMEDOUT, 'lock'), (errno.ENOTCONN, 'try'),
                           (errno.EHOSTUNREACH, 'lock'), (errno.ENOSYS, 'lock')):
            self.bad('errno', Story('a').refused(code, 0, 200, lock_file))
        self.bad('errno', Story('a').refused(errno.EHOSTUNREACH, 0, 99, 'lock@100ms'))

    def test_daemon_of_another_mount_was_killed(self):
        self.bad('errno', Story('a', 1).refused(errno.ENOTCONN, 200, 201),
                 faults=[('daemon-kill', 0, 150, 300)])

    def test_lost_in_a_crash(self):
        story = Story().take(1, 0, 10).check(1, 20, 21).lost(5000, 5001)
        crash = 'daemon-crash', 0, 30, 40
        self.bad('crash', story, faults=[crash])
        self.good(story, faults=[('daemon-crash', 1, 30, 40)])
        self.good(story, faults=[crash, ('server-kill', 1, 30, 40)])
        self.good(story, faults=[crash, eviction(25, 26)])
        self.good(Story().take(1, 0, 10, 'lock@most=100ms').lost(5000, 5001), faults=[crash])
        self.good(Story().take(1, 0, 10).check(1, 5000, 5001).release(5002), faults=[crash])

    def test_crash_is_no_excuse(self):
        self.bad('errno', Story().refused(errno.ENOTCONN, 0, 10), faults=[('daemon-crash', 0, 5, 8)])

    def test_check_gives_a_strange_error(self):
        self.bad('errno', Story('a').take(1, 0, 10).check(None, 20, 21, code=errno.EINVAL).release(22))

    def test_flock_at_once(self):
        self.good(Story('a').refused(errno.EAGAIN, 0, 3, 'flock', at_once=True)
                  .refused(errno.EHOSTUNREACH, 10, 2010, 'flock', at_once=True))
        self.bad('errno', Story('a').refused(errno.EAGAIN, 0, 3, 'flock'))
        self.bad('time', Story('a').refused(errno.EAGAIN, 0, 8500, 'flock', at_once=True))

    def test_flock_after_a_loss(self):
        story = Story('a').take(1, 0, 10, 'flock').lost(20, 21)
        self.good(story.check(None, 22, 23, 'flock', errno.EIO).release(30))
        self.bad('came back', Story('a').take(1, 0, 10, 'flock').lost(20, 21).check(None, 22, 23, 'flock')
                 .release(30))

    def test_gives_up_early(self):
        self.bad('time', Story('a').refused(errno.ETIMEDOUT, 0, 99, 'lock@100ms'))
        self.bad('time', Story('a').refused(errno.ETIMEDOUT, 0, 99, 'lock@100ms,most=20ms'))

    def test_comes_back_after_a_signal(self):
        """A worker that soon comes back to the same lock file has its old time limit."""
        def story(pause, lock_file):
            return (Story('a').refused(errno.EINTR, 0, 60, 'lock@100ms', signal=True)
                    .refused(errno.ETIMEDOUT, 60 + pause, 110 + pause, lock_file))
        self.good(story(10, 'lock@100ms'))
        self.bad('time', story(10, 'shared@100ms'))
        self.bad('time', story(2100, 'lock@100ms'))

    def test_gives_up_late(self):
        self.bad('time', Story('a').refused(errno.ETIMEDOUT, 0, 6500, 'lock@100ms'))
        self.bad('time', Story('a').refused(errno.EAGAIN, 0, 8500, 'try'))

    def test_late_because_it_was_stopped(self):
        self.good(Story('a').refused(errno.ETIMEDOUT, 0, 12000, 'lock@100ms'),
                  faults=[('daemon-pause-long', 0, 50, 7999)])

    # ---- the stores ----

    def test_fenced(self):
        self.good(Story('a').take(1, 0, 10).fence('read', True, 0, 12).fence('write', True, 1, 14)
                  .check(1, 16, 17).release(20),
                  records=[('R', 1, 0), ('W', 1, 1), ('R', 2, 1), ('W', 2, 2)])

    def test_fenced_loses(self):
        self.bad('fenced', Story('a').take(1, 0, 10).release(20),
                 records=[('R', 1, 0), ('W', 1, 1), ('W', 2, 1)])

    def test_fenced_takes_an_old_token(self):
        self.bad('fenced', Story('a').take(1, 0, 10).release(20),
                 records=[('R', 2, 0), ('W', 1, 1)])

    def test_fenced_forgets(self):
        self.bad('fenced', Story('a').take(1, 0, 10).fence('write', True, 1, 14).release(20), records=[])

    def test_holder_is_refused(self):
        self.bad('fenced', Story('a').take(1, 0, 10).fence('write', False, 1, 14).check(1, 16, 17)
                 .release(20))

    def test_loser_is_refused(self):
        self.good(Story('a').take(1, 0, 10).fence('write', False, 1, 14).lost(16, 17).release(20))

    def test_fenced_and_sharers(self):
        """Sharers come in any order, but after the exclusive holders before them."""
        def story():
            return Story('a').take(1, 0, 10).release(20)
        self.good(story(), records=[('W', 1, 1), ('S', 3, 1), ('S', 2, 1), ('R', 4, 1)])
        self.bad('fenced', story(), records=[('R', 2, 0), ('S', 1, 0)])
        self.bad('fenced', story(), records=[('S', 2, 0), ('R', 1, 0)])

    def test_sharer_is_refused(self):
        self.bad('fenced', Story('a').share(1, 0, 10).fence('share', False, None, 14).check(1, 16, 17)
                 .release(20))

    def test_value(self):
        def first():
            return Story('a').take(1, 0, 10).value(7, 1, 12).release(20)
        self.good(first(), Story('b').take(2, 5, 30).value(8, 2, 32).release(40))
        self.bad('value', first(), Story('b').take(2, 5, 30).value(7, 2, 32).release(40))
        self.good(first(), Story('b').take(2, 5, 30).value(7, 2, 32, errno.EIO).release(40))
        self.bad('errno', first(), Story('b').take(2, 5, 30).value(7, 2, 32, errno.EACCES).release(40))

    def test_unfenced_loses_without_a_reason(self):
        self.bad('unfenced', Story('a').take(1, 0, 10).update(7, 12, 14).check(1, 15, 16).release(17),
                 Story('b').take(2, 5, 20).update(7, 22, 24).check(2, 25, 26).release(27))

    def test_unfenced_loses_after_a_loss(self):
        """a was stopped in the middle and wrote over what b had written."""
        result = self.good(
            Story('a').take(1, 0, 10).update(7, 12, 5000).lost(5001, 5002).release(5003),
            Story('b').take(2, 5, 4000).update(7, 4001, 4003).check(2, 4004, 4005).release(4006),
            Story('c').take(3, 5, 5100).update(8, 5101, 5103).check(3, 5104, 5105).release(5106))
        self.assertEqual(result.figures['lost updates, plain store, naive'], 1)

    def test_unfenced_loses_though_the_loser_is_killed(self):
        self.bad('unfenced',
                 Story('a', guarded=True).take(1, 0, 10).update(7, 12, 5000).lost(5001, 5002).release(5003),
                 Story('b').take(2, 5, 4000).update(7, 4001, 4003).check(2, 4004, 4005).release(4006))

    def test_unfenced_loses_between_two_by_a_third(self):
        """c wrote late, so that b reads what a had read."""
        self.good(Story('c').take(1, 0, 1).update(6, 3, 4010).lost(4011, 4012).release(4013),
                  Story('a').take(2, 0, 4000).update(7, 4001, 4003).check(2, 4004, 4005).release(4006),
                  Story('b').take(3, 5, 4020).update(7, 4021, 4023).check(3, 4024, 4025).release(4027))

    def test_careful_loses_though_it_had_looked(self):
        """Right after a successful check no write may meet the next holder."""
        self.bad('unfenced', Story('a').take(1, 0, 10).check(1, 4990, 4991)
                 .update(7, 12, 5000, 4990, 'careful').lost(5001, 5002).release(5003),
                 Story('b').take(2, 5, 4992).update(7, 4994, 4996, 4993, 'careful').check(2, 4998, 4999)
                 .release(5006))

    # ---- the end ----

    def test_waits_for_ever(self):
        self.bad('stuck', Story('a').say('open', 0, lock='hot', lock_file='lock', signal=False), ends=False)

    def test_waits_for_ever_killed(self):
        self.good(Story('a').say('open', 0, lock='hot', lock_file='lock', signal=False), killed=[('a', 5)])

    def test_entry_left(self):
        self.bad('stuck', Story('a').take(1, 0, 10).release(20), left=['hot/_c_x-lock-0000000001'])

    def test_what_the_runner_saw(self):
        self.bad('other', Story('a').take(1, 0, 10).release(20), problems=['a daemon crashed'])


if __name__ == '__main__':
    unittest.main()
