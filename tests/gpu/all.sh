#!/bin/bash
# all.sh: everything that wants a GPU, in one call, on a machine that has one and need have nothing else: no second
# machine, no network, no root.
#
#     tests/gpu/all.sh [--build DIR] [--out DIR] [--rails LIST] [--rounds N] [--only REGEX] [--emulated]
#
#   --build DIR   a tree that is built already; without it this one is configured and built in build/
#   --out DIR     where the results go (results/gpu-DATE)
#   --rails LIST  the rails of both nodes, which are on this machine (127.0.1.1,127.0.2.1)
#   --rounds N    how often what is compared is measured, in turns (3)
#   --only REGEX  only the steps whose name matches it, as in '^(mps|pair-)'
#   --emulated    take the emulated driver for a GPU, to try this script out; every result says so
#
# It runs the unit and contract tests, the tests of messages with their buffers in GPU memory and on either side of the
# bus, verified meshes (sizes, patterns, both engines, faults, checksums, little staging, within a node), a short run
# under compute-sanitizer, and measures pairs and meshes: host to host, GPU to GPU, host to GPU, Weft beside NCCL through
# an MPS server of its own, half round trips of 8 bytes, all-reduce of Weft and of NCCL, a profile with its traces, NCCL
# and PyTorch over the plugin and over NCCL's sockets, the gather kernel. What a machine lacks (NCCL, MPS, compute-sanitizer, cmocka) is skipped with its reason.
#
# The folder of results:
#   summary.md    the machine, what became of each step, the table of figures, and how they stand to each other
#   steps.tsv     one line for each step: name, passed|failed|skipped, seconds, reason
#   machine.txt   GPUs, driver, kernel, processors, weft topo
#   STEP.log      what the step said
#   STEP/         its result: mesh.json, pair.json or profile.json, and .csv; of a profile its traces, too
#
# Exit status: 0 no step failed, 1 some did, 2 wrong usage, 77 there is no GPU that can be used here. Figures never decide
# it. Takes about 20 minutes; the machine should have nothing else to do.
set -u
export PATH=$PATH:/usr/local/cuda/bin
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
build='' out='' rails=127.0.1.1,127.0.2.1 rounds=3 only='' emulated=0

usage() { sed -n '/^#     tests/,/^# It runs/p' "${BASH_SOURCE[0]}" | sed '$d; s/^# \{0,1\}//'; }

wrong_usage() {
    printf 'all.sh: %s\n' "$*" >&2
    usage >&2
    exit 2
}

while (($#)); do
    case $1 in
    --emulated) emulated=1 ;;
    -h | --help)
        usage
        exit 0
        ;;
    --build | --out | --rails | --rounds | --only)
        (($# > 1)) || wrong_usage "$1 needs a value"
        printf -v "${1#--}" %s "$2"
        shift
        ;;
    *) wrong_usage "unknown option '$1'" ;;
    esac
    shift
done
[[ $rounds =~ ^[1-9][0-9]?$ ]] || wrong_usage "--rounds $rounds: expected a number from 1 to 99"
out=${out:-$root/results/gpu-$(date +%Y%m%d-%H%M%S)}
mkdir -p -- "$out" || exit 1
out=$(cd -- "$out" && pwd)
: >"$out/steps.tsv"

# Settings of whoever runs this are not part of it; what the emulated driver is told is.
for variable in $(compgen -e WEFT_); do
    [[ $variable == WEFT_EMULATED_* ]] || unset "$variable"
done

# ---- steps

running='' # the step that a signal to this script has to end first
mps=''     # the folder of our MPS server
leave() {
    [[ -z $running ]] || kill "$running"
    [[ -n $mps ]] || return
    echo quit | timeout 30 nvidia-cuda-mps-control >/dev/null 2>&1
    rm -rf -- "$mps"
    mps=''
}
trap leave EXIT
trap 'exit 1' INT TERM HUP

# step NAME SECONDS COMMAND...: runs it, with what it says in NAME.log; keeps what became of it. 77 is a skipped step, whose
# reason is its last line.
step() {
    local name=$1 limit=$2 start=$SECONDS rc what reason=''
    [[ $name =~ $only ]] || return
    shift 2
    printf '%-48s ' "$name"
    timeout -k 10 "$limit" "$@" >"$out/$name.log" 2>&1 </dev/null &
    running=$!
    wait "$running"
    rc=$?
    running=''
    case $rc in
    0) what=passed ;;
    77)
        what=skipped
        reason=$(grep -v '^ *$' "$out/$name.log" | tail -n 1)
        ;;
    124 | 137)
        what=failed
        reason="nothing came of it within $limit s"
        ;;
    *)
        what=failed
        reason="status $rc: $(grep -v '^ *$' "$out/$name.log" | tail -n 1)"
        ;;
    esac
    note "$name" "$what" $((SECONDS - start)) "$reason"
}

