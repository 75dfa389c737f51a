#!/bin/bash
# test_plugin.sh: --backend weft,plugin, the net plugin as NCCL drives it: every byte is verified, more messages than NCCL
# has under way arrive as well, settings reach the library in the plugin, and what cannot be had is said in one line.
. "$(dirname "$0")/loop_lib.sh"
: "${PLUGIN:?the file of the plugin}" "${EMULATED:?the folder of the emulated libraries}"
limit=100
command -v jq >/dev/null || skip "needs the program jq"
command -v ss >/dev/null || skip "needs the program ss"

base="--local --rails $rails --plugin-library $PLUGIN --json result.json --csv result.csv"

run() { # WANTED-STATUS ARGUMENTS...
    local want=$1 command=$2
    shift 2
    rm -f result.json result.csv
    # shellcheck disable=SC2086
    weft "$command" $base "$@"
    pass_if "weft $command $*: status $status, not $want: $(head -3 err)" [ "$status" -eq "$want" ]
}

json() { # PROGRAM [FILE]
    jq -e "$1" "${2:-result.json}" >/dev/null
}

told() { # WHAT
    pass_if "it says '$1': $(head -3 err)" grep -Fqe "$1" err
}

verified() {
    pass_if "verified: $(tail -2 out)" grep -q ' 0 wrong of .* verified; .* measured: passed' out
}

# ---- sizes, patterns, depths
run 0 pair --size 0,1,65537,300001 -n 40 --inflight 4 --backend weft,plugin --check all
verified
pass_if "both have every size: $(jq -c '.samples[0]' result.json)" json '[.samples[] | .backend] | sort ==
    ["plugin", "plugin", "plugin", "plugin", "weft", "weft", "weft", "weft"]'
pass_if "either is verified whole: $(jq -c '.samples[] | [.backend, .verified_bytes]' result.json)" json '
    all(.samples[]; .wrong_bytes == 0 and .verified_bytes >= .measured_bytes and .measured_bytes == 40 * .size_bytes)'
pass_if "ratios, which count" json '(.ratios | length) == 4 and all(.ratios[]; .against == "plugin" and .comparable)'
pass_if "of the rails it tells nothing" json 'all(.samples[] | select(.backend == "plugin"); .rails == [])'
run 0 mesh --endpoints 3 --scope all --size 1,65537 -n 6 -w 1 --backend plugin,weft,null
verified
pass_if "every pair, within a node, too" json '[.samples[] | select(.backend == "plugin")] | length == 120'
run 0 mesh --endpoints 2 --pattern bidir --size 64K -n 20 --inflight 3 --buffers 3 --backend plugin
verified
run 0 pair --lat --size 0,8,64K -n 30 --backend weft,plugin --check all
verified
run 0 pair --size 128K -n 200 --inflight 8 --backend weft,plugin
run 0 pair --size 1M -n 40 --inflight 4 --backend weft,plugin
verified
run 0 mesh --endpoints 2 --mode loaded --size 4K -n 300 --inflight 200 --backend plugin
verified # NCCL has 32 under way

# ---- what was in force
pass_if "what was loaded: $(jq -c '.host[].backends' result.json)" json 'all(.host[].backends; length == 1) and
    all(.host[].backends[0]; .backend == "plugin" and .version == "Weft v11" and (.library | test("libnccl-net-weft")) and
        (.devices | length) == 1 and .devices[0].name == "weft-all" and .connect_s > 0 and
        (.said[0] | test("version .*rails 127.0.1.1,127.0.2.1")) and
        .variables.WEFT_RAILS == {"value": "127.0.1.1,127.0.2.1", "set_by": "weft"})'
