#!/usr/bin/env bash
# abi_layout_test.sh COMPILER: plugins/nccl/abi.h against NVIDIA's own headers. WEFT_NCCL_HEADERS names the folder of them:
# plugins/net/example/nccl in NCCL's repository, from version 2.30 on, which has v8 to v12.
set -u
theirs=${WEFT_NCCL_HEADERS:-} # check.sh clears the variable
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
compiler=$1
flags=(-std=gnu17 -Wall -Wextra -Werror)

# layout OUT FLAGS...: what abi_layout.c prints when it is compiled so.
layout() {
    local out=$1
    shift
    run "$compiler" "${flags[@]}" "$@" "$root/tests/plugin/abi_layout.c" -o "$scratch/layout"
    expect_status 0 "compiling for $out"
    "$scratch/layout" >"$scratch/$out"
}

# Our own half is complete, and needs no headers.
layout ours -I"$root/plugins/nccl"
grep -q 'something else' "$scratch/ours" && fail 'abi_layout.c has function types that abi.h has not'
((failures > 0)) && finish

[[ -n $theirs ]] || { echo "skipped: WEFT_NCCL_HEADERS names no folder of NCCL's headers" && exit 77; }
[[ -e $theirs/net_v12.h ]] || { echo "skipped: $theirs has no net_v12.h" && exit 77; }
sockets=$theirs/../../../profiler/example/nccl
if [[ -e $sockets/net_socket_v1.h ]]; then
    layout ours -DSOCKET_EVENTS -I"$root/plugins/nccl"
    layout theirs -DTHEIRS -DSOCKET_EVENTS -isystem "$theirs" -isystem "$sockets"
else
    echo "$sockets is not there: its events are not compared"
    layout theirs -DTHEIRS -isystem "$theirs"
fi
diff "$scratch/ours" "$scratch/theirs" || fail 'abi.h (<) is not what NVIDIA has (>)'
echo "$(wc -l <"$scratch/ours") offsets, sizes, function types and numbers compared"

# And a difference is found: in a field, in a function, in a number.
mkdir -p -- "$scratch/spoilt"
# spoil EDIT WORD: the line with this word then differs.
spoil() {
    sed "$1" "$root/plugins/nccl/abi.h" >"$scratch/spoilt/abi.h"
    cmp -s "$scratch/spoilt/abi.h" "$root/plugins/nccl/abi.h" && fail "nothing to spoil: $1"
    layout spoilt_out -I"$scratch/spoilt"
    diff "$scratch/ours" "$scratch/spoilt_out" >"$scratch/difference"
    grep -q "$2" "$scratch/difference" || fail "accepted: $1"
    return 0
}
spoil 's/    int16_t rail_id;/    int32_t rail_id;/' 'properties_v12.rail_id'
spoil 's/(\*isend)(void \*comm, void \*data, int size/(*isend)(void *comm, void *data, long size/' 'net_v8.isend'
spoil 's/NCCL_REMOTE_ERROR = 6/NCCL_REMOTE_ERROR = 7/' 'ncclRemoteError'
finish
