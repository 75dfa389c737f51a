# lib.sh: for tests that start ranks. The program is the test's first argument.
# shellcheck shell=bash
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
export rank=$1
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT

needs() {
    command -v "$1" >/dev/null || {
        echo "skipped: needs the program $1"
        exit 77
    }
}

# expect_ranks SIZE WORDS WHAT: a line of each rank, with these words.
expect_ranks() {
    local i
    for ((i = 0; i < $1; i++)); do
        grep -q "^rank $i of $1, local $i: rank $i of $1 by $2" <<<"$output" || fail "$3: nothing of rank $i in: $output"
    done
}
