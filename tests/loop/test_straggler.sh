#!/bin/bash
# test_straggler.sh: weft straggler: a rank that is delayed is named, its files, the deadline of a barrier, ranks of a
# launcher, wrong usage. By how much it was late is a figure of this machine: none counts.
. "$(dirname "$0")/loop_lib.sh"
limit=120
command -v jq >/dev/null || skip "needs the program jq"

json() { # FILE PROGRAM
    jq -e "$2" "$1" >/dev/null
}

# ---- long delays, so that no busy processor makes another as late
weft straggler --processes 3 --barriers 20 --every 5 --delay-ms 400 --threshold-ms 100 --json late.json --out folder
pass_if "a run: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "what there is: $(cat late.json)" json late.json '.schema == "weft.straggler/1" and .exit_status == 0 and
    .error == null and .deadline == null and .asked.delayed_rank == "any" and (.facts.names | length) == 3 and
    (.ranks | length) == 3 and .end.took_s > 1.6 and .summary.passed and .summary.delayed == 4 and
    .summary.delayed_and_named == 4'
pass_if "each of them: $(jq -c .events late.json)" json late.json '[.events[] | select(.delayed_ms > 0)] |
    map(.barrier) == [5, 10, 15, 20] and all(.[]; .named and .late_ms >= 100 and .after_ms > 0 and .delayed_ms >= 400)'
pass_if "a point of the curve for each barrier" json late.json '[.curve[].to] == [range(1; 21)]'
pass_if "the folder has the same" cmp -s late.json folder/straggler.json
pass_if "the table: $(cat out)" [ "$(grep -c ' process [0-9]*): named$' out)" -eq 4 ]
pass_if "its sum: $(cat out)" grep -q '^# Delayed on purpose: 4, named 4, ' out
cp late.json first.json

# ---- the same seed delays the same ranks, and a rank that is chosen is the one
weft straggler --processes 3 --barriers 20 --every 5 --delay-ms 400 --threshold-ms 100 --quiet --json late.json
pass_if "quiet: $(cat out)" [ ! -s out ]
pass_if "the same ranks" [ "$(jq -c '[.events[] | select(.delayed_ms > 0) | .rank]' late.json)" = \
    "$(jq -c '[.events[] | select(.delayed_ms > 0) | .rank]' first.json)" ]
weft straggler --processes 4 --barriers 3 --every 1 --delay-ms 300 --threshold-ms 100 --delayed-rank 2 --json -
pass_if "JSON alone on standard output: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "rank 2, always: $(jq -c .events out)" json out '[.events[] | select(.delayed_ms > 0 and .named) | .rank] == [2, 2, 2]'
pass_if "and it is the one of the ranks" json out '.ranks[2].delayed_and_named == 3 and .ranks[1].delayed == 0'

# ---- nobody is delayed: who is late by itself is a finding, and no failure
weft straggler --delay-ms 0 --barriers 50 --threshold-ms 3000 --json none.json
pass_if "nobody: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "no event: $(jq -c .events none.json)" json none.json '.events == [] and .summary.delayed == 0'

# ---- nobody can be named, or is delayed
weft straggler --processes 2 --barriers 4 --every 2 --delay-ms 1 --threshold-ms 5000
pass_if "below the threshold: status $status" [ "$status" -eq 1 ]
pass_if "says so: $(cat out)" grep -q '^# A delay of 1 ms is below --threshold-ms: no rank is named for it$' out
pass_if "and not by how much: $(cat out)" grep -q '^# Delayed on purpose: 2, named 0, within 10 % of the delay 0$' out
weft straggler --processes 2 --barriers 4 --every 5
pass_if "too few barriers: $(cat out)" grep -q ', 4 barriers, nobody delayed: --every 5 is more than there are$' out
weft straggler --processes found
pass_if "found, and no launcher: status $status: $(cat err)" [ "$status" -eq 2 ]

# ---- the report knows it
weft report first.json --html page.html --plots plots
pass_if "a report: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "its verdict: $(cat out)" grep -q '^Delayed on purpose before 4 barriers, named at 4 of them;' out
pass_if "its figures: $(ls plots)" [ -s plots/straggler-lateness.dat ]
pass_if "who was late: $(cat plots/straggler-lateness.dat)" grep -q 'delayed on purpose, and named' plots/straggler-lateness.dat
pass_if "and bars" [ -s plots/straggler-ranks.dat ]
jq '.events = 7 | .ranks = {} | .curve = [[]] | .facts = null | .summary = []' first.json >damaged.json
weft report damaged.json --html page.html
pass_if "one that is damaged is read as far as it goes: status $status: $(cat err)" [ "$status" -eq 0 ]

