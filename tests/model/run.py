#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goes through all states of the model, in configurations of the tables below: with the rules as
they are nothing may be wrong, and without one of them something must be. README.md has the options.

    run.py MODEL           what takes a minute; a test
    run.py MODEL --all     all of it, at 50 million states at most for each (1 GiB of memory)
    run.py MODEL NAME...   these mutants, with the way to the state that is wrong"""

import subprocess
import sys
import time

# Nothing may be wrong.
SHORT = '''
-c 2,1
-c 2,1 -s 3
-c 2,1 -o 1 -w
'''
LONG = '''
-c 2,1 -s 1
-c 2,1 -s 2
-c 2,1 -s 4
-c 2,1 -s 5
-c 2,1 -s 6
-c 2,1 -s 7
-c 2,1 -p 1 -w
-c 2,1 -o 2 -w
-c 2,1 -d 1 -w
-c 2,1 -r 1 -w
-c 1,1,1 -w
-c 2,1,1 -w -H
-c 1,1 -k 1 -d 1 -e 1 -w
-c 2,1 -o 1
-c 2,1 -d 1
-c 2,1 -r 1
-c 2,1 -r 1 -o 1 -w
-c 2,1 -d 1 -o 1 -w
-c 3,1 -H
-c 2,1 -d 1 -e 1
-c 1,1,1 -o 1
-c 1,1,1 -d 1
-c 2,2 -H
'''
# A rule that is left out, and a configuration that notices it.
MUTANTS = '''
hand_off_past_a_remote_entry -c 2,1
hand_off_unguarded -c 2,1 -o 1 -w
watched_is_there -c 2,1 -o 1 -w
refused_is_seen -c 2,1 -o 1 -w
leaver_kept_for_ever -c 2,1 -o 1 -w
event_grants_what_is_gone -c 2,1 -o 1 -w
event_of_one_that_was_not_first -c 2,1
barrier_left_out -c 2,1 -d 1 -w
event_ignored -c 2,1
not_there_is_no_event -c 2,1
release_and_take_over_the_head_of_another -c 2,1
leaver_goes_in_silence -c 2,1
grant_when_not_first -c 2,1
front_leaves_in_silence -c 2,1 -s 3
shared_holders_guard -c 2,1 -s 3
lost_holds_on -c 1,1 -d 1 -e 1
delete_dropped_when_unknown -c 2,1 -d 1 -w
create_again_before_the_list -c 1,1 -k 1 -d 1 -e 1 -w
granted_before_marks_are_read -c 1,1 -k 1 -d 1 -e 1 -w
'''


def run(model, options):
    return subprocess.run([model, *options.split()], stdout=subprocess.PIPE, text=True, check=False)


def check(model, options, mutant='', millions=4, limited=False):
    """`limited`: at the limit it is good, too, as far as it went."""
    command = f'{options} -m {mutant}' if mutant else options
    done = run(model, f'{command} -x -n {millions}')
    good = done.returncode == (1 if mutant else 0) or limited and done.returncode == 2
    print('good ' if good else 'WRONG', command, '=', done.stdout.strip(), flush=True)
    if not good and not mutant:
        print(run(model, f'{command} -n {millions}').stdout)
    return good


def main():
    model, *names = sys.argv[1:]
    mutants = [line.split(maxsplit=1) for line in MUTANTS.strip().split('\n')]
    begun = time.monotonic()
    if names and names != ['--all']:
        for name, options in mutants:
            if name in names:
                print(run(model, f'{options} -m {name}').stdout)
        return 0
    good = [check(model, options) for options in SHORT.strip().split('\n')]
    good += [check(model, options, name) for name, options in mutants]
    if names:
        good += [check(model, options, millions=50, limited=True) for options in LONG.strip().split('\n')]
    print(f'{len(good)} configurations, {time.monotonic() - begun:.0f} s')
    return 0 if all(good) else 1


if __name__ == '__main__':
    sys.exit(main())
