#!/usr/bin/env bash
# scripts/cost_per_gb.sh prints its table; its figures are not judged.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/check.sh"

script=$root/scripts/cost_per_gb.sh
program=${WEFT_TEST_PROGRAM:?the weft binary}

run "$script" --quick "$program" "$program"
((status == 77)) && printf 'skipped: %s\n' "$output" && exit 77
expect_status 0 'quick'
# A title and six figures in each row. Runs this short may differ by less than nothing.
table=$(printf '%s\n' "$output" | awk -F '|' '
    /^[|]/ && !/^[|]---/ && !/both nodes together/ {
        bad = NF != 9
        for (i = 3; i < NF; i++) bad = bad || $i !~ /^ -?[0-9]+([.][0-9]+)? $/
        print bad ? "bad: " $0 : $2 }')
[[ $table != *bad:* ]] || fail "rows: $table"
for title in 'system calls' sendmsg recvfrom 'wake-ups' 'processor ms, system'; do
    [[ $table == *"$title"* ]] || fail "no row '$title': $output"
done
# Whoever counts, a gigabyte takes calls.
calls=$(printf '%s\n' "$output" | awk -F '|' '$2 == " system calls " { print ($5 > 100 && $6 > 100) ? 1 : 0 }')
[[ $calls == 1 ]] || fail "system calls of 1 MiB: $output"

program "$scratch/bin" weft <<'EOF2'
echo 'weft: no memory' >&2
exit 1
EOF2
run "$script" --quick "$scratch/bin/weft" "$program"
expect_status 1 'a run that fails'
expect_text 'weft: no memory' 'a run that fails'
run "$script" --quick "$program" "$scratch/none"
expect_status 2 'no program'
for wrong in '--wrong a b' '--rounds 0 a b' '--calls some a b' a; do
    # shellcheck disable=SC2086  # several words
    run "$script" $wrong
    expect_status 2 "wrong usage: $wrong"
    expect_lines 1 "wrong usage: $wrong"
done
run "$script" --help
expect_status 0 'help'

finish
