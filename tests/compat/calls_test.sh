#!/usr/bin/env bash
# calls_test.sh ROOT BUILD CMAKE COMPILER: programs that use this version of the library and an older one do to each other
# everything that the older one can do (talk.c).
# shellcheck disable=SC2154  # of compat_lib.sh
set -u
# shellcheck source=tests/compat/compat_lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/compat_lib.sh"
compiler=$4

for version in old new; do
    [[ $version == old ]] && place=$old sources=${old%/build}/source || place=$new sources=$1
    "$compiler" -O1 -o "talk_$version" -I "$sources/transport" "$1/tests/compat/talk.c" -L "$place/lib" -lweft \
        -Wl,-rpath,"$place/lib" || fail "talk.c with the $version version"
done
((failures == 0)) || finish
cmp -s "$old/lib/libweft.so.0" "$new/lib/libweft.so.0" && fail 'both versions are the same'

# together WHAT SERVER CLIENT SETTING...: the settings are of both.
together() {
    local what=$1 server=$2 client=$3
    shift 3
    serve "./talk_$server" listen timeout=10 "$@" || return
    call "$what" "./talk_$client" connect "127.0.0.1:$port" timeout=10 "$@"
}

rails=rails=127.0.1.1,127.0.2.1
for way in 'old new' 'new old'; do
    read -r server client <<<"$way"
    name="$client client, $server server"
    together "$name" "$server" "$client" "$rails"
    together "$name, checksums, little of everything" "$server" "$client" "$rails" crc=on chunk=16K window=4 \
        introductions=16 eager=64 first_burst=0
    together "$name, encrypted" "$server" "$client" "$rails" "key_file=$key_file" encrypt=on
    together "$name, resets" "$server" "$client" "$rails" crc=on log=error fault=seed=5,reset_every=4M
done
finish
