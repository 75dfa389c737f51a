#!/bin/bash
# test_page_faults.sh: what messages land in was mapped before the measured time. Every page counts once when it is
# mapped, so the count of both nodes tells; with small pages only, a landing is many of them.
. "$(dirname "$0")/loop_lib.sh"

# Landings of MIB in all, each of which gets no more than a message in measured time and none before it.
check() { # MIB ARGUMENTS...
    local pages=$(($1 * 1024 * 1024 / $(getconf PAGE_SIZE))) faults sum=0
    shift
    timeout -k 5 60 "$LOOP_TOOL" small-pages "$WEFT" "$@" --local --rails $rails --json faults.json \
        >out 2>err </dev/null
    status=$?
    [ $status -eq 77 ] && skip "huge pages cannot be switched off here: $(head -1 err)"
    pass_if "weft $*: status $status: $(head -3 err)" [ $status -eq 0 ]
    for faults in $(json_numbers faults.json page_faults); do
        sum=$((sum + faults))
    done
    echo "weft $*: $sum page faults in measured time, landings of $pages pages"
    pass_if "weft $*: the result has no page_faults" [ -n "$(json_numbers faults.json page_faults)" ]
    pass_if "weft $*: $sum page faults, with landings of $pages pages" [ "$sum" -lt $((pages / 4)) ]
}

check 64 pair --size 4M --inflight 16 -n 16 -w 0 -c 0
check 64 mesh --endpoints 2 --size 16M --mode loaded -n 1 -w 0 -c 0
check 16 pair --lat --size 16M -n 1 -w 0 -c 0
finish
