# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# root.sh - a Debian of its own for the commands of this directory, to be sourced. It is a
# directory made by debootstrap. Its processes have namespaces of their own (mounts, network,
# processes), so all of it is gone when its first process has ended.
#
#   root_begin                      $work, a private directory; removed at the end
#   root_make trixie ROOT PACKAGE...     a fresh Debian there, with these packages
#   root_clone ROOT                 a clean clone of the last commit, in /src there
#   root_archive ROOT               a source archive of it, by `meson dist`, in /dist/meson-dist there
#   root_install ROOT PACKAGE...    more packages; "build-dep DIRECTORY" for those of a build
#   root_enter ROOT COMMAND...      runs the command there
#   root_boot ROOT COMMAND          the same as a service of its own systemd
#   root_host ROOT                  boots its systemd in the background: one of several hosts
#   root_type ROOT LINE             runs in a shell of that host
#   root_end ROOT                   the host dies
#
# MIRROR names another mirror. With ZKLOCKFS_ROOTS=DIR the fresh roots are kept there as
# archives, and used again.

MIRROR=${MIRROR:-http://deb.debian.org/debian}
work=   # made by root_begin
inside=()
source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd) || exit 1

die() {
    printf '%s: %s\n' "${0##*/}" "$1" >&2
    exit 1
}

say() { printf '== %s\n' "$1"; }

