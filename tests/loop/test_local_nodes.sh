#!/bin/bash
# test_local_nodes.sh: a node of weft mesh --local --nodes that dies before all have met ends the others at once, is named
# with its end, and nothing is left.
. "$(dirname "$0")/loop_lib.sh"
: "${DIE_LIBRARY:?the library that ends a node}"
export WEFT_CONNECT_TIMEOUT=50 # longer than weft() lets a run take

# dead NODE WORDS VARIABLE=VALUE...: the run, whose node dies
dead() {
    local node=$1 words=$2
    shift 2
    limit=40
    env "$@" LD_PRELOAD="$DIE_LIBRARY" DIE_IF="--rank=$node" timeout -k 5 $limit "$WEFT" mesh --local --nodes 4 \
        --endpoints 1 --size 1K -n 2 --json dead.json >out 2>err </dev/null
    status=$?
    pass_if "node$node, $*: status $status: $(cat err)" [ "$status" -eq 1 ]
    pass_if "node$node, $*: the result names it: $(cat dead.json)" grep -q "\"error\": \"$words\"" dead.json
    pass_if "node$node, $*: as what is lost: $(grep -A5 cut_short dead.json)" \
        grep -Pzoq "\"node\": \"node$node\",\s*\"by\": \"loss\"" dead.json
    pass_if "node$node, $*: it is said: $(cat err)" grep -Fqx "weft: $words" err
    nothing_left || fail "node$node, $*: something is left"
}

dead 2 'node2 was ended by signal 9 (Killed)' DIE_SIGNAL=9
dead 3 'node3 ended with status 7' DIE_STATUS=7
dead 1 'node1 ended with status 7' DIE_STATUS=7

finish
