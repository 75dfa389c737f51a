#!/bin/bash
# test_collective.sh: weft collective: every operation and type verified, its columns and files, a rank that dies, wrong
# usage. No figure counts. Backends that are not installed are n/a.
. "$(dirname "$0")/loop_lib.sh"
limit=120
command -v jq >/dev/null || skip "needs the program jq"

json() { # FILE PROGRAM
    jq -e "$2" "$1" >/dev/null
}

quick="-n 2 -w 0 --quiet"
ops='["all_gather","all_reduce","alltoall","broadcast","reduce_scatter","sendrecv"]'

# ---- every operation, in both places, among 2, 3 and 4 ranks, with odd sizes
weft collective $quick --op all --size 4,1000,300K --processes 2,3,4 --json all.json
pass_if "every operation: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "quiet: $(cat out)" [ ! -s out ]
pass_if "what there is: $(jq -c '.summary' all.json)" json all.json '.schema == "weft.collective/1" and
    .exit_status == 0 and .error == null and .summary.verified and .summary.wrong_elements == 0 and
    ([.samples[].ranks] | unique) == [2, 3, 4] and ([.samples[].op] | unique) == '"$ops"' and
    ([.samples[].in_place] | unique) == [false, true] and (.samples | length) >= 6 * 2 * 3 * 2 and
    all(.samples[]; .backend == "weft" and .best and .verified_elements >= .count and .time_us.min <= .time_us.max and
        .time_us.mean > 0) and (.runs | length) == 3 and all(.runs[]; .error == null and (.facts.library | test("Weft")))'
