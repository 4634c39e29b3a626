#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goes through all states of the model, in configurations of the tables below: with the rules as
they are nothing may be wrong, and without one of them something must be. README.md has the options.

    run.py MODEL           what takes a minute; a test
    run.py MODEL --all     all of it, at 64 million states at most for each (1.4 GiB of memory)
    run.py MODEL NAME...   these mutants, with the way to the state that is wrong"""

import subprocess
import sys
import time

# Nothing may be wrong.
SHORT = '''
-c 2,1
-c 2,1 -s 3
-c 2,1 -o 1 -w
-c 1,1 -e 1 -a
-c 1,1 -d 1 -r 1 -w
-c 2,1 -t 4
-c 2,1 -t 7
-c 2,1 -s 5 -u 2
-c 2,1 -s 5 -u 2 -t 2
-c 2,2 -s 5 -u 10 -w -H
-c 3,1 -s 3 -u 4 -w -H
-c 2,1 -i 2
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
-c 1,1 -t 3 -e 1 -a -w
-c 2,1 -e 1 -a -w -H
-c 2,1 -e 1 -a
-c 1,1 -e 1 -d 1 -a
-c 1,1 -e 1 -r 1 -a -w
-c 1,1 -k 1 -e 1 -a -w
-c 1,1,1 -e 1 -a -w -H
-c 2,1 -t 7 -s 2
-c 2,1 -t 2 -d 1
-c 2,1 -t 7 -d 1
-c 2,1 -t 7 -r 1
-c 2,1 -t 4 -o 1 -w
-c 1,1,1 -t 6
-c 2,2 -t 10 -H
-c 2,1 -s 5 -u 2 -e 1 -a -w -H
-c 2,1 -s 5 -u 2 -d 1 -w
-c 2,1 -s 5 -u 2 -r 1 -w
-c 2,1 -s 5 -u 2 -o 1 -w
-c 2,1 -s 5 -u 2 -t 2 -d 1 -w
-c 2,2 -s 5 -u 10 -w -d 1
-c 3,1 -s 9 -u 4
-c 3,1 -s 3 -u 4 -t 12
-c 2,1 -i 2 -t 4
-c 2,1 -i 2 -s 2
-c 2,1 -i 2 -d 1 -w
-c 2,1 -i 2 -r 1 -w
-c 2,1 -i 2 -o 1 -w
-c 2,1 -i 2 -e 1 -a -w -H
-c 2,2 -i 2 -w
-c 3,1 -i 3 -w -H
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
not_queued_again_after_a_session -c 2,1 -e 1 -a -w -H
order_reversed_after_a_session -c 2,1 -e 1 -a -w -H
entries_kept_over_a_session -c 2,1 -e 1 -a -w -H
try_does_not_list_first -c 2,1 -t 4
try_waits -c 2,1 -t 4
try_judged_by_own_leavers -c 2,1 -t 7
try_judged_while_unresolved -c 2,1 -t 2 -d 1
two_upgrades_wait_for_each_other -c 2,2 -s 5 -u 10 -w -H
upgrade_past_other_readers -c 2,1 -s 5 -u 2
upgrade_refused_beside_readers -c 2,1 -s 5 -u 2
upgrade_is_not_listed -c 3 -s 1 -u 4
upgrade_is_an_obstacle_like_any -c 3 -s 3 -u 4
upgrade_of_a_lost_hold -c 2,1 -s 5 -u 2 -o 1 -w
upgrading_try_barred_by_its_own -c 2,1 -s 5 -u 2 -t 2
replaces_later_and_is_not_looked_at -c 2,2 -s 5 -u 10 -w -H
one_slot_too_many -c 2,1 -i 2
a_slot_beside_readers -c 2,1 -i 2 -s 4
only_the_next_one_is_watched -c 2,1 -i 2
holder_causes_a_list_with_slots -c 2,1 -i 2
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
        good += [check(model, options, millions=64, limited=True) for options in LONG.strip().split('\n')]
    print(f'{len(good)} configurations, {time.monotonic() - begun:.0f} s')
    return 0 if all(good) else 1


if __name__ == '__main__':
    sys.exit(main())
