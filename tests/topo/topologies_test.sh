#!/usr/bin/env bash
# The topologies that are kept in configs/ are what the script writes; lstopo reads them; the script says what it cannot read.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
script=$root/configs/topologies/make_topology.py
command -v python3 >/dev/null || {
    echo "skipped: needs the program python3"
    exit 77
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
fail() {
    echo "FAILED: $*"
    failed=1
}

for description in "$root"/configs/topologies/*.txt; do
    PYTHONDONTWRITEBYTECODE=1 python3 "$script" --print "$description" >"$scratch/made.xml"
    diff -q "$scratch/made.xml" "${description%.txt}.xml" >/dev/null ||
        fail "${description##*/}: the .xml file beside it is another: run make_topology.py on it"
done
for xml in "$root"/configs/topologies/*.xml; do
    [[ -f ${xml%.xml}.txt ]] || fail "${xml##*/} has no description"
    [[ -f $root/configs/$(basename "$xml" .xml).conf ]] || [[ $xml == */local-* ]] || fail "${xml##*/} has no settings"
done

# refused TEXT WORD: a description that is wrong ends in a message with WORD, and writes nothing.
refused() {
    printf '%b' "$1" >"$scratch/bad.txt"
    if python3 "$script" "$scratch/bad.txt" 2>"$scratch/err"; then
        fail "a wrong description was taken: $1"
    fi
    grep -q -- "$2" "$scratch/err" || fail "no word of '$2' but: $(cat "$scratch/err")"
    ! grep -q Traceback "$scratch/err" || fail "an exception for: $1"
    [[ ! -e $scratch/bad.xml ]] || fail "something was written for: $1"
}
good='packages 1\nnodes_per_package 1\ncores_per_node 1\nthreads_per_core 1\nnode_memory_gib 1\n'
refused '' packages
refused "${good}packages none\n" bad.txt:6
refused "${good}root 1 0000:00\n" 'node below 1'
refused "${good}root 0\n" 'root NODE'
refused "${good}root 0 zz\n" make_topology.py
refused "${good}root 0 0000:00\n  gpu id=1\n" id=
refused "${good}root 0 0000:00\n    gpu id=10de:2330\n" depth
refused "${good}cable 0\n" cable

if lstopo=$(command -v lstopo-no-graphics || command -v lstopo); then
    for xml in "$root"/configs/topologies/*.xml; do
        "$lstopo" --input "$xml" --of console >"$scratch/tree" 2>&1 || fail "lstopo does not read ${xml##*/}"
        nics=$(grep -c '^ *nic ' "${xml%.xml}.txt")
        [[ $(grep -c 'Net ' "$scratch/tree") == "$nics" ]] || fail "lstopo does not find $nics NICs in ${xml##*/}"
    done
else
    echo "lstopo is not here: the files are compared only"
fi
exit $failed
