#!/bin/bash
# test_raw.sh: 'weft raw' moves what it says over loopback in every mode, and ends in one clear line when it cannot.
. "$(dirname "$0")/loop_lib.sh"
limit=30
before=""

# Starts a server, which ends by its own deadline if nothing else ends it; its port in $port.
serve() { # ARGUMENTS...
    : >serving # the last one's port stands there until the new one has been started
    $before "$WEFT" raw --listen "$@" >served 2>serving </dev/null &
    server=$!
    for _ in $(seq 500); do
        port=$(sed -n 's/.*listening on port //p' serving)
        [ -n "$port" ] && return
        sleep 0.01
    done
    fail "no server after 5 s: $(cat serving)"
}

field() { # NAME: of the one line of JSON
    tr ',{}' '\n' <out | sed -n "s/^ *\"$1\": *//p" | tr -d '"'
}

above_zero() { # NUMBER
    awk -v number="$1" 'BEGIN { exit !(number + 0 > 0) }'
}

# A whole run of both sides. ADDRESSES: those to connect to, without ports.
run() { # ADDRESSES ARGUMENTS...
    local list="" address
    serve "$listen"
    for address in $1; do
        list=$list${list:+,}$address:$port
    done
    shift
    weft raw --connect "$list" --timeout 20 "$@"
    wait "$server"
    pass_if "raw $*: the server's status: $(cat serving)" [ $? -eq 0 ]
    pass_if "raw $*: status $status: $(cat err)" [ "$status" -eq 0 ]
    pass_if "raw $*: one line: $(cat out)" [ "$(wc -l <out)" -eq 1 ]
    pass_if "raw $*: its schema: $(cat out)" [ "$(field schema)" = weft.raw/1 ]
    pass_if "raw $*: its time: $(cat out)" above_zero "$(field elapsed_s)"
    pass_if "raw $*: the server's processor time: $(cat out)" above_zero "$(field server_cpu_s)"
    pass_if "raw $*: the client's: $(cat out)" above_zero "$(field client_cpu_s)"
}

flow() { # ADDRESSES ARGUMENTS...
    run "$@"
    pass_if "raw $*: its rate: $(cat out)" above_zero "$(field gb_per_s)"
    pass_if "raw $*: messages/s: $(cat out)" above_zero "$(field messages_per_s)"
    pass_if "raw $*: no times: $(cat out)" [ "$(field p50_us)" = null ]
}

latency() { # ADDRESSES ARGUMENTS...
    run "$@" --lat
    pass_if "raw $*: p50: $(cat out)" above_zero "$(field p50_us)"
    pass_if "raw $*: p99: $(cat out)" above_zero "$(field p99_us)"
    pass_if "raw $*: mean: $(cat out)" above_zero "$(field mean_us)"
    pass_if "raw $*: no rate: $(cat out)" [ "$(field gb_per_s)" = null ]
}

# ---- what it measures, both ways to wait, odd sizes, calls that do not divide them
listen=127.0.0.1:0
for wait in "" --block; do
    flow 127.0.0.1 --size 1M -n 50 $wait
    flow 127.0.0.1 --size 1M -n 50 -w 0 --call 64K --buffers 3 $wait
    flow 127.0.0.1 --size 1 -n 999 --inflight 7 $wait
    flow 127.0.0.1 --size 63 -n 1001 --inflight 5 --buffers 1 --call 10 $wait
    flow 127.0.0.1 --size 1000003 -n 9 --inflight 100 --call 65537 $wait
    flow 127.0.0.1 --size 64K -n 100 --inflight 0 $wait
    flow 127.0.0.1 --size 64K -n 100 --inflight 1 $wait
    flow 127.0.0.1 --rate -n 5000 $wait
    flow 127.0.0.1 --rate --size 63 -n 1003 --inflight 10 --batch 7 --buffers 1 $wait
    flow 127.0.0.1 --rate -n 3 --inflight 64 --batch 64 $wait
    flow 127.0.0.1 --rate -n 1000 -w 13 --inflight 0 $wait
    flow 127.0.0.1 --size 64K -n 100 --congestion reno $wait
    latency 127.0.0.1 -n 200 $wait
    latency 127.0.0.1 -n 5 -w 0 --size 1000003 --buffers 2 $wait
done
pass_if "what was asked for is told: $(cat out)" [ "$(field size_bytes) $(field messages) $(field warmup)" = "1000003 5 0" ]
pass_if "and that calls wait" [ "$(field blocking)" = true ]

