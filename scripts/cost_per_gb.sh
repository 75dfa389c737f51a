#!/usr/bin/env bash
# cost_per_gb.sh: what a gigabyte costs two builds of weft in system calls, wake-ups and processor time, as tables.
set -u
# shellcheck source=scripts/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

usage() {
    cat <<'END'
usage: cost_per_gb.sh [--quick] [--rounds N] [--calls perf|strace] OLD NEW

OLD and NEW are two weft programs. Each sends messages of 64 MiB, of 1 MiB and of 64 bytes between two nodes of this
machine, one pair, one rail (127.0.0.1), 16 in flight (4 of 64 MiB); the builds take turns. Every cost is the difference of a long
and a short run, so that start, connecting and the end cancel, over what the long one moved more. Figures are medians
of the rounds (default 3), about 40 s each.

  --calls perf    counts system calls in the kernel, which hardly disturbs them; the default where it is allowed (root)
  --calls strace  with strace -f -c, which stops the program at each call: a program that polls does so less
  --quick         one round of short runs: shows that it works, measures nothing

Both count all threads of both nodes. Wake-ups are voluntary context switches: a thread slept and was woken.
Exit status: 0; 1 a run failed; 2 wrong usage; 77 not available here, with the reason.
END
}

calls=(recvfrom recvmsg sendto sendmsg epoll_wait epoll_pwait2 io_uring_enter futex) # with a row of their own
tracepoints=raw_syscalls:sys_enter
for name in "${calls[@]}"; do
    tracepoints+=,syscalls:sys_enter_$name
done

counter=''
own_option() {
    [[ $1 == --calls ]] || return
    [[ $2 == perf || $2 == strace ]] || wrong_usage "--calls $2: perf or strace is wanted"
    counter=$2
}
read_options "$@"
builds=("${words[@]}")
((${#builds[@]} == 2)) || wrong_usage "two programs are wanted, OLD and NEW: see --help"
for build in "${builds[@]}"; do
    [[ -x $build && ! -d $build ]] || wrong_usage "$build is no program"
done

make_scratch cost

[[ -x /usr/bin/time ]] || unavailable '/usr/bin/time is not installed (package: time)'
perf_works() { perf stat -x , -o "$scratch/probe" -e "$tracepoints" true >/dev/null 2>&1; }
strace_works() { strace -f -c -o "$scratch/probe" true >/dev/null 2>&1; }
if [[ -z $counter ]]; then
    counter=strace
    perf_works && counter=perf
fi
"${counter}_works" || unavailable "$counter cannot count system calls here: it is not installed, or not allowed"

# run BUILD SIZE MESSAGES PREFIX...: one run of weft pair under the command PREFIX.
run() {
    local build=$1 size=$2 messages=$3 inflight=16
    shift 3
    [[ $size == 64M ]] && inflight=4
    "$@" timeout -k 5 60 "$build" pair --local --rails 127.0.0.1 --inflight $inflight --size "$size" \
        --iters "$messages" --warmup 2 --check 0 --quiet >"$scratch/said" 2>&1 </dev/null && return
    say "$build pair --size $size --iters $messages failed: $(tail -n 1 "$scratch/said")"
    exit 1
}

# "name count" of each call that was counted; all together are "total".
read_perf() { awk -F , '$3 ~ /sys_enter/ { sub(/.*sys_enter_?/, "", $3); print $3 == "" ? "total" : $3, $1 }' "$1"; }
read_strace() { awk '$4 ~ /^[0-9]+$/ && $NF ~ /^[a-z]/ { print $NF, $4 }' "$1"; }

# cost BUILD SIZE MESSAGES: "name amount" of one run.
cost() {
    run "$@" /usr/bin/time -o "$scratch/time" -f 'user %U\nsystem %S\nwake-ups %w\n'
    grep -E '^(user|system|wake-ups) ' "$scratch/time"
    if [[ $counter == perf ]]; then
        run "$@" perf stat -x , -o "$scratch/calls" -e "$tracepoints"
    else
        run "$@" strace -f -c -qq -o "$scratch/calls"
    fi
    "read_$counter" "$scratch/calls"
}

# difference BUILD_NUMBER SIZE SHORT LONG UNITS: UNITS are what the long run moves more. The first run of another size
# pays for the memory that the kernel has to find for it, and does not count.
difference() {
    local build=${builds[$1]} size=$2
    ((quick)) || run "$build" "$size" "$3" env
    cost "$build" "$size" "$3" >"$scratch/short" || exit 1
    cost "$build" "$size" "$4" >"$scratch/long" || exit 1
    awk -v units="$5" 'NR == FNR { short[$1] = $2; next } { print $1, ($2 - short[$1]) / units }' \
        "$scratch/short" "$scratch/long" >>"$scratch/$size.$1"
}

gb() { awk -v bytes="$1" -v count="$2" 'BEGIN { print bytes * count / 1e9 }'; }

one_round() {
    local build many=1
    ((quick)) && many=20
    for build in $((round % 2)) $((1 - round % 2)); do
        difference $build 64M $((20 / many)) $((100 / many)) "$(gb 67108864 $((100 / many - 20 / many)))"
        difference $build 1M $((1000 / many)) $((7000 / many)) "$(gb 1048576 $((6000 / many)))"
        difference $build 64 $((200000 / many)) $((1200000 / many)) $((1000000 / many))
    done
}

# figure NAME SIZE BUILD_NUMBER FACTOR: with a digit that means something. What is in no run is 0.
figure() {
    awk -v name="$1" '$1 == name { print $2 }' "$scratch/$2.$3" | median | awk -v factor="$4" '
        { m = $1 * factor
          size = m < 0 ? -m : m
          printf("%.*f", (size >= 100) ? 0 : (size >= 10) ? 1 : (size >= 1) ? 2 : 3, m) }'
}

# row TITLE NAME FACTOR_FOR_GB FACTOR_FOR_MESSAGES
row() {
    local size build
    printf '| %s ' "$1"
    for size in 64M 1M 64; do
        for build in 0 1; do
            printf '| %s ' "$(figure "$2" $size $build "$([[ $size == 64 ]] && echo "$4" || echo "$3")")"
        done
    done
    printf '|\n'
}

for ((round = 0; round < rounds; round++)); do
    one_round
done
printf '%s cores; Linux %s; medians of %s rounds; system calls counted by %s\n\n' \
    "$(nproc)" "$(uname -r)" "$rounds" "$counter"
printf '| both nodes together | 64 MiB, per GB: old | new | 1 MiB, per GB: old | new '
printf '| 64 bytes, per 1000 messages: old | new |\n|---|---|---|---|---|---|---|\n'
row 'system calls' total 1 1000
for name in "${calls[@]}"; do
    row "of these \`$name\`" "$name" 1 1000
done
row 'wake-ups' wake-ups 1 1000
row 'processor ms, user' user 1000 1000000
row 'processor ms, system' system 1000 1000000
