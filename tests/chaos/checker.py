# SPDX-License-Identifier: MIT
"""checker.py - decides from the histories alone whether the locks were locks.

  two holders    what two holds of a lock certainly had overlaps, or a success had
                 no instant left in which nobody else held (holds.py)
  token          not unique, or not rising: who opened after another one had got the
                 lock has the larger one, and the holds follow each other by token
  came back      a use succeeds after one that failed
  errno          an error nobody has promised
  time           a timed door opened late or gave up early
  fenced         an increment lost, or a holder refused while it held
  unfenced       an increment lost that no loss of a lock explains; on a mount with
                 on_lost=kill a loss explains nothing
  stuck          a worker that did not get every lock after the faults, entries left
  other          what the runner saw

The order of grants is the order of entries: a token is the entry's czxid, which
rises from entry to entry, and so must the holds.
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
# The mount declares a loss 0.3 s before the lock can be given away: what is written
# within this time of a check cannot meet the next holder.
SPARE = SECOND // 4
# How late an answer may be when nothing is stopped: the machine is busy, and before the
# door's own time begins the path is looked up. Who asks for a name nobody knows while
# the ensemble is away waits 2 s, and behind another one who asks for it 2 s more.
LATE = (2 + 2 * 2) * SECOND
# How long after a fault a mount may still find the ensemble away: an election, and
# servers that do not answer are tried one after the other.
RECOVERY = 6 * SECOND
_UNITS = {'ms': 10**6, 's': SECOND, 'm': 60 * SECOND, 'h': 3600 * SECOND}
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
    workers = {event['worker']: event['mount'] for event in journal if event['e'] == 'worker'}
    histories = []
    for worker, mount in workers.items():
        path = f'{directory}/histories/{worker}'
        events = history.read(path) if os.path.exists(path) else []
        histories.append(History(worker, mount, begin['on_lost'][mount] == 'kill', events,
                                 result.complain))
    fenced = {lock: stores.records(f'{directory}/stores/{lock}.fenced')
              for lock in begin['locks'] if os.path.exists(f'{directory}/stores/{lock}.fenced')}
    judge(result, journal, histories, fenced)
    return result


def judge(result, journal, histories, fenced):
    attempts = [attempt for each in histories for attempt in each.attempts]
    by_lock = collections.defaultdict(list)
    for attempt in attempts:
        if attempt.held:
            by_lock[attempt.lock].append(attempt)
    for lock, holds in sorted(by_lock.items()):
        check_exclusion(result, lock, holds)
        check_tokens(result, lock, holds)
        check_instants(result, lock, holds)
        check_fenced(result, lock, holds, fenced.get(lock, []))
        check_unfenced(result, lock, holds)
    faults = [event for event in journal if event['e'] == 'fault']
    storms = disturbed(faults)
    faults = away(faults)
    check_errors(result, attempts, faults, storms)
    check_times(result, attempts, faults)
    check_end(result, journal, histories)
    count(result, histories, attempts)


# ---- one holder ----

def check_exclusion(result, lock, holds):
    last = None
    for hold in sorted(holds, key=lambda hold: hold.got):
        if last and hold.got <= last.proved:
            result.complain('two holders', f'{lock}: {last} held from {last.got} to {last.proved} at '
                            f'least, {hold} from {hold.got} to {hold.proved}')
        if last is None or hold.proved > last.proved:
            last = hold


def check_instants(result, lock, holds):
    """The holds in the order of their tokens, each as early and short as it can be
    made: does every success find an instant?"""
    free = 0                           # the earliest instant that is not taken
    for hold in sorted((hold for hold in holds if hold.token is not None), key=lambda hold: hold.token):
        start = max(hold.opened, free)
        end = start if hold.used is None else max(hold.used, start)
        if start > hold.answered or (hold.used is not None and end > hold.used_ret):
            result.complain('two holders', f'{lock}: no instant is left for {hold}: opened {hold.opened} '
                            f'to {hold.answered}, used until {hold.used}, others held until {free}')
        free = max(free, end + 1)
    # Those that lost the lock before they saw its token.
    certain = sorted((hold.got, hold.proved) for hold in holds if hold.token is not None)
    for hold in holds:
        if hold.token is None and any(start <= hold.opened and hold.answered <= end
                                      for start, end in certain):
            result.complain('two holders', f'{lock}: {hold} was opened while another one held')


def check_tokens(result, lock, holds):
    holds = [hold for hold in holds if hold.token is not None]
    by_token = collections.Counter(hold.token for hold in holds)
    for token, times in by_token.items():
        if times > 1:
            result.complain('token', f'{lock}: {token} was given {times} times')
    ended = sorted(holds, key=lambda hold: hold.got)
    largest, at = None, 0
    for hold in sorted(holds, key=lambda hold: hold.opened):
        while at < len(ended) and ended[at].got < hold.opened:
            if largest is None or ended[at].token > largest.token:
                largest = ended[at]
            at += 1
        if largest and hold.token < largest.token:
            result.complain('token', f'{lock}: {hold} was opened after {largest} had the lock')


# ---- the stores ----

def check_fenced(result, lock, holds, records):
    value = largest = 0
    for kind, token, new in records:
        if token < largest:
            result.complain('fenced', f'{lock}: token {token} after {largest}')
        largest = max(largest, token)
        if kind == 'W':
            if new != value + 1:
                result.figures['lost updates, fenced store'] += 1
                result.complain('fenced', f'{lock}: {value} became {new} with token {token}')
            value = new
    written = sum(kind == 'W' for kind, _, _ in records)
    result.figures['increments, fenced store'] += written
    result.figures['refusals, fenced store'] += 0
    if value != written:
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
            if hold.used is not None and hold.used > event['r']:
                result.complain('fenced', f'{lock}: {hold} was refused at {event["c"]} and still held '
                                f'at {hold.used}')
    # A worker that was killed may not have written down its last one.
    if accepted > written:
        result.complain('fenced', f'{lock}: {accepted} increments were told, {written} are stored')


class Update:
    """One read and write of a plain store."""

    def __init__(self, hold, read, write):
        self.hold, self.read, self.write = hold, read, write
        # Held at an instant after the write, so all the time up to it.
        self.confirmed = write is not None and hold.used is not None and hold.used >= write['r']

    def excused(self, store):
        """Whether its write may have come when the lock was another's."""
        if self.write is None or self.confirmed or self.hold.guarded:
            return False
        if store == 'naive':
            return True
        checked = self.write['checked']
        return checked is None or self.write['r'] - checked > SPARE


