#!/bin/bash
# test_sweep.sh: weft sweep: its table and files, going on after a cut, two nodes, runs that fail, wrong usage. No figure
# counts.
configs=$(readlink -f "$(dirname "$0")/../../configs/sweeps")
. "$(dirname "$0")/loop_lib.sh"
limit=120
command -v jq >/dev/null || skip "needs the program jq"

quick="--size 64K -n 4 --warmup 1 --rounds 2"

json() { # FILE PROGRAM
    jq -e "$2" "$1" >/dev/null
}

runs() { # JOURNAL: runs in it
    echo $(($(wc -l <"$1") - 1))
}

narrow() {
    pass_if "no line is wider than 80: $(cat out)" awk 'length > 80 { wide = 1 } END { exit wide }' out
}

# ---- one machine: the table, and all that is written
weft sweep $quick --vary chunk=64K,512K --vary window=16..64x2 --out one --json all.json --csv all.csv --save best.conf
pass_if "status $status: $(cat err)" [ "$status" -eq 0 ]
narrow
pass_if "what is run: $(cat out)" grep -q '^weft sweep of weft pair: 6 points, at most 16 runs$' out
pass_if "where: $(cat out)" grep -q '^loopback: says nothing about a network$' out
pass_if "a head: $(cat out)" grep -Eq '^chunk +window +GB/s +spread +of default +CPU s/GB +runs$' out
pass_if "a line for each point: $(cat out)" [ "$(grep -Ec '^ *(64K|512K) +(16|32|64) ' out)" -eq 6 ]
pass_if "the default is one of them: $(cat out)" grep -Eq '^ *512K +64 +[0-9.]+ +[0-9]+ % +default ' out
pass_if "a verdict: $(cat out)" grep -Eq 'no point was faster than the default|no point differs|times as fast as the default|too few runs' \
    <(flat out)
pass_if "the result: $(jq -c 'del(.config)' all.json)" json all.json '.schema == "weft.sweep/1" and .command == "sweep" and
    .measure == "pair" and .metric == "bandwidth" and .unit == "GB/s" and .loopback and .complete and .error == null and
    .points_planned == 6 and (.points | length) == 6 and (.automatic | not) and (.verdict | length) > 0 and
    ([.points[] | select(.default)] | length) == 1 and all(.points[]; .runs >= 2 and .failures == 0 and .value > 0) and
    (.runs | length) == ([.points[].runs] | add) and all(.runs[]; .value > 0 and (.sets | length) == 1) and
    (.best.settings | keys) == ["chunk", "window"] and .config.rounds.value == 2'
pass_if "the folder has the same" cmp -s all.json one/sweep.json
pass_if "a journal: $(cat one/sweep.jsonl)" [ "$(runs one/sweep.jsonl)" -eq "$(jq '.runs | length' all.json)" ]
pass_if "the rows are the runs: $(cat all.csv)" [ "$(($(wc -l <all.csv) - 1))" -eq "$(jq '.runs | length' all.json)" ]
pass_if "the columns: $(head -1 all.csv)" grep -q '^run,stage,point,chunk,window,default,value,unit,cpu_s_per_gb,error$' all.csv
pass_if "the settings say how they were found: $(cat best.conf)" grep -q '^# Found by weft sweep ' best.conf
pass_if "WEFT_CONFIG takes them" env WEFT_CONFIG=best.conf "$WEFT" config chunk
nothing_left || fail "something is left"

# ---- the same command again runs nothing; another sweep is not mixed with it
cp one/sweep.jsonl before
weft sweep $quick --vary chunk=64K,512K --vary window=16..64x2 --out one
pass_if "again: status $status" [ "$status" -eq 0 ]
pass_if "no run was added" cmp -s before one/sweep.jsonl
pass_if "it says so: $(flat out)" grep -q "were made before" <(flat out)
weft sweep $quick --vary chunk=64K,512K --seed 7 --out one
pass_if "another sweep: status $status, $(cat err)" [ "$status" -eq 2 ]
pass_if "why: $(cat err)" grep -q "is the journal of another sweep: its vary is" err

# ---- killed in the middle: no process stays, and the next one goes on
"$WEFT" sweep --size 64K -n 4 --rounds 5 --vary window=1..8 --out cut >/dev/null 2>&1 &
sweep=$!
until [ -e cut/sweep.jsonl ] && [ "$(runs cut/sweep.jsonl)" -ge 3 ]; do
    kill -0 $sweep 2>/dev/null || { fail "the sweep has ended" && break; }
    sleep 0.02
