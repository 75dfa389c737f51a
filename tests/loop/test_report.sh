#!/bin/bash
# test_report.sh: what a run tells people and programs: lines as they are measured, not wider than a page, how many
# messages a figure rests on, and that loopback is no network.
. "$(dirname "$0")/loop_lib.sh"

base="--local --endpoints 2 --rails $rails --log-dir="

export TERM=xterm-256color COLORTERM=truecolor
unset NO_COLOR
escape=$'\033'

# A file of one JSON object a line, each with these words of jq true of it; nothing where there is no jq.
each() { # FILE WORDS
    command -v jq >/dev/null || return 0
    [ "$(jq -c "select($2)" "$1" | wc -l)" -eq "$(wc -l <"$1")" ]
}

# Sends one signal to the run that writes to descriptor 3, and waits for all it says and for its end. Sets status. That
# run is no child of timeout's, which would send the signal twice, and to the other node, too.
end_by() { # SIGNAL PID FILE
    kill "-$1" "$2"
    timeout 60 cat <&3 >"$3" || kill -KILL "$2"
    exec 3<&-
    wait "$2"
    status=$?
}

# ---- as they are measured: what follows the lines that are read takes for ever, and the run is ended by a signal
mkfifo lines samples
"$WEFT" mesh $base --size 1K,4M -n 5000 -w 0 -c 0 --mode loaded >lines 2>err </dev/null &
running=$!
exec 3<lines
read -r head <&3
pass_if "the head comes first: $head" grep -q '^weft .* mesh, .*loopback: says nothing about a network' <<<"$head"
rows=0
while ((rows < 2)) && read -r line <&3; do
    [[ $line == "1K "* ]] && rows=$((rows + 1))
done
pass_if "a line for each direction of the first size" [ "$rows" -eq 2 ]
pass_if "while the next one is measured" kill -0 "$running"
end_by INT "$running" rest
pass_if "cut short: status $status" [ "$status" -eq 1 ]
pass_if "what had been printed is not printed again: $(cat rest)" [ "$(grep -c '^ *1K ' rest)" -eq 0 ]
pass_if "the end says so: $(cat rest)" grep -q 'FAILED, cut short by SIGINT at node0' <(flat rest)

"$WEFT" mesh $base --size 1K,4M -n 5000 -w 0 -c 0 --mode isolated --quiet --json-stream samples 2>err </dev/null &
running=$!
exec 3<samples
read -r first <&3
echo "$first" >first.json
pass_if "a sample at once: $first" grep -q '^{"backend":"weft".*"size_bytes":1024,' first.json
pass_if "while the others are measured" kill -0 "$running"
end_by INT "$running" /dev/null
pass_if "cut short, too: status $status" [ "$status" -eq 1 ]

# ---- a line for each sample, and nothing else
weft mesh $base --size 1K,64K -n 9 -w 0 --json-stream stream --json whole.json
pass_if "a stream: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "all samples: $(wc -l <stream)" [ "$(wc -l <stream)" -eq "$(json_numbers whole.json samples_planned)" ]
pass_if "each an object: $(head -1 stream)" each stream '.iters == 9 and .wrong_bytes == 0 and .bw_gb_per_s > 0'
weft mesh $base --size 1K -n 9 -w 0 --json-stream -
pass_if "on standard output nothing else: $(head -2 out)" [ "$(grep -vc '^{' out)" -eq 0 ]
pass_if "and the report beside it: $(cat err)" grep -q 'passed$' err
weft mesh $base --size 1K -n 9 --json - --json-stream -
pass_if "twice standard output: status $status" [ "$status" -eq 2 ]
weft mesh $base --size 1K -n 9 --json-stream none/there
pass_if "a folder that is not there: status $status: $(cat err)" [ "$status" -ne 0 ]
pass_if "is named: $(cat err)" grep -q 'json-stream none/there' err

weft mesh $base --size 1K -n 9 --json same --csv same
pass_if "two results of one name: status $status" [ "$status" -eq 2 ]
pass_if "are told: $(cat err)" grep -q 'json and --csv are both same' err

# ---- a run whose words are lost is over: the messages of the second size would take for ever
timeout -k 5 60 "$WEFT" mesh $base --size 1K,64K -n 10000000 -w 0 -c 0 --mode isolated >/dev/full 2>err </dev/null
status=$?
pass_if "nobody hears it: status $status" [ "$status" -eq 1 ]
pass_if "why: $(cat err)" grep -q 'cannot write standard output: No space left on device' err
timeout -k 5 60 "$WEFT" mesh $base --size 1K -n 9 -w 0 -c 0 --quiet --json-stream /dev/full 2>err </dev/null
status=$?
pass_if "the stream is lost: status $status" [ "$status" -eq 1 ]
pass_if "why: $(cat err)" grep -q 'cannot write /dev/full: No space left on device' err

# ---- not wider than a page, and honest
weft mesh $base --size 1K,1M -n 5 -w 1 --json whole.json
pass_if "80 columns at most: $(awk 'length > 80' out)" [ "$(awk 'length > 80' out | wc -l)" -eq 0 ]
pass_if "no colours in a pipe" [ "$(grep -c "$escape" out)" -eq 0 ]
pass_if "few messages are marked: $(cat out)" [ "$(grep -cE '^ +(1K|1M) +5\* ' out)" -eq 8 ]
pass_if "and the mark is explained" grep -q '^\* rests on fewer than 8 messages a pair' out
pass_if "each rail's bytes" [ "$(grep -cE '^node[01] 127\.0\.[12]\.1 +unknown +[0-9]+ ' out)" -eq 4 ]
pass_if "how long it took" grep -q '^duration: ' out
pass_if "loopback, for programs" grep -q '"loopback": true' whole.json
pass_if "what rails are" [ "$(grep -c '"speed_mbit": null' whole.json)" -eq 4 ]
weft mesh $base --size 1M -n 9 -w 1
pass_if "enough are not: $(cat out)" [ "$(grep -c '\*' out)" -eq 0 ]

