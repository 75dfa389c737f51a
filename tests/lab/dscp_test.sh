#!/usr/bin/env bash
# dscp_test.sh: packets have the mark of their traffic class (setting dscp), each side's its own, as the network counts
# them: an nft rule of each node counts what has the mark, another one the rest; without nft, queues do. Skipped where
# there can be no lab.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
# shellcheck source=tests/lab/lab_lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lab_lib.sh"

CLASS_LATENCY=${CLASS_LATENCY:-$root/build/bin/class_latency}
mark=46
by_nft=0
command -v nft >/dev/null && by_nft=1

# sort_by_mark NODE: what goes out with the mark is counted as 2, all else as 1: by nft, or in queues of these numbers.
sort_by_mark() {
    local field family
    if ((by_nft)); then
        {
            echo 'table inet weft {'
            printf 'counter sent%d {\n}\n' 1 2
            echo 'chain out { type filter hook output priority 0;'
            for family in ip ip6; do
                echo "oifname lab0 $family dscp $mark counter name sent2"
                echo "oifname lab0 $family dscp != $mark counter name sent1"
            done
            printf '}\n}\n'
        } >"$scratch/rules"
        on "$1" nft -f "$scratch/rules"
        return
    fi
    printf -v field '0x%x' $((mark << 2))
    on "$1" tc qdisc replace dev lab0 root handle 1: htb default 1 &&
        on "$1" tc class add dev lab0 parent 1: classid 1:1 htb rate 1gbit &&
        on "$1" tc class add dev lab0 parent 1: classid 1:2 htb rate 1gbit &&
        on "$1" tc filter add dev lab0 parent 1: protocol ip prio 1 u32 match ip dsfield "$field" 0xfc flowid 1:2 &&
        on "$1" tc filter add dev lab0 parent 1: protocol ipv6 prio 2 u32 match ip6 priority "$field" 0xfc flowid 1:2
}

# sent NODE CLASS: bytes so far.
sent() {
    if ((by_nft)); then
        on "$1" nft list counter inet weft "sent$2" | awk '$1 == "packets" { print $4 }'
        return
    fi
    on "$1" tc -s class show dev lab0 classid "1:$2" | awk '$1 == "Sent" { print $2 }'
}

# transfer SERVER CLIENT: their settings dscp; bulk data of class 1 from node 1 to node 0. Sets marked and plain, by node.
transfer() {
    local address node server
    local -a before_marked before_plain
    for node in 0 1; do
        before_marked[node]=$(sent "$node" 2) before_plain[node]=$(sent "$node" 1)
    done
    address=$(hosts 0 0 | head -n 1)
    "$CLASS_LATENCY" listen 'rails=lab*' dscp="$1" >"$scratch/server" 2>&1 &
    server=$!
    run "$net" --node 1 "$CLASS_LATENCY" "$address" 'rails=lab*' dscp="$2" trips=200 bulk=2
    expect_status 0 "dscp $1 and $2, client"
    wait "$server"
    status=$?
    output+=$(cat -- "$scratch/server")
    expect_status 0 "dscp $1 and $2, server"
    for node in 0 1; do
        marked[node]=$(($(sent "$node" 2) - before_marked[node]))
        plain[node]=$(($(sent "$node" 1) - before_plain[node]))
    done
    echo "dscp $1 and $2: with the mark ${marked[*]} bytes, without ${plain[*]} (node 0, node 1)"
}

inside() {
    local node
    local -a marked plain
    for node in 0 1; do
        sort_by_mark "$node" 2>"$scratch/tc" ||
            { echo "skipped: this kernel cannot sort by marks: $(head -n 1 "$scratch/tc")" && exit 77; }
    done
    # Both mark class 1: the bulk data one way, what answers it the other way.
    transfer 0,$mark 0,$mark
    ((marked[1] > plain[1] && marked[1] > 4000000)) || fail "node 1: class 1 has no mark"
    ((marked[0] > 0)) || fail 'node 0: what it answers has no mark'
    ((plain[0] > 0 && plain[1] > 0)) || fail 'class 0 has the mark of class 1'
    # Each side marks what it sends, and no other.
    transfer 0 0,$mark
    ((marked[0] == 0)) || fail 'node 0 sends with a mark that it was not told'
    ((marked[1] > plain[1])) || fail "node 1: class 1 has no mark"
    transfer 0,$mark 0
    ((marked[1] == 0)) || fail 'node 1 sends with a mark that it was not told'
    ((marked[0] > 0)) || fail 'node 0: what it answers has no mark'
    # Class 0, and with it what sets a session up. The first answer to a connection is the kernel's: it may have no mark.
    transfer $mark,0 $mark,0
    ((marked[0] > 0 && marked[1] > 0)) || fail 'class 0 has no mark'
    ((plain[1] > marked[1])) || fail 'class 1 has the mark of class 0'
    transfer 0 0
    ((marked[0] == 0 && marked[1] == 0)) || fail 'something has a mark by default'
}

if [[ ${1-} == --inside ]]; then
    inside
    finish
fi
export LAB_RAILS=1gbit LAB_IP=${LAB_IP:-4}
enter_lab 120
