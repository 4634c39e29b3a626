#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The top level stays small, so that a newcomer sees all of it at once. In a source archive
# there is no git: it has what is there, without the build directories.

set -eu
cd "${1:?usage: top_level.sh ROOT}"
if [ -e .git ]; then
    files=$(git -c safe.directory='*' ls-files)
else
    files=$(find . -mindepth 1 -maxdepth 1 ! -name 'build*' -printf '%f\n')
fi
printf '%s\n' "$files" | grep -qx README.md
extra=$(printf '%s\n' "$files" | sed 's|/.*||' | sort -u |
    grep -vxE '\..*|meson\.build|README\.md|fs|lockcore|tests|examples' || :)
[ -z "$extra" ] && exit 0
printf 'not at the top level, please: %s\n' "$extra" >&2
exit 1
