# SPDX-License-Identifier: MIT
"""checker.py - decides from the histories alone whether the locks were locks.

  two holders    two holds of a lock were certainly held at the same time, or no instant
                 is left for a success in which nobody else held (holds.py); of a lock
                 with slots: one hold more than slots
  token          not unique, or not rising: an open that begins after another one got
                 the lock gets the larger token, and the holds follow each other by token
  shared         a protected number changed while somebody shared the lock
  value          the file `value` of a lock lost an increment
  evicted        a holder whose entry was taken away held for too long after that
  came back      a use succeeds after one that failed
  crash          a lock was lost though no fault was near but a crash, after which another
                 daemon went on
  errno          an error that was not to be expected
  time           a timed lock file opened late or gave up early
  fenced         an increment lost, or a holder refused while it held
  unfenced       an increment lost that no loss of a lock explains; on a mount with
                 on_lost=kill a loss explains nothing
  stuck          a worker that did not get its locks after the faults, entries left
  bursts         no burst of takes was served by fewer requests than single takes need
  other          a problem that the runner saw

The order of grants is the order of entries: a token is the entry's czxid, which
rises from entry to entry, and so must the holds that exclude each other. Holds that
share a lock do not exclude each other, nor do as many holds as there are slots.

ZooKeeper 3.8.0 itself forgets transactions that it has answered, now and then, when servers
die while they synchronize (ZOOKEEPER-4643, ZOOKEEPER-4646). The proof is a holder's token that
is larger than the last transaction that a later leader has kept of its epoch. Values, waiting
entries and evictions may be forgotten, too. A forgotten delete makes an entry live again after another one was
granted on its strength. So the holds that were granted while transactions were certainly forgotten
are judged among themselves, and all others among themselves.

A leader also cuts off transactions that were never answered. Such a cut proves nothing about
holds, but an entry that was just made may be gone.
"""

import bisect
import collections
import errno
import os
import re
import sys

import history
import stores
from holds import History

SECOND = 10**9
# The mount declares a loss 0.3 s before the lock can be given away: a write within this time
# after a check cannot meet the next holder.
SPARE = SECOND // 4
# How late an answer may be when nothing is stopped: the machine is busy, and the path is looked
# up before the lock file's own time begins. While the ensemble is away, the lookup of an unknown name
# waits 2 s, and 2 s more behind another process's lookup of it.
LATE = (2 + 2 * 2) * SECOND
# How long after a fault a mount may still find the ensemble away: an election, and
# servers that do not answer are tried one after the other.
RECOVERY = 6 * SECOND
# How long an evicted holder may go on after the end of its session, when the entry goes.
EVICTION = LATE
# A take and a release are a request each, unless many go together. About every second burst needs
# fewer requests than that, so a few bursts prove nothing.
BURST_TAKES, BURST_REQUESTS, BURSTS = 500, 2, 8
_UNITS = {'ms': 10**6, 's': SECOND, 'm': 60 * SECOND, 'h': 3600 * SECOND}
# The ensemble did not answer, or so slowly that too many requests of this user waited.
_UNASKED = (errno.EHOSTUNREACH, errno.EBUSY)
REMEMBERED = 2 * SECOND
_DEAD = (errno.ENOTCONN, errno.ECONNABORTED, errno.ENOENT)


class Result:
    def __init__(self):
        self.violations = []           # (what, text)
        self.figures = collections.Counter()

    def complain(self, what, text):
        self.violations.append((what, text))


def check(directory):
    result = Result()
    journal = history.read(directory + '/journal')
    begin = next(event for event in journal if event['e'] == 'begin')
    histories = []
    for event in journal:
        if event['e'] != 'worker':
            continue
        worker, mount = event['worker'], event['mount']
        path = f'{directory}/histories/{worker}'
        events = history.read(path) if os.path.exists(path) else []
        guarded = mount < len(begin['on_lost']) and begin['on_lost'][mount] == 'kill'
        histories.append(History(worker, mount, guarded, events, result.complain, event['must'], event['process']))
    fenced = {lock: stores.records(f'{directory}/stores/{lock}.fenced')
              for lock in begin['locks'] if os.path.exists(f'{directory}/stores/{lock}.fenced')}
    judge(result, journal, histories, fenced)
    return result


