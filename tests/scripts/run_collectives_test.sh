#!/usr/bin/env bash
# run_collectives.sh: its files have the names of the suite, tables and sentences are computed from them, and what cannot be
# had is said.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/check.sh"

suite=$root/run_collectives.sh
WEFT_BUILD=$(cd -- "$(dirname -- "${WEFT_TEST_PROGRAM:?}")/.." && pwd)
export WEFT_BUILD
cd -- "$scratch" || exit 1
unset WORLD_SIZE SLURM_STEP_NUM_TASKS PMI_SIZE PMIX_NAMESPACE CUDA_VISIBLE_DEVICES

# --- a small one, on Weft alone: others may not be installed ---

mkdir cpu && echo 'of a run before' >cpu/gloo_cpu_benchmark.csv
run "$suite" cpu --out cpu --backend weft --processes 2,3 --size 64K,1M --duration 1
expect_status 0 cpu
expect_text '# Out of bounds values: 0 OK' cpu
for file in weft_cpu_benchmark.csv combined_benchmark.csv full_results.md summary_by_config.md analysis.txt report.html; do
    [[ -s cpu/$file ]] || fail "cpu: no $file in: $(ls cpu)"
done
[[ ! -e cpu/gloo_cpu_benchmark.csv ]] || fail 'cpu: a file of a backend that was not asked for'
(($(wc -l <cpu/weft_cpu_benchmark.csv) == 5)) || fail "cpu: not a row for each: $(cat cpu/weft_cpu_benchmark.csv)"
if command -v gnuplot >/dev/null; then
    for plot in time_vs_datasize bandwidth_vs_datasize backend_comparison_100mb; do
        [[ $(head -c 4 "cpu/allreduce_$plot.png" | tail -c 3) == PNG ]] || fail "cpu: no allreduce_$plot.png"
    done
else
    expect_text 'no plots: gnuplot is not here' cpu
fi

# --- a run without figures leaves those of the run before; figures go only when they are where they belong ---

before=$(<cpu/weft_cpu_benchmark.csv)
program nothing/bin weft <<EOF
[[ \$1 == collective ]] || exit 3
while [[ \$1 != --csv ]]; do shift; done
head -n "\${LINES_OF_CSV:-1}" cpu/weft_cpu_benchmark.csv >"\$2.new" && mv "\$2.new" "\$2"
exit 77
EOF
mkdir nothing/out && cp cpu/weft_cpu_benchmark.csv nothing/out
run env WEFT_BUILD=nothing "$suite" cpu --out nothing/out
expect_status 77 'nothing was measured'
[[ $(<nothing/out/weft_cpu_benchmark.csv) == "$before" ]] || fail "nothing was measured, and what was before: $(ls nothing/out)"
[[ ! -e nothing/out/.measured.csv ]] || fail 'nothing was measured: a head stays'
rm nothing/out/weft_cpu_benchmark.csv
mkdir nothing/out/weft_cpu_benchmark.csv # as a disk that is full
LINES_OF_CSV=3 WEFT_BUILD=nothing run "$suite" cpu --out nothing/out
expect_status 1 'a file that cannot be written'
expect_text nothing/out/.measured.csv 'a file that cannot be written'
(($(wc -l <nothing/out/.measured.csv) == 3)) || fail 'a file that cannot be written: the figures are gone'

# --- two files become one: made-up figures, so that every sentence is known ---

head=$(head -n 1 cpu/weft_cpu_benchmark.csv)
{
    echo "$head"
    echo 'gloo,ring,host,all_reduce,float32,sum,2,1,104857600,26214400,3,1,200000,190000,200000,210000,0.524288,0.524288,1,0,52428800,1'
    echo 'gloo,ring,host,all_reduce,float32,sum,4,1,104857600,26214400,3,1,300000,290000,300000,310000,0.349525,0.524288,1,0,5104857600,1'
} >gloo_cpu_benchmark.csv
{
    echo "$head"
    echo 'nccl,as installed,cuda,all_reduce,float32,sum,2,1,104857600,26214400,9,1,1000,900,1000,1100,104.8576,104.8576,1,0,52428800,1'
} >nccl_gpu_benchmark.csv
run "$suite" combine gloo_cpu_benchmark.csv nccl_gpu_benchmark.csv --out both
expect_status 0 combine
(($(wc -l <both/combined_benchmark.csv) == 4)) || fail "combine: $(cat both/combined_benchmark.csv)"
for line in '| gloo | cpu | 4 | all_reduce | 100 MB | 300.000 | 0.350 | 0.524 | 0 |' \
    '| nccl | gpu | 2 | all_reduce | 100 MB | 1.000 | 104.858 | 104.858 | 0 |'; do
    grep -qxF "$line" both/full_results.md || fail "full_results.md has no line $line: $(cat both/full_results.md)"
