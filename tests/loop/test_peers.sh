#!/bin/bash
# test_peers.sh: weft peers with whatever tools are here: what it prints and writes, what it does about tools that are
# not here or fail, and that nothing of them is left. No figure counts.
. "$(dirname "$0")/loop_lib.sh"
limit=100
command -v jq >/dev/null || skip "needs the program jq"

quick="--rounds 1 --seconds 0.02"

# Whether a JSON file has the property that a jq program states.
json() { # FILE PROGRAM
    jq -e "$2" "$1" >/dev/null
}

gone() { # PID
    local tries
    for ((tries = 0; tries < 50; tries++)); do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.2
    done
    return 1
}

# No line is wider than a terminal is at least.
narrow() { # FILE
    pass_if "no line is wider than 80: $(cat "$1")" awk 'length > 80 { wide = 1 } END { exit wide }' "$1"
}

# ---- every tool
weft peers $quick --size 64K --json all.json
pass_if "status $status: $(cat err)" [ "$status" -eq 0 ]
narrow out
pass_if "what will run: $(cat out)" grep -q '^tools  *weft [0-9][0-9.]*[0-9], raw (plain sockets, the floor)' out
pass_if "for how long: $(cat out)" grep -Eq '^takes +about [0-9]+ (s|minutes): an estimate for an idle machine, of [0-9]+ runs at( most)?$' out
pass_if "where: $(cat out)" grep -q '^ *loopback: says nothing about a network$' out
pass_if "a head: $(cat out)" grep -q '^tool  *bandwidth  *spread  *weft/tool  *CPU s/GB$' out
pass_if "Weft has a line: $(cat out)" grep -Eq '^weft +[0-9.]+ GB/s +([0-9]+%|-) +1 +[0-9.]+$' out
for tool in $(jq -r '.samples[] | select(.installed) | .backend' all.json); do
    pass_if "$tool has a line: $(cat out)" grep -q "^$tool " out
done
for tool in $(jq -r '.samples[] | select(.installed | not) | .backend' all.json); do
    pass_if "$tool is not here: $(cat out)" grep -Eq "^not here: (.*, )?$tool(,|$)" out
done
pass_if "an end: $(cat out)" grep -Eq '^1 of 1 case in [0-9]+ (s|minutes), over loopback: says nothing about a network$' out
pass_if "what was expected: $(jq -c .expected all.json)" json all.json '.expected | .runs > 0 and .seconds > 0 and
    (.tools | length) >= 7 and all(.tools[]; (.installed | not) or .cases == 1 or (.reason | length) > 0) and
    (.tools[0] | .name == "weft" and .cases == 1 and (.version | test("^[0-9]+[.][0-9]")))'
pass_if "whether there is a comparison: $(jq -c .summary all.json)" json all.json '.summary.compared ==
    any(.samples[]; .measured and .backend != "weft" and .backend != "raw" and .backend != "plugin")'
pass_if "what a result is" json all.json '.schema == "weft.result/1" and .command == "peers" and .cut_short == null and
    .summary.passed and (.samples | length) == .summary.samples_planned and (.config.rounds.value == 1) and
    (.host[0].engine | length) > 0 and (.fallbacks | type) == "array"'
pass_if "a tool that was measured has figures and command lines: $(jq -c '.samples[]' all.json)" json all.json \
    '[.samples[] | select(.measured) | (.rounds | length) == 1 and (.median | type) == "number" and
        .min <= .median and .median <= .max and (.unit == "GB/s") and (.bw_gb_per_s == .median) and
        .size_bytes == 65536 and .inflight == 16 and .buffers == 1 and .messages >= 16 and
        (.client.command | length) > 0 and (.client.environment | type) == "array" and (.note | type) == "string" and
        (.variants[.variant].client.command == .client.command)] | length > 0 and all'
pass_if "one that was not has a reason: $(jq -c '.samples[]' all.json)" json all.json \
    '[.samples[] | select(.measured | not) | .reason | length > 0] | all'
pass_if "Weft is measured by weft pair" json all.json '[.samples[] | select(.backend == "weft")] |
    length == 1 and .[0].ratio == 1 and (.[0].client.command | test("weft pair ")) and .[0].cpu_s_per_gb > 0'
if command -v iperf3 >/dev/null; then
    pass_if "iperf3 in several ways: $(cat out)" json all.json '.samples[] | select(.backend == "iperf3") |
        .measured and (.variants | length) >= 5 and .ratio > 0 and .cpu_s_per_gb > 0 and
        (.server.command | startswith("iperf3 -s"))'
