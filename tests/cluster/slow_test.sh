#!/usr/bin/env bash
# slow_test.sh [SEEDS [PERCENT]]: four nodes with two rails each, of which one node, one rail of a node, or one rail of all
# nodes has PERCENT of the rate of the others. weft mesh names it. With several seeds it names nothing else, and nothing where
# all are alike, with none of them; with one it may: where a machine is busy with other things, links are slow for moments.
# `slow_test.sh figures` counts for smaller and smaller differences in how many of 20 seeds each was named.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
# shellcheck source=tests/cluster/cluster_lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/cluster_lib.sh"

# What is slow, and the line that says so; of nothing, no line.
declare -A said=([none]='$' [n2]='slow: node2 sends and receives ' [n1:lab1]='slow rail: rail lab1 of node1 carries '
    [lab1]='slow rail: rail lab1 carries ')

# count CASE PERCENT SEEDS: in how many seeds the report says that and, of several, nothing else. The messages take 100 to
# 200 ms, and two are under way: the rails are what limits, and not the processors that all nodes share.
count() {
    local seed node lines good=0 iters=6
    (($3 > 1)) || iters=3
    local -a ranks options=(--nodes 4 --endpoints 1 --size '1M,1536K,2M' --mode isolated --inflight 2 --iters "$iters" --warmup 1
        --check 0 --node-pairs 2 --rendezvous "file:$TMPDIR/meeting")
    [[ $1 == none ]] || "$net" --rate "$1=$2%" || return
    for ((seed = 1; seed <= $3; seed++)); do
        ranks=()
        for node in 0 1 2 3; do
            "$net" --on "n$node" "$weft" mesh "${options[@]}" --rank "$node" --seed "$seed" >"$TMPDIR/$node" 2>&1 &
            ranks+=("$!")
        done
        for node in 0 1 2 3; do
            wait "${ranks[node]}" || { echo "node$node ended with $?: $(<"$TMPDIR/$node")" && return 1; }
        done
        # A line that is wrapped goes on behind blanks.
        lines=$(grep -E '^(slow|asymmetric|slow rail|straggler): ' "$TMPDIR/0")
        if grep -q "^${said[$1]}" <<<"$lines" && (($3 == 1 || $(wc -l <<<"$lines") == 1)); then
            ((++good))
        else
            echo "seed $seed said: ${lines:-nothing}"
        fi
    done
    echo "$1 $2 $good of $3"
    [[ $1 == none ]] || "$net" --rate "$1=100%"
}

# cases_of SEEDS: sets cases.
cases_of() {
    cases=(none n2 n1:lab1 lab1)
    (($1 > 1)) || cases=(n2 n1:lab1)
}

if [[ ${1-} == --inside ]]; then
    cases_of "$2"
    (($# < 4)) || cases=("${@:4}")
    for what in "${cases[@]}"; do
        count "$what" "$3" "$2" || exit
    done
    exit
elif [[ ${1-} == --figures ]]; then
    count none 100 20
    for percent in 87 88 89 90 92; do
        for what in n2 n1:lab1 lab1; do
            count "$what" "$percent" 20 || exit
        done
    done
    exit
fi

export weft=${WEFT_TEST_PROGRAM:-$root/build/bin/weft}
self=$here/slow_test.sh
rails=(--nodes 4 --rails '40mbit,40mbit')
[[ ${1-} != figures ]] || exec "$net" "${rails[@]}" --limit 7200 bash "$self" --figures
seeds=${1:-1}
cases_of "$seeds"
run "$net" "${rails[@]}" --limit $((60 + seeds * 160)) bash "$self" --inside "$seeds" "${2:-85}"
skip_if_unavailable
expect_status 0 'four nodes'
for what in "${cases[@]}"; do
    expect_text "$what ${2:-85} $seeds of $seeds" "$what"
done
finish
