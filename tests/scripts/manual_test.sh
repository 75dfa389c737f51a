#!/usr/bin/env bash
# weft(1) and the program name the same: commands, options with their letters, aliases with their settings, and exit
# statuses. What the program has and the page lacks is found, and what the page has and no command knows.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/check.sh"

# The page as it is read: without fonts, quotes and escapes; `\-` is a dash.
sed 's/^\.\(BR\|B\|IR\|I\|BI\|RB\|RI\) //; s/\\-/-/g; s/\\f[A-Z]//g; s/"//g' -- "$root/docs/man/weft.1" >"$scratch/page"

# section TITLE: the lines below a heading of the page, up to the next one.
section() { awk -v title=".SH $1" '/^\.SH/ { on = ($0 == title); next } on' "$scratch/page"; }

# tags: of a section on standard input, what its entries are called.
tags() { awk 'tag { print } { tag = /^\.TP/ }'; }

section OPTIONS | tags >"$scratch/tags"
section SYNOPSIS >"$scratch/synopsis"
section DESCRIPTION >"$scratch/description"

# --- commands and their options ---

"${WEFT_TEST_PROGRAM:?}" --help >"$scratch/help" || fail 'weft --help'
sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p' "$scratch/help" >"$scratch/commands"
(($(wc -l <"$scratch/commands") > 5)) || fail 'weft --help has hardly any commands'
grep -o -e '--[a-z-]*' "$scratch/help" >"$scratch/known"

while read -r command; do
    grep -q -w -- "weft $command" "$scratch/synopsis" || fail "weft $command is not in the SYNOPSIS of docs/man/weft.1"
    grep -q -w -- "weft $command" "$scratch/description" ||
        fail "weft $command is not in the DESCRIPTION of docs/man/weft.1"
    "$WEFT_TEST_PROGRAM" "$command" --help >"$scratch/help" || fail "weft $command --help"
    tr '\n' ' ' <"$scratch/help" | grep -o 'Exit status: [^.]*\.' | grep -o '[0-9][0-9]*' >>"$scratch/statuses"
    grep -o '^  \(-[a-zA-Z], \)\{0,1\}--[a-z-]*' "$scratch/help" | tr -d ',' | tr ' ' '\n' | grep . >"$scratch/options"
    cat "$scratch/options" >>"$scratch/known"
    while read -r option; do
        grep -q -e "\(^\|[^a-zA-Z-]\)$option\([^a-z-]\|\$\)" "$scratch/tags" ||
            fail "$option of weft $command --help has no entry in docs/man/weft.1"
    done <"$scratch/options"
done <"$scratch/commands"
(($(sort -u "$scratch/known" | wc -l) > 60)) || fail 'the commands have hardly any options'

# `-n` may stand in any text; what begins with two dashes is an option wherever it stands.
while read -r option; do
    grep -q -x -e "$option" "$scratch/known" || fail "docs/man/weft.1 says $option, which no command has"
done < <(grep -o -e '--[a-z][a-z-]*' "$scratch/page" | sort -u)
while read -r letter; do
    grep -q -x -e "$letter" "$scratch/known" || fail "docs/man/weft.1 has an entry for $letter, which no command has"
done < <(grep -o -w -e '\(^\|[ ,]\)-[a-zA-Z]' "$scratch/tags" | tr -d ' ,' | sort -u)
while read -r command; do
    grep -q -x -- "$command" "$scratch/commands" || fail "docs/man/weft.1 says weft $command, which is no command"
done < <(sed -n 's/^weft \([a-z-]*\).*/\1/p' "$scratch/synopsis" | sort -u)

# --- names of other systems ---

# shellcheck disable=SC2016  # the backticks are Markdown's
"$WEFT_TEST_PROGRAM" config --markdown | sed -n '/^## Names of other systems/,$p' |
    sed -n 's/^| `\([A-Z_]*\)` | `\([a-z_]*\)` |$/\1 \2/p' | sort >"$scratch/aliases"
(($(wc -l <"$scratch/aliases") > 5)) || fail 'weft config --markdown has hardly any names of other systems'
section ENVIRONMENT | awk 'name { sub(/[.,]$/, "", $1); print name, $1; name = "" } tag && !/^WEFT_/ { name = $1 } { tag = /^\.TP/ }' |
    sort >"$scratch/in page"
diff -- "$scratch/aliases" "$scratch/in page" ||
    fail 'the ENVIRONMENT of docs/man/weft.1 (>) has other names of other systems than the program (<)'

# --- exit statuses ---

section 'EXIT STATUS' | tags | sort -u >"$scratch/in page"
sort -u -o "$scratch/statuses" -- "$scratch/statuses"
diff -- "$scratch/statuses" "$scratch/in page" ||
    fail 'EXIT STATUS of docs/man/weft.1 (>) has other numbers than the help of the commands (<)'

finish
