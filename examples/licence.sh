#!/bin/sh
# SPDX-License-Identifier: MIT
#
# licence.sh - a program that may run at most N times in the cluster.
#
#   mkdir /mnt/locks/simulator
#   chmod a+w /mnt/locks/simulator/lock       for all users
#   echo 5 >/mnt/locks/simulator/slots        five licences; only the owner and root may write this
#
#   licence.sh /mnt/locks/simulator simulate --case 17
#
# When all licences are taken, the next waits for WAIT (10m) at most, then ends with 75. A licence is given back
# when its program has ended in any way: the program keeps the descriptor, so
# that even a killed script gives nothing back too early. `cat holder` shows the holders.
# `slots` may be written at any time: a higher number lets waiters in, a lower one takes
# no licence away.

if [ $# -lt 2 ]; then
    echo "usage: $0 LOCK COMMAND [ARGUMENT...]" >&2
    exit 64
fi
lock=$1
shift

# Somebody else has it (75) only if we may take it and the ensemble answers. Otherwise something
# is broken (69), also a name or a time with a typing error. A shell sees no more: 75 may also be a
# client that does not wait for us, a limit, or an outage that is over already; the message of the
# shell tells, and zklock(1) has a status for each.
refusal() {
    if [ -w "$lock_file" ] && cat "$lock/holder" >/dev/null; then echo 75; else echo 69; fi
}

lock_file=$lock/lock@${WAIT:-10m}
command exec 9<>"$lock_file" || exit "$(refusal)"
if ! { read -r token <&9 && [ "$token" -gt 0 ]; }; then    # a local file: nothing is mounted
    echo "$0: $lock_file gives no token: is the filesystem mounted?" >&2
    exit 69
fi
echo "$*" >&9 || exit 74
"$@" || exit

# Was it held to the end? A program that must not go on after a loss needs the mount option
# on_lost=, or zklock(1).
cat <&9 >/dev/null || {
    echo "$0: $lock: the licence was lost" >&2
    exit 74
}
