#!/usr/bin/env bash
# devmem_cost_test.sh: the benchmark of receiving by device-memory TCP runs: every row is there, and every fragment was
# placed and given back. How long anything took is not looked at.
set -u

fail() {
    printf 'FAIL: %s\n' "$1"
    exit 1
}

out=$("$DEVMEM_COST" --quick) || fail "devmem_cost --quick ended with status $?"
printf '%s\n' "$out"
for row in 'in order' 'shuffled over 8 messages' 'linear parts mixed in' both 'in order, buffers of 32 KiB'; do
    [ "$(printf '%s\n' "$out" | grep -c "^| $row |")" = 1 ] || fail "no row '$row'"
done
# 5 rows of 264 rounds with 512 fragments
printf '%s\n' "$out" | grep -q '^All 675840 fragments were placed, and given back[.]$' || fail "not all came back"
printf '%s\n' "$out" | grep -q 'not measured by us' || fail "it does not say whose figure the kernel's is"
printf '%s\n' "$out" | grep -q 'nan\|inf' && fail "a figure is no number"

"$DEVMEM_COST" --help | grep -q '^usage: devmem_cost' || fail "--help shows no usage"
for wrong in --nonsense '--rounds 0' '--rounds 100001' --rounds; do
    # shellcheck disable=SC2086
    "$DEVMEM_COST" $wrong >/dev/null 2>&1
    [ $? = 2 ] || fail "'$wrong' is accepted"
done
printf 'ok\n'
