# shellcheck shell=bash
# lab_lib.sh: sourced by the tests of this folder, after check.sh: what is done to rails, and what they carry meanwhile.
# All but enter_lab runs in node 0 of a lab.
# shellcheck disable=SC2154  # root, scratch and status are check.sh's

export WEFT_TEST_PROGRAM=${WEFT_TEST_PROGRAM:-$root/build/bin/weft}
[[ -x $WEFT_TEST_PROGRAM ]] || { echo "there is no $WEFT_TEST_PROGRAM: set WEFT_TEST_PROGRAM" && exit 1; }
# A leak check wants to see itself in /proc, which is that of another pid namespace.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
net=$root/scripts/lab_net.sh
samples=$scratch/samples # lines "time, bytes of each rail", times in microseconds
events=$scratch/events   # lines "time, what happened"

# What a test leaves running writes into its folder.
leave() {
    local -a running
    ((BASHPID == $$)) || return
    mapfile -t running < <(jobs -p)
    ((${#running[@]})) && kill -KILL "${running[@]}" 2>/dev/null
    wait 2>/dev/null
    rm -rf -- "$scratch"
}
trap leave EXIT

# enter_lab SECONDS [ARGUMENT]...: goes on as this test with --inside in node 0. Does not return.
enter_lab() {
    local limit=$1
    shift
    run "$net" true
    ((status == 77)) && echo "skipped: $output" && exit 77
    expect_status 0 'the lab is made'
    TMPDIR=$scratch timeout --foreground -k 5 "$limit" "$net" bash "$0" --inside "$@" </dev/null
    exit
}

# on NODE COMMAND...
on() {
    local path=LAB_NODE$1
    if (($1 == 0)); then "${@:2}"; else nsenter --net="${!path}" -- "${@:2}"; fi
}

# ------------------------------------------------------------------------------------------------------- cables of our own

BAD_CABLE=${BAD_CABLE:-${WEFT_TEST_PROGRAM%/*}/bad_cable}
cables=() # of this process

# cut RAIL: the rail's two ends lead to ends of our own, from here on. They are both in node 0, which should not speak
# there: an interface without ARP hears no question.
cut() {
    local node
    ip link del "lab$1"
    ip link add "lab$1" mtu 9000 type veth peer name "end${1}0" mtu 9000
    ip link add "end${1}1" mtu 9000 type veth peer name "lab$1" mtu 9000 netns "$LAB_NODE1"
    for node in 0 1; do
        ip link set "end$1$node" arp off up
        on "$node" ip link set "lab$1" up
        add_addresses "$node" "$1"
    done
}

# cable RAIL EVERY LEAST [DELAY_US]
cable() {
    "$BAD_CABLE" "end${1}0" "end${1}1" "$2" "$3" 7 "${@:4}" >"$scratch/cable$1" 2>&1 &
    cables+=("$!")
    until [[ -s $scratch/cable$1 ]]; do
        kill -0 "$!" 2>/dev/null || { fail 'no cable' && return; }
        sleep 0.01
    done
}

# pull_cables: sets damaged, the segments.
pull_cables() {
    kill -TERM "${cables[@]}"
    wait "${cables[@]}"
    cables=()
    damaged=$(sed -n 's/^\([0-9]*\) segments damaged$/\1/p' "$scratch"/cable* | awk '{ sum += $1 } END { print sum + 0 }')
    rm -f -- "$scratch"/cable*
}

# ------------------------------------------------------------------------------------------------------- what rails carry

# now VARIABLE: microseconds.
now() { printf -v "$1" '%s' "${EPOCHREALTIME/[.,]/}"; }

# count_bytes: sets bytes, what went through each rail so far, both ways, as node 0's interfaces count it; and bytes_all.
count_bytes() {
    local name line
    local -a words
    bytes=() bytes_all=0
    while read -r line; do
        name=${line%%:*}
        [[ $name == lab* ]] || continue
        read -r -a words <<<"${line#*:}"
        bytes[${name#lab}]=$((words[0] + words[8]))
        bytes_all=$((bytes_all + words[0] + words[8]))
    done </proc/net/dev
}

sample() {
    local time
    now time
    count_bytes
    printf '%s %s\n' "$time" "${bytes[*]}" >>"$samples"
}

# sample_while PID
sample_while() {
    while kill -0 "$1" 2>/dev/null; do
        sample
        sleep 0.02
    done
}

# event TEXT
event() {
    local time
    now time
    printf '%s %s\n' "$time" "$*" >>"$events"
}

# show_table MILLISECONDS: the rates of all rails between the samples, in Mbit/s, about so long apart, and the events.
show_table() {
    awk -v step="$1" '
        function show(  i, text, sum) {
            for (i = 2; i <= NF; i++) {
                sum += ($i - last[i]) * 8 / ($1 - last[1])
                text = text sprintf(" %7.0f", ($i - last[i]) * 8 / ($1 - last[1]))
            }
            if (sum >= 1) printf "%7.0f ms %s %8.0f\n", ($1 - began) / 1000, text, sum
            else if (!still) print "       ..."
            still = sum < 1
        }
        function head(  i, text) {
            for (i = 2; i <= NF; i++) text = text sprintf(" %7s", "lab" (i - 2))
            print "      time " text "      all   (Mbit/s)"
        }
        NR == FNR { when[++count] = $1; $1 = ""; what[count] = $0; next }
        !begun { began = $1; begun = 1; head() }
        $1 >= last[1] + step * 1000 && last[1] { show() }
        { while (done < count && $1 >= when[done + 1]) printf "%7.0f ms  %s\n", (when[++done] - began) / 1000, what[done] }
        !last[1] || $1 >= last[1] + step * 1000 { for (i = 1; i <= NF; i++) last[i] = $i }' "$events" "$samples"
}

# rate FROM TO [RAIL]: Mbit/s between two times, of all rails or of one.
rate() {
    awk -v from="$1" -v to="$2" -v rail="${3:--1}" '
        { sum = 0; for (i = 2; i <= NF; i++) if (rail < 0 || i == rail + 2) sum += $i }
        $1 >= from && !begun { begun = $1; base = sum }
        $1 <= to { end = $1; last = sum }
        END { printf "%d\n", (end > begun) ? (last - base) * 8 / (end - begun) : 0 }' "$samples"
}

# totals: the part of the result that is about rails; not what its samples say of them.
totals() { sed -n '/^ "rails": \[/,/^ \]/p' "$scratch/result.json" 2>/dev/null; }

# rail_sum FIELD [RAIL]: of both nodes.
rail_sum() {
    totals | awk -F'[:,]' -v field="$1" -v rail="${2+lab}${2-}" '
        { gsub(/[ "]/, "") }
        $1 == "name" { name = $2 }
        $1 == field && (rail == "" || rail == name) { sum += $2 }
        END { printf "%d\n", sum }'
}

# ------------------------------------------------------------------------------------------------------- waiting

# wait_until WHAT COMMAND...: until COMMAND is true; a failure if the transfer ends before, or after two minutes.
wait_until() {
    local what=$1 time end
    shift
    now end
    end=$((end + 120000000))
    until "$@"; do
        now time
        if ! kill -0 "$server" 2>/dev/null || ! kill -0 "$client" 2>/dev/null; then
            fail "$what: the transfer was over before"
            return 1
        fi
        ((time < end)) || { fail "$what: not within two minutes" && return 1; }
        sleep 0.02
    done
}

# have_passed RAIL|all BYTES
have_passed() {
    count_bytes
    if [[ $1 == all ]]; then ((bytes_all >= $2)); else ((bytes[$1] >= $2)); fi
}

# wait_for_bytes RAIL|all BYTES WHAT: so many more than now.
wait_for_bytes() {
    local base
    count_bytes
    base=$bytes_all
    [[ $1 == all ]] || base=${bytes[$1]}
    wait_until "$3" have_passed "$1" "$((base + $2))"
}

# is_given_up RAIL: node 0 has no connection over it that has carried anything to speak of. One that is being set up waits
# for its own deadline.
is_given_up() {
    local address
    for address in $(hosts 0 "$1"); do
        ss -Htni state established src "$address" | grep -q 'bytes_sent:[0-9]\{6\}' && return 1
    done
    return 0
}

# ends PID SECONDS: whether it does. Bash would tell of any that a signal ends.
ends() {
    local time end
    now end
    end=$((end + $2 * 1000000))
    while kill -0 "$1"; do
        now time
        ((time < end)) || return
        sleep 0.02
    done
} 2>/dev/null

# ended PID SECONDS: the same, and if not it is killed.
ended() {
    ends "$@" && return
    kill -KILL "$1"
    wait "$1"
    return 1
} 2>/dev/null

# ------------------------------------------------------------------------------------------------------- what is done to rails

# addresses NODE RAIL: with prefix lengths; those of lab_net.sh.
addresses() {
    if [[ $LAB_IP == *4* ]]; then printf '10.77.%d.%d/24\n' "$2" $(($1 + 1)); fi
    if [[ $LAB_IP == *6* ]]; then printf 'fd77:77:77:%x::%d/64\n' "$2" $(($1 + 1)); fi
}

# hosts NODE RAIL: the same without them, as ss wants them.
hosts() {
    local address
    for address in $(addresses "$@"); do
        address=${address%/*}
        [[ $address == *:* ]] && address="[$address]"
        echo "$address"
    done
}

add_addresses() {
    local address flag
    for address in $(addresses "$1" "$2"); do
        flag=''
        [[ $address == *:* ]] && flag=nodad
        on "$1" ip addr replace "$address" dev "lab$2" $flag
    done
}

# Drops what comes in at a node, without a word to anybody. By a program of one instruction (return TC_ACT_SHOT), or by
# the action `drop`: kernels have the one or the other.
add_filter() {
    local filter=(tc filter add dev "lab$2" ingress)
    on "$1" tc qdisc add dev "lab$2" clsact || return
    on "$1" "${filter[@]}" bpf da bytecode '1,6 0 0 2' 2>/dev/null ||
        on "$1" "${filter[@]}" protocol all u32 match u32 0 0 action drop
}

# A firewall that drops both ways, and has the kernel tell senders so.
firewall() {
    on "$1" nft "table inet lab$2 {
        chain in { type filter hook input priority 0; iifname lab$2 drop; };
        chain out { type filter hook output priority 0; oifname lab$2 drop; }; }"
}

# break_rail METHOD RAIL NODE: link, address and firewall at NODE; reset closes what NODE has open over the rail, with RST;
# drop loses all packets on the way, deaf those to NODE.
break_rail() {
    local address
    case $1 in
    link) on "$3" ip link set "lab$2" down ;;
    address)
        for address in $(addresses "$3" "$2"); do
            on "$3" ip addr del "$address" dev "lab$2"
        done
        ;;
    reset)
        for address in $(hosts "$3" "$2"); do
            on "$3" ss -HKtn src "$address" >/dev/null
        done
        ;;
    drop) add_filter 0 "$2" && add_filter 1 "$2" ;;
    deaf) add_filter "$3" "$2" ;;
    firewall) firewall "$3" "$2" ;;
    esac || fail "$1 of lab$2 at node $3 cannot be done"
}

# mend_rail METHOD RAIL NODE
mend_rail() {
    case $1 in
    link) on "$3" ip link set "lab$2" up && add_addresses "$3" "$2" ;; # the kernel drops those of IPv6 with the link
    address) add_addresses "$3" "$2" ;;
    reset) ;;
    drop)
        on 0 tc qdisc del dev "lab$2" clsact
        on 1 tc qdisc del dev "lab$2" clsact
        ;;
    deaf) on "$3" tc qdisc del dev "lab$2" clsact ;;
    firewall) on "$3" nft delete table inet "lab$2" ;;
    esac || fail "$1 of lab$2 at node $3 cannot be mended"
}

# A second may pass until the kernel believes in a link again.
wait_for_links() {
    local node tries
    for node in 0 1; do
        for ((tries = 0; tries < 250; tries++)); do
            on "$node" ip -o link show | grep ' lab' | grep -qv ' state UP ' || continue 2
            sleep 0.02
        done
        fail "the links of node $node do not come up"
    done
}

# find_methods: sets methods, those that this kernel can do; says which it cannot.
find_methods() {
    methods=(link address)
    if add_filter 0 0 2>/dev/null; then
        methods+=(drop deaf)
    else
        echo 'left out: drop, for this kernel has neither cls_bpf nor the action drop'
    fi
    on 0 tc qdisc del dev lab0 clsact 2>/dev/null
    if firewall 0 0 2>/dev/null; then
        methods+=(firewall)
        on 0 nft delete table inet lab0
    else
        echo 'left out: firewall, for there is no nft here, or no kernel for it'
    fi
    if can_reset; then
        methods+=(reset)
    else
        echo 'left out: reset (ss -K), for this kernel lacks INET_DIAG_DESTROY'
    fi
}

can() { [[ " ${methods[*]} " == *" $1 "* ]]; }

# A connected UDP socket does as well to see it.
can_reset() {
    local killed
    exec 5<>/dev/udp/127.0.0.1/9
    killed=$(ss -HKun dst 127.0.0.1:9 2>/dev/null)
    exec 5>&-
    [[ -n $killed ]]
}
