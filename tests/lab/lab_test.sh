#!/usr/bin/env bash
# run_p2p_fullmesh.sh lab: what it reports went through the interfaces, as their own counters say, and nothing is left
# behind, whether it ends, is killed, or is asked to stop. Skipped where there can be no lab.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"

cp -R -- "$root/run_p2p_fullmesh.sh" "$root/scripts" "$scratch/" || exit 1
script=$scratch/run_p2p_fullmesh.sh
net=$scratch/scripts/lab_net.sh
WEFT_BUILD=$(dirname -- "$(dirname -- "$WEFT_TEST_PROGRAM")")
export WEFT_BUILD LAB_RAILS=200mbit,200mbit LAB_MARK=mark$$
unset NCCL_SOCKET_IFNAME LAB_IP LAB_SUBNETS
small=(--pattern pairs --endpoints 1 --iters 2 --warmup 1)

run "$net" true
((status == 77)) && echo "skipped: $output" && exit 77
expect_status 0 'the lab is made'

# ours: the processes of a lab under test, by what its environment says.
ours() {
    local entry
    for entry in /proc/[0-9]*; do
        grep -qsza "^LAB_MARK=$1\$" "$entry/environ" 2>/dev/null && printf '%s\n' "${entry#/proc/}"
    done
}

# networks PID...: their network namespaces.
networks() {
    local process
    for process in "$@"; do
        readlink "/proc/$process/ns/net"
    done | sort -u
}

# held NAMESPACE: who is in it, or has it open.
held() {
    find /proc/[0-9]*/ns/net /proc/[0-9]*/fd -lname "$1" 2>/dev/null
}

interfaces() { sed 's/:.*//' /proc/net/dev | sort; }

# expect_nothing_left MARK WHEN NAMESPACE...: at most two seconds later.
expect_nothing_left() {
    local mark=$1 when=$2 tries name left
    shift 2
    for ((tries = 0; tries < 20; tries++)); do
        left=$(ours "$mark")
        for name in "$@"; do
            left+=$(held "$name")
        done
        [[ -z $left ]] && break
        sleep 0.1
    done
    [[ -z $left ]] || fail "$when: left behind: $left"
    [[ $(interfaces) == "$before" ]] || fail "$when: interfaces: $(interfaces)"
    [[ $(ls /run/netns 2>/dev/null) == "$names" ]] || fail "$when: named namespaces"
}

before=$(interfaces)
names=$(ls /run/netns 2>/dev/null)

