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
# Clocks differ: a job of two seconds would be over before a host that is five seconds
# late tries, and would run twice. So the lock is kept for HOLD seconds (60) at least.
#
# `command` matters: where a plain `exec` cannot open, dash ends with a status of its own.

if [ $# -lt 2 ]; then
    echo "usage: $0 LOCK COMMAND [ARGUMENT...]" >&2
    exit 64
fi
lock=$1
shift

# No lock directory means no mount: that is an error, not somebody else's turn.
if [ ! -d "$lock/queue" ]; then
    echo "$0: $lock is no lock: is the filesystem mounted?" >&2
    exit 69
fi

# In braces, or the shell would keep its standard error on /dev/null.
if ! { command exec 9<>"$lock/try"; } 2>/dev/null; then
    cat "$lock/holder" >/dev/null || exit 69    # the ensemble does not answer
    exit 75
fi
echo "$*" >&9 || exit 74

# 9>&-: should the job leave something in the background, it must not keep the lock.
sleep "${HOLD:-60}" 9>&- &
"$@" 9>&-
status=$?
wait
exit "$status"