done
kill -KILL $sweep
wait $sweep 2>/dev/null
pass_if "what it ran is gone, too" nothing_left
done_before=$(runs cut/sweep.jsonl)
head -c -1 cut/sweep.jsonl >before # whole lines, perhaps without the end of the last
printf '{"half a li' >>cut/sweep.jsonl
weft sweep --size 64K -n 4 --rounds 5 --vary window=1..8 --out cut
pass_if "it goes on: status $status, $(cat err)" [ "$status" -eq 0 ]
pass_if "from where it was: $(flat out)" grep -q "$done_before of them were made before" <(flat out)
pass_if "the first runs are the same" cmp -s before <(head -c "$(stat -c %s before)" cut/sweep.jsonl)
pass_if "every line is one" json cut/sweep.jsonl type
cp cut/sweep.json whole.json
sed -i 5d cut/sweep.jsonl
weft sweep --size 64K -n 4 --rounds 5 --vary window=1..8 --out cut
pass_if "a journal with a line less: status $status" [ "$status" -eq 2 ]
pass_if "why: $(cat err)" grep -q "this is not the run that comes there" err
pass_if "what was found before stays" cmp -s whole.json cut/sweep.json
pass_if "all points have their rounds, or were given up" json cut/sweep.json \
    'all(.points[]; .runs >= 5 or (.given_up and .runs >= 3)) and .complete'

# ---- interrupted: what there is, and how to go on
"$WEFT" sweep --size 64K -n 4 --rounds 5 --vary window=1..8 --out stopped >out 2>err &
sweep=$!
until [ -e stopped/sweep.jsonl ] && [ "$(runs stopped/sweep.jsonl)" -ge 2 ]; do
    kill -0 $sweep 2>/dev/null || { fail "the sweep has ended" && break; }
    sleep 0.02
done
kill -INT $sweep
wait $sweep
status=$?
pass_if "interrupted: status $status" [ "$status" -eq 1 ]
pass_if "it says so: $(cat err)" grep -q "interrupted by SIGINT" err
pass_if "how to go on: $(flat out)" grep -q "The same command goes on with run" <(flat out)
pass_if "in the result, too" json stopped/sweep.json '.interrupted and (.complete | not) and .error_code == "EINTR"'
nothing_left || fail "something is left"

# ---- a point that cannot be run costs itself alone
weft sweep $quick --vary 'rails=127.0.1.1|203.0.113.7' --json failed.json
pass_if "a point fails: status $status" [ "$status" -eq 0 ]
pass_if "why: $(flat out)" grep -q 'failed: rails=203.0.113.7: .*203.0.113.7' <(flat out)
pass_if "not run more than twice" json failed.json '[.points[] | select(.failures > 0)] | length == 1 and
    .[0].failures == 2 and .[0].runs == 2 and .[0].value == null and (.[0].error | length) > 0'
weft sweep $quick --rails 203.0.113.7 --vary window=1,2
pass_if "none can be: status $status" [ "$status" -ne 0 ]
weft sweep $quick --vary 'rails=203.0.113.7|203.0.113.8'
pass_if "nothing but the default can be: status $status" [ "$status" -eq 1 ]
pass_if "it says so: $(flat out)" grep -q 'no point but the default could be measured' <(flat out)

# ---- runs that measured other messages, as where the largest gave way to memory: here the first run, in its journal
weft sweep $quick --vary window=16,32 --out sizes --json same.json
pass_if "all alike: status $status" json same.json 'all(.runs[]; .error == null)'
jq -c 'if .sets then .sets[0].size_bytes *= 2 else . end' sizes/sweep.jsonl | head -2 >sizes/cut
mv sizes/cut sizes/sweep.jsonl
weft sweep $quick --vary window=16,32 --out sizes --json other.json
pass_if "others are not compared: $(jq -c .runs other.json)" json other.json '(.runs | length) > 1 and
    all(.runs[1:][]; .value == null and (.error | contains("(sets: 1, up to 64K, instead of 1, up to 128K)")))'
weft sweep -n 4 --warmup 1 --rounds 1 --vary size=64K,128K --json sized.json
pass_if "but where sizes are varied" json sized.json 'all(.runs[]; .value > 0)'

# ---- many settings: still no line beyond 80
weft sweep --size 64K -n 2 --warmup 1 --rounds 1 --vary window=16,64 --vary chunk=256K,512K --vary channels=1,2 \
    --vary socket_buffer=0,1M
pass_if "four settings: status $status" [ "$status" -eq 0 ]
narrow