# ---- several streams
listen=0
for wait in "" --block; do
    flow "127.0.1.1 127.0.2.1 127.0.3.1" --size 100001 -n 100 --call 4K $wait
    pass_if "three streams: $(cat out)" [ "$(field streams)" = 3 ]
    flow "127.0.1.1 127.0.2.1" --size 64K -n 50 --inflight 0 --buffers 1 $wait
    flow "127.0.1.1 127.0.2.1" --rate -n 5000 $wait
    latency "127.0.1.1 127.0.2.1" -n 50 $wait
    pass_if "a ping-pong uses one: $(cat out)" [ "$(field streams)" = 1 ]
done

# ---- many streams, which are not asked in turn whether they can move
every() { # COUNT: the addresses of as many rails
    seq -f 127.0.%g.1 1 "$1" | tr '\n' ' '
}
for wait in "" --block; do
    for inflight in 16 300 0; do
        flow "$(every 16)" --streams 16 --size 100001 -n 1000 --call 32K --inflight $inflight --buffers 3 $wait
        pass_if "16 streams to each of 16 addresses: $(cat out)" [ "$(field streams)" = 256 ]
    done
    flow 127.0.0.1 --streams 17 --size 1 -n 999 --inflight 7 $wait
    flow "127.0.1.1 127.0.2.1 127.0.3.1" --streams 6 --size 1000003 -n 40 --call 65537 $wait
    flow "127.0.1.1 127.0.2.1" --streams 100 --rate -n 100000 $wait
    flow "127.0.1.1 127.0.2.1" --streams 100 --rate --size 63 -n 1003 --inflight 10 --batch 7 --buffers 1 $wait
    latency "$(every 17)" -n 50 $wait
done
flow "$(every 64)" --streams 16 --size 64K -n 3000 --inflight 1024 --buffers 16 --block
pass_if "16 streams to each of 64 addresses: $(cat out)" [ "$(field streams)" = 1024 ]
flow 127.0.0.1 --streams 1024 --size 64K -n 3000
pass_if "1024 streams to one address: $(cat out)" [ "$(field streams)" = 1024 ]
flow 127.0.0.1 --streams 16 --size 64K -n 100
pass_if "streams that are asked in turn: $(cat out)" [ "$(field streams)" = 16 ]

# ---- the limit of open files: raised as far as it may be, at each side, and told where that is not far enough
soft=$(ulimit -Sn)
ulimit -Sn 64
flow 127.0.0.1 --streams 100 --size 64K -n 100
ulimit -Sn "$soft"
serve 0
(
    ulimit -n 100
    timeout -k 5 30 "$WEFT" raw --connect "127.0.0.1:$port" --streams 128 --timeout 5 >out 2>err
)
pass_if "a client with too few files: status" [ $? -eq 1 ]
pass_if "a client with too few files is told: $(cat err)" grep -q "128 streams need [0-9]* file .* at most 100 " err
kill "$server" && wait "$server" 2>/dev/null
before="prlimit --nofile=100:100"
serve 0
before=""
weft raw --connect "127.0.0.1:$port" --streams 128 --timeout 10
pass_if "a server with too few files: status $status" [ "$status" -eq 1 ]
pass_if "its client is told: $(cat err)" grep -q "the server at .*: 128 streams need .* at most 100 " err
wait "$server"
pass_if "its status" [ $? -eq 1 ]
pass_if "a server with too few files tells it: $(cat serving)" grep -q "128 streams need .* at most 100 " serving

# ---- on one processor, where a side that spins keeps the other from running
first=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
before="taskset -c $first"
for mode in "-n 20" "--streams 40 -n 100" "--rate -n 5000" "--lat -n 100"; do
    serve 0
    $before timeout -k 5 30 "$WEFT" raw --connect "127.0.0.1:$port" $mode --timeout 20 >out 2>err
    pass_if "on one processor $mode: $(cat err)" [ $? -eq 0 ]
    wait "$server"
done
before=""
serve 0 --cpu "$first"
allowed=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "/proc/$server/status")
pass_if "--cpu $first: it may run on $allowed" [ "$allowed" = "$first" ]
weft raw --connect "127.0.0.1:$port" --cpu "$first" -n 20 --timeout 20
pass_if "both sides with --cpu $first: $(cat err)" [ "$status" -eq 0 ]
wait "$server"

