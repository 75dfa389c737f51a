#!/bin/bash
# test_profile_clocks.sh: two nodes whose clocks differ by 50 ppm and 3 ms: the drift and the offset that weft profile
# finds are right to within what it says of them, the times of the log are those of one clock, and a clock that is
# steered is told from one that has another crystal.
. "$(dirname "$0")/loop_lib.sh"
: "${CLOCK_LIBRARY:?the library that skews clocks}" "${TRACE_CHECK:?the checker of traces}"
[ -n "${LOOP_SANITIZED:-}" ] && skip "the sanitizer's runtime comes before a library that is preloaded"

# of FILE KEY NUMBER: the n-th value of a key in metadata.
of() { sed -n "s/^ *$2: //p" "$1" | sed -n "$3p"; }

# within WHAT FOUND TRUE ERROR: apart by no more than three times the half of the 95 % interval that was stated; 0.02 ppm
# and 1 us are the steps of the clocks.
within() {
    pass_if "$1: $2 instead of $3, said to be right to $4" awk -v found="$2" -v true="$3" -v error="$4" -v least="$5" \
        'BEGIN { off = found - true; if (off < 0) off = -off; exit !(found != "" && off <= 3 * error + least) }'
}

# run RAW: profiles with node1 skewed.
run() {
    local from
    from=$(cut -d ' ' -f 1 /proc/uptime)
    rm -rf traces s.out # which has the port of the run before
    "$WEFT" profile --listen 127.0.0.1:0 --rails $rails --traces traces --timeout 20 \
        --idle-timeout 60 >s.out 2>s.err </dev/null &
    server=$!
    waiting $server s.out || return
    SKEW_FROM=$from SKEW_PPM=50 SKEW_MS=3 SKEW_RAW=$1 LD_PRELOAD=$CLOCK_LIBRARY timeout -k 5 100 "$WEFT" profile \
        --connect "127.0.0.1:$port" --rails $rails --endpoints 2 -b 1K -e 256K -f 16 -n 3 -w 1 --scope all \
        --drift-s 4 --timeout 20 >c.out 2>c.err </dev/null
    pass_if "client: $? $(cat c.err)" [ -z "$(cat c.err)" ]
    wait $server
    pass_if "server: $? $(cat s.err)" grep -q ': passed$' s.out
    folder=$(echo traces/*)
    start_of_skew=$from
}

run 1
file=$folder/metadata_rank_0.yml
pass_if "metadata" [ -s "$file" ]
for n in 1 2; do # at the start and at the end
    within "drift $n in ppm" "$(of "$file" drift_ppm $n)" 50 "$(of "$file" drift_error_ppm $n)" 0.02
    true_offset=$(awk -v at="$(of "$file" at_ns $n)" -v from="$start_of_skew" \
        'BEGIN { printf "%.3f", 3000 + (at / 1e9 - from) * 50 }')
    within "offset $n in us" "$(of "$file" offset_us $n)" "$true_offset" "$(of "$file" offset_error_us $n)" 1
done
steered=$(of "$file" monotonic_against_raw_ppm 1)
pass_if "another crystal is not steering: $steered" awk -v text="$steered" \
    'BEGIN { gsub(/[][,]/, " ", text); split(text, ppm, " "); exit !(ppm[2] < 1 && ppm[2] > -1) }'
pass_if "no sample is stamped for steering" [ "$(grep -c disciplined "$folder/stamps.csv")" -eq 0 ]
pass_if "one clock: $("$TRACE_CHECK" --pieces "$folder" 2>&1)" "$TRACE_CHECK" --pieces "$folder"

# With clocks 3 ms apart every message of one direction would take 3 ms more, and every one of the other less than
# nothing. The shortest of each direction tells: others may have waited for a processor.
pass_if "times of both directions" awk -F, 'NR > 1 && ($2 < 2) != ($3 < 2) { way = $2 < 2
        if (!(way in least) || $8 < least[way]) least[way] = $8 }
    END { exit !(least[0] > 0 && least[1] > 0 && least[0] < 2500000 && least[1] < 2500000) }' "$folder/execution_log.csv"

run 0
file=$folder/metadata_rank_0.yml
within "steered drift in ppm" "$(of "$file" drift_ppm 1)" 50 "$(of "$file" drift_error_ppm 1)" 0.02
steered=$(of "$file" monotonic_against_raw_ppm 1)
pass_if "steered by 50 ppm: $steered" awk -v text="$steered" \
    'BEGIN { gsub(/[][,]/, " ", text); split(text, ppm, " "); exit !(ppm[2] > 49 && ppm[2] < 51) }'
pass_if "samples between the nodes are stamped" [ "$(grep -c disciplined "$folder/stamps.csv")" -gt 0 ]
pass_if "those within a node are not" awk -F, 'NR == FNR { if (FNR > 1) { src[$1] = $2; dst[$1] = $3 } next }
    /disciplined/ && int(src[$1] / 2) == int(dst[$1] / 2) { wrong++ } END { exit wrong > 0 }' \
    "$folder/execution_log.csv" "$folder/stamps.csv"
finish