# ---- a program in a folder whose name is no UTF-8, as JSON has to be
mkdir $'w\xe4g'
cp "$WEFT" $'w\xe4g/weft'
ln -s "$(dirname "$WEFT")/../lib" . # its libraries, beside its folder
$'w\xe4g/weft' sweep --size 64K -n 4 --warmup 1 --rounds 1 --vary window=8,64 --json name.json >out 2>err
status=$?
pass_if "a name that is no UTF-8: status $status, $(cat err)" [ "$status" -eq 0 ]
pass_if "its runs count" json name.json 'all(.points[]; .failures == 0) and all(.runs[]; .command | contains("w?g/weft"))'

# ---- what the environment says of outputs is for the sweep, and files that it would write are its own
WEFT_OUT=env WEFT_VARY=window=1,2 WEFT_EXPECT=0.5 WEFT_LOG_DIR=logs weft sweep $quick
pass_if "settings from the environment: status $status, $(cat err)" [ "$status" -eq 0 ]
pass_if "no run writes: $(ls env)" [ "$(ls env | tr '\n' ' ')" = "sweep.csv sweep.json sweep.jsonl " ]
pass_if "nor a log" [ ! -e logs ]

# ---- ping-pong, and a mesh
# What is set for all runs, and does nothing here, is ignored.
WEFT_INFLIGHT=4 WEFT_DURATION=3 weft sweep --lat --size 8 -n 50 --rounds 2 --vary spin_us=0,50 --json lat.json
pass_if "ping-pong: status $status, $(cat err)" [ "$status" -eq 0 ]
pass_if "its unit" json lat.json '.unit == "us" and .metric == "latency" and all(.points[]; .value > 0)'
weft sweep --measure mesh --endpoints 2 $quick --vary rails=1..2 --json mesh.json
pass_if "a mesh: status $status, $(cat err)" [ "$status" -eq 0 ]
pass_if "all at once" json mesh.json '.measure == "mesh" and all(.runs[].sets[]; .mode == "loaded") and
    ([.points[] | select(.default)][0].settings.rails == "2")'

# ---- the sweeps of seed 004
for name in affinity window chunk rails channels; do
    weft sweep --config "$configs/$name.sweep" --size 64K -n 4 --rounds 1 --json "$name.json"
    pass_if "$name: status $status, $(cat err)" [ "$status" -eq 0 ]
    pass_if "$name has its table: $(cat out)" grep -q 'CPU s/GB  runs$' out
    narrow
done
pass_if "streams on one rail and on several" json channels.json '[.points[].settings | "\(.rails)x\(.channels)"] |
    contains(["1x8", "2x4", "4x2"])'
pass_if "1 to 4 rails" json rails.json '[.points[].settings.rails] == ["1", "2", "3", "4"]'

# ---- two nodes
"$WEFT" sweep --listen 127.0.0.1:0 --rails 127.0.1.1,127.0.2.1 >s.out 2>s.err </dev/null &
server=$!
waiting $server s.out
weft sweep --connect "127.0.0.1:$port" --rails 127.0.1.1,127.0.2.1 $quick --vary rails=1..3 --vary window=8,64 --json two.json
pass_if "two nodes: status $status, $(cat err)" [ "$status" -eq 0 ]
wait $server
status=$?
pass_if "node0: status $status, $(cat s.err)" [ "$status" -eq 0 ]
pass_if "what node0 said: $(cat s.out)" grep -q "^  weft sweep --connect ADDRESS:$port$" s.out
pass_if "a rail that is not there: $(cat out)" grep -q '^left out of rails: 1 value, as both nodes have 2$' out
pass_if "all runs worked" json two.json 'all(.points[]; .failures == 0) and (.points | length) >= 4 and (.loopback | not)'
nothing_left || fail "something is left"

# The default outside the grid is in force at both.
"$WEFT" sweep --listen 127.0.0.1:0 --rails 127.0.1.1 >d.out 2>d.err </dev/null &
server=$!
waiting $server d.out
weft sweep --connect "127.0.0.1:$port" --rails 127.0.1.1 --window 7 --vary window=16,32 --size 64K -n 4 --rounds 1 --json d.json
wait $server
pass_if "a default of one's own: status $status, $(cat err)" [ "$status" -eq 0 ]
pass_if "both halves have what a point says: $(jq -c '.runs[] | [.command, .server_command]' d.json)" json d.json '
    . as $all | ([.points[] | {key: "\(.point)", value: .settings.window}] | from_entries) as $window |
    all($all.runs[]; . as $run | "--set=window=\($window["\($run.point)"])" as $word |
        ($run.command | contains($word)) and ($run.server_command | contains($word)))'

