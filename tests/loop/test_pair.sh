#!/bin/bash
# test_pair.sh: what weft pair can be asked for beside sizes, and what its samples say of it.
. "$(dirname "$0")/loop_lib.sh"

base="--local --rails $rails --json result.json --csv result.csv"

run() { # WANTED-STATUS ARGUMENTS...
    local want=$1
    shift
    # shellcheck disable=SC2086
    weft "$@" $base
    pass_if "weft $*: status $status, not $want: $(head -3 err)" [ "$status" -eq "$want" ]
}

# Every sample of the last run has it, in either file.
says() { # KEY VALUE [NAME-IN-CSV]
    pass_if "$1 is $2 in each sample: $(json_numbers samples.json "$1" | tr '\n' ' ')" \
        [ "$(json_numbers samples.json "$1" | sort -u)" = "$2" ]
    pass_if "${3:-$1} is $2 in each row" [ "$(column "${3:-$1}" | sort -u)" = "$2" ]
}

column() { # NAME
    awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next }
        /^#/ { next } { print at ? $at : "no such column" }' result.csv
}

samples() {
    sed -n '/^ "samples"/,/^ \]/p' result.json >samples.json
}

# ---- buffers: as many as are in flight unless asked for others
run 0 pair --size 64K -n 40 --inflight 8
samples
says inflight 8
says buffers 8
for buffers in 8 11 64; do
    run 0 pair --size 8,64K,1M -n 100 --inflight 8 --buffers $buffers
    samples
    says inflight 8
    says buffers $buffers
    pass_if "$buffers buffers: verified: $(tail -1 out)" grep -q ', 0 wrong of .* verified; .* measured: passed' out
done
run 0 pair --size 8,1M -n 100 --inflight 8 --buffers 1 -c 0
samples
says buffers 1
run 0 pair --size 1M -n 10 -w 2 --inflight 1 --buffers 100
samples
says buffers 12 # there are no more messages
run 0 mesh --endpoints 2 --size 64K -n 12 --inflight 2 --buffers 3
samples
says buffers 3
run 0 pair --lat --size 8,64K -n 30 --buffers 4
samples
says inflight 1
says buffers 4

# ---- how much is verified: all that is measured where there is time for it, a window where there is none
verifies() { # BYTES MEASURED OPTION...
    local bytes=$1 measured=$2
    shift 2
    run 0 pair "$@"
    samples
    says verified_bytes "$bytes"
    says measured_bytes "$measured"
    pass_if "$*: the last line: $(tail -1 out)" grep -Eq ', 0 wrong of [0-9.]+ [kMG]?B verified; [0-9.]+ [kMG]?B measured: passed$' out
}
contains() { # true|false
    pass_if "verification in the times: $1" [ "$(grep -c "\"times_contain_verification\": $1" samples.json)" -eq 1 ]
    pass_if "verification in the times: $1, in the row" [ "$(column times_contain_verification)" = "$1" ]
    pass_if "verification in the times: $1, in the report" \
        [ "$(grep -c '^the times contain the verification' out)" = "$([ "$1" = true ] && echo 1 || echo 0)" ]
}
verifies 65536000 65536000 --size 64K -n 1000 --check-time-ms 3600000
contains false
verifies 65536000 65536000 --size 64K -n 1000 --inflight 3 --buffers 7 --check-time-ms 3600000
verifies 1048576 65536000 --size 64K -n 1000 --check-time-ms 0
verifies 3145728 104857600 --size 1M -n 100 --inflight 3 --buffers 7 --check-time-ms 0
verifies 66584576 65536000 --size 64K -n 1000 --check-time-ms 0 --check all
contains true
verifies 131072000 65536000 --size 64K -n 1000 --inflight 8 --buffers 8 --check-time-ms 3600000 --check all
verifies 52428800 52428800 --lat --size 256K -n 100 --check-time-ms 3600000
verifies 524288 52428800 --lat --size 256K -n 100 --check-time-ms 0
verifies 104857600 52428800 --lat --size 256K -n 100 --check-time-ms 3600000 --check all --buffers 3
contains true
verifies 1600 1600 --lat --size 8 -n 100 --background 256K --check-time-ms 3600000
verifies 3200 1600 --lat --size 8 -n 100 --background 256K --check-time-ms 3600000 --check all
run 0 mesh --endpoints 2 --size 100000 -n 5 --inflight 2 --check-time-ms 0
samples
says verified_bytes 200000
says measured_bytes 500000
run 0 pair --size 64K -n 10 --backend null
samples
says verified_bytes 0
says measured_bytes 655360
run 0 pair --size 64K -n 10 --check 0
samples
says verified_bytes 0
run 2 pair --check 2
pass_if "it says what there is: $(cat err)" grep -q 'one of 0|1|all' err

# What cannot be verified is refused; what can be is.
run 2 pair --size 1M --inflight 8 --buffers 7
pass_if "it says what to do: $(cat err)" grep -q -e '--buffers 8 or --inflight 7' err
run 2 pair --buffers 1
pass_if "by default, too: $(cat err)" grep -q -e '--buffers 16 or' err
run 1 pair --size 1M -n 16 -w 0 --inflight 4 --buffers 9 --fault seed=1,flip_every=256K
pass_if "wrong bytes are found in buffers, too: $(cat err)" grep -q '1M, isolated: .* wrong bytes, the first at' err
if [ -z "${LOOP_SANITIZED:-}" ]; then
    run 1 pair --size 1G -n 1000 --inflight 1 --buffers 1000
    pass_if "their memory is counted: $(cat err)" grep -q 'needs .* of memory here .*--buffers' err
