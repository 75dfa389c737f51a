#!/usr/bin/env bash
# core_cost_test.sh: the benchmark of the core runs: every row is in every table, and every message has arrived. How long
# anything took is not looked at.
set -u

fail() {
    printf 'FAIL: %s\n' "$1"
    exit 1
}

out=$("$CORE_COST" --quick 2>/dev/null)
status=$?
[ "$status" = 77 ] && { printf '%s\n' "$out"; exit 77; }
[ "$status" = 0 ] || fail "core_cost --quick ended with status $status"
printf '%s\n' "$out"

# rows SERIES COUNT: rows of the series in the tables of costs and of holds, and, but for the first, of growth
rows() {
    local found
    found=$(printf '%s\n' "$out" | grep -c "^| $1 |")
    [ "$found" = $((3 * $2 - 1)) ] || fail "series $1: $found rows in all tables, for $2 sizes"
}
rows channels 6
rows connections 5
rows sessions 4
rows workers 5
rows batch 1
rows NICs 2

printf '%s\n' "$out" | grep -q '^All [1-9][0-9]* messages arrived[.]$' || fail "it does not say that messages arrived"
printf '%s\n' "$out" | grep -q 'nan\|inf' && fail "a figure is no number"

"$CORE_COST" --help | grep -q '^usage: core_cost' || fail "--help shows no usage"
"$CORE_COST" --nonsense >/dev/null 2>&1
[ $? = 2 ] || fail "an unknown option is accepted"
"$CORE_COST" --rounds 0 >/dev/null 2>&1
[ $? = 2 ] || fail "--rounds 0 is accepted"
printf 'ok\n'
