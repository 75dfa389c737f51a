#!/usr/bin/env bash
# mesh_test.sh PART: weft mesh of several nodes on this machine. whole: all pairs are measured and verified, and the result
# has all of them. broken: whatever becomes of a node, all others end and name it. many: 16 and 64 of them.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
weft=${WEFT_TEST_PROGRAM:-$root/build/bin/weft}
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT
small=(--rails '127.0.1.1,127.0.2.1' --iters 2 --warmup 0)

# --- what a result has ---

# expect_result FILE NODES SAMPLES WHAT
expect_result() {
    local hosts samples
    hosts=$(grep -c '"kernel":' "$1")
    samples=$(grep -c '"times_contain_verification":' "$1")
    ((hosts == $2)) || fail "$4: $hosts hosts instead of $2"
    ((samples == $3)) || fail "$4: $samples samples instead of $3"
    grep -q '"samples_planned": '"$3," "$1" || fail "$4: samples_planned is not $3"
    grep -q '"passed": true' "$1" || fail "$4: not passed"
    grep -q '"verified": true' "$1" || fail "$4: not verified"
}

# Every source, and every destination, as often as every other one.
expect_even() { # TIMES WHAT
    local column
    for column in 7 8; do
        grep '^weft,' "$scratch/r.csv" | cut -d , -f "$column" | sort | uniq -c | while read -r times name; do
            ((times == $1)) || echo "$name $times times"
        done | grep . && fail "$2: not each in $1 samples"
    done
}

mesh() { # NODES WHAT ARGUMENT...
    local nodes=$1 what=$2
    shift 2
    run timeout 60 "$weft" mesh --local --nodes "$nodes" "${small[@]}" --json "$scratch/r.json" --csv "$scratch/r.csv" "$@"
    expect_status 0 "$what"
    expect_text ': passed' "$what"
}

