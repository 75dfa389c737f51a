#!/bin/bash
# test_paths.sh: which way messages went, as samples say it, on a machine whose rails are no cards that could reach GPU
# memory: an emulated driver's GPUs are staged, nothing is said of it, and `devmem = require` ends with what is in the way.
. "$(dirname "$0")/loop_lib.sh"
: "${EMULATED:?the folder of the emulated driver}"
unset WEFT_CUDA WEFT_DEVMEM
[ -e "$EMULATED/libcuda.so.1" ] || skip "no emulated driver was built"

# run ARGUMENTS...: weft with the driver; sets status, leaves out and err.
run() {
    LD_LIBRARY_PATH=$EMULATED WEFT_EMULATED_GPUS=2 timeout -k 5 60 "$WEFT" "$@" >out 2>err </dev/null
    status=$?
}

# paths FILE: those in the samples of a JSON file, each once, as "send receive,".
paths() {
    tr -d ' \n' <"$1" | grep -o '"path":\({[^}]*}\|null\)' |
        sed 's/"path"://; s/{"send":"\(.*\)","receive":"\(.*\)"}/\1 \2/' | sort -u | tr '\n' ','
}

# columns FILE: the same of a CSV file.
columns() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { print $at["path_send"], $at["path_receive"] }' "$1" |
        sort -u | tr '\n' ','
}

# goes WANTED ARGUMENTS...: the run passes, and its messages went that way.
goes() {
    local wanted=$1
    shift
    run "$@" --local -n 3 -w 1 --json p.json --csv p.csv
    pass_if "$*: status $status: $(cat err)" [ "$status" -eq 0 ]
    pass_if "$*: $(paths p.json)" [ "$(paths p.json)" = "${wanted:-null}," ]
    pass_if "$*: the CSV: $(columns p.csv)" [ "$(columns p.csv)" = "${wanted:- }," ]
    pass_if "$*: no word of cards: $(cat out err)" [ "$(cat out err | grep -c -i devmem)" -eq 0 ]
}
goes 'staged staged' mesh --size 8,64K,3M
for what in inlets fragment_bytes host_bytes sent_bytes sends_copied fragments_held; do
    pass_if "no card was in use: $what" [ "$(sed -n '/"devmem": \[/,/\]/p' p.json >d.json; json_numbers d.json $what | sort -u)" = 0 ]
done
goes 'staged staged' mesh --size 64K --scope all
goes 'staged staged' pair --size 0,3M
goes 'staged staged' pair --lat --size 64K --background 256K
goes 'staged staged' mesh --size 64K --set devmem=off
goes 'host host' mesh --endpoints 2 --size 64K --memory host
goes 'staged staged' profile --endpoints 2 --scope all --size 0,64K,3M --drift-s 0 --traces traces
goes 'host host' profile --endpoints 2 --size 64K --memory host --drift-s 0 --traces traces
goes '' profile --endpoints 2 --size 64K --backend null --drift-s 0 --traces traces
goes 'host host' pair --lat --size 64K --memory host
goes 'host staged' pair --src node0:host0 --dst node1:gpu1 --size 64K
goes 'staged host' pair --src node0:gpu0 --dst node1:host0 --size 64K
goes '' mesh --endpoints 2 --size 64K --backend null
goes 'host host' mesh --endpoints 2 --size 64K --memory host --set devmem=require

# refused TEXT ARGUMENTS...: not here, and this is why.
refused() {
    local text=$1
    shift
    run "$@" --local --size 64K -n 2
    pass_if "$*: status $status: $(cat err)" [ "$status" -eq 77 ]
    pass_if "$*: no '$text' in: $(cat err)" grep -q -- "$text" err
    pass_if "$*: nobody is left" nothing_left
}
obstacle='devmem = require, and no card can for GPU [01]: .'
refused "$obstacle" mesh --set devmem=require
refused "$obstacle" pair --set devmem=require
refused "$obstacle" pair --lat --set devmem=require
refused 'devmem = require, but crc = on needs the bytes in host memory' mesh --set devmem=require --crc on

# Without a GPU there is no memory that a card could reach: host memory is not taken in its place.
EMULATED=/nonexistent
if "$WEFT" pair --local --size 8 -n 1 --memory cuda >out 2>err </dev/null; then
    echo 'skipped: this machine has a GPU'
else
    refused 'devmem = require: no GPU memory' mesh --set devmem=require
    refused 'devmem = require: no GPU memory' pair --set devmem=require
    goes 'host host' mesh --endpoints 2 --size 64K --memory host --set devmem=require
fi

pass_if "nobody is left" nothing_left
finish
