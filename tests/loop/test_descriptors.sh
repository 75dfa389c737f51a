#!/bin/bash
# test_descriptors.sh: strangers take every descriptor that a server may have: it says so, waits, and serves whoever comes
# once they have left.
. "$(dirname "$0")/loop_lib.sh"

# Waits for a condition, at most 20 s.
until_true() { # WHAT COMMAND...
    local what=$1
    shift
    for _ in $(seq 2000); do
        "$@" && return
        sleep 0.01
    done
    fail "$what"
}

(
    ulimit -n 48
    exec timeout -k 5 60 "$WEFT" pair --listen 127.0.1.1:0 --connect-timeout 30 --rails 127.0.1.1 \
        >served 2>serving </dev/null
) &
server=$!
waiting "$server" served

callers=()
for _ in $(seq 100); do
    exec {caller}<>"/dev/tcp/127.0.1.1/$port"
    callers+=("$caller")
done
until_true "nothing is said of descriptors: $(cat serving)" \
    grep -q 'cannot accept a connection: .*raise the limit of open files (ulimit -n)' serving
pass_if "the server has ended" kill -0 "$server"
for caller in "${callers[@]}"; do
    exec {caller}>&-
done

timeout -k 5 40 "$WEFT" pair --connect "127.0.1.1:$port" --connect-timeout 20 --rails 127.0.1.1 --size 64K -n 2 \
    >out 2>err </dev/null
pass_if "a client after them: status $?: $(cat err)" [ $? -eq 0 ]
wait "$server"
pass_if "the server's status: $(cat serving)" [ $? -eq 0 ]
pass_if "lines: $(cat serving)" [ "$(wc -l <serving)" -le 13 ] # one in 5 s, for as long as the server may live
pass_if "nobody is left" nothing_left
finish
