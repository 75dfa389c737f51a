#!/usr/bin/env bash
# compare_collectives.sh: all-reduce of Weft against Open MPI, MPICH and Gloo, each at its best, on the same addresses.
set -u

usage() {
    cat <<'END'
usage: compare_collectives.sh loopback|lab [OPTION of weft collective]...

Runs `weft collective` with every backend that is installed, in turns, each with its algorithms and yielding; the best
of all ways counts. Their tools are used where they are, and never installed.

  loopback  2 and 4 ranks on 127.0.0.1, 1 KB to 256 MB
  lab       4 nodes (scripts/cluster_net.sh) with two rails, 1 KB and 1 MB to 64 MB: of 1 Gbit/s each, then of 1 Gbit/s
            and 500 Mbit/s; also the share of what the rails allow: 2(n-1)/n of the bytes over the sum of their rates

  LAB_RATES="RATE,RATE ..."  other rails for the lab
  WEFT_BUILD=DIR             the build in DIR, instead of build/

Options after the mode go to `weft collective`, such as --rounds 5, --size 1M, --out DIR (a folder below it for each).

Exit status: that of weft collective, the first that is not 0.
END
}

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd) || exit 1
# shellcheck source=scripts/lib.sh
. "$root/scripts/lib.sh"
self=$root/scripts/compare_collectives.sh
weft=${WEFT_BUILD:-$root/build}/bin/weft

# bits_of RATE,...: all of them together, in bit/s.
bits_of() {
    awk -v rates="${1,,}" 'BEGIN {
        count = split(rates, rate, ",")
        for (i = 1; i <= count; i++)
            sum += rate[i] * (rate[i] ~ /g/ ? 1e9 : rate[i] ~ /m/ ? 1e6 : 1e3)
        printf "%d\n", sum }'
}

# share_of_bound FILE BITS: of what a ring over rails of so many bit/s may reach at most.
share_of_bound() {
    command -v jq >/dev/null || return 0
    jq -r --argjson bits "$2" '.samples[] | select(.best and .op == "all_reduce") | "# \(.backend), \(.size_bytes) bytes: \(
        2 * (.ranks - 1) / .ranks * .size_bytes * 8 / $bits / .time_us.mean * 1e8 | round) % of what the rails allow"' "$1"
}

# compare NAME OPTION...: in a folder of its own.
compare() {
    local name=$1
    shift
    echo "# === $name"
    "$weft" collective --backend weft,mpi,gloo --best --place in "$@"
}

# UCX finds interfaces in /sys, which has to be the node's own.
as_ssh() {
    local node=$1 command
    shift
    command=$(printf '%q' "$*")
    exec "$CLUSTER_RSH" "$node" "unshare --mount sh -c 'mount -t sysfs sysfs /sys; exec bash -c \"\$0\"' $command"
}

lab() {
    local -a nodes=()
    local node json=$TMPDIR/lab.json status
    for ((node = 0; node < CLUSTER_NODES; node++)); do nodes+=("n$node"); done
    compare "lab, rails of $CLUSTER_RAILS" --hosts "$(IFS=, && echo "${nodes[*]}")" --rsh "$self" --rails lab0,lab1 \
        --processes "$CLUSTER_NODES" --meeting "$TMPDIR/meeting" --json "$json" --size 1K,1M,4M,16M,64M "$@" >&2
    status=$?
    share_of_bound "$json" "$(bits_of "$CLUSTER_RAILS")" >&2
    return "$status"
}

case ${1-} in
-h | --help) usage ;;
loopback)
    compare loopback --processes 2,4 --size 1K,8K,64K,1M,4M,16M,64M,256M --rounds 3 --duration 8 "${@:2}"
    ;;
lab)
    status=0
    for rails in ${LAB_RATES:-1gbit,1gbit 1gbit,500mbit}; do
        "$root/scripts/cluster_net.sh" --limit 3600 --rails "$rails" bash "$self" --inside "${@:2}" 2>&1 || status=$?
    done
    exit "$status"
    ;;
--inside) lab "${@:2}" ;;
*)
    # A launcher gives what ssh takes: options, a host, words.
    [[ ${CLUSTER_RSH-} ]] || wrong_usage 'loopback or lab: see --help'
    while [[ ${1-} == -* ]]; do shift; done
    as_ssh "$@"
    ;;
esac
