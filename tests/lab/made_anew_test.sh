#!/usr/bin/env bash
# An interface that is removed and made anew under its name while a node waits: sockets that are bound to it are bound to
# the one that is gone, so the node must listen again to be called there. Skipped where there can be no lab.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"

net=$root/scripts/lab_net.sh

other() { "$net" --node 1 "$@"; }

# make ADDRESS ADDRESS: lab1, with one of them here and the other there.
make() {
    local -a words=(dev lab1)
    [[ $1 == *:* ]] && words+=(nodad)
    ip link add lab1 type veth peer name lab1 netns "$LAB_NODE1" && ip link set lab1 up && other ip link set lab1 up &&
        ip addr replace "$1" "${words[@]}" && other ip addr replace "$2" "${words[@]}" && return
    fail "$what: lab1 cannot be made"
}

# waits TEXT COUNT: the waiting node has said so often enough, or will soon.
waits() {
    local tries
    for ((tries = 0; tries < 500; tries++)); do
        (($(grep -c -- "$1" "$log") >= $2)) && return
        kill -0 "$node" 2>/dev/null || break
        sleep 0.02
    done
    fail "$what: no '$1' in: $(cat -- "$log")"
}

# called WHAT OUR-RAILS THEIR-RAILS ADDRESS ADDRESS COMMAND...: a node that listens on lab0 alone; then COMMAND and lab1
# made anew, twice, and the node is called on both.
called() {
    local here=$2 there=$3
    what="$1, $engine"
    make "$4" "$5"
    : >"$log"
    timeout -k 5 60 "$WEFT_TEST_PROGRAM" pair --listen 10.77.0.1 --rails "$here" "${message[@]}" --log info \
        >"$log" 2>&1 </dev/null &
    node=$!
    waits 'waits on port' 1
    for times in 1 2; do
        ip link del lab1
        make "$4" "$5"
        waits 'listening on rail .* again' "$times"
    done
    run other timeout -k 5 60 "$WEFT_TEST_PROGRAM" pair --connect=10.77.0.1 --rails "$there" "${message[@]}" \
        --connect-timeout 10
    expect_status 0 "$what"
    ((status == 0)) || kill -TERM "$node" # it still waits
    wait "$node" || fail "$what: the node that was called: status $?: $(cat -- "$log")"
    ip link del lab1
}

usual=(--size 1M -n 4 -w 0 --log-dir=)
if [[ ${1-} == --inside ]]; then
    log=$scratch/log
    ip link del lab1
    for engine in epoll uring; do
        message=("${usual[@]}" --engine "$engine")
        run "$WEFT_TEST_PROGRAM" pair --local --port 0 --rails lab0 "${message[@]}"
        ((status == 77)) && echo "not on $engine: ${output%%$'\n'*}" && continue
        called 'in one subnet' lab0,lab1 lab0,lab1 10.77.0.3/24 10.77.0.4/24
        [[ -e /proc/net/if_inet6 ]] && called 'link-local' lab0,fe80::7%lab1 lab0,fe80::8%lab1 fe80::7/64 fe80::8/64
    done
    finish
fi
# A leak check wants to see itself in /proc, which is that of another pid namespace.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" LAB_RAILS=1gbit,1gbit LAB_IP=4 LAB_SUBNETS=one
run "$net" true
((status == 77)) && echo "skipped: $output" && exit 77
run "$net" env WEFT_TEST_PROGRAM="$WEFT_TEST_PROGRAM" bash "${BASH_SOURCE[0]}" --inside
echo "$output"
expect_status 0 'in the lab'
finish
