#!/bin/bash
# test_usage.sh: what cannot be met ends in one clear line that names the value, with the right exit status, without a
# hang and with nobody left.
. "$(dirname "$0")/loop_lib.sh"
limit=20

base="--local --endpoints 2 --size 64K -n 2 -w 0 --rails $rails"

# One line on standard error with WORD in it, and the status.
told() { # STATUS WORD WHAT
    pass_if "$3: status $status, expected $1: $(head -3 err)" [ "$status" -eq "$1" ]
    pass_if "$3: no line names $2: $(head -3 err)" grep -Fqe "$2" err
    pass_if "$3: more than a line: $(cat err)" [ "$(wc -l <err)" -le 2 ]
    pass_if "$3: nobody is left" nothing_left
}

# ---- what was typed
expect 2 --frobnicate mesh $base --frobnicate
expect 2 nonsense nonsense
expect 2 12Q mesh --local --size 12Q
expect 2 12Q mesh --local --begin 12Q
expect 2 -5 mesh $base --window -5
expect 2 0 mesh $base --window 0
expect 2 1000000 mesh $base --channels 1000000
expect 2 x7 mesh $base --iters x7
expect 2 frame mesh $base --engine frame
expect 2 spiral mesh $base --pattern spiral
expect 2 99999999999999999999 mesh $base --chunk 99999999999999999999
expect 2 chnk mesh $base --set chnk=4K
expect 2 'call = 4095' mesh $base --set call=4095
expect 2 chunk mesh $base --set chunk
expect 2 node9:banana pair --local --src node9:banana --dst node1:host0
expect 2 node1 pair --local --lat --src node1:host0 --dst node1:host1
expect 2 --connect mesh --listen 127.0.1.1:1 --connect 127.0.1.1:1
expect 2 --size mesh --local --size
expect 2 99999 mesh --listen 127.0.1.1:99999 --size 64K

# ---- the environment
WEFT_CHUNKS=4K weft mesh $base
pass_if "an unknown WEFT_ name is no failure (status $status)" [ "$status" -eq 0 ]
pass_if "an unknown WEFT_ name is told: $(cat err)" grep -q WEFT_CHUNKS err
pass_if "with the nearest real one: $(cat err)" grep -qw WEFT_CHUNK err
WEFT_INFLIGHT=4 WEFT_DURATION=3 weft pair --local --lat --size 8 -n 4 --rails $rails
pass_if "what does nothing for latency is ignored: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "in silence, as it is for all commands: $(cat err)" [ "$(grep -c 'does nothing' err)" -eq 0 ]
weft pair --local --lat --size 8 -n 4 --rails $rails --inflight 4 --duration 3
pass_if "named here, too: status $status" [ "$status" -eq 0 ]
pass_if "and told, once each: $(cat err)" [ "$(grep -Ec -e '--(inflight|duration) does nothing for latency' err)" -eq 2 ]
WEFT_WINDOW=-3 weft mesh $base
told 2 WEFT_WINDOW "WEFT_WINDOW=-3"
pass_if "and the value is told" grep -q -e -3 err
WEFT_CONFIG=$PWD/none.conf weft mesh $base
told 2 none.conf "WEFT_CONFIG of a file that is not there"
printf 'chunk = 64K\nwindow = many\n' >bad.conf
expect 2 bad.conf mesh $base --config bad.conf

# ---- the machine
expect 2 203.0.113.9 mesh --local --endpoints 1 --size 64K -n 1 --rails 203.0.113.9
expect 2 nonesuch mesh $base --set congestion=nonesuch
expect 2 nosuch0 mesh --local --endpoints 1 --size 64K -n 1 --rails nosuch0

timeout 30 "$WEFT" mesh --listen 127.0.1.1:0 --rails $rails --size 64K -n 1 --preset warmup=3 --connect-timeout 25 \
    >first.out 2>&1 &
first=$!
waiting $first first.out
weft mesh --listen 127.0.1.1:"$port" --rails $rails --size 64K -n 1
pass_if "a port in use: status $status" [ "$status" -eq 1 ]
pass_if "a port in use is named: $(cat err)" grep -q "$port" err
kill $first
wait $first 2>/dev/null
pass_if "what a preset says is one at the other node, too: $(cat first.out)" \
    grep -q 'weft mesh --connect .* --size 64K --iters 1 --preset warmup=3$' first.out

