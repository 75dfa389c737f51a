#!/usr/bin/env bash
# kernels_on_host_test.sh COMPILER: what the kernels compute, without a GPU: the source is taken as C++, with stand-ins
# for the little it needs of CUDA, and run on the processor under the sanitizers. What only a GPU shows (how its threads
# run side by side) is not tested here.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
compiler=$1
plus=
for candidate in "${compiler/%gcc/g++}" "${compiler/%clang/clang++}" c++ g++ clang++; do
    [[ $candidate != "$compiler" ]] && command -v "$candidate" >/dev/null && plus=$candidate && break
done
[[ -n $plus ]] || {
    echo 'skipped: needs the program c++'
    exit 77
}

sanitize=("-fsanitize=address,undefined" -fno-sanitize-recover=all)
echo 'int main() {}' >"$scratch/probe.cc"
run "$plus" "${sanitize[@]}" -o "$scratch/probe" "$scratch/probe.cc"
((status == 0)) || sanitize=()

run "$compiler" -std=gnu17 -O1 -g "${sanitize[@]}" -I"$root/transport" \
    -c "$root/tests/support/kernel_reference.c" -o "$scratch/reference.o"
expect_status 0 'compiling kernel_reference.c'
run "$plus" -std=c++17 -O1 -g "${sanitize[@]}" -fno-strict-aliasing -Wall -Wextra -Werror -Wno-unknown-pragmas \
    -I"$root/tests/mem/kernels_on_host" -I"$root/tests/support" -I"$root/transport" \
    "$root/tests/mem/kernels_on_host/run.cc" "$scratch/reference.o" -o "$scratch/run"
expect_status 0 'compiling the kernels'
run "$scratch/run"
expect_status 0 'running the kernels'
finish
