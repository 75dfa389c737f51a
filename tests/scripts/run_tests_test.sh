#!/usr/bin/env bash
# run_tests.sh with a cmake that does nothing and a ctest that writes what we want: does the last line tell the truth?
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/check.sh"

cp -- "$root/run_tests.sh" "$scratch/" || exit 1
# shellcheck disable=SC2016  # expanded by the program
program "$scratch" setup.sh <<'EOF'
echo "setup $*" >>"$CALLS"
printf '%s' "${LACKING-}"
exit "${SETUP_STATUS:-0}"
EOF
program "$scratch/fake" clang <<<'exit 0'
program "$scratch/fake" ninja <<<'exit 0'
program "$scratch/fake" cmake <<'EOF'
echo "cmake $*" >>"$CALLS"
[[ -z ${BROKEN-} || $* != *"$BROKEN"* ]] || exit 1
while (($#)); do [[ $1 == -B ]] && echo "WEFT_HAS_LIBFUZZER:INTERNAL=${LIBFUZZER-1}" >"$2/CMakeCache.txt"; shift; done
exit 0
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
<skipped message="SKIP_RETURN_CODE=77"/>
</testcase>'
skipped_for() { # NAME REASON
    printf '<testcase name="%s" classname="%s" time="0" status="notrun">\n<skipped message="SKIP_RETURN_CODE=77"/>\n' "$1" "$1"
    printf '<system-out>something else\n%s\n</system-out>\n</testcase>' "$2"
}
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
[[ $(grep -c -e '-G Ninja -S' -- "$CALLS") == 4 ]] || fail "new folders are built with ninja: $calls"
[[ $(grep -c 'WEFT_WERROR=ON' -- "$CALLS") == 4 ]] || fail "warnings are errors in new folders: $calls"
[[ $calls == *'build-clang'*'-L ^quick$ -R ^fuzz[.]'* ]] || fail "clang fuzzes, and runs nothing else: $calls"
[[ $calls == *'-L ^quick$ -LE ^noasan$'*'-L ^quick$ -LE ^notsan$'* ]] || fail "labels: $calls"
[[ $(grep -c -- '-E ^(vm|install|compat|report|plugin|cluster)\[[.]\][.]' <<<"$calls") == 0 ]] || fail "areas: $calls"
[[ $(grep -cF -- '-E ^(vm|install|compat|report|plugin|cluster)[.] ' <<<"$calls") == 3 && $calls == *'setup --tests=core'$'\n'* ]] ||
    fail "area core alone: $calls"
[[ $calls != *smoke* && $calls != *no_uring* ]] || fail "what only --ci has: $calls"
[[ $(grep -c -- '--target fuzz' <<<"$calls") == 1 ]] || fail "clang compiles what is fuzzed: $calls"

: >"$CALLS"
tests --only tsan --full
last_line '2 passed, 0 failed, 1 skipped' 'one variant'
[[ $(cat -- "$CALLS") != *Ninja* && $(cat -- "$CALLS") != *WERROR* ]] || fail 'a folder keeps what it was made with'
[[ $(cat -- "$CALLS") != *build-asan* ]] || fail '--only tsan built another variant'
[[ $(cat -- "$CALLS") == *'-L ^(quick|ci|full)$'* ]] || fail '--full chooses the labels'
tests --only clang
expect_status 0 'compiled with clang'
last_line '3 passed, 0 failed, 1 skipped' 'compiled with clang'

# Areas.
: >"$CALLS"
tests --area vm
calls=$(cat -- "$CALLS")
[[ $calls == *'setup --tests=vm'$'\n'* && $calls == *'-L ^quick$ -R ^(vm)[.] '* && $calls != *build-asan* ]] ||
    fail "area vm: $calls"
: >"$CALLS"
tests --area plugin
calls=$(cat -- "$CALLS")
[[ $calls == *'-R ^(plugin)[.] '*build-asan*build-tsan* && $calls != *build-clang* ]] || fail "area plugin: $calls"
: >"$CALLS"
tests --area=core,vm --only gcc
calls=$(cat -- "$CALLS")
[[ $calls == *'setup --tests=core,vm'$'\n'* && $calls == *'-E ^(install|compat|report|plugin|cluster)[.] '* ]] || fail "two areas: $calls"
: >"$CALLS"
tests --ci
expect_status 0 '--ci'
last_line '13 passed, 0 failed, 6 skipped' '--ci' # four variants, no_uring, the smoke tests, and that clang compiles
calls=$(cat -- "$CALLS")
[[ $calls == *'setup --tests=core,vm,install,compat,report,plugin'$'\n'* && $calls == *'-L ^smoke$'* ]] || fail "--ci: areas: $calls"
[[ $calls == *'-L ^(quick|ci)$ -LE ^noasan$'* && $calls != *'-L ^quick$'* ]] || fail "--ci: labels: $calls"
[[ $calls == *'--target fuzz weft_bin'* ]] || fail "--ci: clang compiles the program: $calls"
[[ $calls == *build-no_uring*WEFT_URING=OFF*'--target no_uring'*'-L ^no_uring$'* ]] || fail "--ci: no_uring: $calls"

# Why tests are skipped is told before the last line; for want of what set-up has they have failed.
report "$ok" "$(skipped_for lab.one 'skipped: lab.sh: not available here: no &quot;veth&quot;')" \
    "$(skipped_for vm.two 'skipped: no "veth"')" "$(skipped_for three 'skipped: needs the program strace')"
LACKING=$'clang\nstrace\n' tests --only gcc
expect_status 0 'what could not be installed'
last_line '1 passed, 0 failed, 3 skipped' 'what could not be installed'
expect_text $'skipped:\n  needs the program strace: three\n  no "veth": lab.one vm.two\n1 passed' 'reasons'
tests --only gcc
expect_status 1 'for want of what is here'
last_line '1 passed, 1 failed, 2 skipped' 'for want of what is here'
expect_text 'FAILED: three is skipped for want of strace' 'for want of what is here'
WEFT_SETUP=off tests --only gcc
last_line '1 passed, 0 failed, 3 skipped' 'without set-up'
report "$ok" "$(skipped_for four 'skipped: engine = uring: this build has no io_uring: liburing was not there')"
tests --only gcc
last_line '1 passed, 1 failed, 0 skipped' 'a build without what is here'
LACKING=$'liburing\n' tests --only gcc
last_line '1 passed, 0 failed, 1 skipped' 'a build without what is not'
report "$ok"
mkdir -- "$scratch/few"
for name in bash awk cat cp flock grep mkdir nproc readlink rm sort tail; do
    ln -s -- "$(type -P "$name")" "$scratch/few/$name"
done
mv -- "$scratch/fake/clang" "$scratch/clang"
LACKING=clang PATH=$scratch/fake:$scratch/few tests
last_line '3 passed, 0 failed, 1 skipped' 'no clang'
expect_text 'needs the program clang: variant clang' 'no clang'
mv -- "$scratch/clang" "$scratch/fake/clang"
LIBFUZZER='' tests --only clang
last_line '2 passed, 1 failed, 0 skipped' 'libFuzzer is here and not used'
LIBFUZZER='' LACKING=$'libFuzzer\n' tests --only clang
last_line '2 passed, 0 failed, 1 skipped' 'no libFuzzer'

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
for wrong in --wrong '--only some' --only '--area some' --area; do
    # shellcheck disable=SC2086  # several words
    tests $wrong
    expect_status 2 "wrong usage: $wrong"
    expect_lines 1 "wrong usage: $wrong"
done
tests --help
expect_status 0 'help'

finish