# ---- what was typed
expect() { # STATUS WORD ARGUMENTS...
    local want=$1 word=$2
    shift 2
    weft raw "$@"
    pass_if "raw $*: status $status, expected $want" [ "$status" -eq "$want" ]
    pass_if "raw $*: no line names $word: $(cat err)" grep -Fqe "$word" err
    pass_if "raw $*: one line: $(cat err)" [ "$(wc -l <err)" -eq 1 ]
    pass_if "raw $*: nothing on standard output" [ ! -s out ]
}
to=127.0.0.1:1
expect 2 "--listen"
expect 2 frob --connect $to --frob
expect 2 "'--size'" --connect $to --sise 1M
expect 2 word --connect $to word
expect 2 "'-'" --connect $to -
expect 2 "-x" --connect $to -x
expect 2 "--size 0" --connect $to --size 0
expect 2 12Q --connect $to --size 12Q
expect 2 99999999999999999999 --connect $to --size 99999999999999999999
expect 2 "--iters 0" --connect $to -n 0
expect 2 "--iters x" --connect $to -nx
expect 2 "--warmup -1" --connect $to --warmup=-1
expect 2 "--inflight" --connect $to --inflight 10000000
expect 2 "--buffers 0" --connect $to --buffers 0
expect 2 "--call 0" --connect $to --call 0
expect 2 "--batch 9" --connect $to --rate --inflight 8 --batch 9
expect 2 "--batch" --connect $to --batch 2
expect 2 "--call" --connect $to --lat --call 4
expect 2 "--inflight" --connect $to --lat --inflight 4
expect 2 "--rate" --connect $to --lat --rate
expect 2 "no value" --connect $to --lat=1
expect 2 "needs a value" --connect $to --size
expect 2 "63 bits" --connect $to --size 1024G -n 1000000000000
expect 2 "--timeout 0" --connect $to --timeout 0
expect 2 "--size is the client's" --listen 0 --size 1M
expect 2 exclude --listen 0 --connect $to
expect 2 99999 --connect 127.0.0.1:99999
expect 2 "[::1" --connect "[::1"
expect 2 "names no server" --connect :18555
expect 2 "names no server" --connect $to,
expect 2 "more than 1024" --connect "$(printf "$to,%.0s" $(seq 1024))$to"
expect 2 "too long" --connect "$(printf "x%.0s" $(seq 2000))"
expect 2 "--streams 0: expected a number from 1 to 1024" --connect $to --streams 0
expect 2 "--streams 1025: expected a number from 1 to 1024" --connect $to --streams 1025
expect 2 "--streams x" --connect $to --streams x
expect 2 "--streams -1" --connect $to --streams=-1
expect 2 "needs a value" --connect $to --streams
expect 2 "--streams 500: to 3 addresses these are 1500, and there may be 1024: lower it to 341" \
    --connect $to,$to,$to --streams 500
expect 2 "--streams does nothing" --connect $to --lat --streams 2
expect 2 "--streams is the client's" --listen 0 --streams 2
expect 2 "given once" --connect $to --connect $to
expect 2 "no name is that long" --connect $to --congestion abcdefghijklmnop
expect 2 "--congestion nonesuch" --connect $to --congestion nonesuch
expect 2 "--congestion nonesuch" --listen 0 --congestion nonesuch
expect 2 "--cpu 1023" --connect $to --cpu 1023
expect 2 "from 0 to 1023" --listen 0 --cpu 1024
expect 1 "203.0.113.9" --listen 203.0.113.9:0
expect 1 "needs" --connect $to --size 1024G --inflight 1
hold_port
expect 1 "weft raw --listen" --connect "127.0.0.1:$port" -n 1
weft raw --listen 0 --timeout 1
pass_if "nobody comes: $status $(cat err)" [ "$status" -eq 1 ]
pass_if "nobody comes: $(cat err)" grep -q "no client came within 1 s" err
weft raw --help
pass_if "its help" grep -q -e --batch out
pass_if "its help is no error: $status" [ "$status" -eq 0 ]

