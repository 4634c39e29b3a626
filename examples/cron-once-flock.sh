#!/bin/sh
# SPDX-License-Identifier: MIT
#
# cron-once-flock.sh - the same as cron-once.sh, by flock(1), which many scripts use already.
#
#   0 3 * * *  root  cron-once-flock.sh /mnt/locks/nightly /usr/local/sbin/backup --all
#
# For a job that may run again when a host comes late one line in the crontab is enough:
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

# Opening takes nothing yet. flock(1) takes the lock, and the shell keeps it.
command exec 9<>"$lock/flock" || exit 69
flock -n -E 75 9 || exit

# On a host where nothing is mounted this file would be a local one, without a token.
read -r token <&9
case $token in
'' | *[!0-9]*)
    echo "$0: $lock/flock gives no token: is the filesystem mounted?" >&2
    exit 69
    ;;
esac

[ "$(cat "$lock/value")" = "$period" ] && exit 0
echo "$*" >&9 || exit 74
"$@" || exit    # with descriptor 9, so with the lock
echo "$period" 1<>"$lock/value" || exit 74    # `>` would empty it first
