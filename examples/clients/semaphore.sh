#!/bin/sh
# SPDX-License-Identifier: MIT
#
# semaphore.sh - takes a lease of Curator's InterProcessSemaphoreV2, and runs a command with it.
#
#   cd /mnt/locks && mkdir jobs jobs/locks jobs/leases     once
#   semaphore.sh /mnt/locks/jobs 5 simulate --case 17      as new InterProcessSemaphoreV2(client, "/locks/jobs", 5)
#
# This is Curator's own protocol: whoever has the lock LOCK/locks may make an entry in LOCK/leases, and
# waits there until there are no more than MAX. All must use the same MAX. The command keeps the
# lease, and gives it back when it has ended in any way. SemaphoreMutex is a semaphore of one lease.

if [ $# -lt 3 ]; then
    echo "usage: $0 LOCK MAX COMMAND [ARGUMENT...]" >&2
    exit 64
fi
lock=$1 max=$2
shift 2

command exec 8<>"$lock/locks/lock" || exit 69      # in turn
command exec 9<>"$lock/leases/shared" || exit 69    # the lease, which counts from now on
{ read -r token <&9 && [ "$token" -gt 0 ]; } || { echo "$0: $lock: is the filesystem mounted?" >&2; exit 69; }
echo "$*" >&9 || exit 74
while leases=$(ls "$lock/leases/queue") || exit 69; [ "$(echo "$leases" | wc -l)" -gt "$max" ]; do
    sleep 0.2    # until one of the others ends
done
cat <&9 >/dev/null || exit 74
command exec 8>&- || exit 69
exec "$@"
