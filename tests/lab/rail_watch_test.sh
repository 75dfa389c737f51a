#!/usr/bin/env bash
# A node that waits, and what becomes of its rails meanwhile: it notices by itself that an interface goes down, loses its
# carrier or an address, or is removed, and that it is back. rail_timeout_ms is an hour, so that the kernel must have told;
# then the kernel is not allowed to, and it is short. Skipped where there can be no lab.
# shellcheck disable=SC2317  # what `soon` and `step` call is called
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"

net=$root/scripts/lab_net.sh
four=10.77.1.1 six=fd77:77:77:1::1 near=fe80::77
rails=("$four" "$six" "$near%lab1") # all on one interface

# ---------------------------------------------------------------------------------------------------- the node

# soon COMMAND...: it is true, at last.
soon() {
    local tries
    for ((tries = 0; tries < 500; tries++)); do
        "$@" && return 0
        kill -0 "$node" 2>/dev/null || return 1
        sleep 0.02
    done
    return 1
}

# start WHAT COMMAND...: sets node. It watches before it says that it waits.
start() {
    what=$1 seen=0
    shift
    : >"$log" # at once: the node before this one has said the same
    timeout -k 5 100 "$@" pair --listen --port 0 --log info --log-dir= \
        --rails "lab0,127.0.3.1,$(IFS=, && echo "${rails[*]}")" >"$log" 2>&1 </dev/null &
    node=$!
    soon grep -q 'waits on port' "$log" || fail "$what: $(cat -- "$log")"
}

# stop: the rails to which nothing happened have not been called anything.
stop() {
    kill -TERM "$node"
    wait "$node"
    status=$?
    output=$(cat -- "$log")
    expect_status 1 "$what: the end"
    expect_text 'interrupted by SIGTERM' "$what: the end"
    expect_no_text 'rail lab0' "$what"
    expect_no_text 'rail 127' "$what"
}

# step COMMAND...: what is expected next follows from this.
step() {
    seen=$(grep -c '' "$log")
    now=$*
    "$@" || fail "$what: $now"
}

said() { tail -n "+$((seen + 1))" "$log" | grep -qxF -- "$1"; }

# expect_said LEVEL END RAIL...: for each rail the line "weft[LEVEL] rail RAIL END".
expect_said() {
    local rail
    for rail in "${@:3}"; do
        soon said "weft[$1] rail $rail $2" || fail "$what: $now: no '$2' of $rail in: $(cat -- "$log")"
    done
}
expect_down() { expect_said warn "is down: $1" "${@:2}"; }
expect_still_down() { expect_said info "is still down: $1" "${@:2}"; }
expect_back() { expect_said info 'is back' "$@"; }

# ---------------------------------------------------------------------------------------------------- its interface

# addresses INTERFACE: all of them; the kernel may have kept those of IPv4.
addresses() {
    ip addr replace "$four/24" dev "$1" && ip -6 addr replace "$six/64" dev "$1" nodad &&
        ip -6 addr replace "$near/64" dev "$1" nodad
}
up() { ip link set "$1" up && addresses "$1"; }
other_end() { "$net" --node 1 ip link set lab1 "$1"; }
make() {
    ip link add lab1 type veth peer name lab1 netns "$LAB_NODE1" && up lab1 && other_end up
}
make_anew() { ip link del lab1 && make; }

