# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Completion of zklock(1) for bash: its options, the locks of the mount, the entries that
# can be evicted, and behind `--` what the command itself completes.

# The mount: as -m says in this line, $ZKLOCKFS, or the first zklockfs there is.
_zklock_mount() {
    local i path
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -m | --mount)
            path=${COMP_WORDS[i + 1]}
            printf '%s' "${path/#\~/$HOME}"
            return
            ;;
        --) break ;;
        esac
    done
    if [[ ${ZKLOCKFS-} ]]; then
        printf '%s' "$ZKLOCKFS"
        return
    fi
    # Mounted by root or the user: another's may hang, and be no zklockfs.
    path=$(awk -v user=",user_id=(0|$EUID)," '/ - fuse\.zklockfs / && $NF ~ user { print $5; exit }' \
        /proc/self/mountinfo)
    printf '%b' "${path//\\/\\0}"
}

# Directories below the mount that begin like the word. They are hidden from the other files
# of a lock by being directories, and `queue` by its name.
_zklock_locks() {
    local mount=$1 word=$2 path
    [[ $mount && $word != /* ]] || return
    for path in "$mount/$word"*/; do
        [[ -d $path && $path != */queue/ ]] || continue
        path=${path#"$mount/"}
        printf '%s\n' "${path%/}"
    done
}

_zklock_entries() {
    local mount=$1 lock=$2 path
    printf 'holder\n'
    for path in "$mount/$lock/queue/"*; do
        [[ -e $path ]] && printf '%s\n' "${path##*/}"
    done
}

# Fills COMPREPLY with the lines of the second word that begin like the first.
_zklock_reply() {
    local word=$1 line
    COMPREPLY=()
    while IFS= read -r line; do
        [[ $line && $line == "$word"* ]] || continue
        printf -v line '%q' "$line"     # a lock's name may hold anything
        COMPREPLY+=("$line")
    done <<<"$2"
}

_zklock() {
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} i what='' places=()
    local options='-m --mount -w --wait -n --nonblock -s --shared -R --reentrant -r --reason
-o --close -k --grace --ahead --at-most --at-least --make --mode --slots -E --status -q --quiet -v --verbose -h --help -V --version'

    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --)
            # Another command begins here.
            if declare -F _command_offset >/dev/null; then
                _command_offset $((i + 1))
            else
                mapfile -t COMPREPLY < <(compgen -c -- "$word")
            fi
            return
            ;;
        -m | --mount | -w | --wait | -r | --reason | -k | --grace | -E | --status | --ahead | --at-most | --at-least | --mode | --slots)
            ((i++))
            ;;
        -*) ;;
        *)
            places+=("${COMP_WORDS[i]}")
            what=${places[0]}
            ;;
        esac
    done
    case $previous in
    -m | --mount)
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
        return
        ;;
    -w | --wait | -k | --grace | --at-most | --at-least)
        _zklock_reply "$word" $'10s\n1m\n10m\n1h'
        return
        ;;
    --mode)
        _zklock_reply "$word" $'700\n755\n770\n775\n777'
        return
        ;;
    -r | --reason | -E | --status | --ahead | --slots) return ;;
    esac
    case $what:$word in
    status:*) ;;
    why:-*) _zklock_reply "$word" $'-m\n--mount\n-s\n--shared' ;;
    ls:-* | history:-* | evict:-*) _zklock_reply "$word" $'-m\n--mount' ;;
    *:-*) _zklock_reply "$word" "${options// /$'\n'}" ;;
    :*) _zklock_reply "$word" "$(_zklock_locks "$(_zklock_mount)" "$word")"$'\nls\nwhy\nhistory\nstatus\nevict' ;;
    evict:*)
        if ((${#places[@]} >= 2)); then
            _zklock_reply "$word" "$(_zklock_entries "$(_zklock_mount)" "${places[1]}")"
        else
            _zklock_reply "$word" "$(_zklock_locks "$(_zklock_mount)" "$word")"
        fi
        ;;
    ls:* | why:* | history:*)
        ((${#places[@]} > 1)) || _zklock_reply "$word" "$(_zklock_locks "$(_zklock_mount)" "$word")"
        ;;
    *) _zklock_reply "$word" "$(_zklock_locks "$(_zklock_mount)" "$word")"$'\n--' ;;
    esac
}

complete -F _zklock zklock
