# SPDX-License-Identifier: MIT
#
# Completion of zklock(1) for fish: its options, the locks of the mount, the entries that can be
# evicted, and behind `--` what the command itself completes.

# The words before the cursor, without options and their values.
function __zklock_words
    set -l value no
    for word in (commandline -opc)[2..]
        if test $value = yes
            set value no
        else if contains -- $word -m --mount -w --wait -r --reason -k --grace -E --status --ahead --at-most --at-least --mode --slots
            set value yes
        else if not string match -q -- '-*' $word; or test $word = --
            printf '%s\n' $word
        end
    end
end

# The mount: as -m says in this line, $ZKLOCKFS, or the first zklockfs there is.
function __zklock_mount
    set -l words (commandline -opc)
    for option in -m --mount
        if set -l at (contains -i -- $option $words)
            string replace -r '^~' $HOME -- $words[(math $at + 1)]
            return
        end
    end
    if test -n "$ZKLOCKFS"
        printf '%s\n' $ZKLOCKFS
        return
    end
    # Mounted by root or the user: another's may hang, and be no zklockfs.
    set -l found (awk -v user=",user_id=(0|"(id -u)")," \
        '/ - fuse\.zklockfs / && $NF ~ user { gsub(/\\\\/, "\\\\0"); print $5; exit }' /proc/self/mountinfo)
    test -n "$found"; and printf '%b\n' $found
end

# Directories: the other files of a lock are none, but for its queue.
function __zklock_locks
    set -l mount (__zklock_mount)
    set -l word (commandline -ct)
    test -n "$mount"; and not string match -q '/*' -- $word; or return
    set -l above (string match -r '^.*/' -- $word)
    for path in $mount/"$above"*/
        string match -qr '/queue/$' -- $path; or string replace -r '/$' '' -- (string sub -s (math (string length -- $mount) + 2) -- $path)
    end
end

function __zklock_entries
    set -l words (__zklock_words)
    path basename (__zklock_mount)/$words[2]/queue/* 2>/dev/null
    echo holder
end

# Whether the words so far are so many, and the first is that one.
function __zklock_is
    set -l words (__zklock_words)
    test (count $words) -ge $argv[1] -a (count $words) -le $argv[2]
    and begin
        test (count $argv) -eq 2; or contains -- "$words[1]" $argv[3..]
    end
end

function __zklock_takes
    set -l words (__zklock_words)
    not contains -- -- $words; and not contains -- "$words[1]" ls why history status evict
end

function __zklock_runs
    contains -- -- (__zklock_words)
end

function __zklock_command
    set -l words (commandline -opc)
    complete -C (string join ' ' -- (string escape -- $words[(math (contains -i -- -- $words) + 1)..]) (commandline -ct))
end

complete -c zklock -f
complete -c zklock -n __zklock_runs -a '(__zklock_command)'
complete -c zklock -n '__zklock_is 0 0' -a 'ls why history status evict'
complete -c zklock -n __zklock_takes -a '(__zklock_locks)'
complete -c zklock -n '__zklock_takes; and not __zklock_is 0 0' -a --
complete -c zklock -n '__zklock_is 1 1 ls why history evict' -a '(__zklock_locks)'
complete -c zklock -n '__zklock_is 2 99 evict' -a '(__zklock_entries)'
complete -c zklock -n 'not __zklock_runs' -s m -l mount -x -a '(__fish_complete_directories)' -d 'where the locks are'
complete -c zklock -n '__zklock_is 1 99 why' -s s -l shared -d 'of a request that shares'
complete -c zklock -n __zklock_takes -s w -l wait -x -a '10s 1m 10m 1h' -d 'wait at most this long'
complete -c zklock -n __zklock_takes -s n -l nonblock -d 'do not wait'
complete -c zklock -n __zklock_takes -s s -l shared -d 'take the locks beside others that share them'
complete -c zklock -n __zklock_takes -s R -l reentrant -d 'join the hold of a parent process'
complete -c zklock -n __zklock_takes -s r -l reason -x -d 'reason shown to others'
complete -c zklock -n __zklock_takes -s o -l close -d 'do not pass the descriptors to the command'
complete -c zklock -n __zklock_takes -s k -l grace -x -a '1s 10s 1m' -d 'time from SIGTERM to SIGKILL'
complete -c zklock -n __zklock_takes -l ahead -x -d 'do not wait behind so many'
complete -c zklock -n __zklock_takes -l at-most -x -a '10s 1m 10m 1h' -d 'stop the command after this time'
complete -c zklock -n __zklock_takes -l at-least -x -a '10s 1m 10m 1h' -d 'keep the locks this long'
complete -c zklock -n __zklock_takes -l make -d 'create a lock that does not exist'
complete -c zklock -n __zklock_takes -l mode -x -a '700 755 770 775 777' -d 'the mode of a lock that --make creates'
complete -c zklock -n __zklock_takes -l slots -x -d 'the number of holders of a lock that --make creates'
complete -c zklock -n __zklock_takes -s E -l status -x -d 'exit status when somebody else has a lock'
complete -c zklock -n __zklock_takes -s q -l quiet -d 'print no message in that case'
complete -c zklock -n __zklock_takes -s v -l verbose -d 'print each lock that is taken'
complete -c zklock -n __zklock_takes -s h -l help -d 'print a summary'
complete -c zklock -n __zklock_takes -s V -l version -d 'print the version'
