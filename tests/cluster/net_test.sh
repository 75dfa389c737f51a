#!/usr/bin/env bash
# scripts/cluster_net.sh: its nodes, their names, addresses and rates, the command's status, and its own wrong uses. Skipped
# where there can be no cluster.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
# shellcheck source=tests/cluster/cluster_lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/cluster_lib.sh"

run "$net" true
skip_if_unavailable
expect_status 0 'a cluster is made'

# rates_of OPTION...: sets output, "NODE RAIL RATE RATE" of each cable of three nodes, the node's end first.
rates_of() {
    # shellcheck disable=SC2016  # expanded inside
    run "$net" --nodes 3 --rails 1gbit,200mbit "${@:1:$#-1}" bash -c '
        net=$1
        eval "$2"
        for cable in n{0..2}\ lab{0,1}; do
            read -r node rail <<<"$cable"
            at_node=$("$net" --on "$node" tc qdisc show dev "$rail" | sed "s/.* rate \([^ ]*\) .*/\1/")
            at_head=$(tc qdisc show dev "$node$rail" | sed "s/.* rate \([^ ]*\) .*/\1/")
            echo "$node $rail $at_node $at_head"
        done' bash "$net" "${*:$#}"
}
expect_rates() { # WHAT RATE...: in the order of rates_of.
    local cable want=''
    for cable in 'n0 lab0' 'n0 lab1' 'n1 lab0' 'n1 lab1' 'n2 lab0' 'n2 lab1'; do
        want+="$cable $2 $2"$'\n'
        set -- "$1" "${@:3}"
    done
    [[ $output$'\n' == "$want" ]] || fail "$1: $output"
}
rates_of true
expect_rates 'all alike' 1Gbit 200Mbit 1Gbit 200Mbit 1Gbit 200Mbit
rates_of --rate n2=85% true
expect_rates 'a slow node' 1Gbit 200Mbit 1Gbit 200Mbit 850Mbit 170Mbit
rates_of --rate lab0=85% true
expect_rates 'a slow rail' 850Mbit 200Mbit 850Mbit 200Mbit 850Mbit 200Mbit
rates_of --rate lab1=100mbit --rate n1:lab1=12.5mbit true
expect_rates 'a slow cable of a slow rail' 1Gbit 100Mbit 1Gbit 12500Kbit 1Gbit 100Mbit
# shellcheck disable=SC2016  # expanded inside
rates_of '"$net" --rate n0:lab0=50% --rate n1=85%'
expect_rates 'changed later' 500Mbit 200Mbit 850Mbit 170Mbit 1Gbit 200Mbit

# shellcheck disable=SC2016  # expanded inside
run "$net" --nodes 3 --rails 1gbit,1gbit bash -c '
    cat /proc/sys/kernel/hostname
    getent hosts n2
    "$1" --on n2 sh -c "cat /proc/sys/kernel/hostname; ip -o -4 addr show dev lab1"
    $CLUSTER_RSH -x -n n1 echo "\$(cat /proc/sys/kernel/hostname)" of $CLUSTER_NODES' bash "$net"
expect_status 0 'names'
[[ $output == $'head\n10.77.0.3 '*$' n2\nn2\n'*' 10.77.1.3/24 '*$'\nn1 of 3' ]] || fail "names: $output"

run "$net" sh -c 'exit 5'
expect_status 5 "the command's status"
run "$net" --limit 1 sleep 100
expect_status 124 '--limit'
while read -r wrong; do
    # shellcheck disable=SC2086  # several words
    run "$net" $wrong
    expect_status 2 "wrong usage: $wrong"
    expect_lines 1 "wrong usage: $wrong"
done <<'END'
--nodes 0 true
--nodes 65 true
--rails 1gbit, true
--rails x true
--rate n4=85% true
--rate lab2=85% true
--rate n1lab=85% true
--rate n1=0% true
--rate 85% true
--rate n1=85%
--limit x true
--other 1 true
--on n0 true
--nodes 2
END
finish
