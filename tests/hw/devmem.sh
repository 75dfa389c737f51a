#!/usr/bin/env bash
# devmem.sh: tries device-memory TCP on two machines with a network card that can do it, and packs all that its authors
# have to see into one archive. They have had no such card.
set -u

usage() {
    cat <<'END'
usage: devmem.sh RAIL GPU --listen ADDR | --connect ADDR [OPTION...]

Run it as root on both machines at the same time, with the same options: first

    tests/hw/devmem.sh eth1 0 --listen 10.0.0.1        on the machine that has this address on its RAIL
    tests/hw/devmem.sh eth1 0 --connect 10.0.0.1       on the other one

RAIL is the network card, GPU the number of a GPU near it, as nvidia-smi counts them.

  --weft FILE     the program (default: build/bin/weft of this tree, else the one in PATH)
  --archive FILE  what it leaves behind (default: devmem-HOST-DATE.tar.gz here)
  --queues N      receive queues that are set aside on RAIL (default 1)
  --rounds N      how often staged, devmem and NCCL are measured, in turns (default 3)
  --seconds N     how long each measurement takes (default 5)
  --sizes LIST    sizes of its messages (default 64K,1M,8388609,64M)
  --port N        the first of 1 + 3 x rounds ports, all of which the other machine must reach (default 18600)
  --limit N       seconds after which a measurement is given up (default 120)

What it does: it notes how the machine is, makes the card ready (weft nic prepare), sends messages of several sizes both
ways by device memory and verifies each byte, measures staged against device memory against NCCL (where it is there), and
puts the card back as it was (weft nic restore): also after a failure, and after SIGINT, SIGTERM or SIGHUP. Traffic of the
card may pause while its settings change. It installs nothing.

The archive has kernel, driver, GPU, settings and counters of the card before and after, results, logs, and what the kernel
said meanwhile. It names the host and its addresses: look through it before you send it.

Settings of weft may be given in the environment, as WEFT_DEVMEM_POOL=256M.

Exit status: 0 all of it worked; 1 something did not; 2 wrong usage; 77 not possible here, with the reason.
END
}

say() { printf 'devmem.sh: %s\n' "$*" >&2; }
wrong_usage() {
    say "$* (--help)"
    exit 2
}
unavailable() {
    say "not available here: $*"
    exit 77
}

# ------------------------------------------------------------------------------------------------------- what is asked for

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
weft='' archive='' queues=1 rounds=3 seconds=5 sizes=64K,1M,8388609,64M port=18600 limit=120 listen='' connect=''
names=()
while (($#)); do
    case $1 in
    -h | --help)
        usage
        exit 0
        ;;
    --weft | --archive | --queues | --rounds | --seconds | --sizes | --port | --limit | --listen | --connect)
        (($# > 1)) || wrong_usage "$1 needs a value"
        printf -v "${1#--}" %s "$2"
        shift
        ;;
    -*) wrong_usage "unknown option '$1'" ;;
    *) names+=("$1") ;;
    esac
    shift