done
line='| gloo | cpu | 2 | all_reduce | 1 | 0.524 | 100 MB | 200.000 | 100 MB | 200.000 | 100 MB |'
grep -qxF "$line" both/summary_by_config.md || fail "summary_by_config.md: $(cat both/summary_by_config.md)"
for line in '5209715200 elements of results were verified, 0 were wrong.' \
    'nccl (gpu), 2 processes: the highest bus bandwidth is 104.858 GB/s, at 100 MB.' \
    'gloo (cpu), 100 MB: with 4 processes it takes 1.50 times as long as with 2.' \
    '2 processes, 100 MB: gloo (cpu) takes 200.000 ms, nccl (gpu) 1.000 ms: 0.01 times as long.'; do
    grep -qxF "$line" both/analysis.txt || fail "analysis.txt does not say '$line': $(cat both/analysis.txt)"
done

sed 's/,52428800,1$/,0,1/' nccl_gpu_benchmark.csv >unchecked.csv
run "$suite" combine gloo_cpu_benchmark.csv unchecked.csv --out unchecked
grep -qxF '| nccl | gpu | 2 | all_reduce | 100 MB | 1.000 | 104.858 | 104.858 | - |' unchecked/full_results.md ||
    fail "what was not verified: $(cat unchecked/full_results.md)"

# --- in a language that writes 0,853, awk and sort read numbers as everywhere, and letters stay UTF-8 ---

for tool in awk sort; do
    program comma "$tool" <<EOF
[[ \${LC_ALL:-\${LC_NUMERIC-}} == C && \${LC_ALL:-\${LC_CTYPE:-\${LANG-}}} == de_DE.UTF-8 ]] || echo "$tool" >>"$scratch/commas"
exec "$(command -v "$tool")" "\$@"
EOF
done
for variable in LANG LC_NUMERIC LC_ALL; do
    german=(env -u LC_CTYPE -u LC_ALL LANG=de_DE.UTF-8 "$variable=de_DE.UTF-8" PATH="$scratch/comma:$PATH")
    run "${german[@]}" "$suite" combine gloo_cpu_benchmark.csv nccl_gpu_benchmark.csv --out comma
    expect_status 0 "combine, $variable=de_DE.UTF-8"
    cmp -s both/full_results.md comma/full_results.md || fail "$variable=de_DE.UTF-8: $(cat comma/full_results.md)"
    # shellcheck disable=SC2016  # expanded by that shell
    run "${german[@]}" bash -c '. "$1/scripts/lib.sh" && printf "1.5\n3\n2.5\n" | median' bash "$root"
    expect_text '2.5' "$variable=de_DE.UTF-8: the median"
done
[[ ! -e commas ]] || fail "in a language with decimal commas: $(sort commas | uniq -c)"

# --- a folder whose name reads as an assignment, or as an option ---

program copied/bin weft <<'EOF'
[[ $1 == collective ]] || exec "$WEFT_TEST_PROGRAM" "$@"
while [[ $1 != --csv ]]; do shift; done
cp -- cpu/weft_cpu_benchmark.csv "$2"
EOF
for folder in nodes=2 -v; do
    run env WEFT_BUILD=copied "$suite" cpu --out "$folder"
    expect_status 0 "--out $folder"
    cmp -s cpu/weft_cpu_benchmark.csv "./$folder/weft_cpu_benchmark.csv" || fail "--out $folder: $(ls "./$folder"): $output"
    cmp -s cpu/full_results.md "./$folder/full_results.md" || fail "--out $folder: $(cat "./$folder/full_results.md")"
done

# --- operations are kept apart ---

{
    cat gloo_cpu_benchmark.csv
    echo 'gloo,ring,host,broadcast,float32,none,2,1,104857600,26214400,3,1,100000,100000,100000,100000,1.048576,1.048576,1,0,52428800,1'
} >two_operations.csv
run "$suite" combine two_operations.csv nccl_gpu_benchmark.csv --out two
expect_status 0 'combine of two operations'
grep -qxF '| gloo | cpu | 2 | broadcast | 1 | 1.049 | 100 MB | 100.000 | 100 MB | 100.000 | 100 MB |' two/summary_by_config.md ||
    fail "summary_by_config.md of two operations: $(cat two/summary_by_config.md)"
