#!/usr/bin/env bash
# tests/vm/run: what it says of tests that cannot be run, that a guest's status and words come back, and that nothing is
# left behind, whether it ends, is killed, or is asked to stop. Skipped where it cannot boot anything.
set -u
kernels=${WEFT_VM_KERNEL_DIR-} # where kernels are kept is no part of the test
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"

[[ -z $kernels ]] || export WEFT_VM_KERNEL_DIR=$kernels
vm=$root/tests/vm/run
export TMPDIR=$scratch/temporary VM_MARK=mark$$
mkdir -- "$TMPDIR"

# make_test NAME [LINE_OF_MACHINE]...: its guest is what stands on standard input.
make_test() {
    mkdir -p -- "$scratch/$1"
    printf '%s\n' 'MEMORY_PER_NODE=128M' "${@:2}" >"$scratch/$1/machine"
    cat >"$scratch/$1/guest"
}

# ours [NAME]: the processes of a run under test, by what its environment says.
ours() {
    local entry
    for entry in /proc/[0-9]*; do
        grep -qsza "^VM_MARK=$VM_MARK\$" "$entry/environ" 2>/dev/null || continue
        [[ -z ${1-} || $(<"$entry/comm") == "$1"* ]] && printf '%s\n' "${entry#/proc/}"
    done 2>/dev/null
}

expect_nothing_left() {
    local tries
    for ((tries = 0; tries < 200; tries++)); do
        [[ -z $(ours) ]] && break
        sleep 0.05
    done
    [[ -z $(ours) ]] || fail "$1: left behind: $(ours)"
    [[ -z $(ls -A -- "$TMPDIR") ]] || fail "$1: left behind: $(ls -A -- "$TMPDIR")"
}

# expect_wrong WHAT TEXT ARGUMENT...
expect_wrong() {
    run "$vm" "${@:3}"
    expect_status 2 "$1"
    expect_text "$2" "$1"
}

expect_wrong 'no test' 'which test'
expect_wrong 'unknown option' "'--wrong'" --wrong
expect_wrong 'no value' '--timeout needs a value' shape --timeout
expect_wrong 'no number' "'1m'" shape --timeout 1m
expect_wrong 'no kernel' "'../x'" shape --kernel ../x
expect_wrong 'two tests' 'one test at a time' shape mesh
expect_wrong 'not a test' 'is not a test' "$scratch/temporary"
for line in NODES=0 NODES=9 NODES=two CPUS_PER_NODE=99999999999999999999 NICS_PER_NODE=3 NICS_PER_NODE=-2 NICS_PER_NODE=32 \
    MEMORY_PER_NODE=1 MEMORY_PER_NODE=0M 'MEMORY_PER_NODE=1M,x=G'; do
    make_test wrong "$line" </dev/null
    expect_wrong "$line" "${line%%=*}=" "$scratch/wrong"
done

mkdir -- "$scratch/bin"
for name in bash dirname readlink uname busybox; do
    ln -s -- "$(type -P "$name")" "$scratch/bin/$name" 2>/dev/null
done
# What a guest leaves running does not keep its words from getting out.
make_test small <<'END'
sleep 100000 &
echo "words of the guest"
exit 3
END
run env PATH="$scratch/bin" "$vm" "$scratch/small"
expect_status 77 'no QEMU'
expect_text 'needs the program qemu-system-x86_64' 'no QEMU'

run "$vm" "$scratch/small"
((status == 77)) && echo "skipped: $output" && exit 77
expect_status 3 'the status of the guest'
expect_text $'what the guest printed:\nwords of the guest\n===== small: status 3' 'the words of the guest'
expect_text 'what QEMU and the kernel said is in' 'the console is kept'
log=${output##* is in }
[[ -s $log ]] || fail "there is no $log"
rm -f -- "$log"
expect_nothing_left 'after a failure'

# shellcheck disable=SC2016  # its last argument
program "$scratch/archive" apt-get <<<'echo "E: Unable to locate package ${!#}" >&2; exit 100'
run env PATH="$scratch/archive:$PATH" WEFT_VM_KERNEL_DIR="$scratch/kernels" "$vm" "$scratch/small" --kernel 0.1.2-none
expect_status 77 'a kernel that is nowhere'
expect_text 'Unable to locate package linux-image-0.1.2-none' 'a kernel that is nowhere'
make_test lacking 'FILES=there/is/none' </dev/null
run "$vm" "$scratch/lacking"
expect_status 1 'a file that is not there'
expect_text 'there/is/none, which is not there' 'a file that is not there'
expect_nothing_left 'a file that is not there'

make_test mute <<<'echo b >/proc/sysrq-trigger; sleep 1000'
run "$vm" "$scratch/mute"
expect_status 1 'a guest that says nothing'
expect_text 'the guest ended without a word' 'a guest that says nothing'
make_test endless <<<'sleep 100000'
run "$vm" "$scratch/endless" --timeout 2
expect_status 1 'a guest that does not end'
expect_text 'not done within 2 s' 'a guest that does not end'
rm -f -- "$TMPDIR"/*.log
expect_nothing_left 'a guest that does not end'

# Ended while a guest runs.
for signal in TERM HUP KILL; do
    "$vm" "$scratch/endless" >/dev/null 2>&1 </dev/null &
    runner=$!
    until [[ -n $(ours qemu) ]] || ! kill -0 "$runner" 2>/dev/null; do sleep 0.05; done
    [[ -n $(ours qemu) ]] || fail "SIG$signal: no guest"
    kill -"$signal" "$runner"
    wait "$runner" 2>/dev/null
    status=$?
    expect_status $((128 + $(kill -l "$signal"))) "SIG$signal"
    expect_nothing_left "after SIG$signal"
done

# Two at the same time.
make_test first <<<'echo first; exit 4'
make_test second <<<'echo second; exit 5'
"$vm" "$scratch/first" >"$scratch/first.out" 2>/dev/null </dev/null &
first=$!
run "$vm" "$scratch/second"
expect_status 5 'the second of two'
expect_text $'\nsecond\n' 'the second of two'
wait "$first"
status=$? output=$(cat "$scratch/first.out")
expect_status 4 'the first of two'
expect_text $'\nfirst\n' 'the first of two'
finish
