#!/usr/bin/env bash
# kernels_test.sh NVCC FATBIN: compiles the kernels for each architecture that is promised, without a warning, and looks
# into the fatbin that the build has made and embedded.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
nvcc=$1 fatbin=$2
architectures=(75 80 86 89 90 100 120)

[[ -x $nvcc ]] || {
    echo "skipped: no nvcc"
    exit 77
}
missing=()
for architecture in "${architectures[@]}"; do
    if ! "$nvcc" --list-gpu-code | grep -qx "sm_$architecture"; then
        missing+=("$architecture")
        continue
    fi
    run "$nvcc" -cubin -O3 -Werror all-warnings -arch="sm_$architecture" -o "$scratch/kernels.cubin" \
        "$root/transport/mem/kernels.cu"
    expect_status 0 "kernels.cu for sm_$architecture"
    for kernel in weft_gather weft_scatter weft_sum_float32 weft_sum_float16 weft_sum_bfloat16 weft_sum_int32; do
        grep -q "$kernel" "$scratch/kernels.cubin" || fail "no $kernel for sm_$architecture"
    done
done
((${#missing[@]} == 0)) || echo "this nvcc does not know sm_${missing[*]}"

# number OFFSET BYTES: of the fatbin, least significant byte first.
number() { od -An -v -t "u$2" -j "$1" -N "$2" -- "$fatbin" | tr -d ' '; }

# Which machine codes are in it, by its own table: a header of 16 bytes, then entries; of each its kind (1 text, 2 code),
# the bytes of its header and of what follows, and the architecture.
list_codes() {
    local at end kind
    end=$(($(stat -c %s -- "$fatbin")))
    at=$(number 6 2)
    while ((at + 32 <= end)); do
        kind=$(number "$at" 2)
        ((kind == 2)) && echo "sm_$(number $((at + 28)) 4)"
        at=$((at + $(number $((at + 4)) 4) + $(number $((at + 8)) 8)))
    done
}

[[ -s $fatbin ]] || fail "the build has made no $fatbin"
[[ $(od -An -t x4 -N 4 -- "$fatbin" | tr -d ' ') == ba55ed50 ]] || fail "$fatbin is no fatbin"
if command -v cuobjdump >/dev/null; then
    codes=$(cuobjdump --list-elf "$fatbin" | grep -o 'sm_[0-9]*')
else
    codes=$(list_codes)
fi
for architecture in "${architectures[@]}"; do
    [[ " ${missing[*]-} " == *" $architecture "* ]] && continue
    grep -qx "sm_$architecture" <<<"$codes" || fail "no code for sm_$architecture in $fatbin, only: $codes"
done
finish
