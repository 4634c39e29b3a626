#!/bin/sh
# SPDX-License-Identifier: MIT
#
# cron-once.sh - the same line in the crontab of every host, the job on one of them.
#
#   0 3 * * *  root  cron-once.sh /mnt/locks/nightly /usr/local/sbin/backup --all
#
# Opening `try` takes the lock at once or fails: the host that comes first runs the
# job, the others leave with status 75 (EX_TEMPFAIL) and say nothing.
#
# Clocks differ: a host that is late may come when a short job is over already. So the
# day it was done is kept in the lock's `value`, and who reads today's there leaves with
# status 0. PERIOD='%F %H' makes it once an hour, in the words of date(1). When the job
# fails nothing is written, and the next one to come tries it again.
#
# `command` matters: where a plain `exec` cannot open, dash ends with a status of its own.

if [ $# -lt 2 ]; then
    echo "usage: $0 LOCK COMMAND [ARGUMENT...]" >&2
    exit 64
fi
lock=$1
shift
period=$(date "+${PERIOD:-%F}") || exit 64

# No such directory means no mount: an error, and not somebody else's turn.
if [ ! -d "$lock/queue" ]; then
    echo "$0: $lock is no lock: is the filesystem mounted?" >&2
    exit 69
fi

# In braces, or the shell would keep its standard error on /dev/null.
if ! { command exec 9<>"$lock/try"; } 2>/dev/null; then
    cat "$lock/holder" >/dev/null || exit 69    # the ensemble does not answer
    exit 75
fi

# Written by nobody but a holder, so it does not change from here on.
[ "$(cat "$lock/value")" = "$period" ] && exit 0
echo "$*" >&9 || exit 74

# The job has the lock too: it stays taken if this script is killed, and the mount option
# on_lost= stops both. What the job leaves in the background is started with 9>&-.
"$@" || exit

# This fails if the lock was lost: then somebody else may have run the job too.
echo "$period" 1<>"$lock/value" || exit 74    # `>` would empty it first
