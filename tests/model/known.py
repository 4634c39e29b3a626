#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goes through all states of the known queue with the engine's own queue_next(): nothing may be wrong. Without a
sentence of it, or of what a mount does to keep K0, something must be. README.md has the options.

    known.py KNOWN LIBRARY ROOT          what takes half a minute; a test
    known.py KNOWN LIBRARY ROOT --all    all of it, and queue_next() without each of its sentences: compiles"""

import os
import subprocess
import sys
import tempfile
import time

# Nothing may be wrong.
SHORT = '''
-c 2+1
-c 2+1 -o 1
-c 2+1 -s 1
-c 2+1 -s 3 -o 1
-c 2+1 -s 5
-c 1+3
-c 2+1 -t 3 -o 1
-c 2+1 -d 1
-c 2+1 -r 1
-c 2+1 -l 1 -o 1
-c 2+1 -k -o 1
-c 2+1 -w 1 -o 1
-c 2+1 -j -o 1
-c 2+1 -i 2 -o 1
-c 2+1 -b 1 -I 2 -z 1
-c 2+2 -s 9 -u 1
-c 3+1 -s 1 -u 1
'''
LONG = '''
-c 3+1
-c 2+2
-c 2+3
-c 3+1 -o 1
-c 2+2 -o 1
-c 1+3 -o 1
-c 1+4
-c 2+1 -o 2
-c 2+1 -o 2 -d 1
-c 2+1 -d 1 -o 1
-c 2+1 -r 1 -o 1
-c 2+1 -d 2
-c 2+1 -d 1 -r 1
-c 2+1 -l 1 -d 1
-c 2+1 -l 2 -o 1
-c 3+1 -s 3
-c 3+1 -s 5
-c 3+1 -s 9 -o 1
-c 2+2 -s 6
-c 2+2 -t 1
-c 2+2 -t 3
-c 2+1 -t 3 -d 1
-c 2+1 -t 1 -r 1
-c 3+1 -k
-c 2+1 -k -d 1
-c 2+1 -b 1 -d 1
-c 2+1 -b 2 -r 1
-c 2+1 -I 2 -z 2
-c 2+1 -I 2 -z 2 -o 1
-c 1+2 -i 2 -z 2 -o 1
-c 2+1 -i 2 -z 2 -d 1
-c 2+2 -i 2
-c 3+1 -i 2 -s 4
-c 2+2 -i 2 -a 8
-c 2+2 -I 2 -z 2 -t 1
-c 3+1 -s 1 -u 1 -o 1
-c 3+1 -s 1 -u 1 -d 1
-c 3+1 -s 9 -u 1 -l 1
-c 2+2 -s 5 -u 1 -r 1
-c 2+1 -w 1 -d 1
-c 3+1 -s 1 -u 1 -r 1 -o 1
-c 2+1 -t 3 -r 1 -o 1
-c 2+1 -j -d 1
-c 2+1 -j -k -o 1
-c 2+1 -j -w 1 -o 1
-c 2+2 -j -s 5 -u 1
-c 2+1 -j -l 1 -o 1
-c 2+1 -j -i 2 -z 2 -o 1
-c 2+1 -w 2 -o 1
-c 2+1 -s 3 -w 1 -o 1
-c 2+1 -k -w 1 -o 1
'''
# What a mount does to keep K0, left out.
MUTANTS = '''
made_with_a_gap -c 2+1
made_without_lock_watch -c 2+1 -b 1 -I 2 -z 1
seen_after_one_went -c 2+1 -j -o 1
seen_before_a_decision -c 2+1 -w 1 -o 1
seen_over_other_slots -c 1+2 -j -i 2 -z 2 -o 1
watched_over_a_cut -c 2+1 -d 1
lock_watched_over_a_cut -c 2+1 -b 1 -d 1
no_write_on_a_connection -c 2+1 -d 1
other_life_not_noticed -c 2+1 -b 1 -d 1
known_over_a_reload -c 2+1 -r 1
unproved_forgotten -c 2+1 -r 1 -o 1
doubt_forgotten -c 2+1 -d 1 -o 1
refused_and_not_held_back -c 2+1 -o 1
proved_by_an_older_look -c 2+1 -t 3 -o 1
kept_over_a_delete -c 2+1 -k
list_of_before -c 2+1 -t 3
'''
# A sentence of queue_next(): a text of next.c, what stands there without it, and who notices.
SENTENCES = [
    ('K1, the list', '''	if (unplaced != INT64_MAX)
		want_list(queue, NEXT_LIST_ANY);
''', '', '-c 2+1'),
    ('K2, others are watched', '	watch_others(queue, bars);\n', '', '-c 2+1'),
    ('K2, doubtful ones are listed', '''	if (bars->doubtful > 0)
		want_list(queue, NEXT_LIST_ANY);
''', '', '-c 1+3 -o 1'),
    ('K2, the waiter is watched', '''	if (bars->foreign > 0 || bars->shared > 0)
		taker->watch = true;
''', '', '-c 2+1 -o 1'),
    ('K2, a lost one is watched', '''	if (bars->foreign == 0 && bars->lost > 0)
		watch_lost(queue, taker, i);
''', '', '-c 2+1 -l 1 -o 1'),
    ('K2, with several slots the names are watched', '		queue->watch_children = true;\n', '', '-c 2+2 -i 2'),
    ('K3, seen', '''		if (taker->seen)
			let_in(taker);''', '''		if (true)
			let_in(taker);''', '-c 2+1 -o 1'),
    ('K4, a shared guard', ' || queue->entries[bars->last_leaver].shared', '', '-c 2+1 -s 5 -o 1'),
    ('K4, a delete was sent', ''' ||
	    guard->sent || guard->in_doubt)''', ')', '-c 2+1 -o 1'),
    ('K4, a delete is in doubt', '''	    guard->sent || guard->in_doubt)''', '	    guard->sent)', '-c 2+1 -d 1 -o 1'),
    ('K4, one unproved one', 'queue->unproved == NEXT_NONE && slots_known(queue) == 1', 'slots_known(queue) == 1',
     '-c 3+1 -s 6 -o 1'),
    ('K4, leavers are deleted with the check', 'return number < unproved ? NEXT_DELETE_CHECKED : NEXT_DELETE_SINGLY;',
     'return NEXT_DELETE_SINGLY;', '-c 2+1 -o 1'),
    ('K5, leavers are in nobody\'s way', '''	if (goes(taker_at(queue, i)))
		return;
	add(&staying->known''', '	add(&staying->known', '-c 2+1 -k -t 2'),
    ('K6, its own hold', '''	left.count--;
	left.shared--;
	left.staying--;
	return left;''', '	return left;', '-c 2+1 -s 1 -u 1'),
    ('K6, an exclusive one waits for it', '!judge_upgrade(queue, staying, taker) && ', '',
     '-c 3+1 -s 1 -u 1'),
    ('K7', '		queue->takers[t].step = NEXT_LEAVE;\n		queue->takers[t].state = NEXT_LEAVING;\n	}\n}\n\nvoid queue_next',
     '	}\n}\n\nvoid queue_next', '-c 2+1 -k -s 1'),
    ('slots of a watched node alone', 'return queue->lock_watched && queue->slots > 0 ? queue->slots : 1;',
     'return queue->slots > 0 ? queue->slots : 1;', '-c 1+2 -i 2 -z 2 -o 1'),
    ('shared ones fill no slot', ' && all.shared == 0 && all.apart == 0', '', '-c 2+2 -i 2 -s 4'),
    ('an unknown create is listed', '''		if (queue->takers[t].state == NEXT_UNKNOWN)
			want_list(queue, NEXT_LIST_ANY);
''', '			continue;\n', '-c 2+1 -d 1'),
]


def run(model, options, *more):
    return subprocess.run([model, *options.split(), *more], stdout=subprocess.PIPE, text=True, check=False)


def check(model, options, mutant='', name='', millions=4, limited=False):
    """`limited`: at the limit it is good, too, as far as it went."""
    bad = bool(mutant or name)
    done = run(model, options, '-x', '-n', str(millions), *(['-m', mutant] if mutant else []))
    good = done.returncode == (1 if bad else 0) or limited and done.returncode == 2
    print('good ' if good else 'WRONG', options, mutant or name, '=', done.stdout.strip(), flush=True)
    if not good and not bad:
        print(run(model, options, '-n', str(millions)).stdout)
    return good


def without(sentence, library, root, directory):
    """The model with that sentence left out of queue_next()."""
    name, old, new, _ = sentence
    with open(os.path.join(root, 'lockcore/pure/next.c'), encoding='utf-8') as file:
        text = file.read()
    if text.count(old) != 1:
        raise SystemExit(f'{name}: its text stands {text.count(old)} times in next.c')
    path = os.path.join(directory, 'next.c')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text.replace(old, new))
    model = os.path.join(directory, 'known')
    subprocess.run(['cc', '-std=c11', '-O2', '-w', '-I', os.path.join(root, 'lockcore'), '-o', model, path, library], check=True)
    return model


def main():
    model, library, root, *rest = sys.argv[1:]
    begun = time.monotonic()
    good = [check(model, options) for options in SHORT.strip().split('\n')]
    good += [check(model, options, mutant) for mutant, options in
             (line.split(maxsplit=1) for line in MUTANTS.strip().split('\n'))]
    if rest == ['--all']:
        with tempfile.TemporaryDirectory() as directory:
            good += [check(without(sentence, library, root, directory), sentence[3], name=f'without "{sentence[0]}"')
                     for sentence in SENTENCES]
        good += [check(model, options, millions=64, limited=True) for options in LONG.strip().split('\n')]
    else:
        with open(os.path.join(root, 'lockcore/pure/next.c'), encoding='utf-8') as file:
            text = file.read()
        stale = [name for name, old, _, _ in SENTENCES if text.count(old) != 1]
        print('stale sentences:', *stale or ['none'])
        good.append(not stale)
    print(f'{len(good)} configurations, {time.monotonic() - begun:.0f} s')
    return 0 if all(good) else 1


if __name__ == '__main__':
    sys.exit(main())
