# shellcheck shell=bash
# check.sh: sourced by the tests of this folder. A test goes on after a failed check, so that one run shows them all;
# its last line is `finish`.

# The root of the sources, and a folder that is gone after the test; its name has a space because users' have.
# shellcheck disable=SC2034  # used by the tests
root=${WEFT_TEST_ROOT:-$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/weft test.XXXXXX") || exit 1
trap 'rm -rf -- "$scratch"' EXIT
failures=0

# Settings of whoever runs the tests are not part of them.
for variable in $(compgen -e); do
    case $variable in
    WEFT_TEST_*) ;;
    WEFT_* | UCCL_* | LOG_DIR | CI) unset "$variable" ;;
    esac
done

fail() {
    printf 'FAILED: %s\n' "$*"
    failures=$((failures + 1))
}

# run COMMAND...: sets output (standard output and error) and status.
run() {
    output=$("$@" 2>&1 </dev/null)
    status=$?
}

expect_status() {
    ((status == $1)) || fail "$2: status $status instead of $1; output: $output"
}

# expect_text TEXT WHAT: the output has TEXT in it.
expect_text() {
    [[ $output == *"$1"* ]] || fail "$2: no '$1' in: $output"
}

expect_no_text() {
    [[ $output != *"$1"* ]] || fail "$2: '$1' in: $output"
}

expect_lines() {
    local lines
    lines=$(printf '%s' "$output" | grep -c '')
    ((lines == $1)) || fail "$2: $lines lines instead of $1: $output"
}

# program FOLDER NAME: makes an executable shell script of what stands on standard input.
program() {
    mkdir -p -- "$1"
    { echo '#!/bin/bash' && cat; } >"$1/$2"
    chmod +x -- "$1/$2"
}

finish() {
    ((failures == 0)) || exit 1
    exit 0
}

# skip REASON: the rest of the test cannot be done here. What has failed before counts.
skip() {
    ((failures == 0)) || finish
    echo "skipped: $*"
    exit 77
}