# The whole run: verified, and every rail's bytes within a tenth of its interface's.
run env LAB_MARK="$LAB_MARK.run" "$script" lab --size 16M "${small[@]}"
expect_status 0 'lab'
expect_text ' 0 wrong of ' 'lab'
expect_nothing_left "$LAB_MARK.run" 'after the run'
result=$scratch/results/latest
[[ -s $(readlink -f -- "$result")-client/mesh.json ]] || fail "the client's results are missing"
awk -F'[:,]' '
    { gsub(/[ "]/, "") }
    $1 == "node" { node = $2 }
    $1 == "name" { name = $2 }
    $1 == "received_bytes" { rx[node "," name] = $2 }
    $1 == "sent_bytes" { tx[node "," name] = $2 }
    END { for (rail in tx) print rail "," rx[rail] "," tx[rail] }' "$result/mesh.json" | sort >"$scratch/reported"
tail -n +2 "$result/interfaces.csv" | cut -d, -f1,2,4,5 | sort >"$scratch/counted"
paste -d, "$scratch/reported" "$scratch/counted"
paste -d, "$scratch/reported" "$scratch/counted" | awk -F, '
    function near(a, b) { return b > 10e6 && a > 0.9 * b && a < 1.1 * b }
    $1 == $5 && $2 == $6 && near($3, $7) && near($4, $8) { rails++ }
    END { exit rails == 4 ? 0 : 1 }' || fail 'the rails of mesh.json and the counters of the interfaces disagree'

# What a command in the lab mounts is seen in the lab only: other programs of the machine go on reading their /sys.
mkdir "$scratch/covered" && touch "$scratch/covered/seen"
run "$net" bash -c 'mount -t tmpfs none "$1" && ! [[ -e $1/seen ]]' mounts "$scratch/covered"
expect_status 0 'a file system is mounted in the lab'
[[ -e $scratch/covered/seen ]] || { fail 'what was mounted in the lab covers the folder outside' && umount "$scratch/covered"; }

# sends /proc/PID: whether a connection in its network has carried some of a message.
sends() { nsenter --net="$1/ns/net" ss -Htni state established | grep -aEq 'bytes_(sent|received):[0-9]{6}'; }

# end_early SIGNAL: in the middle of a message that would take minutes.
end_early() {
    local mark=$LAB_MARK.$1 process tries
    local -a found spaces
    LAB_RAILS=5mbit,5mbit LAB_MARK=$mark "$script" lab --size 64M "${small[@]}" >"$scratch/said" 2>&1 </dev/null &
    process=$!
    for ((tries = 0; tries < 300; tries++)); do
        mapfile -t found < <(ours "$mark" | xargs -I{} find /proc/{}/exe -lname "$(readlink -f "$WEFT_TEST_PROGRAM")" 2>/dev/null)
        ((${#found[@]} == 2)) && sends "${found[0]%/exe}" && break
        sleep 0.1
    done
    ((tries < 300)) || fail "SIG$1: nothing is under way after 30 s"
    mapfile -t found < <(ours "$mark")
    mapfile -t spaces < <(networks "${found[@]}")
    ((${#found[@]} == 4)) || fail "SIG$1: ${#found[@]} processes: parent, holder and two nodes were expected"
    ((${#spaces[@]} == 2)) || fail "SIG$1: ${#spaces[@]} network namespaces were expected to be two"
    kill "-$1" "$process"
    wait "$process" 2>/dev/null
    status=$?
    output=$(cat -- "$scratch/said")
    expect_nothing_left "$mark" "after SIG$1" "${spaces[@]}"
}
end_early KILL 2>/dev/null
end_early TERM
expect_status 1 'after SIGTERM'
expect_text 'interrupted by SIGTERM' 'after SIGTERM'
(($(grep -l '"by": "SIGTERM"' "$scratch"/results/*/mesh.json | wc -l) == 2)) || fail 'after SIGTERM: not both have results'

# A node that is stopped does not keep the lab from ending.
stopped_node() {
    local mark=$LAB_MARK.stopped process node='' tries
    LAB_RAILS=5mbit,5mbit LAB_MARK=$mark "$script" lab --size 64M "${small[@]}" >"$scratch/said" 2>&1 </dev/null &
    process=$!
    for ((tries = 0; tries < 200 && ${#node} == 0; tries++)); do
        for node in $(ours "$mark") ''; do
            tr '\0' '\n' <"/proc/$node/cmdline" 2>/dev/null | sed -n 3p | grep -q '^--connect' && break
        done
        sleep 0.1
    done
    [[ -n $node ]] || fail 'a stopped node: there is no client'
    kill -STOP "$node"
    kill -TERM "$process"
    for ((tries = 0; tries < 200; tries++)); do
        kill -0 "$process" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL "$process" 2>/dev/null && fail 'a stopped node: the lab does not end'
    wait "$process" 2>/dev/null
    status=$? output=$(cat -- "$scratch/said")
    expect_status 1 'a stopped node'
    expect_nothing_left "$mark" 'a stopped node'
}
stopped_node

# The other ways to use it.
run env LAB_IP=6 "$script" lab --size 1M "${small[@]}"
expect_status 0 'rails with IPv6 only'
# one_subnet FAMILY ADDRESS: each of two interfaces in one subnet carries its part, both ways.
one_subnet() {
    run env LAB_IP="$1" LAB_SUBNETS=one "$net" --counters "$scratch/counters" \
        "$WEFT_TEST_PROGRAM" mesh --listen --size 8M "${small[@]}" --log-dir= : \
        "$WEFT_TEST_PROGRAM" mesh --connect="$2" --size 8M "${small[@]}" --log-dir= --quiet
    expect_status 0 "one subnet, IPv$1"
    expect_text ' 0 wrong of ' "one subnet, IPv$1"
    awk -F, '$1 ~ /^node/ && NR > 1 { total += $5; sent[$1, $2] = $5 }
        END { for (one in sent) { if (sent[one] < total / 4 * 0.7) exit 1; n += 1 } exit n != 4 }' \
        "$scratch/counters" || fail "one subnet, IPv$1: unequal: $(cat -- "$scratch/counters")"
}
one_subnet 4 10.77.0.1
one_subnet 6 '[fd77:77:77::1]'
run "$net" env LAB_RAILS=100mbit "$script" lab --size 1M "${small[@]}"
expect_status 0 'a lab in a lab'
run "$net" bash -c "'$net' --rate 1 20mbit && tc qdisc show dev lab1 && '$net' --node 1 tc qdisc show dev lab1"
expect_status 0 'a new rate'
[[ $output == *'rate 20Mbit'*'rate 20Mbit'* ]] || fail "a new rate, at both ends: $output"
run "$net" bash -c 'exit 7'
expect_status 7 "the command's status"
run "$net" false : true
expect_status 1 "the server's status"
for wrong in 'x' '1gbit,' '0mbit' '1gbit,,1gbit'; do
    run env LAB_RAILS="$wrong" "$net" true
    expect_status 2 "LAB_RAILS=$wrong"
    expect_lines 1 "LAB_RAILS=$wrong"
done
run env LAB_SUBNETS=two "$net" true
expect_status 2 'LAB_SUBNETS=two'
run env LAB_RAILS=x "$script" lab
expect_status 2 'wrong usage through the script'
run "$net" --rate 1 1gbit
expect_status 2 '--rate outside'
run "$net" --help
expect_status 0 'help'

# elsewhere WHAT COMMAND...: the whole run where COMMAND leads to, if it leads there at all.
elsewhere() {
    local what=$1
    shift
    "$@" true 2>/dev/null || { echo "$what: not allowed here" && return; }
    run "$@" env LAB_RAILS=100mbit,100mbit "$script" lab --size 1M "${small[@]}"
    expect_status 0 "$what"
    expect_text ' 0 wrong of ' "$what"
}
elsewhere 'in a network namespace' unshare --net
elsewhere 'in a user namespace' unshare --user --map-root-user
elsewhere 'in namespaces of all kinds' unshare --user --map-root-user --net --ipc --uts --pid --fork --mount-proc
if unshare --user true 2>/dev/null; then # not in a chroot, for one
    elsewhere 'without the right to configure networks' setpriv --bounding-set -net_admin --inh-caps -net_admin
else
    run setpriv --bounding-set -net_admin --inh-caps -net_admin "$script" lab --size 1M "${small[@]}"
    expect_status 77 'with neither that right nor user namespaces'
fi

# Without root, where the system lets others make namespaces, and they can read what is tested.
other=(setpriv --reuid 65534 --regid 65534 --clear-groups)
if (($(id -u) == 0)) && chmod -R a+rX -- "$scratch" && "${other[@]}" test -x "$WEFT_TEST_PROGRAM" -a -x "$net"; then
    run "${other[@]}" "$net" true
    if ((status == 77)); then
        echo "not root: $output"
    else
        run "${other[@]}" "$net" "$WEFT_TEST_PROGRAM" mesh --listen --size 1M "${small[@]}" --log-dir= : \
            "$WEFT_TEST_PROGRAM" mesh --connect=10.77.0.1 --size 1M "${small[@]}" --log-dir= --quiet
        expect_status 0 'not root'
        expect_text ' 0 wrong of ' 'not root'
    fi
fi

finish
