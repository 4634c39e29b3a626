# SPDX-License-Identifier: MIT
"""holds.py - turns one worker's history into its attempts and holds.

What a hold proves: success of open or of a use of the descriptor means that the
lock was held at some instant during the call, and between two such instants it
was held all the time. So a hold that was opened during [opened, got] and last
used with success during [used, used_ret] certainly lasted from `got` to `used`,
and had an instant in each of the two. Nothing is claimed beyond: a worker that is
killed, or whose daemon stops, claims only the time that it had proved until then.
"""

import errno

LINGER = 2 * 10**9


class Attempt:
    """One open of a lock file, and what followed."""

    def __init__(self, worker, mount, guarded, event):
        self.worker, self.mount = worker, mount
        self.guarded = guarded         # a process that loses the lock here is killed in time
        self.lock, self.lock_file, self.signal = event['lock'], event['lock_file'], event['signal']
        self.shared = event.get('mode') == 'shared'
        self.at_once = self.lock_file.startswith('try') or event.get('at_once', False)
        self.converts = event.get('converts', False)    # a lock by the same descriptor
        self.opened = self.since = event['c']   # since: from then on its time limit runs
        self.answered = None           # when open returned, either way
        self.errno = None              # 0: held
        self.token = None
        self.used = self.used_ret = None
        self.checks = []               # events
        self.lost = None               # the first check that failed and proves a loss
        self.stores = []               # read, write, look, fence, value events
        self.evicted = False           # an eviction may have meant it
        self.group = None              # the window, if granted while the ensemble forgot
        self.pauses = ()               # of its machine
        self.ended = False             # released, or failed
        self.over = None               # when it was released or failed

    @property
    def held(self):
        return self.errno == 0

    @property
    def got(self):
        return self.answered if self.held else None

    @property
    def proved(self):
        """The time until which it certainly held."""
        return max(self.got, self.used) if self.used is not None else self.got

    def __repr__(self):
        shared = ' shared' if self.shared and self.lock_file == 'flock' else ''
        return f'{self.worker} {self.lock}/{self.lock_file}{shared} token {self.token}'


class History:
    def __init__(self, worker, mount, guarded, events, complain, must=(), process=None):
        self.worker, self.mount, self.guarded = worker, mount, guarded
        self.must, self.process = must, process or worker
        self.attempts, self.done, self.exited = [], {}, False
        self.bursts = []
        self.last = {}                 # lock -> the latest attempt
        for event in events:
            self._take(event, complain)

    def _take(self, event, complain):
        kind = event['e']
        if kind == 'open':
            self._open(Attempt(self.worker, self.mount, self.guarded, event))
            return
        if kind == 'exit':
            self.exited = True
            return
        if kind == 'burst':
            self.bursts.append(event)
            return
        if kind == 'done':
            self.done[event['lock']] = event
            return
        attempt = self.attempts[-1]
        if kind in ('held', 'fail'):
            attempt.opened, attempt.answered = event['c'], event['r']
            attempt.errno = event.get('errno', 0)
            attempt.ended = kind == 'fail'
            attempt.over = event['r'] if attempt.ended else None
        elif kind == 'check':
            self._check(attempt, event, complain)
        elif kind == 'release':
            attempt.ended = True
            attempt.over = event['c']
        else:
            attempt.stores.append(event)

    def _open(self, attempt):
        """A worker that comes back to a lock file after a signal has its old place and time limit."""
        self.attempts.append(attempt)
        last = self.last.get(attempt.lock)
        if (last and last.errno == errno.EINTR and last.lock_file == attempt.lock_file and
                attempt.opened - last.answered < LINGER):
            attempt.since = last.since
        self.last[attempt.lock] = attempt

    @staticmethod
    def _check(attempt, event, complain):
        attempt.checks.append(event)
        if event['errno']:
            # A question without an answer (fsync, the first read of a token) proves no loss.
            unasked = event['how'] == 'fsync' or event['errno'] == errno.EHOSTUNREACH
            if not unasked and (attempt.lost is None or event['r'] < attempt.lost['r']):
                attempt.lost = event
            return
        # Threads check side by side: only checks that began after the answer count.
        if attempt.lost and event['c'] > attempt.lost['r']:
            complain('came back', f'{attempt}: {event["how"]} succeeds at {event["c"]} '
                     f'after {attempt.lost["how"]} had failed at {attempt.lost["c"]}')
        if event['token'] is not None:
            if attempt.token not in (None, event['token']):
                complain('token', f'{attempt}: now {event["token"]}')
            attempt.token = event['token']
        if attempt.used is None or event['c'] > attempt.used:
            attempt.used, attempt.used_ret = event['c'], event['r']
