#!/bin/bash
# test_flip.sh: damage on the way in is found by the verification, told with its place, and is a failure. With checksums
# (setting crc) no damaged byte gets that far, and what was damaged is sent again.
# All that was measured is sent again and verified: damage that is rare is found, too, with each of LOOP_SEEDS.
. "$(dirname "$0")/loop_lib.sh"
: "${FLIP_LIBRARY:?the preloaded library}"

wrong_sum() {
    json_numbers result.json wrong_bytes | awk '{sum += $1} END {print sum + 0}'
}

check() { # COMMAND OPTIONS...
    rm -f result.json
    FLIP_EVERY='' LD_PRELOAD=$FLIP_LIBRARY weft "$@" --local --rails $rails --json result.json
    pass_if "$1 with the library, but no flip, passes (status $status: $(cat err))" [ "$status" -eq 0 ]
    pass_if "$1 has no wrong byte" [ "$(wrong_sum)" -eq 0 ]

    rm -f result.json
    FLIP_EVERY=3 LD_PRELOAD=$FLIP_LIBRARY weft "$@" --local --rails $rails --json result.json
    pass_if "$1 with flipped bits has status 1, not $status" [ "$status" -eq 1 ]
    pass_if "$1 counts the wrong bytes: $(wrong_sum)" [ "$(wrong_sum)" -gt 0 ]
    pass_if "$1 prints the first wrong offset" grep -Eqi 'offset [0-9]+' out err
    local at
    at=$(grep -Eoih 'offset [0-9]+' out err | head -1 | grep -o '[0-9]*')
    pass_if "$1: the offset $at lies in the message" [ "${at:-99999999}" -lt 4194304 ]
    pass_if "$1: nothing is left" nothing_left
}

check_crc() { # COMMAND OPTIONS...
    rm -f result.json
    FLIP_EVERY=40 LD_PRELOAD=$FLIP_LIBRARY weft "$@" --local --rails $rails --crc on \
        --json result.json
    pass_if "$1 with flipped bits and checksums passes (status $status: $(cat err))" [ "$status" -eq 0 ]
    pass_if "$1 with checksums has no wrong byte" [ "$(wrong_sum)" -eq 0 ]
    pass_if "$1 with checksums: nothing is left" nothing_left
}

check pair --size 4M -n 6 -w 1
check mesh --endpoints 2 --size 4M -n 4 -w 1 --mode isolated
check mesh --endpoints 2 --size 1M -n 4 -w 0 --mode loaded
check_crc pair --size 4M -n 6 -w 1
pass_if 'pair tells of the damage' grep -q 'a damaged chunk' err
check_crc mesh --endpoints 2 --size 1M -n 4 -w 0 --mode loaded

# A profile counts what either node has sent again.
FLIP_EVERY=40 LD_PRELOAD=$FLIP_LIBRARY weft profile --local --rails $rails --endpoints 2 --size 4M -n 3 -w 1 --drift-s 0 \
    --crc on --traces traces --csv profile.csv
pass_if "profile with flipped bits and checksums passes (status $status: $(cat err))" [ "$status" -eq 0 ]
for node in 0 1; do
    pass_if "profile: node$node sent again: $(cut -d , -f 7-9,25,26 profile.csv)" awk -F, -v node="node$node:" '
        NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i }
        index($column["src"], node) == 1 { sum += $column["resent_bytes"] }
        END { exit sum == 0 }' profile.csv
done

# Of one kind, of all nodes, rails or samples together.
sum() { # PART KEY
    sed -n "/^ \"$1\"/,/^ ]/p" result.json >part.json
    json_numbers part.json "$2" | awk '{sum += $1} END {printf "%.0f", sum}'
}

# ---- seldom damage: everything that was measured is verified when it is sent again, so it is found
seldom() { # FLIP-EVERY COMMAND OPTIONS...
    local every=$1 seed
    shift
    for seed in ${LOOP_SEEDS:-1 2}; do
        weft "$@" --local --rails $rails --port 0 --check-time-ms 3600000 --json result.json \
            --fault "seed=$seed,flip_every=$every"
        pass_if "$*: seed $seed: status $status: $(tail -1 out)" [ "$status" -eq 1 ]
        pass_if "$*: seed $seed: flips are found: $(cat err)" [ "$(sum samples wrong_bytes)" -gt 0 ]
        pass_if "$*: seed $seed: all is verified: $(sum samples verified_bytes) of $(sum samples measured_bytes)" \
            [ "$(sum samples verified_bytes)" = "$(sum samples measured_bytes)" ]
    done
}
seldom 80M pair --size 4M -n 100 -w 0 --inflight 1
seldom 80M pair --size 1M -n 400 -w 0 --inflight 8 --buffers 8
seldom 80M pair --lat --size 1M -n 200 -w 0
seldom 80M mesh --endpoints 2 --size 4M -n 12 -w 0 --scope all

# ---- and with --check all every flip of the timed pass is counted, but for those in headers: these cost a channel.
# ---- Without padding behind the headers: a flip there hurts nothing.
every_one() { # COMMAND OPTIONS...
    local flips wrong lost
    weft "$@" -w 0 --local --rails $rails --port 0 --check all --check-time-ms 0 --header-pad 64 --json result.json \
        --fault seed=3,flip_every=20M
    flips=$(sum faults flips) wrong=$(sum samples wrong_bytes) lost=$(sum rails failures)
    pass_if "$* --check all: status $status: $(cat err)" [ "$status" -eq 1 ]
    pass_if "$* --check all: there were flips" [ "$flips" -gt 4 ]
    pass_if "$* --check all: $wrong wrong bytes of $flips flips, $lost channels lost" \
        [ "$wrong" -le "$flips" -a "$wrong" -ge $((flips - lost)) ]
}
every_one pair --size 4M -n 100 --inflight 1
every_one pair --size 1M -n 400 --inflight 8 --buffers 8
every_one pair --lat --size 1M -n 200
every_one mesh --endpoints 2 --size 4M -n 10 --mode loaded
finish
