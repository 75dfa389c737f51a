#!/usr/bin/env bash
# plots_test.sh: the data and scripts of `weft report --plots`, of a file in which series have different sizes, and pairs
# hardly differ; where gnuplot is here, also that it draws them and has nothing to say.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"

# sample SRC DST SIZE US STAMPS
sample() {
    printf '%s{"backend": "weft", "mode": "isolated", "test": "bandwidth", "src": "node0:host%s", "dst": "node1:host%s",
        "size_bytes": %s, "iters": 8, "bw_gb_per_s": %s, "time_us": {"p10": %s, "p50": %s, "p90": %s}, "rails": [],
        "stamp": [%s]}' "$comma" "$1" "$2" "$3" "$(awk "BEGIN { print $3 / $4 / 1000 }")" "$4" "$4" "$4" "$5"
    comma=,
}

comma=''
{
    echo '{"schema": "weft.result/1", "command": "profile", "summary": {"passed": true}, "samples": ['
    for size in 1024 65536 1048576; do
        for pair in '0 0' '0 1' '1 0' '1 1'; do
            read -r src dst <<<"$pair"
            stamps='"variance"'
            [[ $size != 1048576 ]] || stamps+=',"retransmits"'
            sample "$src" "$dst" "$size" "$((size / 100 + src))" "$stamps"
        done
    done
    echo ']}'
} >"$scratch/profile.json"

cd -- "$scratch" || exit 1
run "${WEFT_TEST_PROGRAM:?}" report profile.json --plots plots
expect_status 0 'weft report --plots'
for name in mesh.dat mesh.gp rate.gp stamps.dat stamps.gp report.md; do
    [[ -s plots/$name ]] || fail "plots/$name is not there"
done

# has NAME TEXT WHAT
has() { grep -q -F -e "$2" "plots/$1" || fail "$3: no '$2' in $1: $(cat -- "plots/$1")"; }
has rate.gp "('1K' 1024, '64K' 65536, '1M' 1048576)" 'sizes as the program writes them'
has mesh.gp "size 1M" 'a matrix says which one it is'
has mesh.gp 'with labels' 'and has its numbers in it'
has stamps.gp 'place_x(name) = 0 + (name eq "1K" ? 0 : 0) + (name eq "64K" ? 1 : 0) + (name eq "1M" ? 2 : 0)' 'each label has a place'
has stamps.gp "index 1 using (place_x(strcol(3)) " 'bars stand at their label, not at their row'

# Pairs that differ by a thousandth do not go from one end of the colours to the other.
range=$(sed -n 's/^set cbrange \[\(.*\):\(.*\)\]$/\1 \2/p' plots/mesh.gp)
read -r low high <<<"$range"
awk "BEGIN { exit !($low < 0.95 * $high) }" || fail "the colours of a flat matrix: $range"

if command -v gnuplot >/dev/null; then
    for name in mesh rate stamps; do
        [[ -s plots/$name.svg && -s plots/$name.png ]] || fail "gnuplot has not drawn $name"
        run bash -c "cd plots && gnuplot $name.gp"
        [[ $status == 0 && -z $output ]] || fail "gnuplot $name.gp: status $status: $output"
    done
fi

finish
