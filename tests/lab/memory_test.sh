#!/usr/bin/env bash
# memory_test.sh SECONDS KIB: a run with --watch-memory over a slow rail. Node 0 loses KIB a minute, and is warned of; node 1
# loses nothing, and nothing is said of it. With KIB 0 neither is. Less than three minutes are not judged. Skipped where
# there can be no lab.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
# shellcheck source=tests/lab/lab_lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lab_lib.sh"
: "${LEAK_LIBRARY:?the library to preload}"

if [[ ${1-} != --inside ]]; then
    export LAB_RAILS=100mbit LAB_IP=4
    enter_lab $(($1 * 5 / 4 + 120)) "$@" # a slow rail takes longer than was planned
fi
seconds=$2 kib=$3
cd -- "$scratch" || exit 1

LD_PRELOAD=$LEAK_LIBRARY LEAK_KIB_PER_MIN=$kib "$WEFT_TEST_PROGRAM" pair --listen --watch-memory \
    --json node0.json >server.out 2>&1 </dev/null &
server=$!
run on 1 timeout -k 5 $((seconds * 5 / 4 + 90)) "$WEFT_TEST_PROGRAM" pair --connect 10.77.0.1 --connect-timeout 20 --size 1M \
    --duration "$seconds" --check 0 --watch-memory
expect_status 0 'the run'
wait "$server" || fail "the server ends with status $?: $(<server.out)"
grep -A14 'memory watched' server.out
output=$(tr '\n' ' ' <server.out | tr -s ' ')
if ((seconds < 180)); then
    expect_text 'memory watched at node0: rss' 'a short run'
    expect_text 'too short to judge' 'a short run'
    expect_no_text WARNING: 'a short run'
elif ((kib)); then
    expect_text 'WARNING: memory of node0 grows: rss from' 'the leak'
else
    expect_no_text 'memory of node0 grows' 'no leak'
fi
expect_no_text 'memory of node1 grows' 'the other node'
grep -q '"memory_watch"' node0.json || fail 'nothing of it is in the JSON'
finish