# ---- as wide as asked for
weft mesh $base --endpoints 8 --size 64K -n 1 -w 0 -c 0 --width 40
pass_if "40 columns: $(awk 'length > 40' out)" [ "$(awk 'length > 40' out | wc -l)" -eq 0 ]
pass_if "a matrix in blocks: $(cat out)" [ "$(grep -c '^0>1 .* host5 ' out)$(grep -c '^0>1 .* host7$' out)" = 22 ]
weft mesh $base --endpoints 8 --size 64K -n 1 -w 0 -c 0 --width 120
pass_if "wide in a pipe: $(cat out)" [ "$(grep -c 'messages/s *s/GB$' out)" -eq 2 ]
weft pair --local --rails $rails --lat --size 8 -n 9 -w 0 --background 64K --width 40
pass_if "a ping-pong: $(awk 'length > 40' out)" [ "$(awk 'length > 40' out | wc -l)" -eq 0 ]
weft mesh $base --size 64K -n 1 -w 0 --backend weft,null --width 40
pass_if "two backends: $(awk 'length > 40' out)" [ "$(awk 'length > 40' out | wc -l)" -eq 0 ]
for wrong in 39 1001 wide; do
    weft mesh $base --size 1K -n 1 --width "$wrong"
    pass_if "--width $wrong: status $status: $(cat err)" [ "$status" -eq 2 ]
done
weft mesh $base --size 1K -n 1 --width 0
pass_if "--width 0 is auto: status $status" [ "$status" -eq 0 ]

# ---- on a terminal
if has_terminal; then
    on_terminal 120 "$WEFT" mesh $base --size 1M -n 9 -w 1
    status=$?
    pass_if "on a terminal: status $status: $(cat out)" [ "$status" -eq 0 ]
    pass_if "the matrix is shaded: $(cat out)" [ "$(grep -c "^host[01] .*$escape\[48;5;.*$escape\[0m$" out)" -eq 8 ]
    pass_if "what that means is said" grep -q 'node>node, darker is slower' out
    NO_COLOR=1 on_terminal 120 "$WEFT" mesh $base --size 1M -n 9 -w 1
    pass_if "unless it shall not be" [ "$(grep -c "$escape\[48" out)" -eq 0 ]
    on_terminal 120 "$WEFT" mesh $base --size 64K,1M --duration 3 --mode loaded
    pass_if "what is measured, and the time left: $(cat out)" \
        grep -qE '[0-9]+/16  weft loaded [0-9]+[KM]  [0-9]+ s left' out
    on_terminal 120 sh -c "$WEFT mesh $base --size 1M -n 9 -w 1 --json - 2>/dev/null"
    pass_if "no colours in JSON: $(head -2 out)" [ "$(grep -c "$escape" out)" -eq 0 ]
    on_terminal 120 sh -c "$WEFT mesh $base --size 1M -n 9 -w 1 --quiet 2>/dev/null"
    pass_if "nor where nothing is said: $(cat out)" [ ! -s out ]
fi

# ---- as many as fit
weft mesh $base --size 1K,8M --duration 1 --check 0 --json whole.json
pass_if "auto: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "at least 8 of each: $(json_numbers whole.json iters | sort -n | head -1)" \
    [ "$(json_numbers whole.json iters | sort -n | head -1)" -ge 8 ]
pass_if "and of small ones more: $(json_numbers whole.json iters | sort -n | tail -1)" \
    [ "$(json_numbers whole.json iters | sort -n | tail -1)" -ge 64 ]
weft pair --local --rails $rails --lat --size 8 -n auto --check 0 --json whole.json
pass_if "a ping-pong: $(json_numbers whole.json iters)" [ "$(json_numbers whole.json iters)" = 2000 ]

# ---- what is expected
for wrong in 0 1.1 -1 x 0.9x nan; do
    weft mesh $base --size 1K -n 1 --expect "$wrong"
    pass_if "--expect $wrong: status $status" [ "$status" -eq 2 ]
    pass_if "--expect $wrong is named: $(cat err)" grep -Fqe "--expect $wrong" err
done
weft mesh $base --size 1K -n 1 --expect 0.9 --out nothing
pass_if "loopback has no line rate: status $status" [ "$status" -eq 2 ]
pass_if "which is said: $(cat err)" grep -q 'loopback has no line rate' err
pass_if "before anything is made" [ ! -e nothing ]
weft pair --local --lat --size 8 -n 1 --expect 0.9
pass_if "and latency no share of it: status $status" [ "$status" -eq 2 ]
timeout -k 5 60 "$WEFT" pair --listen 127.0.1.1:0 --rails $rails --log error >server.out 2>server.err </dev/null &
server=$!
waiting $server server.out
weft pair --connect 127.0.1.1:"$port" --rails $rails --size 1K -n 1 --expect 0.9
pass_if "two nodes: status $status" [ "$status" -eq 2 ]
pass_if "say it, too: $(cat err)" grep -q 'loopback has no line rate' err
wait $server
status=$?
pass_if "and so does the other one: status $status: $(cat server.err)" [ "$status" -eq 2 ]
finish
