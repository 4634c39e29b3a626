# SPDX-License-Identifier: MIT
"""kill_points.py - daemons that are killed at their n-th call of a function that does input or
output. They preload kill_points.c.

    points = KillPoints(case, 'a')
    mount = case.mount(server, env=points.env)
    points.arm(17, 3)       # at the 17th point from now on, and the next daemon at its 3rd
"""

import mmap
import os
import struct

from harness import SOURCE_ROOT, until

LIBRARY = os.environ.get('KILL_POINTS_LIBRARY') or SOURCE_ROOT + '/build/tests/mount/kill_points.so'
_NUMBER = struct.Struct('q')
_LEFT, _NEXT, _KILLS, _PASSED, _POISON, _START, _STARTS, _WHERE, _SIZE = 0, 8, 16, 24, 32, 40, 48, 56, 120
_GOES_ON, _WAITS, _ENDS = range(3)


class KillPoints:
    def __init__(self, case, name):
        path = os.path.join(case.directory, f'kill-points-{name}')
        with open(path, 'wb+') as file:
            file.truncate(_SIZE)
            self.memory = mmap.mmap(file.fileno(), _SIZE)
        self.env = {'LD_PRELOAD': LIBRARY, 'KILL_POINTS': path}

    def _get(self, at):
        return _NUMBER.unpack_from(self.memory, at)[0]

    def arm(self, left, after=0):
        _NUMBER.pack_into(self.memory, _NEXT, after)
        _NUMBER.pack_into(self.memory, _LEFT, left)

    def poison(self, on):
        """A daemon that answers statfs(2) is killed."""
        _NUMBER.pack_into(self.memory, _POISON, on)

    # Orders for a daemon that is started again:

    def wait(self):
        """Wait before anything else, until go()."""
        _NUMBER.pack_into(self.memory, _START, _WAITS)

    def waits(self):
        until(lambda: self._get(_STARTS), 'the daemon is started again')

    def go(self):
        _NUMBER.pack_into(self.memory, _START, _GOES_ON)

    def end(self):
        """End at once, with status 3."""
        _NUMBER.pack_into(self.memory, _START, _ENDS)

    @property
    def kills(self):
        return self._get(_KILLS)

    @property
    def passed(self):
        return self._get(_PASSED)

    @property
    def armed(self):
        return self._get(_LEFT) > 0

    @property
    def where(self):
        return self.memory[_WHERE:_SIZE].split(b'\0')[0].decode()
