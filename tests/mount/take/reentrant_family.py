#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`reentrant` below a process that has the lock (rule 15): its descendants join while it lives,
also if they asked before it had the lock. Parents, siblings and orphans do not join. on_lost
stops all that share the hold before the next taker holds."""

import errno
import os
import signal

from clan import Clan
from harness import ALICE, BOB, check, check_equal, command, errno_of, raw_open, run, until

# A script that takes the lock and calls itself, as build scripts do.
SCRIPT = '''
exec 9<>"$1" || exit 75
read -r token <&9 || exit 75
echo "$token"
[ "$2" -gt 0 ] && "$BASH" -c "$0" "$0" "$1" $(($2 - 1))
read -r again <&9 && exit 1
exec 9>&-
'''
NOW = os.O_RDWR | os.O_NONBLOCK


def no_longer_joins(member, path):
    """After a close. A guardian that reads its /proc/PID/fdinfo, also that of another test, delays the release."""
    def refused():
        opening = member.open(path, NOW)
        code = opening.errno()
        if code == 0:
            opening.close()
        else:
            check_equal(code, errno.EAGAIN, f'open {path} by {member.pid}')
        return code != 0
    until(refused, f'{member.pid} does not join')


def joining(mount, taker, joiner):
    """The errno when a child of user joiner opens `reentrant` below a holder of user taker."""
    taken = os.pipe()
    top = os.fork()
    if top:
        os.close(taken[0])
        os.close(taken[1])
        return os.waitstatus_to_exitcode(os.waitpid(top, 0)[1])
    try:
        child = os.fork()
        os.setuid(taker if child else joiner)
        if child:
            raw_open(mount.path('users', 'lock'), os.O_RDWR)
            os.write(taken[1], b'.')
            os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        os.read(taken[0], 1)
        os._exit(errno_of(os.open, mount.path('users', 'reentrant'), NOW))
    finally:
        os._exit(255)


def test(case):
    server = case.server(tick_ms=500)
    mount = case.mount(server, 'a')
    mount.mkdir('build')
    lock, reentrant = mount.path('build', 'lock'), mount.path('build', 'reentrant')
    clan = Clan(case)
    parent, stranger = clan.member(), clan.member()
    child, sibling = parent.fork(), parent.fork()
    grandchild = child.fork()

    def queued(count):
        until(lambda: len(server.entries('build')) == count, f'{count} in the queue')

    # Descendants join, the others do not; the last close counts.
    top = parent.open(lock).held()
    files = [member.open(reentrant).held() for member in (child, grandchild, parent)]
    check_equal({opening.token() for opening in files}, {top.token()}, 'tokens')
    queued(1)
    stranger.refused(errno.EAGAIN, reentrant, NOW)
    waiting = stranger.open(reentrant)
    queued(2)
    files[1].close()
    grandchild.open(reentrant).held().close()
    top.close()
    files[2].close()
    # Now the child alone has it: its own descendants join, its parent and sibling do not.
    files.append(grandchild.open(reentrant, NOW).held())
    child.open(reentrant, NOW).held().close()
    for member in (parent, sibling):
        no_longer_joins(member, reentrant)
    files[0].close()
    for member in (child, parent):
        no_longer_joins(member, reentrant)
    check(not waiting.answered(), 'the stranger holds beside the grandchild')
    files[3].close()
    waiting.held()
    queued(1)   # the former entry is gone: so the next to come is counted

    # A process that asked while the lock was held by a stranger gets in with its family.
    above = parent.open(lock)
    queued(2)
    below = [member.open(reentrant) for member in (grandchild, child)]
    timed = sibling.open(mount.path('build', 'reentrant@1h'))
    queued(5)
    behind = stranger.open(lock)
    queued(6)
    waiting.close()
    check_equal(len({opening.held().token() for opening in (above, timed, *below)}), 1, 'tokens')
    queued(2)
    check(not behind.answered(), 'the stranger behind')
    for opening in (above, timed, *below):
        opening.close()
    behind.held().close()
    queued(0)

    # A child that came first: its parent waits for it.
    first = child.open(reentrant).held()
    above = parent.open(reentrant)
    queued(2)
    check_equal(errno_of(first.do, 'fsync'), 0, 'the child holds')
    check(not above.answered(), 'the parent joined its child')
    first.close()
    above.held()

    # The child has ended: the grandchild is an orphan now, and does not join.
    child.kill()
    child.gone()
    grandchild.refused(errno.EAGAIN, reentrant, NOW)
    # The opener has ended, and its child keeps the descriptor: the lock is kept, too, but there is
    # no living opener to join.
    heir = parent.fork()
    parent.kill()
    parent.gone()
    queued(1)
    heir.refused(errno.EAGAIN, reentrant, NOW)
    stranger.refused(errno.EAGAIN, reentrant, NOW)
    heir.kill()
    heir.gone()
    stranger.open(reentrant).held().close()

    status, out, err = command(['bash', '-c', SCRIPT, SCRIPT, reentrant, '3'])
    check_equal((status, len(out.split()), len(set(out.split()))), (0, 4, 1), f'the script: {err}')
    queued(0)
    # A process that the taker's user may not signal does not join: see may_join().
    mount.mkdir('users')
    os.chmod(mount.path('users', 'lock'), 0o666)
    for taker, joiner, code in ((ALICE, ALICE, 0), (0, ALICE, 0), (ALICE, 0, errno.EAGAIN),
                                (ALICE, BOB, errno.EAGAIN)):
        check_equal(joining(mount, taker, joiner), code, f"{joiner}'s child of {taker}'s taker")
    stopped(case, server)


def stopped(case, server):
    """The child ends later than its parent, and the next taker waits for both."""
    mount = case.mount(server, 'b', session='6s', options=['on_lost=term'])
    mount.allow('.')
    mount.mkdir('slow')
    clan = Clan(case)
    parent = clan.member()
    child = parent.fork()
    files = [parent.open(mount.path('slow', 'lock')).held(),
             child.open(mount.path('slow', 'reentrant')).held()]
    child.ignore(signal.SIGTERM)
    for opening in files:
        opening.do('fsync')
    waiter = case.mounts[0].take('slow')
    until(lambda: len(server.entries('slow')) == 2, 'the waiter queues')
    entry = '/locks/slow/' + server.entries('slow')[0]
    until(lambda: entry in server.watches(mount.session()), 'the holder watches its entry')
    data = server.zk.get(entry)[0]
    server.zk.set(entry, b'evict: the test\n' + data)
    parent.gone()
    check(not child.ended(), 'the child ended by SIGTERM')
    check(not waiter.answered(), 'the next one holds beside the child')
    child.gone()
    waiter.held()
    waiter.release()


run(test)
