#!/bin/bash
# test_lo_counters.sh: the bytes that a run reports went over the loopback interface: its own counters say so. In a
# network namespace of its own, so that nobody else's traffic counts; where there may be none, skipped.
if [ "${1:-}" != inside ]; then
    for user in "" -r; do
        # shellcheck disable=SC2086
        if unshare $user -n true 2>/dev/null; then
            exec unshare $user -n "$(readlink -f "$0")" inside
        fi
    done
    echo "skipped: no network namespaces here"
    exit 77
fi
. "$(dirname "$0")/loop_lib.sh"

"$LOOP_TOOL" lo-up || skip "the loopback interface cannot be raised"

# Received and sent bytes of lo.
lo_bytes() {
    sed -n 's/^ *lo: *//p' /proc/net/dev | awk '{print $1, $9}'
}

check() { # SLACK OPTIONS...
    local slack=$1 rx0 tx0 rx1 tx1 reported
    shift
    rm -f result.json
    read -r rx0 tx0 <<<"$(lo_bytes)"
    weft mesh --local --rails $rails -w 0 --check 0 --json result.json "$@"
    read -r rx1 tx1 <<<"$(lo_bytes)"
    pass_if "weft mesh $*: status $status: $(cat err)" [ "$status" -eq 0 ]
    reported=$(paste -d' ' <(json_numbers result.json size_bytes) <(json_numbers result.json iters) |
        awk '{sum += $1 * $2} END {printf "%.0f", sum}')
    echo "$*: reported $reported, received $((rx1 - rx0)), sent $((tx1 - tx0))"
    pass_if "something was reported" [ "$reported" -gt 1000000 ]
    pass_if "what was reported was received" [ "$reported" -le $((rx1 - rx0)) ]
    pass_if "what was reported was sent" [ "$reported" -le $((tx1 - tx0)) ]
    pass_if "not much more was received" [ $((rx1 - rx0)) -le $((reported * 5 / 4 + slack)) ]
}

check 4000000 --endpoints 2 --size 64K,1M -n 10
check 4000000 --endpoints 2 --size 4M -n 4 --chunk 64K --mode loaded
check 20000000 --endpoints 2 --size 4K -n 200 --mode isolated
finish
