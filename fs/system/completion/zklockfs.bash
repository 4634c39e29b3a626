# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Completion for bash, loaded by the package bash-completion. The options come from
# `zklockfs --help`, so that they stand in one place only.

# Each option on a line of its own, as drain= or on_lost=term.
_zklockfs_options() {
    "$1" --help 2>/dev/null | sed -nE '/^options/,$ s/^  ([a-z].*)/\1/p' |
        sed -E 's/  .*//; s/ as for .*//' | tr ',' '\n' | sed -E 's/^ *//' |
        while IFS='=' read -r name values; do
            case $values in
            '') printf '%s\n' "$name" ;;
            *'|'*) tr '|' '\n' <<<"$values" | sed "s/^/$name=/" ;;
            *) printf '%s=\n' "$name" ;;
            esac
        done
}

_zklockfs() {
    local cur prev kept last cut
    _get_comp_words_by_ref -n =: cur prev
    COMPREPLY=()
    if [[ $prev == -o ]]; then
        last=${cur##*,}
        kept=${cur%"$last"}
        if [[ $last == credentials=* ]]; then
            mapfile -t COMPREPLY < <(compgen -P "${kept}credentials=" -f -- "${last#*=}")
        else
            mapfile -t COMPREPLY < <(compgen -P "$kept" -W "$(_zklockfs_options "$1")" -- "$last")
        fi
        # readline keeps what stands before the last = or : itself.
        cut=${cur%"${cur##*[=:]}"}
        COMPREPLY=("${COMPREPLY[@]#"$cut"}")
        [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace
    elif [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W '-f -d -o --check --reload -h --help -V --version' -- "$cur")
    elif [[ $prev != "$1" && $prev != -[fd] ]]; then
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
    fi
} && complete -F _zklockfs zklockfs
