#!/usr/bin/env bash
# launcher_test.sh LAUNCHER: each process finds its rank and meets all others over every rail; the launcher's variables are
# those that it is known by; a process that fails is told of. Skipped where the launcher or a cluster cannot be had.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
# shellcheck source=tests/cluster/cluster_lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/cluster_lib.sh"

launcher=$1
nodes() { run "$here/nodes.sh" --limit 60 "$@"; }

# shellcheck disable=SC2016  # expanded by the processes
nodes "$launcher" bash -c 'echo "host $(cat /proc/sys/kernel/hostname)"'
skip_if_unavailable
expect_status 0 'host names'
[[ $(grep '^host ' <<<"$output" | sort | tr '\n' ' ') == 'host n0 host n1 host n2 host n3 ' ]] || fail "host names: $output"

case $launcher in
slurm | torchrun) known_by=$launcher ;;
slurm-pmix | openmpi) known_by=pmix ;;
mpich) known_by=pmi ;;
esac
expect_all_met() { # NODES EACH RAILS
    local rank want=''
    for ((rank = 0; rank < $1 * $2; rank++)); do
        want+="rank $rank of $(($1 * $2)) on n$((rank / $2)) by $known_by: met $((($1 - 1) * $2)) over $3 rails"$'\n'
    done
    [[ $(grep '^rank ' <<<"$output" | sort -k 2n)$'\n' == "$want" ]] || fail "$1 nodes, $2 each: $output"
}
nodes "$launcher" "$CLUSTER_PROBE" 2 1
expect_status 0 'four nodes'
expect_all_met 4 1 2
nodes --each 2 --nodes 3 --rails 1gbit,1gbit,500mbit "$launcher" "$CLUSTER_PROBE" 3 2
expect_status 0 'three nodes with two processes each'
expect_all_met 3 2 3

# The mesh finds who it is by itself, measures all pairs, and node0 alone speaks. Slurm gives no port without being asked.
case $launcher in
slurm) with_port=(env MASTER_PORT=29501) found='Slurm'"'"'s variables' ;;
torchrun) with_port=() found='torchrun'"'"'s variables' ;;
slurm-pmix | openmpi) with_port=() found=PMIx ;;
mpich) with_port=() found=PMI-1 ;;
esac
nodes "$launcher" "${with_port[@]}" "${WEFT_TEST_PROGRAM:-$root/build/bin/weft}" mesh --endpoints 1 --size 4K,64K --iters 4 \
    --warmup 0 --json "$scratch/mesh.json"
expect_status 0 'weft mesh'
expect_text "rank 0 of 4 by $found, meeting " 'weft mesh'
expect_text '48 of 48 samples, 0 wrong of ' 'weft mesh'
(($(grep -c '^rank ' <<<"$output") == 1)) || fail "weft mesh: more than node0 speaks: $output"
(($(grep -c '"times_contain_verification":' "$scratch/mesh.json") == 48)) || fail 'weft mesh: not all samples are in the result'
grep -q '"passed": true' "$scratch/mesh.json" || fail 'weft mesh: the result has not passed'

# shellcheck disable=SC2016  # expanded by the processes
nodes "$launcher" bash -c 'case $(cat /proc/sys/kernel/hostname) in n2) exit 7 ;; esac'
((status != 0 && status != 77)) || fail "a process that fails: status $status; output: $output"

# Without root, where the system lets others make namespaces, and they can read what is tested.
other=(setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/)
if (($(id -u) == 0)) && "${other[@]}" test -x "$CLUSTER_PROBE" -a -x "$net"; then
    run "${other[@]}" "$here/nodes.sh" --limit 60 "$launcher" "$CLUSTER_PROBE" 2 1
    if ((status == 77)); then
        echo "not root: $output"
    else
        expect_status 0 'not root'
        expect_all_met 4 1 2
    fi
fi

finish
