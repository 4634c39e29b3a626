#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Which file may include what: fs/ knows the engine by lockcore.h alone, lockcore/
# knows nothing of FUSE, and one file knows ZooKeeper. No include points upwards.
#
#   fs/ --lockcore.h--> lockcore/ --ensemble.h--> ensemble_zookeeper.c

set -eu
cd "${1:?usage: layers.sh ROOT}"
bad=0

wrong() {
    printf '%s\n' "$1" >&2
    bad=1
}

# Each line: file, a blank, "header" or <header>.
includes() {
    find "$@" -name '*.[ch]' | sort | while read -r file; do
        sed -nE "s|^[[:blank:]]*#[[:blank:]]*include[[:blank:]]*([\"<][^\">]*[\">]).*|$file \\1|p" \
            "$file"
    done
}

check() {
    while read -r file header; do
        name=${header#?}
        name=${name%?}
        case $name in
        ../* | */../*) wrong "$file includes $header: upwards" ;;
        pthread.h | threads.h | semaphore.h)
            case $file in
            # Those who take locks may have as many as they like.
            tests/bench/workers/*) ;;
            *) wrong "$file includes $header: there is one thread" ;;
            esac ;;
        zookeeper/* | *zookeeper.jute.h | zookeeper.h)
            [ "$file" = lockcore/ensemble_zookeeper.c ] || case $file in
            tests/*) ;;
            *) wrong "$file includes $header: only the port knows ZooKeeper" ;;
            esac ;;
        ensemble_zookeeper.h)
            case $file in
            fs/main.c | lockcore/ensemble_zookeeper.c | tests/*) ;;
            *) wrong "$file includes $header: only main puts the port in" ;;
            esac ;;
        *)
            case $file in
            lockcore/*)
                case $name in
                fuse* | */fuse*) wrong "$file includes $header: the engine knows nothing of FUSE" ;;
                esac
                case $header in
                \"*) [ -e "lockcore/$name" ] || wrong "$file includes $header: not of lockcore/" ;;
                esac ;;
            fs/*)
                if [ "$name" != lockcore.h ] && [ ! -e "fs/$name" ] && [ -e "lockcore/$name" ]; then
                    wrong "$file includes $header: fs/ sees lockcore.h alone"
                fi ;;
            esac ;;
        esac
    done
}

list=$(includes lockcore fs tests)
[ "$(printf '%s\n' "$list" | wc -l)" -gt 50 ] || wrong "only these includes were found: $list"
check <<EOF
$list
EOF
exit $bad