hold_port
nobody=127.0.1.1:$port
expect 1 "$nobody" mesh --connect "$nobody" --connect-timeout 1 --rails $rails --size 64K -n 1

weft_limited() { # ULIMIT-OPTION VALUE ARGUMENTS...
    local option=$1 value=$2
    shift 2
    # shellcheck disable=SC2016
    timeout -k 5 "$limit" bash -c 'ulimit "$1" "$2" || exit 99; shift 2; exec "$@"' _ "$option" "$value" "$WEFT" "$@" \
        >out 2>err </dev/null
    status=$?
    [ "$status" -lt 124 ] || fail "with ulimit $option $value: status $status (hangs or crashes)"
}

weft_limited -n 20 mesh $base --channels 16
told 1 "descriptor" "too few descriptors"
if [ -z "${LOOP_SANITIZED:-}" ]; then
    expect 1 1T mesh --local --endpoints 2 --size 1T -n 1 --rails $rails
    weft_limited -v 400000 mesh --local --endpoints 4 --size 64M -n 1 --rails $rails
    pass_if "too little address space: status $status" [ "$status" -eq 1 ]
    pass_if "too little address space is told: $(head -3 err)" grep -Eqi 'memory|address space|buffers' err
fi

# ---- where the results go
# A full device of the test's own where it may make one: a fault must not cost the machine its /dev/full.
full=/dev/full
make_full() {
    rm -f full
    if mknod full c 1 7 2>/dev/null; then
        full=$PWD/full
    fi
}

make_full
expect 1 "$full" mesh $base --json "$full" --csv beside.csv
pass_if "the report is printed all the same: $(cat out)" grep -q ', 0 wrong of ' out
pass_if "and does not name what is not there" [ "$(grep -c results: out)" -eq 0 ]
pass_if "and the other file is written" [ "$(grep -c '^weft,' beside.csv)" -gt 0 ]
pass_if "--json writes to a device, and does not replace it" [ -c "$full" ]
make_full
expect 1 "$full" mesh $base --csv "$full"
pass_if "--csv writes to a device, and does not replace it" [ -c "$full" ]
make_full
expect 1 /proc/none mesh $base --out /proc/none
expect 1 "--json .: that is a folder" mesh $base --json .
pass_if "a folder for a file is told before anything is measured: $(cat out)" [ ! -s out ]
expect 1 no/such/folder/x.json mesh $base --json no/such/folder/x.json
timeout -k 5 "$limit" "$WEFT" config >"$full" 2>err
status=$?
pass_if "weft config to a full disk: status $status" [ "$status" -eq 1 ]

# ---- interrupted
# In the middle of it, by the ticks of processor time that it has used; or it has ended, or does nothing.
busy() { # PID
    local tries ticks
    for ((tries = 0; tries < 1000; tries++)); do
        ticks=$(awk '{ print $14 + $15 }' "/proc/$1/stat" 2>/dev/null) && [ "$ticks" -lt 10 ] || return 0
        sleep 0.02
    done
    fail "process $1 has used $ticks ticks"
}
for signal in INT TERM KILL; do
    "$WEFT" mesh $base --size 1M -n 1000000 >out 2>err </dev/null &
    run=$!
    busy $run
    kill -$signal $run
    wait $run 2>/dev/null
    status=$?
    [ $signal = KILL ] || pass_if "after SIG$signal: status $status" [ "$status" -eq 1 ]
    pass_if "after SIG$signal: nobody is left" nothing_left
done

# ---- nothing is eager: every message waits for its receive, those of the two nodes to each other too
for what in "mesh $base" "pair --local --size 0,8 -n 4 --rails $rails" "pair --local --lat --size 8 -n 4 --rails $rails"; do
    # shellcheck disable=SC2086
    weft $what --eager 0 --first-burst 0
    pass_if "weft $what without eager messages: status $status: $(cat err)" [ "$status" -eq 0 ]
done

