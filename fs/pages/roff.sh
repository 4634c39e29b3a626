#!/bin/sh
# SPDX-License-Identifier: MIT
#
# roff.sh <PAGE.scd: the manual page, by scdoc(1), as what is copied from it has to be shown.
#
# groff shows - ' ` ^ ~ as typographic signs, unless they are escaped; Debian alone maps them back. scdoc writes them as
# they are. It switches hyphenation and justification off before .TH, which switches both on again.
# Without hyphenation groff warns of each word that widens the column of a table (the category of 4).
# man(1) reads in the first line that there are tables.

set -eu
page=$(scdoc)
printf '%s\n' "$page" | sed -e "1i\\
'\\\\\" t" -e '/^\.nh$/d; /^\.ad l$/d' -e '/^\.TH /a\
.nh\
.ad l\
.warn (\\n[.warn] - (\\n[.warn] / 4 % 2 * 4))' -e "
/^\\\\h'/b
/^\.\(TH\|SH\|SS\) /!{
/^[.']/b
}
s/\\\\-/-/g
s/-/\\\\-/g
s/'/\\\\(aq/g
s/\`/\\\\(ga/g
s/\^/\\\\(ha/g
s/~/\\\\(ti/g"
