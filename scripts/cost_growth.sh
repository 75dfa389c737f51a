#!/usr/bin/env bash
# cost_growth.sh: how the cost of a full mesh grows with endpoints, channels and rails, as tables. Both nodes run on
# this machine, over loopback addresses.
set -u
# shellcheck source=scripts/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

usage() {
    cat <<'END'
usage: cost_growth.sh [--quick] [--rounds N] [WEFT]

Prints three Markdown tables: 1 to 64 endpoints a side, 1 to 64 channels, 1 to 64 rails. Every figure is the median of
the rounds (default 3); a round runs every row once, so that what disturbs the machine for a while disturbs all rows.
WEFT is the program (default build/bin/weft beside this folder). Takes under three minutes on two cores and 4 GiB of
memory.

  --quick     one round of few rows and few messages: shows that it works, measures nothing

Exit status: 0; 1 a run failed; 2 wrong usage; 77 not available here, with the reason.
END
}

read_options "$@"
weft=$(dirname -- "${BASH_SOURCE[0]}")/../build/bin/weft
((${#words[@]})) && weft=${words[-1]}
command -v jq >/dev/null || unavailable 'needs the program jq'
[[ -x $weft ]] || wrong_usage "$weft is no program: build it, or name another"

make_scratch growth

endpoints=(1 2 4 8 16 32 64) channels=(1 2 4 8 16 32 64) rails=(1 2 4 8 16 32 64)
((quick)) && endpoints=(1 2) channels=(1 2) rails=(1 2)

# Loopback addresses, one a rail.
addresses() { # COUNT
    local list='' i
    for ((i = 1; i <= $1; i++)); do
        list+=,127.0.$i.1
    done
    echo "${list#,}"
}

# measure NAME MEASURED OPTION...: one run; its figures become a line of $scratch/NAME.
# Rates of pairs, and processor time, are those of the smallest size. The rate of a pair is all its bytes over the time
# from the barrier, which all share, to its own last message: size over the mean of its times.
measure() {
    local name=$1 measured=$2
    shift 2
    if ! timeout -k 5 60 "$weft" mesh --local --mode loaded --check 0 --iters "$measured" --warmup 1 --quiet \
        --log_dir '' --json "$scratch/result.json" "$@" >"$scratch/said" 2>&1 </dev/null; then
        say "weft mesh $* failed: $(tail -n 1 "$scratch/said")"
        exit 1
    fi
    jq -r '
        def mib: . / 1048576 * 10 | round / 10;
        def set(size): [.summary.sets[] | select(.size_bytes == size)] | first;
        ([.samples[].size_bytes] | min) as $base |
        [.samples[] | select(.size_bytes == $base) | $base / .time_us.mean] as $rates |
        [ (.host[1].session_s * 1e3), (.host[1].connect_s * 1e3),
          ([.host[].max_rss_bytes] | max | mib), ([.host[] | .max_rss_bytes - .buffer_bytes] | max | mib),
          ([.host[].descriptors] | max), ([.host[].threads] | max),
          (set(1048576).aggregate_bw_gb_per_s // -1), (set(262144).aggregate_bw_gb_per_s // -1),
          ($rates | min), ($rates | add / length), set($base).cpu_s_per_gb ] | @tsv' \
        "$scratch/result.json" >>"$scratch/$name" || exit 1
}

# So many messages of each pair that a run moves about `budget` messages of 1 MiB.
iterations() { # PAIRS
    local budget=2048 count
    ((quick)) && budget=16
    count=$((budget / $1))
    echo $((count < 2 ? 2 : count))
}

# At 64 endpoints a side 8192 messages are under way: of 1 MiB each they would take 8 GiB of memory.
one_round() {
    local n sizes
    for n in "${endpoints[@]}"; do
        sizes=256K,1M
        ((n > 32)) && sizes=256K
        measure "endpoints.$n" "$(iterations $((2 * n * n)))" --endpoints "$n" --size $sizes --rails 127.0.1.1
    done
    for n in "${channels[@]}"; do
        measure "channels.$n" "$(iterations 8)" --endpoints 2 --inflight 4 --size 1M --rails 127.0.1.1 --channels "$n"
    done
    for n in "${rails[@]}"; do
        measure "rails.$n" "$(iterations 8)" --endpoints 2 --inflight 4 --size 1M --rails "$(addresses "$n")"
    done
}

# The median of each column.
medians() { # FILE
    local column
    for column in {1..11}; do
        cut -f "$column" "$1" | median
    done | paste -s
}

# table NAME HEADING COUNT...: without the column of 256 KiB where that was not measured; "-" for a size that was not.
table() {
    local name=$1 heading=$2 small=0 n
    shift 2
    [[ $name == endpoints ]] && small=1
    printf '\n| %s | session, ms | pairs, ms | resident, MiB | without buffers, MiB | descriptors | threads ' "$heading"
    printf '| 1 MiB, GB/s %s| slowest pair, MB/s | mean pair, MB/s | CPU s/GB |\n' "${small_heading[small]}"
    printf '|%s\n' "$(printf -- '---|%.0s' $(seq $((11 + small))))"
    for n in "$@"; do
        medians "$scratch/$name.$n" | awk -v n="$n" -v small=$small '
            function rate(x) { return x < 0 ? "-" : sprintf("%.2f", x) }
            { printf "| %s | %.1f | %.3f | %.1f | %.1f | %d | %d | %s ", \
                     small ? n " (" 2 * n * n ")" : n, $1, $2, $3, $4, $5, $6, rate($7)
              if (small) printf "| %s ", rate($8)
              printf "| %.*f | %.*f | %.2f |\n", ($9 < 100) * 2, $9, ($10 < 100) * 2, $10, $11 }'
    done
}
small_heading=('' '| 256 KiB, GB/s ')

for ((round = 0; round < rounds; round++)); do
    one_round
done
echo "$("$weft" --version); $(nproc) cores; Linux $(uname -r); medians of $rounds rounds"
table endpoints 'endpoints a side (directed pairs)' "${endpoints[@]}"
table channels 'channels' "${channels[@]}"
table rails 'rails' "${rails[@]}"