# ---- a server that is killed, one that stands still, one that is none
# A client that would go on for ever, in the middle of it: the server has stopped listening when it has all streams.
begin() { # ARGUMENTS...
    serve 0
    timeout -k 5 30 "$WEFT" raw --connect "127.0.0.1:$port" -n 1000000000 "$@" >out 2>err &
    client=$!
    while grep -Eqi ":$(printf %04x "$port") [0-9a-f]*:0000 0A " /proc/net/tcp /proc/net/tcp6 2>/dev/null; do
        sleep 0.02
    done
}
for wait in "" --block "--streams 200" "--streams 200 --block"; do
    begin $wait
    kill -KILL "$server"
    wait "$client"
    pass_if "a killed server $wait: status" [ $? -eq 1 ]
    pass_if "a killed server $wait is told: $(cat err)" grep -q "closed the connection" err
    wait "$server" 2>/dev/null
    begin --timeout 1 $wait
    kill -STOP "$server"
    wait "$client"
    pass_if "a stopped server $wait: status" [ $? -eq 1 ]
    pass_if "a stopped server $wait is told: $(cat err)" grep -Eq "server for 1 s|answer within 1 s" err
    kill -CONT "$server"
    wait "$server"
    pass_if "and the server $wait notices that its client is gone: $(cat serving)" grep -q "client" serving
done
# A server that answers one connection with what is in the file `said`; its port is in the file `answering`.
answer_with_said() {
    : >answering
    "$LOOP_TOOL" answer said >answering &
    answering=$!
    while [ ! -s answering ] && kill -0 "$answering" 2>/dev/null; do
        sleep 0.01
    done
}
# A server that says what it likes: whatever that is, the client has failed, and its terminal is its own.
for code in '\005\000' '\000\020' '\000\000\001'; do
    { printf "weftraw1$code"; printf '%0*d' $((8 - ${#code} / 4)) 0 | tr 0 '\000'; printf '%-256s' $'\033]0;gone\007\n\2332J'; } >said
    answer_with_said
    weft raw --connect "127.0.0.1:$(cat answering)" --timeout 5 -n 5
    wait "$answering"
    pass_if "a server that says no with $code: status $status" [ "$status" -eq 1 ]
    pass_if "a server that says no with $code is told: $(cat -v err)" grep -q 'the server at .*: ?]0;gone???2J' err
done
# A client that is killed, and one that says more streams than it opens.
for wait in "--block" "--streams 200" "--streams 200 --block"; do
    begin $wait
    kill -KILL "$(pgrep -P "$client")"
    wait "$client" 2>/dev/null
    wait "$server"
    pass_if "a killed client $wait: the server's status" [ $? -eq 1 ]
    pass_if "a killed client $wait is told: $(cat serving)" grep -q "client" serving
done
# What each connection says first: numbers of 64 bits, of which one byte is not 0 here.
numbers() { # NUMBER...
    printf 'weftraw1%b' "$(printf '\\0%03o\\0\\0\\0\\0\\0\\0\\0' "$@")"
}
serve 0 --timeout 1
exec 9<>"/dev/tcp/127.0.0.1/$port"
numbers 7 0 200 0 1 1 0 1 1 1 1 1 0 >&9
wait "$server"
pass_if "streams that do not come: the server's status" [ $? -eq 1 ]
pass_if "streams that do not come are told: $(cat serving)" grep -q "1 of the client's 200 streams came" serving
exec 9>&-
serve 0
# More streams than there may be: 1281, as the second byte of their number is 5.
{ numbers 7 0; printf '\001\005\000\000\000\000\000\000'; numbers 0 1 1 0 1 1 1 1 1 0 | tail -c +9; } >"/dev/tcp/127.0.0.1/$port"
weft raw --connect "127.0.0.1:$port" --streams 20 -n 5
pass_if "too many streams disturb nobody: $status $(cat err)" [ "$status" -eq 0 ]
wait "$server"
pass_if "too many streams are told: $(cat serving)" grep -q "closed a connection" serving
# A server that knows no more than 16 streams takes such a client for a stranger.
printf '' >said
answer_with_said
weft raw --connect "127.0.0.1:$(cat answering)" --timeout 5 -n 5 --streams 17
wait "$answering"
pass_if "an older server: status $status" [ "$status" -eq 1 ]
pass_if "an older server is told: $(cat err)" grep -Eq "of a version that takes 17 streams|start 'weft raw --listen'" err
serve 0
printf 'GET / HTTP/1.0\r\n\r\n%0200d' 0 >"/dev/tcp/127.0.0.1/$port"
weft raw --connect "127.0.0.1:$port" -n 5
pass_if "a stranger disturbs nobody: $status $(cat err)" [ "$status" -eq 0 ]
wait "$server"
pass_if "a stranger is told: $(cat serving)" grep -q "closed a connection" serving
pass_if "nobody is left" nothing_left
finish
