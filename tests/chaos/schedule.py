# SPDX-License-Identifier: MIT
"""schedule.py - which fault comes when, decided by the seed alone.

Tracks run side by side, so that a server dies while a mount is stopped. On one track faults
come one after the other: at most one server is away at a time, unless the fault is the loss of
the quorum itself.

Which server is `the leader`, or the one that a mount uses, is found out when the fault happens.
All else is fixed by the seed.
"""

import collections
import random

Fault = collections.namedtuple('Fault', 'at track kind seconds pick')
# pick: a number in [0, 1) that chooses the target

PAUSE_SHORT, PAUSE_LONG = (0.2, 2.5), (5.5, 9.0)    # sessions last 6 to 12 s
CUT = (7.0, 13.0)          # a session and more

# kind: (weight, shortest, longest)
TRACKS = {
    'server': {
        'server-kill': (3, 0.0, 3.0), 'server-stop': (3, 0.3, 5.0),
        'leader-kill': (2, 0.0, 3.0), 'leader-stop': (2, 0.5, 5.0),
        'follower-isolated': (4, 1.0, 6.0), 'follower-deaf': (2, 1.0, 5.0),
        'follower-mute': (2, 1.0, 5.0), 'leader-isolated': (2, 1.0, 5.0),
        'quorum-lost': (1, 0.5, 3.0), 'server-stop-long': (2, 5.0, 9.0), 'server-limits': (3, 0.0, 2.0),
    },
    'mount': {
        'daemon-pause-short': (3, *PAUSE_SHORT), 'daemon-pause-long': (4, *PAUSE_LONG),
        'daemon-kill': (1, 0.1, 5.0), 'mount-cut-off-long': (3, *PAUSE_LONG),
        'daemon-machine-pause': (2, *PAUSE_SHORT), 'daemon-machine-pause-long': (3, *PAUSE_LONG),
        'clock-set': (1, 0.5, 3.0), 'daemon-reload': (4, 0.1, 1.0), 'daemon-crash': (5, 0.1, 2.0),
    },
    'link': {
        'cut-before-request': (3, 1.0, 2.0), 'half-request': (2, 1.0, 2.0),
        'cut-before-answer': (5, 1.0, 2.0), 'half-answer': (2, 1.0, 2.0),
        'black-hole-up': (2, 0.2, 6.0), 'black-hole-down': (2, 0.2, 6.0),
        'black-hole-both': (2, 0.2, 6.0), 'mount-cut-off': (2, 0.5, 6.0),
        'delay': (3, 0.5, 3.0), 'reset': (3, 0.0, 0.1), 'refuse': (2, 0.3, 2.0),
        'server-answers-stall': (2, 0.3, 3.0), 'astray': (2, 1.0, 8.0),
    },
    'renewal': {'renewal-answer-lost': (3, *CUT), 'renewal-late': (4, *CUT), 'renewal-late-crash': (3, *CUT)},
    'worker': {'worker-kill': (1, 0.0, 0.2)},
    'operator': {'evict': (8, 0.0, 0.1), 'lock-remade': (1, 0.0, 0.5)},
}

# The number of tracks of a kind, and the mean of the seconds between the end of a fault
# and the next fault on its track.
_TRACKS = {'server': (1, 2.5), 'mount': (2, 3.0), 'link': (2, 0.5), 'renewal': (1, 1.0), 'worker': (1, 1.5),
           'operator': (1, 0.8)}


# These come only when they are asked for.
_CRASHES = ('daemon-crash', 'renewal-late-crash')


def plan(seed, seconds, crashes=False, only=()):
    """All faults, or only those of some kinds, in the order of their beginning; each ends before
    `seconds`. `crashes`: daemons are killed, and their supervisors start others."""
    faults = []
    for group, kinds in TRACKS.items():
        kinds = {kind: how for kind, how in kinds.items()
                 if (crashes or kind not in _CRASHES) and (not only or kind in only)}
        if not kinds:
            continue
        for number in range(_TRACKS[group][0]):
            _plan_track(faults, random.Random(f'{seed} {group} {number}'), f'{group}{number}', kinds,
                        _TRACKS[group][1], seconds)
    return sorted(faults)


def _plan_track(faults, rng, track, kinds, gap, seconds):
    at = rng.uniform(0, 2)
    while True:
        kind = rng.choices(list(kinds), [weight for weight, _, _ in kinds.values()])[0]
        _, shortest, longest = kinds[kind]
        fault = Fault(at, track, kind, rng.uniform(shortest, longest), rng.random())
        if fault.at + fault.seconds > seconds:
            break
        faults.append(fault)
        at = fault.at + fault.seconds + rng.expovariate(1 / gap)
