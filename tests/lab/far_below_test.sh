#!/usr/bin/env bash
# The reports of weft pair and weft collective say that a run is far below what the rails allow, and point to weft doctor; not
# where it is as fast as they are, and not where nobody knows how fast they are. What they allow is told by files that are
# put in the place of the system's. Skipped where there can be no lab.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
# shellcheck source=tests/lab/lab_lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lab_lib.sh"

if [[ ${1-} != --inside ]]; then
    export LAB_RAILS=100mbit LAB_IP=4
    enter_lab 100
fi
cd -- "$scratch" || exit 1

# cards SPEED: from here on lab0 is a card of so many Mbit/s, with an MTU of 1500.
cards() {
    mkdir -p cards/lab0/device
    echo "$1" >cards/lab0/speed
    echo 1500 >cards/lab0/mtu
}

# transfer: sets output, of node 1.
transfer() {
    local server
    "$WEFT_TEST_PROGRAM" pair --listen --quiet >server.out 2>&1 </dev/null &
    server=$!
    run on 1 timeout -k 5 60 "$WEFT_TEST_PROGRAM" pair --connect 10.77.0.1 --size 1M --inflight 16 -n 16 -w 1 --check 0
    expect_status 0 "$1"
    wait "$server" || fail "$1: the server ends with status $?: $(<server.out)"
}

# reduce: an all-reduce among a rank at each node; sets output, of rank 0.
reduce() {
    local other
    RANK=1 WORLD_SIZE=2 LOCAL_RANK=0 on 1 timeout -k 5 60 "$WEFT_TEST_PROGRAM" "${collective[@]}" >other.out 2>&1 </dev/null &
    other=$!
    run env RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 timeout -k 5 60 "$WEFT_TEST_PROGRAM" "${collective[@]}"
    expect_status 0 "$1"
    wait "$other" || fail "$1: rank 1 ends with status $?: $(<other.out)"
    rm -rf meeting
}
collective=(collective --processes found --meeting "$scratch/meeting" --rails lab0 --size 16M --place in -n 1 -w 0 -c 0)

transfer 'the line rate is not known'
expect_no_text "far below what the rails allow:" 'the line rate is not known'
expect_no_text 'of the line rate' 'the line rate is not known'
reduce 'an all-reduce, and the line rate is not known'
expect_no_text 'far below what the rails allow' 'an all-reduce, and the line rate is not known'
cards 100
mount --bind cards /sys/class/net || skip '/sys/class/net cannot be covered'
transfer 'as fast as the rail'
expect_text 'of the line rate' 'as fast as the rail'
expect_no_text "far below what the rails allow:" 'as fast as the rail'
cards 100000
transfer 'far below'
expect_text "far below what the rails allow:" 'far below'
output=$(tr '\n' ' ' <<<"$output" | tr -s ' ')
expect_text 'the MTU of lab0 of node0 is 1500' 'far below'
expect_text "'weft doctor' examines the path" 'far below'
reduce 'an all-reduce far below'
expect_text '# far below what the rails allow (12.50 GB/s for each rank): weft, 2 ranks' 'an all-reduce far below'
umount /sys/class/net
finish