def judge(result, journal, histories, fenced):
    begin = next(event for event in journal if event['e'] == 'begin')
    slots, sessions = begin.get('slots', {}), begin['sessions']
    attempts = [attempt for each in histories for attempt in each.attempts]
    faults = [event for event in journal if event['e'] == 'fault']
    pauses = collections.defaultdict(list)
    for fault in faults:
        if fault['kind'].startswith('daemon-machine-pause'):
            pauses[fault['target']].append((fault['c'], fault['r']))
    for attempt in attempts:
        attempt.pauses = pauses[attempt.mount]
    forgotten, doubts, cuts = forgetting(result, journal, attempts)
    check_evictions(result, attempts, sessions, forgotten, [fault['target'] | {'c': fault['c'], 'r': fault['r']}
                                                            for fault in faults if fault['kind'] == 'evict'])
    for attempt in attempts:
        if attempt.held:
            attempt.group = next((number for number, (start, end) in enumerate(doubts)
                                  if start <= attempt.got <= end), None)
            result.figures['holds granted while the ensemble forgot'] += attempt.group is not None
    by_lock = collections.defaultdict(list)
    for attempt in attempts:
        if attempt.held:
            by_lock[attempt.lock].append(attempt)
    for lock, holds in sorted(by_lock.items()):
        for group in grouped(holds):
            check_exclusion(result, lock, group, slots.get(lock, 1))
            check_tokens(result, lock, group, slots.get(lock, 1))
            check_instants(result, lock, group, slots.get(lock, 1))
        check_fenced(result, lock, holds, fenced.get(lock, []))
        check_unfenced(result, lock, holds)
        check_sharing(result, lock, holds)
        check_values(result, lock, holds, forgotten)
    removals = [fault for fault in faults if fault['kind'] == 'lock-remade']
    storms = disturbed(faults)
    faults = away(faults)
    check_crashes(result, attempts, faults, storms, removals)
    check_errors(result, attempts, faults, storms, removals, forgotten, cuts)
    check_times(result, attempts, faults)
    check_end(result, journal, histories)
    check_bursts(result, histories)
    count(result, histories, attempts, slots)


def grouped(holds):
    """The holds that were granted while the ensemble forgot, by window, and all others."""
    groups = collections.defaultdict(list)
    for hold in holds:
        groups[hold.group].append(hold)
    return groups.values()


# ---- one holder ----

def check_exclusion(result, lock, holds, slots):
    alone, sharing = [], None          # holds that may go on: up to `slots`; the longest shared one

    def complain(hold, others):
        for last in others:
            result.complain('two holders', f'{lock}: {last} held from {last.got} to {last.proved} at '
                            f'least, {hold} from {hold.got} to {hold.proved}')
    # A hold without a use after the open proves only an instant of the open: see check_instants.
    for hold in sorted((hold for hold in holds if hold.used is not None), key=lambda hold: hold.got):
        alone = [last for last in alone if last.proved >= hold.got]
        if hold.shared:
            complain(hold, alone)
            if sharing is None or hold.proved > sharing.proved:
                sharing = hold
            continue
        if len(alone) >= slots:
            complain(hold, alone)
        if sharing and sharing.proved >= hold.got:
            complain(hold, [sharing])
        alone.append(hold)


def check_instants(result, lock, holds, slots):
    """The holds in the order of their tokens, each as early and short as it can be
    made: does every success find an instant?"""
    alone, sharing = [], 0             # ends of holds: the latest `slots`; the last shared one
    for hold in sorted((hold for hold in holds if hold.token is not None), key=lambda hold: hold.token):
        if hold.shared:
            free = max(alone, default=0)
        else:
            free = max(sharing, min(alone) if len(alone) == slots else 0)
        start = max(hold.opened, free)
        end = start if hold.used is None else max(hold.used, start)
        if start > hold.answered or (hold.used is not None and end > hold.used_ret):
            result.complain('two holders', f'{lock}: no instant is left for {hold}: opened {hold.opened} '
                            f'to {hold.answered}, used until {hold.used}, others held until {free}')
        if hold.shared:
            sharing = max(sharing, end + 1)
        else:
            alone = sorted(alone + [end + 1])[-slots:]
    check_nameless(result, lock, holds, slots)


