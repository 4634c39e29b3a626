#!/bin/sh
# SPDX-License-Identifier: MIT
#
# deploy.sh - one deployment at a time in the whole cluster, in order of arrival.
#
#   deploy.sh /mnt/locks/deploy v42 ./roll-out.sh
#
#   - opening lock@10m waits for ten minutes at most; status 75 says that it was not free in time;
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

die() {
    echo "$0: $lock: $2" >&2
    exit "$1"
}

# Somebody else has it (75) only if we may take it and the ensemble answers. Otherwise something
# is broken (69), also a name or a time with a typing error. A shell sees no more: 75 may also be a
# client that does not wait for us, a limit, or an outage that is over already; the message of the
# shell tells, and zklock(1) has a status for each.
refusal() {
    if [ -w "$lock_file" ] && cat "$lock/holder" >/dev/null; then echo 75; else echo 69; fi
}

now=$(cat "$lock/holder") || die 69 'is no lock: is the filesystem mounted?'
[ -z "$now" ] || echo "$lock is held: $now"
lock_file=$lock/lock@${WAIT:-10m}
command exec 9<>"$lock_file" || exit "$(refusal)"

# On a host where nothing is mounted this file would be a local one, without a token.
{ read -r TOKEN <&9 && [ "$TOKEN" -gt 0 ]; } || die 69 'gives no token: is the filesystem mounted?'
export VERSION TOKEN

# Once the lock is lost, a write to the descriptor fails, and a read.
echo "deploying $VERSION" >&9 || die 74 'the lock was lost'
"$@" || exit

# Before reporting success, look whether the lock was held to the end.
cat <&9 >/dev/null || die 74 'the lock was lost'
exec 9>&-
echo "deployed $VERSION with token $TOKEN"
