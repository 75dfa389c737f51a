#!/usr/bin/env bash
# verdict_test.sh: what `weft report` names of results that nobody measured (make_result.js): the slow pair, endpoint, rail
# and the hot GPU that were put there, and of healthy ones nothing. A sentence on something odd begins with "? ".
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
make=$root/tests/report/make_result.js
weft=${WEFT_TEST_PROGRAM:?the program}

command -v node >/dev/null || {
    echo "skipped: needs the program node"
    exit 77
}
cd -- "$scratch" || exit 1

# odd WORD...: sets output to the sentences on what is odd in the result that make_result.js makes of the words, a line each.
odd() {
    node "$make" "$@" >result.json || fail "make_result.js $*"
    "$weft" report --html page.html result.json >said 2>errors || fail "weft report, of $*: $(cat errors)"
    grep -q '^All [0-9]* samples ran' said || fail "no verdict, of $*: $(cat said)"
    output=$(awk '{ goes_on = /^    /; sub(/^ +/, " "); printf("%s%s", goes_on ? "" : "\n", $0) } END { print "" }' said |
        grep '^[?!] ')
    what=$*
}

# names COUNT TEXT...: so many sentences, and each text is in them.
names() {
    local count=$1 text lines
    shift
    lines=$(grep -c . <<<"$output")
    ((lines == count)) || fail "$what: $lines sentences instead of $count: $output"
    for text; do
        expect_text "$text" "$what"
    done
}

# ---- one thing that is odd
for seed in 1 2 3; do
    odd seed=$seed sources=4 targets=4 slow=0:1:2:0.8
    names 1 'Slow: node0:host1 to node1:host2 has ' 'asymmetric'
    odd seed=$seed sources=4 targets=4 slow=0:1:2:0.8 slow=1:2:1:0.8
    names 2 'Slow: node0:host1 to node1:host2 has ' 'Slow: node1:host2 to node0:host1 has '
    odd seed=$seed sources=4 targets=4 'slow=1:3:*:0.7'
    names 1 'Slow: what node1:host3 sends has '
    odd seed=$seed sources=4 targets=4 'slow=0:*:0:0.7'
    names 1 'Slow: what node1:host0 receives has '
    odd seed=$seed rails=4 rail=2:0.4
    names 2 'Rail eth2 of node0 is slow: it brought ' 'Rail eth2 of node1 is slow: it brought ' 'should bring 25 %'
    odd seed=$seed gpus=1 hot=node0:3:91
    names 1 'Hot: node0 gpu3: it was at 91 °C.'
    odd seed=$seed gpus=1 hot=node1:1:75
    names 1 'Hot: node1 gpu1: it was at 75 °C, the others at '
done

# ---- of four nodes
for seed in 1 2 3; do
    mesh=(seed=$seed nodes=4 sources=2 noise=0.02 jitter=0.02 sizes=4)
    odd "${mesh[@]}" 'at=2:*:*:0.85' 'at=*:2:*:0.85' again=2:50
    names 1 'Slow: node2 sends and receives ' '; TCP sent 4800 segments again meanwhile.'
    odd "${mesh[@]}" 'at=2:*:*:0.85'
    names 1 'Asymmetric: node2 sends ' 'and receives as they do' 'the file does not say why'
    odd "${mesh[@]}" 'at=1:3:*:0.85'
    names 1 'Asymmetric: node1 to node3 has ' 'the way back is as fast as the others'
    odd "${mesh[@]}" 'at=2:*:1:0.85' 'at=*:2:1:0.85'
    names 1 'Slow rail: rail eth1 of node2 carries 8' ' % of its peers (isolated);'
    odd "${mesh[@]}" 'at=*:*:1:0.85'
    names 1 'Slow rail: rail eth1 carries 8' ' % of the rails beside it, at all nodes (isolated);'
    odd "${mesh[@]}" 'at=2:*:1:0.5' 'at=*:2:1:0.5'
    names 2 'Slow rail: rail eth1 of node2 ' 'Slow: node2 sends and receives ' '; its rail eth1 is slow.'
    odd "${mesh[@]}" few=2:1
    names 2 'Slow rail: rail eth1 of node2 carries nothing ' 'Slow: node2 sends and receives ' \
        'its rail eth1 carries nothing; it has 1 of the 2 rails that most have.'
done

# ---- nothing: also of several rails, of GPUs, and of more endpoints at one side
for ((seed = 1; seed <= 20; seed++)); do
    noise=0.0$((2 + seed % 4))
    case $((seed % 6)) in
    0) odd seed=$seed noise=$noise ;;
    1) odd seed=$seed noise=$noise gpus=1 rails=4 ;;
    2) odd seed=$seed noise=$noise sources=2 targets=6 ways=1 ;;
    3) odd seed=$seed noise=$noise sources=8 targets=8 modes=1 sizes=3 ;;
    4) odd seed=$seed noise=$noise nodes=4 sources=2 jitter=$noise ;;
    5) odd seed=$seed noise=$noise nodes=7 sources=1 sizes=3 rails=4 jitter=$noise ;;
    esac
    names 0
done
finish