for line in 'gloo (cpu), broadcast, 2 processes: the highest bus bandwidth is 1.049 GB/s, at 100 MB.' \
    'gloo (cpu), all_reduce, 100 MB: with 4 processes it takes 1.50 times as long as with 2.' \
    '2 processes, all_reduce, 100 MB: gloo (cpu) takes 200.000 ms, nccl (gpu) 1.000 ms: 0.01 times as long.'; do
    grep -qxF "$line" two/analysis.txt || fail "analysis.txt does not say '$line': $(cat two/analysis.txt)"
done
[[ $(grep -c broadcast two/analysis.txt) == 1 ]] || fail "analysis.txt mixes operations: $(cat two/analysis.txt)"

# --- profiles ---

run "$suite" profile --out profiles --size 64K --processes 2 --duration 1
expect_status 0 profile
[[ $(ls profiles) == profile_weft_world2_*.txt ]] || fail "profile: $(ls profiles)"
for operation in AllReduce AllGather ReduceScatter; do
    grep -q "^  $operation: .* ms | AlgBW: .* GB/s | BusBW: .* GB/s$" profiles/* || fail "profile: $(cat profiles/*)"
done

# A script of sbatch and a shell in a step of one task have a rank, and start their own; a rank of several is one.
program words/bin weft <<<'printf "<%s>" "$@"'
while read -r ranks variables; do
    # shellcheck disable=SC2086  # several
    run env WEFT_BUILD=words $variables "$suite" profile --out profiles
    expect_text "<collective><--processes><$ranks>" "profile with $variables"
done <<'EOF'
4 SLURM_PROCID=0 SLURM_NTASKS=8
4 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 PMI_RANK=0 PMI_SIZE=1
found SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=8
found PMIX_RANK=1 PMIX_NAMESPACE=job
found PMI_RANK=1 PMI_SIZE=2
found RANK=1 WORLD_SIZE=2
EOF

# --- GPUs ---

program bin nvidia-smi </dev/null
PATH=$scratch/bin:$PATH run "$suite" gpu --out gpu
expect_status 77 'gpu without GPUs'
expect_text 'there are 0' 'gpu without GPUs'

program bin nvidia-smi <<<'printf "GPU %s: a card\n" 0 1 2 3 4 5 6 7'
while read -r seen list; do
    CUDA_VISIBLE_DEVICES=$list PATH=$scratch/bin:$PATH run "$suite" gpu --out gpu
    expect_status 77 "gpu with CUDA_VISIBLE_DEVICES='$list'"
    expect_text "there are $seen" "gpu with CUDA_VISIBLE_DEVICES='$list'"
done <<'EOF'
0
1 3
1 GPU-8a1c-1
1 5,-1,6
1 5,8,6
0 -1
EOF
while read -r processes list; do
    CUDA_VISIBLE_DEVICES=$list PATH=$scratch/bin:$PATH WEFT_BUILD=words run "$suite" gpu --out gpu
    expect_text "<--processes><$processes>" "gpu with CUDA_VISIBLE_DEVICES='$list'"
done <<'EOF'
2 0,1
2,4 4,5,6,7
2,4,6 0,1,2,3,4,5,6,7,8,9
EOF
PATH=$scratch/bin:$PATH WEFT_BUILD=words run "$suite" gpu --out gpu
expect_text '<--processes><2,4,6>' 'gpu with all GPUs'

# --- wrong usage ---

run "$suite"
expect_status 2 'no mode'
run "$suite" tpu
expect_status 2 'another mode'
expect_text "'tpu': cpu, gpu, all, combine or profile" 'another mode'
run "$suite" combine gloo_cpu_benchmark.csv
expect_status 2 'combine of one file'
run "$suite" combine gloo_cpu_benchmark.csv /nowhere.csv --out both
expect_status 2 'combine with a file that is not there'
echo 'a,b' >other.csv
run "$suite" combine gloo_cpu_benchmark.csv other.csv --out both
expect_status 2 'combine with another CSV'
expect_text 'no CSV of weft collective' 'combine with another CSV'
(($(wc -l <both/combined_benchmark.csv) == 4)) || fail 'combine with a wrong file: the table of before is gone'
[[ ! -e both/combined_benchmark.csv.part ]] || fail 'combine with a wrong file: a part of a table stays'
run "$suite" combine both/combined_benchmark.csv nccl_gpu_benchmark.csv --out both
expect_status 0 'combine of what was combined'
(($(wc -l <both/combined_benchmark.csv) == 5)) || fail "combine of what was combined: $(cat both/combined_benchmark.csv)"
run "$suite" cpu --out cpu --size 1X
expect_status 2 'a wrong option of weft collective'
expect_no_text 'the results are in' 'old files of a run that was refused'
run "$suite" cpu --out cpu --csv mine.csv
expect_status 2 'a --csv of its own'
expect_text '--csv: there is a file for each backend' 'a --csv of its own'
finish