# ---- the deadline of a barrier: the group names who has not come
weft straggler --processes 3 --every 2 --delay-ms 4000 --delayed-rank 1 --timeout 1 --json dead.json
pass_if "a deadline: status $status: $(cat err)" [ "$status" -eq 1 ]
pass_if "who: $(jq -c .deadline dead.json)" json dead.json '.deadline.barrier == 2 and .exit_status == 1 and
    (.deadline.text | test("barrier 2: rank 1 \\(.*\\) did not enter it within [0-9]+ ms"))'
pass_if "and people are told: $(cat out)" grep -q '^# The deadline: barrier 2: rank 1 (.*) did not enter' out
nothing_left || fail "something is left"

# The process of a rank, once it is among its barriers: each is a sleep and a wait, and before them it rarely waits.
among_barriers() { # MEMBER
    local process tries switches
    process=$(rank_at_work "$1" 0)
    for ((tries = 0; tries < 1000; tries++)); do
        switches=$(awk '/^voluntary/ { print $2 }' "/proc/$process/status")
        [ "${switches:-0}" -gt 500 ] && break
        sleep 0.02
    done
    echo "$process"
}

# ---- a rank that stands still: once the deadline has ended the others, it is named and ended, rank 0 as well
for rank in 0 2; do
    "$WEFT" straggler --processes 3 --barriers 1000000 --interval-ms 5 --delay-ms 0 --timeout 2 --json "still.$rank.json" \
        --meeting "$work/still.$rank" >"still.$rank.out" 2>"still.$rank.err" </dev/null &
    still[rank]=$!
    kill -STOP "$(among_barriers "$rank/3/$work/still.$rank")"
done
begun=$SECONDS
for rank in 0 2; do
    wait "${still[rank]}"
    status=$?
    pass_if "rank $rank stands still: status $status" [ "$status" -eq 1 ]
    pass_if "it is named: $(cat "still.$rank.err")" grep -Eq "rank $rank (still ran|.* is lost)" "still.$rank.err"
    pass_if "in the file, too" json "still.$rank.json" ".error | test(\"rank $rank (still ran|.* is lost)\")"
done
pass_if "the end comes soon: after $((SECONDS - begun)) s" [ $((SECONDS - begun)) -lt 60 ]
nothing_left || fail "something is left of a rank that stood still"

# ---- ranks that others have started
for rank in 0 1 2; do
    RANK=$rank WORLD_SIZE=3 LOCAL_RANK=$rank "$WEFT" straggler --processes found --meeting "$work/meeting" \
        --rails 127.0.0.1 --barriers 4 --every 2 --delay-ms 300 --threshold-ms 100 >"found.$rank" 2>&1 </dev/null &
    found[rank]=$!
done
wait "${found[@]}"
pass_if "rank 0 has the table: $(cat found.0)" grep -q '^# weft straggler: 3 ranks, 4 barriers' found.0
pass_if "and the others nothing: $(cat found.1 found.2)" [ "$(cat found.1 found.2 | wc -c)" -eq 0 ]

# ---- each host has a rank
printf '#!/bin/sh\nshift\nexec sh -c "$*"\n' >rsh
chmod +x rsh
weft straggler --hosts a,b,c,d,e --rsh ./rsh --meeting "$work/hosts" --rails 127.0.0.1 --barriers 2 --delay-ms 0 --json hosts.json
pass_if "five hosts: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "have a rank each: $(jq -c .facts.names hosts.json)" json hosts.json '.facts.names | length == 5'
# None of them can be started: the result says so, and is not that of a run before.
printf '#!/bin/sh\necho "no way to $1" >&2\nexit 1\n' >rsh
weft straggler --hosts a,b --rsh ./rsh --meeting "$work/nobody" --rails 127.0.0.1 --barriers 2 --delay-ms 0 --json hosts.json
pass_if "nobody has spoken: status $status" [ "$status" -eq 1 ]
pass_if "the result says so: $(cat err hosts.json)" json hosts.json '.exit_status == 1 and (.error | type) == "string" and
    .facts == null and .ranks == [] and (.summary.passed | not)'
pass_if "and there is no table: $(cat out)" [ ! -s out ]

# ---- wrong usage
usage() { # WORDS OPTION...
    local words=$1
    shift
    weft straggler "$@"
    pass_if "weft straggler $*: status $status" [ "$status" -eq 2 ]
    pass_if "weft straggler $*: $(cat err)" grep -q -- "$words" err
    pass_if "weft straggler $*: something on standard output" [ ! -s out ]
}
usage "expected a number from 1" --barriers 0
usage "expected a number from 0" --delay-ms 1.5
usage "expected a number from 1" --every -1
usage "expected the number of a rank" --delayed-rank last
usage "the ranks are 0 to 3" --delayed-rank 4
usage "takes one number of ranks" --processes 2,4
usage "from 2 to 64, or found" --processes 1
usage "name some" --rsh ssh
usage "is not for 'weft straggler'" --size 1M

finish
