#!/bin/sh
# SPDX-License-Identifier: MIT
#
# All shell scripts of the tree pass shellcheck. They are found by their first line, and completions
# by their name. No script and no page goes on without the lock when `exec 9<>` fails, as bash and
# zsh do by default, nor calls each failure a busy lock.

set -eu
cd "${1:?usage: shell.sh ROOT}"
command -v shellcheck >/dev/null || exit 77
work=$(mktemp)
trap 'rm -f "$work"' EXIT
find .ci examples fs lockcore tests -type f 2>/dev/null | sort | while read -r file; do
    if [ "${file%.bash}" != "$file" ] || head -n 1 "$file" | grep -qaE '^#!.*[/ ](ba|da|k)?sh( |$)'; then
        printf '%s\n' "$file"
    fi
done >"$work"
# At least this script must be found.
grep -qx 'tests/style/shell.sh' "$work" || { echo 'no scripts were found' >&2; exit 1; }
# SC2329: later versions do not see that a function is called by its name in a variable.
xargs -d '\n' shellcheck -x -e SC2329 <"$work" >&2
grep -E '^ *(command )?exec 9<>' README.md fs/pages/*.md examples/*.sh >"$work"
if grep -v '|| exit' "$work" >&2; then exit 1; fi
# 75 is a lock that somebody else has; an exec that failed does not know that.
! grep -nE '<>.*exit 75' README.md fs/pages/*.md examples/*.sh examples/demo examples/kubernetes/* >&2
