# shellcheck shell=dash
# lib.sh: /lib/vm.sh in the guest, sourced by the tests: checks, and machines inside of it.
# A test goes on after a failed check, so that one run shows them all; its last line is `finish`.
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# expect WHAT WANTED FOUND
expect() {
    if [ "$2" = "$3" ]; then
        echo "ok: $1: $3"
    else
        fail "$1: '$3' instead of '$2'"
    fi
}

finish() {
    [ "$failures" -eq 0 ]
    exit
}

# until_true SECONDS WHAT COMMAND...: a condition that has to come.
until_true() {
    local end=$(($(date +%s) + $1)) what=$2
    shift 2
    until "$@"; do
        if [ "$(date +%s)" -ge "$end" ]; then
            fail "$what: did not come"
            return 1
        fi
        usleep 20000
    done
}

# on MACHINE COMMAND...
on() {
    local process
    eval "process=\$machine_$1"
    shift
    nsenter -n -m -t "$process" -- "$@"
}

# start MACHINE FILE COMMAND...: in the background, with its output in FILE.out and FILE.err. Sets process.
start() {
    local file=$2 machine
    eval "machine=\$machine_$1"
    shift 2
    nsenter -n -m -t "$machine" -- "$@" >"$file.out" 2>"$file.err" </dev/null &
    process=$!
}

# is_alive PID: what has ended and not been waited for is not.
is_alive() { [ -e "/proc/$1/stat" ] && ! grep -q '^State:[[:space:]]*Z' "/proc/$1/status"; }

in_network_of_its_own() { [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }

# make_machine a|b: a network with that side of the cables, and a /sys that shows no other: rail N is 10.77.N.1 in a,
# 10.77.N.2 in b.
make_machine() {
    local nic host=1 process
    [ "$1" = a ] || host=2
    unshare -n -m --propagation private sleep 1000000 &
    process=$!
    eval "machine_$1=$process"
    until_true 20 "machine $1" in_network_of_its_own "$process" || return
    on "$1" mount -t sysfs none /sys
    on "$1" ip link set lo up
    for nic in "/sys/class/net/$1"[0-9]*; do
        nic=${nic##*/}
        { ip link set "$nic" netns "$process" && on "$1" ip addr add "10.77.${nic#?}.$host/24" dev "$nic" &&
            on "$1" ip link set "$nic" up; } || fail "machine $1: $nic cannot be moved there"
    done
}

# carries MACHINE NIC
carries() { [ "$(on "$1" cat "/sys/class/net/$2/operstate")" = up ]; }

# complaints [PATTERN]...: what the kernel has warned of, and worse, since the last `dmesg -c`, but for lines with a
# PATTERN, what a module of ours always causes, and what a slow, emulated machine says of its clocks.
complaints() {
    local pattern
    set -- 'loading out-of-tree module taints kernel' 'module verification failed' 'clocksource:' \
        'hrtimer: interrupt took' 'hogged CPU' "$@"
    dmesg -r | awk -F'[<>]' '$2 % 8 <= 4' >/tmp/complaints
    for pattern in "$@"; do
        grep -v -e "$pattern" /tmp/complaints >/tmp/complaints.left
        mv /tmp/complaints.left /tmp/complaints
    done
    cat /tmp/complaints
}
