#!/bin/bash
# test_overlap.sh: weft overlap: gradients verified in both styles, its table and files, ranks that die, wrong usage. No
# time counts. Backends that are not installed are n/a.
. "$(dirname "$0")/loop_lib.sh"
limit=120
command -v jq >/dev/null || skip "needs the program jq"

json() { # FILE PROGRAM
    jq -e "$2" "$1" >/dev/null
}

small="--layers 6 --layer-mb 1 -w 0 -n 2"

# ---- both styles, sizes of buckets, numbers of ranks
weft overlap $small --bucket-mb 1,4 --style all_reduce,server --processes 2,3 --json all.json
pass_if "it runs: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "a row for each: $(cat out)" [ "$(grep -Ec '^weft +[23] (all_reduce|server) +[14] +[26] ' out)" -eq 8 ]
pass_if "what computes: $(cat out)" grep -Eq \
    '^# 6 layers of 1 MiB of gradients, batch [0-9]+, computed by (OpenBLAS, one thread|a plain loop, .*)$' out
# 6 MiB of float32, in three modes of two iterations, at each rank of both styles and sizes
elements=$((6 * 262144 * 3 * 2 * (2 + 3) * 4))
pass_if "all is verified: $(cat out)" grep -qx "# Gradients verified: $elements elements, 0 wrong: OK" out
pass_if "what there is: $(jq -c .summary all.json)" json all.json '.schema == "weft.overlap/1" and .exit_status == 0 and
    .error == null and .summary.verified and .summary.wrong_elements == 0 and (.cases | length) == 8 and
    (.runs | length) == 2 and all(.cases[]; (.iterations | length) == 2 and .batch > 0 and .wrong_elements == 0)'
pass_if "buckets hold all layers" json all.json 'all(.cases[]; .buckets == (if .bucket_bytes == 1048576 then 6 else 2 end)
    and .last_bucket_bytes == (if .bucket_bytes == 1048576 then 1 else 2 end) * 1048576)'
pass_if "the hidden share is of the wall clock" json all.json 'def near(a; b): (a - b) * (a - b) < 1e-9;
    all(.cases[]; . as $case | [.iterations[] | (.serial_s - .overlapped_s) / .communicate_s] |
        near(min; $case.hidden.min) and near(max; $case.hidden.max))'
pass_if "a bucket begins when its layers are done, and after the one before it" json all.json 'all(.cases[];
    (.layers / .buckets | ceil) as $few | all(.timeline[]; .layers as $layers | .buckets as $buckets |
        ($layers | length) == 6 and all($layers[]; .[0] <= .[1]) and
        all(range($buckets | length); $buckets[.] as $bucket |
            $bucket[0] <= $bucket[1] and $bucket[1] <= $bucket[2] and (. == 0 or $buckets[. - 1][2] <= $bucket[1]))))
    and all(.cases[].timeline.overlapped; .buckets[-1][0] >= .layers[-1][1])
    and all(.cases[].timeline.serial; .layers[-1][1] as $over | all(.buckets[]; .[0] >= $over))'
nothing_left || fail "something is left"

# ---- the report, with a drawing of the first cases
weft report all.json --html page.html --plots plots
pass_if "a report: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "its verdict: $(cat out)" grep -q '^All elements of gradients that were verified are right' out
pass_if "its drawings: $(ls plots)" [ "$(ls plots/overlap-timeline*.svg | wc -l)" -eq 8 ]
# 6 layers in each mode, as many buckets with a stroke each, and the ground
pass_if "bars of layers and buckets" [ "$(grep -c '<rect x=' plots/overlap-timeline.svg)" -eq $((2 * (6 + 2 * 6))) ]
pass_if "curves: $(ls plots)" filled plots/overlap-hidden.dat plots/overlap-times.dat plots/overlap-styles.dat

