#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The man pages are well-formed. Skipped without the tools, or while there are none.

set -eu
cd "${1:?usage: man.sh ROOT}"
command -v scdoc >/dev/null && command -v mandoc >/dev/null || exit 77
set -- fs/pages/*.scd examples/*/*.scd
[ -e "$1" ] || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
for page; do
    name=${page##*/}
    name=${name%.scd}
    # scdoc dates a page by the clock unless it is told a time.
    if ! SOURCE_DATE_EPOCH=0 fs/pages/roff.sh <"$page" >"$work/$name"; then
        printf '%s: scdoc refuses it\n' "$page" >&2
        bad=1
    # scdoc itself writes a paragraph behind each heading, and mandoc does not know a date whose minus signs are
    # escaped: these are no errors of the page.
    elif { mandoc -Tlint -Wwarning "$work/$name" || :; } |
        sed "s|^mandoc: [^:]*:|$page, line of the output |" |
        grep -v 'skipping paragraph macro: PP \(empty\|after S[HS]\)$\|cannot parse date' >&2; then
        bad=1
    fi
    # scdoc ends a list before such a line, without a word.
    awk -v page="$page" 'list && !/^(- |  |$)/ { print page ":" FNR ": not indented below a list: " $0; bad = 1 }
        { list = /^- / || (list && /^  /) }
        END { exit bad }' "$page" >&2 || bad=1
done
exit $bad
