#!/usr/bin/env bash
# class_figures.sh [ROUNDS]: round trips of 8 bytes beside bulk data, in one traffic class and in two, over a rail of
# 1 Gbit/s (docs/figures). Every case once in each round, in turns; prints the medians over the rounds as Markdown.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
# shellcheck source=tests/lab/lab_lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lab_lib.sh"

CLASS_LATENCY=${CLASS_LATENCY:-$root/build/bin/class_latency}

names=(
    'alone'
    'bulk in the same class'
    'bulk in a class of its own'
    'the same, held to 100 MB/s'
    'the same, held to 60 MB/s'
    'bulk in a class of its own, and a queue that lets the mark of the other pass'
)
options=(bulk=0 bulk=1 bulk=2 'bulk=2 rate=100000000' 'bulk=2 rate=60000000' 'bulk=2 dscp=46')

# honour NODE yes|no: the queue at the rail lets what is marked 46 pass, or is the lab's own.
honour() {
    if [[ $2 == no ]]; then
        on "$1" tc qdisc replace dev lab0 root tbf rate 1gbit burst 250000 limit 6250000
        return
    fi
    on "$1" tc qdisc replace dev lab0 root handle 1: htb default 2 &&
        on "$1" tc class add dev lab0 parent 1: classid 1:9 htb rate 1gbit quantum 60000 &&
        on "$1" tc class add dev lab0 parent 1:9 classid 1:1 htb rate 900mbit ceil 1gbit prio 0 quantum 60000 &&
        on "$1" tc class add dev lab0 parent 1:9 classid 1:2 htb rate 100mbit ceil 1gbit prio 1 quantum 60000 &&
        on "$1" tc filter add dev lab0 parent 1: protocol ip u32 match ip dsfield 0xb8 0xfc flowid 1:1
}

# one CASE: a line "p50 p99 bulk".
one() {
    local node server mark=no
    [[ ${options[$1]} == *dscp* ]] && mark=yes
    for node in 0 1; do
        honour "$node" "$mark" || exit 1
    done
    "$CLASS_LATENCY" listen 'rails=lab*' dscp=46 >/dev/null &
    server=$!
    # shellcheck disable=SC2086  # several words
    "$net" --node 1 "$CLASS_LATENCY" "$(hosts 0 0 | head -n 1)" 'rails=lab*' trips=3000 ${options[$1]} |
        awk '{ print $4, $7, $10 }'
    wait "$server"
}

# median FILE COLUMN
median() { sort -n -k "$2,$2" -- "$1" | awk -v column="$2" '{ value[NR] = $column } END { print value[int((NR + 1) / 2)] }'; }

inside() {
    local round case
    for ((round = 0; round < $1; round++)); do
        for ((case = 0; case < ${#names[@]}; case++)); do
            one "$case" >>"$scratch/$case"
        done
    done
    echo '| what | p50, us | p99, us | bulk, MB/s |'
    echo '|---|---|---|---|'
    for ((case = 0; case < ${#names[@]}; case++)); do
        printf '| %s | %s | %s | %s |\n' "${names[case]}" "$(median "$scratch/$case" 1)" "$(median "$scratch/$case" 2)" \
            "$(median "$scratch/$case" 3)"
    done
}

if [[ ${1-} == --inside ]]; then
    inside "$2"
    exit
fi
export LAB_RAILS=1gbit LAB_IP=4
enter_lab 3000 "${1:-5}"