# ---- what the result files say is consistent in itself
# Of each row: min <= p50 <= p90 <= p99 <= p999 <= max, and the mean between min and max.
consistent() { # CSV
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        function us(name) { return $at["time_us_" name] + 0 }
        { slack = 1e-6 * us("max"); rows++ }
        us("min") > us("p50") + slack || us("p50") > us("max") + slack || us("p90") > us("p99") + slack ||
        us("p99") > us("p999") + slack || us("p999") > us("max") + slack || us("mean") < us("min") - slack ||
        us("mean") > us("max") + slack || $at["grouped"] < 1 || $at["grouped"] > $at["iters"] { print; wrong = 1 }
        END { exit wrong || rows == 0 }' "$1"
}
for what in "mesh --local --endpoints 2" "pair --local" "pair --local --inflight 3" "pair --local --inflight 1" \
    "pair --local --lat"; do
    # shellcheck disable=SC2086
    weft $what --size 8,4K,64K,1M -n 21 -w 1 --rails $rails --quiet --csv times.csv
    pass_if "weft $what: status $status: $(cat err)" [ "$status" -eq 0 ]
    pass_if "weft $what: times that contradict each other" consistent times.csv
done

# ---- a folder of results is there when there are results
expect 2 12Q mesh $base --size 12Q --out made/one --latest latest
pass_if "wrong usage makes no folder" [ ! -e made/one ]
expect 2 nosuch0 mesh --local --endpoints 1 --size 64K -n 1 --rails nosuch0 --out made/two --latest latest
pass_if "a run that never started leaves no folder" [ ! -e made/two ]
pass_if "and no link" [ ! -L latest ]
weft mesh $base --out made/three --latest latest
pass_if "results through the link" [ -s latest/mesh.json ]
weft mesh $base --out made/four --latest latest
pass_if "the link moves on: $(readlink latest)" [ "$(readlink -f latest)" = "$PWD/made/four" ]
expect 2 nosuch0 mesh --local --endpoints 1 --size 64K -n 1 --rails nosuch0 --out made/five --latest latest
pass_if "but only to results: $(readlink latest)" [ "$(readlink -f latest)" = "$PWD/made/four" ]

# ---- a run that never began says so where its results are looked for, and leaves none of an older one there
field() { # FILE NAME
    sed -n "s/^ \"$2\": \(.*\),\$/\1/p" "$1"
}
tells() { # WHAT FILE STATUS CODE WORD
    pass_if "$1: a whole object: $(head -3 "$2")" grep -q '^}' "$2"
    pass_if "$1: of a result" [ "$(field "$2" schema)" = '"weft.result/1"' ]
    pass_if "$1: exit_status: $(field "$2" exit_status)" [ "$(field "$2" exit_status)" = "$3" ]
    pass_if "$1: error_code: $(field "$2" error_code)" [ "$(field "$2" error_code)" = "\"$4\"" ]
    pass_if "$1: no $5 in: $(field "$2" error)" grep -Fqe "$5" <<<"$(field "$2" error)"
    pass_if "$1: passed" grep -q '"passed": false' "$2"
}
never() { # STATUS CODE WORD ARGUMENTS...
    local want=$1 code=$2 word=$3
    shift 3
    echo old | tee never.json >never.csv
    expect "$want" "$word" "$@" --json never.json --csv never.csv --out never
    tells "weft $*" never.json "$want" "$code" "$word"
    pass_if "weft $*: the CSV: $(cat never.csv)" grep -q '^# cut short: .*: 0 of [0-9]* samples' never.csv
    pass_if "weft $*: and no folder" [ ! -e never ]
    weft "$@" --json -
    tells "weft $* --json -" out "$want" "$code" "$word"
    pass_if "weft $* --json -: nothing else: $(head -1 out)" [ "$(head -1 out).$(tail -1 out)" = '{.}' ]
}
never 2 EINVAL nosuch0 mesh --local --endpoints 1 --size 64K -n 1 --rails nosuch0
never 1 ETIMEDOUT "$nobody" pair --connect "$nobody" --connect-timeout 1 --rails $rails --size 64K -n 1
never 77 EOPNOTSUPP 'memory = cuda' mesh $base --memory cuda
never 2 EINVAL none.key mesh $base --key-file none.key
never 2 EINVAL 12Q mesh $base --size 12Q
never 2 EINVAL 'there are 2 endpoints: name node0:host0 to node0:host1' pair $base --src node0:host4
never 2 EINVAL 'there are 2 endpoints: name node1:gpu0 to node1:gpu1' pair $base --src node0:host1 --dst node1:gpu4
weft mesh --local --json never.json --size
tells "an option without its value" never.json 2 EINVAL --size
weft mesh $base --size $'1\xff2' --json never.json
tells "a word that is no UTF-8" never.json 2 EINVAL "size = '1?2'"
weft mesh $base --json - --csv -
tells "two on standard output" out 2 EINVAL 'standard output'
weft peers --connect "$nobody" --connect-timeout 1 --rails $rails --size 64K --json never.json --out never
tells "weft peers and nobody there" never.json 1 ETIMEDOUT "$nobody"
pass_if "weft peers and nobody there: no folder" [ ! -e never ]
weft peers --tools spade --json never.json
tells "weft peers and no such tool" never.json 2 EINVAL spade
weft mesh $base --json well.json
pass_if "a run that passed: $(field well.json error)" [ "$(field well.json exit_status).$(field well.json error_code)" = 0.null ]

