#!/bin/bash
# test_interrupt.sh: a signal at either of two nodes ends both, in a hurry but in order: with status 1, and with files
# that have what was measured and say that the run was cut short, by which signal and where.
. "$(dirname "$0")/nodes_lib.sh"

# 64K is soon measured, 64M never; the first bytes of it are under way when so many have moved.
sizes="--size 64K,64M -n 100 -w 0 --inflight 1"
under_way=40000000
mesh="mesh --endpoints 1 --mode isolated $sizes"
pair="pair $sizes"

# 17 MB for each message are measured, and as much is sent again.
again="--size 16M -w 0 --inflight 1 --check-time-ms 3600000"

# ---- in the middle of a message
# interrupt SIGNAL TO COMMAND OPTION...: TO is server or client.
interrupt() {
    local signal=$1 to=$2 node=node0
    shift 2
    [ "$to" = client ] && node=node1
    start_both "$@"
    moved $under_way
    kill "-$signal" "${!to}"
    cut_short "$server" s "$1" "SIG$signal" $node
    cut_short "$client" c "$1" "SIG$signal" $node
    pass_if "the other node is told by whom: $(cat s.err c.err)" \
        [ "$(cat s.err c.err | grep -c "$node, .*(127.0.0.1:.*interrupted by SIG$signal")" -eq 1 ]
    pass_if "SIG$signal at the $to: nobody is left" nothing_left
}
# shellcheck disable=SC2086
{
    interrupt TERM server $mesh
    kept_samples s mesh
    kept_samples c mesh
    pass_if "the logs have what was measured" [ "$(grep -c PERF s/logs/*.log)" -eq 1 ]
    interrupt INT client $mesh
    interrupt TERM client $pair
    kept_samples s pair
    kept_samples c pair
    under_way=2000000
    interrupt INT server pair --lat --size 8,64 -n 10000000 -w 0
    interrupt TERM client pair --lat --size 8 -n 10000000 -w 0 --background 64M
    # Where all is measured, and sent again to be verified.
    under_way=7000000000
    interrupt TERM client pair $again -n 400
    under_way=2000000000
    interrupt INT server mesh --endpoints 1 --mode loaded --pattern pairs $again -n 100
    # Before the first message, where memory is filled.
    under_way=20000
    interrupt HUP server pair --size 256M -n 400 -w 0
}

# ---- before the other node is there
start_server mesh --size 64K
until_true "the server waits" grep -q 'waits on port' s.out
kill -TERM "$server"
cut_short "$server" s mesh SIGTERM node0

# PID: 0x4000 is SIGTERM. The shell's own child, until it has become weft, would die of it; and the C library has all
# signals blocked for moments, also SIGQUIT (0x4), before weft has: what comes then is lost where the shell ignores it.
takes_signals() {
    local blocked
    [ "$(readlink -f "/proc/$1/exe")" = "$(readlink -f "$WEFT")" ] || return 1
    blocked=$(sed -n 's/^SigBlk:[[:space:]]*//p' "/proc/$1/status")
    [ $((0x${blocked:-0} & 0x4004)) -eq $((0x4000)) ]
}
for signal in TERM INT; do
    start_client mesh --size 64K
    until_true "the client takes signals" takes_signals "$client"
    kill -$signal "$client"
    cut_short "$client" c mesh SIG$signal node1
done
for signal in TERM INT; do
    rm -f p.json
    "$WEFT" peers --connect 127.0.0.1:18555 --rails 127.0.1.1 --json p.json --out p >c.out 2>c.err </dev/null &
    client=$!
    until_true "weft peers takes signals" takes_signals "$client"
    kill -$signal "$client"
    ends "$client"
    pass_if "weft peers: status $status: $(cat c.err)" [ "$status" -eq 1 ]
    for line in "\"by\": \"SIG$signal\"" "\"error\": \"interrupted by SIG$signal\"" '"error_code": "EINTR"' '"exit_status": 1' \
        '"interrupted": true' '"passed": false' '"node": "node1"' '"samples": \[\]'; do
        pass_if "weft peers: no $line: $(grep -v '"value"' p.json)" grep -q "$line" p.json
    done
    pass_if "weft peers: no folder" [ ! -e p ]
done

# ---- the other node is stopped: this one ends all the same, and by a second signal at once
# Whether the second one still finds it alive is a matter of time: one of some tries has to.
for ((try = 0; try < 6; try++)); do
    # shellcheck disable=SC2086
    start_both $mesh --timeout 30
    moved $under_way
    kill -STOP "$client"
    kill -TERM "$server"
    until_true "a word about a second signal" grep -q 'a second signal ends it' s.err
    kill -TERM "$server" 2>/dev/null
    cut_short "$server" s mesh SIGTERM node0
    kill -KILL "$client"
    ends "$client"
    grep -q 'ended at once by a second signal' s.err && break
done
pass_if "a second signal ends it at once: $(cat s.err)" [ $try -lt 6 ]

# ---- the folder of results is gone: told, and the table is on the terminal
# shellcheck disable=SC2086
start_both $mesh
moved 40000000
rm -rf s && : >s
kill -TERM "$server"
ends "$server"
pass_if "without a folder: status $status" [ "$status" -eq 1 ]
pass_if "without a folder: told: $(cat s.err)" grep -q 'cannot write s/: that is a file' s.err
pass_if "without a folder: the table is there: $(cat s.out)" grep -q 'FAILED, cut short by SIGTERM' s.out
cut_short "$client" c mesh SIGTERM node0

# ---- both nodes of --local
"$WEFT" mesh --local --rails $rails --endpoints 1 --mode isolated $sizes --json - --log-dir= >l.out 2>l.err </dev/null &
server=$! client=$!
before=$(lo_received)
moved 40000000
kill -TERM $server
ends $server
pass_if "--local: status $status" [ "$status" -eq 1 ]
pass_if "--local: JSON on standard output" grep -q '"by": "SIGTERM"' l.out
pass_if "--local: one line says why: $(cat l.err)" [ "$(grep -c 'interrupted by SIGTERM' l.err)" -eq 1 ]
pass_if "--local: nobody is left" nothing_left
finish
