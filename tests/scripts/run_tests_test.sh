#!/usr/bin/env bash
# run_tests.sh with a cmake that does nothing and a ctest that writes what we want: does the last line tell the truth?
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/check.sh"

cp -- "$root/run_tests.sh" "$scratch/" || exit 1
# shellcheck disable=SC2016  # expanded by the program
program "$scratch" setup.sh <<<'exit ${SETUP_STATUS:-0}'
program "$scratch/fake" clang <<<'exit 0'
program "$scratch/fake" cmake <<'EOF'
echo "cmake $*" >>"$CALLS"
[[ -z ${BROKEN-} || $* != *"$BROKEN"* ]]
EOF
program "$scratch/fake" ctest <<'EOF'
echo "ctest $*" >>"$CALLS"
while (($#)); do [[ $1 == --output-junit ]] && file=$2; shift; done
[[ -z ${REPORT-} ]] || cp "$REPORT" "$file"
exit "${CTEST_STATUS:-0}"
EOF
export PATH="$scratch/fake:$PATH" CALLS=$scratch/calls REPORT=$scratch/report.xml

report() { printf '%s\n' '<testsuite>' "$@" '</testsuite>' >"$REPORT"; }
ok='<testcase name="a" classname="a" time="0.1" status="run">'
bad='<testcase name="b" classname="b" time="0.1" status="fail">'
left_out='<testcase name="c" classname="c" time="0" status="notrun">
<skipped message="SKIP_RETURN_CODE=77"/>'
no_program='<testcase name="d" classname="d" time="0" status="notrun">
<skipped message="Unable to find executable"/>'
tests() { run "$scratch/run_tests.sh" "$@"; }
last_line() { [[ ${output##*$'\n'} == "$1" ]] || fail "$2: last line '${output##*$'\n'}' instead of '$1'"; }

report "$ok" "$ok" "$left_out"
tests
expect_status 0 'all variants'
last_line '9 passed, 0 failed, 4 skipped' 'all variants'
calls=$(cat -- "$CALLS")
[[ $calls == *'build-asan'*'address,undefined'*'build-tsan'*'WEFT_SANITIZE=thread'*'build-clang'* ]] ||
    fail "variants: $calls"
[[ $(grep -c 'WEFT_WERROR=ON' -- "$CALLS") == 4 ]] || fail "warnings are errors in each variant: $calls"
[[ $calls == *'build-clang'*'-L ^quick$ -R ^fuzz[.]'* ]] || fail "clang fuzzes, and runs nothing else: $calls"
[[ $calls == *'-L ^quick$ -LE ^noasan$'*'-L ^quick$ -LE ^notsan$'* ]] || fail "labels: $calls"

: >"$CALLS"
tests --only tsan --full
last_line '2 passed, 0 failed, 1 skipped' 'one variant'
[[ $(cat -- "$CALLS") != *build-asan* ]] || fail '--only tsan built another variant'
[[ $(cat -- "$CALLS") == *'-L ^(quick|full)$'* ]] || fail '--full chooses the labels'
tests --only clang
expect_status 0 'compiled with clang'
last_line '3 passed, 0 failed, 1 skipped' 'compiled with clang'

report "$ok" "$bad"
CTEST_STATUS=8 tests --only gcc
expect_status 1 'a failed test'
last_line '1 passed, 1 failed, 0 skipped' 'a failed test'

report "$ok" "$no_program"
CTEST_STATUS=8 tests --only gcc
expect_status 1 'a test whose program is missing'
last_line '1 passed, 1 failed, 0 skipped' 'a test whose program is missing'

report "$left_out"
tests --only gcc
expect_status 1 'nothing ran'
last_line '0 passed, 0 failed, 1 skipped' 'nothing ran'

report "$ok"
CTEST_STATUS=8 tests --only gcc
expect_status 1 'ctest failed in a way its report does not show'
last_line '1 passed, 1 failed, 0 skipped' 'ctest failed in a way its report does not show'

# A report of an earlier run is not taken for this one's.
report "$ok"
tests --only gcc
REPORT='' CTEST_STATUS=8 tests --only gcc
expect_status 1 'no report'
last_line '0 passed, 1 failed, 0 skipped' 'no report'

report "$ok"
BROKEN=build-asan tests
expect_status 1 'a variant that does not build'
last_line '4 passed, 1 failed, 0 skipped' 'a variant that does not build'

SETUP_STATUS=1 tests
expect_status 1 'set-up failed'
for wrong in --wrong '--only some' --only; do
    # shellcheck disable=SC2086  # several words
    tests $wrong
    expect_status 2 "wrong usage: $wrong"
    expect_lines 1 "wrong usage: $wrong"
done
tests --help
expect_status 0 'help'

finish
