#!/bin/sh
# SPDX-License-Identifier: MIT
#
# order.sh - a lock for each order, created when it is needed, and removed afterwards.
#
#   order.sh /mnt/locks/orders/4711 ship --order 4711
#
# The same as order.py, whose first lines say why it is safe. zklock --make creates the lock, and creates it again when
# somebody removes it before it is taken. rmdir removes it only if nobody holds it or waits for it.

if [ $# -lt 2 ]; then
    echo "usage: $0 LOCK COMMAND [ARGUMENT...]" >&2
    exit 64
fi
lock=$1
shift

zklock --make "$lock" -- "$@"
status=$?
rmdir "$lock" 2>/dev/null       # or somebody else uses it, and removes it
exit $status
