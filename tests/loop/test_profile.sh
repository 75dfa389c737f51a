#!/bin/bash
# test_profile.sh: weft profile with two nodes of four host endpoints: a row of the log for each repetition, in one
# shuffled order that the seed decides; traces, graphs, temperatures, metadata and a model of every link; what is left of
# a run before; and what is said where it cannot run.
. "$(dirname "$0")/loop_lib.sh"
: "${TRACE_CHECK:?the checker of traces}"

header=config_id,src,dst,size,repetition,timestamp_start_ns,timestamp_end_ns,duration_ns

# profile ARGUMENTS...: small, unless they say otherwise.
profile() {
    limit=120 weft profile --local --traces traces --drift-s 0 -w 1 "$@"
    folder=$(echo traces/*)
}

passed() { # WHAT
    pass_if "$1: status $status: $(cat err)" [ "$status" -eq 0 ]
    pass_if "$1: $(tail -n 3 out)" grep -q ' 0 wrong of .* verified; .* measured: passed' out
}

order() { awk -F, 'NR > 1 { print $1 }' "$folder/execution_log.csv"; }

# --- all pairs of four endpoints of each node: 8 ranks, 56 directed pairs ---
profile --endpoints 4 --scope all -b 1 -e 1M -f 16 -n 3 --drift-s 1 --json p.json --csv p.csv
passed "all pairs"
log=$folder/execution_log.csv
pass_if "the columns" [ "$(head -n 1 "$log")" = "$header" ]
pass_if "a row for each repetition" [ "$(wc -l <"$log")" -eq $((56 * 6 * 3 + 1)) ]
pass_if "each configuration three times" \
    [ "$(order | sort -n | uniq -c | awk '$1 == 3' | wc -l)" -eq $((56 * 6)) ]
pass_if "one order, repeated" [ "$(order | head -n 336)" = "$(order | tail -n 336)" ]
pass_if "it is shuffled" [ "$(order | head -n 336)" != "$(order | head -n 336 | sort -n)" ]
pass_if "no rank sends to itself" awk -F, 'NR > 1 && $2 == $3 { exit 1 }' "$log"
pass_if "durations" awk -F, 'NR > 1 && ($8 != $7 - $6 || $8 <= 0) { exit 1 }' "$log"
pass_if "traces and graphs: $("$TRACE_CHECK" --pieces "$folder" 2>&1)" "$TRACE_CHECK" --pieces "$folder"
pass_if "a metadata file of each rank" [ "$(ls "$folder"/metadata_rank_*.yml | wc -l)" -eq 8 ]
pass_if "a model of each pair" [ "$(json_numbers "$folder/model.json" alpha_us | wc -l)" -ge 56 ]
pass_if "temperatures of both nodes" [ "$(awk -F, 'NR > 1 { print $2 }' "$folder/temperatures.csv" | sort -u | wc -l)" -eq 2 ]
pass_if "the clocks were compared at both ends" [ "$(grep -c drift_ppm "$folder/metadata_rank_5.yml")" -eq 2 ]
pass_if "criteria for people" [ "$(grep -cE '^(met|not met|n/a) ' out)" -ge 10 ]
pass_if "criteria in the metadata" grep -q '^criteria:' "$folder/metadata_rank_0.yml"
pass_if "samples" [ "$(json_numbers p.json size_bytes | wc -l)" -ge 336 ]
pass_if "stamps of samples" grep -q '"stamp": \[' p.json
pass_if "stamps in the CSV" sh -c "head -n 1 p.csv | tr , '\\n' | grep -qx stamp"
pass_if "chunks are drawn" grep -q '"cat": "chunk"' "$folder/rank_0.pt.trace.json"

# Every message that is doubted is one of the log, once.
pass_if "doubts are of messages" awk -F, 'NR == FNR { if (FNR > 1) seen[$1 "," $5]++; next }
    FNR > 1 && seen[$1 "," $2]-- != 1 { exit 1 }' "$log" "$folder/stamps.csv"

# --- files of more ranks go only when those of this run are in their places ---
rm "$folder/model.json"
mkdir "$folder/model.json"
profile --endpoints 2 --size 8 -n 1
pass_if "a file that cannot be moved: status $status: $(cat err)" [ "$status" -eq 1 ]
pass_if "files of more ranks stay" [ "$(ls "$folder" | grep -c 'rank_[4-7]')" -eq 12 ]
rmdir "$folder/model.json"

# --- the seed decides about the order; a smaller run leaves nothing of a larger one ---
profile --endpoints 2 --size 8,4K -n 2
first=$(order)
passed "two endpoints"
pass_if "nothing is left of more ranks" [ "$(ls "$folder" | grep -c 'rank_[4-9]')" -eq 0 ]
pass_if "traces: $("$TRACE_CHECK" --pieces "$folder" 2>&1)" "$TRACE_CHECK" --pieces "$folder"
profile --endpoints 2 --size 8,4K -n 2
pass_if "the same seed, the same order" [ "$(order)" = "$first" ]
profile --endpoints 2 --size 8,4K -n 2 --seed 7
pass_if "another seed, another order" [ "$(order)" != "$first" ]

# --- pairs within a node alone, nothing verified, no bytes at all ---
profile --endpoints 2 --scope intra --size 0,1,70000 -n 2 --check 0
pass_if "within a node: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "four pairs, three sizes, twice" [ "$(wc -l <"$folder/execution_log.csv")" -eq 25 ]
pass_if "traces: $("$TRACE_CHECK" --pieces "$folder" 2>&1)" "$TRACE_CHECK" --pieces "$folder"
profile --endpoints 1 --size 64K -n 2 --check all --set crc=on --json all.json
passed "every message verified"
pass_if "the warm-up and both repetitions: $(json_numbers all.json verified_bytes)" \
    [ "$(json_numbers all.json verified_bytes | grep -c '^196608$')" -eq 2 ]

# --- what fails leaves the files of the run before, whole ---
kept() { # WHAT: all files are those of the last run that went well
    pass_if "$1: the files stay" [ "$(cat "$folder"/* | cksum)" = "$before" ]
    pass_if "$1: nothing unfinished is left" [ "$(find traces -name '.unfinished*' | wc -l)" -eq 0 ]
}
before=$(cat "$folder"/* | cksum)
(
    ulimit -f 20 # KiB, or twice that
    limit=120 weft profile --local --traces traces --endpoints 2 --size 8 -n 100 -w 1 --drift-s 0
    pass_if "too large a file: status $status" [ "$status" -eq 1 ]
    [ "$failures" -eq 0 ]
) || fail "a file that may not be so large: $(cat err)"
kept "a file that may not be so large"
"$WEFT" profile --local --traces traces --endpoints 2 --size 64K -n 3000 -w 1 --drift-s 1 >long.out 2>long.err </dev/null &
run=$!
until grep -q '^clocks: ' long.out || ! kill -0 $run 2>/dev/null; do sleep 0.02; done
weft profile --local --traces traces --endpoints 1 --size 8 -n 1 --drift-s 0
pass_if "two at once: status $status: $(cat err)" [ "$status" -eq 1 ]
pass_if "two at once: $(cat err)" grep -q 'another weft profile writes' err
kill -INT $run
wait $run
pass_if "interrupted: status $?: $(cat long.err)" grep -q 'interrupted by SIGINT' long.err
kept "interrupted"

# --- what cannot be ---
told() { # STATUS WORD WHAT
    pass_if "$3: status $status: $(cat err)" [ "$status" -eq "$1" ]
    pass_if "$3: no '$2' in: $(cat err)" grep -q -- "$2" err
}
expect 2 "leaves no pair" profile --local --endpoints 1 --scope intra --traces traces
expect 2 "other node" profile
expect 2 "is not for 'weft profile'" profile --local --inflight 4
expect 2 "drift.s" profile --local --drift-s -1
expect 1 "name the folder" profile --local --endpoints 1 --size 8 -n 1 --drift-s 0 --traces ''
: >file
expect 1 "file" profile --local --endpoints 1 --size 8 -n 1 --drift-s 0 --traces file
weft profile --unlock-clocks
pass_if "nothing to unlock: $status $(cat err)" [ "$status" -eq 0 ]
nothing_left || fail "processes are left over"
finish
