#!/usr/bin/env bash
# A node and a rail that are 15 % slower are so for what Weft moves, and nothing else is. Skipped where there can be no cluster.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
# shellcheck source=tests/cluster/cluster_lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/cluster_lib.sh"

weft=${WEFT_TEST_PROGRAM:-$root/build/bin/weft}

# pair NODE RAILS FILE: between n0 and that node, inside.
pair() {
    local -a mesh=("$weft" mesh --pattern pairs --endpoints 1 --iters 3 --warmup 1 --size 8M --check 0 --mode isolated
        --log-dir= --rails "$2")
    "$net" --on n0 "${mesh[@]}" --listen --json "$3" &
    until "$net" --on n0 cat /proc/net/tcp /proc/net/tcp6 | grep -q ': [0-9A-F]*:[0-9A-F]* [0-9A-F]*:0000 0A '; do
        kill -0 "$!" || return
        sleep 0.02
    done
    "$net" --on "$1" "${mesh[@]}" --connect "10.77.${2: -1}.1" --quiet
    wait "$!"
}
if [[ ${1-} == --inside ]]; then
    pair "${@:2}"
    exit
fi

[[ -x $weft ]] || { echo "there is no $weft: set WEFT_TEST_PROGRAM" && exit 1; }
command -v jq >/dev/null || { echo 'skipped: needs the program jq' && exit 77; }
run "$net" true
skip_if_unavailable

# expect_share WHAT PERCENT NODE RAIL CHANGE: of a rail's 100 Mbit/s less its headers, within 5 %.
expect_share() {
    rm -f -- "$scratch/result"
    run "$net" --limit 60 --rails 100mbit,100mbit --rate "$5" bash "$0" --inside "$3" "$4" "$scratch/result"
    expect_status 0 "$1"
    jq -e --argjson percent "$2" '[.samples[].bw_gb_per_s * 8 / 0.0993 * 100]
        | length == 2 and all((. / $percent - 1) | fabs < 0.05)' "$scratch/result" >/dev/null ||
        fail "$1: $(jq -c '[.samples[].bw_gb_per_s]' "$scratch/result") GB/s are not $2 %"
}
expect_share 'a healthy node' 100 n1 lab0 n2=85%
expect_share 'a slow node' 85 n2 lab0 n2=85%
expect_share 'a slow node, over its other rail' 85 n2 lab1 n2=85%
expect_share 'a healthy rail' 100 n1 lab0 lab1=85%
expect_share 'a slow rail' 85 n1 lab1 lab1=85%
expect_share 'another cable of the rail that is slow for n2' 100 n1 lab1 n2:lab1=85%

finish
