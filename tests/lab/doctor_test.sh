#!/usr/bin/env bash
# weft doctor between two nodes: it names each of twelve faults that are made here, and none in a healthy pair, as often as
# it is asked. Skipped where there can be no lab.
#   doctor_test.sh [HEALTHY]   HEALTHY: how often the healthy pair is examined (3)
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
# shellcheck source=tests/lab/lab_lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lab_lib.sh"
: "${NODE_LIBRARY:?the library to preload}"

# expect_lines_of TEXT COUNT WHAT
expect_lines_of() {
    local lines
    lines=$(grep -c -- "$1" <<<"$output")
    ((lines == $2)) || fail "$3: $lines lines '$1' instead of $2: $output"
}

if [[ ${1-} != --inside ]]; then
    export LAB_RAILS=1gbit,1gbit
    for family in 4 6; do # in one subnet, too
        run env LAB_IP=$family LAB_SUBNETS=one timeout -k 5 60 "$net" "$WEFT_TEST_PROGRAM" doctor --listen --quiet : \
            "$WEFT_TEST_PROGRAM" doctor "$(LAB_IP=$family "$net" --address)"
        ((status == 77)) && echo "skipped: $output" && exit 77
        expect_status 0 "IPv$family, one subnet"
        expect_lines_of 'ok     node1 way' 4 "IPv$family, one subnet"
    done
    ((failures == 0)) || exit 1
    export LAB_IP=4
    enter_lab 280 "${1-3}"
fi
healthy=$2
cd -- "$scratch" || exit 1

# examine SECONDS ARGUMENT...: node 1 examines node 0 and the path. Sets output and status; server_output and
# server_status of node 0. In as_server and as_client: what weft is started by, and with.
as_server=() as_client=() server_options=() client_options=()
examine() {
    local server
    "${as_server[@]}" "$WEFT_TEST_PROGRAM" doctor --listen "${server_options[@]}" >server.out 2>&1 </dev/null &
    server=$!
    until grep -q 'waits on port' server.out; do
        kill -0 "$server" 2>/dev/null || break
        sleep 0.02
    done
    run on 1 "${as_client[@]}" timeout -k 5 60 "$WEFT_TEST_PROGRAM" doctor 10.77.0.1 "${client_options[@]}"
    if ends "$server" 3; then
        wait "$server"
        server_status=$?
    else # nobody has come to it
        kill -TERM "$server" 2>/dev/null
        wait "$server"
        server_status=none
    fi
    server_output=$(<server.out)
    as_server=() as_client=() server_options=() client_options=()
}

# alone COMMAND...: weft doctor of this machine, started by COMMAND. In alone_options: options.
alone_options=()
alone() {
    run "$@" timeout -k 5 60 "$WEFT_TEST_PROGRAM" doctor "${alone_options[@]}"
    alone_options=()
}

# expect_fault CHECK TEXT [COUNT]: one line says so, and names a remedy; COUNT faults in all (any number if empty).
expect_fault() {
    local line count
    ((status == 1)) || fail "$1: status $status instead of 1: $output"
    line=$(grep -E "^FAULT  (node[01] )?$1: " <<<"$output" | grep -m 1 -F -- "$2")
    [[ $line ]] || fail "$1: not named, with '$2': $output"
    count=$(grep -c '^FAULT' <<<"$output")
    [[ -z ${3-} ]] || ((count == $3)) || fail "$1: $count faults instead of $3: $output"
    echo "$line"
}

expect_healthy() {
    ((status == 0)) || fail "$1: status $status: $output"
    expect_no_text FAULT "$1"
    expect_text 'no fault was found' "$1"
}

# drop NODE RAIL PROGRAM: what a program of classic BPF picks is lost when it comes in.
drop() {
    on "$1" tc qdisc add dev "lab$2" clsact &&
        on "$1" tc filter add dev "lab$2" ingress bpf da bytecode "$3"
}
let_pass() { on "$1" tc qdisc del dev "lab$2" clsact; }

# TCP over IPv4; packets of more than 1514 bytes with their Ethernet header.
tcp='7,40 0 0 12,21 0 3 2048,48 0 0 23,21 0 1 6,6 0 0 2,6 0 0 4294967295,6 0 0 4294967295'
large='4,128 0 0 0,37 0 1 1514,6 0 0 2,6 0 0 4294967295'
can_drop=1
drop 0 1 "$tcp" 2>/dev/null || can_drop=0
let_pass 0 1

# ------------------------------------------------------------------------------------------------------- the healthy pair

alone
expect_healthy 'this machine'
for ((i = 1; i <= healthy; i++)); do
    examine
    expect_healthy "the healthy pair, time $i"
    [[ $server_status == 0 ]] || fail "node 0, time $i: status $server_status: $server_output"
done
echo "the healthy pair was examined $healthy times"
expect_text 'way: 10.77.1.2 (lab1) of node1 to 10.77.1.1 of node0: connects, packets of 9000 bytes come through' there
expect_text 'way: 10.77.1.1 (lab1) of node0 to 10.77.1.2 of node1: connects, packets of 9000 bytes come through' back

# ------------------------------------------------------------------------------------------------------- of the path