# need COMMAND PACKAGE...: installs the packages if there is no such command.
need() {
    command -v "$1" >/dev/null && return
    shift
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 ||
        { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@" >/dev/null; } >&2 ||
        die "cannot install $*"
}

root_finish() {
    local status=$?
    trap - EXIT INT TERM
    # All processes in there end with this one.
    [ ${#inside[@]} -eq 0 ] || { kill -KILL "${inside[@]}"; wait "${inside[@]}"; } 2>/dev/null
    # Mount points are immutable.
    find "$work" -xdev -type d -perm 000 -exec chattr -i {} + 2>/dev/null
    rm -rf --one-file-system "$work"
    exit "$status"
}

root_begin() {
    [ "$(id -u)" -eq 0 ] || die 'only root can do this'
    [ -c /dev/fuse ] || modprobe -q fuse 2>/dev/null
    [ -c /dev/fuse ] || die 'there is no /dev/fuse'
    need debootstrap debootstrap
    need git git
    # Not below /tmp: that may be small.
    work=$(mktemp -d /var/tmp/zklockfs-XXXXXX) || exit 1
    trap root_finish EXIT
    trap 'exit 130' INT TERM
}

root_make() {
    local suite=$1 root=$2 kept=''
    shift 2
    mkdir -p "$root" || exit 1
    [ -z "${ZKLOCKFS_ROOTS-}" ] || kept=$ZKLOCKFS_ROOTS/$suite.tar
    if [ -n "$kept" ] && [ -e "$kept" ]; then
        tar -C "$root" --numeric-owner -xpf "$kept" || die "cannot unpack $kept"
    else
        say "a fresh $suite"
        debootstrap --variant=minbase "$suite" "$root" "$MIRROR" >"$work/debootstrap.log" 2>&1 ||
            die "debootstrap failed: $(tail -n 5 "$work/debootstrap.log")"
        [ -z "$kept" ] || tar -C "$root" --numeric-owner -cpf "$kept" . || die "cannot write $kept"
    fi
    # Files that a Debian has once it was booted.
    [ -L "$root/etc/mtab" ] || ln -s ../proc/self/mounts "$root/etc/mtab"
    printf '127.0.0.1 localhost\n::1 localhost\n' >"$root/etc/hosts"
    cp -L /etc/resolv.conf "$root/etc/resolv.conf"
    root_apt "$root" update
    [ $# -eq 0 ] || root_install "$root" "$@"
}

# root_apt ROOT install|update ...: with the network of the machine; processes of root_enter have
# no network.
root_apt() {
    local root=$1
    shift
    DEBIAN_FRONTEND=noninteractive LC_ALL=C chroot "$root" apt-get -y -qq "$@" \
        >"$work/apt.log" 2>&1 </dev/null || die "apt-get $* failed: $(tail -n 5 "$work/apt.log")"
}

# The packages are fetched from outside, since the namespaces have no network, and installed
# inside, since that needs /proc.
root_install() {
    local root=$1
    shift
    [ "$1" = build-dep ] || set -- install "$@"
    root_apt "$root" --no-install-recommends --download-only "$@"
    root_enter "$root" apt-get -y -qq --no-install-recommends "$@" >"$work/apt.log" 2>&1 </dev/null ||
        die "apt-get $* failed: $(tail -n 5 "$work/apt.log")"
}

root_clone() {
    git clone -q --depth 1 "file://$source_root" "$1/src" || die 'cannot clone'
}

root_archive() {
    root_enter "$1" sh -c 'cd /src && meson setup -Dauto_features=disabled /dist >/dist.log &&
        meson dist -C /dist --no-tests >>/dist.log && cd /dist/meson-dist && sha256sum --quiet -c ./*.sha256sum ||
        { cat /dist.log >&2; exit 1; }' || die 'no source archive'
}

# The first process of the namespaces. Its arguments: ROOT COMMAND...
# shellcheck disable=SC2016
root_init='
set -e
root=$1
shift
ip link set lo up
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t tmpfs -o mode=755 dev dev
for name in null zero full random urandom tty fuse; do
    : >"dev/$name"
    mount --bind "/dev/$name" "dev/$name"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs -o mode=1777 shm dev/shm
mount -t tmpfs -o mode=755 run run
if [ "$1" != /sbin/init ]; then
    mkdir -m 1777 run/lock
else
    # systemd would change settings of the whole machine.
    mount -o remount,ro sys
    mount --bind proc/sys proc/sys
    mount -o remount,bind,ro proc/sys
    mount -t cgroup2 cgroup2 sys/fs/cgroup
    export container=other
fi
mkdir -p old
pivot_root . old
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive CI=${CI-} container=${container-} \
    chroot . /bin/sh -c "umount -l /old && exec \"\$@\"" root_init "$@"
'

# In the background, because a signal interrupts `wait` at once.
root_start() {
    need ip iproute2
    unshare --mount --net --pid --ipc --uts --cgroup --fork --kill-child --propagation private \
        bash -c "$root_init" root_init "$@" &
    inside+=($!)
}

root_enter() {
    root_start "$@"
    wait "${inside[-1]}"
    set -- $?
    unset 'inside[-1]'
    return "$1"
}

# root_boot ROOT COMMAND: boots the root with its systemd, runs the command as a service, and
# ends with its status. The output of the command is in /booted.log there.
root_boot() {
    local root=$1
    cat >"$root/etc/systemd/system/booted.target" <<'UNIT'
[Unit]
Requires=basic.target booted.service
After=basic.target
AllowIsolate=yes
UNIT
    cat >"$root/etc/systemd/system/booted.service" <<UNIT
[Unit]
Requires=dbus.service
After=basic.target dbus.service
SuccessAction=exit
FailureAction=exit

[Service]
Type=oneshot
TimeoutStartSec=1800s
Environment=DEBIAN_FRONTEND=noninteractive HOME=/root LC_ALL=C.UTF-8
StandardOutput=append:/booted.log
StandardError=append:/booted.log
ExecStart=$2
UNIT
    : >"$root/booted.log"
    root_enter "$root" /sbin/init --unit=booted.target --log-level=warning
}

declare -A root_pid=()
# The process outside of a host's namespaces has its network, and is the parent of its systemd.
root_host() {
    root_start "$1" /sbin/init --log-level=warning >/dev/null
    root_pid[$1]=${inside[-1]}
    root_unshared "${inside[-1]}"
}

# The process has a network of its own.
root_unshared() {
    while [ "/proc/$1/ns/net" -ef /proc/self/ns/net ]; do sleep 0.05; done
    [ -e "/proc/$1/ns/net" ] || die 'no network of its own'
}

root_type() {
    local init
    init=$(cat "/proc/${root_pid[$1]}/task/${root_pid[$1]}/children") || return
    init=${init%% *}
    nsenter -t "$init" -m -u -i -n -p -C -r -w env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        HOME=/root LC_ALL=C.UTF-8 bash -c "cd && $2"
}

root_end() {
    local number
    { kill -KILL "${root_pid[$1]}"; wait "${root_pid[$1]}"; } 2>/dev/null
    for number in "${!inside[@]}"; do [ "${inside[number]}" != "${root_pid[$1]}" ] || unset "inside[number]"; done
}
