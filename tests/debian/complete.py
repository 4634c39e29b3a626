#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Types commands in bash and in zsh, and checks what the Tab key completes. The completions are
those of the installed package."""

import os
import pty
import re
import select
import sys
import tempfile
import time

# How a shell is started, the text that is typed first, and the text that the shell shows when it
# then reads keys. zsh shows its prompt earlier, and does not complete keys that are typed before.
SHELLS = {
    'bash': (['bash', '--norc', '--noprofile', '-i'], '. /usr/share/bash-completion/bash_completion', 'ready> '),
    'zsh': (['zsh', '-f', '-i'], 'setopt no_prompt_sp; autoload -U compinit && compinit -u -D; '
            'zle-line-init() { print -n "re""ads" }; zle -N zle-line-init', 'reads'),
}
# The text that is typed, and the text that must be on the line then.
CASES = [
    ('zklockfs -o sess\t', 'zklockfs -o session_timeout='),
    ('zklockfs -o mkroot,dra\t', 'zklockfs -o mkroot,drain='),
    ('zklockfs -o mkroot,on_lost=k\t', 'zklockfs -o mkroot,on_lost=kill'),
    ('zklockfs -o credentials=/etc/passw\t', 'zklockfs -o credentials=/etc/passwd'),
    ('zklockfs zk1:2181/locks /usr/shar\t', 'zklockfs zk1:2181/locks /usr/share/'),
    ('zklock --at-l\t', 'zklock --at-least'),
    ('zklock -n nigh\t', 'zklock -n nightly'),
    ('zklock team/re\t', 'zklock team/report'),
    ('zklock hist\t', 'zklock history'),
    ('zklock why nigh\t', 'zklock why nightly'),
    ('zklock evict nightly 00\t', 'zklock evict nightly 0000000007-exclusive-42-web1'),
    ('zklock -w 10m nightly -- zklockfs -o sess\t', 'zklock -w 10m nightly -- zklockfs -o session_timeout='),
]


class Shell:
    def __init__(self, args):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM='dumb', PS1='ready> ', COLUMNS='200', HOME=tempfile.mkdtemp())
            os.execvp(args[0], args)
        self.seen = ''

    def type(self, text):
        self.seen = ''
        os.write(self.terminal, text.encode())

    def shows(self, pattern, seconds=30):
        deadline = time.monotonic() + seconds
        while not re.search(pattern, self.seen):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.terminal], [], [], left)[0]:
                return False
            self.seen += re.sub(r'\x1b\[[0-9;?]*[A-Za-z]|[\r\x07\x08]', '',
                                os.read(self.terminal, 4096).decode(errors='replace'))
        return True

    def end(self):
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


def make_locks():
    """Make directories that zklock(1) takes for locks."""
    root = tempfile.mkdtemp()
    for lock in ('nightly', 'team', 'team/report'):
        os.makedirs(f'{root}/{lock}/queue')
        with open(f'{root}/{lock}/queue/0000000007-exclusive-42-web1', 'w', encoding='ascii'):
            pass
    return root


def main():
    bad = 0
    os.environ['ZKLOCKFS'] = make_locks()
    # An empty directory: no file of it can be completed.
    os.chdir(tempfile.mkdtemp())
    for name, (args, begin, reads) in SHELLS.items():
        for typed, wanted in CASES:
            # Each case in a shell of its own: the output of ^C comes at an unknown time.
            shell = Shell(args)
            shell.shows('ready> ')
            shell.type(begin + "; echo be''gun\n")
            if not shell.shows(f'begun\n(.*\n)*.*{reads}'):
                print(f'{name} does not begin: {shell.seen!r}', file=sys.stderr)
                bad += 1
            shell.type(typed)
            # The rest of the line may be drawn in pieces.
            if not shell.shows(re.escape(wanted.split()[-1])):
                print(f'{name}: {typed!r} became {shell.seen!r} and not {wanted!r}', file=sys.stderr)
                bad += 1
            shell.end()
    return bad != 0


sys.exit(main())
