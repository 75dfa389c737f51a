#!/bin/bash
# test_port.sh: where the kernel chooses the port, it knows of the first address only. Another port is taken when that one
# is in use at a rail's.
. "$(dirname "$0")/nodes_lib.sh"

range=/proc/sys/net/ipv4/ip_local_port_range
echo 40000 40001 2>/dev/null >$range || skip "the kernel's choice of ports cannot be narrowed here"

declare -A holder
# hold PORT: somebody has it at the second rail.
hold() {
    "$LOOP_TOOL" hold 127.0.2.1 "$1" >"held.$1" &
    holder[$1]=$!
    until_true "port $1 is held" test -s "held.$1"
}

release() { # PORT
    kill "${holder[$1]}"
    wait "${holder[$1]}" 2>/dev/null
    rm -f "held.$1"
}

# None is left: an error, as with a port that the user named.
hold 40000
hold 40001
for asked in 0 40001; do
    weft pair --listen 127.0.1.1:$asked --rails $rails
    pass_if "no port is left for :$asked: status $status" [ "$status" -eq 1 ]
    pass_if "no port is left for :$asked: $(cat err)" grep -q ': the port is in use' err
done

# One is left, whichever the kernel likes better.
for left in 40000 40001; do
    release $left
    rm -f s.out
    timeout -k 5 60 "$WEFT" pair --listen 127.0.1.1:0 --rails $rails >s.out 2>s.err </dev/null &
    server=$!
    waiting "$server" s.out
    pass_if "with $left free: port $port: $(cat s.err)" [ "${port:-0}" -eq $left ]
    kill "$server"
    wait "$server" 2>/dev/null
    hold $left
done
pass_if "nobody is left" nothing_left
finish
