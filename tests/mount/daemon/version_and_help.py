#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""-V and -h go to stdout and exit with 0."""

from harness import ZKLOCKFS, check, check_equal, command, run


def test(_):
    for flag, words in (('-V', ['zklockfs']), ('--version', ['zklockfs']),
                        ('-h', ['session_timeout', 'tick_time', 'connect_timeout', 'mkroot', 'host']),
                        ('--help', ['session_timeout', 'MOUNTPOINT'])):
        status, out, err = command([ZKLOCKFS, flag])
        check_equal((status, err), (0, ''), f'status and stderr of {flag}')
        for word in words:
            check(word in out, f'{flag} does not say {word}: {out!r}')
    check(any(digit in command([ZKLOCKFS, '-V'])[1] for digit in '0123456789'), 'no version')


run(test)
