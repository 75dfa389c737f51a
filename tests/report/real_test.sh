#!/usr/bin/env bash
# real_test.sh: pages that `weft report` itself has written, as a browser shows them: of a run over loopback, of made-up
# results with names that are markup, of a large mesh, beside a baseline and with a prediction.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
weft=$WEFT_TEST_PROGRAM
here=$root/tests/report

for tool in node chromium; do
    command -v "$tool" >/dev/null || {
        echo "skipped: needs the program $tool"
        exit 77
    }
done
cd -- "$scratch" || exit 1

made() { node "$here/make_result.js" "${@:2}" >"$1" || fail "making $1"; }
page() {
    "$weft" report "${@:2}" --html "$1" >"$1.out" 2>&1 || fail "$1: $(<"$1.out")"
    pages+=("$1")
}

pages=(run/report.html)
timeout 60 "$weft" mesh --local --endpoints 2 -b 4K -e 64K -n 8 --mode both --rails 127.0.1.1,127.0.2.1 --out run --report \
    >run.out 2>&1 || fail "a run: $(<run.out)"
grep -q 'report: run/report.html' run.out || fail 'the run does not say where its report is'
[[ -s run/topo.svg ]] || fail 'the run has left no drawing'

made odd.json gpus=1 sizes=3 rails=4 rail=1:0.4 slow=0:1:2:0.7 hot=node1:2:91 'host=<img src=x onerror=alert(1)>'
made before.json gpus=1 sizes=3 rails=4 seed=2
printf '%s\n' 'src,dst,size_bytes,time_us' '0,4,65536,40' 'node0:gpu1,node1:gpu0,262144,80' >predicted.csv
page odd.html odd.json --baseline before.json --predicted predicted.csv
made nodes.json nodes=3 sources=2 sizes=3 rails=2 'at=2:*:*:0.8' 'at=*:2:*:0.8' 'at=1:0:1:0.6'
page nodes.html nodes.json
page several.html odd.json before.json run

timeout -k 5 240 node "$here/page_test.js" "${pages[@]}" || fail 'the pages'

finish
