#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The top level stays small, so that a newcomer sees all of it at once. Skipped
# outside a git checkout, where build directories cannot be told from the tree.

set -eu
cd "${1:?usage: top_level.sh ROOT}"
files=$(git -c safe.directory='*' ls-files 2>/dev/null) || exit 77
[ -e .git ] && [ -n "$files" ] || exit 77
extra=$(printf '%s\n' "$files" | sed 's|/.*||' | sort -u |
    grep -vxE '\..*|meson\.build|README\.md|fs|lockcore|tests|examples' || :)
[ -z "$extra" ] && exit 0
printf 'not at the top level, please: %s\n' "$extra" >&2
exit 1
