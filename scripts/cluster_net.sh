#!/usr/bin/env bash
# cluster_net.sh: several machines in one. Each node is a network and a host name of its own (namespaces), and is joined
# to every rail by a cable (a veth pair) that is held to its rate by a token bucket at both ends. A rail is a switch (a
# bridge) in one more machine, `head`, which is where commands start.
#
# Nothing outlives this script, however it ends: its namespaces have no names outside, all files that it makes are in a
# memory file system that only its mount namespace knows, and what it starts is in a pid namespace whose init dies with
# this process, as this one does with what has started it.
set -u

usage() {
    cat <<'END'
usage: cluster_net.sh [--nodes N] [--rails RATE,...] [--rate WHAT=RATE]... [--limit SECONDS] COMMAND [ARG]...
   and inside:
       cluster_net.sh --on NODE COMMAND [ARG]...
       cluster_net.sh --rate WHAT=RATE...

Makes a cluster, runs COMMAND in its head, and takes the cluster down with everything that still runs in it.
Works as root, and without where the system allows user namespaces.

  --nodes N          n0, n1, ...: from 1 to 64 (default 4)
  --rails RATE,...   lab0, lab1, ... of each node, as kbit, mbit or gbit (default 1gbit,1gbit)
  --rate WHAT=RATE   another rate for all cables of a node (n2), of a rail (lab1) or for one (n2:lab1), both ways; with a
                     percent sign that part of the rate that --rails says: --rate n2=85%. The last that fits counts
  --limit SECONDS    how long COMMAND may take (default 300)

Rail R of node I has the addresses 10.77.R.(I+1) and fd77:77:77:R::(I+1), the head 10.77.R.254 and ...::fe, MTU 9000.
Names of hosts are resolved to addresses of rail 0. COMMAND finds CLUSTER_NODES, the number of nodes, CLUSTER_RAILS, the
rates of --rails, and CLUSTER_RSH, a program that takes what launchers give to ssh: NODE and words for its shell.
/run, /tmp by way of TMPDIR, and /dev/shm are the cluster's own.

Exit status: that of COMMAND; 124 after --limit; 2 wrong usage; 77 the cluster cannot be made here, with the reason.
END
}