def updates(holds, store):
    found = []
    for hold in holds:
        read = None
        for event in hold.stores:
            if event.get('store') != store:
                continue
            if event['e'] == 'read':
                read = event
                found.append(Update(hold, read, None))
            else:
                found[-1] = Update(hold, read, event)
    return found


def check_unfenced(result, lock, holds):
    """Two that read the same number: one increment is lost. That may be only when in
    between somebody wrote who had lost the lock and could not know."""
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
            if not any(stray in (before, update) or
                       (stray.write['r'] >= before.read['c'] and stray.write['c'] <= update.read['r'])
                       for stray in strays):
                result.complain('unfenced', f'{lock}, {store}: {before.hold} and {update.hold} both read '
                                f'{update.read["value"]}, and nobody may have written late')


# ---- errors and times ----

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


def disturbed(faults):
    """The times in which the ensemble may be out of a mount's reach, [start, end]."""
    found = []
    for fault in sorted(faults, key=lambda fault: fault['c']):
        if fault['kind'] == 'worker-kill':
            continue
        if found and fault['c'] <= found[-1][1]:
            found[-1][1] = max(found[-1][1], fault['r'] + RECOVERY)
        else:
            found.append([fault['c'], fault['r'] + RECOVERY])
    return found


def within(storms, start, end):
    at = bisect.bisect(storms, [end, float('inf')])
    return at > 0 and storms[at - 1][1] >= start


