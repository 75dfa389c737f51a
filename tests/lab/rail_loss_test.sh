#!/usr/bin/env bash
# rail_loss_test.sh [full]: rails are lost and come back in the middle of a transfer, in every way that there is, and no
# byte is lost or wrong. Quick: two rails, one of which is lost again and again. Full: 4 GiB over four rails, lost one
# after another down to one. Then, without any rail, the transfer fails and says whom it lost. What each rail carried
# over time goes to standard output, and how fast it was before and after; nothing is decided by that.
# Skipped where there can be no lab.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
# shellcheck source=tests/lab/lab_lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lab_lib.sh"

# start OPTION...: a transfer from node 0 to node 1, all of which is verified; sets server and client.
start() {
    local all=(--src node0:host0 --dst node1:host0 --warmup 0 --check all --rails 'lab*' --connect-timeout 10)
    all+=(--log-dir= "$@")
    : >"$samples" && : >"$events"
    "$WEFT_TEST_PROGRAM" pair --listen "${all[@]}" --json "$scratch/result.json" >"$scratch/server" 2>&1 &
    server=$!
    "$net" --node 1 "$WEFT_TEST_PROGRAM" pair --connect="$(hosts 0 0 | head -n 1)" "${all[@]}" >"$scratch/client" 2>&1 &
    client=$!
    sample_while "$server" &
    wait_for_bytes all $((window / 8)) 'the transfer begins'
}

# finish_transfer STATUS SECONDS WHAT: of both nodes.
finish_transfer() {
    local node process
    for node in server client; do
        process=${!node}
        ended "$process" "$2" || fail "$3: the $node hangs"
        wait "$process"
        status=$?
        output=$(cat -- "$scratch/$node")
        expect_status "$1" "$3, $node"
    done
    wait
}

# since TIME: milliseconds.
since() {
    local time
    now time
    echo $(((time - $1) / 1000))
}

# lose METHOD RAIL NODE: until node 0 has given it up.
lose() {
    local time
    now time
    event "lab$2: $1 at node $3"
    break_rail "$@"
    [[ $1 == reset ]] && return # is back too soon to be seen
    wait_until "$1: lab$2 is given up" is_given_up "$2" || return
    event "lab$2 is given up"
    echo "$1: lab$2 was given up after $(since "$time") ms"
}

# restore METHOD RAIL NODE: until it carries again.
restore() {
    local time
    now time
    event "lab$2 is restored"
    mend_rail "$@"
    wait_for_bytes "$2" $((4 << 20)) "$1: lab$2 carries again" || return
    event "lab$2 carries again"
    echo "$1: lab$2 had carried 4 MiB $(since "$time") ms after its return"
}

# measure BYTES VARIABLE: Mbit/s while so much moves.
measure() {
    local from to
    now from
    wait_for_bytes all "$1" 'measuring'
    now to
    sleep 0.05 # for the sample
    printf -v "$2" '%s' "$(rate "$from" "$to")"
}

# Node 1 loses the link, node 0 the address: each side is the first to know of something.
node_of() { if [[ $1 == link ]]; then echo 1; else echo 0; fi; }

lose_one_rail() {
    local method
    for method in "${methods[@]}"; do
        lose "$method" 1 "$(node_of "$method")" || return
        wait_for_bytes 0 $((4 << 20)) "$method: the other rail carries on" || return
        restore "$method" 1 "$(node_of "$method")" || return
    done
}

lose_all_but_one() {
    local rail
    local -a how=(reset link address drop)
    can drop || how[3]=address
    for rail in 1 2 3; do
        lose "${how[rail]}" "$rail" "$(node_of "${how[rail]}")" || return
    done
    wait_for_bytes 0 $((64 << 20)) 'the last rail carries on' || return
    for rail in 1 2 3; do
        restore "${how[rail]}" "$rail" "$(node_of "${how[rail]}")" || return
    done
    if can reset; then lose reset 0 0 && restore reset 0 0; fi
}

# expect_failures RAIL: somebody has counted them.
expect_failures() {
    local sum
    sum=$(rail_sum failures "$1")
    ((sum > 0)) || fail "lab$1 failed, and rails[].failures says $sum"
}

show_rails() {
    totals | awk -F'[:,]' '
        { gsub(/[ "]/, "") }
        { of[$1] = $2 }
        /^}/ { printf "%s %s: %d bytes, %d failures, %d bytes resent\n", of["node"], of["name"], of["bytes"],
            of["failures"], of["resent_bytes"] }'
}

lose_rails() { if [[ $mode == full ]]; then lose_all_but_one; else lose_one_rail; fi; }

verified_transfer() {
    local before=0 after=0 patience=60 rail
    start "${size[@]}"
    measure "$window" before
    if lose_rails; then measure "$window" after; else patience=1; fi
    finish_transfer 0 "$patience" 'the transfer'
    for output in "$scratch/server" "$scratch/client"; do
        output=$(cat -- "$output")
        expect_text ' 0 wrong of ' 'the transfer'
    done
    show_table 250
    show_rails
    for rail in "${lost[@]}"; do
        expect_failures "$rail"
    done
    awk -v before="$before" -v after="$after" 'BEGIN {
        printf "before %d Mbit/s, after %d Mbit/s: %.1f %%\n", before, after, before ? 100 * after / before : 0 }'
}

# all_lost METHOD
all_lost() {
    local rail time node
    local -a files=(server client)
    start "${size[@]}" --timeout 3
    now time
    for ((rail = 0; rail < rails; rail++)); do
        break_rail "$1" "$rail" 0
    done
    finish_transfer 1 30 "$1, all rails"
    echo "$1, all rails: both nodes had ended $(since "$time") ms later"
    for node in 0 1; do
        output=$(cat -- "$scratch/${files[node]}")
        echo "    node$node: ${output##*$'\n'}"
        expect_text "lost node$((1 - node)): " "$1, all rails: the peer"
        expect_text "$peer" "$1, all rails: the address of the peer"
    done
    for ((rail = 0; rail < rails; rail++)); do
        mend_rail "$1" "$rail" 0
    done
}

if [[ ${1-} == --inside ]]; then
    mode=$2 rails=$3
    find_methods
    case $mode in
    quick) size=(--size 128M --inflight 4 --iters 4 --rail-timeout-ms 500) window=$((32 << 20)) lost=(1) ;;
    full) size=(--size 1G --inflight 4 --iters 4) window=$((512 << 20)) lost=(1 2 3) ;;
    esac
    peer='(10.77.'
    [[ $LAB_IP == *4* ]] || peer='([fd77:'
    verified_transfer
    size=(--size 64M --inflight 4 --iters 8)
    can drop && all_lost drop
    all_lost link # the last: a link takes its time to come back
    finish
fi
mode=${1:-quick} rails=2
export LAB_RAILS=200mbit,200mbit LAB_IP=${LAB_IP:-4}
if [[ $mode == full ]]; then
    rails=4 LAB_RAILS=1gbit,1gbit,1gbit,1gbit
    # Both nodes' copies of what travels, and some.
    (($(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo) >= 8)) ||
        { echo 'skipped: 8 GiB of memory are needed' && exit 77; }
fi
enter_lab 300 "$mode" "$rails"
