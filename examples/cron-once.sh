#!/bin/sh
# SPDX-License-Identifier: MIT
#
# cron-once.sh - the same line in the crontab of every host runs the job on one of them.
#
#   0 3 * * *  root  cron-once.sh /mnt/locks/nightly /usr/local/sbin/backup --all
#
# The host that comes first runs the job, the others end silently with status 75 (EX_TEMPFAIL).
# 75 means this alone: when nothing is mounted, the name is wrong or the ensemble does not answer, the
# status is 69, with a message. flock(1) knows the difference; a shell that opens `try` does not.
#
# The lock belongs to root alone, as root's mkdir makes it: who may write to its files can keep the job
# from running, and nobody is told.
#
# Clocks differ: a late host may come when a short job is over already. So the lock's
# `value` keeps the day of the last job, and a host that reads today's date there ends with
# status 0. PERIOD='%F %H', a format of date(1), makes it once an hour; in a crontab write \%F \%H.
# When the job fails nothing is written, and a host that comes later tries again; those that
# came meanwhile have ended.
#
# For a job that may run again then, one line in the crontab is enough:
#
#   0 3 * * *  root  flock -n -E 75 /mnt/locks/nightly/flock /usr/local/sbin/backup --all
#
# Name the file `flock`, not the directory: flock(1) on a directory locks this host
# alone, without an error.

if [ $# -lt 2 ]; then
    echo "usage: $0 LOCK COMMAND [ARGUMENT...]" >&2
    exit 64
fi
lock=$1
shift
period=$(date "+${PERIOD:-%F}") || exit 64

die() {
    echo "$0: $lock: $2" >&2
    exit "$1"
}

# Opening takes nothing yet. flock(1) takes the lock, and the shell keeps it. `command` matters:
# when a plain `exec` cannot open, dash ends with a status of its own.
command exec 9<>"$lock/flock" || exit 69
flock -n -E 75 9
case $? in
0) ;;
75) exit 75 ;;
*) exit 69 ;;
esac

# On a host where nothing is mounted this file would be a local one, without a token.
{ read -r token <&9 && [ "$token" -gt 0 ]; } || die 69 'gives no token: is the filesystem mounted?'

# Written by nobody but a holder, so it does not change from here on.
done=$(cat "$lock/value") || exit 69
[ "$done" = "$period" ] && exit 0
echo "$*" >&9 || die 74 'the lock was lost'

# The job has the lock too: it stays taken if this script is killed, and the mount option
# on_lost= stops both. What the job leaves in the background is started with 9>&-.
"$@" || exit

# This fails if the lock was lost: then somebody else may have run the job too.
echo "$period" 1<>"$lock/value" || die 74 'the lock was lost'    # `>` would empty it first
