#!/bin/bash
# test_setup_cost.sh: weft setup-cost: what is made anew, its steps and files, backends that are here or n/a, wrong usage. No
# figure counts but that a whole is the sum of its parts.
. "$(dirname "$0")/loop_lib.sh"
limit=120
command -v jq >/dev/null || skip "needs the program jq"

json() { # FILE PROGRAM
    jq -e "$2" "$1" >/dev/null
}

# ---- Weft among 2 and 3 ranks
weft setup-cost --processes 2,3 -n 4 --size 1000 --json weft.json --out folder
pass_if "a run: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "what there is: $(cat weft.json)" json weft.json '.schema == "weft.setup_cost/1" and .exit_status == 0 and
    .error == null and .size_bytes == 1000 and .not_available == [] and .summary.passed and (.runs | length) == 2 and
    all(.runs[]; .error == null and (.facts.library | test("Weft")))'
pass_if "a row of each kind: $(jq -c '[.rows[] | [.ranks, .anew, .iters]]' weft.json)" json weft.json '
    [.rows[] | [.ranks, .anew, .iters]] == [range(2; 4) as $n | [$n, "cold", 1], [$n, "kept", 4], [$n, "group", 4],
        [$n, "context and group", 4]]'
pass_if "all iterations" json weft.json '.iterations | length == 26'
pass_if "no iteration is shorter than its steps and its operation" json weft.json 'all(.iterations[];
    .operation_us > 0 and .us * 1.001 + 1 >= .operation_us + ([.steps_us[]] | add // 0))'
pass_if "the steps" json weft.json 'all(.rows[] | select(.anew != "kept"); (.steps_us | keys) ==
    ["close", "connect", "context", "listen", "members", "names", "tree"] and .steps_us.names > 0 and .steps_us.connect > 0)'
pass_if "what is kept is no step" json weft.json 'all(.rows[]; (.anew != "kept" or .steps_us == {}) and
    ((.anew == "context and group" or .anew == "cold") == ((.steps_us.context // 0) > 100)))'
pass_if "the folder has the same" cmp -s weft.json folder/setup_cost.json
pass_if "the table: $(cat out)" [ "$(grep -Ec '^weft +[23]  (cold|kept|group|context and group) +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.e+]+$' out)" -eq 8 ]
pass_if "where the time went: $(cat out)" [ "$(grep -c '^#   of that, ms: .*names .*, connect ' out)" -eq 6 ]
nothing_left || fail "something is left"

# ---- the report knows it
weft report weft.json --html page.html --plots plots
pass_if "a report: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "its verdict: $(flat out)" grep -q 'Weft, 3 ranks, context and group made anew: [0-9.e+]* ms an iteration' <(flat out)
pass_if "its figures: $(ls plots)" [ -s plots/setup-time.dat ]
pass_if "and the steps" [ -s plots/setup-steps.dat ]
jq '.rows = [1, {"steps_us": {"names": "x"}, "time_us": []}] | .not_available = 3' weft.json >damaged.json
weft report damaged.json --html page.html
pass_if "one that is damaged is read as far as it goes: status $status: $(cat err)" [ "$status" -eq 0 ]

# ---- other backends: those that are here have rows, the others are n/a
weft setup-cost --backend weft,nccl,mpi,gloo -n 2 --quiet --json -
pass_if "all of them: status $status: $(cat err)" [ "$status" -eq 0 ]
for backend in openmpi mpich gloo; do
    pass_if "$backend: $(jq -c .not_available out)" json out "([.rows[] | select(.backend == \"$backend\") | .anew] as \$rows |
        (\$rows | length) == 3 and \$rows[:2] == [\"cold\", \"kept\"] and (\$rows[2] | test(\"communicator|context\"))) or
        any(.not_available[]; .what == \"$backend\")"
done
pass_if "no NCCL: $(jq -c .not_available out)" json out 'any(.not_available[]; .what == "nccl" and (.reason | test("GPU")))'

# ---- ranks that others have started
for rank in 0 1; do
    RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank "$WEFT" setup-cost --processes found --meeting "$work/meeting" \
        --rails 127.0.0.1 -n 2 >"found.$rank" 2>&1 </dev/null &
    found[rank]=$!
done
wait "${found[@]}"
pass_if "rank 0 has the table: $(cat found.0)" grep -Eq '^weft +2  context and group ' found.0
pass_if "and the other one nothing: $(cat found.1)" [ ! -s found.1 ]

RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 weft setup-cost --processes found --meeting "$work/alone" --rails 127.0.0.1 -n 2 \
    --json alone.json
pass_if "one rank: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "its iterations took time: $(jq -c .iterations alone.json)" json alone.json '.iterations | length > 0 and
    all(.[]; .us > 0 and .operation_us > 0)'

# ---- for one that stands still the other waits as long as --timeout says
for rank in 0 1; do
    RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank "$WEFT" setup-cost --processes found --meeting "$work/still" \
        --rails 127.0.0.1 -n 1000000 --timeout 2 >"still.$rank" 2>&1 </dev/null &
    still[rank]=$!
done
rank_at_work "found/$work/still" >process
for process in $(pgrep -f -- "--member found/$work/still"); do
    grep -qzx 'RANK=1' "/proc/$process/environ" && kill -STOP "$process"
done
begun=$SECONDS
wait "${still[0]}"
pass_if "it says what it has waited for: $(cat still.0)" grep -Eq 'rank 1 |not all members have met within 2000 ms' still.0
pass_if "no longer: after $((SECONDS - begun)) s" [ $((SECONDS - begun)) -lt 14 ]
kill "${still[1]}"
wait "${still[1]}"

# ---- wrong usage
usage() { # WORDS OPTION...
    local words=$1
    shift
    weft setup-cost "$@"
    pass_if "weft setup-cost $*: status $status" [ "$status" -eq 2 ]
    pass_if "weft setup-cost $*: $(cat err)" grep -q -- "$words" err
    pass_if "weft setup-cost $*: something on standard output" [ ! -s out ]
}
usage "takes one" --size 1K,2K
usage "a number from 1 up" --iters auto
weft setup-cost --help
pass_if "the help promises no auto: $(grep -A1 -e --iters out)" grep -q -- '--iters N ' out
usage "multiple of 4 bytes" --size 1001
usage "at least 4" --size 0
usage "iters" -n 0
usage "from 2 to 64, or found" --processes 1
usage "is none of weft, nccl" --backend mvapich
usage "name a folder by --meeting" --processes found
usage "is not for 'weft setup-cost'" --op all_reduce
weft setup-cost --backend nccl
pass_if "nothing but NCCL: status $status" [ "$status" -eq 77 ]
weft setup-cost --size 1T
pass_if "more than there is memory for: status $status: $(cat err)" [ "$status" -eq 77 ]
pass_if "says so: $(cat out)" grep -Eq '^# n/a: weft: needs .* of memory, and .* is left' out

finish
