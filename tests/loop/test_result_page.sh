#!/bin/bash
# test_result_page.sh: `weft report` as somebody uses it who has files that may be anything: what cannot be read is named
# with its reason and does not stop the others, nothing is waited for, and nothing that a file says becomes markup or an
# order.
. "$(dirname "$0")/loop_lib.sh"

markup='<img src=x onerror=alert(1)>'

# result FILE [HOST [RATE [CHUNK]]]: a result of two hosts on each side, whose rate is RATE.
result() {
    local file=$1 host=${2:-host} rate=${3:-5} chunk=${4:-524288} way src dst comma=""
    {
        printf '{"schema": "weft.result/1", "command": "mesh", "started": "2026-11-25T12:00:00Z", "summary": {"passed": true, '
        printf '"wrong_bytes": 0, "verified_bytes": 9, "measured_bytes": 9, "peak": {"bw_gb_per_s": %s}},\n' "$rate"
        printf '"rails": [{"node": "node1", "name": "%s", "failures": 1}], "config": {"chunk": {"value": %s}}, "samples": [' \
            "$host" "$chunk"
        for way in 0 1; do
            for src in 0 1; do
                for dst in 0 1; do
                    printf '%s\n{"backend": "weft", "mode": "isolated", "test": "bandwidth", "src": "node%s:%s%s", ' "$comma" \
                        "$way" "$host" "$src"
                    printf '"dst": "node%s:%s%s", "size_bytes": 65536, "time_us": {"p10": 9, "p50": 10, "p90": 11}, ' \
                        "$((1 - way))" "$host" "$dst"
                    printf '"bw_gb_per_s": %s, "rails": [{"name": "%s", "bytes": 9}]}' "$rate" "$host"
                    comma=,
                done
            done
        done
        printf ']}\n'
    } >"$file"
}

# report STATUS ARGUMENTS...: with a page of its own; `look` is where programs are looked for.
report() {
    local want=$1
    shift
    rm -f page.html
    PATH=${look:-$PATH} limit=20 weft report --html page.html "$@"
    pass_if "report $*: status $status: $(cat err)" [ "$status" -eq "$want" ]
}
says() { pass_if "it says: $1: $(cat out err)" grep -qF -- "$1" <(cat <(flat out) <(flat err)); } # WORDS
page() { pass_if "there is a page: $(cat err)" grep -q '^</html>' page.html; }

result good.json

# ---- no files
weft report
pass_if "no files: status $status" [ "$status" -eq 2 ]
says "which results? Name files or folders"
pass_if "and no page" [ ! -e report.html ]

# ---- one
weft report good.json
pass_if "one: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "in the page that everybody expects" [ -s report.html ]
says "report: report.html ("
says "All 8 samples ran"
limit=20 weft report good.json report.html
pass_if "again, with the page among the names: status $status" [ "$status" -eq 1 ]
pass_if "which is there again" grep -q '^</html>' report.html
limit=20 weft report good.json --html -
pass_if "to standard output: status $status" [ "$status" -eq 0 ]
pass_if "the page alone" [ "$(head -c 15 out)" = "<!doctype html>" ]
pass_if "and all of it" [ "$(tail -1 out)" = "</html>" ]
pass_if "the verdict beside it: $(cat err)" grep -q "All 8 samples ran" err
limit=20 weft report good.json --html - --open
pass_if "nothing to open: status $status" [ "$status" -eq 2 ]

# ---- a page is never put in the place of a result
result kept.json
cp kept.json kept.was
ln -s kept.json kept.html
for target in kept.json kept.html new.json; do
    limit=20 weft report kept.json --html "$target"
    pass_if "--html $target: status $status" [ "$status" -eq 2 ]
    says "--html $target: that is"
    pass_if "--html $target: the result is as it was" cmp -s kept.json kept.was
done
pass_if "and no page has the name of a result" [ ! -e new.json ]
head -c 700 kept.json >kept.part
cp kept.part part.was
limit=20 weft report good.json kept.part --html kept.part
pass_if "nor in that of one that cannot be read: status $status" [ "$status" -eq 2 ]
says "--html kept.part: that is one of the files that are read"
pass_if "which is as it was" cmp -s kept.part part.was

# ---- what is no network's doing
sed 's/"samples": \[/"faults": [{"resets": 3, "flips": 0}, {"resets": 4, "flips": 2}], "samples": [/' good.json >faults.json
report 0 faults.json
says "Faults were injected on purpose (--fault): resets 7, flips 2."
limit=60 weft pair --local --lat --backend weft,null --size 8 -n 50 --out lat --report
pass_if "a run with a page: status $status: $(cat err)" [ "$status" -eq 0 ]
report 0 lat
says "weft, half round trip: "
pass_if "what moves no data is in no verdict: $(cat out)" [ "$(grep -c 'null' out)" -eq 0 ]