# Rails that stay as they are belong to each node.
"$WEFT" sweep --listen 127.0.0.1:0 --rails 127.0.1.1,127.0.2.1 >r.out 2>r.err </dev/null &
server=$!
waiting $server r.out
weft sweep --connect "127.0.0.1:$port" --rails 127.0.3.1,127.0.4.1 --vary rails=1 --size 64K -n 4 --rounds 1 --json r.json
wait $server
pass_if "rails of one's own: status $status, $(cat err)" [ "$status" -eq 0 ]
pass_if "node0 has its own: $(jq -c '.runs[].server_command' r.json)" json r.json 'all(.runs[];
    (.server_command | contains("rails=127.0.1.1") and (contains("127.0.3.1") | not)) and
    (.command | contains("rails=127.0.3.1") and (contains("127.0.1.1") | not)))'

# Killed on one side: the other ends.
"$WEFT" sweep --listen 127.0.0.1:0 --timeout 2 >k.out 2>k.err </dev/null &
server=$!
waiting $server k.out
"$WEFT" sweep --connect "127.0.0.1:$port" --timeout 2 --size 64K -n 4 --vary window=1..8 --out lost >c.out 2>c.err </dev/null &
client=$!
until [ -e lost/sweep.jsonl ] && [ "$(runs lost/sweep.jsonl)" -ge 1 ]; do
    kill -0 $client 2>/dev/null || { fail "the client has ended: $(cat c.err)" && break; }
    sleep 0.02
done
kill -KILL $server
wait $client
status=$?
pass_if "node0 died: status $status, $(cat c.err)" [ "$status" -eq 1 ]
pass_if "node1 has what there was: $(flat c.out)" grep -q "The same command goes on" <(flat c.out)
nothing_left || fail "something is left"

# ---- wrong usage
told() { # STATUS WORD WHAT
    pass_if "$3: status $status instead of $1: $(cat err)" [ "$status" -eq "$1" ]
    pass_if "$3: $(cat err)" grep -q -e "$2" err
}
expect 2 'what is to be varied' sweep
expect 2 "did you mean 'window'" sweep --vary windw=1,2
expect 2 'is no range' sweep --vary window=8..1
expect 2 'vary another setting' sweep --vary out=a,b
expect 2 'with --measure mesh' sweep --vary window=1,2 --pattern pairs
expect 2 'with --measure pair' sweep --measure mesh --vary window=1,2 --src node0:host0
expect 2 'with --measure pair' sweep --measure mesh --lat --vary window=1,2
expect 2 'inflight does nothing for latency' sweep --lat --vary inflight=1,2
expect 2 'a sweep measures Weft alone' sweep --vary window=1,2 --backend null
expect 2 'takes at least' sweep --auto --runs 5 --vary window=1..8 --vary channels=1..4
expect 2 'is not for' pair --local --vary window=1,2
expect 2 'is not for' pair --local --auto
expect 2 'mesh|pair' sweep --measure peers --vary window=1,2
expect 1 'cannot write' sweep $quick --vary window=1,2 --save /nowhere/best.conf --out nothing
pass_if "before anything was run" [ ! -e nothing ]
weft sweep $quick --vary window=1,2 --out made --save made/best.conf
pass_if "--save in the folder that --out makes: status $status, $(cat err)" [ -s made/best.conf ]
expect 2 'give one of them another file' sweep --vary window=1,2 --save f --json f
expect 2 'name a file' sweep --vary window=1,2 --save -
ln -s not_yet link.conf
expect 2 'journal of another sweep' sweep $quick --vary window=1,2 --out one --save link.conf
pass_if "what --save leads to is not touched" [ -L link.conf ]
mkfifo pipe.conf # that nobody reads yet
expect 2 'journal of another sweep' sweep $quick --vary window=1,2 --out one --save pipe.conf
expect 2 'use it with --auto' sweep --vary window=1,2 --runs 50
expect 2 'so few points are all run' sweep --auto --runs 20 --vary window=1..8
expect 2 'leave them out with --listen' sweep --listen 127.0.0.1:0 --vary window=1,2
"$WEFT" pair --listen 127.0.0.1:0 --timeout 2 >o.out 2>o.err </dev/null &
server=$!
waiting $server o.out
weft sweep --connect "127.0.0.1:$port" --vary window=1,2
pass_if "another command there: $(cat err)" grep -q "start the same command on both" err
kill $server 2>/dev/null
wait $server
finish