class Spans:
    """Spans of time. contain(): has one of them begun by `start`, and does it last to `end`?"""

    def __init__(self, spans):
        self.starts, self.ends = [], []
        for start, end in sorted(spans):
            self.starts.append(start)
            self.ends.append(max(end, self.ends[-1] if self.ends else 0))

    def contain(self, start, end):
        at = bisect.bisect_right(self.starts, start)
        return at > 0 and self.ends[at - 1] >= end


def check_nameless(result, lock, holds, slots):
    """Holds that never saw their token: none of these was opened while another one held."""
    known = [hold for hold in holds if hold.token is not None]
    alone = Spans((hold.got, hold.proved) for hold in known if not hold.shared)
    sharing = Spans((hold.got, hold.proved) for hold in known if hold.shared)
    for hold in holds:
        if hold.token is not None:
            continue
        others = [alone] if hold.shared else [sharing] + ([alone] if slots == 1 else [])
        if any(each.contain(hold.opened, hold.answered) for each in others):
            result.complain('two holders', f'{lock}: {hold} was opened while another one held')


def check_tokens(result, lock, holds, slots):
    holds = [hold for hold in holds if hold.token is not None]
    by_token = collections.Counter(hold.token for hold in holds)
    for token, times in by_token.items():
        if times > 1:
            result.complain('token', f'{lock}: {token} was given {times} times')
    ended = sorted(holds, key=lambda hold: hold.got)
    largest, at = {}, 0                # the largest token of sharers, and of the others
    for hold in sorted(holds, key=lambda hold: hold.opened):
        while at < len(ended) and ended[at].got < hold.opened:
            last = ended[at]
            if last.shared not in largest or last.token > largest[last.shared].token:
                largest[last.shared] = last
            at += 1
        # A worker that comes back to its place in the queue has a token older than its open.
        # Others may have got the lock meanwhile if they need not wait for this place.
        for shared, last in largest.items():
            exclude = shared != hold.shared or (not shared and slots == 1)
            if exclude and hold.token < last.token:
                result.complain('token', f'{lock}: {hold} was opened after {last} had the lock')


def check_evictions(result, attempts, sessions, forgotten, evictions):
    """Mark the attempts that an eviction may have meant. The ensemble may have forgotten the eviction."""
    by_place = collections.defaultdict(list)
    for eviction in evictions:
        by_place[eviction['lock'], eviction['host']].append(eviction)
        done = ', perhaps' if eviction['errno'] else ''
        result.figures[f'evicted, {eviction["state"]}{done}'] += 1
    for attempt in attempts:
        for eviction in by_place.get((attempt.lock, f'm{attempt.mount}'), ()):
            end = attempt.over
            if eviction['r'] < attempt.since or (end is not None and end < eviction['c']):
                continue
            attempt.evicted = True
            if (attempt.token == eviction['token'] and not eviction['errno'] and
                    not within(forgotten, eviction['c'], eviction['r']) and
                    attempt.used is not None and attempt.used > eviction['r'] + sessions[attempt.mount] * SECOND + EVICTION):
                result.complain('evicted', f'{attempt} was evicted until {eviction["r"]} and held at '
                                f'{attempt.used}')


# ---- the stores ----

def check_fenced(result, lock, holds, records):
    value = excused = 0
    alone, shared = collections.Counter(), collections.Counter()    # the largest token of each group
    groups = {hold.token: hold.group for hold in holds if hold.token is not None}
    last = None                        # the group of the last write
    for kind, token, new in records:
        group = groups.get(token)
        largest = alone[group] if kind == 'S' else max(alone[group], shared[group])
        if token < largest:
            result.complain('fenced', f'{lock}: token {token} after {largest}')
        if kind == 'S':
            shared[group] = max(shared[group], token)
        else:
            alone[group] = max(alone[group], token)
        if kind == 'W':
            if new != value + 1:
                result.figures['lost updates, fenced store'] += 1
                if value and last != group:
                    excused += value + 1 - new
                else:
                    result.complain('fenced', f'{lock}: {value} became {new} with token {token}')
            value, last = new, group
    written = sum(kind == 'W' for kind, _, _ in records)
    result.figures['increments, fenced store'] += written
    result.figures['refusals, fenced store'] += 0
    if value + excused != written:
        result.complain('fenced', f'{lock}: the value is {value} after {written} accepted increments')
    accepted = 0
    for hold in holds:
        for event in hold.stores:
            if event['e'] != 'fence':
                continue
            accepted += event['op'] == 'write' and event['ok']
            if event['ok']:
                continue
            result.figures['refusals, fenced store'] += 1
            if hold.used is not None and hold.used > event['r'] and not overtaken(hold, holds, event):
                result.complain('fenced', f'{lock}: {hold} was refused at {event["c"]} and still held '
                                f'at {hold.used}')
    # A worker that was killed may not have recorded its last increment.
    if accepted > written:
        result.complain('fenced', f'{lock}: {accepted} increments were told, {written} are stored')


