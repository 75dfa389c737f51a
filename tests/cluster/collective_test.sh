#!/usr/bin/env bash
# weft collective on several nodes: ranks that it starts there itself (--hosts), and ranks that a launcher has started. No
# figure counts; others than Weft are n/a where they are not installed.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
# shellcheck source=tests/cluster/cluster_lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/cluster_lib.sh"

weft=${WEFT_TEST_PROGRAM:?}
export weft scratch root
meeting=$scratch/meeting
quick=(--rails 'lab0,lab1' --size '1K,300K' -n 3 --op 'all_reduce,all_gather')

# shellcheck disable=SC2016  # expanded inside
run "$net" --nodes 3 bash -c 'exec "$weft" collective --hosts n0,n1,n2 --rsh "$CLUSTER_RSH" --meeting "$scratch/hosts" "$@"' \
    - --processes 2,3 --json "$scratch/hosts.json" "${quick[@]}"
skip_if_unavailable
expect_status 0 --hosts
expect_text '# weft, as installed, 2 ranks' --hosts
expect_text '# weft, as installed, 3 ranks' --hosts
expect_text '# Out of bounds values: 0 OK' --hosts
grep -q '/run/rsh n0 .*--member .*0/3/' "$scratch/hosts.json" || fail 'the command of a rank is not in the result'

# A host that cannot be reached is named, and ends it.
# shellcheck disable=SC2016
run "$net" --nodes 2 bash -c 'exec "$weft" collective --hosts n0,n7 --rsh "$CLUSTER_RSH" --meeting "$scratch/none" "$@"' \
    - --set timeout=5 "${quick[@]}"
expect_status 1 'a host that is not there'
expect_text 'rank 1: ' 'a host that is not there'

run bash "$here/nodes.sh" --nodes 3 torchrun "$weft" collective --processes found --meeting "$meeting" "${quick[@]}"
expect_status 0 'ranks of torchrun'
expect_text '# weft, as installed, 3 ranks' 'ranks of torchrun'
(($(grep -c '^# all_reduce$' <<<"$output") == 1)) || fail "more than one rank has printed: $output"

# Nothing that the ranks have started is left; who they are is not known without a meeting.
run env WEFT_LOG=error RANK=0 WORLD_SIZE=2 "$weft" collective --processes found --rails 127.0.0.1
expect_status 2 'ranks that cannot meet'
expect_text 'MASTER_ADDR' 'ranks that cannot meet'
finish
