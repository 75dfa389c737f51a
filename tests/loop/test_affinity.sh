#!/bin/bash
# test_affinity.sh: the same command with all processors of this process, with one of them (taskset, and a cpuset of a
# control group where one can be made), unbound, bound by the user, and bound wrongly: what the result says of every
# thread is what the kernel allows, and two results can be told apart by that.
. "$(dirname "$0")/loop_lib.sh"
limit=100
command -v jq >/dev/null || skip "needs the program jq"
command -v taskset >/dev/null || skip "needs the program taskset"

all=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
first=${all%%[-,]*} last=${all##*[-,]}

# pair FILE OPTION...
pair() {
    local file=$1
    shift
    weft pair --local --rails 127.0.0.1 --size 64K -n 20 --json "$file" "$@"
}

# threads FILE FIELD: its values, of both nodes, each once.
threads() { jq -r "[.host[].affinity.threads[].$2] | unique | join(\" \")" "$1"; }

# same WHAT WANTED FOUND
same() { pass_if "$1: '$3' instead of '$2'" [ "$2" = "$3" ]; }

pair auto.json
pass_if "status $status: $(cat err)" [ "$status" -eq 0 ]
same 'pin' 'auto auto' "$(jq -r '[.host[].affinity.pin] | join(" ")' auto.json)"
same 'threads are where they were planned' "$(threads auto.json planned_cpus)" "$(threads auto.json allowed_cpus)"

pair off.json --set pin=off
pass_if "status $status: $(cat err)" [ "$status" -eq 0 ]
same 'nothing is planned with pin = off' '' "$(threads off.json planned_cpus)"
same 'threads may run anywhere with pin = off' "$all" "$(threads off.json allowed_cpus)"
pass_if 'auto and off can be told apart' [ "$(jq -c '[.host[].affinity]' auto.json)" != "$(jq -c '[.host[].affinity]' off.json)" ]

pair bound.json --set workers=split --set "tx_bindings=lo:$last" --set "rx_bindings=lo:$first"
pass_if "status $status: $(cat err)" [ "$status" -eq 0 ]
same 'senders as bound' "$last" "$(jq -r '[.host[].affinity.threads[] | select(.role == "tx") | .allowed_cpus] | unique | join(" ")' bound.json)"
same 'receivers as bound' "$first" "$(jq -r '[.host[].affinity.threads[] | select(.role == "rx") | .allowed_cpus] | unique | join(" ")' bound.json)"

weft pair --local --rails lo --size 64K -n 20 --json address.json --set workers=split --set "tx_bindings=127.0.0.1:$last"
pass_if "bound by the address of a rail: status $status: $(cat err)" [ "$status" -eq 0 ]
same 'senders as bound by address' "$last" "$(jq -r '[.host[].affinity.threads[] | select(.role == "tx") | .allowed_cpus] | unique | join(" ")' address.json)"
if grep -q '^0\{31\}1 ' /proc/net/if_inet6 2>/dev/null; then
    pair other.json --set "tx_bindings=127.0.0.1:$last;::1:$first"
    pass_if "an address of this machine that is no rail: status $status: $(cat err)" [ "$status" -eq 0 ]
fi

# one_processor HOW: after a run in one.json that had only the last.
one_processor() {
    pass_if "$1: status $status: $(cat err)" [ "$status" -eq 0 ]
    same "$1: threads keep to it" "$last" "$(threads one.json allowed_cpus)"
    pass_if "$1: that TX and RX share it is told" json_has one.json '.fallbacks[] | select(test("pin: One processor"))'
}
json_has() { [ -n "$(jq -r "$2" "$1")" ]; }

real=$WEFT
under() { # FILE COMMAND...: a WEFT that runs below another command
    printf '#!/bin/sh\nexec %s "%s" "$@"\n' "$2" "$real" >"$1"
    chmod +x "$1"
    WEFT=$PWD/$1
}
under by_taskset "taskset -c $last"
pair one.json
one_processor taskset
if [ "$first" != "$last" ]; then
    pair none.json --set "tx_bindings=lo:$first"
    pass_if "a core outside of it: status $status" [ "$status" -eq 2 ]
    pass_if "it is named: $(cat err)" grep -q "processor $first of rail 'lo' is outside of what this process may use" err
fi
WEFT=$real
pair none.json --set tx_bindings=lo:2047
pass_if "a core that is not there: status $status" [ "$status" -eq 2 ]
pass_if "it is named: $(cat err)" grep -q "processor 2047 of rail 'lo' does not exist" err
pair none.json --set tx_bindings=lo:x
pass_if "no list: status $status" [ "$status" -eq 2 ]

# ---- a cpuset, of either version of control groups, where this user may make one
make_cpuset() {
    local own
    for group in /sys/fs/cgroup/cpuset /sys/fs/cgroup; do
        own=$group/weft-test-$$
        [ -e "$group/cgroup.procs" ] && mkdir "$own" 2>/dev/null || continue
        group=$own
        if [ -e "$own/cpuset.mems" ] && { [ -s "$own/cpuset.mems" ] && [ -n "$(cat "$own/cpuset.mems")" ] ||
            cat "$own/../cpuset.mems" >"$own/cpuset.mems" || [ -e "$own/cpuset.mems.effective" ]; } 2>/dev/null &&
            echo "$last" 2>/dev/null >"$own/cpuset.cpus"; then
            return 0
        fi
        rmdir "$own"
    done
    return 1
}
if make_cpuset 2>/dev/null; then
    printf '#!/bin/sh\necho $$ >%s/cgroup.procs && exec "%s" "$@"\n' "$group" "$real" >by_cpuset
    chmod +x by_cpuset
    WEFT=$PWD/by_cpuset
    pair one.json
    one_processor cpuset
    WEFT=$real
    rmdir "$group" || fail "the cpuset $group is still in use"
else
    echo "no cpuset can be made here: that part is left out"
fi
finish
