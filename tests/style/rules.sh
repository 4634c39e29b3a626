#!/bin/sh
# SPDX-License-Identifier: MIT
#
# lockcore/README.md has the numbered rules: each number of a mutant is a rule there, and the
# mutants and files that it names exist.

set -eu
cd "${1:?usage: rules.sh ROOT}"
rules=lockcore/README.md
mutants=tests/sim/mutants.py
bad=0

wrong() {
    printf '%s\n' "$1" >&2
    bad=1
}

numbers=$(sed -nE "s/^mutant\(([0-9]+),.*/\1/p" "$mutants" | sort -nu)
[ "$(printf '%s\n' "$numbers" | wc -l)" -gt 20 ] || wrong "only these rules have mutants: $numbers"
for number in $numbers; do
    [ "$(grep -cE "^\*\*$number\." "$rules")" -eq 1 ] || wrong "rule $number is not in $rules, or not once"
done

names=$(grep -oE "\`[^\`]+\`" "$rules" | tr -d '\140' | sort -u)
for name in $(printf '%s\n' "$names" | grep -E '^(tests|fs|lockcore)/'); do
    [ -e "$name" ] || wrong "$rules names $name, which is not there"
done
for name in $(printf '%s\n' "$names" | grep -E '^[a-z]+(_[a-z]+)+$' | grep -vE '^on_lost'); do
    grep -qE "^mutant\([0-9]+, '$name'," "$mutants" || wrong "$rules names $name, which is no mutant"
done
exit $bad
