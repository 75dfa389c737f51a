#!/bin/bash
# That all clients of both kinds get their answers; how long it took says nothing in a test.
# Environment: LOOP_COST, the program.
set -u

out=$("$LOOP_COST" --clients 20 --rounds 3 --trips 50 2>/dev/null) || {
    printf 'loop_cost ended with status %d: %s\n' "$?" "$out"
    exit 1
}
[[ $out == *"20 clients"*"plain "*" us, weft "*" us, ratio "* ]] || {
    printf 'not the line that was expected: %s\n' "$out"
    exit 1
}
