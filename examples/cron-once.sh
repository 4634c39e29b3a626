#!/bin/sh
# SPDX-License-Identifier: MIT
#
# cron-once.sh - the same line in the crontab of every host runs the job on one of them.
#
#   0 3 * * *  root  cron-once.sh /mnt/locks/nightly /usr/local/sbin/backup --all
#
# Opening `try` takes the lock at once or fails: the host that comes first runs the
# job, the others end silently with status 75 (EX_TEMPFAIL).
#
# Clocks differ: a late host may come when a short job is over already. So the lock's
# `value` keeps the day of the last job, and a host that reads today's date there ends with
# status 0. PERIOD='%F %H', a format of date(1), makes it once an hour. When the job
# fails nothing is written, and the next host tries again.
#
# `command` matters: when a plain `exec` cannot open, dash ends with a status of its own.

if [ $# -lt 2 ]; then
    echo "usage: $0 LOCK COMMAND [ARGUMENT...]" >&2
    exit 64
fi
lock=$1
shift
period=$(date "+${PERIOD:-%F}") || exit 64

# No such directory means no mount: an error, not a job of another host.
if [ ! -d "$lock/queue" ]; then
    echo "$0: $lock is no lock: is the filesystem mounted?" >&2
    exit 69
fi

# Without the braces the shell would keep its standard error on /dev/null.
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
