#!/usr/bin/env bash
# lab_net.sh: two machines in one. Two network namespaces, node 0 and node 1, are joined by veth pairs, the rails, each
# held to its rate by a token bucket at both ends; commands run in them.
#
# Nothing outlives this script, however it ends: the namespaces have no names, only this process and its children hold
# them, and the children live in a pid namespace whose init dies with this process. What is mounted inside is seen inside
# only.
set -u

LAB_RAILS=${LAB_RAILS:-1gbit,1gbit,1gbit,1gbit}
LAB_IP=${LAB_IP:-46}
LAB_SUBNETS=${LAB_SUBNETS:-each}

usage() {
    cat <<'END'
usage: lab_net.sh [--counters FILE] COMMAND [ARG]...
       lab_net.sh [--counters FILE] SERVER [ARG]... : CLIENT [ARG]...
       lab_net.sh --address
   and inside:
       lab_net.sh --node 0|1 COMMAND [ARG]...
       lab_net.sh --rate RAIL RATE

Makes the lab, runs COMMAND in node 0, and takes the lab down with everything that still runs in it. With two commands
the first runs in node 0 and, as soon as something listens there, the second in node 1.
Works as root, and without where the system allows user namespaces; also inside another namespace.

  --node N        runs COMMAND in the other node, from inside the lab
  --rate N RATE   gives rail N another rate, both ways, from inside the lab
  --counters FILE writes what went through each interface, as CSV, before the lab goes
  --address       prints the address of node 0 on the first rail

  LAB_RAILS=RATE,...  the rails, as kbit, mbit or gbit (default 1gbit,1gbit,1gbit,1gbit)
  LAB_IP=4|6|46       the address families of the rails (default 46)
  LAB_SUBNETS=each|one  a subnet for each rail, or one for all (default each)

Rail N is the interface labN in both nodes: 10.77.N.1 and fd77:77:77:N::1 in node 0, ...2 in node 1, MTU 9000. In one
subnet: 10.77.0.(2N+1) and fd77:77:77::(2N+1), ...(2N+2) in node 1.

Exit status: that of COMMAND; of two that of the server, unless it is 0: then the client's; 2 wrong usage; 77 the lab
cannot be made here, with the reason.
END
}

say() { printf 'lab_net.sh: %s\n' "$*" >&2; }
wrong_usage() {
    say "$*"
    exit 2
}
unavailable() {
    say "not available here: $*"
    exit 77
}

