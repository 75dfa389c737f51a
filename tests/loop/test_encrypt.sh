#!/bin/bash
# test_encrypt.sh: faults on encrypted channels, with and without checksums: whatever happens to what is on the wire, no
# wrong byte is delivered. LOOP_KEY names the key file.
. "$(dirname "$0")/loop_lib.sh"

base="--local --rails $rails --log-dir logs --json result.json --encrypt on --key-file ${LOOP_KEY:?} --crc-limit 0"

injected() { # KIND, of both nodes together
    sed -n '/^ "faults"/,/^ ]/p' result.json >faults.json
    json_numbers faults.json "$1" | awk '{sum += $1} END {print sum + 0}'
}

run() { # LEAST KIND SPEC ARGUMENTS...
    local least=$1 kind=$2 spec=$3
    shift 3
    rm -f result.json
    # shellcheck disable=SC2086
    weft mesh --endpoints 2 --size 1M -n 16 -w 1 --mode loaded "$@" $base --log error --fault "$spec"
    pass_if "$spec $*: status $status: $(cat err)" [ "$status" -eq 0 ]
    pass_if "$spec $*: verified: $(cat out)" grep -q ' 0 wrong of .* verified; .* measured: passed' out
    pass_if "$spec $*: $(injected "$kind") $kind, not $least" [ "$(injected "$kind")" -ge "$least" ]
}

for crc in off on; do
    run 3 flips seed=7,flip_every=8M --crc "$crc"
    run 3 resets seed=7,reset_every=8M --crc "$crc" --workers split
    run 100 shortened short=1 --crc "$crc"
    run 1 stalls stall=127.0.2.1@0+300 --crc "$crc"
done

finish
