#!/bin/sh
# SPDX-License-Identifier: MIT
#
# maintenance.sh - work runs side by side, but not during maintenance.
#
#   maintenance.sh work   /mnt/locks/db  import-orders.sh      on any host, many at a time
#   maintenance.sh window /mnt/locks/db  upgrade-schema.sh     alone
#
# Work opens `shared`, maintenance `lock`. The queue keeps the order of arrival: a window
# starts when all earlier work is done, and work that comes while the window waits, waits
# behind it. So work never starves maintenance.

if [ $# -lt 3 ]; then
    echo "usage: $0 work|window LOCK COMMAND [ARGUMENT...]" >&2
    exit 64
fi
case $1 in
work) lock_file=shared ;;
window) lock_file=lock ;;
*) exit 64 ;;
esac
lock=$2
shift 2

command exec 9<>"$lock/$lock_file" || exit 69
if ! { read -r token <&9 && [ "$token" -gt 0 ]; }; then    # a local file: nothing is mounted
    echo "$0: $lock gives no token: is the filesystem mounted?" >&2
    exit 69
fi
echo "$*" >&9 || exit 74

# The command keeps descriptor 9, and so the lock, even if this script is killed.
"$@" || exit

# Before reporting success, look whether the lock was held to the end. A command that must not go
# on after a loss needs the mount option on_lost=, or zklock(1).
cat <&9 >/dev/null || {
    echo "$0: $lock: the lock was lost" >&2
    exit 74
}
