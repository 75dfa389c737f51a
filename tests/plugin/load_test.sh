#!/usr/bin/env bash
# load_test.sh BUILD LOADER: loaded and dropped ten times without a key, a hundred times with one, the plugin leaves nothing.
set -u
# shellcheck source=tests/plugin/load_file.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/load_file.sh"
loader=$2

run env "${settings[@]}" "$loader" "$plugin" 10
expect_status 0 'without a key'
printf '%s\n' "$output"
make_key "$scratch/key"
run env "${settings[@]}" WEFT_KEY_FILE="$scratch/key" "$loader" "$plugin" 100
expect_status 0 'with a key'
printf '%s\n' "$output"
run env "${settings[@]}" WEFT_KEY_FILE="$scratch/key" "$loader" "$build/lib/libnccl-net.so" 2
expect_status 0 'by its other name'
run env "${settings[@]}" LD_LIBRARY_PATH="$build/lib" WEFT_KEY_FILE="$scratch/key" "$loader" weft 2
expect_status 0 'as NCCL_NET_PLUGIN=weft names it'

finish
