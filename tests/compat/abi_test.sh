#!/usr/bin/env bash
# abi_test.sh ROOT BUILD: what a linked program relies on is what the baselines libweft.abi and libweft_coll.abi say: exported
# names, and the layouts of the types of the headers.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
build=$2 baselines=$1/tests/compat

for tool in abidw abidiff; do
    command -v "$tool" >/dev/null || skip "needs the program $tool"
done

run bash "$baselines/abi.sh" "$build" "$scratch"
expect_status 0 'abi.sh'
there=$(tail -n 1 -- "$baselines/libweft.abi") here=$(tail -n 1 -- "$scratch/libweft.abi")
[[ $there == "$here" ]] || skip "the baseline is of $there, this build of $here"
grep -q "class-decl name='weft_completion' size-in-bits=" "$scratch/libweft.abi" || skip 'this build has no debug information'

# abidiff has no status for a file that it cannot read to its end, but a line.
for library in libweft libweft_coll; do
    run abidiff "$baselines/$library.abi" "$scratch/$library.abi"
    [[ $status == 0 && ! $output ]] ||
        fail "the interface of $library.so has changed: $output
On purpose? Then tests/compat/abi.sh $build, and say so in the commit (see CONTRIBUTING.md)"
done

# It sees what a program would trip over: a struct that has grown, and a function that is gone.
grep -v "elf-symbol name='weft_cancel'" "$scratch/libweft.abi" >"$scratch/less.abi"
run abidiff "$scratch/libweft.abi" "$scratch/less.abi"
expect_text "void weft_cancel(weft_request*)" 'a function is gone'
sed "/class-decl name='weft_completion'/s/size-in-bits='[0-9]*'/size-in-bits='8000'/" "$scratch/libweft.abi" >"$scratch/more.abi"
run abidiff "$scratch/libweft.abi" "$scratch/more.abi"
expect_text 'type size changed' 'a struct has grown'
finish
