#!/bin/sh
# SPDX-License-Identifier: MIT
#
# deploy.sh - one deployment at a time in the whole cluster, in order of arrival.
#
#   deploy.sh /mnt/locks/deploy v42 ./roll-out.sh
#
#   - opening lock@10m waits for ten minutes at most;
#   - others see the reason in `holder` while they wait;
#   - the fencing token is a number that rises from holder to holder. A store that
#     keeps the highest token and refuses lower ones is safe: then even a
#     host that was frozen during its deployment cannot overwrite a later one;
#   - the command inherits descriptor 9 and so the lock, even if this script is killed.
#     A background process keeps the lock as well, unless started with 9>&-.
#
# The command finds VERSION and TOKEN in its environment, and passes both to the stores that
# it writes to; fenced-store.py checks the token:
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

# Once the lock is lost, a write to the descriptor fails.
echo "deploying $VERSION" >&9 || exit 74
"$@" || exit

# Before reporting success, ask the ensemble whether the lock was held to the end.
dd if=/dev/null conv=fsync status=none >&9 || exit 74
exec 9>&-
echo "deployed $VERSION with token $TOKEN"