# Without a fork: see enter.
here=${BASH_SOURCE[0]}
[[ $here == */* ]] || here=./$here
here=${here%/*}
# shellcheck source=scripts/lib.sh
. "$here/lib.sh"
# shellcheck source=scripts/rates.sh
. "$here/rates.sh"

# must WHAT COMMAND...
must() {
    local what=$1 error
    shift
    error=$("$@" 2>&1 >/dev/null) || unavailable "$what: ${error%%$'\n'*}"
}

# on NODE COMMAND...
on() { nsenter --net="/run/netns/$1" --uts="/run/uts/$1" -- "${@:2}"; }

# ------------------------------------------------------------------------------------------------------- rates

# read_rails: sets rates, in bit/s, of CLUSTER_RAILS.
read_rails() {
    local rate
    IFS=, read -r -a rates <<<"${CLUSTER_RAILS,,}," # `read` drops the last comma, and would drop the user's
    ((${#rates[@]} <= 16)) || wrong_usage "--rails $CLUSTER_RAILS: more than 16 rails"
    for rate in "${rates[@]}"; do
        parse_rate "$rate"
    done
    mapfile -t rates < <(printf '%s\n' "${rates[@]}" | bits)
}

# bits: "500mbit" of each line as a number.
bits() { awk '{ printf "%.0f\n", $1 * ($1 ~ /g/ ? 1e9 : $1 ~ /m/ ? 1e6 : 1e3) }'; }

# parse_change WHAT=RATE: sets of_node and of_rail, empty for all of them, and percent or bits_now.
parse_change() {
    local what=${1%%=*} rate=${1#*=}
    [[ $1 == *=* && $what =~ ^(n([0-9]+))?:?(lab([0-9]+))?$ && $what != : && $what ]] ||
        wrong_usage "--rate '$1': n2=RATE, lab1=RATE or n2:lab1=RATE"
    of_node=${BASH_REMATCH[2]} of_rail=${BASH_REMATCH[4]} percent='' bits_now=''
    ((${of_node:-0} < CLUSTER_NODES && ${of_rail:-0} < ${#rates[@]})) || wrong_usage "--rate '$1': there is no $what"
    if [[ $rate =~ ^([1-9][0-9]{0,2})%$ ]]; then
        percent=${BASH_REMATCH[1]}
    else
        parse_rate "$rate"
        bits_now=$(bits <<<"$rate")
    fi
}

# set_cables: sets cables, the rates of all, by NODE:RAIL.
set_cables() {
    local node rail change
    for ((node = 0; node < CLUSTER_NODES; node++)); do
        for rail in "${!rates[@]}"; do
            cables[$node:$rail]=${rates[rail]}
        done
    done
    for change in "${changes[@]}"; do
        each_cable_of "$change" set_cable
    done
}
set_cable() { cables[$1:$2]=$3; }

# each_cable_of CHANGE COMMAND...: with NODE RAIL RATE.
each_cable_of() {
    local node rail
    parse_change "$1"
    for ((node = 0; node < CLUSTER_NODES; node++)); do
        for rail in "${!rates[@]}"; do
            [[ ${of_node:-$node}:${of_rail:-$rail} == "$node:$rail" ]] || continue
            "${@:2}" "$node" "$rail" "${bits_now:-$((rates[rail] * percent / 100))}"
        done
    done
}

# change_cable NODE RAIL RATE: while something runs.
change_cable() {
    local burst limit
    bucket change "$3"
    local -a words=(root tbf rate "${3}bit" burst "$burst" limit "$limit")
    must "n$1 keeps its rate" on "n$1" tc qdisc change dev "lab$2" "${words[@]}"
    must "n$1 keeps its rate" on head tc qdisc change dev "n$1lab$2" "${words[@]}"
}

# ------------------------------------------------------------------------------------------------------- set-up

# batch MACHINE PROGRAM LINE...: a process for each line is what would take the time.
batch() {
    must "$2 refuses" on "$1" "$2" -batch - < <(printf '%s\n' "${@:3}")
}

add_switch() {
    local -a lines=("link add rail$1 mtu $frame type bridge stp_state 0 forward_delay 0 mcast_snooping 0"
        "link set rail$1 up" "addr add 10.77.$1.254/24 dev rail$1")
    ((!ipv6)) || lines+=("addr add $(printf 'fd77:77:77:%x::fe' "$1")/64 dev rail$1 nodad")
    batch head ip "${lines[@]}"
}

# add_node NODE: with a cable to each switch.
add_node() {
    local rail end rate burst limit
    local -a ends=() own=() head_rates=() own_rates=()
    make_machine "n$1"
    for rail in "${!rates[@]}"; do
        end="n$1lab$rail" rate=${cables[$1:$rail]}
        bucket add "$rate"
        ends+=("link add $end mtu $frame type veth peer name lab$rail mtu $frame netns n$1"
            "link set $end master rail$rail up")
        own+=("link set lab$rail up" "addr add 10.77.$rail.$(($1 + 1))/24 dev lab$rail")
        ((!ipv6)) || own+=("addr add $(printf 'fd77:77:77:%x::%x' "$rail" $(($1 + 1)))/64 dev lab$rail nodad")
        head_rates+=("qdisc add dev $end root tbf rate ${rate}bit burst $burst limit $limit")
        own_rates+=("qdisc add dev lab$rail root tbf rate ${rate}bit burst $burst limit $limit")
    done
    batch head ip "${ends[@]}"
    batch head tc "${head_rates[@]}"
    batch "n$1" tc "${own_rates[@]}"
    batch "n$1" ip "${own[@]}"
}

# make_machine NAME
make_machine() {
    touch "/run/netns/$1" "/run/uts/$1"
    # shellcheck disable=SC2016  # expanded by the other shell
    must 'no network for each node' unshare --net="/run/netns/$1" --uts="/run/uts/$1" \
        sh -c 'hostname "$1" && ip link set lo up' sh "$1"
}

# Files that everybody writes, and the names of the hosts.
make_files() {
    local node
    must 'no files of its own' mount -t tmpfs -o mode=755 cluster /run
    must 'no files of its own' mount -t tmpfs -o mode=1777 cluster /dev/shm
    mkdir -m 1777 /run/tmp
    mkdir /run/netns /run/uts
    export TMPDIR=/run/tmp CLUSTER_RSH=/run/rsh
    {
        echo '127.0.0.1 localhost'
        echo '10.77.0.254 head'
        for ((node = 0; node < CLUSTER_NODES; node++)); do
            echo "10.77.0.$((node + 1)) n$node"
        done
    } >/run/hosts
    must 'no names of hosts' mount --bind /run/hosts /etc/hosts
    # Options of ssh come before the host.
    cat >$CLUSTER_RSH <<'END'
#!/bin/bash
while [[ $1 == -* ]]; do shift; done
node=$1
shift
exec nsenter --net="/run/netns/$node" --uts="/run/uts/$node" -- bash -c "$*"
END
    chmod +x $CLUSTER_RSH
}

make_network() {
    local node rail ipv6=0
    [[ -e /proc/net/if_inet6 ]] && ipv6=1
    make_machine head
    for rail in "${!rates[@]}"; do
        add_switch "$rail"
    done
    for ((node = 0; node < CLUSTER_NODES; node++)); do
        add_node "$node"
    done
    for ((node = 0; node < CLUSTER_NODES; node++)); do
        wait_for_links "n$node"
    done
}

# The kernel announces a link up to a second after it is up.
wait_for_links() {
    local tries
    for ((tries = 0; tries < 100; tries++)); do
        (($(on "$1" ip -o link show | grep -c ' lab.* state UP ') == ${#rates[@]})) && return
        sleep 0.03
    done
    unavailable "the rails of $1 do not come up"
}

# ------------------------------------------------------------------------------------------------------- namespaces

# After it, nothing but init may be forked first: a pid namespace ends with the first process in it.
enter() {
    local name parent
    local -a as=()
    for name in ip tc hostname unshare nsenter setpriv; do
        command -v "$name" >/dev/null ||
            unavailable "needs the program $name (Debian, Ubuntu: iproute2, hostname, util-linux; RHEL 9-likes: iproute-tc, hostname, util-linux)"
    done
    # Who may make a network is not always allowed to configure it.
    local -a try=(--net --mount --uts --pid --fork --mount-proc ip link set lo up)
    if ! unshare "${try[@]}" 2>/dev/null; then
        as=(--user --map-root-user)
        must 'no namespaces' unshare "${as[@]}" "${try[@]}"
    fi
    unset BASH_ENV
    read -r _ _ _ parent _ </proc/self/stat
    # What unshare does with users would take the signal of a parent's death back.
    exec unshare "${as[@]}" --net --mount --uts --pid setpriv --pdeathsig KILL bash "$self" --supervise "$parent" \
        "$limit" "${#changes[@]}" "${changes[@]}" "$@"
}

# leave_unless PARENT: it is killed when its parent dies, and leaves should that have died before it could ask for this.
leave_unless() {
    local parent
    read -r _ _ _ parent _ </proc/self/stat
    [[ $parent == "$1" ]] || exit 1
}

# supervise PARENT ARGUMENT...: waits for the init of the pid namespace. When init goes, the kernel ends all others, and it has
# gone when they have.
supervise() {
    local path status
    leave_unless "$1"
    trap 'exit 143' TERM HUP
    trap 'exit 130' INT
    read -r path _ </proc/self/stat
    # In the background, for a shell does not see a signal while a command runs in the foreground.
    setpriv --pdeathsig KILL bash "$self" --init "$path" "${@:2}" <&0 &
    init=$!
    trap end EXIT
    wait "$init"
    status=$? init='' # its number may be another's from here on
    return "$status"
}

end() {
    trap '' INT TERM HUP
    [[ ! $init ]] || { kill -KILL "$init" && wait "$init"; }
} 2>/dev/null

# be_init PARENT COMMAND...: as a shell it also reaps.
be_init() {
    leave_unless "$1"
    must 'no /proc of its own' mount -t proc proc /proc
    read_rails
    set_cables
    make_files
    make_network
    on head timeout --foreground -k 5 "$limit" "${@:2}"
}

PATH=$PATH:/usr/sbin:/sbin
export PATH CLUSTER_NODES=${CLUSTER_NODES-} CLUSTER_RAILS=${CLUSTER_RAILS-}
declare -A cables=()
changes=()
case ${1-} in
--supervise)
    self=${BASH_SOURCE[0]}
    supervise "${@:2}"
    exit
    ;;
--init)
    limit=$3
    changes=("${@:5:$4}")
    be_init "$2" "${@:$4+5}"
    exit
    ;;
--on)
    [[ ${2-} && -e /run/uts/$2 && $# -gt 2 ]] || wrong_usage '--on NODE COMMAND [ARG]..., inside a cluster'
    exec nsenter --net="/run/netns/$2" --uts="/run/uts/$2" -- "${@:3}"
    ;;
esac

self=$(readlink -f -- "${BASH_SOURCE[0]}")
limit=300
while [[ ${1-} == -* ]]; do
    case $1 in
    --nodes)
        [[ ${2-} =~ ^([1-9]|[1-5][0-9]|6[0-4])$ ]] || wrong_usage "--nodes '${2-}': from 1 to 64"
        nodes=$2
        ;;
    --rails) rails=${2-} ;;
    --rate) changes+=("${2-}") ;;
    --limit)
        [[ ${2-} =~ ^[1-9][0-9]{0,4}$ ]] || wrong_usage "--limit '${2-}': seconds are wanted"
        limit=$2
        ;;
    -h | --help)
        usage
        exit 0
        ;;
    *) wrong_usage "unknown option '$1': see --help" ;;
    esac
    shift $(($# > 1 ? 2 : 1))
done

if ((!$# && ${#changes[@]})) && [[ -e /run/uts/head ]]; then
    read_rails
    for change in "${changes[@]}"; do
        each_cable_of "$change" change_cable
    done
    exit
fi
(($#)) || wrong_usage 'no command: see --help'
CLUSTER_NODES=${nodes:-4} CLUSTER_RAILS=${rails:-1gbit,1gbit}
read_rails
set_cables
enter "$@"