pass_if "bandwidths are nccl-tests'" json all.json 'def near(a; b): (a - b) * (a - b) <= 1e-12 * (a + b) * (a + b);
    all(.samples[]; near(.algbw_gb_per_s; .size_bytes / .time_us.mean / 1e3) and near(.busbw_gb_per_s; .algbw_gb_per_s *
        ({all_reduce: (2 * (.ranks - 1) / .ranks), broadcast: 1, sendrecv: 1}[.op] // ((.ranks - 1) / .ranks))))'

# ---- every type and reduction
for type in float64 half bfloat16 int32 int64 uint8; do
    for redop in sum min max avg; do
        weft collective $quick --op all_reduce,reduce_scatter --size 10000 --processes 3 -d "$type" -o "$redop"
        pass_if "$type, $redop: status $status: $(cat err)" [ "$status" -eq 0 ]
    done
done

# ---- the table and the other files
weft collective -b 1K -e 4K -f 2 -n 2 --csv all.csv --profile profiles --out folder
pass_if "a table: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "its columns: $(cat out)" grep -Eq \
    '^# +size +count +type +redop +root +time +algbw +busbw +#wrong +time +algbw +busbw +#wrong$' out
pass_if "a row for each size: $(cat out)" [ "$(grep -Ec '^ +(1024|2048|4096) +(256|512|1024) +float32 +sum +-1 ' out)" -eq 3 ]
pass_if "the end: $(cat out)" grep -q '^# Out of bounds values: 0 OK$' out
pass_if "a row for each size and place: $(cat all.csv)" [ "$(grep -c '^weft,as installed,host,all_reduce,float32,sum,2,' all.csv)" -eq 6 ]
pass_if "the folder has the same" cmp -s all.csv folder/collective.csv
pass_if "and JSON" json folder/collective.json '.samples | length == 6'
profile=$(ls profiles)
pass_if "the profile's name: $profile" grep -Eqx 'profile_weft_world2_[0-9]{8}_[0-9]{6}\.txt' <<<"$profile"
pass_if "its layout: $(cat "profiles/$profile")" [ "$(sed -E 's/[0-9]+\.[0-9]+/N/g' "profiles/$profile" | sed -n '2,3p;6,7p')" = \
    'Configuration: World Size=2
Backend: weft (libweft_coll)
Tensor Size: 256 elements (N MB)
  AllReduce:     N ms | AlgBW: N GB/s | BusBW: N GB/s' ]
weft collective --size 3 --op all_reduce,alltoall -n 2
pass_if "less than an element: status $status: $(cat out err)" [ "$status" -eq 0 ]
pass_if "why it is 0 bytes: $(cat out)" [ "$(grep -c '^# 0 bytes: no whole element of float32 (4 bytes)' out)" -eq 2 ]
nothing_left || fail "something is left"

# ---- the report knows it, from both files
for file in all.csv folder/collective.json; do
    weft report "$file" --html page.html --plots plots
    pass_if "a report of $file: status $status: $(cat err)" [ "$status" -eq 0 ]
    pass_if "its figures: $(ls plots)" [ -s plots/collective-time.dat ]
    pass_if "and these" [ -s plots/collective-bandwidth.dat ]
    pass_if "and bars" [ -s plots/collective-backends.dat ]
    rm -r plots
done
sed 's/,in_place,/,/' all.csv >damaged.csv
weft report damaged.csv --html page.html
pass_if "a line with other columns: status $status, $(cat err)" [ "$status" -eq 1 ]
pass_if "says so: $(cat err)" grep -q 'line 2 has other columns than the first' err

# ---- other backends: those that are here are right, the others n/a; nothing fails
weft collective --self-test
pass_if "the self-test: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "Weft has all: $(cat out)" grep -qx 'weft     12 operations right' out
for backend in openmpi mpich gloo nccl; do
    pass_if "$backend: $(cat out)" grep -Eq "^($backend +[0-9]+ operations right(, [0-9]+ n/a)?|# n/a: $backend: .+)$" out
done
weft collective $quick --backend weft,gloo -d bfloat16 --size 1K --json gloo.json
pass_if "no bfloat16: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "it is n/a, with its reason" json gloo.json 'any(.not_available[]; .what == "gloo") or
    all(.samples[] | select(.backend == "gloo"); .not_available == "Gloo has no bfloat16")'

weft collective $quick --backend weft,gloo --op all --size 4 --json little.json
pass_if "less than an element for each rank: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "it is n/a, with its reason" json little.json 'any(.not_available[]; .what == "gloo") or
    all(.samples[] | select(.backend == "gloo" and .op == "all_gather"); .not_available | test("an element of each rank"))'

# An all-reduce and then a reduce-scatter of as many elements at the same place.
weft collective $quick --backend weft,gloo --best --op all_reduce,reduce_scatter --size 8000,4000 --place in \
    --json after.json
pass_if "one operation after the other: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "all are right: $(jq -c .summary after.json)" json after.json '.summary.verified'

# ---- a backend that hangs ends within its time, and the others go on
# A program of that name beside a copy of weft, which the ranks of the backend are.
mkdir beside
cp "$WEFT" beside/weft
ln -s "$(dirname "$WEFT")/../lib" . # its libraries, beside its folder
pretend() { # LINE...: what the ranks of Gloo do
    printf '%s\n' '#!/bin/sh' "$@" >beside/weft-coll-gloo
    chmod +x beside/weft-coll-gloo
}
facts='{"schema": "weft.rank/1", "backend": "gloo", "ranks": 2, "facts": {"library": "none"}}'
sample='{"op": "all_reduce", "size_bytes": 1024, "count": 256, "type": "float32", "redop": "sum", "in_place": true,
 "iters": 2, "mean_us": 1, "min_us": 1, "p50_us": 1, "max_us": 1, "cpu_s": 0, "wrong": 0, "checked": 512}'
say_facts='[ "$RANK" -eq 0 ] && echo '"'$facts'"
say_sample='[ "$RANK" -eq 0 ] && echo '"'$(tr -d '\n' <<<"$sample")'"
say_all="$say_facts; $say_sample"

pretend "$say_all" 'exec sleep 1000'
WEFT=$work/beside/weft weft collective --self-test --backend gloo,weft --timeout 2 --json hung.json
pass_if "a backend that hangs: status $status: $(cat err)" [ "$status" -eq 1 ]
pass_if "it is named, with what to do: $(cat err)" \
    grep -q 'gloo: not all was measured within 2 s: try it alone (--backend gloo), leave it out' err
pass_if "here, too: $(cat out)" grep -q '^# FAILED: gloo among 2 ranks: gloo: not all was measured' out
pass_if "what it had measured: $(cat out)" grep -qx 'gloo     1 operations right' out
pass_if "the next one has its turn: $(jq -c .runs hung.json)" json hung.json '[.runs[].backend] == ["gloo", "weft"]'
pretend 'while echo; do sleep 0.1; done'
WEFT=$work/beside/weft weft collective --self-test --backend gloo,weft --timeout 2
pass_if "one that talks without end: status $status: $(cat err)" [ "$status" -eq 1 ]
pass_if "ends all the same: $(cat err)" grep -q 'gloo: not all was measured within 2 s' err

pretend "$say_all" 'echo '"'"'{"done": true}'"'" 'exec sleep 1000'
WEFT=$work/beside/weft weft collective --op all_reduce --size 1K --place in --backend gloo,weft --json forced.json
pass_if "one that does not end once all is measured: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "it is said: $(cat err)" grep -q '^weft: gloo (ring), 2 ranks: all is measured, but it had not ended 10 s later' err
pass_if "what it has measured counts: $(jq -c '[.samples[].backend], .runs' forced.json)" json forced.json \
    '([.samples[].backend] | sort) == ["gloo", "weft"] and [.runs[].ended_by_force] == [true, false]'
asleep=$(find /proc/[0-9]*/cwd -maxdepth 0 -lname "$work" -execdir cat comm \; 2>/dev/null | grep -cx sleep)
pass_if "none of its ranks is left" [ "$asleep" -eq 0 ]
nothing_left || fail "something is left of a backend that hangs"

pretend "$say_facts" 'sleep 7' "$say_sample" 'echo '"'"'{"done": true}'"'"
WEFT=$work/beside/weft weft collective --op all_reduce --size 1K --place in --backend gloo --timeout 1 --duration 3 \
    --quiet --json -
pass_if "one that measures as long as it was asked to: status $status: $(cat err)" [ "$status" -eq 0 ]

# ---- a rank that dies is named, and the status is 1
"$WEFT" collective --op all_reduce --size 1M --duration 60 --processes 3 --json dead.json --quiet \
    --meeting "$work/meeting" >out 2>err </dev/null &
weft=$!
for ((tries = 0; tries < 300; tries++)); do
    rank=$(pgrep -f -- "--member 2/3/$work/meeting" | head -1)
    # It measures once it has used some time: all have met.
    [ -n "$rank" ] && [ "$(awk '{ print $14 + $15 }' "/proc/$rank/stat" 2>/dev/null || echo 0)" -gt 20 ] && break
    sleep 0.02
done
kill -KILL "$rank"
wait "$weft"
pass_if "a dead rank: status $?" [ $? -ne 0 ]
pass_if "it is named: $(cat err)" grep -Eq 'rank 2: .* ended by signal 9' err
pass_if "by others, too: $(cat err)" grep -Eq 'rank [01]: .*rank 2' err
pass_if "the result: $(jq -c .error dead.json)" json dead.json '.exit_status == 1 and (.error | test("rank 2")) and .summary.failures == 1'
nothing_left || fail "something is left after a rank has died"

# ---- ranks that others have started
for rank in 0 1 2; do
    RANK=$rank WORLD_SIZE=3 LOCAL_RANK=$rank "$WEFT" collective --processes found --meeting "$work/meeting" \
        --rails 127.0.0.1 -n 2 --size 1K,64K >"found.$rank" 2>&1 </dev/null &
    found[rank]=$!
done
wait "${found[@]}"
pass_if "rank 0 has the table: $(cat found.0)" grep -q '^# weft, as installed, 3 ranks$' found.0
pass_if "and the others nothing: $(cat found.1 found.2)" [ "$(cat found.1 found.2 | wc -c)" -eq 0 ]

# ---- of these, the first one writes the file, also where a run fails
# found NUMBER BACKENDS: two ranks, and what they have for a file
found() {
    for rank in 0 1; do
        RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank "$work/beside/weft" collective --processes found --backend "$2" \
            --meeting "$work/meet.$1" --rails 127.0.0.1 --op all_reduce --place in -n 2 --size 1K --quiet \
            --json "first.$1" >/dev/null 2>"found.$rank" </dev/null &
        found[rank]=$!
    done
    statuses=()
    for rank in 0 1; do
        wait "${found[rank]}"
        statuses+=($?)
    done
}
pretend "$say_all" '[ "$RANK" -eq 0 ] || sleep 1' 'exit 1'
found 1 weft,gloo
pass_if "a run that fails: ${statuses[*]}: $(cat found.0 found.1)" [ "${statuses[*]}" = '1 1' ]
pass_if "what the first rank has measured: $(jq -c .samples first.1)" json first.1 '[.samples[].backend] == ["weft", "gloo"]'
found 2 gloo
pass_if "no other run: ${statuses[*]}: $(cat found.0 found.1)" [ "${statuses[*]}" = '1 1' ]
pass_if "what the first rank has heard: $(jq -c .runs first.2)" json first.2 '.runs[0].facts.library == "none"'
pretend '[ "$RANK" -eq 0 ] || sleep 1' 'exit 77'
found 3 weft,gloo
pass_if "a run that cannot be: ${statuses[*]}: $(cat found.0 found.1)" [ "${statuses[*]}" = '0 0' ]
pass_if "what the first rank has measured: $(jq -c .samples first.3)" json first.3 '[.samples[].backend] == ["weft"]'

# ---- the first ranks are at the first host, as an MPI has them
cat >rsh <<'TEXT'
#!/bin/sh
echo "$1 $2" | sed 's/ .*--member \([0-9]*\).*/ \1/' >>"$PLACES"
exec sh -c "$2"
TEXT
chmod +x rsh
PLACES=$work/places weft collective $quick --op all_reduce --size 1K --hosts a,b --processes 5 --rsh ./rsh \
    --meeting "$work/blocks" --rails 127.0.0.1
pass_if "two hosts: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "who is where: $(cat places)" [ "$(sort places | tr '\n' ' ')" = 'a 0 a 1 a 2 b 3 b 4 ' ]

# ---- the meeting is where temporary files are to be
mkdir temporary
TMPDIR=$work/temporary weft collective $quick --size 1K --json here.json
pass_if "with TMPDIR: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "they meet there: $(jq -c '.runs[0].command' here.json)" json here.json \
    '.runs[0].command | contains("'"$work"'/temporary/weft-collective.")'
pass_if "and leave nothing: $(ls temporary)" [ -z "$(ls temporary)" ]
TMPDIR=$work/nowhere weft collective $quick --size 1K
pass_if "TMPDIR is not there: status $status" [ "$status" -eq 1 ]
pass_if "it is named: $(cat err)" grep -q 'nowhere/weft-collective.*name a folder by --meeting' err

# ---- wrong usage
usage() { # WORDS OPTION...
    local words=$1
    shift
    weft collective "$@"
    pass_if "weft collective $*: status $status" [ "$status" -eq 2 ]
    pass_if "weft collective $*: $(cat err)" grep -q -- "$words" err
    pass_if "weft collective $*: something on standard output" [ ! -s out ]
}
usage "is none of all_reduce" --op all_reduc
usage "twice" --op all_reduce,all_reduce
usage "is none of weft, nccl" --backend weft,mvapich
usage "twice" --backend mpi,mpich
usage "from 2 to 64, or found" --processes 1
usage "from 2 to 64, or found" --processes 2,
usage "from 2 to 64, or found" --processes 65
usage "is none of float64" -d float8
usage "is none of sum" -o prod
usage "is none of both" --place up
usage "use 0 or 1" --check all
usage "name some" --rsh ssh
usage "exclude each other" --hosts a,b --processes found
usage "meets once" --processes found --best
usage "is not for 'weft collective'" --pattern mesh
usage "are both same: give one of them another file" --json same --csv same
usage "only one of --json, --csv" --json - --csv -

weft collective --processes found
pass_if "found, and no launcher: status $status: $(cat err)" [ "$status" -eq 2 ]

# ---- what cannot be written is found out before anything is measured
touch file
for option in --json=no/such/x.json --csv=no/such/x.csv --out=file --profile=file; do
    for command in collective overlap straggler setup-cost; do
        case $command$option in overlap--[cp]* | s*--[cp]*) continue ;; esac
        weft "$command" "$option"
        pass_if "weft $command $option: status $status" [ "$status" -eq 1 ]
        pass_if "weft $command $option: $(cat err)" grep -Eq 'no/such/x.*: cannot write there|cannot write file/' err
        pass_if "weft $command $option: something was measured: $(cat out)" [ ! -s out ]
    done
done
weft collective --backend nccl --memory host
pass_if "nothing that could be measured: status $status: $(cat err)" [ "$status" -eq 77 ]
pass_if "has no verdict on values: $(cat out)" [ "$(grep -c 'Out of bounds' out)" -eq 0 ]
weft topo --backend weft
pass_if "an option of two kinds: $(cat err)" grep -q "'weft mesh'.*'weft collective'" err

finish
