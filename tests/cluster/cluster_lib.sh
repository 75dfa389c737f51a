# shellcheck shell=bash
# cluster_lib.sh: sourced by the tests of this folder, after check.sh.
# shellcheck disable=SC2034,SC2154  # root, output and status are check.sh's; here is for the tests

here=$root/tests/cluster
net=$root/scripts/cluster_net.sh
CLUSTER_PROBE=${CLUSTER_PROBE:-$root/build/bin/cluster_probe}

skip_if_unavailable() {
    ((status != 77)) || { echo "skipped: ${output##*not available here: }" && exit 77; }
}