def overtaken(hold, holds, event):
    """Whether a larger token of another group was given before a refusal, and none of its own."""
    larger = [other for other in holds if other.token is not None and hold.token is not None and
              other.token > hold.token and other.got < event['r'] and
              not (other.shared and hold.shared)]
    return (any(other.group != hold.group for other in larger) and
            not any(other.group == hold.group for other in larger))


class Update:
    """One read and write of a plain store."""

    def __init__(self, hold, read, write):
        self.hold, self.read, self.write = hold, read, write
        # Held at an instant after the write, so all the time up to it.
        self.confirmed = write is not None and hold.used is not None and hold.used >= write['r']

    def excused(self, store):
        """Whether its write may have come when another worker had the lock."""
        if self.write is None or self.confirmed or (self.hold.guarded and not self.unguarded()):
            return False
        # An evicted holder is told, and so is one whose time is over. The next one holds at once.
        if store == 'naive' or self.hold.evicted or 'most=' in self.hold.lock_file:
            return True
        checked = self.write['checked']
        return checked is None or self.write['r'] - checked > SPARE

    def unguarded(self):
        """Whether it came while its machine was paused: the guardian stood still, the worker did not.
        The worker had looked before."""
        looked = max(self.write['checked'] or 0, self.hold.got)
        return any(looked <= start <= self.write['c'] and self.write['r'] <= end
                   for start, end in self.hold.pauses)


def updates(holds, store):
    found = []
    for hold in holds:
        read = None
        for event in hold.stores:
            if event.get('store') != store or event['e'] == 'look':
                continue
            if event['e'] == 'read':
                read = event
                found.append(Update(hold, read, None))
            else:
                found[-1] = Update(hold, read, event)
    return found


def check_unfenced(result, lock, holds):
    """If two updates read the same number, one increment is lost. This may be only if a worker
    wrote in between that had lost the lock and could not know it."""
    for store in ('careful', 'naive'):
        every = [update for update in updates(holds, store) if update.write]
        every.sort(key=lambda update: update.read['c'])
        result.figures[f'increments, plain store, {store}'] += len(every)
        strays = [update for update in every if update.excused(store)]
        by_value = {}
        for update in every:
            before = by_value.get(update.read['value'])
            by_value[update.read['value']] = update
            if before is None:
                continue
            result.figures[f'lost updates, plain store, {store}'] += 1
            strangers = [other for other in every if other.hold.group != before.hold.group]
            if not any(stray in (before, update) or
                       (stray.write['r'] >= before.read['c'] and stray.write['c'] <= update.read['r'])
                       for stray in strays + strangers):
                result.complain('unfenced', f'{lock}, {store}: {before.hold} and {update.hold} both read '
                                f'{update.read["value"]}, and nobody may have written late')


def check_sharing(result, lock, holds):
    """Nothing changes between two looks of a sharer that certainly held until the later look,
    except by a late write, as above."""
    for store in ('careful', 'naive'):
        every = [update for update in updates(holds, store) if update.write]
        strays = [update for update in every if update.excused(store)]
        others = {group: strays + [update for update in every if update.hold.group != group]
                  for group in {hold.group for hold in holds}}
        for hold in holds:
            last = None
            for event in hold.stores:
                if event['e'] != 'look' or event['store'] != store:
                    continue
                result.figures['looks by sharers'] += 1
                if (last and event['value'] != last['value'] and hold.used is not None and
                        hold.used >= event['r'] and
                        not any(stray.write['r'] >= last['c'] and stray.write['c'] <= event['r']
                                for stray in others[hold.group])):
                    result.complain('shared', f'{lock}, {store}: {last["value"]} became {event["value"]} '
                                    f'while {hold} shared the lock, at {event["c"]}')
                last = event


