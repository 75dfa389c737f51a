# shellcheck shell=bash
# cluster_lib.sh: sourced by the tests of this folder, after check.sh.
# shellcheck disable=SC2034,SC2154  # root and scratch are check.sh's; the others are for the tests

here=$root/tests/cluster
net=$root/scripts/cluster_net.sh
CLUSTER_PROBE=${CLUSTER_PROBE:-$root/build/bin/cluster_probe}

# run COMMAND...: as check.sh's, but a child of this shell: a cluster ends with its parent, should this test be killed.
run() {
    "$@" >"$scratch/run" 2>&1 </dev/null
    status=$?
    output=$(cat -- "$scratch/run")
}

skip_if_unavailable() {
    ((status != 77)) || { echo "skipped: ${output##*not available here: }" && exit 77; }
}
