#!/bin/bash
# test_flip.sh: damage on the way in is found by the verification, told with its place, and is a failure. With checksums
# (setting crc) no damaged byte gets that far, and what was damaged is sent again.
. "$(dirname "$0")/loop_lib.sh"
: "${FLIP_LIBRARY:?the preloaded library}"

wrong_sum() {
    json_numbers result.json wrong_bytes | awk '{sum += $1} END {print sum + 0}'
}

check() { # COMMAND OPTIONS...
    rm -f result.json
    FLIP_EVERY='' LD_PRELOAD=$FLIP_LIBRARY weft "$@" --local --rails $rails --port "$(free_port)" --json result.json
    pass_if "$1 with the library, but no flip, passes (status $status: $(cat err))" [ "$status" -eq 0 ]
    pass_if "$1 has no wrong byte" [ "$(wrong_sum)" -eq 0 ]

    rm -f result.json
    FLIP_EVERY=3 LD_PRELOAD=$FLIP_LIBRARY weft "$@" --local --rails $rails --port "$(free_port)" --json result.json
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
    FLIP_EVERY=40 LD_PRELOAD=$FLIP_LIBRARY weft "$@" --local --rails $rails --port "$(free_port)" --crc on \
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
finish
