#!/bin/bash
# test_keep.sh: a server that stays (--keep): run after run, each with results of its own; clients that find it busy wait
# their turn and know their place; one that fails costs its run alone; a signal or --idle-timeout ends it.
. "$(dirname "$0")/nodes_lib.sh"

# keep OPTION...: starts the server. Sets server and port.
keep() {
    rm -rf s s-* s.out s.err logs
    "$WEFT" "${command:-mesh}" --listen 127.0.0.1:0 --rails $rails --keep --out s --timeout 3 --rail-timeout-ms 1000 "$@" \
        >s.out 2>s.err </dev/null &
    server=$!
    waiting $server s.out
}

# client NAME OPTION...: a client in the background, what it says in NAME.out and NAME.err. Sets client.
client() {
    local name=$1
    shift
    "$WEFT" "${command:-mesh}" --connect "127.0.0.1:$port" --rails $rails --timeout 3 --rail-timeout-ms 1000 "$@" \
        >"$name.out" 2>"$name.err" </dev/null &
    client=$!
}

# served OPTION...: a client that has to be served now.
served() {
    client one "$@"
    ends "$client"
    pass_if "served: $*: status $status: $(cat one.err s.err)" [ "$status" -eq 0 ]
}

# told_to_end SIGNAL STATUS: the server ends, and leaves nothing.
told_to_end() {
    kill "-$1" "$server"
    ends "$server"
    pass_if "ended by SIG$1: status $status: $(cat s.err)" [ "$status" -eq "$2" ]
    pass_if "nobody is left" nothing_left
    pass_if "it says why: $(tail -n 1 s.out)" grep -q "^the server ends: interrupted by SIG$1" s.out
}

# A run that goes on until it is ended. Under a sanitizer a large message takes longer than a node waits for its end.
endless="--endpoints 1 --mode isolated --size 64M -n 100000 -w 0"
[ -n "${LOOP_SANITIZED:-}" ] && endless="--endpoints 1 --mode isolated --size 1M -n 1000000 -w 0"
small="--endpoints 1 --mode isolated --size 8 -n 2 -w 0"

# ---- ten runs, each another
keep --json j.json --csv c.csv --log-dir logs --latest latest
pass_if "it invites: $(cat s.out)" grep -q "weft mesh --connect 127.0.0.1:$port" s.out
for ((i = 1; i <= 10; i++)); do
    served --endpoints $((i % 3 + 1)) --size ${i}K -n 2 -w 0 --seed $i --mode isolated --quiet
done
for ((i = 1; i <= 10; i++)); do
    count=$((2 * (i % 3 + 1) * (i % 3 + 1)))
    pass_if "run $i: its size" [ "$(json_numbers "s-$i/mesh.json" size_bytes | sort -u)" = $((i * 1024)) ]
    pass_if "run $i: its samples" [ "$(grep -c '^weft,' "s-$i/mesh.csv")" -eq $count ]
    pass_if "run $i: passed" grep -q '"passed": true' "s-$i/mesh.json"
    pass_if "run $i: its seed" grep -q "\"value\": $i\$\|\"value\": $i," <(grep -A 1 '"seed"' "s-$i/mesh.json")
    pass_if "run $i: its JSON by name" cmp -s "j-$i.json" "s-$i/mesh.json"
    pass_if "run $i: its CSV by name" cmp -s "c-$i.csv" "s-$i/mesh.csv"
    pass_if "run $i: its logs: $(ls logs)" [ "$(find logs -name "*Z-$i.log" | wc -l)" -eq $((i % 3 + 1)) ]
    pass_if "run $i: told" grep -q "^run $i has passed; port $port is open for the next client" s.out
done
pass_if "the link leads to the last" [ "$(readlink latest)" = s-10 ]
pass_if "nothing has no number: $(ls)" absent s j.json c.csv
# What a client wanted is not the default of the next.
served --quiet --endpoints 1 --mode isolated --json one.json -e 1M
pass_if "defaults are defaults again" [ "$(json_numbers one.json size_bytes | sort -u)" = 1048576 ]
told_to_end TERM 0
pass_if "runs: $(tail -n 1 s.out)" grep -q 'runs: 11$' s.out

# ---- one after the other, and told their place
# place NAME NUMBER: that client was told so.
place() {
    until_true "$1 is number $2" grep -qs "^the server at 127.0.0.1:$port is busy with another run: you are number $2 in line" \
        "$1.out"
}

# clients NAME...: each waits behind the one before.
clients() {
    local number=0 name
    for name in "$@"; do
        # shellcheck disable=SC2086
        client "$name" $small --connect-timeout 1
        printf -v "$name" %s "$client"
        place "$name" $((++number))
    done
}

# measures NUMBER: that run of the server has begun.
measures() {
    until_true "run $1 measures" grep -qs "^run $1 begins" s.out
}

keep
# shellcheck disable=SC2086
client first $endless --quiet
first=$client
measures 1
clients second third fourth fifth
# The one in the middle leaves, and those behind it move up.
kill -INT "$third"
ends "$third"
pass_if "a waiting client ends: $status" [ "$status" -eq 1 ]
place fourth 2
place fifth 3
pass_if "told at the server: $(cat s.out)" grep -q 'has left the line: .*interrupted by SIGINT' s.out
# One is killed, without a word.
kill -KILL "$fourth"
wait "$fourth" 2>/dev/null
place fifth 2
# They wait longer than for a connection. The one that measures is ended, and both have their turn.
kill -INT "$first"
ends "$first"
for name in second fifth; do
    ends "${!name}"
    pass_if "$name is served: status $status: $(cat $name.err s.err)" [ "$status" -eq 0 ]
done
place fifth 1
told_to_end INT 0

