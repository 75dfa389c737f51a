#!/usr/bin/env bash
# scripts/cost_growth.sh prints its three tables; their figures are not judged.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/check.sh"

script=$root/scripts/cost_growth.sh
program=${WEFT_TEST_PROGRAM:?the weft binary}

# rows TABLE CELLS: the rows of the table whose heading begins so, each with so many cells, as "first descriptors".
rows() {
    printf '%s\n' "$output" | awk -F '|' -v table="| $1 " -v cells="$2" '
        index($0, table) == 1 { on = 1; next }
        $0 == "" { on = 0 }
        on && /^[|]---/ { next }
        on { bad = NF - 2 != cells
             for (i = 3; i < NF; i++) bad = bad || $i !~ /^ [0-9]+([.][0-9]+)? $/ || $i + 0 == 0
             print bad ? "bad: " $0 : $2 + 0 " " $7 + 0 }'
}

# expect_rows TABLE CELLS GROWS: two rows, for 1 and 2; whether the second has more descriptors.
expect_rows() {
    local table
    table=$(rows "$1" "$2" | tr '\n' ' ')
    if [[ ! $table =~ ^1\ ([0-9]+)\ 2\ ([0-9]+)\ $ ]]; then
        fail "table '$1': $table; output: $output"
    elif ((BASH_REMATCH[1] < 3 || (BASH_REMATCH[2] > BASH_REMATCH[1]) != $3)); then
        fail "table '$1': descriptors: $table"
    fi
}

run "$script" --quick "$program"
((status == 77)) && printf 'skipped: %s\n' "$output" && exit 77
expect_status 0 'quick'
expect_rows 'endpoints a side (directed pairs)' 12 0
expect_rows channels 11 1
expect_rows rails 11 1

program "$scratch/bin" weft <<'EOF2'
echo 'weft: no memory' >&2
exit 1
EOF2
run "$script" --quick "$scratch/bin/weft"
expect_status 1 'a run that fails'
expect_text 'weft: no memory' 'a run that fails'
run "$script" --quick "$scratch/none"
expect_status 2 'no program'
for wrong in --wrong '--rounds 0' --rounds; do
    # shellcheck disable=SC2086  # several words
    run "$script" $wrong
    expect_status 2 "wrong usage: $wrong"
    expect_lines 1 "wrong usage: $wrong"
done
run "$script" --help
expect_status 0 'help'

finish