whole_life() {
    step ip link set lab1 down
    expect_down 'its interface is down' "${rails[@]}"
    step up lab1
    expect_back "${rails[@]}"

    step ip addr del "$four/24" dev lab1
    expect_down 'its interface does not hold its address' "$four"
    step ip addr add "$four/24" dev lab1
    expect_back "$four"
    step ip -6 addr del "$six/64" dev lab1
    expect_down 'its interface does not hold its address' "$six"
    step ip -6 addr add "$six/64" dev lab1 # not nodad: the kernel asks around first
    expect_still_down 'its address is not known to be its own alone' "$six"
    expect_back "$six"
    step ip -6 addr del "$near/64" dev lab1
    expect_down 'its interface does not hold its address' "$near%lab1"
    step ip -6 addr add "$near/64" dev lab1 nodad
    expect_back "$near%lab1"

    step other_end down
    expect_down 'its interface has no carrier' "${rails[@]}"
    step other_end up
    expect_back "${rails[@]}"

    step ip link del lab1
    expect_down 'its interface is gone' "${rails[@]}"
    step make
    expect_back "${rails[@]}"
    step make_anew # also where that takes no longer than from one look to the next
    expect_down 'its interface is gone' "${rails[@]}"
    expect_back "${rails[@]}"
    step ip link set lab1 down # only then may it get a new name; a node that looks late would not see it down
    expect_down 'its interface is down' "${rails[@]}"
    step ip link set lab1 name other1
    soon said "weft[info] the interface of rail $four is called other1 now" || fail "$what: $now: $(cat -- "$log")"
    step up other1
    expect_back "${rails[@]}"
    step ip link del other1
    expect_down 'its interface is gone' "${rails[@]}"
    make || fail "$what: the interface cannot be made again"
}

inside() {
    local engine tries
    for engine in epoll uring; do
        run "$WEFT_TEST_PROGRAM" pair --local --engine "$engine" --port 0 --rails lab0 --size 8 -n 1 --log-dir=
        ((status == 77)) && echo "not on $engine: ${output%%$'\n'*}" && continue
        expect_status 0 "$engine"
        expect_no_text 'rails: looked at' "$engine"
        start "$engine" env WEFT_RAIL_TIMEOUT_MS=3600000 WEFT_ENGINE="$engine" "$WEFT_TEST_PROGRAM"
        whole_life
        stop
    done

    # In trouble from the start: both addresses are this node's own, so that the messages arrive all the same.
    other_end down
    for ((tries = 0; tries < 500; tries++)); do
        [[ $(ip link show lab1) == *NO-CARRIER* ]] && break
        sleep 0.02
    done
    run "$WEFT_TEST_PROGRAM" pair --local --port 0 --rails lab0,lab1 --size 8 -n 1 --log-dir=
    expect_status 0 'a rail without a carrier at the start'
    expect_text 'rail lab1 is down: its interface has no carrier' 'a rail without a carrier at the start'
    other_end up

    local -a denied=("$LOOP_TOOL" deny-news 1 env WEFT_RAIL_TIMEOUT_MS=100 "$WEFT_TEST_PROGRAM")
    run "${denied[@]}" pair --local --port 0 --rails lab0 --size 8 -n 1 --log-dir=
    ((status == 77)) && echo "no filter can be set here: $output" && return
    expect_status 0 'by the timer'
    output=$(tr -s ' \n' ' ' <<<"$output") # lines are broken anywhere
    expect_text 'rails: looked at every 50 ms, the kernel does not tell of their changes: Operation not permitted' \
        'by the timer'
    start 'by the timer' "${denied[@]}"
    step ip addr del "$four/24" dev lab1
    expect_down 'its interface does not hold its address' "$four"
    step ip link set lab1 down
    expect_still_down 'its interface is down' "$four"
    expect_down 'its interface is down' "$six" "$near%lab1"
    step up lab1
    expect_back "${rails[@]}"
    stop
}

if [[ ${1-} == --inside ]]; then
    log=$scratch/log
    [[ -e /proc/net/if_inet6 ]] || { echo 'skipped: this kernel has no IPv6' && exit 77; }
    addresses lab1 || fail 'no addresses'
    inside
    finish
fi
# A leak check wants to see itself in /proc, which is that of another pid namespace.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
run "$net" true
((status == 77)) && echo "skipped: $output" && exit 77
run env LAB_RAILS=1gbit,1gbit "$net" env WEFT_TEST_PROGRAM="$WEFT_TEST_PROGRAM" LOOP_TOOL="$LOOP_TOOL" \
    bash "${BASH_SOURCE[0]}" --inside
echo "$output"
((status == 77)) && exit 77
expect_status 0 'in the lab'
finish
