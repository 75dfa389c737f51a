#!/bin/bash
# test_gpus.sh: the benchmark on GPUs that an emulated driver has: the full mesh as users start it, GPUs by a list, several
# endpoints on one, nodes of different memory, pairs within a node; and what is said where there is no driver, or none
# that works. No result of the emulated driver may pass for a GPU's, wherever one looks.
. "$(dirname "$0")/loop_lib.sh"
: "${EMULATED:?the folder of the emulated driver}" "${ROOT:?the root of the sources}"
unset WEFT_CUDA
[ -e "$EMULATED/libcuda.so.1" ] || skip "no emulated driver was built"

# A folder whose driver cannot be loaded stands for none, also on a machine that has one.
mkdir none
: >none/libcuda.so.1
with_gpus() { LD_LIBRARY_PATH=$EMULATED "$@"; }
without_gpus() { LD_LIBRARY_PATH=$work/none "$@"; }

# run WITH|WITHOUT ARGUMENTS...: weft with or without the driver; sets status, leaves out and err.
run() {
    local how=$1
    shift
    if [ "$how" = with ]; then
        with_gpus timeout -k 5 "${limit:-60}" "$WEFT" "$@" >out 2>err </dev/null
    else
        without_gpus timeout -k 5 "${limit:-60}" "$WEFT" "$@" >out 2>err </dev/null
    fi
    status=$?
    [ "$status" -lt 124 ] || fail "weft $*: status $status (hangs or crashes): $(cat err)"
}

passed() { # WHAT: the last run did
    pass_if "$1: status $status: $(cat err)" [ "$status" -eq 0 ]
    pass_if "$1: verified: $(tail -n 3 out)" grep -q ' 0 wrong of .* verified; .* measured: passed' out
}

refused() { # STATUS WORD WHAT: the last run was, in one line with the word
    pass_if "$3: status $status: $(cat err)" [ "$status" -eq "$1" ]
    pass_if "$3: no '$2' in: $(cat err)" grep -q -- "$2" err
    pass_if "$3: one line: $(cat err)" [ "$(wc -l <err)" -eq 1 ]
}

# memories FILE: what the samples lie in, each once, with a comma behind it.
memories() {
    sed -n '/"samples": \[/,$ s/^   *"memory": "\(.*\)".*/\1/p' "$1" | sort -u | tr '\n' ','
}

# says_emulated FOLDER COMMAND: every file of a result does, and no sample says anything else.
says_emulated() {
    pass_if "$1: the JSON" grep -q '"emulated": true' "$1/$2.json"
    pass_if "$1: its head" grep -q '^ "memory": "cuda (emulated)"' "$1/$2.json"
    pass_if "$1: its samples: $(memories "$1/$2.json")" [ "$(memories "$1/$2.json")" = 'cuda (emulated),' ]
    pass_if "$1: the CSV" [ "$(sed 1d "$1/$2.csv" | cut -d, -f2 | sort -u)" = 'cuda (emulated)' ]
    pass_if "$1: the report's first line: $(head -n 1 out)" [ "$(head -n 1 out | grep -c EMULATED)" -eq 1 ]
    pass_if "$1: what it was: $(cat out)" grep -q '^memory: cuda (emulated), ' out
    pass_if "$1: the verdict: $(cat out)" grep -q '^EMULATED GPU memory: .* passed' out
}

# ---- the full mesh as users start it: 8 GPUs a side
WEFT_BUILD=${WEFT%/bin/weft} with_gpus timeout -k 5 100 "$ROOT/run_p2p_fullmesh.sh" local \
    -b 1 -e 256K -f 512 -n 2 --out mesh --log-dir mesh/logs >out 2>err </dev/null
