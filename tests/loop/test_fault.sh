#!/bin/bash
# test_fault.sh: faults that the user asks for come, are told and counted, and nothing is lost by them.
. "$(dirname "$0")/loop_lib.sh"

base="--local --rails $rails --log-dir logs --json result.json"

# Of both nodes together.
injected() { # KIND
    sed -n '/^ "faults"/,/^ ]/p' result.json >faults.json
    json_numbers faults.json "$1" | awk '{sum += $1} END {print sum + 0}'
}

sum_of() { # KEY, of the rails
    sed -n '/^ "rails"/,/^ ]/p' result.json >rails.json
    json_numbers rails.json "$1" | awk '{sum += $1} END {print sum + 0}'
}

run() { # WANTED-STATUS SPEC ARGUMENTS...
    local want=$1
    spec=$2
    shift 2
    rm -f result.json
    # shellcheck disable=SC2086
    weft "$@" $base --fault "$spec"
    pass_if "$spec: status $status, not $want: $(cat err)" [ "$status" -eq "$want" ]
    pass_if "$spec: nothing is left" nothing_left
    pass_if "$spec: a warning at both nodes: $(cat err)" \
        [ "$(grep -Fc "faults are injected, as the setting fault asks: $spec" err)" -eq 2 ]
    pass_if "$spec: an entry among the fallbacks" grep -Fq "node1: fault: faults are injected: $spec" result.json
    pass_if "$spec: the engine keeps its name" grep -Eq '"engine": "(epoll|uring)"' result.json
    pass_if "$spec: one line of sums: $(cat out)" [ "$(grep -Ec '^faults injected: node0:.*; node1:' out)" -eq 1 ]
}

# ---- none
weft mesh $base --endpoints 1 --size 64K -n 2
pass_if "without faults: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "without faults nothing is told: $(cat out err)" [ "$(cat out err | grep -c fault)" -eq 0 ]
pass_if "without faults the list is empty" grep -q '^ "faults": \[\],$' result.json

# ---- resets, on each engine and with threads of their own
for how in "--engine epoll --workers shared" "--engine epoll --workers split" "--engine auto --workers split"; do
    # shellcheck disable=SC2086
    run 0 seed=7,reset_every=8M mesh --endpoints 2 --size 1M -n 16 -w 1 $how
    pass_if "$how: connections were reset" [ "$(injected resets)" -gt 2 ]
    pass_if "$how: and noticed: $(sum_of failures) of $(injected resets)" [ "$(sum_of failures)" -gt 2 ]
done

# ---- flips: verification finds them, checksums keep them out
run 1 seed=7,flip_every=4M mesh --endpoints 2 --size 1M -n 16 -w 1 --mode loaded
run 0 seed=7,flip_every=8M mesh --endpoints 2 --size 1M -n 16 -w 1 --crc on --crc-limit 0 --log info
pass_if "flips: counted" [ "$(injected flips)" -gt 2 ]
pass_if "flips: found" [ "$(sum_of damaged)" -gt 0 ]
pass_if "flips: logged at level info: $(cat err)" grep -q 'fault: flipped .* received on rail 127.0.' err

# ---- short transfers
run 0 short=1 mesh --endpoints 2 --size 64K,1M -n 2 -w 1
pass_if "short: counted" [ "$(injected shortened)" -gt 100 ]

# ---- a rail that is gone for a time: later on a slow machine, whose channels have to be joined by then
met=0
for start in 300 1000 3000 9000; do
    rm -f result.json
    # shellcheck disable=SC2086
    weft pair $base --fault "drop=1@$start+300" --size 4M --duration $((start / 1000 + 2)) -w 1 --log info
    if [ "$status" -eq 0 ] && [ "$(injected refused)" -gt 0 ] && [ "$(injected cut)" -gt 0 ]; then
        met=1
        break
    fi
done
pass_if "drop: no run had its connections cut and new ones refused: $(cat err)" [ "$met" -eq 1 ]
pass_if "drop: counted" [ "$(injected drops)" -eq 2 ]
pass_if "drop: logged: $(cat err)" grep -q 'fault: rail 1 is gone for 300 ms' err
pass_if "drop: nothing is left" nothing_left

# ---- and one that stands still from the start
run 0 stall=127.0.2.1@0+300 pair --size 4M -n 20 -w 1 --log info
pass_if "stall: counted" [ "$(injected stalls)" -eq 2 ]
pass_if "stall: logged: $(cat err)" grep -q 'fault: rail 127.0.2.1 stands still for 300 ms' err
finish