def check_errors(result, attempts, faults, storms):
    for attempt in attempts:
        if attempt.answered is None:
            continue
        code = attempt.errno
        result.figures[f'open: {errno.errorcode.get(code, "held")}'] += 1
        promised = code == 0 or (
            code == errno.EINTR and attempt.signal or
            code == errno.EAGAIN and attempt.door == 'try' or
            # The ensemble could not be asked in time.
            code == errno.ENOLCK and attempt.door == 'try' or
            code == errno.ETIMEDOUT and '@' in attempt.door or
            # The path is looked up before, and nobody could be asked about it.
            code == errno.EHOSTUNREACH and within(storms, attempt.opened, attempt.answered) or
            code in _DEAD and killed_around(faults[attempt.mount], attempt.opened, attempt.answered))
        if not promised:
            result.complain('errno', f'{attempt}: open gives {errno.errorcode.get(code, code)} '
                            f'at {attempt.answered}')
        for event in attempt.checks:
            dead = event['errno'] in _DEAD[:2] and killed_around(faults[attempt.mount], attempt.opened,
                                                                 event['r'])
            unasked = (event['errno'] == errno.EHOSTUNREACH and event['how'] == 'fsync' and
                       within(storms, event['c'], event['r']))
            if event['errno'] not in (0, errno.EIO) and not dead and not unasked:
                result.complain('errno', f'{attempt}: {event["how"]} gives '
                                f'{errno.errorcode.get(event["errno"], event["errno"])} at {event["r"]}')


def duration(door):
    match = re.fullmatch(r'.*@(\d+)(ms|s|m|h)', door)
    return int(match[1]) * _UNITS[match[2]] if match else None


def check_times(result, attempts, faults):
    for attempt in attempts:
        limit = 2 * SECOND if attempt.door == 'try' else duration(attempt.door)
        if limit is None or attempt.answered is None:
            continue
        took = attempt.answered - attempt.opened
        if attempt.errno == errno.ETIMEDOUT and took < limit:
            result.complain('time', f'{attempt}: gave up after {took / SECOND:.3f} s')
        late = took - limit - LATE
        if late > 0 and late > overlap(faults[attempt.mount], attempt.opened, attempt.answered):
            result.complain('time', f'{attempt}: answered after {took / SECOND:.3f} s')


# ---- the end ----

def check_end(result, journal, histories):
    end = [event for event in journal if event['e'] == 'end']
    quiet = [event for event in journal if event['e'] == 'quiet']
    killed = {event['worker'] for event in journal if event['e'] in ('kill', 'lost')}
    result.figures['workers killed by on_lost'] = sum(event['e'] == 'lost' for event in journal)
    locks = next(event['locks'] for event in journal if event['e'] == 'begin')
    if not end or not quiet:
        result.complain('other', 'the run was not finished')
        return
    for entry in end[0]['left']:
        result.complain('stuck', f'left in ZooKeeper: {entry}')
    for problem in end[0]['problems']:
        result.complain('other', problem)
    for each in histories:
        if each.worker in killed:
            continue
        for lock in locks:
            if lock not in each.done:
                last = each.attempts[-1] if each.attempts else None
                result.complain('stuck', f'{each.worker} did not get {lock} after the faults; last: {last}')
        if not each.exited:
            result.complain('stuck', f'{each.worker} did not come to an end')
        if each.done:
            slowest = max(event['r'] for event in each.done.values()) - quiet[0]['c']
            result.figures['slowest to get all locks after the faults, ms'] = max(
                result.figures['slowest to get all locks after the faults, ms'], slowest // 10**6)


def count(result, histories, attempts):
    holds = [attempt for attempt in attempts if attempt.held]
    figures = result.figures
    figures['histories'] = len(histories)
    figures['opens'] = len(attempts)
    figures['holds'] = len(holds)
    figures['holds lost'] = sum(hold.lost is not None for hold in holds)
    figures['checks'] = sum(len(hold.checks) for hold in holds)
    # Without these the run would have proved little.
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