status=$?
passed "the full mesh"
says_emulated mesh mesh
pass_if "8 a side: $(grep endpoints: out)" grep -q 'endpoints: 8 per node' out
pass_if "every pair, size and mode" [ "$(sed 1d mesh/mesh.csv | wc -l)" -eq $((2 * 64 * 3 * 2)) ]
pass_if "every one verified" [ "$(grep -c '"wrong_bytes": 0' mesh/mesh.json)" -eq $((2 * 64 * 3 * 2 + 1)) ]
pass_if "endpoints are GPUs" [ "$(sed 1d mesh/mesh.csv | cut -d, -f7 | sort -u | grep -c '^node[01]:gpu[0-7]$')" -eq 16 ]
pass_if "16 logs: $(ls mesh/logs)" [ "$(grep -l '^# .*by node[01]:gpu[0-7], memory: cuda (emulated)$' mesh/logs/*.log | wc -l)" -eq 16 ]
pass_if "the GPUs' names and addresses" [ "$(grep -c '"pci": "0000:' mesh/mesh.json)" -eq 16 ]
if [ -e "$EMULATED/libnvidia-ml.so.1" ]; then
    pass_if "their state before and after" \
        [ "$(grep -c '"temperature_c": [0-9]' mesh/mesh.json)" -eq 32 ]
    pass_if "and the driver of each node" [ "$(grep -c '"gpu_driver": ".*emulated' mesh/mesh.json)" -eq 2 ]
fi

# ---- one pair, and its ping-pong beside other messages
run with pair --local --src node0:gpu3 --dst node1:gpu1 --size 0,1,3M -n 20 --out pair
passed "one pair"
says_emulated pair pair
pass_if "its names" grep -q '"src": "node0:gpu3"' pair/pair.json
run with pair --local --lat --size 8,64K -n 50 --background 256K --out lat
passed "ping-pong"
pass_if "ping-pong: $(head -n 1 out)" [ "$(head -n 1 out | grep -c EMULATED)" -eq 1 ]
run with pair --local --size 1M -n 30 --inflight 4 --buffers 9 --json buffers.json
passed "buffers of their own"
for what in "pair --size 1,3M -n 20 --inflight 4" "pair --lat --size 8,1M -n 20" "mesh --endpoints 3 --size 300001 -n 5 --scope all"; do
    # shellcheck disable=SC2086
    run with $what --local --check all --check-time-ms 3600000 --csv all.csv
    passed "$what --check all"
    pass_if "$what: verified twice what was measured, in each row: $(cut -d, -f9,35,36 all.csv)" awk -F, '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { rows++; if ($at["verified_bytes"] != 2 * $at["measured_bytes"] || $at["measured_bytes"] == 0) exit 1 }
        END { if (!rows) exit 1 }' all.csv
    run with $what --local --check all --check-time-ms 0 --fault seed=5,flip_every=2M
    pass_if "$what: flips are found: status $status: $(cat err)" [ "$status" -eq 1 ]
done

# ---- fewer GPUs than endpoints, and GPUs by a list
WEFT_EMULATED_GPUS=1 run with mesh --local --endpoints 4 --size 64K -n 2 --json shared.json
passed "4 endpoints on one GPU"
pass_if "says so: $(cat out)" grep -q '^node1: 4 endpoints on 1 GPU (GPU 0)' out
pass_if "and in the JSON" grep -q '"gpu_sharing": "4 endpoints on 1 GPU' shared.json
run with mesh --local --gpus 5,2 --size 64K -n 2 --json list.json
passed "a list"
pass_if "two endpoints: $(cat out)" grep -q 'endpoints: 2 per node' out
pass_if "which these are: $(cat out)" grep -q '^node0: 2 endpoints on 2 GPUs (GPUs 5 and 2, in turn)' out
GPU_LIST=1-3 run with mesh --local --size 4K -n 2
passed "GPU_LIST"
pass_if "of three: $(cat out)" grep -q 'endpoints: 3 per node' out
run with mesh --local --gpus 2,9 --size 64K -n 2
refused 2 'no such GPU: this machine has GPUs 0, 1, 2, 3, 4, 5, 6 and 7' "a GPU that is not there"
WEFT_EMULATED_GPUS=1 run with mesh --local --gpus 1
refused 2 'has GPU 0' "one GPU, and another is named"
run with mesh --local --gpus 0,x
refused 2 "'0,x'" "no number"
WEFT_EMULATED_MEMORY=64M run with pair --local --size 64M -n 2 --inflight 1
refused 1 'the memory of GPU 0, which has 64' "more than a GPU has"
WEFT_EMULATED_MEMORY=64M run with pair --local --preset begin=4M --preset end=64M -n 2 --inflight 1
passed "what a preset says gives way"
pass_if "to the GPU's memory: $(cat out)" \
    grep -q '^--end 64M gives way to 16M: otherwise .* of the memory of GPU 0, which has 64' out

WEFT_EMULATED_GPUS=2 run with pair --local --src node0:gpu8
refused 2 '--src node0:gpu8: there are 2 endpoints, one for each GPU here: name node0:gpu0 to node0:gpu1,' "a GPU too many"
WEFT_EMULATED_GPUS=1 run with pair --local --src node0:gpu0 --dst node1:gpu3
refused 2 '--dst node1:gpu3: there is 1 endpoint, one for each GPU here: name node1:gpu0,' "a second of one GPU"

# ---- a GPU that takes a quarter of a second for a chunk, with rails that are given up after a fraction of that: the
# streams' windows close meanwhile, and no rail is to blame
WEFT_EMULATED_RATE=2M run with pair --local --rails $rails --size 2M --inflight 2 -n 2 -w 0 --set rail_timeout_ms=60 \
    --set staging=64K --json slow.json
passed "a slow GPU"
pass_if "loses no channel: $(cat err)" [ "$(json_numbers slow.json failures | sort -u)" = 0 ]

# ---- staging memory that cannot be pinned: slower, and told with the result
WEFT_EMULATED_FAULT=register:at=1 run with pair --local --size 1M -n 5 --json unpinned.json
passed "staging that is not pinned"
for node in node0 node1; do
    pass_if "is a fallback of $node: $(sed -n '/"fallbacks"/,/]/p' unpinned.json)" \
        grep -q "^  \"$node: cuda: staging memory of GPU 0 is not pinned, copies are slower: .*locked-memory" unpinned.json
done
pass_if "and of the report: $(cat out)" grep -q 'fallback: node0: cuda: staging memory of GPU 0 is not pinned' <(flat out)

# ---- a GPU that fails ends the run on both nodes, and is named
# fails FAULT TEXT: what the emulated driver does, and what is said of it.
fails() {
    WEFT_EMULATED_GPUS=2 WEFT_EMULATED_FAULT=$1 run with mesh --local --size 64K,3M -n 5 --out failed --log-dir failed
    pass_if "$1: status $status: $(cat err)" [ "$status" -eq 1 ]
    pass_if "$1: no '$2' in: $(cat err)" grep -q -- "$2" err
    pass_if "$1: nobody is left" nothing_left
}
# Of a landing that failed, its sender may be the first to tell, and it knows no more than that.
fails copy:way=in,at=40 'GPU [01]\|Input/output error'
fails launch:way=out,at=10 'GPU [01] failed to copy bytes .* out of its memory: CUDA_ERROR_LAUNCH_FAILED'
pass_if "a failed launch ends the use of a GPU: $(cat err)" \
    grep -q 'GPU [01] cannot be used any more: CUDA_ERROR_LAUNCH_FAILED' err
pass_if "which is not lost by that: $(cat err)" [ "$(grep -c 'is lost' err)" -eq 0 ]
fails lost:device=1,at=30 'GPU 1'
pass_if "one that is lost is called that: $(cat err)" \
    grep -q 'GPU 1.*: it is lost: CUDA_ERROR_UNKNOWN' err
fails alloc:at=2 'of buffers: GPU 0'

# ---- within a node, too
run with mesh --local --endpoints 3 --scope intra --size 64K -n 2 --json intra.json
passed "within the nodes"
pass_if "12 pairs, each mode" [ "$(grep -c '"scope": "intra"' intra.json)" -eq 24 ]
run with mesh --local --endpoints 2 --scope all --size 64K -n 2 --json all.json
passed "all pairs"
pass_if "of both kinds" [ "$(grep -c '"scope": "intra"' all.json).$(grep -c '"scope": "inter"' all.json)" = 8.16 ]

# ---- collectives in GPU memory; the stand-in for NCCL has sends and receives alone
run with collective --memory cuda --op all --processes 3 --size 4,1000,300K -n 2 -w 0 --json collective.json
pass_if "collectives: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "verified: $(memories collective.json)" [ "$(memories collective.json)" = 'cuda (emulated),' ]
run with collective --backend weft,nccl,gloo --memory cuda --op sendrecv,alltoall --size 1000,300K -n 2 -w 0 --csv nccl.csv
pass_if "beside NCCL: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "out of place, and what it has not: $(cat nccl.csv)" \
    [ "$(grep -Ec '^nccl,as installed,cuda \(emulated\),(sendrecv|alltoall),.*,0,[0-9]+,1$' nccl.csv)" = 4 ]
pass_if "Gloo has no GPU memory: $(cat out)" grep -q 'gloo: it is measured in host memory only: leave out --memory cuda' out
run with collective --backend nccl --gpus 3 --op sendrecv --place out --size 1000 -n 2 -w 0
pass_if "two ranks on one GPU: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "are on hosts of their own to NCCL: $(cat out)" grep -q 'NCCL_HOSTID=weft-rank0 (set by weft)' out
run with collective --backend nccl --size 1000 -n 2
pass_if "an error of NCCL's: status $status: $(cat err)" \
    grep -q 'rank [01]: all_reduce of 1000 bytes: NCCL: invalid usage: the stand-in has no collectives' err
run with collective --backend nccl --memory host --size 1000 -n 2
pass_if "NCCL in host memory: status $status: $(cat out)" grep -q 'n/a: nccl: it works on GPU memory' out
layers="--layers 4 --layer-mb 1 --bucket-mb 2 --batch 3 -n 1 -w 0"
run with overlap $layers --memory cuda --style all_reduce,server --backend weft,gloo --json layers.json
pass_if "layers on GPUs: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "what computes: $(cat out)" grep -q '^# 4 layers of 1 MiB of gradients, batch 3, computed by cuBLAS 13.0.99 (a stand-in)$' out
pass_if "verified: $(cat out)" grep -qx "# Gradients verified: $((4 * 262144 * 3 * 2)) elements, 0 wrong: OK" out
pass_if "a server is n/a: $(cat out)" grep -q 'a server adds on the processor, and the gradients are on a GPU' out
pass_if "so is Gloo: $(cat out)" grep -q 'gloo among 2 ranks: it is measured in host memory only: leave out --memory cuda' out
CUBLAS_STANDIN=flip run with overlap $layers --memory cuda
pass_if "products that are wrong are found: status $status: $(cat out)" \
    grep -qx "# Gradients verified: $((4 * 262144 * 3 * 2)) elements, $((4 * 3 * 2)) wrong: FAILED" out
CUBLAS_STANDIN=fail run with overlap $layers --memory cuda
pass_if "products that fail, too: status $status: $(cat err)" grep -q 'rank [01]: a product on a GPU: error 13 of cuBLAS' err
run with overlap $layers --memory cuda --backend nccl
pass_if "NCCL gets as far as its own error: $(cat err)" grep -q 'NCCL: invalid usage: the stand-in has no collectives' err
run with overlap $layers --backend nccl
pass_if "NCCL in host memory: $(cat out)" grep -q 'n/a: nccl among 2 ranks: it works on GPU memory: add --memory cuda' out
run with collective --backend weft,nccl --op sendrecv --place out --size 1000 -n 2 -w 0
pass_if "unlike memory has no ratio: $(cat out)" grep -q '^# no ratio of nccl, in memory cuda (emulated), and weft, in memory host' out
pass_if "not in the table either: $(cat out)" grep -Eq '^sendrecv +2 +1000 out +[0-9.]+ +[0-9.]+$' out
run with setup-cost --backend nccl -n 2
pass_if "what a communicator costs wants a collective: $(cat err)" grep -q 'the stand-in has no collectives' err

# ---- host memory at one side
run with pair --local --src node0:host0 --dst node1:gpu1 --size 1M -n 5 --json mixed.json
passed "from host memory to a GPU"
pass_if "$(memories mixed.json)" [ "$(memories mixed.json)" = 'host/cuda (emulated),' ]
run with pair --local --src node0:gpu0 --dst node1:host0 --size 1M -n 5 --json mixed.json
passed "from a GPU to host memory"
pass_if "$(memories mixed.json)" [ "$(memories mixed.json)" = 'cuda (emulated)/host,' ]
run with pair --local --src node0:gpu0 --dst node0:host1 --size 1M
refused 2 'one kind of memory' "both kinds at one node"
run with mesh --local --memory host --endpoints 2 --size 64K -n 2
passed "host memory, although there are GPUs"
pass_if "is that: $(cat out)" grep -q '^memory: host, ' out

# mixed NODE0 NODE1 WANTED: two nodes, with and without GPUs, that were told nothing of memory.
mixed() {
    local listening port ended
    rm -f server.out
    "$1_gpus" timeout -k 5 60 "$WEFT" mesh --listen 127.0.0.1:0 --rails $rails --json server.json \
        >server.out 2>&1 </dev/null &
    listening=$!
    waiting $listening server.out
    run "$2" mesh --connect "127.0.0.1:$port" --rails $rails --size 1,64K -n 3 --endpoints 2 --json mixed.json
    wait $listening
    ended=$?
    pass_if "$1 and $2 GPUs: the server: status $ended: $(cat server.out)" [ $ended -eq 0 ]
    passed "$1 and $2 GPUs"
    pass_if "$1 and $2 GPUs: $(memories mixed.json)" [ "$(memories mixed.json)" = "$3" ]
    pass_if "both nodes say the same" [ "$(memories server.json)" = "$3" ]
    pass_if "$1 and $2 GPUs: the head of $(head -n 1 out)" grep -q EMULATED out
}
mixed with without 'cuda (emulated)/host,host/cuda (emulated),'
mixed without with 'cuda (emulated)/host,host/cuda (emulated),'

# A server without GPUs refuses what the client wants, and both say why.
rm -f server.out
without_gpus timeout -k 5 60 "$WEFT" mesh --listen 127.0.0.1:0 --rails $rails >server.out 2>&1 </dev/null &
listening=$!
waiting $listening server.out
run with mesh --connect "127.0.0.1:$port" --rails $rails --size 64K --memory cuda
wait $listening
ended=$?
pass_if "a server without GPUs: status $ended: $(cat server.out)" [ $ended -eq 77 ]
refused 77 'no GPU memory at node0: no libcuda.so.1' "a client of it"

# ---- no driver, and one without a GPU
run without mesh --local --set cuda=require
refused 77 'cuda = require: no GPU memory at node0: no libcuda.so.1' "cuda = require"
WEFT_CUDA=require run without pair --local --memory host
refused 77 'no libcuda.so.1' "WEFT_CUDA=require"
run without mesh --local --memory cuda
refused 77 'no libcuda.so.1' "--memory cuda"
run without pair --local --src node0:gpu0
refused 77 '--src, --dst: no GPU memory at node0' "a GPU as source"
run with mesh --local --memory cuda --set cuda=off
refused 77 'cuda = off: leave one of them out' "cuda = off"
# weft peers says so before it starts anything, and for the right node.
for asked in '--memory cuda' '--cuda require' '--devmem require' '--gpus 0'; do
    for place in '0 --local' '0 --listen 127.0.0.1:0' '1 --connect 127.0.0.1:1'; do
        # shellcheck disable=SC2086
        run without peers ${place#* } --rails 127.0.0.1 --tools weft --size 64K --rounds 1 $asked
        refused 77 "no GPU memory at node${place%% *}: no libcuda.so.1.*: leave it out, or use a machine with GPUs" \
            "peers ${place#* } $asked"
        pass_if "peers ${place#* } $asked: nothing is begun: $(cat out)" [ ! -s out ]
    done
done
run without mesh --local --endpoints 1 --size 64K -n 2
passed "no driver, nothing asked for"
pass_if "is host memory: $(cat out)" grep -q '^memory: host, ' out
pass_if "and no word of CUDA: $(cat out)" [ "$(grep -ci cuda out err | grep -c ':0$')" -eq 2 ]
WEFT_EMULATED_GPUS=0 run with mesh --local --endpoints 1 --size 64K -n 2
passed "a driver without a GPU"
pass_if "is a fallback: $(cat out)" grep -q 'fallback: node0: cuda: no GPU memory: ' <(flat out)

# ---- weft topo
run without topo
pass_if "topo: why not, in one line: $(cat out)" [ "$(grep -c '^ *GPUs: none usable: no libcuda.so.1' out)" -eq 1 ]
WEFT_EMULATED_GPUS=2 run with topo
pass_if "topo: which there are: $(cat out)" grep -q 'GPUs: 2, memory cuda (emulated)' out
WEFT_EMULATED_GPUS=2 run with topo --rails 127.0.0.1
pass_if "topo: why no device memory at loopback: $(cat out)" \
    grep -q 'device memory: \(loopback has no card\|not with this driver\)' out
# planned WANTED OPTION...: the endpoints that the plan has.
planned() {
    local wanted=$1 there
    shift
    WEFT_EMULATED_GPUS=4 run with topo "$@" --json topo.json
    there=$(sed -n 's/^ *"endpoint": "\(.*\)".*/\1/p' topo.json | tr '\n' ' ')
    pass_if "topo $*: status $status: $(cat err)" [ "$status" -eq 0 ]
    pass_if "topo $*: $there" [ "$there" = "$wanted" ]
}
planned 'gpu0 gpu1 gpu2 gpu3 '
planned 'gpu0 gpu1 gpu2 gpu3 ' --gpus all
planned 'gpu3 gpu1 ' --gpus 3,1
planned 'host0 host1 host2 host3 host4 host5 host6 host7 ' --set cuda=off
planned 'gpu0 gpu1 ' --endpoints 2
planned 'gpu3 gpu1 ' --gpus 3,1 --endpoints 6
planned 'host0 host1 ' --endpoints 2 --memory host
WEFT_EMULATED_GPUS=4 run with topo --gpus 4
refused 2 'no such GPU: this machine has GPUs 0, 1, 2 and 3' "topo: a GPU that is not there"
for asked in '--set cuda=require' '--memory cuda' '--gpus 0'; do
    # shellcheck disable=SC2086
    run without topo $asked
    refused 77 'no GPU memory here: no libcuda.so.1' "topo $asked"
done
run with topo --gpus 0 --set cuda=off
refused 77 'gpus: no GPU memory here: cuda = off' "topo: GPUs that are not to be used"

pass_if "nobody is left" nothing_left
finish
