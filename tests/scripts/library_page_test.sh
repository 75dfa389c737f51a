#!/usr/bin/env bash
# A library's page of the manual, its map and its header name the same: every function stands in the synopsis as the header
# declares it, and again in the text that says what it is for; and the page has no name of ours that no header has.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/check.sh"

headers=("$root/transport/weft.h" "$root/collective/weft_coll.h")

# declarations FILE: each `...;` of it in one line, with single spaces.
declarations() { tr '\n' ' ' <"$1" | tr -s ' ' | grep -o '[a-z][^;]*;' | sed 's/^ //'; }

# check_page PAGE HEADER MAP FEWEST
check_page() {
    local page=$1 header=$2 map=$3 name

    # The page as it is read: without fonts, quotes and escapes; `\-` is a dash.
    sed 's/^\.\(BR\|B\|IR\|I\|BI\) //; s/\\-/-/g; s/\\f[A-Z]//g; s/"//g' -- "$root/$page" >"$scratch/page"
    sed -n '/^\.SH SYNOPSIS/,/^\.SH DESCRIPTION/p' "$scratch/page" >"$scratch/synopsis"
    sed -n '/^\.SH DESCRIPTION/,$p' "$scratch/page" >"$scratch/text"

    # A declaration begins with WEFT_API and ends with the first semicolon.
    awk '/^WEFT_API / { on = 1 } on { sub(/^WEFT_API /, ""); print } /;$/ { on = 0 }' "$root/$header" >"$scratch/declared"
    declarations "$scratch/declared" | sort >"$scratch/in header"
    grep -v '^[.#]\|^cc ' "$scratch/synopsis" >"$scratch/declared"
    declarations "$scratch/declared" | sort >"$scratch/in synopsis"

    (($(wc -l <"$scratch/in header") > $4)) || fail "$header has hardly any functions"
    diff -- "$scratch/in header" "$scratch/in synopsis" ||
        fail "the synopsis of $page (>) is not what $header declares (<)"

    grep -o 'weft_[a-z_0-9]*(' "$scratch/in header" | tr -d '(' | sort >"$scratch/names"
    while read -r name; do
        grep -q -w -- "$name ()\|$name()" "$scratch/text" || fail "$name() is not in the text of $page"
    done <"$scratch/names"

    sed -n 's/^ *\(weft_[a-z_0-9]*\);$/\1/p' "$root/$map" | sort | diff -- "$scratch/names" - ||
        fail "$map (>) exports something else than $header declares (<)"

    # `WEFT_` alone is the beginning of all names in the environment, and `weft::...` is a target of CMake.
    while read -r name; do
        grep -q -w -- "$name" "${headers[@]}" || fail "$page says $name, which is in no header"
    done < <(sed 's/weft::[a-z_]*//g; s/weft_coll\.h//g; s/^weft_coll - //' "$scratch/page" |
        grep -o -w '\(weft\|WEFT\)_[A-Za-z_0-9]*' | grep -v '^WEFT_$\|^WEFT_COLL$' | sort -u)
}

check_page docs/man/weft.3 transport/weft.h transport/weft.map 50
check_page docs/man/weft_coll.3 collective/weft_coll.h collective/weft_coll.map 30

finish
