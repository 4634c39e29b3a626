#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The help is on stdout, fits into 80 columns, and has the same options as the man page.
# A wrong option gets one line on stderr.

set -eu
root=${1:?usage: help.sh ROOT ZKLOCKFS}
zklockfs=${2:?usage: help.sh ROOT ZKLOCKFS}
man=$root/fs/pages/zklockfs.8.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

wrong() {
    printf '%s\n' "$1" >&2
    bad=1
}

for option in --help -h; do
    status=0
    "$zklockfs" "$option" >"$work/out" 2>"$work/err" || status=$?
    [ "$status" -eq 0 ] || wrong "$option: status $status"
    [ -s "$work/err" ] && wrong "$option says on stderr: $(cat "$work/err")"
    grep -q '^usage: zklockfs ' "$work/out" || wrong "$option gives no usage"
    long=$(awk 'length > 80' "$work/out")
    [ -z "$long" ] || wrong "wider than 80 columns: $long"
done

for option in --nonsense -Z -ononsense; do
    status=0
    "$zklockfs" "$option" zk1 / >"$work/out" 2>"$work/err" || status=$?
    [ "$status" -eq 1 ] || wrong "$option: status $status"
    [ -s "$work/out" ] && wrong "$option says on stdout: $(cat "$work/out")"
    [ "$(wc -l <"$work/err")" -eq 1 ] || wrong "$option says: $(cat "$work/err")"
done

# One name a line, without a value; `-o` is no option of its own, and `context=...`
# stands for the four options of SELinux.
names() {
    tr ',' '\n' | sed -E 's/^ +//; s/\\//g; s/[*= ].*//; s/^(fs|def|root)context$/context/' |
        grep -E '^-?-?[a-z_]+$|^-[A-Z]$' | grep -vx -e -o | sort -u
}

# In the help a line of options begins with two blanks, and two more blanks are before
# their text; a word in capitals is an argument.
"$zklockfs" --help | sed -nE 's/^  ([^ ].*)/\1/p' |
    sed -E 's/  .*//; s/ as for .*//' | names >"$work/help"
[ "$(wc -l <"$work/help")" -ge 8 ] ||
    wrong "only these options were found: $(tr '\n' ' ' <"$work/help")"

# In the man page a term of options begins with **bold** below a heading OPTIONS.
awk '/^#/ { inside = /OPTIONS/ } inside && /^- \*\*/' "$man" | sed -E 's/^- \*\*|, \*\*/,/g' | names >"$work/man"
difference=$(diff "$work/help" "$work/man") ||
    wrong "--help (<) and zklockfs.8 (>) do not have the same options:
$difference"
exit $bad