note() { # NAME WHAT SECONDS REASON
    printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "${4//$'\t'/ }" >>"$out/steps.tsv"
    printf '%-8s %4s s  %s\n' "$2" "$3" "$4"
}

skip() { # NAME REASON
    [[ $1 =~ $only ]] || return
    printf '%-48s ' "$1"
    note "$1" skipped 0 "$2"
}

# bench NAME COMMAND ARGUMENTS...: weft with its result in a folder.
bench() {
    local name=$1
    shift
    step "$name" 600 "$weft" "$@" --local --rails "$rails" --out "$out/$name" --log-dir="$out/$name/logs"
}

# ---- the tree

if [[ -z $build ]]; then
    build=$root/build
    printf 'building in %s\n' "$build"
    step build 3600 bash -c "cmake -S '$root' -B '$build' -DCMAKE_BUILD_TYPE=RelWithDebInfo &&
        cmake --build '$build' --parallel '$(nproc)'"
fi
build=$(cd -- "$build" 2>/dev/null && pwd) || wrong_usage "--build: there is no such folder"
weft=$build/bin/weft
[[ -x $weft ]] || {
    printf 'all.sh: no program at %s: see %s\n' "$weft" "$out/build.log" >&2
    exit 1
}

# ---- the GPU

((emulated)) && export LD_LIBRARY_PATH=$build/emulated${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
timeout -k 10 60 "$weft" pair --local --rails "$rails" --memory cuda --set cuda=require --size 8 -n 1 -w 0 \
    --csv "$out/probe.csv" --quiet >"$out/probe.log" 2>&1 </dev/null
status=$?
if ((status == 77)); then
    cat -- "$out/probe.log" >&2
    exit 77
fi
memory=$(sed -n '2s/^[^,]*,\([^,]*\),.*/\1/p' "$out/probe.csv" 2>/dev/null)
if [[ $memory == *emulated* ]] && ((!emulated)); then
    echo 'the driver that was found is the emulated one, and no GPU: --emulated tries the script out with it' >&2
    exit 77
fi
((status)) && {
    printf 'all.sh: not even 8 bytes went from GPU to GPU: %s\n' "$(tail -n 1 "$out/probe.log")" >&2
    note probe failed 0 "status $status"
}

{
    date -u
    uname -a
    "$weft" --version
    lscpu 2>/dev/null | grep -E 'Model name|^CPU\(s\)|NUMA node'
    grep -E 'MemTotal|MemAvailable' /proc/meminfo
    nvidia-smi 2>&1
    nvidia-smi topo -m 2>&1
    "$weft" topo 2>&1
    env | grep -E '^(NCCL|CUDA)_' | sort
} >"$out/machine.txt"
gpus=$("$weft" topo 2>/dev/null | sed -n 's/^ *GPUs: \([0-9][0-9]*\), .*/\1/p')
gpus=${gpus:-1}
# One GPU stands for several endpoints.
endpoints=()
((gpus < 2)) && endpoints=(--endpoints 4)

# ---- tests

if [[ -f $build/CTestTestfile.cmake ]] && command -v ctest >/dev/null; then
    step unit 1200 ctest --test-dir "$build" --output-on-failure -L quick -R '^(test_|mem\.)'
    step contract 1200 ctest --test-dir "$build" --output-on-failure -L quick -R '(_contract|simulat)'
else
    skip unit "no tests are built in $build"
    skip contract "no tests are built in $build"
fi
# messages WHERE PROGRAM [CASE]: a test of messages with its buffers in GPU memory, or at random there and in host memory.
messages() {
    local name=messages-$2-$1${3:+-$3}
    if [[ -x $build/bin/loop_$2 ]]; then
        step "$name" 600 env LOOP_MEMORY="$1" "$build/bin/loop_$2" "${@:3}"
    else
        skip "$name" "loop_$2 is not built"
    fi
}
for name in sizes match late cancel storm open close many lost onesided; do
    messages cuda $name
    messages mixed $name
done
# These start processes, and whoever has used a driver cannot fork: each runs alone.
for name in killed_client_is_followed_by_another killed_server stopped_server stopped_while_idle; do
    messages cuda kill $name
done

mesh=(mesh --memory cuda "${endpoints[@]}" -n 3 -w 1)
bench mesh-sizes "${mesh[@]}" --size 0,1,7,4095,64K,1000003,16M
bench mesh-inflight "${mesh[@]}" --size 8,64K,3M -n 12 --inflight 4
bench mesh-bidir "${mesh[@]}" --size 1M --pattern bidir
bench mesh-incast "${mesh[@]}" --size 1M --pattern incast
bench mesh-crc "${mesh[@]}" --size 4K,3M --set crc=on
bench mesh-epoll "${mesh[@]}" --size 4K,3M --engine epoll
bench mesh-uring "${mesh[@]}" --size 4K,3M --engine uring
bench mesh-little-staging "${mesh[@]}" --size 3M --set staging=1M
bench mesh-channels "${mesh[@]}" --size 3M --channels 4
bench mesh-short "${mesh[@]}" --size 64K,3M --fault seed=7,short=1
bench mesh-resets "${mesh[@]}" --size 3M --fault seed=7,reset_every=8M
bench mesh-within "${mesh[@]}" --size 4K,3M --scope all
bench mesh-buffers "${mesh[@]}" --size 1M --buffers 7 -n 14
# Ranks that share a GPU.
collective=(collective --rails "$rails" --memory cuda)
step coll-types 600 "$weft" "${collective[@]}" --op all --processes 2,3 --size 4,1000,300K,5M -n 2 -d bfloat16

if sanitizer=$(command -v compute-sanitizer); then
    step compute-sanitizer 1200 "$sanitizer" --tool memcheck --target-processes all --error-exitcode 99 \
        "$weft" mesh --local --rails "$rails" --memory cuda --endpoints 2 --size 1,64K,3M -n 2 -w 1 --timeout 300 \
        --connect-timeout 300 --log-dir=
    if [[ -x $build/bin/gpu_kernels ]]; then
        step compute-sanitizer-kernels 600 "$sanitizer" --tool memcheck --error-exitcode 99 "$build/bin/gpu_kernels"
    fi
else
    skip compute-sanitizer 'compute-sanitizer is not here (it comes with the CUDA toolkit)'
fi

# ---- figures: two processes use the same GPU, so an MPS server lets them use it at the same time

if ! command -v nvidia-cuda-mps-control >/dev/null; then
    skip mps 'nvidia-cuda-mps-control is not here: the two nodes take turns on a GPU'
elif mps=$(mktemp -d /tmp/weft-mps.XXXXXX); then # a socket's name has to be short
    export CUDA_MPS_PIPE_DIRECTORY=$mps/pipe CUDA_MPS_LOG_DIRECTORY=$mps/log
    mkdir -p -- "$mps/pipe" "$mps/log"
    step mps 60 bash -c 'nvidia-cuda-mps-control -d && echo get_server_list | nvidia-cuda-mps-control'
    # A server that allows no client would fail what works without it.
    if ! timeout -k 10 60 "$weft" pair --local --rails "$rails" --memory cuda --size 8 -n 1 -w 0 --quiet \
        >>"$out/mps.log" 2>&1; then
        echo 'no client can use it: measured without' >>"$out/mps.log"
        leave
        unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
    fi
fi

sizes=64K,1M,64M
for ((round = 1; round <= rounds; round++)); do
    bench "pair-host-host-$round" pair --src node0:host0 --dst node1:host0 --size $sizes -n 60
    bench "pair-gpu-gpu-$round" pair --src node0:gpu0 --dst node1:gpu0 --size $sizes -n 60
    bench "pair-host-gpu-$round" pair --src node0:host0 --dst node1:gpu0 --size $sizes -n 60
    bench "pair-gpu-host-$round" pair --src node0:gpu0 --dst node1:host0 --size $sizes -n 60
    bench "latency-host-$round" pair --lat --src node0:host0 --dst node1:host0 --size 8 -n 5000
    bench "latency-gpu-$round" pair --lat --src node0:gpu0 --dst node1:gpu0 --size 8 -n 5000
    bench "pair-weft-nccl-$round" pair --memory cuda --backend weft,nccl --size $sizes -n 60
    bench "latency-weft-nccl-$round" pair --lat --memory cuda --backend weft,nccl --size 8 -n 2000
done
bench mesh-host-host mesh --memory host --endpoints 4 -b 64K -e 64M -n 0
bench mesh-gpu-gpu mesh --memory cuda "${endpoints[@]}" -b 64K -e 64M -n 0
if ((emulated)); then
    skip coll-weft-nccl 'the stand-in for NCCL has no collectives'
else
    step coll-weft-nccl 600 "$weft" "${collective[@]}" --backend weft,nccl -b 8 -e 256M -f 4 --duration 20 \
        --rounds "$rounds" --out "$out/coll-weft-nccl"
fi
# Layers on the GPU, and their gradients over the rails meanwhile.
overlap=(overlap --rails "$rails" --memory cuda --bucket-mb "5,25" -n 3)
if ((emulated)); then
    step overlap 300 "$weft" "${overlap[@]}" --layers 6 --layer-mb 1 --batch 3 --out "$out/overlap"
else
    step overlap 600 "$weft" "${overlap[@]}" --backend weft,nccl --out "$out/overlap"
fi
step coll-weft-host 600 "$weft" collective --rails "$rails" -b 8 -e 256M -f 4 --duration 10 --out "$out/coll-weft-host"
bench mesh-weft-nccl mesh --memory cuda "${endpoints[@]}" --backend weft,nccl -b 64K -e 16M -n 0
# Clocks of GPUs against the processor's, locked clocks, a warm GPU; both backends in one order.
profile=(profile --local --rails "$rails" --memory cuda "${endpoints[@]}")
step profile 900 "$weft" "${profile[@]}" --scope all -b 1 -e 64M -f 4 --warm-to 45 --lock-clocks --out "$out/profile" \
    --traces "$out/profile"
step profile-weft-nccl 900 "$weft" "${profile[@]}" --backend weft,nccl -b 8 -e 16M -f 8 --drift-s 5 \
    --out "$out/profile-weft-nccl" --traces "$out/profile-weft-nccl"
if [[ -x $build/bin/trace_check ]]; then
    for name in profile profile-weft-nccl; do
        step "$name-check" 120 bash -c '"$1" "$2"/*/' _ "$build/bin/trace_check" "$out/$name"
    done
fi
# NCCL itself over the plugin and over its own sockets, in turns: two ranks on one GPU that take each other for another host.
plugin=$build/lib/libnccl-net-weft.so
# PLUGIN NETWORK NAME SECONDS COMMAND...: a step with that network of NCCL. Its log must name the network and, if that is
# the plugin, its devices.
over() {
    local plugin=$1 network=$2 name=$3 limit=$4
    shift 4
    # shellcheck disable=SC2016 # the inner shell's
    step "$name" "$limit" env NCCL_NET_PLUGIN="$plugin" NCCL_NET="$network" NCCL_DEBUG=INFO NCCL_DEBUG_FILE="$out/$name.nccl.%p" \
        NCCL_SOCKET_IFNAME==lo WEFT_RAILS="$rails" NCCL_IB_DISABLE=1 NCCL_MNNVL_ENABLE=0 bash -c '
            "${@:3}" || exit
            grep -q "Using network $1" "$2".* || { echo "NCCL did not take the network $1: see $2.*"; exit 1; }
            [[ $1 != Weft ]] || grep -q "NET/Weft : version .*, device 0 weft-" "$2".* || {
                echo "the plugin has not named its devices: see $2.*"; exit 1; }' \
        _ "$network" "$out/$name.nccl" "$@"
}
ranks=$out/nccl_ranks
# Against the NCCL and the CUDA runtime of the system, or those of Python's packages.
build_ranks() {
    local folders flags=() folder lib runtime
    folders=$(python3 -c 'import glob, sysconfig
for folder in glob.glob(sysconfig.get_path("purelib") + "/nvidia/*/include"): print(folder[:-len("/include")])' 2>/dev/null)
    for folder in /usr/local/cuda $folders; do
        for lib in "$folder/lib64" "$folder/lib"; do
            [[ ! -d $lib ]] || flags+=("-L$lib" "-Wl,-rpath,$lib")
        done
        flags+=("-I$folder/include")
    done
    for runtime in -lcudart -l:libcudart.so.13; do
        cc -std=gnu17 -O2 -o "$ranks" "$root/tests/gpu/nccl_ranks.c" "${flags[@]}" -l:libnccl.so.2 "$runtime" && return
    done
    return 1
}
if ((emulated)); then
    skip nccl-plugin 'the real NCCL does not start with the emulated driver'
elif [[ ! -e $plugin ]]; then
    skip nccl-plugin "there is no $plugin"
elif ! build_ranks >"$out/nccl-plugin.log" 2>&1; then
    skip nccl-plugin "nccl_ranks.c does not build here: $(tail -n 1 "$out/nccl-plugin.log")"
else
    for ((round = 1; round <= rounds; round++)); do
        over "$plugin" Weft "nccl-plugin-$round" 600 "$ranks"
        over none Socket "nccl-socket-$round" 600 "$ranks"
    done
    # Its kernels look at the memory of receives: many rounds, of which each is compared. With the plugin's own `eager`
    # their messages would go whole over one rail.
    NCCL_PROTO=LL WEFT_EAGER=4K over "$plugin" Weft nccl-looks 600 "$ranks" 2097152 1000 131072
    # What makes up for what small operations lose to sockets: threads that look for longer before they sleep, or one
    # that NCCL's proxy drives.
    WEFT_SPIN_US=200 over "$plugin" Weft nccl-looking 600 "$ranks"
    WEFT_WORKERS=shared over "$plugin" Weft nccl-shared 600 "$ranks"
    # From and into GPU memory, through pinned memory of Weft's.
    WEFT_NCCL_PTR=cuda NCCL_NET_GDR_LEVEL=SYS over "$plugin" Weft nccl-staged 600 "$ranks"
    over "$plugin" Weft nccl-torch-plugin 300 python3 "$root/tests/gpu/nccl_torch.py"
    over none Socket nccl-torch-socket 300 python3 "$root/tests/gpu/nccl_torch.py"
fi
if ((gpus > 1)); then
    bench mesh-within-node mesh --memory cuda --scope intra -b 64K -e 64M -n 0
else
    skip mesh-within-node 'one GPU only'
fi
if [[ -x $build/bin/gpu_kernels ]]; then
    step kernels 300 "$build/bin/gpu_kernels"
else
    skip kernels 'gpu_kernels is not built'
fi

# ---- the summary

# columns STEP...: backend, memory, test, mode, size, GB/s, us of the samples, for results that are there.
columns() {
    local name file
    for name in "$@"; do
        for file in "$out/$name"/*.csv; do
            [[ -e $file ]] || continue
            awk -F, -v OFS='\t' -v name="${name%-[0-9]*}" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
                /^#/ { next }
                { print name, $at["backend"], $at["memory"], $at["test"], $at["mode"], $at["size_bytes"],
                    $at["bw_gb_per_s"] == "" ? "-" : $at["bw_gb_per_s"], $at["time_us_p50"] }' "$file"
        done
    done
}

measured=()
for ((round = 1; round <= rounds; round++)); do
    for name in pair-host-host pair-gpu-gpu pair-host-gpu pair-gpu-host pair-weft-nccl latency-host latency-gpu \
        latency-weft-nccl; do
        measured+=("$name-$round")
    done
done
measured+=(mesh-host-host mesh-gpu-gpu mesh-weft-nccl mesh-within-node)
# One line for each case: the median over its samples, of all rounds.
columns "${measured[@]}" | sort -t$'\t' -k1,5 -k6,6n -k8,8n | awk -F'\t' -v OFS='\t' '
    function put() { if (count) print key, rate[int((count + 1) / 2)], time[int((count + 1) / 2)], count }
    { now = $1 OFS $2 OFS $3 OFS $4 OFS $5 OFS $6 }
    now != key { put(); key = now; count = 0 }
    { count++; rate[count] = $7; time[count] = $8 }
    END { put() }' >"$out/figures.tsv"

figure() { # STEP BACKEND TEST SIZE COLUMN: isolated
    awk -F'\t' -v step="$1" -v backend="$2" -v test="$3" -v size="$4" -v column="$5" \
        '$1 == step && $2 == backend && $4 == test && $5 == "isolated" && $6 == size { print $column }' "$out/figures.tsv"
}

stands() { # WORDS ONE OTHER WANTED: their ratio, if both are there
    if [[ -n $2 && -n $3 ]]; then
        awk -v words="$1" -v one="$2" -v other="$3" -v wanted="$4" 'BEGIN {
            met = (one / other >= wanted) ? "yes" : "no"
            printf("| %s | %.4g | %.4g | %.2f | %s | %s |\n", words, one, other, one / other, wanted, met) }'
    else
        printf '| %s | %s | %s | - | %s | not measured |\n' "$1" "${2:--}" "${3:--}" "$4"
    fi
}

failed=$(awk -F'\t' '$2 == "failed"' "$out/steps.tsv" | wc -l)
skipped=$(awk -F'\t' '$2 == "skipped"' "$out/steps.tsv" | wc -l)
{
    echo '# Weft on GPUs'
    echo
    [[ $memory == *emulated* ]] && printf '**EMULATED: no GPU was measured. These figures say nothing of any.**\n\n'
    # shellcheck disable=SC2016 # marks of the text
    printf '%s, `%s`, memory `%s`, %s GPU(s), rails `%s`, %s rounds, MPS %s\n\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" \
        "$("$weft" --version)" "$memory" "$gpus" "$rails" "$rounds" "$([[ -n $mps ]] && echo on || echo off)"
    printf '%s steps: %s failed, %s skipped\n\n' "$(wc -l <"$out/steps.tsv")" "$failed" "$skipped"
    echo '| step | | s | |'
    echo '|---|---|---|---|'
    awk -F'\t' '{ gsub(/\|/, "\\|", $4); printf "| %s | %s | %s | %s |\n", $1, $2, $3, $4 }' "$out/steps.tsv"
    printf '\n## Figures\n\nThe median of all samples of a case, over all rounds.\n\n'
    echo '| step | backend | memory | test | mode | bytes | GB/s | us | samples |'
    echo '|---|---|---|---|---|---|---|---|---|'
    awk -F'\t' '{ printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", $1, $2, $3, $4, $5, $6, $7, $8, $9 }' \
        "$out/figures.tsv"
    printf '\n## How they stand to each other\n\n| | one | other | ratio | wanted | met |\n|---|---|---|---|---|---|\n'
    stands 'GPU/GPU over host/host, 64M, GB/s' "$(figure pair-gpu-gpu weft bandwidth 67108864 7)" \
        "$(figure pair-host-host weft bandwidth 67108864 7)" 0.9
    stands 'Weft over NCCL, 64K, GB/s' "$(figure pair-weft-nccl weft bandwidth 65536 7)" \
        "$(figure pair-weft-nccl nccl bandwidth 65536 7)" 1
    stands 'Weft over NCCL, 1M, GB/s' "$(figure pair-weft-nccl weft bandwidth 1048576 7)" \
        "$(figure pair-weft-nccl nccl bandwidth 1048576 7)" 1.5
    stands 'Weft over NCCL, 64M, GB/s' "$(figure pair-weft-nccl weft bandwidth 67108864 7)" \
        "$(figure pair-weft-nccl nccl bandwidth 67108864 7)" 1.5
    stands 'NCCL over Weft, half round trip of 8 bytes, us' "$(figure latency-weft-nccl nccl latency 8 8)" \
        "$(figure latency-weft-nccl weft latency 8 8)" 1
    for name in coll-weft-nccl coll-weft-host overlap; do
        [[ -s $out/$name.log ]] || continue
        printf '\n## Collectives: %s\n\n```\n' "$name"
        sed -n '/^# \(all_reduce\|[0-9]* layers\)/,$p' "$out/$name.log"
        printf '```\n'
    done
    if [[ -s $out/nccl-plugin-1.log ]]; then
        printf '\n## NCCL over the plugin and over its sockets\n\n| network | operation | bytes | us | GB/s | wrong |\n|---|---|---|---|---|---|\n'
        for name in nccl-plugin nccl-socket nccl-looks nccl-looking nccl-shared nccl-staged \
            nccl-torch-plugin nccl-torch-socket; do
            # The median of the rounds.
            cat -- "$out/$name"*.log 2>/dev/null | awk 'NF == 5 && $2 ~ /^[0-9]+$/' | sort -k1,1 -k2,2n -k3,3n | awk -v name="$name" '
                function put() { if (count) printf("| %s | %s | %.1f | %.4f | %d |\n", name, key, us[int((count + 1) / 2)],
                    rate[int((count + 1) / 2)], wrong) }
                { now = $1 " | " $2 }
                now != key { put(); key = now; count = 0; wrong = 0 }
                { count++; us[count] = $3; rate[count] = $4; wrong += $5 }
                END { put() }'
        done
    fi
    if [[ -s $out/kernels.log ]]; then
        printf '\n## The gather kernel\n\nBeside a plain copy of the same bytes; 80 %% for pieces of 4 KiB are wanted.\n\n```\n'
        cat -- "$out/kernels.log"
        printf '```\n'
    fi
} >"$out/summary.md"
rm -f -- "$out/probe.csv"
printf '\n%s steps, %s failed, %s skipped: %s\n' "$(wc -l <"$out/steps.tsv")" "$failed" "$skipped" "$out/summary.md"
((failed == 0))