# ---- files, and a batch that is said
weft overlap $small --batch 3 --quiet --check 0 --out folder
pass_if "quiet: status $status: $(cat out err)" [ "$status" -eq 0 ]
pass_if "nothing is printed: $(cat out)" [ ! -s out ]
pass_if "the folder has it" json folder/overlap.json '.cases[0].batch == 3 and .cases[0].bucket_bytes == 26214400 and
    .summary.verified == false and .summary.wrong_elements == null'

# ---- other backends: those that are here are right, with the same computation; the others n/a, and nothing fails
weft overlap $small -n 1 --backend weft,nccl,mpi,gloo --style all_reduce,server --json others.json
pass_if "other backends: status $status: $(cat err)" [ "$status" -eq 0 ]
for backend in weft nccl openmpi mpich gloo; do
    pass_if "$backend: $(cat out)" json others.json 'any(.not_available[]; .what == "'$backend' among 2 ranks") or
        ([.cases[] | select(.backend == "'$backend'" and .wrong_elements == 0 and .verified_elements > 0).style] | sort ==
            ["all_reduce", "server"])'
done
pass_if "nccl is n/a: $(cat out)" grep -q '^# n/a: nccl among 2 ranks: it works on GPU memory: add --memory cuda' out
pass_if "all compute the same" json others.json '[.cases[].batch] | unique | length == 1'

# Three ranks, and a signal to the last one when it is at work.
signalled() { # SIGNAL MEETING OPTION...
    "$WEFT" overlap $small -n 1000000 --processes 3 --quiet --meeting "$work/$2" "${@:3}" >out 2>err </dev/null &
    local weft=$!
    kill -"$1" "$(rank_at_work "2/3/$work/$2")"
    wait "$weft"
    status=$?
}

# ---- a rank that dies is named, and the status is 1
signalled KILL meeting --json dead.json
pass_if "a rank is killed: status $status" [ "$status" -eq 1 ]
pass_if "it is named: $(cat err)" grep -q 'rank 2' err
pass_if "in the file, too: $(jq -c .error dead.json)" json dead.json '.exit_status == 1 and (.error | test("rank 2"))'
nothing_left || fail "something is left of a rank that died"

# ---- and so is one that stands still, also where the others find that out later than silence is taken for too long
signalled STOP still --timeout 1
pass_if "a rank stands still: status $status" [ "$status" -eq 1 ]
pass_if "it is named: $(cat err)" grep -Eq 'rank [01]: .*rank 2 \(.*(is lost|did not)' err
nothing_left || fail "something is left of a rank that stood still"

# ---- wrong usage
wrong() { # TEXT OPTION...
    local text=$1
    shift
    weft overlap "$@"
    pass_if "$*: status $status" [ "$status" -eq 2 ]
    pass_if "$*: $(cat err)" grep -qF -- "$text" err
}
weft overlap --help
pass_if "what auto is: $(grep -A1 -e --iters out)" grep -q 'auto (or 0) takes 5' <(flat out)
wrong "--layers '0': must be a number from 1 to 4096" --layers 0
wrong "--bucket-mb names 5 twice" --bucket-mb 5,5
wrong "--style 'tree' is none of all_reduce, server" --style tree
wrong "--batch '9000': must be a number from 1 to 8192" --batch 9000
wrong "--check all: each iteration is verified anyway" --check all
wrong "--op is not for 'weft overlap' but for 'weft collective'" --op all
weft overlap --layers 4096 --layer-mb 16384
pass_if "more than there is memory for: status $status: $(cat err)" [ "$status" -eq 77 ]
pass_if "says so: $(cat out)" grep -Eq '^# n/a: weft among 2 ranks: needs .* of memory, and .* is left' out
# OpenBLAS hangs where its own threads cannot be had. Whether so much address space is enough, the C library decides.
(ulimit -v 400000; weft overlap $small; exit "$status")
status=$?
well_or_why() { [ "$status" -eq 0 ] || { [ "$status" -eq 1 ] && grep -Eqi 'memory|address space|buffers|no thread' err; }; }
pass_if "little address space: status $status, or no reason: $(cat err)" well_or_why
finish