fi
if command -v ucx_perftest >/dev/null && jq -e '.samples[] | select(.backend == "ucx")' all.json >/dev/null; then
    pass_if "UCX: $(cat out)" json all.json '.samples[] | select(.backend == "ucx") | .measured and .ratio > 0'
fi
pass_if "nobody is left" nothing_left

# ---- other cases
weft peers $quick --rounds 3 --tools weft --lat --size 8 --json - --out results
pass_if "latency: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "half round trips: $(cat out)" json out '.samples[0] | .metric == "latency" and .unit == "us" and
    (.rounds | length) == 3 and .time_us.p50 == .median and .time_us.p99 >= .time_us.p50 and .inflight == 1'
pass_if "text goes elsewhere: $(cat err)" grep -q '^half round trip, messages of 8 bytes' err
narrow err
pass_if "Weft alone is no comparison: $(cat err)" [ "$(grep -c '^NOTHING TO COMPARE WITH: ' err)" -eq 2 ]
pass_if "the folder has the same" json results/peers.json '.samples[0].metric == "latency"'
weft peers $quick --tools weft --rate --iters 1000 --warmup 64 --quiet --json rate.json
pass_if "rate: $(cat err)" json rate.json '.samples[0] | .metric == "rate" and .size_bytes == 64 and .messages == 1000 and
    .warmup == 64 and .inflight == 64 and .messages_per_s == .median'
weft peers $quick --tools weft --rate --warmup 0 --quiet --json warmup.json
pass_if "a warm-up without a number of messages: $(cat err)" json warmup.json '.samples[0] | .warmup == 0 and
    .messages > 64 and (.client.command | test("--warmup=0"))'
pass_if "quiet: $(cat out err)" [ -z "$(cat out err)" ]
weft peers $quick --tools weft --rate --size 8,64 --iters 1000
pass_if "rates: $(cat out)" [ "$(grep -Ec '^weft +[0-9.]+ (million|thousand)?/s ' out)" -eq 2 ]
pass_if "an estimate of a number of messages: $(cat out)" grep -q ' known of their speed (--iters)$' out
narrow out
weft peers $quick --tools weft --rails 127.0.1.1,127.0.2.1 --size 64K --channels 2 --json rails.json
pass_if "two rails: $(cat err)" json rails.json '(.rails | length) == 2 and
    (.samples[0].client.command | test("--rails 127.0.1.1,127.0.2.1 .*--set=channels=2"))'
# What a WEFT_ variable beats here is not even looked at by the programs that are started.
long=$(printf 'eth%d,' {1..999})
NCCL_SOCKET_IFNAME=$long WEFT_RAILS=127.0.0.1 UCCL_TCPX_NUM_CHANNELS=many WEFT_CHANNELS=2 \
    weft peers $quick --tools weft --size 64K --json beaten.json
pass_if "variables of other programs that WEFT_ ones beat: $(cat out err)" json beaten.json '.samples[0] | .measured and
    .failures == 0'

# ---- tools that are not here, or fail
# Runs weft where no tools are found but those in bin/.
with_tools() { # ARGUMENTS...
    timeout -k 5 "$limit" env PATH="$PWD/bin" "$WEFT" "$@" >out 2>err </dev/null
    status=$?
}
tool() { # NAME: a script of what stands on standard input
    { printf '#!%s\n[ "$1" = --version ] && { echo "%s 98.76"; exit; }\n' "$BASH" "$1" && cat; } >"bin/$1"
    chmod +x "bin/$1"
}
mkdir bin
with_tools peers $quick --size 64K --json absent.json
pass_if "without other tools: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "the package is named: $(cat out)" grep -q '^not here  *iperf3: Debian package iperf3$' out
pass_if "first and last there is nothing to compare with: $(cat out)" \
    [ "$(grep -c '^NOTHING TO COMPARE WITH: ' out)" -eq 2 ]
pass_if "and what would bring something: $(cat out)" [ "$(grep -c '^  openmpi  *openmpi-bin, and Weft' out)" -eq 2 ]
pass_if "nor does a table look like it: $(cat out)" grep -q '^no other tool was measured in this case' out
pass_if "no comparison" json absent.json '.summary.compared == false and .summary.passed'
narrow out
pass_if "and in the file" json absent.json '.samples[] | select(.backend == "iperf3") |
    (.installed | not) and (.measured | not) and .package == "iperf3" and .variants == []'