fi

# ---- so many in flight that they are not looked through for each that has ended; and a loss meanwhile
run 0 pair --size 0,8,64K -n 3000 --inflight 1100
samples
says inflight 1100
pass_if "many in flight: verified: $(tail -1 out)" grep -q ', 0 wrong of .* verified; .* measured: passed' out
run 0 mesh --endpoints 24 --size 16K -n 3 --mode both --fault seed=7,reset_every=8M
pass_if "many pairs: verified: $(tail -1 out)" grep -q ', 0 wrong of .* verified; .* measured: passed' out

# ---- what each node used
run 0 pair --size 64K -n 40
for key in connect_s max_rss_bytes buffer_bytes descriptors threads; do
    pass_if "$key of both nodes: $(json_numbers result.json $key | tr '\n' ' ')" \
        [ "$(json_numbers result.json $key | awk '$1 > 0' | wc -l)" -eq 2 ]
done
pass_if "session_s of the node that connects" [ "$(json_numbers result.json session_s | awk '$1 > 0' | wc -l)" -eq 1 ]
pass_if "the buffers are part of the memory" [ "$(paste <(json_numbers result.json max_rss_bytes) \
    <(json_numbers result.json buffer_bytes) | awk '$1 > $2' | wc -l)" -eq 2 ]

# ---- message rate: the mean time of a message, the other way round
run 0 pair --size 8,1000,4K,64K -n 500 --inflight 64
pass_if "messages_per_s is 1 / mean: $(cat result.csv)" awk -F, '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { rows++; product = $at["messages_per_s"] * $at["time_us_mean"] / 1e6; if (product < 0.999 || product > 1.001) exit 1 }
    END { if (rows != 4) exit 1 }' result.csv
samples
pass_if "in the JSON as in the CSV: $(json_numbers samples.json messages_per_s | tr '\n' ' ')" \
    [ "$(json_numbers samples.json messages_per_s | awk '{ sum += int($1) } END { print sum }')" = \
    "$(column messages_per_s | awk '{ sum += int($1) } END { print sum }')" ]
pass_if "and in the report, where messages are small: $(cat out)" \
    [ "$(awk '$3 == "0>1" { print $9 ~ "/s$" }' out | tr -d '\n')" = 1110 ]
run 0 pair --size 64K -n 20
pass_if "and not where they are large: $(cat out)" [ "$(grep -c '[0-9kM]/s ' out)" -eq 0 ]
run 0 pair --lat --size 8 -n 20
pass_if "a ping-pong has none: $(column messages_per_s)" [ -z "$(column messages_per_s)" ]

# ---- a background beside the ping-pong
# Both ways something came, and as much as the rates say.
background_ran() { # WHAT
    pass_if "$1: no message of the background one way: $(json_numbers samples.json messages | tr '\n' ' ')" \
        [ "$(json_numbers samples.json messages | awk '$1 > 0' | wc -l)" -eq 2 ]
    pass_if "$1: rates in the rows" [ "$(column background_src_to_dst_bw_gb_per_s | awk '$1 > 0' | wc -l)" -eq 1 ]
    pass_if "$1: verified: $(tail -1 out)" grep -q ', 0 wrong of .* verified; .* measured: passed' out
}

for what in "--background 1M" "--background 100000 --background-inflight 1" "--background 5M --background-inflight 7" \
    "--background 8" "--background 1M --workers split" "--background 1M --eager 0 --first-burst 0" \
    "--background 64K --eager 0 --size 128K" "--background 1M --src node1:host2 --dst node0:host5" \
    "--background 1M --buffers 3" "--background 300000 -n 1 -w 0"; do
    # shellcheck disable=SC2086
    run 0 pair --lat --size 8 -n 200 $what
    samples
    background_ran "$what"
done
run 0 pair --lat --size 8 -n 50 --background 1M --background-inflight 3
pass_if "the background has its own: $(column background_inflight)" [ "$(column background_inflight)" = 3 ]
pass_if "and size: $(column background_size_bytes)" [ "$(column background_size_bytes)" = 1048576 ]
pass_if "the report has a row: $(cat out)" grep -Eq '^ +beside it: 1M, 3 in flight, [0-9.]+ GB/s src -> dst, [0-9.]+ GB/s back$' out
run 0 pair --lat --size 8 -n 50
pass_if "without one there is none" grep -q '"background": null' result.json
run 0 pair --lat --size 8 -n 50 --background 1M --backend null
pass_if "where nothing moves there is none" grep -q '"background": null' result.json

# Nearly all that moves is the background's: so is what is damaged, and seldom a ping or what the nodes tell each other,
# which is told first.
for seed in 1 2 3 4; do
    run 1 pair --lat --size 8 -n 200 -w 0 --background 1M --fault "seed=$seed,flip_every=512K"
    ! grep -q '1M, isolated: .* wrong bytes' err || break
done
pass_if "wrong bytes are found in the background: $(cat err)" grep -q '1M, isolated: .* wrong bytes' err
run 2 pair --background 1M
pass_if "it says what to do: $(cat err)" grep -q -e '--background 1M runs beside a ping-pong' err
run 2 pair --lat --background 1M --background-inflight 0
run 2 mesh --background 64K
if [ -z "${LOOP_SANITIZED:-}" ]; then
    run 1 pair --lat --size 8 --background 1T
    pass_if "its memory is counted: $(cat err)" grep -q 'needs .* of memory here .*--background' err
fi

finish