# ---- what cannot be read, among what can: FILE WORDS
bad() {
    report 1 good.json "$1"
    says "$1: $2"
    page
    pass_if "and the reason is in the page" grep -qF "Files that are not in here" page.html
    says "All 8 samples ran"
    report 1 "$1"
    says "no file is a result: $1: $2"
    pass_if "there is no page of nothing" [ ! -e page.html ]
}
head -c 700 good.json >cut.json
: >empty.json
echo '{"name": "somebody", "version": 3}' >foreign.json
sed 's/result.1/result\/2/' good.json >newer.json
head -c 5000 "$WEFT" >binary.json
mkfifo pipe.json
bad missing.json "cannot open it: No such file or directory"
bad cut.json "it is not whole: it ends in the middle"
bad empty.json "it is empty"
bad foreign.json "it is JSON, but no result of weft"
bad newer.json "it was written by a newer weft"
bad binary.json "it is no JSON, or is damaged"
bad pipe.json "it is a pipe or a device"
bad /dev/zero "it is a pipe or a device"
if truncate -s 100G huge.json 2>/dev/null; then
    bad huge.json "it has 100.0 GiB, and reading it takes"
    rm huge.json
fi
report 1 missing.json cut.json
says "none of these is a result"
says "missing.json: cannot open it"
says "cut.json: it is not whole"
head -c 100 /dev/zero | tr '\0' '[' >nested.json
for ((i = 0; i < 16; i++)); do cat nested.json nested.json >twice && mv twice nested.json; done
bad nested.json "it is no JSON, or is damaged"

# ---- not allowed, which root always is
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    chmod 755 . && result closed.json && chmod 600 closed.json
    timeout 20 setpriv --reuid 65534 --regid 65534 --clear-groups "$WEFT" report --html - good.json closed.json \
        >out 2>err </dev/null
    status=$?
    if [ "$status" -le 2 ]; then # elsewhere the program itself is closed to others
        pass_if "not allowed: status $status" [ "$status" -eq 1 ]
        says "closed.json: cannot open it: Permission denied"
    fi
elif [ "$(id -u)" -ne 0 ]; then
    result closed.json && chmod 0 closed.json
    bad closed.json "cannot open it: Permission denied"
fi

# ---- folders
mkdir -p results/empty results/run
report 1 good.json results/empty
says "results/empty: there is no result in this folder"
result results/run/mesh.json
cp cut.json foreign.json results/run
mkfifo results/run/pipe.json
report 1 results/run
says "results/run/cut.json: it is not whole"
says "results/run/pipe.json: it is a pipe"
pass_if "what is somebody else's is none of ours: $(cat out)" [ "$(grep -c foreign out)" -eq 0 ]
page

# ---- what others have chosen is text, and nothing else
result "$markup.json" "$markup"
report 0 "$markup.json" --plots plots
page
pass_if "no markup of theirs is in the page" [ "$(grep -cF "$markup" page.html)" -eq 0 ]
pass_if "nor in Markdown: $(grep -F "<img" plots/report.md)" [ "$(grep -cF " <img" plots/report.md)" -eq 0 ]
says "$markup"
printf 'x' >$'bell\a\e[2J.json'
report 1 good.json $'bell\a\e[2J.json'
pass_if "no orders to a terminal" [ "$(cat out err | tr -d '\n' | tr -d '[:print:]' | wc -c)" -eq 0 ]
result odd.json "100%d \`touch ordered\`\$(touch ordered)"
report 0 odd.json --plots odd
pass_if "nothing was run" absent ordered odd/ordered

# ---- where it cannot be written, what was found is said all the same
report 1 good.json --html none/page.html
says "none/page.html"
says "All 8 samples ran"
report 1 good.json --html /dev/full
says "/dev/full: No space left on device"
says "All 8 samples ran"
report 1 good.json --plots good.json/there
says "good.json/there"

# ---- plots, with gnuplot and without
mkdir bin empty
printf '#!/bin/sh\nexit 1\n' >bin/gnuplot && chmod +x bin/gnuplot
look=$PWD/bin:$PATH report 1 good.json --plots failing
says "gnuplot could not draw"
pass_if "what it should have drawn is there" filled failing/mesh.dat failing/mesh.gp failing/report.md
says "All 8 samples ran"
printf '#!/bin/sh\nexec sleep 0.2\n' >bin/gnuplot
if has_terminal; then
    PATH=$PWD/bin:$PATH on_terminal 120 "$WEFT" report good.json --html page.html --plots slowly
    status=$?
    pass_if "on a terminal: status $status: $(cat out)" [ "$status" -eq 0 ]
    pass_if "how far they are, and the time left: $(cat out)" \
        grep -qE '[1-9][0-9]*/[0-9]+  figures, drawing [a-z-]+  [0-9]+ s left' out
    pass_if "which makes room for what is said: $(cat out)" grep -q $'\r\e\[Kplots: slowly' out
