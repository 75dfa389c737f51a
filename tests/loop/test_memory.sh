#!/usr/bin/env bash
# In control groups with little memory: what nobody has said gives way, at the node with less of it, and nobody is ended
# for want of memory. As root, where such groups can be made.
# shellcheck source=tests/loop/loop_lib.sh disable=SC1091
. "$(dirname "$0")/loop_lib.sh"

[ -n "${LOOP_SANITIZED:-}" ] && skip "a sanitizer needs more memory than the program"

# Where groups with a limit of memory can be made: below the own one of version 1, or below the root of version 2, whose
# groups have no processes beside other groups.
parent() {
    local own
    own=$(awk -F: '$2 ~ /(^|,)memory(,|$)/ { print $3 }' /proc/self/cgroup)
    if [ -n "$own" ]; then
        echo "$(awk '/ - cgroup .*[ ,]memory(,|$)/ { print $5; exit }' /proc/self/mountinfo)${own%/}"
    else
        awk '/ - cgroup2 / { print $5; exit }' /proc/self/mountinfo
    fi
}

group=$(parent)/weft-test-$$
limit_file=memory.limit_in_bytes events=memory.oom_control
mkdir "$group" 2>/dev/null || skip "no control group can be made here"
trap 'kill $(jobs -p) 2>/dev/null; rmdir "$group"; rm -rf "$work"' EXIT
if [ -e "$group/memory.max" ]; then
    limit_file=memory.max events=memory.events
    echo 0 >"$group/memory.swap.max" 2>/dev/null
fi
[ -w "$group/$limit_file" ] || skip "control groups here do not limit memory"

# in_group LIMIT COMMAND...: in place of this shell.
in_group() {
    echo "$1" >"$group/$limit_file" && echo "$BASHPID" >"$group/cgroup.procs" || exit 125
    exec "${@:2}"
}

killed() {
    sed -n 's/^oom_kill //p' "$group/$events"
}

# Both nodes together need 2.3 GiB at 64M, 0.7 GiB at 16M, 0.3 GiB at 4M.
presets=(--preset begin=1M --preset end=64M --endpoints 4 -n 1 --preset warmup=0 --mode loaded --rails "$rails")
limited='the memory limit of the control group'

# local_in LIMIT STATUS OPTION...
local_in() {
    (in_group "$1" timeout -k 5 60 "$WEFT" mesh --local "${presets[@]}" --json result.json "${@:3}") >out 2>err </dev/null
    status=$?
    pass_if "status $status instead of $2 in $1: $(cat err)" [ "$status" -eq "$2" ]
}

local_in 512M 0
pass_if "it says so: $(cat out)" grep -q "^--end 64M gives way to 4M: otherwise the run needs .* here and has .* ($limited)" out
pass_if "the result says so" grep -q '"node0: --end 64M gives way to 4M: ' result.json
pass_if "the value is in the settings, with where it is from: $(grep -A 2 '"end": {' result.json)" \
    [ "$(grep -A 2 '"end": {' result.json | grep -c -e '"value": 4194304' -e '"origin": "gave way to memory"')" -eq 2 ]
pass_if "nobody is ended for want of memory" [ "$(killed)" -eq 0 ]
local_in 512M 0 --end 4M
pass_if "nothing gives way that fits: $(cat out)" [ "$(grep -c 'gives way' out)" -eq 0 ]
local_in 512M 1 --end 64M
pass_if "what the user says is refused: $(cat err)" grep -q "needs .* of memory here and has .* ($limited): lower --end" err
local_in 64M 1
pass_if "nothing fits: $(cat err)" grep -q "needs .* here even with --end 1M and has .* ($limited): lower --endpoints" err

# ---- two nodes, one of them in the group

# port_of FILE: of a server that has said it.
port_of() {
    local end=$((SECONDS + 30)) port
    until port=$(sed -n 's/^node0 waits on port \([0-9]*\).*/\1/p' "$1") && [ -n "$port" ]; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.02
    done
    echo "$port"
}

# two STATUS SERVER-LIMIT CLIENT-LIMIT OPTION...: of the client; a limit of "" is none.
two() {
    local run=(timeout -k 5 60 "$WEFT" mesh --log-dir logs) port server
    rm -rf s.* c.*
    (${2:+in_group "$2"} "${run[@]}" --listen 0 --rails "$rails" --json s.json) >s.out 2>s.err </dev/null &
    server=$!
    if ! port=$(port_of s.out); then
        fail "the server does not wait: $(cat s.err)"
        return
    fi
    (${3:+in_group "$3"} "${run[@]}" --connect "127.0.0.1:$port" "${presets[@]}" --json c.json "${@:4}") >c.out 2>c.err \
        </dev/null
    status=$?
    pass_if "client: status $status instead of $1: $(cat c.err)" [ "$status" -eq "$1" ]
    wait "$server"
    status=$?
    pass_if "server: status $status instead of $1: $(cat s.err)" [ "$status" -eq "$1" ]
}

two 0 300M ""
for node in s c; do
    pass_if "$node: node0 has less: $(cat $node.out)" \
        grep -q "^--end 64M gives way to 4M: otherwise node0 needs .* of memory and has .* ($limited)" $node.out
    pass_if "$node: among the fallbacks" grep -q '"node0: --end 64M gives way to 4M: ' $node.json
done
pass_if "nobody is ended for want of memory" [ "$(killed)" -eq 0 ]
two 0 "" 300M
pass_if "node1 has less: $(cat c.out)" grep -q "^--end 64M gives way to 4M: otherwise the run needs .* ($limited)" c.out
pass_if "node0 adopts that: $(cat s.out)" grep -q '^adopted from the client: end = 4M (default here: 64M)' s.out
pass_if "node0 keeps it" grep -q '"node1: --end 64M gives way to 4M: ' s.json
two 1 300M "" --end 64M
for node in s c; do
    pass_if "$node: whose memory it is: $(cat $node.err)" grep -q 'node0 needs .* of memory and has ' $node.err
done

finish