# ---- it ends: those who wait are told, and so is the one that measures
keep
# shellcheck disable=SC2086
client first $endless
first=$client
measures 1
clients second
told_to_end TERM 0
for name in first second; do
    ends "${!name}"
    pass_if "$name: status $status" [ "$status" -eq 1 ]
    pass_if "$name is told: $(cat $name.err)" grep -q 'gave up: interrupted by SIGTERM' $name.err
done
pass_if "what was measured is kept" grep -q '"by": "SIGTERM"' s-1/mesh.json

# ---- a server that dies is noticed by those who wait
keep
# shellcheck disable=SC2086
client first $endless
first=$client
measures 1
clients second
kill -STOP "$server"
ends "$second"
pass_if "the server is silent: status $status: $(cat second.err)" [ "$status" -eq 1 ]
pass_if "it is told: $(cat second.err)" grep -q 'lost node0' second.err
kill -KILL "$server"
ends "$server"
ends "$first"

# ---- what one client does is not the next one's trouble
keep --connect-timeout 2
# shellcheck disable=SC2086
client first $endless
measures 1
kill -KILL "$client"
wait "$client" 2>/dev/null
until_true "a killed client costs its run" grep -q '^run 1 has failed' s.out
pass_if "its loss is in its results" grep -q '"by": "loss"' s-1/mesh.json
command=pair client other
ends "$client"
pass_if "another command: $(cat other.err)" grep -q "node0 runs 'weft mesh' and node1 'weft pair'" other.err
client much --endpoints 1024 --size 1T
ends "$client"
pass_if "too much: status $status" [ "$status" -ne 0 ]
# A stranger, and one that says nothing.
exec 3<>"/dev/tcp/127.0.0.1/$port" && printf 'GET / HTTP/1.0\r\n\r\n' >&3 2>/dev/null
exec 4<>"/dev/tcp/127.0.0.1/$port"
served --endpoints 1 --mode isolated --size 4K -n 2 -w 0 --quiet
exec 3>&- 4>&-
pass_if "its results are the second: $(ls)" [ "$(json_numbers s-2/mesh.json size_bytes | sort -u)" = 4096 ]
pass_if "clients that measured nothing leave nothing: $(ls)" [ ! -e s-3 ]
pass_if "one line for each: $(cat s.err)" [ "$(grep -c "node0 runs 'weft mesh'" s.err)" -eq 1 ]
# Many requests are under way when it is gone: they are collected from a queue.
client many --endpoints 2 --size 4K -n 5000000 -w 0 --inflight 1500 --mode loaded --pattern pairs
measures 3
kill -KILL "$client"
wait "$client" 2>/dev/null
until_true "that costs its run, too" grep -q '^run 3 has failed' s.out
# shellcheck disable=SC2086
served $small
told_to_end TERM 0

# ---- memory: that of a run is gone with it, also when it broke
resident() {
    sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$server/status"
}
if [ -z "${LOOP_SANITIZED:-}" ]; then
    keep --out '' --timeout 1
    for ((i = 1; i <= 20; i++)); do
        served --endpoints 2 --mode isolated --size 1M -n 4 -w 0 --quiet
        [ $i -eq 5 ] && before_kib=$(resident)
    done
    pass_if "20 runs: from $before_kib to $(resident) KiB" [ "$(resident)" -lt $((before_kib + 30000)) ]
    kill "$server"
    ends "$server"
fi

# ---- another key
(umask 077 && "$WEFT" key >one.key && "$WEFT" key >other.key) || fail "no keys"
keep --key-file one.key
client other --key-file other.key
ends "$client"
pass_if "another key: status $status: $(cat other.err)" [ "$status" -eq 1 ]
# shellcheck disable=SC2086
served $small --quiet --key-file one.key
told_to_end TERM 0

# ---- weft pair
command=pair
keep --lat
served --lat --size 8 -n 10 --quiet
served --size 64K -n 10 --quiet
pass_if "the first is a latency" grep -q ',latency,' s-1/pair.csv
pass_if "the second is a bandwidth" grep -q ',bandwidth,' s-2/pair.csv
told_to_end TERM 0
command=mesh

# ---- nobody comes
keep --idle-timeout 1
ends "$server"
pass_if "nobody comes: status $status: $(cat s.err)" [ "$status" -eq 0 ]
pass_if "it says so: $(cat s.out)" grep -q '^the server ends: no client came within 1 s (--idle-timeout); runs: 0' s.out
limit=20 weft mesh --listen 127.0.0.1:0 --rails $rails --idle-timeout 1
pass_if "nobody comes to one that serves once: status $status" [ "$status" -eq 1 ]
pass_if "it says so: $(cat err)" grep -q 'no other node came within 1 s: raise --idle-timeout' err

# ---- a run that fails by the server's own doing is in its status
mkdir results
keep --log-dir results/logs
# shellcheck disable=SC2086
client first $endless --quiet
measures 1
rm -rf results && : >results
kill -INT "$client"
ends "$client"
until_true "the run ends" grep -q '^run 1 has failed' s.out
# shellcheck disable=SC2086
client one $small
ends "$client"
pass_if "there is no place for logs any more: status $status: $(cat one.err)" [ "$status" -eq 1 ]
pass_if "the client is told: $(cat one.err)" grep -q 'gave up: --log-dir results/logs: cannot write there' one.err
told_to_end TERM 1

# ---- where it does not belong
for place in --local "--connect 127.0.0.1:1"; do
    # shellcheck disable=SC2086
    weft mesh $place --keep
    pass_if "$place --keep: status $status: $(cat err)" [ "$status" -eq 2 ]
done
pass_if "told: $(cat err)" grep -q -- '--keep is for the node that waits: use it with --listen' err
finish