def check_values(result, lock, holds, forgotten):
    """Accepted numbers rise from holder to holder: no increment was lost."""
    written = [(event['token'], event['number'], hold, event) for hold in holds for event in hold.stores
               if event['e'] == 'value' and not event['errno']]
    written.sort(key=lambda each: each[:2])
    result.figures['increments, value'] += len(written)
    for (_, before, one, event), (_, after, other, _) in zip(written, written[1:]):
        if after <= before and one.group == other.group and not within(forgotten, event['c'], event['r']):
            result.complain('value', f'{lock}: {one} had written {before}, then {other} {after}')


# ---- errors and times ----

def forgetting(result, journal, attempts):
    """Three lists of times, [start, end]: whose transactions the ensemble may have forgotten; the
    grants that may rest on a forgotten transaction; and the cuts that may have taken a new entry.

    What is forgotten came after the last transaction that was kept, so after the opens of all
    entries that were kept, and before the first grant of a later epoch."""
    end = next(event for event in journal if event['e'] == 'end')
    holds = [attempt for attempt in attempts if attempt.held and attempt.token]
    found, doubts, cuts = [], [], []
    for last in end.get('truncated', ()):
        epoch = last >> 32
        got = [hold.got for hold in holds if last < hold.token < epoch + 1 << 32]
        kept = max((hold.since for hold in holds if epoch << 32 <= hold.token <= last), default=None)
        later = min((hold.got for hold in holds if hold.token >= epoch + 1 << 32), default=None)
        if got:
            result.figures['holds that the ensemble has forgotten'] += len(got)
            found.append([min(got) - RECOVERY, max(got) + RECOVERY])
            doubts.append([max(min(got) - RECOVERY, kept or 0),
                           min(max(got) + RECOVERY, later or max(got) + RECOVERY)])
        if kept is not None and later is not None:
            cuts.append([kept - SECOND, later])
    return sorted(found), sorted(doubts), merged(cuts)


def merged(spans):
    found = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1][1] = max(found[-1][1], end)
        else:
            found.append([start, end])
    return found


def away(faults):
    """The faults of each mount's daemon."""
    found = collections.defaultdict(list)
    for fault in faults:
        if fault['kind'].startswith('daemon-'):
            found[fault['target']].append(fault)
    return found


def overlap(faults, start, end):
    """How long the daemon of a mount was away during a call."""
    return sum(max(0, min(end, fault['r']) - max(start, fault['c'])) for fault in faults)


def killed_around(faults, start, end):
    return any(fault['kind'] == 'daemon-kill' and fault['c'] <= end and start <= fault['r'] + SECOND
               for fault in faults)


def check_crashes(result, attempts, faults, storms, removals):
    """A crash is no reason to lose a lock."""
    for attempt in attempts:
        if not attempt.held:
            continue
        start, end = attempt.opened, attempt.lost['r'] if attempt.lost else attempt.proved
        if not any(fault['kind'] == 'daemon-crash' and fault['c'] <= end and start <= fault['r']
                   for fault in faults[attempt.mount]):
            continue
        result.figures['holds over a crash'] += 1
        removed = any(fault['target'] == attempt.lock and fault['c'] <= end and start <= fault['r']
                      for fault in removals)
        if attempt.lost and not (attempt.evicted or removed or 'most=' in attempt.lock_file or
                                 within(storms, start, end)):
            result.complain('crash', f'{attempt}: lost at {attempt.lost["c"]}')


def disturbed(faults):
    """The times in which the ensemble may be out of a mount's reach, [start, end]."""
    found = []
    for fault in sorted(faults, key=lambda fault: fault['c']):
        if fault['kind'] in ('worker-kill', 'evict', 'lock-remade', 'daemon-crash'):
            continue
        if found and fault['c'] <= found[-1][1]:
            found[-1][1] = max(found[-1][1], fault['r'] + RECOVERY)
        else:
            found.append([fault['c'], fault['r'] + RECOVERY])
    return found


