#!/usr/bin/env bash
# page_test.sh PARTS KIND...: report pages of made-up data (sample_data.js has the kinds; `bare` is without charts), from
# the files that the program has inside, which PARTS writes, as a browser shows them.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
parts=$1
shift
here=$root/tests/report

for tool in node chromium; do
    command -v "$tool" >/dev/null || {
        echo "skipped: needs the program $tool"
        exit 77
    }
done

mkdir -- "$scratch/parts"
"$parts" "$scratch/parts" || fail 'the files that are inside of the program'
while read -r name; do
    [[ $name == echarts.min.js ]] && continue
    cmp -- "$root/bench/report/page/$name" "$scratch/parts/$name" || fail "$name is not the one of the sources"
    [[ $name != *.js ]] || ! grep -qi -e '</script' -e '<!--' "$scratch/parts/$name" || fail "$name cannot stand in a page"
done <"$scratch/parts/list"

pages=()
mkdir -- "$scratch/bare" && cp -- "$scratch"/parts/* "$scratch/bare/" && sed -i '/echarts/d' "$scratch/bare/list"
for kind; do
    made=mixed from=$scratch/bare
    [[ $kind == bare ]] || made=$kind from=$scratch/parts
    node "$here/make_page.js" "$made" "$scratch/$kind.html" "$from" || fail "making the page $kind"
    pages+=("$scratch/$kind.html")
done
timeout -k 5 240 node "$here/page_test.js" "${pages[@]}" || fail 'the pages'

finish
