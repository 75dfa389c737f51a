#!/bin/bash
# test_alloc.sh: weft pair in 4 KiB chunks: four times the iterations, the same number of allocations.
. "$(dirname "$0")/loop_lib.sh"
: "${ALLOC_LIBRARY:?the preloaded library}"

count() { # ITERATIONS
    rm -f counter
    ALLOC_COUNT=$PWD/counter LD_PRELOAD=$ALLOC_LIBRARY weft pair --local --rails $rails \
        --chunk 4K --size 1M -n "$1" -w 2
    [ "$status" -eq 0 ] || fail "weft pair -n $1: status $status: $(cat err)"
    od -An -tu8 -N8 counter | tr -d ' '
}

few=$(count 64 | tail -1)
many=$(count 320 | tail -1)
echo "64 iterations: $few allocations; 320 iterations: $many"
pass_if "allocations were counted" [ "${few:-0}" -gt 100 ]
pass_if "256 MiB more in 4 KiB chunks need no more memory: $few, $many" [ $((many - few)) -le 48 ]
finish
