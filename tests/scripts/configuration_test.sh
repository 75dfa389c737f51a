#!/usr/bin/env bash
# docs/configuration.md is what the program prints.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/check.sh"

"${WEFT_TEST_PROGRAM:?}" config --markdown >"$scratch/configuration.md" || fail 'weft config --markdown'
diff -u -- "$root/docs/configuration.md" "$scratch/configuration.md" ||
    fail 'docs/configuration.md is out of date: build/bin/weft config --markdown >docs/configuration.md'

finish
