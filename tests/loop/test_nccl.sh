#!/bin/bash
# test_nccl.sh: --backend weft,nccl with a stand-in for NCCL on the CUDA driver without a GPU: every byte is verified, what
# was in force is told, unlike is not compared, nothing passes for a GPU's figure, and a failure ends the run in time.
. "$(dirname "$0")/loop_lib.sh"
: "${EMULATED:?the folder of the emulated libraries}"
limit=100
command -v jq >/dev/null || skip "needs the program jq"
[ -e "$EMULATED/libcuda.so.1" ] || skip "no emulated driver was built"
[ -e "$EMULATED/libnccl.so.2" ] || skip "no stand-in for NCCL was built"

for name in $(env | sed -n 's/^\(NCCL_[A-Z_]*\)=.*/\1/p'); do
    unset "$name"
done
unset WEFT_CUDA VIRTUAL_ENV CONDA_PREFIX
export CUDA_MPS_PIPE_DIRECTORY=$PWD/no-mps
export LD_LIBRARY_PATH=$EMULATED${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export WEFT_EMULATED_GPUS=2
base="--local --memory cuda --rails $rails --json result.json --csv result.csv"

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

# ---- both backends over every pair
run 0 mesh --size 1,64K,300001 -n 5 -w 1 --inflight 2 --backend weft,nccl
pass_if "verified: $(tail -2 out)" grep -q ' 0 wrong of .* verified; .* measured: passed' out
pass_if "each backend has every pair, verified" json '[.samples[] | select(.backend == "nccl (emulated)")] as $nccl |
    [.samples[] | select(.backend == "weft")] as $weft | ($nccl | length) == 48 and ($weft | length) == 48 and
    all(.samples[]; .wrong_bytes == 0 and .memory == "cuda (emulated)" and .inflight == 2)'
pass_if "in the same order of modes, sizes and pairs" json '[.summary.sets[] | [.mode, .size_bytes]] as $sets |
    ($sets | length) == 12 and all(range(0; 12; 2); $sets[.] == $sets[. + 1])'
pass_if "ratios of each mode and size, which do not count: $(jq -c '.ratios[0]' result.json)" json '(.ratios | length) == 6
    and all(.ratios[]; .against == "nccl (emulated)" and .comparable == false and (.why | test("emulated")) and
        .median_bw > 0 and .median_p50 > 0) and all(.ratios[] | select(.mode == "loaded"); .aggregate_bw > 0)'
pass_if "in the report: $(cat out)" grep -q '^Weft / nccl (emulated), in turns' out
pass_if "with the remark" grep -q '^not comparable: emulated: neither a GPU nor NCCL was measured' out
pass_if "in the CSV it has its name" grep -q '^nccl (emulated),cuda (emulated),' result.csv
pass_if "nothing is called nccl alone" json 'all(.samples[]; .backend != "nccl")'

# ---- what was in force
pass_if "version, library and variables of both nodes: $(jq -c '.host[].backends' result.json)" json '
    all(.host[]; .backends | length == 1 and (.[0] | .version == "2.28.99" and (.library | endswith("/libnccl.so.2")) and
        .emulated and .mps == "off" and .one_machine and .shared_gpus == 2 and .time_sliced and .connect_s > 0 and
        .variables.NCCL_NET == {"value": "Socket", "set_by": "weft"} and
        .variables.NCCL_IB_DISABLE == {"value": "1", "set_by": "weft"} and
        .variables.NCCL_SOCKET_IFNAME == {"value": "=lo", "set_by": "weft"}))'
pass_if "each node is a host of its own" json '[.host[].backends[0].variables.NCCL_HOSTID.value] |
    length == 2 and .[0] != .[1]'
export NCCL_NET=Socket NCCL_DEBUG=WARN NOT_FOR_OTHERS=secret
run 0 mesh --size 64K -n 2 -w 0 --mode isolated --backend nccl
unset NCCL_NET NCCL_DEBUG NOT_FOR_OTHERS
pass_if "what the user has set is the user's: $(jq -c '.host[0].backends[0].variables' result.json)" json '
    .host[0].backends[0].variables | .NCCL_NET == {"value": "Socket", "set_by": "user"} and
    .NCCL_DEBUG == {"value": "WARN", "set_by": "user"} and .NCCL_IB_DISABLE.set_by == "weft"'
pass_if "and no other variable is told" sh -c '! grep -q NOT_FOR_OTHERS result.json out'
pass_if "one backend has no ratio" json '.ratios == []'

# ---- how much is verified
run 0 mesh --size 1,300001 -n 9 -w 1 --inflight 2 --buffers 3 --backend weft,nccl,null --check all --check-time-ms 3600000
pass_if "both passes of either verified, and nothing of what moves nothing: $(jq -c '.samples[0]' result.json)" json '
    all(.samples[]; .measured_bytes == .size_bytes * 9 and
        .verified_bytes == if .backend == "null" then 0 else 2 * .measured_bytes end)'
run 0 pair --lat --size 8,64K -n 30 --backend weft,nccl --check all --check-time-ms 3600000
pass_if "pings and pongs, too: $(jq -c '.samples[0]' result.json)" json '
    all(.samples[]; .measured_bytes == .size_bytes * 60 and .verified_bytes == 2 * .measured_bytes)'

# ---- other shapes
run 0 pair --lat --size 8,64K -n 30 -w 2 --backend weft,nccl
pass_if "ping-pong: times are compared: $(jq -c .ratios result.json)" json '(.ratios | length) == 2 and
    all(.ratios[]; .median_p50 > 0 and .median_bw == null)'
pass_if "no GPU but those of the pair: $(jq -c '.host[0].backends' result.json)" json \
    '.host[0].backends[0].shared_gpus == 1'
run 0 mesh --size 1000,64K -n 4 -w 1 --endpoints 4 --scope all --backend nccl,weft
pass_if "more endpoints than GPUs, within nodes, too: $(tail -2 out)" grep -q ' 0 wrong of .* verified; .* measured: passed' out
run 0 mesh --size 64K -n 4 --pattern incast --endpoints 3 --gpus 1 --backend nccl
run 0 mesh --size 64K -n 4 --pattern bidir --buffers 3 --inflight 3 --backend weft,nccl,null
pass_if "what moves nothing has no ratio" json 'all(.ratios[]; .against == "nccl (emulated)")'

# ---- beside other tools
weft peers --rounds 1 --seconds 0.02 --size 64K --memory cuda --json peers.json
pass_if "weft peers: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "NCCL beside Weft on GPUs that are none: $(cat out)" grep -q 'memory cuda (emulated): no GPU was measured' <(flat out)
pass_if "both are measured, and nothing of host memory: $(jq -c '.samples[]' peers.json)" json '
    .memory == "cuda (emulated)" and all(.samples[]; .measured == (.backend == "weft" or .backend == "nccl")) and
    any(.samples[]; .backend == "nccl" and .ratio > 0 and (.client.command | test("--backend=nccl")))' peers.json
weft peers --rounds 1 --seconds 0.02 --size 64K --tools weft,nccl --json peers.json
pass_if "never beside host memory: $(jq -c '.samples[]' peers.json)" json '.memory == "host" and
    any(.samples[]; .backend == "nccl" and (.measured | not) and (.reason | test("use --memory cuda")))' peers.json

# ---- wrong bytes are found
NCCL_STANDIN=flip run 1 pair --size 64K -n 4 --backend weft,nccl
told 'wrong bytes, the first at'
pass_if "NCCL's alone: $(jq -c '[.samples[] | [.backend, .wrong_bytes]]' result.json)" json '
    all(.samples[]; (.backend == "weft") == (.wrong_bytes == 0)) and (.summary.passed | not)'

# ---- unlike is not compared
run 2 mesh --size 64K --backend weft,nccl --fault seed=1,reset_every=8M
told 'acts on Weft alone: unlike cannot be compared'
run 2 mesh --size 0,64K --backend weft,nccl
told '0 bytes'
run 2 pair --lat --size 64K --background 64K --backend weft,nccl
told 'no tags'

# ---- what is not here
run 77 mesh --size 64K --backend weft,nccl --memory host
told 'NCCL moves GPU memory only'
run 77 mesh --size 64K --backend nccl --nccl-library /nowhere/libnccl.so.2
told '/nowhere/libnccl.so.2'
mkdir -p driver "venv/lib/python3.11/site-packages/nvidia/nccl/lib"
ln -s "$EMULATED/libcuda.so.1" driver/
ln -s "$EMULATED/libnccl.so.2" venv/lib/python3.11/site-packages/nvidia/nccl/lib/
everywhere=$LD_LIBRARY_PATH
export LD_LIBRARY_PATH=$PWD/driver
run 0 pair --size 64K -n 2 --backend nccl --nccl-library venv/lib/python3.11/site-packages/nvidia/nccl/lib
run 77 pair --size 64K -n 2 --backend nccl
if grep -q 'no libnccl.so.2' err; then # this machine has no NCCL of its own
    told 'in lib and the Python packages of VIRTUAL_ENV, CONDA_PREFIX and python3'
    told '/usr/local/cuda*/lib64'
    VIRTUAL_ENV=$PWD/venv run 0 pair --size 64K -n 2 --backend nccl
    pass_if "a wheel's library: $(jq -c '.host[0].backends' result.json)" json \
        '.host[0].backends[0].library | test("venv/lib/python3.11/site-packages/nvidia/nccl/lib")'
else
    told 'NCCL itself'
fi
export LD_LIBRARY_PATH=$everywhere

# ---- MPS: a control daemon's pipe with somebody behind it, and with nobody
mkdir mps
mkfifo mps/control
CUDA_MPS_PIPE_DIRECTORY=$PWD/mps run 0 mesh --size 64K -n 2 -w 0 --mode isolated --backend weft,nccl
pass_if "a pipe without a daemon" json 'all(.host[].backends[0]; .mps == "dead" and .time_sliced)'
exec 9<>mps/control
CUDA_MPS_PIPE_DIRECTORY=$PWD/mps run 0 mesh --size 64K -n 2 -w 0 --mode isolated --backend weft,nccl
pass_if "with MPS kernels run side by side: $(jq -c '.host[].backends' result.json)" json \
    'all(.host[].backends[0]; .mps == "on" and (.time_sliced | not) and (.mps_folder | endswith("/mps")))'
CUDA_MPS_PIPE_DIRECTORY=$PWD/mps timeout -k 5 "$limit" "$WEFT" mesh --listen 127.0.0.1:0 --rails "$rails" \
    --memory cuda >s.out 2>s.err </dev/null &
server=$!
waiting "$server" s.out
weft mesh --connect "127.0.0.1:$port" --rails "$rails" --memory cuda --size 64K -n 2 --backend weft,nccl
wait "$server"
pass_if "one node with MPS and one without: status $status" [ "$status" -eq 1 ]
told 'MPS is on at node0 and off at node1: unlike cannot be compared'
exec 9>&-

# ---- failures
NCCL_STANDIN=fail run 1 mesh --size 64K -n 50 --backend nccl
told 'remote process exited'
NCCL_STANDIN=alone run 1 mesh --size 64K -n 2 --backend nccl --connect-timeout 1
told 'making communicators: NCCL has not done it within 4 s'
for signal in INT KILL; do
    rm -f result.json
    # shellcheck disable=SC2086
    "$WEFT" mesh $base --size 1M -n 100000 --backend nccl --out out.d >out 2>err </dev/null &
    pid=$!
    tries=0
    until child=$(pgrep -P "$pid") && grep -qs '^nccl mover' /proc/"$child"/task/*/comm; do
        [ $((tries += 1)) -gt 200 ] && break
        sleep 0.05
    done
    pass_if "the second node has a communicator" [ "$tries" -le 200 ]
    if [ "$signal" = INT ]; then kill -INT "$pid"; else kill -KILL "$child"; fi
    wait "$pid"
    status=$?
    pass_if "SIG$signal: status $status: $(head -2 err)" [ "$status" -eq 1 ]
    pass_if "SIG$signal: nobody is left" nothing_left
done
finish