# ---- weft doctor that nobody comes to: what it has found of this machine is told all the same
weft doctor --listen 127.0.1.1:0 --rails $rails --idle-timeout 1 --json -
pass_if "nobody comes to weft doctor: status $status" [ "$status" -eq 1 ]
pass_if "its findings: $(cat out err)" grep -q '"check": "disk"' out
pass_if "and that nobody came" grep -q '"text": "no other node came within 1 s' out
pass_if "a line for people: $(cat err)" grep -q '^FAULT  node0 session: no other node came within 1 s' err
pass_if "and how many: $(cat err)" grep -q ' found$' err
pass_if "where it waited, too: $(cat err)" grep -q '^node0 waits on port ' err
pass_if "the JSON is alone: $(head -1 out)" [ "$(head -1 out).$(tail -1 out)" = '{.}' ]

# ---- nothing is called verified that was not
for what in "-c 0" "--backend null"; do
    # shellcheck disable=SC2086
    weft mesh $base $what --json unchecked.json
    pass_if "weft mesh $what: status $status: $(cat err)" [ "$status" -eq 0 ]
    pass_if "$what: no word of verified bytes: $(tail -1 out)" [ "$(grep -c ' verified; ' out)" -eq 0 ]
    pass_if "$what: verified" grep -Eq '"verified": *false' unchecked.json
    pass_if "$what: wrong_bytes is a number" [ -z "$(json_numbers unchecked.json wrong_bytes)" ]
done

# ---- a report that nobody gets
report() { # WHAT ARGUMENTS...: standard output is where the caller sent it
    local what=$1
    shift
    timeout -k 5 "$limit" "$WEFT" "$@" 2>err </dev/null
    status=$?
    told 1 "standard output" "$what"
}
make_full
report "a report to a full disk" mesh $base >"$full"
report "a report to a closed output" mesh $base >&-
make_full
report "the version to a full disk" --version >"$full"
make_full
expect 1 "No space left" mesh $base --json "$full"

# ---- a line of a log fits itself: 2 senders of 64K, so bytes / time is the rate
weft mesh $base --log-dir perf
pass_if "the rate of each [PERF] line is its bytes over its time: $(cat perf/*.log)" awk '/PERF/ {
        lines++; ms = $5; rate = 2 * 65536 / (ms * 1e6)
        if (rate < $8 * 0.9 - 0.01 && ms > 0.05 || rate > $8 * 1.1 + 0.01 && ms > 0.05) wrong = 1
    } END { exit wrong || lines != 8 }' perf/fullmesh_*.log

# ---- words that are known, here or elsewhere
expect 2 "standard output" mesh $base --json - --csv -
expect 2 bla mesh $base --fault bla
expect 2 reset_every=0 mesh $base --fault seed=1,reset_every=0
expect 2 "fault: stall=eth99: no rail is called that" mesh $base --fault stall=eth99@1+1
WEFT_FAULT=drop=lo weft mesh $base
told 2 WEFT_FAULT "WEFT_FAULT=drop=lo"
expect 2 "weft pair" mesh $base --lat
expect 77 gpus mesh $base --gpus all
expect 77 cuda mesh $base --memory cuda
expect 77 cuda mesh $base -m cuda
weft mesh $base --endpoints 2 --scope intra --json intra.json
pass_if "pairs within the nodes: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "2 a node and mode" [ "$(grep -c '"scope": "intra"' intra.json)" -eq 8 ]
weft mesh $base --json told.json --log-dir told
pass_if "the report ends with where its files are: $(tail -1 out)" grep -q 'results: told.json.* logs: told/' <(flat out)

# ---- and what works
weft mesh $base
pass_if "the same without a fault: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "nobody is left" nothing_left
finish
