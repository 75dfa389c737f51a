#!/usr/bin/env bash
# no_cuda_test.sh FILE...: programs and libraries of ours need nothing of CUDA to start.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
command -v readelf >/dev/null || {
    echo 'skipped: needs the program readelf'
    exit 77
}

for file in "$@"; do
    run ldd "$file"
    expect_status 0 "ldd $file"
    expect_text 'libc.so' "ldd $file" # it has answered
    for name in cuda nvidia nccl; do
        expect_no_text "$name" "what $file needs"
    done
    run readelf --dyn-syms --wide "$file"
    expect_status 0 "readelf $file"
    undefined=$(grep -E ' UND (cu[A-Z]|nvml|nccl)' <<<"$output")
    [[ -z $undefined ]] || fail "$file refers to CUDA: $undefined"
done
finish