test_whole() {
    # Two sizes and both modes; 3 nodes are an odd number of them.
    mesh 3 'three nodes' --endpoints 2 --size 1K,64K
    expect_result "$scratch/r.json" 3 96 'three nodes'
    expect_even 16 'three nodes'
    [[ $(grep -c '^weft,host,' "$scratch/r.csv") == 96 ]] || fail "three nodes: $(wc -l <"$scratch/r.csv") lines of CSV"
    mesh 4 'four nodes, two pairs at a time' --endpoints 1 --size 64K --node-pairs 2 --log-dir "$scratch/logs"
    expect_result "$scratch/r.json" 4 24 'four nodes'
    [[ $(grep -l 'PERF' "$scratch"/logs/fullmesh_node[0-3]_gpu0_*.log | wc -l) == 4 ]] || fail "logs: $(ls "$scratch/logs")"
    mesh 5 'five nodes and within them' --endpoints 2 --size 1K --mode isolated --pattern alltoall
    expect_result "$scratch/r.json" 5 90 'alltoall'
    mesh 2 'a group of two' --endpoints 1 --size 1K --mode isolated
    expect_result "$scratch/r.json" 2 2 'a group of two'
    mesh 2 'two processes a node' --processes 2 --endpoints 4 --size 1K --log-dir "$scratch/logs2"
    expect_result "$scratch/r.json" 2 64 'two processes a node'
    expect_even 8 'two processes a node'
    [[ $(cat "$scratch"/logs2/*.log | grep -c PERF) == 16 ]] || fail "logs of processes: $(ls "$scratch/logs2")"
    # Two neighbours, and three of the tree.
    mesh 8 'ring' --endpoints 1 --size 1K --pattern ring --sessions 2
    expect_result "$scratch/r.json" 8 16 'ring'
    grep -o '"sessions": [0-9]*' "$scratch/r.json" | while read -r _ count; do
        ((count <= 5)) || echo "$count sessions"
    done | grep . && fail 'ring: more sessions than neighbours'
    # As a launcher leaves it; nothing says where the other nodes are.
    local rank
    local -a running=()
    for rank in 1 2; do
        RANK=$rank WORLD_SIZE=3 LOCAL_RANK=$rank timeout 60 "$weft" mesh --rendezvous "file:$scratch/meeting" "${small[@]}" \
            --size 1K --endpoints 1 >"$scratch/out.$rank" 2>&1 &
        running+=("$!")
    done
    RANK=0 WORLD_SIZE=3 LOCAL_RANK=0 run timeout 60 "$weft" mesh --rendezvous "file:$scratch/meeting" "${small[@]}" \
        --size 1K --endpoints 1
    expect_status 0 'torchrun'"'s variables"
    expect_text 'rank 0 of 3 by torchrun' 'where it is from'
    expect_text '12 of 12 samples' 'all of them'
    for rank in 0 1; do
        wait "${running[rank]}" || fail "rank $((rank + 1)): status $?: $(cat "$scratch/out.$((rank + 1))")"
        [[ ! -s $scratch/out.$((rank + 1)) ]] || fail "rank $((rank + 1)) speaks: $(cat "$scratch/out.$((rank + 1))")"
    done
    test_usage
}

test_usage() {
    run "$weft" mesh --nodes 3 --rank 1
    expect_status 2 'no rendezvous'
    expect_text 'rendezvous' 'no rendezvous'
    RANK=0 WORLD_SIZE=2 run "$weft" mesh
    expect_status 2 'only rank and size'
    expect_text 'MASTER_ADDR' 'only rank and size'
    run "$weft" mesh --nodes 3 --rank 3 --rendezvous 127.0.0.1:1
    expect_status 2 'a rank that there is not'
    run "$weft" mesh --nodes 3 --listen
    expect_status 2 'two ways to meet'
    run "$weft" mesh --local --processes 3 --endpoints 4
    expect_status 2 'no even share'
    run "$weft" mesh --listen --processes 2
    expect_status 2 'processes of a node that listens'
    run "$weft" mesh --local --nodes 1
    expect_status 2 'one node'
    run "$weft" mesh --local --nodes 3 --expect 0.9 --size 1K --endpoints 1 "${small[@]}"
    expect_status 2 'a share of what line'
    expect_text 'two nodes' 'a share of what line'
}

# --- what may become of a node ---

declare -a started=()
start() { # RANK NAME ARGUMENT...
    local rank=$1 name=$2
    shift 2
    timeout 60 "$weft" mesh --nodes 4 --rank "$rank" --rendezvous "file:$scratch/meeting" "${small[@]}" --timeout 3 "$@" \
        >"$scratch/out.$name" 2>&1 </dev/null &
    started[name]=$!
}

await_text() { # NAME TEXT
    local i
    for ((i = 0; i < 400; i++)); do
        grep -q -e "$2" "$scratch/out.$1" 2>/dev/null && return
        sleep 0.05
    done
    fail "rank $1 never says '$2': $(cat "$scratch/out.$1")"
}

# The program below timeout(1).
child_of() { pgrep -P "$1"; }

expect_ends() { # NAME STATUS TEXT
    local got=0
    wait "${started[$1]}" || got=$?
    ((got == $2)) || fail "$what: rank $1: status $got instead of $2: $(cat "$scratch/out.$1")"
    [[ -z $3 ]] || grep -q -e "$3" "$scratch/out.$1" || fail "$what: rank $1 does not say '$3': $(cat "$scratch/out.$1")"
}

long=(--endpoints 1 --size 64K --iters auto --duration 60 --json)
begin() {
    local rank
    for rank in 0 1 2 3; do
        start "$rank" "$rank" "${long[@]}" "$scratch/r.json"
    done
    await_text 0 'memory: host, nodes: 4'
}

test_broken() {
    local what pid
    what='killed'
    begin
    kill -KILL "$(child_of "${started[2]}")"
    for rank in 0 1 3; do
        expect_ends "$rank" 1 'rank 2 (.*) is lost'
    done
    wait "${started[2]}" 2>/dev/null
    grep -q '"node": "node2"' "$scratch/r.json" || fail "$what: the result does not name it"
    what='stopped'
    begin
    pid=$(child_of "${started[1]}")
    kill -STOP "$pid"
    for rank in 0 2 3; do
        expect_ends "$rank" 1 'rank 1 (.*) is lost'
    done
    kill -KILL "$pid"
    wait "${started[1]}" 2>/dev/null
    what='interrupted'
    begin
    kill -TERM "$(child_of "${started[3]}")"
    for rank in 0 1 2; do
        expect_ends "$rank" 1 'node3, .*, gave up: interrupted by SIGTERM'
    done
    wait "${started[3]}"
    grep -q '"by": "SIGTERM"' "$scratch/r.json" || fail "$what: the result does not say it"

    what='never started'
    for rank in 0 1 3; do
        start "$rank" "$rank" --connect-timeout 2
    done
    for rank in 0 1 3; do
        expect_ends "$rank" 1 'rank 2 did not come within'
    done
    what='started twice'
    for rank in 0 1 2; do
        start "$rank" "$rank" --endpoints 1 --size 1K
    done
    start 1 4 --endpoints 1 --size 1K
    # Whichever of the two is the second.
    local i
    for ((i = 0; i < 400; i++)); do
        grep -q 'rank 1 (.*) is here already' "$scratch/out.1" "$scratch/out.4" 2>/dev/null && break
        sleep 0.05
    done
    start 3 3 --endpoints 1 --size 1K
    for rank in 0 2 3; do
        expect_ends "$rank" 0 ''
    done
    wait "${started[1]}" "${started[4]}"
    grep -q 'refused: rank 1\|rank 1 .*started twice\|is here already' "$scratch/out.0" || fail "$what: node0 does not tell it"
    what='another key'
    (umask 077 && "$weft" key >"$scratch/key" && "$weft" key >"$scratch/other") || fail 'no keys'
    for rank in 0 1 2; do
        start "$rank" "$rank" --connect-timeout 3 --key-file "$scratch/key"
    done
    start 3 3 --connect-timeout 3 --key-file "$scratch/other"
    expect_ends 3 1 'key'
    for rank in 0 1 2; do
        expect_ends "$rank" 1 'rank 3 did not come within'
    done
    what='other options at one node'
    for rank in 0 1 2 3; do
        start "$rank" "$rank" --size 1K --endpoints "$((rank == 2 ? 2 : 1))"
    done
    # node0 decides, and nobody minds.
    for rank in 0 1 2 3; do
        expect_ends "$rank" 0 ''
    done
    grep -q '24 of 24 samples' "$scratch/out.0" || fail "$what: $(cat "$scratch/out.0")"
}

# --- many of them ---

# What node0 needs, and how long it took until all had met; of the machine, no verdict.
tell() { # WHAT
    local sessions memory
    memory=$(grep -o '"max_rss_bytes": [0-9]*' "$scratch/r.json" | head -1 | cut -d ' ' -f 2)
    sessions=$(grep -o '"session_s": [0-9.]*' "$scratch/r.json" | head -1 | cut -d ' ' -f 2)
    echo "$1: node0 has $((memory / 1000)) KB, all had met after $sessions s"
}

test_many() {
    local nodes
    mesh 16 '16 nodes' --endpoints 1 --size 64K
    expect_result "$scratch/r.json" 16 480 '16 nodes'
    expect_even 30 '16 nodes'
    tell '16 nodes, mesh, isolated and loaded'
    for nodes in 8 16 32 64; do
        mesh "$nodes" "ring of $nodes" --endpoints 1 --size 64K --pattern ring
        expect_result "$scratch/r.json" "$nodes" $((2 * nodes)) "ring of $nodes"
        tell "$nodes nodes, ring"
    done
}

case $1 in
whole) test_whole ;;
broken) test_broken ;;
many) test_many ;;
esac
finish
