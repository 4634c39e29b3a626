# SPDX-License-Identifier: MIT
"""Mutants of mutate.py that no fast test can notice, and why. A row: the file, the function, the
change, the line (from the mutant, or from the engine if something was dropped), the reason."""

MEMORY = 'only where there is no memory, which tests/oom looks at'

EXPLAINED = [
    ('lock_watch.c', 'lock_watch_front', 'dropped call', 'lock_list_later(lock);', MEMORY),
    ('lock_watch.c', 'ask_front', 'dropped call', 'lock_list_later(lock);', MEMORY),
    ('lock_watch.c', 'ask_front', 'dropped call', 'lock_watch_none(lock);', MEMORY),
    ('listing.c', 'judge_listing', 'dropped call', 'lock_list_later(lock);', MEMORY),
    ('entry.c', 'send_claim', 'dropped assignment', 'entry->claim_lost = true;', MEMORY),
    ('entry.c', 'send_claim', 'true is false', 'entry->claim_lost = false;', MEMORY),
    ('call.c', 'call_patience', '> is >=', 'return left >= AWAY_US ? left : AWAY_US;',
     'where they differ both values are the same'),
    ('call.c', 'call_read', 'dropped call', 'call_fail_soon(call, -ENOMEM);', MEMORY),
    ('order.c', 'order_find', '|| is &&', 'if (!path && !order->items[i].znode) {', MEMORY),
    ('poke.c', 'ask_node', 'dropped call', 'retry_later(poke);', MEMORY),
    ('taker.c', 'create_entry', 'dropped call', 'taker_fail(taker, -ENOMEM);', MEMORY),
    ('taker.c', 'create_entry', 'dropped call', 'entry_set_absent(&taker->entry);', MEMORY),
    ('taker.c', 'delete_entry', 'dropped call', 'entry_set_deleting(&taker->entry, false);', MEMORY),
    ('taker.c', 'delete_entry', 'false is true', 'entry_set_deleting(&taker->entry, true);', MEMORY),
    ('taker.c', 'delete_entry', 'dropped call', 'taker_try_later(taker);', MEMORY),
    ('batch.c', 'take_delete', 'false is true', 'return true;', MEMORY),
    ('lock_info.c', 'list_answered', '< is <=',
     'call_fail(call, reading->error <= 0 ? reading->error : -ENOMEM);', MEMORY),
    ('outbox.c', 'outbox_finish', 'dropped call', 'free_chunks(outbox, chunks);',
     'a leak at the end, which the sanitizers see'),
]