pass_if "in the report: $(tail -5 out)" grep -q "^node1: plugin Weft v11, " out
WEFT_RAILS=127.0.9.9 WEFT_CHUNK=64K run 0 pair --size 300001 -n 20 --backend plugin --channels 2 --nccl-devices both
pass_if "options go before variables: $(jq -c '.host[0].backends[0]' result.json)" json '.host[0].backends[0] |
    .variables.WEFT_RAILS == {"value": "127.0.1.1,127.0.2.1", "set_by": "weft"} and
    .variables.WEFT_CHANNELS.value == "2" and .variables.WEFT_CHUNK == {"value": "64K", "set_by": "user"} and
    [.devices[].name] == ["weft-all", "weft-127.0.1.1", "weft-127.0.2.1"]'
pass_if "and hold at the other node" json '.host[1].backends[0].variables |
    .WEFT_CHANNELS.value == "2" and .WEFT_CHUNK.value == "64K"'
if [ "${PLUGIN##*/}" = libnccl-net-weft.so ]; then
    weft pair --local --rails "$rails" --size 8 -n 2 --backend plugin --json result.json
    pass_if "it is found beside the library: status $status: $(cat err)" [ "$status" -eq 0 ]
fi

# ---- a process that opens it more than once
timeout -k 5 "$limit" "$WEFT" pair --listen 127.0.0.1:0 --rails "$rails" --plugin-library "$PLUGIN" --keep >s.out 2>s.err </dev/null &
server=$!
waiting "$server" s.out
for i in 1 2 3; do
    weft pair --connect "127.0.0.1:$port" --rails "$rails" --plugin-library "$PLUGIN" --size 64K -n 20 --backend weft,plugin
    pass_if "run $i of a server that stays: status $status: $(cat err s.err)" [ "$status" -eq 0 ]
done
kill "$server"
wait "$server" 2>/dev/null
pass_if "nobody is left" nothing_left

# ---- beside other tools
weft peers --rounds 1 --seconds 0.02 --size 64K --tools weft,plugin --plugin-library "$PLUGIN" --json peers.json
pass_if "weft peers: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "it has a ratio, and is no other tool: $(jq -c '.samples[]' peers.json)" json '(.summary.compared | not) and
    any(.samples[]; .backend == "plugin" and .measured and .ratio > 0 and (.client.command | test("--backend=plugin")))' peers.json
pass_if "what it is: $(cat out)" grep -q 'plugin (Weft as NCCL drives it)' <(flat out)

# ---- what is not here, and what cannot be
run 77 mesh --size 64K --backend weft,plugin --plugin-library /nowhere/plugin.so
told '/nowhere/plugin.so'
pass_if "in one line: $(cat err)" [ "$(wc -l <err)" -eq 1 ]
run 77 pair --size 64K --backend plugin --plugin-library libc.so.6
told 'has no ncclNetPlugin_v11'
run 2 pair --lat --size 8 --background 64K --backend weft,plugin
told 'use --background 0'
if [ -e "$EMULATED/libcuda.so.1" ]; then
    unset WEFT_CUDA
    everywhere=${LD_LIBRARY_PATH:-}
    export LD_LIBRARY_PATH=$EMULATED${everywhere:+:$everywhere} WEFT_EMULATED_GPUS=2
    run 77 pair --size 64K -n 2 --memory cuda --backend weft,plugin
    told 'weft-all takes no GPU memory'
    told 'or --nccl-ptr cuda'
    run 0 mesh --size 1,65537 -n 4 --memory cuda --nccl-ptr cuda --backend weft,plugin
    verified
    LD_LIBRARY_PATH=$everywhere
    export WEFT_CUDA=off
fi

# ---- the other node dies
# shellcheck disable=SC2086
"$WEFT" mesh $base --endpoints 1 --size 1M -n 100000 --backend plugin >out 2>err </dev/null &
pid=$!
# Whether it sends to the second node, `child`, which has loaded the plugin.
measures() {
    child=$(pgrep -P "$pid") && grep -qs "${PLUGIN##*/}" /proc/"$child"/maps && has_sent "$pid" 10000000
}
until_true "the second node measures with the plugin" measures
kill -KILL "$child"
wait "$pid"
status=$?
pass_if "status $status: $(head -2 err)" [ "$status" -eq 1 ]
pass_if "nobody is left" nothing_left
finish
