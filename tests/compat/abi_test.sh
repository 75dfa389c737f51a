#!/usr/bin/env bash
# abi_test.sh ROOT BUILD: what a linked program relies on is what the baseline libweft.abi says: exported names, and the
# layouts of the types of weft.h.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
build=$2 baseline=$1/tests/compat/libweft.abi

skip() {
    echo "skipped: $*"
    exit 77
}
for tool in abidw abidiff; do
    command -v "$tool" >/dev/null || skip "needs the program $tool"
done

run bash "$1/tests/compat/abi.sh" "$build" "$scratch/now.abi"
expect_status 0 'abi.sh'
there=$(tail -n 1 -- "$baseline") here=$(tail -n 1 -- "$scratch/now.abi")
[[ $there == "$here" ]] || skip "the baseline is of $there, this build of $here"
grep -q "class-decl name='weft_completion' size-in-bits=" "$scratch/now.abi" || skip 'this build has no debug information'

# abidiff has no status for a file that it cannot read to its end, but a line.
run abidiff "$baseline" "$scratch/now.abi"
[[ $status == 0 && ! $output ]] ||
    fail "the interface of libweft.so has changed: $output
On purpose? Then tests/compat/abi.sh $build, and say so in the commit (see CONTRIBUTING.md)"

# It sees what a program would trip over: a struct that has grown, and a function that is gone.
grep -v "elf-symbol name='weft_cancel'" "$scratch/now.abi" >"$scratch/less.abi"
run abidiff "$scratch/now.abi" "$scratch/less.abi"
expect_text "void weft_cancel(weft_request*)" 'a function is gone'
sed "/class-decl name='weft_completion'/s/size-in-bits='[0-9]*'/size-in-bits='8000'/" "$scratch/now.abi" >"$scratch/more.abi"
run abidiff "$scratch/now.abi" "$scratch/more.abi"
expect_text 'type size changed' 'a struct has grown'
finish
