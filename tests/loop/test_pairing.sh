#!/bin/bash
# test_pairing.sh: two machines with two cables that name their cards in opposite orders: rails meet by subnet, and both
# carry. Then one side has another subnet on a cable: the pair of rails that cannot meet is named when it is connected.
# The machines are network namespaces, held by processes: nothing is left behind.
PATH=$PATH:/usr/sbin:/sbin
if [ "${1:-}" != inside ]; then
    . "$(dirname "$0")/loop_lib.sh"
    [ "$(id -u)" = 0 ] || skip "links between network namespaces need root"
    command -v ip >/dev/null || skip "needs the program ip"
    unshare --net --mount true 2>/dev/null || skip "no network namespaces here"
    cd / && rm -rf "$work"
    exec unshare --net --mount "$0" inside
fi
. "$(dirname "$0")/loop_lib.sh"

unshare --net sleep 600 &
there=$!
for _ in $(seq 100); do
    [ "$(readlink /proc/$there/ns/net)" != "$(readlink /proc/self/ns/net)" ] && break
    sleep 0.05
done
on() { nsenter -t $there -n "$@"; }

ip link set lo up && on ip link set lo up
for i in 0 1; do
    ip link add left$i type veth peer name right$i netns $there || skip "no veth interfaces here"
    ip addr add 10.77.$i.1/24 dev left$i && on ip addr add 10.77.$i.2/24 dev right$i
    ip link set left$i up && on ip link set right$i up
done

# run SECONDS OPTION...: to connect in; node0 here, node1 there with its rails the other way round; $status and err are node1's.
run() {
    local listening seconds=$1
    shift
    timeout 60 "$WEFT" pair --listen 10.77.0.1:18555 --rails left0,left1 --connect-timeout "$seconds" --quiet "$@" \
        >here.out 2>here.err </dev/null &
    listening=$!
    timeout 60 nsenter -t $there -n "$WEFT" pair --connect 10.77.0.1:18555 --rails right1,right0 \
        --connect-timeout "$seconds" --json result.json --quiet "$@" >out 2>err </dev/null
    status=$?
    kill $listening 2>/dev/null
    wait $listening
}

run 20 --size 1M -n 64
pass_if "status $status: $(cat err here.err)" [ "$status" -eq 0 ]
pairs=$(sed -n 's/^ *"\(local\|remote\)": "\([0-9.]*\).*/\2/p' result.json | sort -u | tr '\n' ' ')
pass_if "addresses: $pairs" [ "$pairs" = '10.77.0.1 10.77.0.2 10.77.1.1 10.77.1.2 ' ]
while read -r local remote; do
    pass_if "$local and $remote are of one subnet" [ "${local%.*}" = "${remote%.*}" ]
done < <(sed -n 's/^ *"\(local\|remote\)": "\([0-9.]*\).*/\2/p' result.json | paste - -)
pass_if "each of both cables carried: $(json_numbers result.json sent_bytes)" \
    [ "$(json_numbers result.json sent_bytes | awk '$1 > 1000000' | wc -l)" -eq 2 ]

on ip addr del 10.77.1.2/24 dev right1
on ip addr add 10.78.1.2/24 dev right1
run 10 --size 4M -n 16
pass_if "a pair that cannot meet is left out: status $status: $(cat err here.err)" [ "$status" -eq 0 ]
pass_if "it is named: $(cat result.json)" \
    grep -q 'rails: right1 (10.78.1.2) is left out until it meets 10.77.1.1:18555 of .*: ' result.json
kill $there
finish
