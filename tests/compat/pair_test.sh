#!/usr/bin/env bash
# pair_test.sh ROOT BUILD CMAKE COMPILER: `weft mesh` of this version and of an older one measure together over loopback,
# and everything that arrives is verified. Sizes lie on both sides of every limit: eager, first_burst, a chunk.
# shellcheck disable=SC2154,SC2054  # of compat_lib.sh; commas are part of the values
set -u
# shellcheck source=tests/compat/compat_lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/compat_lib.sh"

plan=(--endpoints 2 --size 8,8K,8193,100000,1M,1048577,3M -n 3 -w 1 --check all --check-time-ms 50)

# together WHAT SERVER CLIENT OPTION...: the options are for both nodes, but for those of the arrays of_server, of_client.
together() {
    local what=$1 server=$2 client=$3
    shift 3
    serve "$server/bin/weft" mesh --listen 127.0.0.1:0 --timeout 10 "$@" "${of_server[@]}" || return
    call "$what" "$client/bin/weft" mesh --connect "127.0.0.1:$port" --timeout 10 "${plan[@]}" "$@" \
        "${of_client[@]}"
    grep -q 'samples, 0 wrong of [1-9].* verified' c.out || fail "$what: not everything is right: $(<c.out)"
}

# faulty: connections were reset, and that was all that was seen of it.
faulty() {
    grep -q 'faults injected:.*resets [1-9]' c.out || fail "$1: no connection was reset: $(<c.out)"
}

rails=127.0.1.1,127.0.2.1,127.0.3.1
few=(--size 8,8193,3M -n 3)
for name in 'old client, new server' 'new client, old server'; do
    server=$new client=$old
    [[ $name == old* ]] || server=$old client=$new
    of_server=() of_client=()
    together "$name" "$server" "$client"
    together "$name, three rails" "$server" "$client" --rails "$rails" --channels 2
    together "$name, checksums" "$server" "$client" --rails "$rails" --crc on "${few[@]}"
    together "$name, a key" "$server" "$client" --key-file "$key_file" "${few[@]}"
    together "$name, encrypted" "$server" "$client" --key-file "$key_file" --encrypt on --rails "$rails"
    of_server=(--chunk 64K --eager 1K) of_client=(--crc on --first-burst 0)
    together "$name, of different settings" "$server" "$client"
    of_server=(--fault seed=3,reset_every=8M) of_client=()
    together "$name, resets of the server" "$server" "$client" --rails "$rails" && faulty "$name, resets of the server"
    of_server=() of_client=(--fault seed=4,reset_every=8M)
    together "$name, resets of the client" "$server" "$client" --rails "$rails" --key-file "$key_file" --encrypt on &&
        faulty "$name, resets of the client"
done
finish
