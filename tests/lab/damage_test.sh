#!/usr/bin/env bash
# A cable that damages what goes through it, unseen by TCP (bad_cable.c). With crc = on every damage is caught, charged to
# its rail, and made good over the other; without, the benchmark's own check finds wrong bytes, so that it can be
# believed where it finds none. Skipped where there can be no lab.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
# shellcheck source=tests/lab/lab_lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lab_lib.sh"

# transfer OPTION...: verified to the last byte; sets status and output, the server's.
transfer() {
    local all=(--src node0:host0 --dst node1:host0 --size 32M --inflight 4 --iters 4 --warmup 0 --rails 'lab*' "$@")
    all+=(--check all --log-dir= --timeout 10)
    rm -f -- "$scratch/result.json"
    "$net" --node 1 "$WEFT_TEST_PROGRAM" pair --connect="$(hosts 0 0 | head -n 1)" "${all[@]}" >"$scratch/client" 2>&1 &
    client=$!
    timeout -k 5 60 "$WEFT_TEST_PROGRAM" pair --listen "${all[@]}" --json "$scratch/result.json" >"$scratch/server" 2>&1
    status=$?
    ended "$client" 20 || fail "$*: the client hangs"
    output=$(cat -- "$scratch/server" "$scratch/client")
}

# expect_caught WHAT
expect_caught() {
    pull_cables
    expect_status 0 "$1"
    expect_text ' 0 wrong of ' "$1"
    ((damaged > 0)) || fail "$1: the cable damaged nothing"
    echo "$1: $damaged segments damaged; of lab1 $(rail_sum damaged 1) chunks, $(rail_sum failures 1) channels," \
        "$(rail_sum resent_bytes 1) bytes resent; of lab0 $(rail_sum damaged 0) chunks"
}

inside() {
    local rail
    for rail in 0 1; do
        cut "$rail"
    done

    cable 0 0 0
    cable 1 0 0
    transfer --crc off
    pull_cables
    expect_status 0 'good cables'
    expect_text ' 0 wrong of ' 'good cables'
    ((damaged == 0)) || fail "good cables damaged $damaged segments"

    cable 0 0 0
    cable 1 $((4 << 20)) 4096
    transfer --crc off
    pull_cables
    expect_status 1 'without crc'
    [[ $output =~ ([1-9][0-9]*)' wrong of ' ]] || fail "without crc no wrong byte is found: $output"
    echo "without crc: $damaged segments damaged, ${BASH_REMATCH[1]-no} wrong bytes found"

    cable 0 0 0
    cable 1 $((4 << 20)) 4096
    transfer --crc on --crc-limit 0
    expect_caught 'one bad cable'
    (($(rail_sum damaged 1) > 0)) || fail 'one bad cable: rails[].damaged does not tell'
    (($(rail_sum damaged 0) == 0)) || fail 'one bad cable: the other rail is charged'

    cable 0 0 0
    cable 1 $((1 << 20)) 4096
    transfer --crc on --crc-limit 4
    expect_caught 'a cable that is not worth it'
    expect_text ' is retired: it has damaged ' 'a cable that is not worth it'
    [[ $(totals | sed -n '/"name": "lab1"/,/}/p') == *'"retired": true'* ]] || fail 'rails[].retired does not tell'

    cable 0 $((8 << 20)) 4096
    cable 1 $((8 << 20)) 4096
    transfer --crc on --crc-limit 0
    expect_caught 'two bad cables'

    # Headers, acknowledgements and what is said before there is a session, too.
    cable 0 0 0
    cable 1 $((1 << 20)) 1
    transfer --crc on --crc-limit 0
    expect_caught 'a cable that damages all kinds'
}

if [[ ${1-} == --inside ]]; then
    inside
    finish
fi
export LAB_RAILS=1gbit,1gbit LAB_IP=${LAB_IP:-4}
enter_lab 300