# Its folder, without a fork: see enter.
here=${BASH_SOURCE[0]}
[[ $here == */* ]] || here=./$here
# shellcheck source=scripts/rates.sh
. "${here%/*}/rates.sh"

# must WHAT COMMAND...
must() {
    local what=$1 error
    shift
    error=$("$@" 2>&1 >/dev/null) || unavailable "$what: ${error%%$'\n'*}"
}

# on NODE COMMAND...
on() {
    local path=LAB_NODE$1
    nsenter --net="${!path}" -- "${@:2}"
}

# address NODE RAIL FAMILY
address() {
    case $3$LAB_SUBNETS in
    4each) printf '10.77.%d.%d\n' "$2" $(($1 + 1)) ;;
    6each) printf 'fd77:77:77:%x::%d\n' "$2" $(($1 + 1)) ;;
    4one) printf '10.77.0.%d\n' $((2 * $2 + $1 + 1)) ;;
    6one) printf 'fd77:77:77::%x\n' $((2 * $2 + $1 + 1)) ;;
    esac
}

# ------------------------------------------------------------------------------------------------------- set-up

# Sets rails.
parse_rails() {
    local rate
    IFS=, read -r -a rails <<<"${LAB_RAILS,,}," # `read` drops the last comma, and would drop the user's
    ((${#rails[@]} <= 16)) || wrong_usage "LAB_RAILS=$LAB_RAILS: more than 16 rails"
    for rate in "${rails[@]}"; do
        parse_rate "$rate"
    done
    [[ $LAB_IP == 4 || $LAB_IP == 6 || $LAB_IP == 46 ]] || wrong_usage "LAB_IP=$LAB_IP: must be 4, 6 or 46"
    [[ $LAB_SUBNETS == each || $LAB_SUBNETS == one ]] || wrong_usage "LAB_SUBNETS=$LAB_SUBNETS: must be each or one"
}

# shape VERB RAIL RATE: at both ends.
shape() {
    local node burst limit
    bucket "$1" "$3"
    for node in 0 1; do
        must 'no tbf' on "$node" tc qdisc "$1" dev "lab$2" root tbf rate "$3" burst "$burst" limit "$limit"
    done
}

add_rail() {
    local rail=$1 node family
    must 'no veth' ip link add "lab$rail" mtu "$frame" type veth \
        peer name "lab$rail" mtu "$frame" netns "$LAB_NODE1"
    shape add "$rail" "${rails[rail]}"
    for node in 0 1; do
        must "lab$rail stays down" on "$node" ip link set "lab$rail" up
    done
    for node in 0 1; do
        for family in 4 6; do
            [[ $LAB_IP == *$family* ]] && add_address "$node" "$rail" "$family"
        done
    done
}

add_address() {
    local -a words=("$(address "$@")")
    case $3 in
    4) words[0]+=/24 ;;
    6) words[0]+=/64 words+=(nodad) ;;
    esac
    # Without IPv6 the lab is still one.
    [[ $3$LAB_IP != 646 || -e /proc/net/if_inet6 ]] || return 0
    must "no IPv$3" on "$1" ip "-$3" addr add "${words[@]}" dev "lab$2"
}

# The kernel announces a link up to a second after it is up.
wait_for_links() {
    local node tries
    for node in 0 1; do
        for ((tries = 0; tries < 100; tries++)); do
            (($(on "$node" ip -o link show | grep -c ' lab.* state UP ') == ${#rails[@]})) && continue 2
            sleep 0.03
        done
        unavailable "the rails do not come up"
    done
}

set_up() {
    local node rail
    for node in 0 1; do
        must 'no loopback' on "$node" ip link set lo up
    done
    for ((rail = 0; rail < ${#rails[@]}; rail++)); do
        add_rail "$rail"
    done
    wait_for_links
}

write_counters() {
    local node rail dropped
    echo 'node,rail,rate,rx_bytes,tx_bytes,dropped'
    for node in 0 1; do
        for ((rail = 0; rail < ${#rails[@]}; rail++)); do
            dropped=$(on "$node" tc -s qdisc show dev "lab$rail" | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p')
            on "$node" cat /proc/net/dev | sed "s/:/ /" | awk -v OFS=, -v node="node$node" -v rail="lab$rail" \
                -v rate="${rails[rail]}" -v dropped="$dropped" '$1 == rail { print node, rail, rate, $2, $10, dropped }'
        done
    done
}

# ------------------------------------------------------------------------------------------------------- commands

# A signal is passed on, and so is a second one.
children=()
stopping=0 # else one more than the second in which the first signal came
stop() {
    ((${#children[@]} == 0)) || kill -TERM "${children[@]}" 2>/dev/null
    ((stopping)) || stopping=$((SECONDS + 1))
}

running() {
    local child
    for child in "${children[@]}"; do
        kill -0 "$child" 2>/dev/null && return
    done
    return 1
}

# Until all have ended, which should be soon: what has not by itself, after some seconds, is told to, and then killed.
# Only this shell can: what it starts is in the pid namespace, and does not see these numbers.
end_all() {
    local late=$((SECONDS + 10))
    while running; do
        ((stopping || SECONDS < late)) || stop
        ((stopping && SECONDS > stopping + 2)) && kill -KILL "${children[@]}" 2>/dev/null
        sleep 0.05
    done
}

# start NODE COMMAND...: in the background, for a shell does not see a signal while a command runs in the foreground.
start() {
    local path=LAB_NODE$1
    ((stopping)) && exit 1
    nsenter --net="${!path}" -- "${@:2}" <&0 7<&- 8<&- &
    children+=("$!")
}

# status_of PID: also where a signal interrupts the waiting.
status_of() {
    until wait "$1" || ! kill -0 "$1" 2>/dev/null; do
        ((stopping)) && end_all
    done
    wait "$1"
}

listening() {
    grep -qs ': [0-9A-F]*:[0-9A-F]* [0-9A-F]*:0000 0A ' /proc/net/tcp /proc/net/tcp6
}

# A server that refuses to start should say so alone.
run_pair() {
    local tries server client
    start 0 "${first[@]}"
    for ((tries = 0; tries < 1000; tries++)); do
        listening && break
        kill -0 "${children[0]}" 2>/dev/null || break
        sleep 0.02
    done
    if ! kill -0 "${children[0]}" 2>/dev/null; then
        status_of "${children[0]}"
        return
    fi
    start 1 "${second[@]}" </dev/null
    # The other one should notice by itself that the first to end has failed.
    wait -n || end_all
    status_of "${children[0]}"
    server=$?
    status_of "${children[1]}"
    client=$?
    return $((server ? server : client))
}

run_commands() {
    if ((${#second[@]})); then
        run_pair
    else
        start 0 "${first[@]}"
        status_of "${children[0]}"
    fi
}

# Sets first and second: the commands before and behind ':'.
split_commands() {
    first=() second=()
    while (($#)) && [[ $1 != : ]]; do
        first+=("$1")
        shift
    done
    (($#)) && second=("${@:2}")
    ((${#first[@]} && (!$# || ${#second[@]}))) || wrong_usage 'no command: see --help'
}

# ------------------------------------------------------------------------------------------------------- namespaces

# Three lives of one process: it leaves for node 1 and opens it as descriptor 8, goes on to node 0, which is 7, and is
# then the parent of all. Before `hold` nothing may be forked: a pid namespace ends with the first process in it.
enter() {
    local name
    local -a as=()
    for name in ip tc unshare nsenter setpriv awk; do
        command -v "$name" >/dev/null ||
            unavailable "needs the program $name (Debian, Ubuntu: iproute2, util-linux; RHEL 9-likes: iproute-tc, util-linux)"
    done
    # Who may make a network is not always allowed to configure it.
    local -a try=(--net --pid --mount --fork ip link set lo up)
    if ! unshare "${try[@]}" 2>/dev/null; then
        as=(--user --map-root-user)
        must 'no network namespaces' unshare "${as[@]}" "${try[@]}"
    fi
    unset BASH_ENV
    exec unshare "${as[@]}" --net --pid --mount bash "$self" --in-node1 "$counters" "$@"
}

# The init of the pid namespace: when it goes, the kernel ends all others. It goes with its parent, and at once should
# that have died before it could ask to be told.
hold() {
    local path
    read -r path _ </proc/self/stat
    # shellcheck disable=SC2016  # expanded by the other shell
    setpriv --pdeathsig KILL bash -c \
        'read -r _ _ _ parent _ </proc/self/stat && [[ $parent == "$1" ]] && exec sleep infinity' init "$path" \
        </dev/null >/dev/null 2>&1 7<&- 8<&- &
    export LAB_NODE0=/proc/$path/fd/7 LAB_NODE1=/proc/$path/fd/8 LAB_RAILS LAB_IP
}

live() {
    local status
    trap stop INT TERM HUP
    hold
    parse_rails
    split_commands "$@"
    set_up
    run_commands
    status=$?
    if [[ -n $counters ]] && ! { write_counters >"$counters"; } 2>/dev/null && ((status == 0)); then
        say "cannot write $counters"
        status=1
    fi
    return "$status"
}

PATH=$PATH:/usr/sbin:/sbin
case ${1-} in
--in-node1)
    exec 8</proc/self/ns/net
    exec unshare --net bash "${BASH_SOURCE[0]}" --in-node0 "${@:2}"
    ;;
--in-node0)
    exec 7</proc/self/ns/net
    counters=$2
    live "${@:3}"
    exit
    ;;
--node | --rate)
    [[ -n ${LAB_NODE0-} && -n ${LAB_NODE1-} ]] || wrong_usage "$1 is for commands inside the lab"
    if [[ $1 == --node ]]; then
        [[ ${2-} == [01] && $# -gt 2 ]] || wrong_usage '--node 0|1 COMMAND [ARG]...'
        path=LAB_NODE$2
        exec nsenter --net="${!path}" -- "${@:3}"
    fi
    [[ ${2-} =~ ^[0-9]+$ && $# == 3 ]] || wrong_usage '--rate RAIL RATE'
    parse_rate "$3"
    shape change "$2" "$3"
    exit
    ;;
esac

self=$(readlink -f -- "${BASH_SOURCE[0]}")
counters=''
while [[ ${1-} == -* ]]; do
    case $1 in
    --counters)
        [[ -n ${2-} ]] || wrong_usage '--counters FILE'
        counters=$2
        shift
        ;;
    --address)
        address 0 0 "${LAB_IP:0:1}"
        exit 0
        ;;
    -h | --help)
        usage
        exit 0
        ;;
    *) wrong_usage "unknown option '$1': see --help" ;;
    esac
    shift
done
split_commands "$@"
parse_rails
enter "$@"
