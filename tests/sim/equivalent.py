# SPDX-License-Identifier: MIT
"""Mutants of mutate.py that no fast test can notice, and why: the file, what was changed, the line
(as it is in the mutant; if something was dropped, as it was), the reason."""

MEMORY = 'only where there is no memory, which tests/oom looks at'
SAME = 'both sides are the same value there'

EXPLAINED = [
    ('lock_watch.c', 'false is true', 'entry_set_ahead(&taker->entry, NULL, true, false);',
     'without a node entry_set_ahead() clears both flags'),
    ('lock_watch.c', 'false is true', 'entry_set_ahead(&taker->entry, NULL, false, true);',
     'without a node entry_set_ahead() clears both flags'),
    ('entry.c', 'dropped assignment', 'entry->claim_lost |= entry->state == ENTRY_UNKNOWN; /* no memory: it is there */',
     MEMORY),
    ('entry.c', '== is !=', 'entry->claim_lost |= entry->state != ENTRY_UNKNOWN; /* no memory: it is there */',
     'it counts in the state UNKNOWN only, and is cleared before the next claim'),
    ('entry.c', 'dropped assignment', 'entry->claim_lost = true;', MEMORY),
    ('entry.c', 'true is false', 'entry->claim_lost = false;', MEMORY),
    ('call.c', '> is >=', 'return left >= AWAY_US ? left : AWAY_US;', SAME),
    ('call.c', 'dropped call', 'call_fail_soon(call, -ENOMEM);', MEMORY),
    ('taker.c', 'dropped call', 'taker_fail(taker, -ENOMEM);', MEMORY),
    ('poke.c', 'dropped call', 'free_poke(poke); /* then it sees the mark when it looks at the entry */', MEMORY),
    ('order.c', '|| is &&', 'if (!path && !order->items[i].znode) {', MEMORY),
]
