#!/bin/bash
# test_scan.sh: a loaded mesh with a key, and strangers of every kind who call at its port all the while: every byte
# arrives, no channel is lost, and the node takes no more memory and no more descriptors than strangers may have.
. "$(dirname "$0")/nodes_lib.sh"

strangers_max=256        # at a time (docs/security.md), and up to 16 of one look at the sockets on top
stranger_bytes=$((96 << 10)) # of memory, each: some 64 KiB and what the allocator makes of it

umask 077
"$WEFT" key >key 2>err || fail "weft key: $(cat err)"
"$WEFT" key >other 2>err || fail "weft key: $(cat err)"

measure() { # the nodes; `client` lives as long as the mesh
    start_both mesh --endpoints 2 --size 4M -n 300 --mode loaded --set key_file=key --timeout 20 --log warn
    moved 20000000
}

# passed WHAT: both nodes have ended well.
passed() {
    ends "$client"
    pass_if "$1: the client's status $status: $(cat c.err)" [ "$status" -eq 0 ]
    ends "$server"
    pass_if "$1: the server's status $status: $(tail -n 3 s.err)" [ "$status" -eq 0 ]
    pass_if "$1: $(tail -n 1 c.out)" grep -q ' 0 wrong of .* verified; .* measured: passed' c.out
    pass_if "$1: channels were lost" [ "$(json_numbers c/mesh.json failures | awk '{sum += $1} END {print sum + 0}')" -eq 0 ]
}

memory_of_server() { # in the client's JSON, node0 is the server
    json_numbers c/mesh.json max_rss_bytes | head -n 1
}

descriptors_of_server() {
    ls "/proc/$server/fd" 2>/dev/null | wc -l
}

measure
passed "alone"
alone_bytes=$(memory_of_server)

trap : PIPE # who is refused while it writes

# One of each kind; the sixth stays.
call() {
    local kind=$((called % 6)) caller
    exec {caller}<>/dev/tcp/127.0.0.1/18555 || return
    case $kind in
    0) ;;
    1) printf 'GET / HTTP/1.1\r\nHost: weft\r\n\r\n' >&"$caller" ;;
    2) printf '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03' >&"$caller" ;;
    3) printf '\x00\xff\x00\xff%s' "$RANDOM$RANDOM$RANDOM$RANDOM" >&"$caller" ;;
    4) printf '\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff' >&"$caller" ;;
    5)
        staying+=("$caller")
        return
        ;;
    esac
    exec {caller}>&-
} 2>/dev/null

began=$SECONDS
measure
called=0 most=0 staying=()
before=$(descriptors_of_server)
while alive "$client"; do
    call
    called=$((called + 1))
    if [ $((called % 50)) -eq 0 ]; then
        now=$(descriptors_of_server)
        most=$((now > most ? now : most))
    fi
    if [ ${#staying[@]} -ge 400 ]; then
        for caller in "${staying[@]}"; do
            exec {caller}>&-
        done
        staying=()
    fi
    if [ $called -eq 100 ]; then # somebody who speaks the protocol, with another key
        timeout -k 5 20 "$WEFT" pair --connect 127.0.0.1:18555 --rails $rails --set key_file=other >out 2>err </dev/null
        refused=$?
        pass_if "another key: status $refused: $(cat err)" [ $refused -eq 1 ]
        pass_if "another key: $(cat err)" grep -q "another key than ours" err
    fi
done
passed "among $called strangers"
took=$((SECONDS - began))
pass_if "only $called strangers" [ "$called" -gt 100 ]
pass_if "$most descriptors, $before before the strangers" [ "$most" -le $((before + strangers_max + 16)) ]
bytes=$(memory_of_server)
pass_if "$bytes bytes of memory, $alone_bytes alone" [ "$bytes" -le $((alone_bytes + (strangers_max + 16) * stranger_bytes)) ]
pass_if "lines: $(cat s.err)" [ "$(grep -c 'refused' s.err)" -ge 1 ]
pass_if "lines: $(cat s.err)" [ "$(wc -l <s.err)" -le $((20 + took / 5)) ] # one in five seconds, and what there is without
pass_if "nobody is left" nothing_left
echo "$called strangers; descriptors: $before before, $most at most; memory: $alone_bytes bytes alone, $bytes among them"
finish
