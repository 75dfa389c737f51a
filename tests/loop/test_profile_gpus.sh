#!/bin/bash
# test_profile_gpus.sh: weft profile with emulated GPUs: traces with copies, clocks of GPUs that run fast, a GPU that is
# throttled for a while (exactly the messages that it touched are stamped), and clocks that are locked: they never stay
# so, also when the run is killed.
. "$(dirname "$0")/loop_lib.sh"
: "${EMULATED:?the folder of the emulated driver}" "${TRACE_CHECK:?the checker of traces}"
unset WEFT_CUDA
[ -e "$EMULATED/libcuda.so.1" ] || skip "no emulated driver was built"
command -v ss >/dev/null || skip "needs the program ss"

mkdir state
export LD_LIBRARY_PATH=$EMULATED WEFT_EMULATED_GPUS=2 WEFT_EMULATED_NVML_STATE=$work/state XDG_RUNTIME_DIR=$work

profile() { # ARGUMENTS...
    limit=120 weft profile --local --traces traces "$@"
    folder=$(echo traces/*)
}

passed() { # WHAT
    pass_if "$1: status $status: $(cat err)" [ "$status" -eq 0 ]
    pass_if "$1: $(tail -n 3 out)" grep -q ' 0 wrong of .* verified; .* measured: passed' out
}

# --- files, and clocks that are 30 ppm fast ---
WEFT_EMULATED_CLOCK_PPM=30 profile --scope all -b 1 -e 1M -f 32 -n 3 -w 1 --drift-s 3
passed "two GPUs on each node"
pass_if "the folder is named after them: $folder" [ "$(expr "$folder" : '.*mulated.*13')" -gt 0 ]
pass_if "traces: $("$TRACE_CHECK" --pieces "$folder" 2>&1)" "$TRACE_CHECK" --pieces "$folder"
pass_if "copies are drawn" grep -q '"cat": "copy"' "$folder/rank_0.pt.trace.json"
pass_if "links of the GPUs" grep -q 'nvlinks: ' "$folder/metadata_rank_0.yml"
# Right to within three times half of the 95 % interval that is said.
pass_if "clocks that are 30 ppm fast: $(grep 'gpu0' out)" awk '/^clocks: gpu0/ {
        off = $3 - 30; error = $6; sub(/\)/, "", error); seen++
        if (off < 0) off = -off
        if (off > 3 * error + 0.5) bad = 1
    } END { exit bad || seen != 2 }' out

# --- throttling, for a while in the middle ---
# It goes on for longer than the GPU is held back: samples of the sensors lie before, in and behind that.
"$WEFT" profile --local --traces traces --size 8,64K,1M -n 1000 -w 1 --drift-s 1 >out 2>err </dev/null &
run=$!
folder=$(echo traces/*)
until_true "messages are measured: the warm-up has less than 100 MB" has_sent "$run" 100000000
echo 8 >state/gpu0.reasons.new && mv state/gpu0.reasons.new state/gpu0.reasons
sleep 2 # how long it is held back
rm state/gpu0.reasons
wait $run
status=$?
passed "throttled for a while"
# Of each node: t(k-1) to t(k+1) of every sample that saw it. A message from or to a GPU 0 that touches such a span is
# stamped, and no other. Each node looks at its own clock: what begins or ends within 200 us of a span may be either.
pass_if "exactly the messages that it touched" awk -F, -v endpoints=2 '
    FILENAME ~ /temperatures/ {
        if (FNR == 1 || $3 != "gpu0") next
        node = $2; n = ++count[node]; at[node, n] = $1; held[node, n] = ($8 != "none" && $8 != "")
        next
    }
    FILENAME ~ /stamps/ { if ($3 ~ /throttled/) stamped[$1, $2] = 1; next }
    FNR > 1 {
        touched = surely = 0
        for (end = 0; end < 2; end++) {
            rank = end ? $3 : $2
            if (rank % endpoints != 0) continue
            node = int(rank / endpoints)
            for (k = 1; k <= count[node]; k++) {
                if (!held[node, k]) continue
                from = k > 1 ? at[node, k - 1] : at[node, k]
                to = k < count[node] ? at[node, k + 1] : at[node, k]
                if ($6 - 200000 < to && $7 + 200000 > from) touched = 1
                if ($6 + 200000 < to && $7 - 200000 > from) surely = 1
            }
        }
        if (touched != surely) next
        seen += touched; clean += !touched
        if (touched != (($1, $5) in stamped)) { wrong++; if (wrong < 4) print "row", FNR, $0, touched > "/dev/stderr" }
    }
    END { print seen, "touched,", clean, "not,", wrong + 0, "wrong" > "/dev/stderr"; exit !(seen > 0 && clean > 0 && !wrong) }
' "$folder/temperatures.csv" "$folder/stamps.csv" "$folder/execution_log.csv"

# --- locked clocks ---
profile --size 8 -n 2 -w 1 --drift-s 0 --lock-clocks
passed "locked clocks"
pass_if "it says so: $(grep 'GPU clocks' out)" grep -q 'GPU clocks: locked' out
pass_if "they are unlocked after it" [ ! -e state/gpu0.locked ]
pass_if "the metadata says so" grep -q 'locked: true' "$folder/metadata_rank_0.yml"
pass_if "that of node1 says who does it" grep -q 'left to node0, which is on the same machine' "$folder/metadata_rank_2.yml"
touch state/gpu0.refuse
profile --size 8 -n 2 -w 1 --drift-s 0 --lock-clocks
passed "clocks that may not be locked"
pass_if "it says why: $(grep 'GPU clocks' out)" grep -q 'GPU clocks: not locked: .*root' out
pass_if "so does the metadata" grep -q 'locked: false' "$folder/metadata_rank_0.yml"
rm state/gpu0.refuse

both_locked() { [ -e state/gpu0.locked ] && [ -e state/gpu1.locked ]; }
none_locked() { [ ! -e state/gpu0.locked ] && [ ! -e state/gpu1.locked ]; }
"$WEFT" profile --local --traces traces --size 8 -n 100000 --drift-s 0 --lock-clocks >out 2>err </dev/null &
run=$!
until_true "locked clocks" both_locked
kill -KILL $run
wait $run 2>/dev/null
until_true "unlocked clocks after a kill" none_locked
profile --unlock-clocks
pass_if "nothing is left to unlock: $status $(cat out err)" grep -q 'no run has left clocks locked' out
nothing_left || fail "processes are left over"
finish