def within(storms, start, end):
    at = bisect.bisect(storms, [end, float('inf')])
    return at > 0 and storms[at - 1][1] >= start


def calm(storms, instant):
    """The first instant, from this one on, that is in no storm."""
    at = bisect.bisect(storms, [instant, float('inf')])
    return max(instant, storms[at - 1][1]) if at > 0 else instant


def was_gone(attempt, storms, removals, forgotten):
    """Whether the lock was removed. The ensemble may have forgotten that it was made again. An
    open file may belong to the former lock, which a mount remembers for a while, and longer
    while it cannot ask the ensemble."""
    before = [fault for fault in removals if fault['target'] == attempt.lock and fault['c'] <= attempt.answered]
    if not before:
        return False
    last = max(before, key=lambda fault: fault['r'])
    until = calm(storms, last['r'] + REMEMBERED) if attempt.lock_file == 'flock' else last['r']
    return attempt.opened <= until or within(forgotten, last['c'], last['r'])


def time_was_over(attempt):
    limit = duration(attempt.lock_file)
    return limit is not None and attempt.answered - attempt.since >= limit


def check_errors(result, attempts, faults, storms, removals, forgotten, cuts):
    for attempt in attempts:
        if attempt.answered is None:
            continue
        code = attempt.errno
        result.figures[f'open: {errno.errorcode.get(code, "held")}'] += 1
        promised = code == 0 or (
            code == errno.EINTR and attempt.signal or
            code == errno.EAGAIN and attempt.at_once or
            # The ensemble could not be asked in time.
            code == errno.EHOSTUNREACH and (attempt.at_once or time_was_over(attempt)) or
            code == errno.ECANCELED and (attempt.evicted or
                                         within(forgotten, attempt.opened, attempt.answered) or
                                         within(cuts, attempt.opened, attempt.answered)) or
            code == errno.ENOENT and was_gone(attempt, storms, removals, forgotten) or
            code == errno.ETIMEDOUT and duration(attempt.lock_file) is not None or
            # The lock that it had may be lost when the request is read.
            code == errno.EIO and attempt.converts or
            # The path is looked up before, and no server could be asked about it.
            code in _UNASKED and within(storms, attempt.opened, attempt.answered) or
            code in _DEAD and killed_around(faults[attempt.mount], attempt.opened, attempt.answered))
        if not promised:
            result.complain('errno', f'{attempt}: open gives {errno.errorcode.get(code, code)} '
                            f'at {attempt.answered}')
        for event in attempt.checks:
            dead = event['errno'] in _DEAD[:2] and killed_around(faults[attempt.mount], attempt.opened,
                                                                 event['r'])
            unasked = (event['errno'] in _UNASKED and event['how'] in ('fsync', 'read') and
                       within(storms, event['c'], event['r']))
            if event['errno'] not in (0, errno.EIO) and not dead and not unasked:
                result.complain('errno', f'{attempt}: {event["how"]} gives '
                                f'{errno.errorcode.get(event["errno"], event["errno"])} at {event["r"]}')
        for event in attempt.stores:
            if event['e'] != 'value' or event['errno'] in (0, errno.EIO):
                continue
            dead = event['errno'] in _DEAD and killed_around(faults[attempt.mount], attempt.opened,
                                                             event['r'])
            unasked = event['errno'] in _UNASKED and within(storms, event['c'], event['r'])
            if not dead and not unasked:
                result.complain('errno', f'{attempt}: value gives '
                                f'{errno.errorcode.get(event["errno"], event["errno"])} at {event["r"]}')


def duration(lock_file):
    """The longest time that an open of the lock file waits, or None."""
    match = re.fullmatch(r'.*@(\d+)(ms|s|m|h)(,.*)?', lock_file)
    return int(match[1]) * _UNITS[match[2]] if match else None


