#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Is every rule of the engine tested? One rule after the other is taken out of a copy of
lockcore/, and the simulation, or a unit test, has to notice.

    mutants.py [--jobs N] [--every N] [--build DIRECTORY] [NAME...]
    mutants.py --stale    # checks only whether all mutants still apply

A row of the table has the number of the rule (lockcore/RULES.md), the name of the mutant, the
file, a text that is there exactly once (or, if the file does not have it any more, exactly once
in all of lockcore/), its replacement, and the judge: a unit test, or the simulation, with a
profile and a first seed. That seed is a little before one that notices, to save time; one of the
next thousands has to notice. The engine without a change must pass the same judges."""

import argparse
import collections
import concurrent.futures
import functools
import os
import re
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
from works import ROOT, Works, compile_file, find, read, run, run_mutant, stem

SEEDS = 20000      # tried at most for each mutant
SECONDS = 100      # of the processor, at most for each mutant
ENDLESS = 600      # such a mutant waits for something

Mutant = collections.namedtuple('Mutant', 'rule name edits judge')
Sim = collections.namedtuple('Sim', 'profile first')
Unit = collections.namedtuple('Unit', 'source')


class Stale(Exception):
    """The text that a mutant replaces is not there, or not once."""


def sim(profile='any', first=1):
    return Sim(profile, first)


def unit(source):
    return Unit(source)


MUTANTS = []


def mutant(rule, name, file, old, new, judge, *more):
    """`more`: further (file, old, new)."""
    MUTANTS.append(Mutant(rule, name, [(file, old, new), *more], judge))


LEASE = unit('tests/unit/lease.c')
QUEUE = unit('tests/unit/queue.c')
CHANGE = unit('tests/sim/test_change.c')
LAYER_CHANGE = unit('tests/layer/change.c')
REMOVE = unit('tests/layer/remove.c')
MAKE = unit('tests/layer/make.c')
ASKING = unit('tests/layer/asking.c')
EVICTION = unit('tests/sim/test_eviction.c')
TAKERS = unit('tests/sim/test_takers.c')
TAKE = unit('tests/layer/take.c')
LATE = unit('tests/layer/late.c')
OWN = unit('tests/sim/test_own.c')
WATCHING = unit('tests/sim/test_watching.c')
HOLD_END = unit('tests/sim/test_hold_end.c')
HANDOFF = unit('tests/sim/test_handoff.c')
ADOPT = unit('tests/sim/test_adopt.c')
ADOPT_CHANGED = unit('tests/sim/test_adopt_changed.c')
KILLED = unit('tests/sim/test_killed.c')
REUSE = unit('tests/layer/reuse.c')
PORT = unit('tests/layer/port.c')
# The engine's files by their names: the texts without a change, and where they are in lockcore/.
TEXTS, PLACES = {}, {}

# ---- 1: evidence ----

mutant(1, 'lease_from_reads', 'call.c',
       '\tif (ok && call->writes)\n',
       '\tif (ok)\n',
       sim())
mutant(1, 'lease_by_sending_times_alone', 'lease.c',
       'sent_us - lease->answered_us < lease_spacing(lease)',
       'sent_us - lease->sent_us[0] < lease_spacing(lease)',
       LEASE)
mutant(1, 'lease_without_spacing', 'lease.c',
       'if (lease->steps > 0 && sent_us - lease->answered_us < lease_spacing(lease))',
       'if (0)',
       LEASE)
mutant(1, 'lease_from_the_newest_step', 'lease.c',
       'moved |= extend(lease, lease->sent_us[2]);',
       'moved |= extend(lease, lease->sent_us[0]);',
       sim('leases'))
mutant(1, 'steps_of_shorter_ticks_count', 'lease.c',
       '\tlease->steps = 0;\n\tif (rested)',
       '\tif (rested)',
       LEASE)
mutant(1, 'steps_of_shorter_ticks_were_good', 'lease.c',
       'bool rested = lease->steps == 3;',
       'bool rested = false;',
       LEASE)
mutant(1, 'longer_ticks_forgotten', 'lease.c',
       'CODEC_RANGE(codec, lease->tick_us, 1, TIMEOUT_MAX_US);',
       '{ int64_t tick_us = lease->tick_us; CODEC_RANGE(codec, tick_us, 1, TIMEOUT_MAX_US); }',
       unit('tests/sim/test_adopt.c'))
mutant(1, 'steps_by_the_ticks_of_the_former_process', 'session.c',
       'lease_raise_tick(lease, lc->config.tick_time_us, lc_now(lc)) &&',
       '(lease->tick_us = lc->config.tick_time_us) < 0 &&',
       unit('tests/layer/session_lease.c'))
mutant(1, 'lease_from_the_answer', 'lease.c',
       'lease->sent_us[0] = sent_us;',
       'lease->sent_us[0] = now_us;',
       LEASE)
mutant(1, 'answered_when_the_clock_was_read_last', 'session_lease.c',
       '\tint64_t now = lc_now(lc);\n\n\tsession->events->alive',
       '\tint64_t now = lc_lately(lc);\n\n\tsession->events->alive',
       sim('leases'))
mutant(1, 'lease_without_drift', 'lease.c',
       'return timeout_us / 1000 * 998;',
       'return timeout_us;',
       LEASE)
mutant(1, 'lease_without_guard', 'lease.c',
       'less_drift(lease->timeout_us) - LEASE_GUARD_US;',
       'less_drift(lease->timeout_us);',
       LEASE)
mutant(1, 'largest_timeout_counts', 'lease.c',
       'timeout_us < lease->timeout_us',
       'timeout_us > lease->timeout_us',
       LEASE)


# ---- 2: connecting ----

mutant(2, 'stamp_when_connected', 'session.c',
       'lease_connected(&session->lease, timeout_us, connect_us);',
       'lease_connected(&session->lease, timeout_us, lc_now(lc));',
       sim('leases'))
mutant(2, 'connected_is_proof', 'lease.c',
       'connect_us > lease->void_us ? connect_us : -1;\n}',
       'connect_us;\n\tlease->deadline_us = connect_us + less_drift(timeout_us) - LEASE_GUARD_US;\n}',
       LEASE)
mutant(2, 'proved_by_one_write', 'lease.c',
       '\tif (!lease->reads_sent) {',
       '\tif (!lease->reads_sent && lease_doubted(lease, now_us)) {',
       LEASE)
mutant(2, 'letters_not_read_before_the_proof', 'heartbeat.c',
       '\t\tif (session->state == LC_SUSPENDED && !session->resting)\n\t\t\tsession_read',
       '\t\tif (false)\n\t\t\tsession_read',
       unit('tests/layer/loss.c'))
mutant(2, 'read_behind_the_second_write', 'mailbox.c',
       '\tlc->session->events->letters(lc, letters, len, all);\n\tif (lc->session->state == LC_SUSPENDED)\n\t\tlc->session->mailbox.opened(lc);\n',
       '\tif (lc->session->state == LC_SUSPENDED)\n\t\tlc->session->mailbox.opened(lc);\n\tlc->session->events->letters(lc, letters, len, all);\n',
       unit('tests/layer/loss.c'))
mutant(2, 'second_write_is_late', 'listing.c',
       '\tsession_prove(lc);\n',
       '',
       unit('tests/layer/loss.c'))
mutant(2, 'connection_is_no_evidence', 'lease.c',
       'moved |= extend(lease, lease->connect_us);',
       ';',
       LEASE)

# ---- 45: renewals ----

SESSION_LEASE = unit('tests/layer/session_lease.c')
mutant(45, 'renewal_not_counted', 'lease.c',
       '\tlease->renews_us = now_us;',
       '\t(void)now_us;',
       LEASE)
mutant(45, 'given_up_renewal_forgotten', 'lease.c',
       '\tif (lease->renews_us < lease->late_us)\n\t\tlease->late_us = lease->renews_us;\n',
       '',
       LEASE)
mutant(45, 'forgotten_at_the_next_answer', 'lease.c',
       '\tlease->renews_us = INT64_MAX;\n',
       '\tlease->renews_us = lease->late_us = INT64_MAX;\n',
       LEASE)
mutant(45, 'late_renewal_stays_where_it_was', 'lease.c',
       '\t\tlease->late_us = sent_us;\n',
       '',
       LEASE)
mutant(45, 'late_answer_revives', 'session.c',
       '\tif (lc->session->limit.armed && !session_lease_is_valid(lc))\n\t\tlc->session->events->over(lc);\n',
       '',
       SESSION_LEASE)
mutant(45, 'guardian_not_told_of_a_renewal', 'session.c',
       '\t\ttimer_set(&lc->timers, &session->limit, lease_end(&session->lease));\n\tsession_tell_deadline(lc);\n}\n\nstatic int64_t length',
       '\t\ttimer_set(&lc->timers, &session->limit, lease_end(&session->lease));\n}\n\nstatic int64_t length',
       SESSION_LEASE)
mutant(45, 'end_of_a_lease_that_came_back_not_told', 'session.c',
       'if (session->limit.armed || session_lease_is_valid(lc))',
       'if (session->limit.armed)',
       SESSION_LEASE)
mutant(45, 'hung_server_waited_for_with_a_late_renewal', 'session_lease.c',
       'return hurries && late_us < otherwise_us ? late_us : otherwise_us;',
       'return late_us > otherwise_us ? late_us : otherwise_us;',
       SESSION_LEASE)
mutant(45, 'renewal_not_recorded', 'lease.c',
       '\tif (codec_has(codec, 6)) {\n\t\tCODEC_TIME(codec, lease->renews_us);',
       '\tif (codec_has(codec, 6)) {',
       unit('tests/unit/lease.c'))
mutant(45, 'session_of_a_late_renewal_kept', 'heartbeat.c',
       'shortens");\n\t\theartbeat_retreat(lc, RETREAT_ANEW);\n',
       'shortens");\n',
       SESSION_LEASE)
mutant(45, 'more_than_was_asked_for', 'session.c',
       '\t\ttimeout_us = lc->config.session_timeout_us;\n',
       '',
       SESSION_LEASE)

mutant(45, 'renewal_counted_from_the_answer', 'session.c',
       '\tassert(lc->session->lease.renews_us != INT64_MAX);\n',
       '\tlease_renews(&lc->session->lease, lc_now(lc));\n',
       sim('renewals'),
       ('session.c', '\tlease_renews(&session->lease, lc_now(lc));\n', ''))
# It was granted T: the renewal behind it counts as if its server granted as much.
mutant(45, 'scout_is_evidence', 'lease.c',
       '\tlease->renews_us = now_us;',
       '\tlease->renews_us = lease_needs_scout(lease) && now_us > 0 ? INT64_MAX - 1 : now_us;',
       sim('renewals'),
       ('lease.c', 'return from_us == INT64_MAX ? INT64_MAX', 'return from_us >= INT64_MAX - 1 ? INT64_MAX'))
mutant(45, 'sent_to_the_silent', 'session.c',
       'return lc->session->busy && !lc->session->resting &&\n\t       lease_needs_scout(&lc->session->lease);',
       'return lc == NULL;',
       sim('silent'))
mutant(45, 'given_up_for_its_scout', 'session.c',
       '\ttimer_set(&lc->timers, &session->retry, lc_now(lc) + answer_timeout_of_renewal(lc));\n',
       '\t(void)answer_timeout_of_renewal;\n',
       SESSION_LEASE)
mutant(17, 'late_entry_left_by_a_server', 'late.c',
       '} else if (!is_nobodys(lock, znode, name) || late->asked >= LATE_ASKED_MAX) {',
       '} else {',
       sim('backlogs'))

# ---- 3: a valid lease at every grant and use ----

mutant(3, 'lease_not_checked_at_use', 'hold.c',
       '\tif (lease_left(lease, now) > 0)\n\t\treturn !lease',
       '\tif (true)\n\t\treturn !lease',
       sim('leases'))
mutant(3, 'use_checked_by_an_older_reading', 'hold.c',
       'now = lc_now(lc);',
       'now = lc_lately(lc);',
       sim('leases'))
mutant(3, 'grant_told_by_an_older_reading', 'session_lease.c',
       'return lease_left(&lc->session->lease, lc_now(lc)) > 0;',
       'return lease_left(&lc->session->lease, lc_lately(lc)) > 0;',
       sim('leases'))
mutant(3, 'lease_not_checked_at_grant', 'heartbeat.c',
       '\tif (lease_fresh(&lc->session->lease, lc_now(lc)))\n\t\treturn true;\n\theartbeat_send(lc);',
       '\treturn true;\n\theartbeat_send(lc);',
       sim('leases'))
mutant(3, 'granted_to_be_stopped', 'session.c',
       'lease_begin(&session->lease, lc->config.tick_time_us, lc->config.loss_lead_us);',
       'lease_begin(&session->lease, lc->config.tick_time_us, 0);',
       sim('leases', 7700))
mutant(3, 'an_eighth_of_what_the_lead_takes', 'lease.c',
       'lease_left(lease, now_us) - lease->lead_us;',
       'lease_left(lease, now_us);',
       LEASE)
mutant(3, 'grant_told_without_lease', 'tell.c',
       'return lc_holds(taker);',
       'return true;',
       sim('leases', 220))
mutant(3, 'grant_with_less_than_an_eighth', 'lease.c',
       'left > 0 && left >= longest_lease(lease) / 8 &&\n'
       '\t       lease_end(lease) - lease->lead_us >= next_answer',
       'left > 0',
       LEASE)
mutant(3, 'idle_mount_does_not_beat', 'heartbeat.c',
       'lease->answered_us + lease_heartbeat(lease, busy);',
       '(busy ? lease->answered_us + lease_heartbeat(lease, busy) : INT64_MAX);',
       sim())
mutant(3, 'fresh_lease_is_not_noticed', 'session_lease.c',
       '\tif (lc_ready(lc))\n\t\tsession->events->extended(lc);',
       '',
       sim('leases', 1930))
mutant(3, 'missing_node_is_evidence', 'heartbeat.c',
       '/* no evidence: the node is made again */\n',
       '\n'
       '\t\tif (session->node.made) {\n'
       '\t\t\tsession_wrote(lc, session->beat.sent_us);\n\t\t\tplan_beat(lc);\n\t\t\treturn;\n\t\t}\n',
       sim('operators'))

REST = unit('tests/layer/rest.c')
mutant(3, 'rests_with_takers', 'heartbeat.c',
       'lc->config.rest_us &&\n\t         session->events->unused(lc)));',
       'lc->config.rest_us));',
       sim('rests'))
mutant(3, 'rest_never_ends', 'heartbeat.c',
       '\tsession_step(session, LC_SUSPENDED);\n\tsession->away_us = session->used_us;\n'
       '\tlc->ensemble->port->drop(lc->ensemble);\n',
       '',
       sim('rests'))
mutant(3, 'no_beat_planned_after_a_rest', 'heartbeat.c',
       '!(session->resting && lc_ready(lc)) &&',
       '!session->resting &&',
       unit('tests/layer/rest.c'))
mutant(3, 'taken_while_it_rests', 'take.c',
       '\tsession_use(lc);\n',
       '',
       sim('rests'))
mutant(3, 'asked_while_it_rests', 'call.c',
       '\tsession_use(lc);\n',
       '',
       REST)
mutant(3, 'rests_after_a_hold', 'heartbeat.c',
       '\tlc->session->used_us = lc_lately(lc);\n',
       '',
       REST)
mutant(3, 'lease_of_steps_far_apart', 'heartbeat.c',
       '\tsession_end_lease(lc);\n\tsession_step',
       '\tsession_step',
       REST)
mutant(2, 'lease_forgotten_with_entries', 'session_lease.c',
       '\tif (session->resting)\n\t\tsession_end_lease(lc);',
       '\tif (lc)\n\t\tsession_end_lease(lc);',
       sim('rests'))
mutant(2, 'still_rests_without_contact', 'session.c',
       '\t\tsession->resting = false;\n\t\tlc_report',
       '\t\tlc_report',
       REST)
mutant(41, 'still_rests_in_the_next_session', 'session.c',
       '\tsession->resting = false;\n\tsession->retreat = RETREAT_NONE;\n\tsession->inquiry',
       '\tsession->retreat = RETREAT_NONE;\n\tsession->inquiry',
       REST)
mutant(45, 'kept_after_a_rest', 'heartbeat.c',
       'if (resumed && session->resting && lease',
       'if (0 && session->resting && lease',
       REST)
mutant(45, 'scout_after_a_rest', 'session.c',
       'lc->session->busy && !lc->session->resting &&',
       'lc->session->busy &&',
       REST)

# ---- 4: a session that is long enough, and silent servers ----

mutant(4, 'short_session_accepted', 'session_lease.c',
       'if (lease_possible(lease->timeout_us, ',
       'if (1 || lease_possible(lease->timeout_us, ',
       sim('short'))
mutant(4, 'arithmetic_off_by_a_step', 'lease.c',
       'less_drift(timeout_us) - 3 *',
       'less_drift(timeout_us) - 2 *',
       LEASE)
mutant(4, 'hung_server_waited_for', 'heartbeat.c',
       '\t\tlc->ensemble->port->drop(lc->ensemble);\n\t\ttimer_set(&lc->timers, &session->beat.timer,',
       '\t\ttimer_set(&lc->timers, &session->beat.timer,',
       sim('hung', 1460))

# ---- 5: the guardian is told ----

mutant(5, 'deadline_not_told', 'session_lease.c',
       '\tsession_tell_deadline(lc);\n\tif (lc_ready(lc))',
       '\tif (lc_ready(lc))',
       sim())
mutant(5, 'no_deadline_not_told', 'session.c',
       '\tlease_again(&session->lease);\n\tsession_tell_deadline(lc);\n\tif',
       '\tlease_again(&session->lease);\n\tif',
       sim('any', 220))

# ---- 6, 35: lost stays lost, and its entry goes late ----

mutant(6, 'lost_revived_by_a_late_answer', 'session_lease.c',
       '\tif (lease_left(&session->lease, now) == 0)\n\t\tsession->events->over(lc);\n\tif (!lease_answered',
       '\tif (!lease_answered',
       sim('leases', 41870))
mutant(6, 'lost_waits_again', 'taker.c',
       'set_taker_state(taker, TAKER_LOST);',
       'set_taker_state(taker, TAKER_WAITING);\n\treturn;',
       sim('leases'))
mutant(6, 'lost_entry_deleted_at_once', 'taker.c',
       'taker->loss = lc->config.loss_lead_us == 0 ? LOSS_GIVEN_UP : LOSS_GUARDED;',
       'taker->loss = LOSS_GIVEN_UP;',
       sim('pauses', 150))
mutant(6, 'forfeited_entry_deleted_at_once', 'taker.c',
       '\tif (taker->loss != LOSS_FORFEITED)\n',
       '',
       sim('leases', 270))
mutant(6, 'forfeited_entry_deleted_in_time', 'taker.c',
       'taker->state != TAKER_LOST || taker->loss != LOSS_GUARDED)',
       'taker->state != TAKER_LOST || taker->loss == LOSS_GIVEN_UP)',
       sim('leases', 5470))
mutant(6, 'lost_entry_kept_for_ever', 'taker.c',
       '\ttimer_set(&lc->timers, &taker->limit, lc_now(lc) + lc->session->granted_us);\n',
       '',
       sim('leases', 660))
mutant(35, 'guarded_since_the_loss', 'tell.c',
       '\t\ttaker_guard(taker); /* the machine may have stood still since the loss */\n',
       '',
       unit('tests/layer/loss.c'))

# ---- 7: fsync ----

mutant(7, 'fsync_by_read', 'change.c',
       'call_send_held(call, beat, confirm_answered,',
       '(void)beat;\n\tcall_get(call, call->path, confirm_answered,',
       sim('storm'))
mutant(7, 'fsync_asks_nobody', 'call.c',
       '{ensemble_check(entry, ENSEMBLE_ANY_VERSION), op}',
       '{ensemble_check(call->path, ENSEMBLE_ANY_VERSION), op}',
       sim('operators', 19890),
       ('change.c', '\tentry_watch(&call->taker->entry);\n', ''))   # either notices that it is gone

# ---- 8: what a listing says ----

mutant(8, 'own_vanished_entry_not_noticed', 'listing.c',
       '\t\t} else if (entry->shown_in != number && entry->state == ENTRY_PRESENT) {\n\t\t\tloss_by_listing(taker);',
       '\t\t} else if (entry->shown_in != number && entry->state == ENTRY_PRESENT) {\n\t\t\t;',
       sim('operators', 170))
mutant(8, 'gone_with_its_session_is_evicted', 'loss.c',
       '\t\ttaker_set_wait(taker, WAIT_MISSING);\n',
       '\t\ttake_away(taker, -ECANCELED);\n',
       sim('operators'))
mutant(8, 'missing_is_not_told', 'session_lease.c',
       '\tsession->events->alive(lc);\n',
       '',
       sim('operators', 170))
mutant(8, 'lock_removed_is_not_noticed', 'listing.c',
       '\t\t\tloss_of_lock(taker);',
       '\t\t\t;',
       TAKERS)

mutant(8, 'lock_made_anew_is_the_old_one', 'lock_watch.c',
       'if (lock->node.info.czxid != czxid) {',
       'if (0) {',
       sim())

mutant(8, 'locks_below_that_are_none', 'remove.c',
       '\tif (reading->name_count == 0)\n\t\tcall_ask(call);',
       '\tif (reading->name_count == 0)\n\t\tcall_fail(call, -ENOTEMPTY);',
       sim('storm', 1300))

# ---- 9: watches ----

mutant(9, 'events_alone_are_relied_on', 'lock.c',
       'timer_set(&lock->lc->timers, &lock->lists.recheck, lc_lately(lock->lc) + RECHECK_US);',
       ';',
       TAKERS)
mutant(9, 'own_watch_not_armed_again', 'listing.c',
       '\tif (change != ENSEMBLE_DELETED && entry->wanted)\n\t\tentry_watch(entry);\n\telse if (',
       '\tif (',
       sim('operators', 12450))

# ---- 10: first, present, of this session ----

mutant(10, 'barrier_left_out', 'session.c',
       '\theartbeat_send(lc);\n}\n\n/* What is awaited',
       '\tsession_step(session, LC_READY);\n\theartbeat_send(lc);\n}\n\n/* What is awaited',
       sim('cuts', 170))
mutant(10, 'entry_outlives_its_session', 'loss.c',
       '\tif (taker->entry.state != ENTRY_ABSENT)\n\t\tentry_set_absent(&taker->entry);\n\tif (taker->state == TAKER_HELD)',
       '\tif (taker->state == TAKER_HELD)',
       sim())
mutant(10, 'grant_after_cancel', 'taker.c',
       '\ttaker_set_due(taker, /* due = */ false);\n\tset_taker_state(taker, TAKER_LEFT);',
       '\tset_taker_state(taker, TAKER_LEFT);',
       sim())
# ---- 11: local hand-off ----

mutant(11, 'proved_by_what_was_not_answered', 'batch.c',
       '\tif (answer->result == ENSEMBLE_OK)\n\t\ttaker_proved(',
       '\ttaker_proved(',
       unit('tests/layer/batch.c'))
# ---- 8 to 16: the known queue ----

BATCH = unit('tests/layer/batch.c')
LOCK_WATCH = unit('tests/layer/lock_watch.c')
KNOWN = unit('tests/layer/known.c')
NEXT = unit('tests/unit/next.c')

mutant(8, 'made_with_a_gap', 'known.c',
       'entry->number == known->last + 1',
       'entry->number > known->last',
       sim())
mutant(8, 'made_without_lock_watch', 'known.c',
       '!known->in_zone &&\n\t       lock_is_watched(entry->lock);',
       '!known->in_zone;',
       KNOWN)
mutant(8, 'numbers_made_by_hand_count', 'known.c',
       'lock->known.last = queue->made - 1;',
       'lock->known.last = queue->count ? queue->entries[queue->count - 1].name.number : queue->made - 1;',
       KNOWN)
mutant(8, 'forgotten_and_yet_shown', 'known.c',
       '\tlock->lists.shown = 0;\n\twhile (from) {',
       '\twhile (from) {',
       KNOWN)
mutant(9, 'event_ignored', 'lock_watch.c',
       '\tif (change == ENSEMBLE_DELETED && good)\n\t\tother_gone(place);',
       '\tif (change == ENSEMBLE_DELETED && good)\n\t\t;',
       LOCK_WATCH)
mutant(9, 'event_of_another_connection', 'lock_watch.c',
       'if (change == ENSEMBLE_DELETED && good)',
       'if (change == ENSEMBLE_DELETED)',
       LOCK_WATCH)
mutant(9, 'doubtful_ones_not_listed', 'next.c',
       'if (bars->doubtful > 0)',
       'if (0)',
       NEXT)
mutant(9, 'lost_one_not_watched', 'next.c',
       'if (bars->foreign == 0 && bars->lost > 0)',
       'if (0)',
       NEXT)
mutant(10, 'granted_unseen', 'next.c',
       '\t\tif (taker->seen)\n\t\t\tlet_in(taker);',
       '\t\tif (1)\n\t\t\tlet_in(taker);',
       NEXT)
mutant(10, 'seen_for_ever', 'known.c',
       '\ttake_out(lock, known);\n\tlock->known.era++;',
       '\ttake_out(lock, known);',
       LOCK_WATCH)
mutant(10, 'seen_where_numbers_repeat', 'known.c',
       'else if (!queue->in_zone)',
       'else',
       unit('tests/layer/listing.c'))
mutant(10, 'seen_before_the_last_decision', 'known.h',
       '\tlock->known.era++;\n}\n\n/* An answer',
       '\t(void)lock;\n}\n\n/* An answer',
       unit('tests/layer/decide.c'))
mutant(10, 'gone_and_in_the_queue', 'loss.c',
       '\tknown_gone(&taker->entry);\n',
       '',
       TAKERS)
mutant(10, 'lease_looked_at_once_a_turn', 'decide.c',
       'lock->grant.lease_awaited |= !session_may_grant(lock->lc);',
       '',
       sim('leases'))
mutant(11, 'hand_off_unguarded', 'decide.c',
       '\tlock->grant.unproved = &taker->entry;\n',
       '',
       unit('tests/layer/decide.c'))
mutant(11, 'leaver_deleted_before_the_next_is_seen', 'batch.c',
       'if (how == NEXT_DELETE_CHECKED && lock->batch.checked_in',
       'if (0 && lock->batch.checked_in',
       BATCH)
mutant(11, 'alone_without_the_check', 'batch.c',
       'if (alone && how == NEXT_DELETE_SINGLY) {',
       'if (alone) {',
       BATCH)
mutant(11, 'refused_is_seen', 'batch.c',
       'if (asked && entry_is_seen(next))',
       'if (asked)',
       BATCH)
mutant(11, 'held_back_for_a_former_one', 'batch.c',
       'lock->grant.held_back |= asked;',
       'lock->grant.held_back |= lock->grant.unproved != NULL;',
       BATCH)
mutant(11, 'doubt_forgotten', 'entry.c',
       '\tentry->in_doubt |= result == ENSEMBLE_UNKNOWN;\n',
       '',
       BATCH)
mutant(11, 'unchecked_ones_guard', 'batch.c',
       '\t\tentry->in_doubt |= how == NEXT_DELETE_SINGLY;\n',
       '',
       BATCH)
mutant(12, 'slots_of_another_moment', 'lock_watch.c',
       '\t\tknown_other_slots(lock);\n',
       '',
       LOCK_WATCH)
mutant(14, 'try_judged_by_own_leavers', 'next.c',
       '\tif (goes(taker_at(queue, i)))\n\t\treturn;\n\tadd(&staying->known',
       '\tadd(&staying->known',
       NEXT)
mutant(16, 'two_upgrades_wait_for_each_other', 'next.c',
       'else if (staying->known.exclusive.count == 0)',
       'else if (1)',
       NEXT)
mutant(16, 'upgrading_try_barred_by_its_own', 'next.c',
       'if (place == NEXT_NONE || place > taker->place ||',
       'if (1 || place == NEXT_NONE || place > taker->place ||',
       NEXT)
mutant(25, 'readers_do_not_come_late', 'known.c',
       'known->late_writer = lock->lc->clients->late_readers && known->apart',
       'known->late_writer = 0 && known->apart',
       sim('readers'))

# ---- 12: order ----

mutant(12, 'zone_by_number', 'listing.c',
       '\tif (queue.in_zone && !queue.incompatible)\n\t\torder_find',
       '\tif (0)\n\t\torder_find',
       sim('overflow'))
mutant(12, 'zone_begins_at_the_overflow', 'queue.c',
       'entry->name.number >= NAME_NUMBER_ZONE',
       'entry->name.number > INT32_MAX',
       QUEUE)
mutant(12, 'shared_waits_for_its_neighbour_only', 'queue.c',
       'entry->blocker = exclusive;',
       'entry->blocker = exclusive == (ssize_t)i - 1 ? exclusive : -1;',
       QUEUE)
mutant(12, 'exclusive_passes_shared', 'queue.c',
       'entry->blocker = i < slots ? -1 : (ssize_t)i - 1;',
       'entry->blocker = exclusive;',
       QUEUE)

mutant(12, 'readers_wait_for_nobody', 'queue.c',
       'entry->blocker = exclusive;',
       'entry->blocker = -1;',
       sim())
mutant(12, 'readers_wait_for_readers', 'queue.c',
       'entry->blocker = exclusive;',
       'entry->blocker = (ssize_t)i - 1;',
       sim())
mutant(12, 'writers_pass_readers', 'queue.c',
       'entry->blocker = i < slots ? -1 : (ssize_t)i - 1;',
       'entry->blocker = exclusive;',
       sim())
# ---- 12: slots ----

mutant(12, 'other_slots_not_noticed', 'listing.c',
       '\t\tif (lock->takers.waiting > 0)\n\t\t\tlock_watch(lock);\n',
       '',
       unit('tests/layer/listing.c'))
mutant(12, 'one_slot_too_many', 'queue.c',
       'entry->blocker = i < slots ?',
       'entry->blocker = i < slots + (slots > 1) ?',
       sim())
mutant(12, 'strangers_fill_a_slot', 'queue.c',
       'if (shared || !entry->name.of_mount)',
       'if (shared)',
       sim())
mutant(12, 'a_slot_beside_readers', 'queue.c',
       'if (shared || !entry->name.of_mount)',
       'if (!entry->name.of_mount)',
       sim())
mutant(12, 'slots_do_not_count', 'node_data.c',
       '\treturn (unsigned)slots;',
       '\treturn 1;',
       sim())

# ---- 14: try ----

mutant(14, 'try_does_not_list_first', 'take.c',
       'if (taker->immediate || taker->crowd > 0)',
       'if (taker->crowd > 0)',
       sim())
mutant(14, 'try_waits_for_contact', 'take.c',
       'request->wait_us ? request->wait_us : probe_limit(lc)',
       'request->wait_us ? request->wait_us : LC_FOREVER',
       sim('servers', 180))

mutant(14, 'try_without_an_answer_is_busy', 'take.c',
       'is_unanswered(taker) ? -EHOSTUNREACH',
       'is_unanswered(taker) ? -EAGAIN',
       TAKERS)
mutant(14, 'outages_called_a_limit', 'take.c',
       'if (ready ? queued : lock->takers.holding > 0)',
       'if (ready ? queued : true)',
       TAKE)
mutant(14, 'own_holders_called_an_outage', 'take.c',
       'if (ready ? queued : lock->takers.holding > 0)',
       'if (ready && queued)',
       TAKE)
mutant(14, 'silence_called_a_limit', 'take.c',
       'return (!ready && !queued) ||',
       'return !ready &&',
       TAKE)
mutant(14, 'moments_called_an_outage', 'take.c',
       'since_us >= probe_limit(lock->lc);',
       'since_us >= 0;',
       TAKE)
mutant(14, 'leaving_called_a_limit', 'take.c',
       'takers_fail(lc, -ESHUTDOWN);',
       'takers_fail(lc, -ENOLCK);',
       sim())
CROWD = unit('tests/layer/crowd.c')
mutant(14, 'crowd_not_listed_first', 'take.c',
       'if (taker->immediate || taker->crowd > 0)',
       'if (taker->immediate)',
       CROWD)
mutant(14, 'refused_in_its_entry', 'next.c',
       '\tif (!judge_upgrade(queue, staying, taker) && taker->immediate)\n'
       '\t\tjudge_immediate(queue, staying, taker);\n',
       '\tif (!judge_upgrade(queue, staying, taker) && taker->immediate)\n'
       '\t\tjudge_immediate(queue, staying, taker);\n'
       '\telse if (taker->step == NEXT_STAY)\n'
       '\t\tjudge_crowd(queue, staying, taker);\n',
       CROWD,
       ('next.c', '(taker->immediate || taker->replaces != NEXT_NONE));', 'true);'))
mutant(14, 'crowd_counted_with_other_slots', 'next.c',
       'if (taker->crowd == 0 || staying->known.waiting < taker->crowd)',
       'if (taker->crowd == 0 || staying->shown.waiting < taker->crowd)',
       unit('tests/unit/next.c'))
mutant(14, 'crowd_of_a_lagging_server', 'take.c',
       'if (taker->crowd > 0 && lc_ready(lock->lc))',
       'if (0)',
       sim())
mutant(14, 'withdrawn_by_the_former_version_waits', 'taker_record.c',
       '\t\trefuse_withdrawn(taker, &parts);\n',
       '\t\t;\n',
       CROWD)
mutant(14, 'crowd_forgotten_by_the_next_process', 'taker_record.c',
       '\ttaker->crowd = parts->crowd & LC_CROWD_MAX;\n',
       '',
       sim())
# ---- 16: from shared to exclusive ----

mutant(16, 'upgrade_of_a_lost_hold', 'taker.c',
       '\ttaker_part(taker);   /* its guarded',
       '\t/* its guarded',
       sim('any', 1100))

mutant(16, 'recorded_before_the_one_it_replaces', 'taker.c',
       '\t\tlist_last(taker); /* records are read in this order: see taker_record.c */\n',
       '\t\t;\n',
       TAKE)
# ---- 17: whose entry ----

mutant(17, 'adopted_without_asking', 'late.c',
       '\task_owner(lock, znode, name);\n}',
       '\tif (entry)\n\t\tentry_found(entry, znode, &(struct ensemble_answer){.data = "", .stat = &(struct ensemble_stat){\n\t\t.ephemeral_owner = lock->lc->session->id, .czxid = 1}});\n\telse\n\t\task_owner(lock, znode, name);\n}',
       sim('cuts'))
mutant(17, 'late_entry_left', 'late.c',
       '} else if (!is_nobodys(lock, znode, name) || late->asked >= LATE_ASKED_MAX) {',
       '} else {',
       OWN)
mutant(17, 'any_late_entry_deleted', 'late.c',
       'result == ENSEMBLE_OK && answer->stat->ephemeral_owner == lock->lc->session->id',
       'result == ENSEMBLE_OK && (!entry || answer->stat->ephemeral_owner == lock->lc->session->id)',
       LATE)
mutant(17, 'name_to_come_deleted', 'late.c',
       '!entry || (!awaits_a_name(entry) && strcmp',
       '!entry || (strcmp',
       LATE)
# Other clients make entries with the engine's UUIDs.
mutant(17, 'own_by_the_uuid', 'taker.h',
       'if (entry && entry_is_queued(entry) && strcmp(entry->name, znode) == 0)',
       'if (entry && entry->state != ENTRY_ABSENT)',
       sim('forgers'))
mutant(17, 'own_by_the_uuid_among_the_waiting', 'known.c',
       'entry_of_node(lock, shown->znode, &shown->name)',
       'entry_named(lock, &shown->name)',
       sim('forgers'))
mutant(17, 'own_by_the_uuid_when_matched', 'listing.c',
       'entry = entry_of_node(lock, shown->znode, &shown->name);',
       'entry = entry_named(lock, &shown->name);',
       OWN)
mutant(17, 'copies_behind_a_holder_leave_with_it', 'waiters.c',
       'entry_of_node(lock, entry->znode, &entry->name)',
       'entry_named(lock, &entry->name)',
       OWN)
mutant(17, 'what_we_know_is_told_of_copies', 'entry_info.c',
       'if (!lock || info->session != call->lc->session->id || !name_parse(info->entry.znode, &name))\n\t\treturn;\n\tentry = entry_of_node(lock, info->entry.znode, &name);',
       'if (!lock || !name_parse(info->entry.znode, &name))\n\t\treturn;\n\tentry = entry_named(lock, &name);',
       OWN)
mutant(17, 'the_first_copy_is_claimed', 'late.c',
       'result == ENSEMBLE_OK && answer->stat->ephemeral_owner == lock->lc->session->id',
       'result == ENSEMBLE_OK && (entry || answer->stat->ephemeral_owner == lock->lc->session->id)',
       OWN,
       ('entry.c', '\tassert(!stat || stat->ephemeral_owner == entry->lock->lc->session->id);\n', ''),
       ('entry.c', 'return stat->ephemeral_owner == entry->lock->lc->session->id &&', 'return'))
mutant(17, 'one_copy_decides', 'late.c',
       'if (--lock->late.asked == 0)',
       'if (lock->late.asked-- > 0)',
       OWN)
mutant(17, 'copies_are_claimed_for_ever', 'late.c',
       '\t\t\tentry_not_found(&taker->entry);\n',
       '\t\t\t;\n',
       OWN)
mutant(17, 'deleted_and_made_by_another', 'entry_data.c',
       '\tif (entry->state == ENTRY_PRESENT && !is_same_node(entry, answer->stat)) {',
       '\tif (0) {',
       OWN)
mutant(17, 'confirmed_by_its_name', 'change.c',
       '\tentry_watch(&call->taker->entry);\n',
       '',
       OWN)
mutant(17, 'not_there_when_it_was_read', 'entry_data.c',
       '\tif (entry_is_queued(entry))\n\t\tloss_of_node(taker_of(entry));\n',
       '\tlock_want_list(entry->lock);\n',
       unit('tests/layer/entry_data.c'))
mutant(17, 'another_of_its_number', 'order.c',
       '\t\tcheck_own(&order->items[i], &entry->name);\n',
       '',
       unit('tests/layer/listing.c'))
# ---- 9, 18: holders look again; watches ----

mutant(9, 'holders_do_not_look_again', 'listing.c',
       'if (lock->takers.waiting > 0 || lock->takers.holding > 0 || lock->batch.unknown > 0)',
       'if (lock->takers.waiting > 0 || lock->batch.unknown > 0)',
       WATCHING)
mutant(9, 'refused_and_not_looked_at_again', 'listing.c',
       '\telse if (lock->takers.all)\n\t\tlock_recheck(lock);\n',
       '',
       WATCHING)
mutant(9, 'watch_left_behind_without_contact', 'watch.c',
       '\tif (answer->result == ENSEMBLE_UNKNOWN)\n\t\task_unwatch',
       '\tif (0)\n\t\task_unwatch',
       WATCHING)
mutant(9, 'watch_not_taken_back_later', 'core.c',
       '\t\twatches_resume(lc);\n',
       '',
       WATCHING)

# ---- 6: a hold that has an end ----

mutant(6, 'held_beyond_its_end', 'take.c',
       '\t\tloss_by_limit(taker);\n',
       '\t\t;\n',
       sim())
mutant(6, 'end_not_checked_at_use', 'hold.c',
       'if (now >= taker->hold_until_us) {',
       'if (0) {',
       sim())
mutant(6, 'end_before_it_holds', 'hold.c',
       '\tif (taker->state != TAKER_HELD)\n\t\treturn;\n\ttaker->hold_until_us',
       '\ttaker->hold_until_us',
       HOLD_END)

# ---- 18: unknown outcomes ----

mutant(18, 'late_entry_not_awaited', 'entry.c',
       '\tlock_expect_late(entry->lock);\n',
       '',
       OWN)
mutant(18, 'refused_means_not_ours', 'late.c',
       'lock->late.untold = true;',
       'lock->late.untold = result == ENSEMBLE_UNKNOWN;',
       LATE)
mutant(18, 'own_node_behind_many_copies', 'late.c',
       '} else if (!is_nobodys(lock, znode, name) || late->asked >= LATE_ASKED_MAX) {',
       '}\n\tif (late->asked >= LATE_ASKED_MAX || (!entry && !is_nobodys(lock, znode, name))) {',
       LATE)
mutant(18, 'create_again_before_the_list', 'entry.c',
       '\t\tentry_set_state(entry, ENTRY_UNKNOWN);\n',
       '\t\tentry_set_absent(entry);\n',
       sim('cuts'))
mutant(18, 'others_queue_before_the_outcome', 'taker.c',
       'else if (entry->lock->batch.unknown == 0)\n',
       'else\n',
       sim())
mutant(18, 'unknown_not_adopted', 'late.c',
       '\t\t\tentry_found(entry, node->znode, answer);\n',
       '\t\t\t;\n',
       sim('cuts'))
mutant(18, 'unknown_not_created_again', 'listing.c',
       '\t\t\tentry_not_found(entry); /* a',
       '\t\t\t; /* a',
       sim('cuts'))
mutant(18, 'no_list_after_reconnect', 'listing.c',
       '\t\tlock_want_list(lock);\n\t\tDL_FOREACH_SAFE(lock->takers.all, taker, after) {',
       '\t\tDL_FOREACH_SAFE(lock->takers.all, taker, after) {',
       sim())

# ---- 19: transactions ----

mutant(19, 'two_creates_of_a_lock_together', 'batch.c',
       '(create && lock->batch.creates > 1)',
       'false',
       sim())
mutant(19, 'create_overtakes_a_failed_one', 'batch.c',
       '\tif (create && lock->batch.together)\n\t\treturn false;\n',
       '',
       sim('evictions'))
mutant(19, 'unknown_transaction_sent_again', 'batch.c',
       'bool definite = answer->result != ENSEMBLE_OK && answer->result != ENSEMBLE_UNKNOWN &&',
       'bool definite = answer->result != ENSEMBLE_OK &&',
       sim('cuts'))
mutant(19, 'failed_transaction_sent_again_as_it_was', 'batch.c',
       'bool alone = entry->alone || !lock->batch.last_write_ok ||',
       'bool alone =',
       sim('evictions'))

# ---- 20: a lock's data ----

mutant(20, 'data_by_any_version', 'change.c',
       'ensemble_set(call->path, data, len, change->version)',
       'ensemble_set(call->path, data, len, ENSEMBLE_ANY_VERSION)',
       LAYER_CHANGE)
mutant(20, 'value_without_a_check', 'change.c',
       'call_send_held(call, set, data_written, ',
       'call_send(call, &set, 1, data_written, ',
       LAYER_CHANGE)
mutant(20, 'data_of_others_overwritten', 'change.c',
       'if (!node_data_is_foreign(answer->data, (size_t)answer->data_len))\n\t\treturn 0;',
       'return 0;',
       LAYER_CHANGE)
mutant(20, 'value_appended_twice', 'change.c',
       'if (call->maybe_done && call->taker)',
       'if (0)',
       LAYER_CHANGE)
mutant(20, 'change_given_up', 'change.c',
       '.finish = data_finish, .repeatable = true,',
       '.finish = data_finish,',
       LAYER_CHANGE)

# ---- 21: eviction ----

mutant(21, 'evicted_at_once', 'evict.c',
       'if (evict->name.of_mount && answer->stat->ephemeral_owner != 0) {',
       'if (0) {',
       EVICTION)
mutant(21, 'evicted_by_nobody', 'evict.c',
       'if (evict->name.of_mount && answer->stat->ephemeral_owner != 0) {',
       'if (evict->name.of_mount) {',
       EVICTION)
mutant(21, 'mark_by_any_version', 'evict.c',
       'ensemble_set(call->path, evict->data, evict->len, evict->version)',
       'ensemble_set(call->path, evict->data, evict->len, ENSEMBLE_ANY_VERSION)',
       EVICTION)
mutant(21, 'evicted_without_a_letter', 'evict.c',
       'send_change(evict, ops, mailbox ? 2 : 1, letter_answered);',
       'send_change(evict, ops, 1, letter_answered);',
       EVICTION)
mutant(21, 'letter_wipes_out_another', 'evict.c',
       'ensemble_set(evict->mailbox, letters, len, mailbox->stat->version)',
       'ensemble_set(evict->mailbox, letters, len, ENSEMBLE_ANY_VERSION)',
       EVICTION)
mutant(21, 'marked_entries_get_no_letter', 'evict.c',
       'if (evict->marked && !mailbox) {',
       'if (evict->marked) {',
       unit('tests/layer/evict.c'))
mutant(21, 'mailbox_below_the_own_root', 'evict.c',
       'else if (next_root(evict))\n',
       'else if (0)\n',
       EVICTION)
mutant(21, 'mailbox_of_a_lagging_server', 'evict.c',
       '(evict->call.synced ? MEANT(ENSEMBLE_NONODE) : 0)',
       'MEANT(ENSEMBLE_NONODE)',
       unit('tests/layer/evict.c'))
mutant(21, 'dead_mount_keeps_its_entry', 'evict.c',
       'begin_eviction(evict->eviction, lc_now(lc) + evict->wait_us);',
       'begin_eviction(evict->eviction, lc_now(lc) + 1000 * evict->wait_us);',
       EVICTION)
mutant(21, 'entry_deleted_by_who_evicts', 'evict.c',
       'begin_eviction(evict->eviction, lc_now(lc) + evict->wait_us);',
       'begin_eviction(evict->eviction, lc_now(lc) + evict->wait_us / 2);',
       sim())
mutant(21, 'evicted_in_our_time', 'evict.c',
       'if (evict->wait_us < lc->session->granted_us)',
       'if (1)',
       EVICTION)
mutant(21, 'untold_eviction_of_the_former_version', 'evict.c',
       'if (untold_us > 0) {',
       'if (untold_us < 0) {',
       unit('tests/layer/evict.c'))
mutant(21, 'letter_in_the_middle_of_another', 'letters.c',
       'kept = len / LETTER_LEN * LETTER_LEN,',
       'kept = len < LETTERS_SIZE - LETTER_LEN ? len : 0,',
       unit('tests/unit/letters.c'))
mutant(21, 'last_letter_not_found', 'letters.c',
       'while (len - *at >= LETTER_LEN) {',
       'while (len - *at > LETTER_LEN) {',
       unit('tests/unit/letters.c'))
mutant(21, 'more_letters_than_there_is_room_for', 'letters.c',
       'return len / LETTER_LEN >= LETTERS_MAX;',
       'return len / LETTER_LEN > LETTERS_MAX;',
       EVICTION)
mutant(21, 'letter_not_read', 'mailbox.c',
       '\telse\n\t\twatch_mailbox(lc);\n\treturn change',
       '\treturn change',
       EVICTION)
mutant(21, 'letter_reads_everything', 'mailbox.c',
       'open_letters(lc, answer->data, len, all);',
       'open_letters(lc, answer->data, len, true);',
       EVICTION)
mutant(21, 'letters_gone_with_the_mailbox', 'mailbox.c',
       '\tmailbox->is_new |= answer->result == ENSEMBLE_OK;\n',
       '',
       EVICTION)
mutant(21, 'emptied_before_the_entries_are_read', 'loss.c',
       'else if (lc->entries->looks == 0)\n\t\tsession_letters_done(lc);',
       'else\n\t\tsession_letters_done(lc);',
       unit('tests/layer/mailbox.c'))
mutant(21, 'emptied_though_an_entry_was_not_read', 'entry_data.c',
       '\t\tlc->ensemble->port->drop(lc->ensemble);\n\t\t/* fallthrough */\n\tcase ENSEMBLE_UNKNOWN: /* the next connection finds the letter again */\n\t\ttaker_step(taker_of(entry));\n\t\treturn;\n',
       '\tcase ENSEMBLE_UNKNOWN:\n\t\tbreak;\n',
       unit('tests/layer/entry_data.c'))
mutant(21, 'emptied_of_a_later_letter', 'mailbox.c',
       'ensemble_set(mailbox->path, "", 0, mailbox->version)',
       'ensemble_set(mailbox->path, "", 0, ENSEMBLE_ANY_VERSION)',
       unit('tests/layer/mailbox.c'))
mutant(21, 'mark_given_up', 'evict.c',
       '.finish = evict_finish, .repeatable = true,',
       '.finish = evict_finish,',
       unit('tests/layer/evict.c'))

mutant(21, 'mark_not_read', 'entry_data.c',
       '\t\tloss_by_mark(taker_of(entry), by);\n',
       '\t\t;\n',
       sim())
mutant(21, 'mark_wiped_out_by_a_reason', 'entry_data.c',
       'ensemble_set(path, data, entry_format(entry, data), entry->version)',
       'ensemble_set(path, data, entry_format(entry, data), ENSEMBLE_ANY_VERSION)',
       sim())
mutant(21, 'mark_that_nobody_waits_for', 'evict.c',
       '\tif (call->done_late && evict->wait_us > 0)\n\t\tfollow_up(evict);\n',
       '',
       EVICTION)
mutant(21, 'evicted_holder_goes_on', 'loss.c',
       'if (taker->state != TAKER_WAITING && taker->state != TAKER_HELD)\n\t\treturn;',
       'if (taker->state != TAKER_WAITING)\n\t\treturn;',
       sim())
mutant(21, 'evicted_waiter_goes_on', 'loss.c',
       'if (taker->state != TAKER_WAITING && taker->state != TAKER_HELD)\n\t\treturn;',
       'if (taker->state != TAKER_HELD)\n\t\treturn;',
       sim())

# ---- 20, 33: authority ----

mutant(33, 'changed_by_anybody', 'change.c',
       'return change->by == 0 || (authority_owns(now, change->by) && !gives_away);',
       'return change->by == 0 || !gives_away;',
       LAYER_CHANGE)
mutant(33, 'given_away_by_its_owner', 'change.c',
       'return change->by == 0 || (authority_owns(now, change->by) && !gives_away);',
       'return authority_owns(now, change->by);',
       LAYER_CHANGE)
mutant(20, 'changed_by_what_was', 'change.c',
       '\tif (!call->taker)\n\t\tbatch_submit(',
       '\tif (0)\n\t\tbatch_submit(',
       unit('tests/layer/change.c'))
mutant(33, 'another_lock_is_changed', 'change.c',
       'if (change->czxid && answer->stat->czxid != change->czxid)',
       'if (0)',
       LAYER_CHANGE)
mutant(33, 'another_lock_was_changed', 'change.c',
       'else if (went_elsewhere(change, answer)) {',
       'else if (0) {',
       LAYER_CHANGE)
mutant(33, 'removed_by_anybody', 'remove.c',
       'if (authority_owns(&above, remove->call.uid))',
       'if (1)',
       REMOVE)
mutant(33, 'removed_as_it_was_seen', 'remove.c',
       'seen && by == 0', 'seen', REMOVE)
mutant(33, 'removed_at_any_version', 'remove.c',
       '.version = remove->version}',
       '.version = ENSEMBLE_ANY_VERSION}',
       REMOVE)
mutant(33, 'lock_above_by_any_version', 'remove.c',
       'above ? 2 : 1',
       '1',
       REMOVE)

mutant(33, 'evicted_by_anybody', 'evict.c',
       'if (!may_evict(evict, answer))',
       'if (0)',
       EVICTION)
mutant(33, 'believes_another_client', 'evict.c',
       'return evict->name.of_mount && answer->stat->ephemeral_owner != 0 &&',
       'return',
       EVICTION)
mutant(33, 'evicted_by_the_former_owner', 'evict.c',
       '\tif (evict->owner)\n\t\tops[count++]',
       '\tif (0)\n\t\tops[count++]',
       EVICTION)
mutant(33, 'another_entry_is_evicted', 'evict.c',
       'if (evict->token && answer->stat->czxid != evict->token)',
       'if (0)',
       EVICTION)
mutant(33, 'another_lock_is_had', 'taker.c',
       'return taker->meant == 0 || taker->meant == taker->entry.lock->node.info.czxid;',
       'return true;',
       sim('operators'))
mutant(33, 'another_lock_is_waited_for', 'listing.c',
       '\trefuse_misled(lock);\n',
       '',
       unit('tests/layer/listing.c'))
# ---- 20: what stands in an entry ----

mutant(20, 'nobody_told_since_when_it_holds', 'entry_data.c',
       '\tentry->data.dirty |= entry->data.held_since_ms >= 0 && !entry->data.told_since;\n',
       '',
       unit('tests/layer/entry_data.c'))
mutant(20, 'told_twice_since_when_it_holds', 'entry_data.c',
       'entry->data.held_since_ms >= 0 && !entry->data.told_since;',
       'entry->data.held_since_ms >= 0;',
       unit('tests/layer/entry_data.c'))

# ---- 22, 23: weight ----

mutant(23, 'entries_without_limit', 'quota.c',
       'return quota->entry_bytes + quota->watch_bytes + bytes > LC_ENTRY_BYTES_MAX ||',
       'return',
       unit('tests/sim/test_limits.c'))
mutant(23, 'one_user_takes_all', 'quota.c',
       '(usage->entry_bytes + bytes > LC_USER_BYTES_MAX ||',
       '(false ||',
       unit('tests/sim/test_limits.c'))
mutant(23, 'each_uid_is_a_user', 'per_user.c',
       'return range ? range->share : uid;',
       'return (void)range, uid;',
       unit('tests/unit/per_user.c'))
mutant(23, 'nothing_left_for_root', 'quota.c',
       'LC_ENTRY_BYTES_MAX - LC_ROOT_BYTES ||',
       'LC_ENTRY_BYTES_MAX ||',
       unit('tests/sim/test_limits.c'))
mutant(23, 'locks_below_without_limit', 'make.c',
       'if (count < make->limit)',
       'if (1)',
       MAKE)
mutant(23, 'entries_take_the_room_of_locks_below', 'make.c',
       'count += !name_is_numbered(reading->names[i]);',
       'count++;',
       MAKE)
mutant(23, 'strangers_make_as_many_as_the_owner', 'make.c',
       'authority_owns(owner, uid) ?',
       '1 ?',
       MAKE)
mutant(23, 'order_reversed_after_a_session', 'listing.c',
       '\t\tDL_FOREACH_SAFE(lock->takers.all, taker, after) {\n\t\t\ttaker_drop',
       '\t\tfor (taker = lock->takers.all->prev; taker; taker = after) {\n'
       '\t\t\tafter = taker == lock->takers.all ? NULL : taker->prev;\n\t\t\ttaker_drop',
       sim())
mutant(23, 'not_queued_again_after_a_session', 'listing.c',
       '\t\t\tentry_write(&taker->entry);\n\t\t\ttaker_step(taker);',
       '\t\t\tentry_write(&taker->entry);\n\t\t\tif (taker->state != TAKER_WAITING)\n\t\t\t\ttaker_step(taker);',
       sim())

# ---- 9, 25: watches of holders, entries of other clients ----

mutant(9, 'holder_does_not_watch_itself', 'taker.c',
       '\ttimer_set(&lc->timers, &taker->recheck,\n\t          taker->entry.lock->repeat.granted_us + LONG_HOLD_US);\n',
       '',
       sim('operators', 290))
mutant(25, 'other_families_do_not_count', 'queue.c',
       '\t\tif (!name_parse(names[i], &entry->name))',
       '\t\tif (!name_parse(names[i], &entry->name) || !entry->name.of_mount)',
       sim())

# ---- 9: who waits behind; 25: clients that do not wait for zklockfs ----

mutant(9, 'long_names_watched', 'lock_watch.c',
       'strlen(znode) >= NAME_MAX_WHOLE',
       'false',
       unit('tests/layer/lock_watch.c'))
mutant(9, 'remembered_on_another_connection', 'lock_info.c',
       'known && lock_is_watched(known)',
       'known && watch_is_armed(&known->node.watch)',
       unit('tests/layer/lock_info.c'))
mutant(9, 'remembered_in_doubt', 'lock_info.c',
       'session_may_ask(lc) ? lc_path(lc, lock) : NULL',
       'lc_ready(lc) ? lc_path(lc, lock) : NULL',
       unit('tests/layer/lock_info.c'))
mutant(9, 'remembered_after_a_change', 'lock_info.c',
       'known && lock_is_watched(known)',
       'known && known->node.info.czxid',
       sim())
mutant(9, 'nobody_is_watched_coming', 'waiters.c',
       'call->taker && call->taker->waiters_changed;',
       'false;',
       TAKERS)
mutant(9, 'waiters_not_told_of_a_connection', 'listing.c',
       '\t\tlock_note_waiters(lock); /* what', '\t\t; /* what', TAKERS)
mutant(9, 'waiters_never_changed', 'taker.c',
       '\t\tif (taker->waiters_changed && !taker->changed_prev)',
       '\t\tif (0)',
       sim())
mutant(25, 'incompatible_forgotten_in_the_zone', 'listing.c',
       'if (queue.in_zone && !queue.incompatible)',
       'if (queue.in_zone)',
       sim('overflow', 8990))
mutant(25, 'taken_beside_incompatible_entries', 'listing.c',
       'if (!queue->incompatible || lock->takers.waiting == 0)',
       'if (1)',
       sim())

mutant(25, 'leaders_pass_for_a_mutex', 'clients.c',
       '{"-latch-", LC_EXCLUSIVE, ENDING, 0, "Curator\'s LeaderLatch"},', '',
       unit('tests/unit/name.c'))

mutant(25, 'semaphores_are_not_seen', 'queue.c',
       'if (locks && leases)', 'if (0)',
       unit('tests/unit/queue.c'))

# ---- 25: other projects' clients ----

mutant(25, 'every_client_is_at_home', 'queue.c',
       'entry->incompatible = repeats || !at_home;',
       'entry->incompatible = repeats;',
       sim())

mutant(25, 'entries_by_another_familys_names', 'entry.c',
       'name_format(entry->name, lc->clients, ',
       'name_format(entry->name, &clients_all[0], ',
       sim('readers'))

mutant(25, 'strangers_know_the_order_in_the_zone', 'queue.c',
       'bool repeats = queue->in_zone && !entry->name.of_mount;',
       'bool repeats = false;',
       QUEUE)

# ---- 37: questions ----

mutant(37, 'an_answer_older_than_the_question', 'asking.c',
       '*same = find_same(reads->unsent, reading);',
       '*same = find_same(reads->under_way, reading);',
       unit('tests/layer/asking.c'))
mutant(37, 'the_same_asked_several_times_at_once', 'asking.c',
       '\t\tif (find_same(reads->under_way, reading))\n\t\t\tcontinue;\n',
       '',
       unit('tests/layer/asking.c'))
mutant(37, 'no_share_of_questions', 'asking.c',
       '.of_user = USER_READS_MAX,',
       '.of_user = READS_MAX,',
       ASKING)
mutant(37, 'users_take_no_turns', 'gate.c',
       'if (user->waiting) {',
       'if (0) {',
       ASKING)
mutant(37, 'root_waits_for_everybody', 'gate.c',
       'if (user == root && !gate->root_went)',
       'if (0)',
       unit('tests/unit/gate.c'))
mutant(37, 'no_place_for_root', 'gate.c',
       '< limits->all - limits->all / GATE_ROOT_PART;',
       '< limits->all;',
       unit('tests/unit/gate.c'))
mutant(37, 'no_limit_of_reasons', 'entry_data.c',
       '\t\t.all = DATA_WRITES_MAX,',
       '\t\t.all = 1000,',
       unit('tests/layer/entry_data.c'))
mutant(37, 'reasons_take_no_turns', 'gate.c',
       'if (user->waiting) {',
       'if (0) {',
       unit('tests/unit/gate.c'))
mutant(37, 'changes_take_no_turns', 'gate.c',
       'if (user->waiting) {',
       'if (0) {',
       CHANGE)
mutant(37, 'no_share_of_changes', 'call.c',
       '.of_user = USER_CHANGES_MAX,',
       '.of_user = CHANGES_MAX,',
       CHANGE)
mutant(37, 'no_limit_of_changes', 'call.c',
       '\t\t.all = CHANGES_MAX,',
       '\t\t.all = 1000,',
       CHANGE)
mutant(37, 'changes_begin_while_they_settle', 'call.c',
       'while (!lc->calls->settles && ',
       'while (',
       CHANGE)
mutant(37, 'many_lists_at_a_time', 'asking.c',
       'gate_next(&lc->reads->lists, &gate_one)',
       'gate_next(&lc->reads->lists, &shares)',
       ASKING)
mutant(37, 'no_rest_after_a_list', 'asking.c',
       'if (lc->reads->rest_until_us <= lc_now(lc) &&',
       'if (true &&',
       ASKING)
mutant(37, 'end_of_the_rest_slept_through', 'asking.c',
       '\t\tat_us = reads->rest_until_us;\n',
       '\t\t;\n',
       ASKING)
mutant(37, 'the_same_asked_for_each', 'asking.c',
       'if (other != reading && reads_the_same(other, to))',
       'if (0)',
       ASKING)
mutant(37, 'another_thing_answered', 'asking.c',
       'if (other != reading && reads_the_same(other, to))',
       'if (other != reading)',
       unit('tests/layer/asking.c'),
       ('asking.c', '\tHASH_VALUE(path, size, reading->hash);\n', ''))
mutant(37, 'unwanted_answers_asked_for', 'asking.c',
       '\tpart(reader);\n\tfree_if_unused(reading);\n',
       '\tpart(reader);\n\tif (reading->turn.state != GATE_WAITS)\n\t\tfree_if_unused(reading);\n',
       ASKING)
mutant(37, 'share_given_back_before_the_answer', 'asking.c',
       '\tpart(reader);\n\tfree_if_unused(reading);\n',
       '\tpart(reader);\n\tif (!reading->readers)\n\t\tgate_leave(gate_of(reading), &reading->turn);\n'
       '\tfree_if_unused(reading);\n',
       unit('tests/layer/asking.c'))
mutant(37, 'answers_take_no_turns', 'asking.c',
       'gate_join(&call->lc->reads->due, call->uid, &reader->told)',
       'gate_join(&call->lc->reads->due, 5, &reader->told)',
       unit('tests/layer/asking.c'))

# ---- 27: the duty to delete ----

mutant(27, 'delete_dropped_when_unknown', 'entry.c',
       'entry_set_state(entry, ENTRY_PRESENT); /* as far as we know: delete it again */',
       'entry_set_absent(entry);',
       sim('cuts', 690))
mutant(27, 'delete_dropped_by_a_leaver_being_created', 'entry.c',
       "\t\tset_present(entry, strrchr(answer->path, '/') + 1, answer->stat);\n",
       "\t\tif (!entry->wanted)\n\t\t\tentry_set_absent(entry);\n\t\telse\n\t\t\tset_present(entry, strrchr(answer->path, '/') + 1, answer->stat);\n",
       sim())
# ---- 28: the token ----

mutant(28, 'token_of_the_first_entry', 'entry.c',
       '\tentry->czxid = stat ? stat->czxid : 0;',
       '\tentry->czxid = entry->czxid ? entry->czxid : stat ? stat->czxid : 0;',
       sim())
mutant(28, 'token_is_the_number', 'hold.c',
       'return taker->entry.czxid;',
       'return taker->entry.number;',
       sim())


# ---- 36: clocks that stand still ----

mutant(36, 'doubt_ignored', 'session_lease.c',
       'if (lc->config.disrupted && lc->config.disrupted(lc->config.ctx))\n\t\tdoubt_lease(lc);',
       'if (lc->config.disrupted)\n\t\tlc->config.disrupted(lc->config.ctx);',
       sim('clocks'))
mutant(36, 'doubt_never_asked_for', 'session_lease.c',
       'if (lc->config.disrupted && lc->config.disrupted(lc->config.ctx))\n\t\tdoubt_lease(lc);',
       ';',
       sim('clocks'))
mutant(36, 'doubt_ended_by_the_old_connection', 'lease.c',
       '\tif (sent_us <= lease->void_us)\n\t\treturn false;',
       '\tif (lease->doubt_us != INT64_MAX) {\n\t\tlease->doubt_us = INT64_MAX;\n\t\treturn extend(lease, sent_us);\n\t}',
       sim('clocks'))
mutant(36, 'doubt_ended_by_an_older_write', 'lease.c',
       '\tif (sent_us <= lease->void_us)\n\t\treturn false;',
       '',
       LEASE)
mutant(36, 'doubt_ended_by_one_write', 'lease.c',
       '\tif (!lease->reads_sent) {',
       '\tif (!lease->reads_sent && !lease_doubted(lease, now_us)) {',
       LEASE)
mutant(36, 'questions_in_doubt', 'session_lease.c',
       'return lc_ready(lc) && !lease_doubted(&lc->session->lease, lc_now(lc));',
       'return lc_ready(lc);',
       unit('tests/layer/call.c'))
mutant(36, 'doubt_ended_by_an_older_connection', 'lease.c',
       'connect_us > lease->void_us ? connect_us : -1;',
       'connect_us;',
       LEASE)
mutant(36, 'doubt_keeps_the_unproved_connection', 'lease.c',
       '\tlease->connect_us = -1;\n\tlease->steps = 0;',
       '\tlease->steps = 0;',
       LEASE)
mutant(36, 'doubt_keeps_the_steps', 'lease.c',
       '\tlease->connect_us = -1;\n\tlease->steps = 0;',
       '\tlease->connect_us = -1;',
       LEASE)
mutant(36, 'doubt_forgotten_with_the_session', 'lease.c',
       '\tlease->void_us = void_us;',
       '',
       LEASE)
mutant(36, 'doubt_lasts_for_ever', 'lease.c',
       'lease->deadline_us = deadline;\n\tlease->doubt_us = INT64_MAX;',
       'lease->deadline_us = deadline;',
       sim('clocks'))
mutant(36, 'doubt_without_an_end', 'lease.c',
       'now_us + LEASE_DOUBT_US;',
       'INT64_MAX - 1;',
       LEASE)
mutant(36, 'doubt_prolonged', 'lease.c',
       'lease_left(lease, now_us) > 0 && !lease_doubted(lease, now_us)',
       'lease_left(lease, now_us) > 0',
       LEASE)
mutant(36, 'doubt_waits_for_the_old_connection', 'session_lease.c',
       '\tif (session->link != LINK_CLOSED)\n\t\tlc->ensemble->port->drop(lc->ensemble);\n\tif (!session_lease_is_valid',
       '\tif (!session_lease_is_valid',
       sim('suspicions'))
mutant(36, 'told_in_doubt', 'tell.c',
       'if (lc_doubted(taker->entry.lock->lc)) {',
       'if (false) {',
       sim('clocks'))
mutant(36, 'held_in_doubt', 'hold.c',
       'return !lease_doubted(lease, now);',
       'return true;',
       sim('clocks'))
mutant(36, 'granted_in_doubt', 'lease.c',
       'return lease->doubt_us == INT64_MAX && left > 0',
       'return left > 0',
       LEASE)
mutant(36, 'guardian_not_told_of_the_doubts_end', 'session_lease.c',
       'else if (session->lease.doubt_us != INT64_MAX)\n',
       'else if (lc == NULL)\n',
       sim('clocks'))

# ---- 38: going on in another process ----

mutant(38, 'adopted_without_a_barrier', 'session.c',
       'was_ready ? LC_SUSPENDED : LC_CONNECTING',
       'was_ready ? LC_READY : LC_CONNECTING',
       sim('reloads'))
mutant(38, 'shorter_session_adopted', 'session.c',
       'lc->config.session_timeout_us < lease->timeout_us)',
       'lc->config.session_timeout_us < lease->timeout_us / 2)',
       SESSION_LEASE)
mutant(38, 'deadline_of_the_next_process', 'lease.c',
       '\tif (codec->loads && !is_possible(lease, now_us))',
       '\tif (codec->loads)\n\t\tlease->deadline_us += lease->timeout_us / 8;\n\tif (0)',
       ADOPT)
mutant(38, 'lost_is_held_in_the_next_process', 'taker_record.c',
       'taker->state = parts->state;',
       'taker->state = parts->state == TAKER_LOST ? TAKER_HELD : parts->state;',
       ADOPT)
mutant(38, 'loss_told_in_both_processes', 'taker_record.c',
       '(taker->due_prev ? FLAG_DUE : 0)',
       '(taker->due_prev || taker->state == TAKER_LOST ? FLAG_DUE : 0)',
       ADOPT)
mutant(38, 'refusal_not_told_in_the_next_process', 'taker_record.c',
       'taker_resume(taker, parts->flags & FLAG_DUE);',
       'taker_resume(taker, false);',
       ADOPT)
mutant(38, 'grant_told_in_neither_process', 'taker_record.c',
       'parts->state = TAKER_WAITING;',
       '',
       sim('reloads'))
mutant(38, 'unknown_create_forgotten', 'entry.c',
       '\tcount_there(entry, +1);\n\treturn 0;',
       '\tif (entry->state == ENTRY_UNKNOWN) {\n\t\tentry->state = ENTRY_ABSENT;\n'
       '\t\tentry->name[0] = 0;\n\t}\n\tcount_there(entry, +1);\n\treturn 0;',
       sim())
mutant(38, 'leavers_forgotten', 'taker.c',
       '\tset_taker_state(taker, TAKER_LEFT);\n\ttaker_step',
       '\tset_taker_state(taker, TAKER_LEFT);\n\trecord_end(&taker->entry.record);\n\ttaker_step',
       ADOPT)
mutant(38, 'unclaimed_stay', 'adopt.c',
       'lc_leave(taker);',
       '(void)lc;',
       ADOPT)
mutant(38, 'moved_while_it_is_read', 'taker.c',
       '\tif (!taker->next)\n\t\treturn;\n',
       '',
       KILLED)
mutant(38, 'guard_of_a_hand_off_forgotten', 'taker_record.c',
       'if (parts->flags & FLAG_UNSEEN)',
       'if (0)',
       ADOPT_CHANGED)
mutant(38, 'end_forgotten_at_use', 'taker_record.c',
       'taker->state = parts->state;',
       'taker->state = parts->state;\n\ttaker->hold_until_us = LC_FOREVER;',
       ADOPT)
mutant(38, 'lost_entry_without_a_limit', 'taker_record.c',
       '.limit_us = taker->limit.armed ? taker->limit.at_us : LC_FOREVER,',
       '.limit_us = taker->wait_until_us,',
       ADOPT)
mutant(38, 'end_of_a_hold_forgotten', 'taker_record.c',
       'if (parts->limit_us != LC_FOREVER)',
       'if (parts->limit_us != LC_FOREVER && taker->state != TAKER_HELD)',
       ADOPT)
mutant(38, 'order_reversed_in_the_next_process', 'taker.c',
       '\tenter_lock(taker);\n\ttaker_set_due(',
       '\tenter_lock(taker);\n\tDL_DELETE(taker->entry.lock->takers.all, taker);\n'
       '\tDL_PREPEND(taker->entry.lock->takers.all, taker);\n\ttaker_set_due(',
       ADOPT)
mutant(38, 'eviction_forgotten', 'adopt.c',
       'records_read(records, codec, LC_KIND_EVICTION);',
       ';',
       ADOPT_CHANGED)
mutant(38, 'upgrade_forgotten', 'taker_record.c',
       '\tif (replaced)\n\t\ttaker_replace(taker, replaced);\n',
       '',
       ADOPT_CHANGED)
mutant(38, 'drain_forgotten', 'adopt.c',
       'CODEC_BOOL(codec, lc->draining);',
       'CODEC_BOOL(codec, lc->dying);',
       ADOPT)
mutant(38, 'reason_forgotten', 'taker_record.c',
       'bool dirty = entry->data.dirty || entry->data.turn;',
       'bool dirty = entry->data.dirty;',
       ADOPT)
mutant(38, 'another_session_in_the_next_process', 'session.c',
       'left.id ? &left : NULL',
       'NULL',
       ADOPT)
mutant(38, 'state_of_another_boot', 'session.c',
       'codec->loads ? lc_now(lc) : INT64_MAX',
       'INT64_MAX / 4',
       ADOPT)
mutant(38, 'saved_in_the_middle_of_a_question', 'adopt.c',
       'if (!lc_may_cancel(call))',
       'if (0)',
       ADOPT_CHANGED)

# ---- 40: nothing leaves before it is recorded ----

mutant(40, 'sent_before_it_is_recorded', 'zookeeper_request.c',
       '\t\tzk->kept = request;\n}',
       '\t\tzk->kept = request;\n\trequest_flush(ensemble);\n}',
       PORT)
mutant(40, 'sent_after_the_connection', 'zookeeper_answer.c',
       'while (zk->requests) {', 'while (zk->requests != zk->kept) {',
       PORT,
       ('zookeeper_answer.c', '\tzk->kept = NULL;\n', ''))
mutant(40, 'sent_behind_a_refused_request', 'zookeeper_request.c',
       '\tanswer_cut(zk);\n\trequest->rejected', '\tanswer_later(request, result);\n\trequest->rejected',
       PORT,
       ('zookeeper_request.c', '\tDL_APPEND(zk->rejected, request);\n', '\tDL_DELETE(zk->requests, request);\n'
        '\tDL_APPEND(zk->rejected, request);\n'))
mutant(40, 'asked_for_meanwhile_is_answered_first', 'zookeeper_answer.c',
       '\t\tanswer_later(request, result);\n\t}\n',
       '\t\tanswer_later(request, result);\n\t\t(void)answer_may_call(zk);\n\t}\n',
       PORT)
mutant(40, 'change_not_recorded', 'taker.c',
       '\tentry_touch(&taker->entry);\n\tcount_state(taker, -1);',
       '\tcount_state(taker, -1);',
       sim('deaths'))
mutant(40, 'limit_not_recorded', 'hold.c',
       '\ttaker->hold_until_us = until_us;\n\tentry_touch(&taker->entry);',
       '\ttaker->hold_until_us = until_us;',
       ADOPT)
mutant(40, 'order_not_recorded', 'taker.c',
       '\trecord_move(&taker->entry.record);\n',
       '',
       KILLED)
mutant(40, 'former_place_stays_recorded', 'records.c',
       '\tdrop_record(record);\n\trecord->key',
       '\trecord->key',
       sim())
mutant(40, 'gone_ones_stay_recorded', 'records.c',
       '\tdrop_record(record);\n\t*record',
       '\t*record',
       sim())

# ---- 41: the right ensemble ----

mutant(41, 'any_ensemble_will_do', 'home.c',
       'home_may_be_elsewhere(lc) && !is_same_mark', 'home->known.czxid < 0 && !is_same_mark',
       sim('strays'))
mutant(41, 'sure_after_a_reconnect', 'home.c',
       'lc->home->certain = lc->home->looked = lc->home->strange = false;', 'lc->home->looked = lc->home->strange = false;',
       sim('strays'))
mutant(41, 'made_before_the_mark_is_read', 'heartbeat.c',
       'else if (!lc->home->looked)', 'else if (lc->home->root == ROOT_UNKNOWN && !lc->home->looked)',
       sim('strays'))
mutant(41, 'looked_on_another_connection', 'home.c',
       'lc->home->certain = lc->home->looked = lc->home->strange = false;', 'lc->home->certain = lc->home->strange = false;',
       unit('tests/layer/home.c'))
mutant(41, 'root_made_in_silence', 'home.c',
       '} else if (home_may_be_elsewhere(lc)) {',
       '} else if (result != ENSEMBLE_NONODE && home_may_be_elsewhere(lc)) {',
       sim('strays'))
mutant(41, 'mark_forgotten_by_the_next_process', 'home.c',
       'CODEC_RANGE(codec, home->known.czxid, home->root != ROOT_UNKNOWN, INT64_MAX);',
       'CODEC_RANGE(codec, home->known.czxid, home->root != ROOT_UNKNOWN, INT64_MAX);\n\thome->known.czxid *= !codec->loads;',
       sim('strays'))
mutant(41, 'a_lagging_server_is_believed', 'home.c',
       'lc_submit(lc, ensemble_sync(lc->home->dir), lc_ignore, lc);', '',
       unit('tests/layer/home.c'))
mutant(41, 'strayed_session_kept', 'heartbeat.c',
       '		heartbeat_retreat(lc, RETREAT_LEAVE);', '		session->beat.under_way = true;',
       unit('tests/layer/home.c'))
mutant(41, 'unseen_backup_waited_for', 'session.c',
       '		         server);\n	heartbeat_retreat(lc, RETREAT_REST);', '		         server);',
       unit('tests/layer/home.c'))
mutant(41, 'dead_session_given_up_in_an_outage', 'session.c',
       '	lc->ensemble->port->rest(lc->ensemble);\n	session->link',
       '	lc->ensemble->port->close(lc->ensemble, false);\n	forget_session(lc);\n	session->link',
       unit('tests/sim/test_home.c'))
mutant(41, 'turned_away_without_a_pause', 'session.c',
       '? next_pause(session, most_us) : SOON_US', '? 0 : SOON_US',
       unit('tests/layer/home.c'))
mutant(41, 'pause_longer_than_the_session', 'session.c',
       'int64_t most_us = length_of_session(lc) / 3;',
       'int64_t most_us = lc->config.session_timeout_us / 3;',
       unit('tests/layer/home.c'))
mutant(41, 'strays_are_believed', 'session.c',
       '\tif (!lc_ready(lc)) {\n\t\thome_missed',
       '\tif (!lc->home) {\n\t\thome_missed',
       unit('tests/sim/test_home.c'))
mutant(41, 'client_kept_that_saw_a_stray', 'session.c',
       'if (lc->home->strange && home_may_be_elsewhere(lc))', 'if (lc->dying)',
       unit('tests/sim/test_home.c'))
mutant(41, 'client_replaced_by_a_silent_server', 'session.c',
       'if (lc->home->strange && home_may_be_elsewhere(lc))', 'if (home_may_be_elsewhere(lc))',
       unit('tests/layer/home.c'))
mutant(41, 'session_left_in_another_ensemble', 'heartbeat.c',
       'if (session->state == LC_SUSPENDED)\n			lc->ensemble', 'if (lc->dying)\n			lc->ensemble',
       unit('tests/sim/test_home.c'))
mutant(41, 'unusable_by_the_word_of_a_stray', 'session.c',
       'if (refused && lc_knows_mark(lc)) {', 'if (refused && lc->dying) {',
       unit('tests/layer/home.c'))
mutant(41, 'refused_sessions_are_over', 'ensemble_zookeeper.c',
       'zk->end == END_REFUSED ? ENSEMBLE_UNKNOWN : ENSEMBLE_GONE', 'ENSEMBLE_GONE',
       PORT)
mutant(41, 'rested_sessions_are_over', 'ensemble_zookeeper.c',
       'zk->in_process));\n\tzk->fate = ENSEMBLE_UNKNOWN;',
       'zk->in_process));\n\tzk->fate = ENSEMBLE_GONE;',
       PORT)
mutant(41, 'over_by_the_word_of_anybody', 'session.c',
       'if (!refused && inquiry_is_due(lc)) {', 'if (!refused && lc->dying) {',
       unit('tests/layer/home.c'))
mutant(41, 'inquiry_believes_a_stray', 'inquiry.c',
       'if (lc_is_mark(lc, &mark))', 'if (lc)',
       unit('tests/layer/home.c'))
mutant(41, 'over_though_its_node_is_there', 'inquiry.c',
       'if (there && answer->stat->ephemeral_owner == lc->session->id)', 'if (lc->dying)',
       unit('tests/layer/home.c'))
mutant(41, 'over_for_want_of_memory', 'session.c',
       '		port_opened(lc, inquiry_begin(lc));\n		return;\n	}\n	if (!refused && !lc->dying)',
       '		int r = inquiry_begin(lc);\n\n		if (r < 0)\n			session_is_over(lc);\n		else\n			port_opened(lc, r);\n'
       '		return;\n	}\n	if (!refused && !lc->dying)',
       unit('tests/layer/home.c'))
mutant(41, 'another_entry_of_that_name_is_ours', 'inquiry.c',
       'if (there && answer->stat->ephemeral_owner == lc->session->id)', 'if (there)',
       unit('tests/layer/home.c'))
mutant(41, 'word_doubted_when_the_lease_is_over', 'session.c',
       'session->inquiry == INQUIRY_OVER || !session_lease_is_valid(lc)', 'session->inquiry == INQUIRY_OVER',
       unit('tests/layer/home.c'))
mutant(41, 'limit_not_counted', 'session_lease.c',
       '	lease_shorten(&session->lease, timeout_us);\n', '',
       unit('tests/layer/session_lease.c'))
mutant(41, 'limit_forgotten_in_the_next_session', 'session.c',
       '		timeout_us = session->limit_us;\n', '		(void)timeout_us;\n',
       unit('tests/layer/session_lease.c'))
mutant(41, 'too_short_before_it_is_known_where', 'session_lease.c',
       '|| home_may_be_elsewhere(lc))', ')',
       unit('tests/layer/home.c'))
mutant(41, 'too_short_and_used', 'heartbeat.c',
       '		if (!session_long_enough(lc))\n			return;\n		compare', '		compare',
       unit('tests/layer/home.c'))
mutant(41, 'left_after_it_led_home', 'session.c',
       'session->retreat = RETREAT_NONE; /* whether', '/* where',
       unit('tests/layer/home.c'))
mutant(41, 'made_elsewhere_at_the_start', 'home.c',
       'return lc->home->known.czxid != 0;', 'return lc->home->root != ROOT_UNKNOWN;',
       unit('tests/layer/home.c'))

# ---- 28, 43: an entry that serves several takes ----

mutant(43, 'spare_for_ever', 'reuse.c',
       'return us < REUSE_US ? us : REUSE_US;',
       'return us > 0 ? 600000000 : 0;',
       REUSE)
mutant(43, 'spare_for_its_whole_life', 'reuse.c',
       'idle_us < end_us ? idle_us : end_us',
       'end_us',
       REUSE)
mutant(43, 'spare_though_creates_are_quick', 'reuse.c',
       'return us < REUSE_IDLE_US ? us : REUSE_IDLE_US;',
       'return REUSE_IDLE_US;',
       REUSE)
mutant(43, 'repeated_after_a_rest', 'reuse.c',
       'last->left_us < longest_idle(lock->lc)',
       'last->left_us < longest(lock->lc)',
       REUSE)
mutant(43, 'spare_beside_others', 'reuse.c',
       'lc_now(lock->lc) - lock->known.met_us > REUSE_ALONE_US',
       'lock != NULL',
       REUSE)
mutant(43, 'missing_number_not_noticed', 'known.c',
       '\tif (lock->known.overtaken)\n\t\tknown_meet(lock);\n',
       '',
       REUSE)
mutant(43, 'listed_other_not_noticed', 'known.c',
       '\tif (lock->known.others > 0)\n\t\tknown_meet(lock);\n',
       '',
       REUSE)
mutant(43, 'own_delete_is_another_client', 'listing.c',
       'if (lock->takers.all && lock->takers.all->prev->entry.state == ENTRY_PRESENT)',
       'if (lock->takers.all)',
       REUSE)
mutant(43, 'event_not_noticed', 'listing.c',
       'if (lock->takers.all && lock->takers.all->prev->entry.state == ENTRY_PRESENT)',
       'if (!lock->takers.all)',
       REUSE)
mutant(43, 'spare_with_an_answer_under_way', 'reuse.c',
       'entry->pending == 0 && is_plain(taker)',
       'is_plain(taker)',
       REUSE)
mutant(43, 'spare_with_a_reason', 'reuse.c',
       '!data->reason && !data->told_since',
       '!data->told_since',
       REUSE)
mutant(43, 'spare_without_a_repeat', 'reuse.c',
       'return taker->entry.repeated && !taker_is_untold(taker) &&',
       'return !taker_is_untold(taker) &&',
       REUSE)
mutant(43, 'spare_though_not_told', 'reuse.c',
       '!taker_is_untold(taker) &&',
       '',
       REUSE)
mutant(43, 'reused_by_any_process', 'reuse.c',
       'return data->pid == request->pid && data->uid == request->uid &&',
       'return data->uid == request->uid &&',
       REUSE)
mutant(43, 'reused_by_any_user', 'reuse.c',
       'return data->pid == request->pid && data->uid == request->uid &&',
       'return data->pid == request->pid &&',
       REUSE)
mutant(43, 'reused_for_another_lock', 'reuse.c',
       '(request->czxid == 0 || request->czxid == lock->node.info.czxid)',
       'true',
       REUSE)
mutant(43, 'deleted_spare_not_noticed', 'listing.c',
       '\ttaker_drop_spare(taker_of(entry));\n\tarmed =',
       '\tarmed =',
       REUSE)
mutant(43, 'reused_though_marked', 'loss.c',
       '\ttaker_drop_spare(taker);\n',
       '',
       REUSE)
mutant(43, 'reused_on_another_connection', 'listing.c',
       '\t\t\ttaker_drop_spare(taker); /* it may have been evicted meanwhile */\n',
       '',
       REUSE)
mutant(43, 'reused_without_lease', 'reuse.c',
       'entry->pending == 0 &&\n\t       is_alone(taker) && session_may_grant(lc) &&',
       'entry->pending == 0 &&\n\t       is_alone(taker) &&',
       REUSE)
mutant(43, 'reused_with_the_limit_of_the_last', 'take.c',
       'taker->hold_until_us = LC_FOREVER;',
       'taker->hold_until_us = taker->spare ? taker->hold_until_us : LC_FOREVER;',
       REUSE)
mutant(43, 'watched_later_and_later', 'taker.c',
       'taker->entry.lock->repeat.granted_us + LONG_HOLD_US',
       'lc_now(lc) + LONG_HOLD_US',
       REUSE)
mutant(43, 'questions_find_it_spare', 'call.c',
       '\treuse_end_at(lc, call->path);\n',
       '',
       REUSE)
mutant(43, 'who_comes_is_not_seen', 'reuse.c',
       '\tlast->entry.repeated = false;\n\ttaker_drop_spare(last);',
       '',
       REUSE)
mutant(28, 'one_token_for_several_holds', 'reuse.c',
       '&& !taker->told_token && data->pid != 0',
       '&& data->pid != 0',
       sim())
mutant(28, 'shown_token_is_given_again', 'entry_info.c',
       'if (entry && entry->repeated)\n\t\treuse_end(lock); /* its token is shown */',
       '',
       REUSE)
mutant(28, 'token_shown_of_several_holds', 'hold.c',
       'return taker->entry.repeated && !taker->told_token ? 0 : taker->entry.czxid;',
       'return taker->entry.czxid;',
       REUSE)


# ---- building ----

@functools.lru_cache(maxsize=None)
def pattern(old):
    """An expression that finds a text wherever its lines are broken."""
    words = [re.escape(word) for word in old.split()]
    return re.compile((r'(?<=\s)' if old[0].isspace() else '') + r'\s+'.join(words)
                      + (r'(?=\s)' if old[-1].isspace() else ''))


def find_text(texts, name, file, old):
    """The file that has `old` exactly once: the file in the row, or, if that one does not have it,
    the only other one."""
    count = len(pattern(old).findall(texts.get(file, '')))
    places = [file] * count or [other for other in texts for _ in pattern(old).findall(texts[other])]
    if len(places) == 1:
        return places[0]
    where = file if count else 'lockcore/'
    raise Stale(f'{name} is stale: its text is {len(places)} times in {where}:\n{old}')


def edited(texts, this):
    """The files that a mutant changes, and their new texts."""
    changed = {}
    for file, old, new in this.edits:
        now = {**texts, **changed}
        found = find_text(now, this.name, file, old)
        changed[found] = pattern(old).sub(lambda _, new=new: new, now[found])
    return changed


def link(works, judge, replaced, name):
    return works.link(judge.source if isinstance(judge, Unit) else None, replaced, name)


def mutate(works, this):
    """Compiles the files that the mutant changes, and links."""
    place = f'{works.directory}/{this.name}.d'
    changed, engine = edited(TEXTS, this), ROOT + '/lockcore'
    touched = changed
    if any(file.endswith('.h') for file in changed):   # then any file may include it
        changed, engine = {**TEXTS, **changed}, place
        touched = works.engine
    for file, text in changed.items():
        os.makedirs(os.path.dirname(f'{place}/{PLACES[file]}'), exist_ok=True)
        with open(f'{place}/{PLACES[file]}', 'w', encoding='utf-8') as stream:
            stream.write(text)
    try:
        replaced = {file: compile_file(f'{place}/{PLACES[file]}', f'{place}/{stem(file)}.o', engine)
                    for file in touched}
        return link(works, this.judge, replaced, this.name)
    except RuntimeError as error:
        raise Stale(f'{this.name} is stale: {error}') from error


# ---- judging ----

def stale():
    """A complaint for each mutant that does not apply, without compiling anything."""
    words = [f'{this.name} is stale: there is no {this.judge.source}' for this in MUTANTS
             if isinstance(this.judge, Unit) and not os.path.exists(f'{ROOT}/{this.judge.source}')]
    for this in MUTANTS:
        try:
            edited(TEXTS, this)
        except Stale as error:
            words.append(str(error))
    return words


def sim_command(program, judge, last):
    command = [program, '--seeds', f'{judge.first}..{last}']
    return command + (['--profile', judge.profile] if judge.profile != 'any' else [])


def convict(program, judge):
    """How the mutant was caught, and by which seed; or None."""
    if isinstance(judge, Unit):
        done = run_mutant([program], SECONDS, ENDLESS)
        if not done:
            return stem(judge.source) + ': hangs', None
        if done.returncode == 0:
            return None
        failed = [line.split()[-1] for line in done.stdout.splitlines() if '[  FAILED  ]' in line]
        return f'{stem(judge.source)}: {failed[0] if failed else "crash"}', None
    done = run_mutant([*sim_command(program, judge, judge.first + SEEDS - 1), '--expect-violation'], SECONDS, ENDLESS)
    if not done:
        return None
    word = done.stdout.strip().splitlines()[0] if done.stdout.strip() else ''
    if done.returncode or not word.startswith('seed '):
        return None
    seed, what = word[5:].split(': ', 1)
    return what, int(seed)


def examine(works, this):
    try:
        program = mutate(works, this)
    except Stale as error:
        print(error, flush=True)
        return None
    caught = convict(program, this.judge)
    os.unlink(program)
    shutil.rmtree(f'{works.directory}/{this.name}.d')
    return caught


def acquit(works, pool, verdicts):
    """The engine without a change before the same judges: a list of complaints."""
    ranges, jobs = collections.defaultdict(list), []
    program = None
    for this, caught in verdicts:
        if isinstance(this.judge, Sim) and caught:
            ranges[this.judge.profile].append((this.judge.first, caught[1]))
    for profile, spans in ranges.items():
        program = program or link(works, sim(), {}, 'sim')
        seeds = sorted({seed for first, last in spans for seed in range(first, last + 1)})
        while seeds:
            end = next((i for i in range(1, len(seeds)) if seeds[i] != seeds[i - 1] + 1), len(seeds))
            jobs.append(sim_command(program, sim(profile, seeds[0]), seeds[end - 1]))
            seeds = seeds[end:]
    for source in sorted({this.judge.source for this, _ in verdicts if isinstance(this.judge, Unit)}):
        jobs.append([link(works, unit(source), {}, 'unit-' + stem(source))])
    return [f'the engine itself fails {" ".join(job)}:\n{done.stdout}'
            for job, done in zip(jobs, pool.map(run, jobs)) if done.returncode]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n', maxsplit=1)[0])
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--every', type=int, default=1, metavar='N', help='only each Nth of the table')
    parser.add_argument('--build', metavar='DIRECTORY', help='take the objects of this build')
    parser.add_argument('--stale', action='store_true', help='only see whether each of them still applies')
    parser.add_argument('names', nargs='*', metavar='NAME')
    options = parser.parse_args()
    chosen = [this for this in MUTANTS if not options.names or this.name in options.names][::options.every]
    for path in find('lockcore/**/*.[ch]'):
        TEXTS[os.path.basename(path)] = read(path)
        PLACES[os.path.basename(path)] = os.path.relpath(path, ROOT + '/lockcore')
    words = stale()
    if words or not chosen:
        sys.exit('\n'.join(words) or 'no such mutant')
    if options.stale:
        return
    verdicts = []
    with tempfile.TemporaryDirectory() as directory, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        works = Works(directory, sorted({m.judge.source for m in chosen if isinstance(m.judge, Unit)}), options.build)
        works.build(pool)
        print('rule  mutant                                    seed  caught by')
        for this, caught in zip(chosen, pool.map(lambda this: examine(works, this), chosen)):
            what, seed = caught or ('NOBODY', None)
            print(f'{this.rule:4}  {this.name:40} {seed or "-":>5}  {what}', flush=True)
            verdicts.append((this, caught))
        words = acquit(works, pool, verdicts)
    print('\n'.join(words + [f'{len(verdicts)} mutants, {sum(1 for _, c in verdicts if c)} caught']))
    sys.exit(1 if words or not all(caught for _, caught in verdicts) else 0)


if __name__ == '__main__':
    main()
