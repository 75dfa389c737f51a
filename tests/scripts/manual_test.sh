#!/usr/bin/env bash
# Every option that --help tells of has an entry in weft(1), with its letter where it has one.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/check.sh"

# The tags of the entries under OPTIONS, as they are read: without fonts and escapes.
sed -n '/^\.SH OPTIONS/,/^\.SH EXIT/p' -- "$root/docs/man/weft.1" |
    awk 'tag { print } { tag = /^\.TP/ }' | sed 's/\\-/-/g; s/\\f[A-Z]//g' >"$scratch/tags"

for command in mesh pair peers topo config; do
    "${WEFT_TEST_PROGRAM:?}" "$command" --help >"$scratch/help" || fail "weft $command --help"
    grep -o '^  \(-[a-z], \)\{0,1\}--[a-z-]*' "$scratch/help" | tr -d ',' | tr ' ' '\n' | grep . >"$scratch/options"
    (($(wc -l <"$scratch/options") > 5)) || fail "weft $command --help has hardly any options"
    while read -r option; do
        grep -q -e "\(^\|[^a-z-]\)$option\([^a-z-]\|\$\)" "$scratch/tags" ||
            fail "$option of weft $command --help has no entry in docs/man/weft.1"
    done <"$scratch/options"
done

finish
