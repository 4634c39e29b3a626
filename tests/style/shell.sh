#!/bin/sh
# SPDX-License-Identifier: MIT
#
# All shell scripts of the tree pass shellcheck, whatever their names are: they are
# known by their first line.

set -eu
cd "${1:?usage: shell.sh ROOT}"
command -v shellcheck >/dev/null || exit 77
work=$(mktemp)
trap 'rm -f "$work"' EXIT
find .ci examples fs lockcore tests -type f 2>/dev/null | sort | while read -r file; do
    if head -n 1 "$file" | grep -qaE '^#!.*[/ ](ba|da|k)?sh( |$)'; then
        printf '%s\n' "$file"
    fi
done >"$work"
# This one at least.
grep -qx 'tests/style/shell.sh' "$work" || { echo 'no scripts were found' >&2; exit 1; }
xargs -d '\n' shellcheck -x <"$work" >&2
