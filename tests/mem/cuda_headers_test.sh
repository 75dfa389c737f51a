#!/usr/bin/env bash
# cuda_headers_test.sh COMPILER CUDA_HEADERS NVML_HEADERS: holds our prototypes against the real headers, where they are.
# A folder that is not there ends in NOTFOUND, as CMake has it.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
compiler=$1 cuda=$2 nvml=$3
seen=0

# compare SOURCE FOLDER WHAT
compare() {
    if [[ $2 == *NOTFOUND ]]; then
        echo "$3 not found: its prototypes are not compared"
        return
    fi
    seen=$((seen + 1))
    run "$compiler" -std=c17 -fsyntax-only -Wall -Wextra -Werror -I"$root/transport" -isystem "$2" "$root/tests/mem/$1"
    expect_status 0 "comparing with $3"
}
compare cuda_prototypes.c "$cuda" cuda.h
compare nvml_prototypes.c "$nvml" nvml.h

((seen > 0 || failures > 0)) || { echo "skipped: neither of NVIDIA's headers is here" && exit 77; }

# And that a difference is found: a comparison that accepts everything would pass as well.
if [[ $cuda != *NOTFOUND ]]; then
    mkdir -p -- "$scratch/mem"
    sed 's/(wf_cu_memory \* base, size_t \* bytes, wf_cu_memory address)/(wf_cu_memory * base, int *bytes)/' \
        "$root/transport/mem/cuda_api.h" >"$scratch/mem/cuda_api.h"
    run cmp -s "$scratch/mem/cuda_api.h" "$root/transport/mem/cuda_api.h"
    expect_status 1 'spoiling a prototype'
    run "$compiler" -std=c17 -fsyntax-only -I"$scratch" -I"$root/transport" -isystem "$cuda" -Wall -Werror \
        "$root/tests/mem/cuda_prototypes.c"
    ((status != 0)) || fail 'a wrong prototype is accepted'
fi
finish
