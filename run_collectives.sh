#!/usr/bin/env bash
# run_collectives.sh: sets up, builds, and starts `weft collective` for the suite of a single machine: all-reduce of
# 1 MB to 1 GB among 2, 4 and 6 processes, on Gloo, NCCL and Weft; tables, plots and an analysis of it.
# shellcheck disable=SC2317  # the modes are called by name
set -u

root=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd) || exit 1
# shellcheck source=scripts/lib.sh
. "$root/scripts/lib.sh" || exit 1
# shellcheck source=scripts/program.sh
. "$root/scripts/program.sh" || exit 1

usage() {
    cat <<'EOF'
usage: run_collectives.sh cpu|gpu|all [OPTION of weft collective]...
       run_collectives.sh combine CPU.csv GPU.csv [--out DIR]
       run_collectives.sh profile [OPTION of weft collective]...

  cpu      all-reduce of float32 in host memory, 1 MB, 10 MB, 100 MB and 1 GB, among 2, 4 and 6 processes, on Gloo and
           Weft: gloo_cpu_benchmark.csv, weft_cpu_benchmark.csv, and what combine makes of them. A size for which there
           is not enough memory is skipped by name
  gpu      the same in GPU memory on NCCL, a GPU for each process: 6 and more GPUs 2, 4 and 6 processes, 4 and 5 GPUs 2
           and 4, 2 and 3 GPUs 2: nccl_gpu_benchmark.csv
  all      cpu, and gpu where there are 2 GPUs
  combine  of both files: combined_benchmark.csv, allreduce_time_vs_datasize.png, allreduce_bandwidth_vs_datasize.png,
           allreduce_backend_comparison_100mb.png (with gnuplot), full_results.md, summary_by_config.md, analysis.txt
  profile  all-reduce, all-gather and reduce-scatter of 1M, 4M and 16M elements: profile_{backend}_world{N}_{time}.txt.
           Under srun, mpirun or torchrun it is one of the ranks that they have started; else it starts 4

Everything goes to results/collectives beside this script, or in the current folder where that cannot be written, or to
--out DIR. Other options go to `weft collective`, such as --backend weft,gloo,mpi, --processes 2, --size 1M,10M,
--duration 60 (seconds of measuring for each backend and number of processes, about; default 4), or --self-test, which
says in seconds whether each backend works here.

  WEFT_SETUP=auto|print|off  may missing packages be installed: see setup.sh --help
  WEFT_BUILD=DIR             use the build in DIR as it is, instead of building into build/

What this script has built is used as it is if no source is newer. As a rank of a launcher it builds only where there is no
program.

Exit status: 0 everything ran and was right; 1 something failed; 2 wrong usage; 77 not available here.
EOF
}

