#!/usr/bin/env bash
# A rail that falls to a tenth of its rate in the middle of a transfer and comes back: what all rails carry follows
# within 200 ms, both ways. Shown by the interfaces' own counters, taken every 20 ms; the table goes to standard output.
# Skipped where there can be no lab.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
# shellcheck source=tests/lab/lab_lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lab_lib.sh"

rails=4 changed=1

# sample_for MILLISECONDS
sample_for() {
    local end time
    now time
    end=$((time + $1 * 1000))
    while ((time < end)); do
        sample
        sleep 0.02
        now time
    done
}

# change RATE WHAT
change() {
    "$net" --rate "$changed" "$1" || exit 1
    event "lab$changed $2"
}

# Inside the lab, in node 0: a transfer that outlasts all this, with what happens to the rail meanwhile.
transfer() {
    local server client tries
    "$WEFT_TEST_PROGRAM" pair --listen "${message[@]}" &
    server=$!
    "$net" --node 1 "$WEFT_TEST_PROGRAM" pair --connect=10.77.0.1 "${message[@]}" --quiet --connect-timeout 20 &
    client=$!
    for ((tries = 0; tries < 500; tries++)); do
        have_passed 0 10000000 && break # the first rail carries data
        sleep 0.02
    done
    sample_for 700
    change 100mbit 'falls to a tenth'
    sample_for 1000
    change 1gbit 'is back'
    sample_for 1000
    kill -0 "$server" "$client" || fail 'the transfer was over too soon'
    wait "$server" || fail "the receiving node: status $?"
    wait "$client" || fail "the sending node: status $?"
}

# expect_rate LEAST WHAT FROM TO [RAIL]
expect_rate() {
    local got
    got=$(rate "${@:3}")
    echo "$2: $got Mbit/s (at least $1)"
    ((got >= $1)) || fail "$2: $got Mbit/s, at least $1 were expected"
}

message=(--src node0:host0 --dst node1:host0 --size 64M --inflight 2 --iters 28 --warmup 2 --check 0 --log-dir=)
if [[ ${1-} != --inside ]]; then
    LAB_RAILS=$(printf '1gbit,%.0s' $(seq "$rails"))
    export LAB_RAILS=${LAB_RAILS%,} LAB_IP=4
    enter_lab 100
fi
transfer
show_table 100
{ read -r fell _ && read -r rose _; } <"$events" || fail 'the rates were not changed'
# Of 3970 and 3080 Mbit/s of payload. The bounds are far below: the machine has other things to do. A total that follows
# the slow rail instead would be some 400.
expect_rate 2400 'before' "$((fell - 400000))" "$((fell - 100000))"
expect_rate 1900 '200 ms after the fall' "$((fell + 200000))" "$((fell + 500000))"
expect_rate 1900 'later' "$((fell + 500000))" "$((rose - 100000))"
expect_rate 2400 '200 ms after the rise' "$((rose + 200000))" "$((rose + 500000))"
expect_rate 2400 'later' "$((rose + 500000))" "$((rose + 900000))"
expect_rate 500 'the rail itself, 200 ms after the rise' "$((rose + 200000))" "$((rose + 500000))" "$changed"
slow=$(rate "$((fell + 200000))" "$((fell + 500000))" "$changed")
((slow > 40 && slow < 150)) || fail "the rail carried $slow Mbit/s after the fall: about 100 were expected"
finish
