#!/bin/bash
# test_rss.sh: a node process stays under 64 MiB plus the user's buffers plus 64 KiB for each channel.
. "$(dirname "$0")/loop_lib.sh"

# Peak of both nodes, run as two commands. The buffers: for each endpoint and remote endpoint one message out and one in.
check() { # ENDPOINTS SIZE_KIB CHANNELS_PER_RAIL OPTIONS...
    local endpoints=$1 size=$2 channels=$3 port limit_kib peak role
    shift 3
    rm -f server.out
    local common="--endpoints $endpoints --size ${size}K --channels $channels --rails $rails -n 6 -w 1 $*"
    limit_kib=$((64 * 1024 + 2 * endpoints * endpoints * size + 64 * 2 * (channels + 1)))
    # shellcheck disable=SC2086
    timeout -k 5 90 "$LOOP_TOOL" rss rss.server "$WEFT" mesh --listen 127.0.1.1:0 $common >server.out 2>&1 &
    local server=$!
    waiting $server server.out
    # shellcheck disable=SC2086
    timeout -k 5 90 "$LOOP_TOOL" rss rss.client "$WEFT" mesh --connect 127.0.1.1:"$port" $common >client.out 2>&1
    pass_if "the client passes: $(tail -3 client.out)" [ $? -eq 0 ]
    wait $server
    pass_if "the server passes: $(tail -3 server.out)" [ $? -eq 0 ]
    for role in server client; do
        peak=$(cat rss.$role)
        echo "$endpoints endpoints, $size KiB, $channels channels: $role $peak KiB of $limit_kib KiB"
        pass_if "the $role stays under its limit: $peak of $limit_kib KiB" [ "$peak" -le "$limit_kib" ]
    done
}

check 1 64 1
check 2 64 32
check 2 4096 4
check 8 256 8 --mode loaded
finish
