#!/usr/bin/env bash
# The program in README.md is the one that tests/fixtures compiles and runs, and every file that it names is there.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/check.sh"

# shellcheck disable=SC2016  # the backticks are Markdown's
sed -n '/^```c$/,/^```$/{/^```/d;p}' -- "$root/README.md" >"$scratch/example.c"
diff -u -- "$root/tests/fixtures/readme_example.c" "$scratch/example.c" ||
    fail 'the C program of README.md is not tests/fixtures/readme_example.c'

while read -r file; do
    [[ -e $root/$file ]] || fail "README.md links to $file, which is not there"
done < <(grep -o '](\([^)#:]*\))' "$root/README.md" | sed 's/](\(.*\))/\1/')

finish