# gpu_count: those that CUDA has for a program here; of its list, the ones before an entry that is none.
gpu_count() {
    local count visible=0 gpu
    local -a listed
    count=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
    if [[ ${CUDA_VISIBLE_DEVICES+set} ]]; then
        IFS=', ' read -ra listed <<<"$CUDA_VISIBLE_DEVICES"
        for gpu in "${listed[@]}"; do
            [[ $gpu == [[:alnum:]]* && $gpu != NoDevFiles ]] || break
            [[ ! $gpu =~ ^[0-9]+$ ]] || ((10#$gpu < count)) || break
            visible=$((visible + 1))
        done
        ((visible >= count)) || count=$visible
    fi
    echo "$count"
}

# processes_for GPUS: a GPU for each.
processes_for() {
    if (($1 >= 6)); then echo 2,4,6; elif (($1 >= 4)); then echo 2,4; else echo 2; fi
}

# rows_of BACKEND FILE: with the names of the columns.
rows_of() { awk -F, -v backend="$1" 'NR == 1 || $1 == backend' "$2"; }

# measure DEVICE BACKENDS PROCESSES OPTION...: a file for each backend that has figures.
measure() {
    local device=$1 backends=$2 all=$out/.measured.csv backend found status
    rm -f -- "$all"
    "$weft" collective --backend "$backends" --processes "$3" --place in --size 1M,10M,100M,1G --duration 4 \
        "${@:4}" --csv "$all"
    status=$?
    [[ -e $all ]] || return "$status"
    found=$(awk -F, 'NR > 1 { print $1 }' "$all" | sort -u)
    if [[ $found ]]; then
        rm -f -- "$out"/*_"$device"_benchmark.csv # of a run before, on a machine and with a build that may be others
        for backend in $found; do
            if ! rows_of "$backend" "$all" >"$out/${backend}_${device}_benchmark.csv"; then
                say "${backend}_${device}_benchmark.csv could not be written: all figures are in $all"
                return 1
            fi
        done
        measured=1
    fi
    rm -f -- "$all"
    return "$status"
}

# ------------------------------------------------------------------------------------------------------- tables

# join_files FILE...: one table, with the columns of the first, which all have.
join_files() {
    local file head=''
    for file in "$@"; do
        [[ -r $file ]] || wrong_usage "$file: no such file"
        [[ $(head -n 1 -- "$file") == backend,way,memory,op,* ]] ||
            wrong_usage "$file: no CSV of weft collective: its first line has other columns"
        [[ $head ]] || { head -n 1 -- "$file" && head=1; }
        tail -n +2 -- "$file" || return 1
    done
}

# Columns by their names: $C["size_bytes"].
# shellcheck disable=SC2016  # awk's own
columns='NR == 1 { for (i = 1; i <= NF; i++) C[$i] = i; next }
    function size(bytes) { return bytes % 1073741824 == 0 ? bytes / 1073741824 " GB" : bytes / 1048576 " MB" }
    function device(memory) { return memory == "host" ? "cpu" : "gpu" }'

full_results() {
    awk -F, "$columns"'
    BEGIN { print "| backend | device | processes | operation | size | time (ms) | algbw (GB/s) | busbw (GB/s) | wrong |"
            print "|---|---|---:|---|---:|---:|---:|---:|---:|" }
    { printf "| %s | %s | %d | %s | %s | %.3f | %.3f | %.3f | %s |\n", $C["backend"], device($C["memory"]), $C["ranks"],
        $C["op"], size($C["size_bytes"]), $C["time_us_mean"] / 1000, $C["algbw_gb_per_s"], $C["busbw_gb_per_s"],
        $C["verified_elements"] ? $C["wrong_elements"] : "-" }' "$1"
}

summary_by_config() {
    awk -F, "$columns"'
    { key = $C["backend"] " | " device($C["memory"]) " | " $C["ranks"] " | " $C["op"]; us = $C["time_us_mean"] + 0
      if (!(key in n)) order[++keys] = key
      if (!((key, $C["size_bytes"]) in seen)) { seen[key, $C["size_bytes"]]; n[key]++ }
      busbw = $C["busbw_gb_per_s"] + 0
      if (busbw > peak[key]) { peak[key] = busbw; at[key] = size($C["size_bytes"]) }
      if (!(key in least) || us < least[key]) { least[key] = us; small[key] = size($C["size_bytes"]) }
      if (us > most[key]) { most[key] = us; large[key] = size($C["size_bytes"]) } }
    END { print "| backend | device | processes | operation | sizes | peak busbw (GB/s) | at | shortest (ms) | at | longest (ms) | at |"
          print "|---|---|---:|---|---:|---:|---:|---:|---:|---:|---:|"
          for (i = 1; i <= keys; i++) { key = order[i]
            printf "| %s | %d | %.3f | %s | %.3f | %s | %.3f | %s |\n", key, n[key], peak[key], at[key], least[key] / 1000,
                small[key], most[key] / 1000, large[key] } }' "$1"
}

# Sentences that are computed, and nothing else. Operations are named where there are several.
analysis() {
    awk -F, "$columns"'
    { name = $C["backend"] " (" device($C["memory"]) ")"; ranks = $C["ranks"]; bytes = $C["size_bytes"]; op = $C["op"]
      if (!(name in known)) { known[name]; names[++count] = name }
      if (!(ranks in had)) { had[ranks]; all_ranks[++rank_count] = ranks }
      if (!(bytes in sizes)) { sizes[bytes]; all_sizes[++size_count] = bytes }
      if (!(op in ops)) { ops[op]; all_ops[++op_count] = op }
      time[op, name, ranks, bytes] = $C["time_us_mean"] / 1000; bus[op, name, ranks, bytes] = $C["busbw_gb_per_s"] + 0
      wrong += $C["wrong_elements"]; verified += $C["verified_elements"] }
    function named(op) { return op_count > 1 ? op ", " : "" }
    function peaks(op, name, ranks,    s, best, at) {
      for (s = 1; s <= size_count; s++) if (bus[op, name, ranks, all_sizes[s]] > best) {
        best = bus[op, name, ranks, all_sizes[s]]; at = all_sizes[s] }
      if (best) printf "%s, %s%d processes: the highest bus bandwidth is %.3f GB/s, at %s.\n", name, named(op), ranks,
        best, size(at) }
    function growth(op, name, bytes,    first, last) {
      first = time[op, name, all_ranks[1], bytes]; last = time[op, name, all_ranks[rank_count], bytes]
      if (rank_count > 1 && first && last) printf "%s, %s%s: with %d processes it takes %.2f times as long as with %d.\n",
        name, named(op), size(bytes), all_ranks[rank_count], last / first, all_ranks[1] }
    function beside(op, name, other, ranks, bytes,    one, two) {
      one = time[op, name, ranks, bytes]; two = time[op, other, ranks, bytes]
      if (one && two) printf "%d processes, %s%s: %s takes %.3f ms, %s %.3f ms: %.2f times as long.\n", ranks, named(op),
        size(bytes), name, one, other, two, two / one }
    function operation(op,    i, j, r, s) {
      for (i = 1; i <= count; i++) for (r = 1; r <= rank_count; r++) peaks(op, names[i], all_ranks[r])
      for (i = 1; i <= count; i++) for (s = 1; s <= size_count; s++) growth(op, names[i], all_sizes[s])
      for (r = 1; r <= rank_count; r++) for (s = 1; s <= size_count; s++) for (i = 1; i <= count; i++)
        for (j = i + 1; j <= count; j++) beside(op, names[i], names[j], all_ranks[r], all_sizes[s]) }
    END {
      printf "%.0f elements of results were verified, %.0f were wrong.\n", verified, wrong
      for (o = 1; o <= op_count; o++) operation(all_ops[o])
    }' "$1"
}

# plot FILE: by `weft report`, under the names of the suite.
plot() {
    local folder=$out/.plots pair
    mkdir -p -- "$folder" || return 1
    "$weft" report "$1" --html "$out/report.html" --plots "$folder" >/dev/null || return 1
    for pair in collective-time:allreduce_time_vs_datasize collective-bandwidth:allreduce_bandwidth_vs_datasize \
        collective-backends:allreduce_backend_comparison_100mb; do
        [[ -e $folder/${pair%:*}.png ]] && mv -f -- "$folder/${pair%:*}.png" "$out/${pair#*:}.png"
    done
    rm -rf -- "$folder"
    [[ -e $out/allreduce_time_vs_datasize.png ]] || say 'no plots: gnuplot is not here'
}

# combine FILE...
combine() {
    local table=$out/combined_benchmark.csv status
    # In its place when it is whole: it may be one of the inputs, too. In a subshell, as a wrong input ends that.
    (join_files "$@") >"$table.part" && mv -f -- "$table.part" "$table"
    status=$?
    if ((status)); then
        rm -f -- "$table.part"
        exit "$status"
    fi
    full_results "$table" >"$out/full_results.md"
    summary_by_config "$table" >"$out/summary_by_config.md"
    analysis "$table" >"$out/analysis.txt"
    plot "$table" || return 1
    say "the results are in $out"
}

combine_what_is_here() {
    local -a files=()
    local file
    for file in "$out"/*_cpu_benchmark.csv "$out"/*_gpu_benchmark.csv; do
        [[ -e $file ]] && files+=("$file")
    done
    ((${#files[@]} == 0)) || combine "${files[@]}"
}

# ------------------------------------------------------------------------------------------------------- modes

cpu() { measure cpu weft,gloo 2,4,6 "$@"; }

gpu() {
    local gpus
    gpus=$(gpu_count)
    ((gpus >= 2)) || unavailable "NCCL needs a GPU for each of at least 2 processes, and there are $gpus"
    measure gpu nccl "$(processes_for "$gpus")" "$@"
}

all() {
    local result=0
    cpu "$@" || result=$?
    if (($(gpu_count) >= 2)); then
        gpu "$@" || result=$?
    else
        say 'fewer than 2 GPUs: CPU only'
    fi
    return "$result"
}

profile() {
    local ranks=4
    ! is_launched || ranks=found
    "$weft" collective --processes "$ranks" --op all_reduce,all_gather,reduce_scatter --size 4M,16M,64M --place out \
        --profile "$out" "$@"
}

mode=${1-}
out=results/collectives words=() status=0 measured=''
! can_write "$root/results" || out=$root/$out
(($# == 0)) || shift
while (($#)); do
    case $1 in
    --out)
        out=${2-}
        shift
        ;;
    --out=*) out=${1#*=} ;;
    -h | --help) usage && exit 0 ;;
    *) words+=("$1") ;;
    esac
    (($# == 0)) || shift
done
case $mode in
-h | --help) usage && exit 0 ;;
cpu | gpu | all | profile | combine) ;;
*) wrong_usage "'$mode': cpu, gpu, all, combine or profile: see --help" ;;
esac
[[ $mode != combine ]] || ((${#words[@]} == 2)) || wrong_usage 'combine takes two files, CPU.csv and GPU.csv'
[[ $out ]] || wrong_usage '--out needs a folder'
[[ $out == /* ]] || out=./$out # to awk a=b/FILE is no file
find_program all # and the programs of other libraries
for word in "${words[@]}"; do
    [[ $word != --self-test ]] || exec "$weft" collective "${words[@]}"
done
for word in "${words[@]}"; do
    [[ $mode == profile || $word != --csv && $word != --csv=* ]] ||
        wrong_usage "--csv: there is a file for each backend in the folder of --out, and combined_benchmark.csv of all"
done
mkdir -p -- "$out" || exit 1
"$mode" "${words[@]}" || status=$?
[[ ! $measured ]] || combine_what_is_here || status=1
exit "$status"