tool iperf3 <<<'echo "no memory left" >&2; exit 3'
with_tools peers $quick --tools weft,iperf3 --size 64K --json failed.json
pass_if "a tool that fails is a line: status $status: $(cat out err)" [ "$status" -eq 0 ]
pass_if "with what it said: $(cat out)" grep -q '^iperf3 .*failed: iperf3 ended with status 3' out
pass_if "its version: $(cat out)" grep -q '^tools  *weft [0-9.]*, iperf3 98.76$' out
pass_if "at the end, too: $(cat out)" grep -q '^iperf3  *failed$' out
pass_if "there is no comparison: $(cat out)" grep -q '^NOTHING TO COMPARE WITH: every other tool failed' out
narrow out
pass_if "and in the file" json failed.json '.samples[] | select(.backend == "iperf3") | .installed and
    (.measured | not) and (.reason | test("no memory left")) and .failures > 0'

# ---- read while it goes on
# The tool keeps what could be read when it was run for the first time, and it is what is measured first.
tool iperf3 <<EOF
[ -e $PWD/seen ] || printf '%s\n' "\$(<$PWD/out)" >$PWD/seen
exit 3
EOF
with_tools peers --rounds 1 --iters 8 --tools iperf3 --size 64K
pass_if "first of all, for how long: $(cat seen)" grep -q '^takes  *about' seen
pass_if "and nothing else: $(cat seen)" [ "$(grep -c '^tool  ' seen)" -eq 0 ]
pass_if "which comes later: $(cat out)" [ "$(grep -c '^tool  ' out)" -eq 1 ]

# ---- interrupted and killed, while a tool hangs in the second case: the first one can be read by then
started() { # waits for the tool: its process id, and that of a child which has left its group
    local tries=0
    until [ "$(cat pids 2>/dev/null | wc -l)" = 2 ] || [ $((tries += 1)) -gt 300 ]; do
        sleep 0.1
    done
    cat pids
}
hang="$(command -v setsid) $(command -v sleep) 1000 &
printf '%d\n%d\n' \$\$ \$! >$PWD/pids
exec $(command -v sleep) 1000"
tool iperf3 <<EOF
[[ \$(<$PWD/out) == *"(case 1 of 2)"* ]] || exit 3
$hang
EOF
for signal in INT TERM KILL; do
    rm -f pids cut.json
    env PATH="$PWD/bin" "$WEFT" peers $quick --tools weft,iperf3 --size 64K,128K \
        --json cut.json >out 2>err </dev/null &
    pid=$!
    pids=$(started)
    kill -s "$signal" "$pid"
    wait "$pid" 2>/dev/null
    status=$?
    pass_if "the tool ran" [ -n "$pids" ]
    for one in $pids; do
        pass_if "after SIG$signal the tool's process $one is gone" gone "$one"
    done
    pass_if "after SIG$signal nobody is left" nothing_left
    pass_if "after SIG$signal the first case is there: $(cat out)" grep -Eq '^weft +[0-9.]+ GB/s ' out
    [ "$signal" = KILL ] && continue
    pass_if "after SIG$signal: status $status: $(cat err)" [ "$status" -eq 1 ]
    pass_if "the table says so: $(cat out)" grep -q "only 0 of 1 rounds: interrupted by SIG$signal" out
    pass_if "the file says so" json cut.json \
        ".cut_short.by == \"SIG$signal\" and (.summary.passed | not) and .interrupted"
done

# ---- two nodes
two_nodes() { # ARGUMENTS of the client...; the server allows Weft and iperf3
    rm -f s.out
    timeout -k 5 "$limit" env PATH="$server_path" "$WEFT" peers --listen 127.0.0.1:0 --rails 127.0.0.1 \
        --tools weft,iperf3 >s.out 2>s.err </dev/null &
    server=$!
    waiting "$server" s.out
    weft peers --connect "127.0.0.1:$port" --rails 127.0.0.1 $quick "$@"
    wait "$server"
    server_status=$?
}
server_path=$PATH
two_nodes --size 64K --tools weft,raw,iperf3 --json two.json
pass_if "two nodes: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "and the server: status $server_status: $(cat s.err)" [ "$server_status" -eq 0 ]
pass_if "the server's command line is its own: $(jq -c '.samples[]' two.json)" json two.json '.samples[] |
    select(.backend == "weft") | .measured and (.server.command | test("weft pair --listen=127.0.0.1:")) and
    (.client.command | test("--connect=127.0.0.1:")) and .cpu_s_per_gb > 0'
pass_if "tools that the server does not allow: $(jq -c '.samples[]' two.json)" json two.json '.samples[] |
    select(.backend == "raw") | (.measured | not) and (.reason | test("node0: raw: .*--tools excludes it"))'
