# SPDX-License-Identifier: MIT
"""history.py - what happened, written down by whom it happened to.

One file per worker and one of the runner (`journal`), one JSON object per line,
each written by one write(2): a process that is killed leaves whole lines. Times
are CLOCK_BOOTTIME in nanoseconds, the clock the mounts use: `c` before the call,
`r` after it.

A worker writes
  open     {lock, door, signal, c}      before it opens; signal: one may interrupt it
  held     {c, r}  or  fail {errno, c, r}
  check    {how, errno, token, c, r}    read, write or fsync of the descriptor
  read     {store, value, c, r}         store: careful, naive
  write    {store, value, checked, c, r}   checked: the call time of the last check before it
  fence    {op, ok, value, c, r}        op: read, write; of the fenced store
  release  {c}                          before it closes
  done     {lock, c, r}                 got the lock after the faults had ended
  exit     {}                           ended by itself

The runner writes
  begin {seed, seconds, locks, on_lost: [of each mount]}
  worker {worker, mount}
  fault {kind, ..., c, r}     r: when it was over
  kill {worker, c}            before the signal was sent
  lost {worker, c}            found dead on a mount with on_lost=kill
  quiet {c}                   the faults are over, everything runs again
  end {left, problems}        entries left in ZooKeeper; what else was wrong
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
