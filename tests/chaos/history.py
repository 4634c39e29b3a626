# SPDX-License-Identifier: MIT
"""history.py - what happened, written by the processes that saw it.

One file per worker and one of the runner (`journal`), one JSON object per line,
each written by one write(2): a process that is killed leaves whole lines. Times
are CLOCK_BOOTTIME in nanoseconds, which every process here shares: `c` before the call,
`r` after it.

A worker writes
  open     {lock, lock file, mode, signal, c}   before it opens; signal: a signal may interrupt it;
                                        mode: exclusive, shared; at_once: flock(2) LOCK_NB
  held     {c, r}  or  fail {errno, c, r}
  check    {how, errno, token, c, r}    read, write, fsync or poll of the descriptor; flock:
                                        locked again after it was lost
  read     {store, value, c, r}         store: careful, naive
  write    {store, value, checked, c, r}   checked: the call time of the last check before it
  look     {store, value, c, r}         read by a worker that shares the lock
  fence    {op, ok, value, c, r}        op: read, write, share; of the fenced store
  value    {number, errno, token, c, r} written to the file `value`; errno 0: accepted
  release  {c}                          before it closes, or takes it in another mode
  done     {lock, c, r}                 got the lock after the faults had ended
  exit     {}                           ended by itself
and a crowd, beside its members' histories
  burst    {locks, takes, requests, c, r}   of the whole mount meanwhile, by its counters

The runner writes
  begin {seed, seconds, locks, slots: {lock: number}, on_lost: [of each mount]}
  worker {worker, process, mount, must}   must: the locks it has to get in the end;
                              process: several workers may be threads of one; mount: of another
                              client, the number behind the last mount's
  fault {kind, target, c, r}  r: when the fault was over
  kill {process, c}           before the signal was sent
  lost {process, c}           found dead on a mount with on_lost=kill
  quiet {c}                   the faults are over, everything runs again
  end {left, problems, truncated}   entries left in ZooKeeper; what else was wrong; last
                              transactions of histories that were cut off
"""

import json
import os
import time


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Writer:
    def __init__(self, path):
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)

    def write(self, event, **fields):
        os.write(self.fd, (json.dumps({'e': event, **fields}, separators=(',', ':')) + '\n').encode())


def read(path):
    with open(path, encoding='utf-8') as lines:
        return [json.loads(line) for line in lines]
