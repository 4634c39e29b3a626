#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Types at a bash and a zsh, and looks at what the tabulator makes of it. The completions
are those of the installed package."""

import os
import pty
import re
import select
import sys
import tempfile
import time

# How it is started, what is typed first, what it then shows when it reads keys. zsh shows its prompt
# before that, and what is typed in between is no completion.
SHELLS = {
    'bash': (['bash', '--norc', '--noprofile', '-i'], '. /usr/share/bash-completion/bash_completion', 'ready> '),
    'zsh': (['zsh', '-f', '-i'], 'setopt no_prompt_sp; autoload -U compinit && compinit -u -D; '
            'zle-line-init() { print -n "re""ads" }; zle -N zle-line-init', 'reads'),
}
# What is typed, and what stands there then.
CASES = [
    ('zklockfs -o sess\t', 'zklockfs -o session_timeout='),
    ('zklockfs -o mkroot,dra\t', 'zklockfs -o mkroot,drain='),
    ('zklockfs -o mkroot,on_lost=k\t', 'zklockfs -o mkroot,on_lost=kill'),
    ('zklockfs -o credentials=/etc/passw\t', 'zklockfs -o credentials=/etc/passwd'),
    ('zklockfs zk1:2181/locks /usr/shar\t', 'zklockfs zk1:2181/locks /usr/share/'),
    ('zklock --at-l\t', 'zklock --at-least'),
    ('zklock -n nigh\t', 'zklock -n nightly'),
    ('zklock team/re\t', 'zklock team/report'),
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
    """What zklock(1) looks at: directories."""
    root = tempfile.mkdtemp()
    for lock in ('nightly', 'team', 'team/report'):
        os.makedirs(f'{root}/{lock}/queue')
        with open(f'{root}/{lock}/queue/0000000007-exclusive-42-web1', 'w', encoding='ascii'):
            pass
    return root


def main():
    bad = 0
    os.environ['ZKLOCKFS'] = make_locks()
    # A file that would be completed as well if nothing knew the program.
    os.chdir(tempfile.mkdtemp())
    for name, (args, begin, reads) in SHELLS.items():
        for typed, wanted in CASES:
            # Each in a shell of its own: what ^C leaves on the screen comes when it likes.
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
