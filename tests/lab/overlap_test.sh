#!/usr/bin/env bash
# weft overlap on two nodes with a rail of 1 Gbit/s: gradients are right, a bucket goes when its layers are done, and what is
# measured is what the network allows at most. How much is hidden is not judged: that takes two cores that nobody else uses.
# The nodes are those of scripts/cluster_net.sh, which has a way to start ranks there.
# shellcheck disable=SC2016  # the programs of jq and bash have variables of their own
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
# shellcheck source=tests/cluster/cluster_lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../cluster/cluster_lib.sh"

weft=${WEFT_TEST_PROGRAM:?}
export weft scratch
command -v jq >/dev/null || { echo 'skipped: needs the program jq' && exit 77; }

run "$net" --nodes 2 --rails 1gbit --limit 150 bash -c \
    'exec "$weft" overlap --hosts n0,n1 --rsh "$CLUSTER_RSH" --rails lab0 --meeting "$scratch/meeting" "$@"' - \
    --layers 8 --layer-mb 4 --bucket-mb 8,32 --style all_reduce,server --batch 32 -n 1 -w 0 --json "$scratch/overlap.json"
skip_if_unavailable
expect_status 0 'weft overlap'
expect_text ' 0 wrong: OK' 'weft overlap'

# expect PROGRAM WHAT: of jq, about the result.
expect() {
    jq -e "$1" "$scratch/overlap.json" >/dev/null || fail "$2: $(jq -c '.cases[] | del(.timeline)' "$scratch/overlap.json")"
}

expect '.summary.verified and (.cases | length) == 4 and all(.cases[]; .wrong_elements == 0 and .verified_elements ==
    2 * 3 * 8 * 1048576)' 'every element of both ranks in three modes'
expect '[.cases[] | .buckets] == [4, 1, 4, 1]' 'buckets'
expect 'all(.cases[].timeline.overlapped; .layers as $layers | .buckets as $buckets | all(range($buckets | length);
    $buckets[.][0] >= $layers[8 / ($buckets | length) * (. + 1) - 1][1]))' 'no bucket goes before its layers are done'
expect 'all(.cases[].timeline.serial; .layers[7][1] as $over | all(.buckets[]; .[1] >= $over))' 'without overlap'
# 32 MiB at 1 Gbit/s, which the token bucket may exceed by what it holds; a server has them go there and back again.
expect 'all(.cases[]; .wall_s.communicate >= 0.25 * (if .style == "server" then 2 else 1 end))' 'faster than the rail'
finish