if command -v iperf3 >/dev/null; then
    pass_if "iperf3 between two nodes" json two.json '.samples[] | select(.backend == "iperf3") | .measured'
fi
# A port of node0 that somebody else takes before the server has it: node1 asks for another, a few times.
if command -v iperf3 >/dev/null; then
    mkdir unlucky
    cat >unlucky/iperf3 <<EOF
#!$BASH
[ -e tried ] && exec $(command -v iperf3) "\$@"
: >tried
echo "bind: Address already in use" >&2
exit 1
EOF
    chmod +x unlucky/iperf3
    server_path=$PWD/unlucky
    two_nodes --size 64K --tools weft,iperf3 --json unlucky.json
    pass_if "the first port is taken" [ -e tried ]
    pass_if "and another is not: $(jq -c '.samples[]' unlucky.json)" json unlucky.json '.samples[] |
        select(.backend == "iperf3") | .measured and .failures == 0'
    printf '#!%s\necho >>tries\necho "bind: Address already in use" >&2\nexit 1\n' "$BASH" >unlucky/iperf3
    two_nodes --size 64K --tools weft,iperf3 --json unlucky.json
    pass_if "all are taken: $(jq -c '.samples[]' unlucky.json)" json unlucky.json '.samples[] |
        select(.backend == "iperf3") | (.measured | not) and (.reason | test("node0: .*Address already in use"))'
    failed=$(jq '.samples[] | select(.backend == "iperf3") | .failures' unlucky.json)
    pass_if "five ports for each of $failed runs: $(wc -l <tries)" [ "$(wc -l <tries)" -eq $((5 * failed)) ]
fi
server_path=$PWD/none
two_nodes --size 64K --tools weft,iperf3 --json lacking.json
pass_if "a server without tools: status $status: $(cat err)" [ "$status" -eq 0 ]
if command -v iperf3 >/dev/null; then
    pass_if "is told: $(jq -c '.samples[]' lacking.json)" json lacking.json '.samples[] |
        select(.backend == "iperf3") | .reason | test("node0: not installed: Debian package iperf3")'
fi
pass_if "nobody is left" nothing_left

# The server dies while a tool hangs there: both tools and the client end.
tool iperf3 <<<"$hang"
rm -f pids
rm -f s.out
env PATH="$PWD/bin" "$WEFT" peers --listen 127.0.0.1:0 --rails 127.0.0.1 >s.out 2>s.err </dev/null &
server=$!
waiting "$server" s.out
timeout -k 5 "$limit" env PATH="$PWD/bin" "$WEFT" peers --connect "127.0.0.1:$port" --rails 127.0.0.1 --rounds 1000 \
    --seconds 0.02 --tools iperf3,weft --size 64K --json lost.json >out 2>err </dev/null &
client=$!
pids=$(started)
pass_if "the tool ran at the server" [ -n "$pids" ]
kill -KILL "$server"
wait "$client"
status=$?
pass_if "the server's death ends the client: status $status" [ "$status" -eq 1 ]
pass_if "which says so: $(cat err)" grep -q '^weft: lost node0' err
pass_if "in its file, too: $(jq -c .cut_short lost.json)" json lost.json '.cut_short.reason | test("lost node0")'
for one in $pids; do
    pass_if "with the server its tool's process $one is gone" gone "$one"
done
pass_if "nobody is left" nothing_left

# ---- usage
wrong() { # WORD ARGUMENTS...
    local word=$1
    shift
    weft peers "$@"
    pass_if "weft peers $*: status $status: $(cat err)" [ "$status" -eq 2 ]
    pass_if "weft peers $*: no word of $word: $(cat err)" grep -Fq -e "$word" err
}
wrong iperf9 --tools iperf9
wrong seconds --seconds 0
wrong seconds --seconds soon
wrong "--size 0" --size 0
wrong rounds --rounds 0
wrong "--lat and --rate" --lat --rate
wrong --csv --csv x.csv
wrong "--json and --out" --listen 127.0.0.1:1 --json x.json
weft pair --local --rate
pass_if "an option of weft peers alone: $(cat err)" grep -q "but for 'weft peers'" err
# ---- nobody hears it
timeout -k 5 60 "$WEFT" peers --tools raw --size 64K --rounds 1000 >/dev/full 2>err </dev/null
status=$?
pass_if "nobody hears it: status $status" [ "$status" -eq 1 ]
pass_if "why: $(cat err)" grep -q 'cannot write standard output: No space left on device' err
finish