if ((can_drop)); then
    drop 0 1 "$tcp" # 1: a firewall on one rail
    examine
    expect_fault firewall '10.77.1.2 (lab1) of node1 to 10.77.1.1 of node0'
    expect_text 'FAULT  node1 firewall: 10.77.1.1 (lab1) of node0 to 10.77.1.2 of node1' 'and back'
    expect_no_text 'FAULT  node1 firewall: 10.77.0' 'the other rail'
    let_pass 0 1
    drop 0 0 "$tcp" # the same on the rail that the address is of: no session comes up
    examine
    expect_fault firewall 10.77.0.1 1
    let_pass 0 0
    drop 0 1 "$large" # 2: a hole for large packets, one way
    examine
    expect_fault mtu '10.77.1.2 (lab1) of node1 to 10.77.1.1 of node0: packets of 9000 bytes get lost without a word, those of 1500' 1
    let_pass 0 1
else
    echo 'left out: a firewall and an MTU hole, for this kernel has no cls_bpf'
fi

ip route add 10.77.1.2/32 dev lab0 # 3: answers to rail 1 leave by rail 0
examine
expect_fault route 'of node0 to 10.77.1.2 of node1: packets leave by lab0 instead of lab1'
ip route del 10.77.1.2/32 dev lab0

(umask 077 && "$WEFT_TEST_PROGRAM" key >key.0 && "$WEFT_TEST_PROGRAM" key >key.1)
server_options=(--key-file key.0) client_options=(--key-file key.1) # 4: another key
examine
expect_fault key '' 1
server_options=(--key-file key.0) # and none at all
examine
expect_fault key '' 1

as_server=(env "LD_PRELOAD=$NODE_LIBRARY" NODE_VERSION=0.0.7) # 5: an older version
examine
expect_fault version 'node0 runs weft 0.0.7' 1
[[ $server_output == *'FAULT  node0 version: '* ]] || fail "version: node 0 does not say so: $server_output"

as_client=(env "LD_PRELOAD=$NODE_LIBRARY" NODE_WALL_S=-75) # 6: a clock that is off
examine
expect_fault clock "node0's clock is 75.0 s ahead of node1's" 1

on 0 ip link set lab1 down # 7: a NIC that is down; the kernel tells its other end up to a second later
for ((i = 0; i < 250; i++)); do
    on 1 ip -o link show lab1 | grep -q NO-CARRIER && break
    sleep 0.02
done
examine
expect_fault link "lab1 has the address 10.77.1.1, but is down"
expect_text 'FAULT  node1 link: lab1 has the address 10.77.1.2, but no carrier' 'its other end'
on 0 ip link set lab1 up
wait_for_links

for node in 0 1; do # 8: Docker's bridge
    on "$node" ip link add docker0 type bridge
    on "$node" ip addr add 172.17.0.1/16 dev docker0
    on "$node" ip link set docker0 up
done
examine
expect_healthy 'with a bridge that nobody uses'
server_options=(--rails 'lab0,docker0') client_options=(--rails 'lab0,docker0')
examine
expect_fault bridge 'docker0 (172.17.0.1) is a bridge without a network card'
expect_text 'both nodes have a rail with the address 172.17.0.1' 'the addresses'
for node in 0 1; do on "$node" ip link del docker0; done

# ------------------------------------------------------------------------------------------------------- of one machine

alone prlimit --memlock=65536:65536 setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock # 9: no memlock
expect_fault memlock 'only 64 KiB of memory may be locked' 1

alone taskset -c 0 # 10: no cores left
expect_fault cores 'on 1 processor alone' 1

mkdir full && mount -t tmpfs -o size=64k none full # 11: a full disk
alone_options=(--out full/results)
alone
expect_fault disk 'the file system of full/results is full' 1
umount full

"$WEFT_TEST_PROGRAM" raw --listen 10.77.0.1:18555 >taker.out 2>&1 </dev/null & # 12: a port that is taken
taker=$!
until ss -Hltn 'sport = :18555' | grep -q .; do
    kill -0 "$taker" 2>/dev/null || { fail "nothing takes the port: $(<taker.out)" && break; }
    sleep 0.02
done
alone
expect_fault port "port 18555 is taken by 'weft' (process " 1 # its number is that of another pid namespace
run timeout -k 5 20 "$WEFT_TEST_PROGRAM" doctor --listen
expect_fault port 'port 18555 is taken' 1
kill "$taker"
wait "$taker"

# ------------------------------------------------------------------------------------------------------- wrong usage, JSON

run "$WEFT_TEST_PROGRAM" doctor 10.77.0.1 10.77.1.1
expect_status 2 'two addresses'
run on 1 timeout -k 5 20 "$WEFT_TEST_PROGRAM" doctor 10.77.0.1:99999
expect_status 2 'no port'
run on 1 timeout -k 5 20 "$WEFT_TEST_PROGRAM" doctor 10.77.0.1 --connect-timeout 1
expect_fault listen 'refused' 1
client_options=(--json node1.json)
examine
expect_healthy 'with --json'
grep -q '"schema": "weft.doctor/1"' node1.json || fail "no JSON: $(<node1.json)"
finish