def check_times(result, attempts, faults):
    for attempt in attempts:
        limit = 2 * SECOND if attempt.at_once else duration(attempt.lock_file)
        if limit is None or attempt.answered is None:
            continue
        took = attempt.answered - attempt.opened
        waited = attempt.answered - attempt.since
        if attempt.errno == errno.ETIMEDOUT and waited < limit:
            result.complain('time', f'{attempt}: gave up after {waited / SECOND:.3f} s')
        late = took - limit - LATE
        if late > 0 and late > overlap(faults[attempt.mount], attempt.opened, attempt.answered):
            result.complain('time', f'{attempt}: answered after {took / SECOND:.3f} s')


# ---- the end ----

def check_end(result, journal, histories):
    end = [event for event in journal if event['e'] == 'end']
    quiet = [event for event in journal if event['e'] == 'quiet']
    killed = {event['process'] for event in journal if event['e'] in ('kill', 'lost')}
    result.figures['workers killed by on_lost'] = sum(event['e'] == 'lost' for event in journal)
    if not end or not quiet:
        result.complain('other', 'the run was not finished')
        return
    for entry in end[0]['left']:
        result.complain('stuck', f'left in ZooKeeper: {entry}')
    for problem in end[0]['problems']:
        result.complain('other', problem)
    for each in histories:
        if each.process in killed:
            continue
        for lock in each.must:
            if lock not in each.done:
                last = each.attempts[-1] if each.attempts else None
                result.complain('stuck', f'{each.worker} did not get {lock} after the faults; last: {last}')
        if not each.exited:
            result.complain('stuck', f'{each.worker} did not come to an end')
        if each.done:
            slowest = max(event['r'] for event in each.done.values()) - quiet[0]['c']
            result.figures['slowest to get all locks after the faults, ms'] = max(
                result.figures['slowest to get all locks after the faults, ms'], slowest // 10**6)


def check_bursts(result, histories):
    """On few locks a release and the next take go together in one request. On many locks there
    are fewer requests than takes and releases only if some wait and then go together. If this
    never happens, the run does not test what a crowd is for. On a very busy machine the threads
    come one by one, and bursts have too few takes to count."""
    by_locks = collections.defaultdict(list)
    for each in histories:
        for burst in each.bursts:
            by_locks[burst['locks']].append(burst)
    for locks, bursts in sorted(by_locks.items()):
        large = [burst for burst in bursts if burst['takes'] >= BURST_TAKES]
        few = [burst for burst in large if burst['requests'] < BURST_REQUESTS * burst['takes']]
        result.figures[f'bursts on {locks} locks'] = len(large)
        result.figures[f'bursts on {locks} locks with less than {BURST_REQUESTS} requests for a take'] = len(few)
        if large:
            best = min(burst['requests'] / burst['takes'] for burst in large)
            result.figures[f'bursts on {locks} locks: requests for 100 takes, the best'] = int(100 * best)
        if len(large) >= BURSTS and not few:
            result.complain('bursts', f'of {len(large)} on {locks} locks none had less than '
                            f'{BURST_REQUESTS} requests for a take')


def count(result, histories, attempts, slots):
    holds = [attempt for attempt in attempts if attempt.held]
    figures = result.figures
    figures['histories'] = len(histories)
    figures['opens'] = len(attempts)
    figures['holds'] = len(holds)
    for hold in holds:
        kind = 'sharing' if hold.shared else 'of a lock with slots' if hold.lock in slots else 'exclusive'
        figures[f'holds, {kind}'] += 1
        if hold.lock_file in ('flock', 'kazoo', 'curator'):
            figures[f'holds by {hold.lock_file}'] += 1
        figures['holds that may last for so long at most'] += 'most=' in hold.lock_file
        figures['holds that are kept for so long at least'] += 'least=' in hold.lock_file
    figures['holds lost'] = sum(hold.lost is not None for hold in holds)
    figures['checks'] = sum(len(hold.checks) for hold in holds)
    # Without hand-overs between mounts the run would have proved little.
    tokens = collections.defaultdict(list)
    for hold in holds:
        if hold.token is not None:
            tokens[hold.lock].append(hold)
    for same in tokens.values():
        same.sort(key=lambda hold: hold.token)
        figures['hand-overs between mounts'] += sum(a.mount != b.mount for a, b in zip(same, same[1:]))


if __name__ == '__main__':
    import report
    report.verdict(checked := check(sys.argv[1]))
    sys.exit(1 if checked.violations else 0)
