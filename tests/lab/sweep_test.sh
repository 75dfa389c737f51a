#!/usr/bin/env bash
# A sweep where the defaults are wrong: a long cable (5 ms each way) between hosts whose sockets may hold little, so that
# one TCP stream cannot fill it. The search has to find that several can, and what it saves has to do so again. Skipped
# where there can be no lab.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
# shellcheck source=tests/lab/lab_lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lab_lib.sh"

common=(--size 2M --inflight 8 --iters 24 --warmup 2 --check-time-ms 100 --timeout 10 --rails 'lab*')

# Runs a command of weft at both nodes: --listen at node 0, --connect with the arguments at node 1. Sets status, output.
both() { # COMMAND ARGUMENT...
    local command=$1 tries=0 port
    rm -f -- "$scratch/server"
    "$WEFT_TEST_PROGRAM" "$command" --listen "$(hosts 0 0 | head -n 1):0" --rails 'lab*' >"$scratch/server" 2>&1 &
    server=$!
    until port=$(sed -n 's/^node0 waits on port \([0-9]*\).*/\1/p' "$scratch/server" 2>/dev/null) && [[ -n $port ]]; do
        kill -0 "$server" 2>/dev/null || { fail "node0: $(cat -- "$scratch/server")" && return; }
        ((tries++ < 1000)) || { fail "node0 waits on no port" && return; }
        sleep 0.02
    done
    output=$(on 1 timeout -k 5 400 "$WEFT_TEST_PROGRAM" "$command" --connect "$(hosts 0 0 | head -n 1):$port" \
        "${common[@]}" "${@:2}" 2>&1)
    status=$?
    ended "$server" 20 || fail "$command: node0 hangs"
}

# GB/s of weft pair with a file of settings.
bandwidth() { # FILE
    both pair --config "$1" --json "$scratch/pair.json" --quiet
    expect_status 0 "weft pair with $1" >&2
    sed -n 's/^ *"median_bw_gb_per_s": \([0-9.e+-]*\).*/\1/p' "$scratch/pair.json" | head -n 1
}

inside() {
    local node one other
    for node in 0 1; do
        on "$node" sysctl -qw net.ipv4.tcp_rmem='4096 131072 1048576' net.ipv4.tcp_wmem='4096 65536 1048576' ||
            { echo 'skipped: the sizes of socket buffers cannot be set here' && exit 77; }
    done
    cut 0
    cable 0 0 0 5000
    both sweep --auto --rounds 4 --vary channels=1,2,4,8,16 --vary chunk=64K..2Mx2 --save "$scratch/best.conf" \
        --out "$scratch/sweep"
    expect_status 0 'the sweep'
    echo "$output"
    expect_text ' times as fast as the default ' 'the search finds a better point'
    cat -- "$scratch/best.conf"
    printf '' >"$scratch/default.conf"
    one=$(bandwidth "$scratch/default.conf")
    other=$(bandwidth "$scratch/best.conf")
    echo "weft pair: $one GB/s with the defaults, $other with what was saved"
    awk -v one="$one" -v other="$other" 'BEGIN { exit !(one > 0 && one <= 0.7 * other) }' ||
        fail "what was saved does not give it again: $one and $other GB/s"
    pull_cables
}

if [[ ${1-} == --inside ]]; then
    inside
    finish
fi
export LAB_RAILS=1gbit LAB_IP=4
enter_lab 600