done
((${#names[@]} == 2)) || wrong_usage "expected RAIL and GPU, not '${names[*]-}'"
rail=${names[0]} gpu=${names[1]}
[[ (-n $listen && -z $connect) || (-z $listen && -n $connect) ]] || wrong_usage 'either --listen ADDR or --connect ADDR'
[[ $gpu =~ ^[0-9]{1,3}$ ]] || wrong_usage "GPU '$gpu': expected a number"
for number in queues rounds seconds port limit; do
    [[ ${!number} =~ ^[1-9][0-9]{0,4}$ ]] || wrong_usage "--$number '${!number}': expected a number from 1 to 99999"
done
((port + 3 * rounds < 65536)) || wrong_usage "--port $port: there are not so many ports above it"

[[ -n $weft || ! -x $root/build/bin/weft ]] || weft=$root/build/bin/weft
weft=$(command -v -- "${weft:-weft}") || unavailable "there is no program weft: build it, or name it with --weft"
for tool in ethtool timeout tar; do
    command -v "$tool" >/dev/null || unavailable "needs the program $tool"
done
[[ -e /sys/class/net/$rail ]] || unavailable "there is no interface $rail"
((EUID == 0)) || unavailable 'only root may change the settings of a card'
archive=${archive:-$PWD/devmem-$(uname -n)-$(date +%Y%m%d-%H%M%S).tar.gz}
: >"$archive" || unavailable "$archive cannot be written"

# ------------------------------------------------------------------------------------------------------- what is kept

folder=$(mktemp -d) || exit 1
results=$folder/devmem
mkdir -- "$results"
worst=0 # exit status

# note FILE COMMAND...: what it prints, however it ends.
note() {
    local file=$results/$1
    shift
    {
        printf '$ %s\n' "$*"
        timeout -k 5 30 "$@" 2>&1 </dev/null
        printf '(status %s)\n\n' $?
    } >>"$file"
}

# What does not change. A tool that a machine lacks is a line in the file.
note_machine() {
    note machine.txt uname -a
    note machine.txt cat /proc/cmdline /etc/os-release /proc/driver/nvidia/version
    note machine.txt "$weft" --version
    note machine.txt ip -details address show "$rail"
    note machine.txt ethtool "$rail"
    note machine.txt ethtool -i "$rail"
    note machine.txt lspci -nn
    note machine.txt nvidia-smi -q
    note machine.txt nvidia-smi topo -m
    note machine.txt "$weft" topo
    env | grep -E '^(WEFT|CUDA|NCCL)_' | sort >"$results/environment.txt"
}

# note_card WHEN: its settings, and its counters in a file of their own.
note_card() {
    local what
    for what in -k -g -l -n -x; do note "card.$1.txt" ethtool "$what" "$rail"; done
    note "card.$1.txt" "$weft" nic status "$rail"
    note "counters.$1.txt" ethtool -S "$rail"
    note "counters.$1.txt" cat /proc/net/netstat /proc/net/snmp
}

# ------------------------------------------------------------------------------------------------------- the end

prepared='' running=''

put_card_back() {
    local words=$results/restore.txt
    if ! "$weft" nic restore "$rail" >"$words" 2>&1 </dev/null; then
        say "the card is not as it was: $(tail -n 1 "$words"); try again: weft nic restore $rail"
        worst=1
    fi
    note_card after
    cmp -s "$results/card.before.txt" "$results/card.after.txt" ||
        say 'the card differs from before: see card.before.txt and card.after.txt in the archive'
}

# However it comes, once. The card first, then what is known of it.
# shellcheck disable=SC2317  # called by the trap
leave() {
    local status=$?
    trap '' INT TERM HUP
    trap - EXIT
    if [[ -n $running ]]; then
        kill -TERM "$running" 2>/dev/null
        wait "$running"
    fi
    [[ -z $prepared ]] || put_card_back
    ((status != 0)) || status=$worst
    note kernel.txt dmesg
    echo "status $status" >>"$results/steps.txt"
    if tar -C "$folder" -czf "$archive" devmem; then say "all of it is in $archive"; else status=1; fi
    rm -rf -- "$folder"
    exit "$status"
}
trap leave EXIT
trap 'say "ended by a signal"; exit 130' INT TERM HUP

# ------------------------------------------------------------------------------------------------------- measurements

count=0
# measure NAME OPTION...: a mesh with the other machine, which makes the same ones in the same order; each has a port of
# its own, so that two that failed to meet do not disturb the next ones.
measure() {
    local name=$1 at=$((port + count++)) patience=30 status
    local where=(--connect "$connect:$at")
    shift
    ((count > 1)) || patience=600 # until the other machine is there at all
    [[ -z $listen ]] || where=(--listen "$listen:$at" --idle-timeout "$patience")
    printf '%-16s ' "$name"
    note "counters.$name.txt" ethtool -S "$rail"
    CUDA_VISIBLE_DEVICES=$gpu timeout -k 10 $((limit + patience)) "$weft" mesh "${where[@]}" --rails "$rail" --endpoints 1 \
        --memory cuda --mode loaded --connect-timeout 60 --out "$results/$name" --log info "$@" \
        >"$results/$name.txt" 2>"$results/$name.log" </dev/null &
    running=$!
    wait "$running"
    status=$?
    running=''
    # The other machine has left it out, as it lacks NCCL.
    [[ $name != nccl.* ]] || ! grep -q 'no other node came' "$results/$name.log" || status=77
    note "counters.$name.txt" ethtool -S "$rail"
    case $status in
    0) echo 'done' ;;
    77) echo "skipped: $(tail -n 1 "$results/$name.log")" ;;
    124 | 137) echo "nothing came of it within $((limit + patience)) s" ;;
    *) echo "status $status: $(tail -n 1 "$results/$name.log")" ;;
    esac
    printf '%s %s\n' "$name" "$status" >>"$results/steps.txt"
    return "$status"
}

# What a machine lacks is no failure.
compare() {
    measure "$@"
    local status=$?
    ((status == 0 || status == 77)) || worst=1
}

note_machine
note_card before
prepared=1 # and be it in part
"$weft" nic prepare "$rail" --queues "$queues" >"$results/prepare.txt" 2>&1 </dev/null
status=$?
cat -- "$results/prepare.txt"
((status == 0)) || exit "$status"
note_card prepared

# Where NCCL is not, the other machine need not be waited for.
timeout -k 10 60 "$weft" pair --local --backend nccl --endpoints 1 --size 8 -n 1 -w 0 >"$results/nccl.txt" 2>&1 </dev/null
nccl=$(($? != 77))

# What the card does wrong shows here, byte by byte: nothing is measured then.
measure self-test --set devmem=require --size 0,1,4095,4097,65537,8388609 -n 3 -w 0 --check all || exit
for ((round = 1; round <= rounds; round++)); do
    compare "staged.$round" --set devmem=off --size "$sizes" --duration "$seconds"
    compare "devmem.$round" --set devmem=auto --size "$sizes" --duration "$seconds"
    if ((nccl)); then
        compare "nccl.$round" --backend nccl --size "$sizes" --duration "$seconds"
    else
        printf '%-16s skipped: %s\n' "nccl.$round" "$(tail -n 1 "$results/nccl.txt")"
        echo "nccl.$round 77" >>"$results/steps.txt"
        ((count++)) # its port, which the other machine may wait at
    fi
done
