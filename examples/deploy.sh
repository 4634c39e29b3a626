#!/bin/sh
# SPDX-License-Identifier: MIT
#
# deploy.sh - one deployment at a time in the whole cluster, in order of arrival.
#
#   deploy.sh /mnt/locks/deploy v42 'put it there' 'start it in the background'
#
#   - opening lock@10m waits for ten minutes at most;
#   - the reason is what others see in `holder` while they wait;
#   - the fencing token is a number that rises from holder to holder. Whoever is
#     written to keeps the highest it has seen and refuses lower ones: then even a
#     host that was frozen in the middle of it cannot overwrite a later deployment;
#   - a daemon that is started keeps all descriptors, the lock too, unless 9>&- is said.
#
# The two commands find VERSION and TOKEN in their environment.

if [ $# -ne 4 ]; then
    echo "usage: $0 LOCK VERSION COMMAND BACKGROUND-COMMAND" >&2
    exit 64
fi
lock=$1 VERSION=$2 deploy=$3 start=$4

echo "waiting for $lock; now: $(cat "$lock/holder")"
command exec 9<>"$lock/lock@10m" || exit 75

# On a host where nothing is mounted this file would be a local one, without a token.
read -r TOKEN <&9 || exit 75
case $TOKEN in
'' | *[!0-9]*)
    echo "$0: $lock/lock gives no token: is the filesystem mounted?" >&2
    exit 75
    ;;
esac
export VERSION TOKEN

# A write to the descriptor fails from the moment on at which the lock is lost.
echo "deploying $VERSION" >&9 || exit 74
sh -c "$deploy" 9>&- || exit

# Before the step that cannot be taken back, ask the ensemble: still ours?
dd if=/dev/null conv=fsync status=none >&9 || exit 74
sh -c "$start" 9>&- &

exec 9>&-
echo "deployed $VERSION with token $TOKEN"
