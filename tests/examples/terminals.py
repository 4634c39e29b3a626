# SPDX-License-Identifier: MIT
"""terminals.py - what the tests of printed terminals share: a host's shell, and what it prints but for numbers and times."""

import os
import re
import subprocess

from gate import check_equal, spawn, until
from harness import WAIT_SECONDS
from locking import BUILD, environment


class Shell:
    """A host's terminal."""
    def __init__(self, mount, gate):
        self.process = spawn(['bash', '--norc', '--noprofile'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, bufsize=1, cwd=mount.directory,
                             env=environment(mount, PATH=f'{gate.tools}:{BUILD}:{os.environ["PATH"]}'))
        self.directory = mount.directory

    def type(self, text):
        self.process.stdin.write(text.replace('/mnt/locks', self.directory) + '\necho "that was $?"\n')

    def said(self, status=0):
        """Up to the end of what was typed last, with its status."""
        return ''.join(iter(self.process.stdout.readline, f'that was {status}\n'))

    def end(self):
        self.process.stdin.close()
        check_equal(self.process.wait(timeout=WAIT_SECONDS), 0, 'the shell')


def shape(text):
    """Without what differs each time."""
    return re.sub(r'\d+', 'N', re.sub(r'\b(\d+m)?\d+(\.\d+)?(ms|s)\b|a moment', 'T', re.sub(' +', ' ', text)))


def shows(mount, lock, text):
    """A reason is sent on while its writer goes on."""
    until(lambda: text in mount.read(lock, 'holder'), f'{text!r} in {lock}/holder')
