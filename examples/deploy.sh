#!/bin/sh
# SPDX-License-Identifier: MIT
#
# deploy.sh - one deployment at a time in the whole cluster, in order of arrival.
#
#   deploy.sh /mnt/locks/deploy v42 ./roll-out.sh
#
#   - opening lock@10m waits for ten minutes at most;
#   - the reason is what others see in `holder` while they wait;
#   - the fencing token is a number that rises from holder to holder. Whoever is
#     written to keeps the highest it has seen and refuses lower ones: then even a
#     host that was frozen in the middle of it cannot overwrite a later deployment;
#   - the command has descriptor 9 and so the lock too: it stays taken if this script is
#     killed. What is left in the background keeps it as well, unless 9>&- is said.
#
# The command finds VERSION and TOKEN in its environment, and hands both to all that it
# writes to; fenced-store.py is one that checks:
#
#   fenced-store.py /srv/releases.db put "$TOKEN" current "$VERSION"

if [ $# -lt 3 ]; then
    echo "usage: $0 LOCK VERSION COMMAND [ARGUMENT...]" >&2
    exit 64
fi
lock=$1 VERSION=$2
shift 2

now=$(cat "$lock/holder") || exit 75
[ -z "$now" ] || echo "$lock is held: $now"
command exec 9<>"$lock/lock@${WAIT:-10m}" || exit 75

# On a host where nothing is mounted this file would be a local one, without a token.
read -r TOKEN <&9
case $TOKEN in
'' | *[!0-9]*)
    echo "$0: $lock/lock gives no token: is the filesystem mounted?" >&2
    exit 75
    ;;
esac
export VERSION TOKEN

# A write to the descriptor fails from the moment on at which the lock is lost.
echo "deploying $VERSION" >&9 || exit 74
"$@" || exit

# Before success is announced, ask the ensemble whether it was ours to the end.
dd if=/dev/null conv=fsync status=none >&9 || exit 74
exec 9>&-
echo "deployed $VERSION with token $TOKEN"