fi
rm bin/gnuplot
ln -s "$(command -v timeout)" bin
look=$PWD/bin report 0 good.json --plots undrawn
says "plots: undrawn (data, scripts and Markdown: gnuplot, which draws them, is not installed)"
pass_if "its data is there" filled undrawn/rate.dat undrawn/rate.gp
if command -v gnuplot >/dev/null; then
    report 0 good.json --plots drawn
    pass_if "drawn: $(ls drawn)" filled drawn/mesh.png drawn/rate.svg
    pass_if "as a picture" [ "$(head -c 4 drawn/mesh.png | tail -c 3)" = PNG ]
fi

# ---- a browser
look=$PWD/bin report 1 good.json --open
says "--open: cannot start xdg-open"
says "All 8 samples ran"
page
# shellcheck disable=SC2016
printf '#!/bin/sh\necho "$1" >opened.part && mv opened.part opened\n' >bin/xdg-open && chmod +x bin/xdg-open
look=$PWD/bin:$PATH report 0 good.json --open
for ((tries = 0; tries < 100; tries++)); do
    [ -e opened ] && break
    sleep 0.05
done
pass_if "it is shown: $(cat opened 2>&1)" [ "$(cat opened)" = page.html ]
printf '#!/bin/bash\ngrep ^Sig /proc/self/status >signals.part && mv signals.part signals\n' >bin/xdg-open
PATH=$PWD/bin:$PATH limit=60 weft pair --local --lat --backend weft --size 8 -n 50 --out lat --report --open
pass_if "a run with a page that is shown: status $status: $(cat err)" [ "$status" -eq 0 ]
until_true "a browser" [ -e signals ]
blocked=$(sed -n 's/^SigBlk:[[:space:]]*//p' signals) ignored=$(sed -n 's/^SigIgn:[[:space:]]*//p' signals)
pass_if "it can be ended by a signal: blocked are $blocked" [ $((0x$blocked)) -eq 0 ]
pass_if "and by a closed pipe: ignored are $ignored" [ $((0x$ignored & 1 << 12)) -eq 0 ]

# ---- beside something
result slower.json host 4
report 0 good.json --baseline slower.json
says "Against slower.json, isolated: 1.25 times as fast"
sed 's/"weft", "mode"/"tcp", "mode"/; s/"bw_gb_per_s": 4, "r/"bw_gb_per_s": 2, "r/' slower.json >tcp.json
sed -n '/"samples"/,$p' tcp.json | sed 1d | sed 's/]}$//' >tcp.samples
{ sed 's/]}$/,/' good.json && cat tcp.samples && echo ']}'; } >both.json
report 0 both.json --baseline tcp
says "Against tcp, isolated: 2.50 times as fast"
result strange.json stranger
report 0 good.json --baseline strange.json
says "strange.json has no pair, size and mode in common with this run"
report 1 good.json --baseline nobody
says "--baseline nobody: cannot open it"
report 1 good.json --baseline cut.json
says "--baseline cut.json: it is not whole"
printf 'src,dst,size_bytes,time_us\n0,2,65536,11\nnode0:host1,node1:host1,65536,9\n' >predicted.csv
report 0 good.json --predicted predicted.csv
says "Predicted, regime latency: +0.0 % off what was measured in the median, -10.0 to +10.0 % for 8 of 10"
printf 'src,dst,size_bytes,time_us\n0,2,65536,11\n0,2,65536\n' >wrong.csv
report 1 good.json --predicted wrong.csv
says "--predicted wrong.csv: line 3 is not src,dst,size_bytes,time_us"
report 1 good.json --predicted nothing.csv
says "--predicted nothing.csv: cannot open it"
report 1 good.json --predicted pipe.json
says "--predicted pipe.json: it is a pipe"

# ---- many
report 0 good.json good.json
says "2 runs: 0 failed"
page
mkdir many
for ((i = 0; i < 1000; i++)); do
    ln good.json many/run-$i.json
done
rm many/run-7.json && result many/run-7.json host 9 65536
rm -f page.html
(ulimit -n 64 && weft report --html page.html many && exit "$status")
status=$?
pass_if "a thousand: status $status: $(cat err)" [ "$status" -eq 0 ]
says "1000 runs: 0 failed"
pass_if "each is in the page" [ "$(grep -o '"name":"many/run-[0-9]*.json"' page.html | sort -u | wc -l)" -eq 1000 ]
finish
