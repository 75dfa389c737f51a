#!/usr/bin/env bash
# A rail that falls to a tenth of its rate in the middle of a transfer and comes back: what all rails carry follows
# within 200 ms, both ways. Shown by the interfaces' own counters, taken every 20 ms; the table goes to standard output.
# Skipped where there can be no lab.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"

net=$root/scripts/lab_net.sh
rails=4 changed=1

# now: microseconds.
now() { printf -v "$1" '%s' "${EPOCHREALTIME/[.,]/}"; }

# sample: a line "time, bytes sent by each rail".
sample() {
    local time name line
    local -a bytes=() words
    now time
    while read -r line; do
        name=${line%%:*}
        read -r -a words <<<"${line#*:}"
        [[ $name == lab* ]] && bytes[${name#lab}]=${words[8]}
    done </proc/net/dev
    printf '%s %s\n' "$time" "${bytes[*]}"
}

# sample_for MILLISECONDS
sample_for() {
    local end time
    now time
    end=$((time + $1 * 1000))
    while ((time < end)); do
        sample >>"$samples"
        sleep 0.02
        now time
    done
}

# change RATE: and writes down when it was done.
change() {
    local time
    "$net" --rate "$changed" "$1" || exit 1
    now time
    echo "$time" >>"$changes"
}

# Inside the lab, in node 0: a transfer that outlasts all this, with what happens to the rail meanwhile.
transfer() {
    local server client tries
    "$WEFT_TEST_PROGRAM" pair --listen "${message[@]}" &
    server=$!
    "$net" --node 1 "$WEFT_TEST_PROGRAM" pair --connect=10.77.0.1 "${message[@]}" --quiet --connect-timeout 20 &
    client=$!
    for ((tries = 0; tries < 500; tries++)); do
        [[ $(sample) =~ \ [0-9]{8,} ]] && break # the first rail carries data
        sleep 0.02
    done
    sample_for 700
    change 100mbit
    sample_for 1000
    change 1gbit
    sample_for 1000
    kill -0 "$server" "$client" || echo 'the transfer was over too soon'
    wait "$server" || echo "the receiving node: status $?"
    wait "$client" || echo "the sending node: status $?"
}

# table: the rates of all rails between the samples, in Mbit/s, in steps of about 100 ms.
table() {
    awk -v first="$(sed -n 1p "$changes")" -v second="$(sed -n 2p "$changes")" '
        function show(  i, text, sum) {
            for (i = 2; i <= NF; i++) {
                sum += ($i - last[i]) * 8 / ($1 - last[1])
                text = text sprintf(" %7.0f", ($i - last[i]) * 8 / ($1 - last[1]))
            }
            printf "%7.0f ms %s %8.0f\n", ($1 - began) / 1000, text, sum
        }
        NR == 1 { began = $1; print "      time    lab0    lab1    lab2    lab3      all   (Mbit/s)" }
        NR > 1 && $1 >= last[1] + 100000 { show() }
        first && $1 >= first { print "           lab1 falls to a tenth"; first = 0 }
        second && $1 >= second { print "           lab1 is back"; second = 0 }
        NR == 1 || $1 >= last[1] + 100000 { for (i = 1; i <= NF; i++) last[i] = $i }' "$samples"
}

# rate FROM TO [RAIL]: Mbit/s between two times, of all rails or of one.
rate() {
    awk -v from="$1" -v to="$2" -v rail="${3:--1}" '
        { sum = 0; for (i = 2; i <= NF; i++) if (rail < 0 || i == rail + 2) sum += $i }
        $1 >= from && !begun { begun = $1; base = sum }
        $1 <= to { end = $1; last = sum }
        END { printf "%d\n", (end > begun) ? (last - base) * 8 / (end - begun) : 0 }' "$samples"
}

# expect_rate LEAST WHAT FROM TO [RAIL]
expect_rate() {
    local got
    got=$(rate "${@:3}")
    echo "$2: $got Mbit/s (at least $1)"
    ((got >= $1)) || fail "$2: $got Mbit/s, at least $1 were expected"
}

message=(--src node0:host0 --dst node1:host0 --size 64M --inflight 2 --iters 28 --warmup 2 --check 0 --log-dir=)
if [[ ${1-} == --inside ]]; then
    samples=$2 changes=$3
    transfer
    finish
fi
samples=$scratch/samples changes=$scratch/changes
LAB_RAILS=$(printf '1gbit,%.0s' $(seq "$rails"))
export LAB_RAILS=${LAB_RAILS%,} LAB_IP=4
run "$net" true
((status == 77)) && echo "skipped: $output" && exit 77
run "$net" env WEFT_TEST_PROGRAM="$WEFT_TEST_PROGRAM" bash "${BASH_SOURCE[0]}" --inside "$samples" "$changes"
expect_status 0 'the transfer'
expect_no_text 'too soon' 'the transfer'
expect_no_text 'status' 'the transfer'
table
{ read -r fell && read -r rose; } <"$changes" || fail 'the rates were not changed'
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
