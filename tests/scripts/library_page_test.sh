#!/usr/bin/env bash
# weft(3), weft.map and weft.h name the same: every function stands in the synopsis as the header declares it, and again in the
# text that says what it is for; and the page has no name of ours that the header lacks.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/check.sh"

header=$root/transport/weft.h

# The page as it is read: without fonts, quotes and escapes; `\-` is a dash.
sed 's/^\.\(BR\|B\|IR\|I\|BI\) //; s/\\-/-/g; s/\\f[A-Z]//g; s/"//g' -- "$root/docs/man/weft.3" >"$scratch/page"
sed -n '/^\.SH SYNOPSIS/,/^\.SH DESCRIPTION/p' "$scratch/page" >"$scratch/synopsis"
sed -n '/^\.SH DESCRIPTION/,$p' "$scratch/page" >"$scratch/text"

# declarations FILE: each `...;` of it in one line, with single spaces.
declarations() { tr '\n' ' ' <"$1" | tr -s ' ' | grep -o '[a-z][^;]*;' | sed 's/^ //'; }

# A declaration begins with WEFT_API and ends with the first semicolon.
awk '/^WEFT_API / { on = 1 } on { sub(/^WEFT_API /, ""); print } /;$/ { on = 0 }' "$header" >"$scratch/declared"
declarations "$scratch/declared" | sort >"$scratch/in header"
grep -v '^[.#]\|^cc ' "$scratch/synopsis" >"$scratch/declared"
declarations "$scratch/declared" | sort >"$scratch/in synopsis"

(($(wc -l <"$scratch/in header") > 50)) || fail 'weft.h has hardly any functions'
diff -- "$scratch/in header" "$scratch/in synopsis" ||
    fail 'the synopsis of docs/man/weft.3 (>) is not what transport/weft.h declares (<)'

while read -r name; do
    grep -q -w -- "$name ()\|$name()" "$scratch/text" || fail "$name() is not in the text of docs/man/weft.3"
done < <(grep -o 'weft_[a-z_]*(' "$scratch/in header" | tr -d '(')

grep -o 'weft_[a-z_0-9]*(' "$scratch/in header" | tr -d '(' | sort >"$scratch/names"
sed -n 's/^ *\(weft_[a-z_0-9]*\);$/\1/p' "$root/transport/weft.map" | sort | diff -- "$scratch/names" - ||
    fail 'transport/weft.map (>) exports something else than transport/weft.h declares (<)'

# `WEFT_` alone is the beginning of all names in the environment, and `weft::...` is a target of CMake.
while read -r name; do
    grep -q -w -- "$name" "$header" || fail "docs/man/weft.3 says $name, which is not in transport/weft.h"
done < <(sed 's/weft::[a-z_]*//g' "$scratch/page" | grep -o -w '\(weft\|WEFT\)_[A-Za-z_0-9]*' | grep -v '^WEFT_$' | sort -u)

finish
