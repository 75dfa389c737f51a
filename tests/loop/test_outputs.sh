#!/bin/bash
# test_outputs.sh: what a run leaves behind can be written, or the run says so before it measures; and where writing
# fails afterwards, the verdict is not "passed". On small file systems of its own, where that is allowed.
if [ "${1:-}" != inside ]; then
    for user in "" -r; do
        # shellcheck disable=SC2086
        if unshare $user -m -n -u sh -c 'mount -t tmpfs none /mnt' 2>/dev/null; then
            exec unshare $user -m -n -u "$(readlink -f "$0")" inside
        fi
    done
    echo "skipped: no file systems of its own here"
    exit 77
fi
. "$(dirname "$0")/nodes_lib.sh"
command -v ip >/dev/null || skip "needs the program ip"
machines=$(readlink -f "$(dirname "$0")/../../configs/topologies")
quick="--endpoints 2 --size 1K,4K -n 3 -w 0"

# file_system FOLDER OPTIONS: a small one.
file_system() {
    mkdir -p "$1" && mount -t tmpfs -o "$2" none "$1" || skip "no file systems of its own here"
}
file_system full size=64k
head -c 1M /dev/zero >full/filler 2>/dev/null
file_system small size=400k
file_system fixed ro
filled=$(ls -A full)

# refused OPTIONS...: before anything is measured, and nothing is left.
refused() {
    # shellcheck disable=SC2086
    weft mesh --local $quick "$@"
    pass_if "$*: status $status: $(cat err)" [ "$status" -eq 1 ]
    pass_if "$*: nothing is measured: $(cat out)" [ ! -s out ]
    pass_if "$*: nothing is left: $(ls -A full)" [ "$(ls -A full)" = "$filled" ]
}

# ---- no room
for option in "--out full/o" "--json full/j.json" "--csv full/c.csv" "--json-stream full/j.jsonl" "--log-dir full/logs"; do
    # shellcheck disable=SC2086
    refused $option
    pass_if "$option: told: $(cat err)" grep -q -- "^weft: $option: no room for about .*: No space left on device" err
done
# Each would fit by itself.
many="--endpoints 4 --size 1,2,3 -n 1 -w 0 --check 0"
# shellcheck disable=SC2086
weft mesh --local $many --json small/j.json
pass_if "there is room for one: $(cat err)" [ "$status" -eq 0 ]
rm -f small/*
# shellcheck disable=SC2086
refused $many --json small/j.json --out small/o
pass_if "but not for both: $(cat err)" grep -q "no room" err
pass_if "what could be written says so" grep -q '"error": "--out small/o: no room' small/j.json
rm -f small/*
# shellcheck disable=SC2086
(ulimit -f 10 && weft mesh --local $quick --out limited && exit "$status")
pass_if "a limit on the size of files: $(cat err)" grep -q "cannot write limited: a file may have 10240 bytes" err
pass_if "no folder stays" [ ! -e limited ]

# ---- not allowed
refused --out fixed/o
pass_if "told: $(cat err)" grep -q "fixed/o: Read-only file system" err
refused --json fixed/j.json
pass_if "told: $(cat err)" grep -q -- "--json fixed/j.json: cannot write there: Read-only file system" err
mkdir -p kept/latest results && echo mine >link
refused --out results/1 --latest link
pass_if "a file is no link: $(cat err)" grep -q -- "--latest link: that is no link: name one that may be replaced" err
pass_if "it stays" [ "$(cat link)" = mine ]
refused --out results/1 --latest kept/latest
refused --out results/1 --latest nowhere/latest
pass_if "told: $(cat err)" grep -q -- "--latest nowhere/latest: cannot write there: No such file or directory" err
pass_if "no folder stays: $(ls results)" [ -z "$(ls results)" ]

# ---- a file that cannot be written whole: the one before stays, and nothing else does
# not_replaced FILE ARGUMENTS...: weft writes to FILE on the full file system, and cannot.
not_replaced() {
    rm -f full/* && echo before >"$1"
    head -c 1M /dev/zero >full/filler 2>/dev/null
    weft "${@:2}"
    pass_if "weft ${*:2}: status $status" [ "$status" -eq 1 ]
    pass_if "weft ${*:2}: told: $(cat err)" grep -q "^weft: cannot write $1: No space left on device" err
    pass_if "weft ${*:2}: the file before stays: $(head -c 99 "$1")" [ "$(cat "$1")" = before ]
    pass_if "weft ${*:2}: nothing else is left: $(ls -A full)" [ "$(ls -A full | wc -l)" -eq 2 ]
}
not_replaced full/config.json config --json full/config.json
not_replaced full/topo.svg topo --xml "$machines/dgx-8nic.xml" --svg full/topo.svg
timeout 60 "$WEFT" config --json - >/dev/full 2>err </dev/null
pass_if "weft config --json - where there is no room: $(cat err)" grep -q "^weft: cannot write standard output: No space" err

# ---- what a link leads to is written, and the link stays
ln -s target.json link.json && ln -s target.csv link.csv
# shellcheck disable=SC2086
weft mesh --local $quick --json link.json --csv link.csv
pass_if "through links: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "the first link stays" [ -L link.json ]
pass_if "the second link stays" [ -L link.csv ]
pass_if "their targets are there" filled target.json target.csv
# shellcheck disable=SC2086
timeout 60 "$WEFT" mesh --local $quick --quiet --csv /dev/stdout >redirected 2>err </dev/null
pass_if "a link to standard output: $(cat err)" [ "$(grep -c '^weft,' redirected)" -eq 32 ]

# ---- no logs that nobody has asked for
mkdir plain
# shellcheck disable=SC2086
(cd plain && timeout 60 "$WEFT" mesh --local $quick --quiet)
pass_if "a run leaves nothing that nobody has asked for: $(ls -A plain)" [ -z "$(ls -A plain)" ]

# ---- the server's plan is the client's: more than there is room for
start_server mesh --out small/s --log-dir=
until_true "the server waits" grep -q 'waits on port' s.out
start_client mesh --endpoints 8 --size 1,2,3,4,5,6,7,8 -n 1 -w 0 --check 0
ends "$client"
pass_if "the client is told: $(cat c.err)" grep -q "gave up: --out small/s: no room" c.err
pass_if "the client: status $status" [ "$status" -eq 1 ]
ends "$server"
pass_if "the server: status $status: $(cat s.err)" [ "$status" -eq 1 ]
pass_if "nothing was measured: $(cat c.out)" [ "$(grep -c samples c.out s.out | grep -vc ':0$')" -eq 0 ]

# ---- what cannot be written in the end is in the verdict, and in what can be
rm -rf small/*
start_both mesh --endpoints 1 --mode isolated --size 1M -n 2000 -w 0 --log-dir small/logs
moved 40000000
head -c 1M /dev/zero >small/filler 2>/dev/null
ends "$client"
both="$status"
ends "$server"
pass_if "status $status and $both: $(cat s.err c.err)" [ "$status $both" = "1 1" ]
for node in s c; do
    pass_if "$node: in the verdict: $(cat $node.out)" grep -q '^[0-9]* of .*: FAILED, cannot write small/logs/.*: No space left' $node.out
    pass_if "$node: nothing passed: $(cat $node.out)" [ "$(grep -c passed $node.out)" -eq 0 ]
    pass_if "$node: the JSON says it" grep -q '"passed": false' $node/mesh.json
    pass_if "$node: and the status" grep -q '"exit_status": 1' $node/mesh.json
done
# ---- what weft doctor says of such places
# diagnosed STATUS FOLDER WORDS: that of the disk.
diagnosed() {
    weft doctor --rails 127.0.0.1 --port 0 --out "$2"
    pass_if "doctor, $2: status $status: $(cat out)" [ "$status" -eq "$1" ]
    pass_if "doctor, $2: told: $(grep disk: out)" grep -q "disk: .*$3" <(flat out)
}
ip link set lo up
file_system endless size=0
file_system crowded size=64m,nr_inodes=2
touch crowded/filler
diagnosed 1 /proc 'no file can be made in /proc: .*name a folder that you may write to (--out)'
diagnosed 1 fixed 'no file can be made in fixed: Read-only file system'
diagnosed 1 crowded 'the file system of crowded has no inode left for another file: delete something there'
diagnosed 1 full 'the file system of full is full'
diagnosed 0 endless 'a file can be made in endless, and the file system says no limit'
pass_if "doctor leaves nothing: $(ls -A endless)" [ -z "$(ls -A endless)" ]

# ---- names that are no UTF-8, as JSON has to be: of this host, of an interface, of a file
printf 'w\344g' >/proc/sys/kernel/hostname
rail=$'r\344il'
ip link add "$rail" type veth peer name far && ip addr add 10.9.9.1/24 dev "$rail" || skip "no veth interfaces here"
ip link set "$rail" up && ip link set far up
printf 'rails = %s # f\374r alle\n' "$rail" >$'r\344il.conf'
# named ARGUMENTS...: weft runs well, and its JSON names the host and the interface as well as it can.
named() {
    rm -f named.json
    weft "$@" --json named.json
    pass_if "weft $*: status $status: $(cat err)" [ "$status" -eq 0 ]
    pass_if "weft $*: the host's name: $(grep '"name": "w' named.json)" grep -q '"name": "w?g"' named.json
    pass_if "weft $*: the rail's name: $(grep '"r.*il' named.json)" grep -q '"r?il"' named.json
}
tiny="--size 64K -n 2 -w 0"
for command in mesh pair "pair --lat" "pair --backend plugin"; do
    # shellcheck disable=SC2086
    named $command --local $tiny --config $'r\344il.conf'
done
pass_if "where a setting comes from: $(grep '"origin": "file' named.json)" grep -q '"origin": "file r?il.conf:1"' named.json
# shellcheck disable=SC2086
named mesh --local $tiny --nodes 3 --rails "$rail"
named profile --local --endpoints 1 --size 64K -n 2 --drift-s 0 --traces traces --rails "$rail"
named peers --tools weft --size 64K --rounds 1 --seconds 0.02 --rails "$rail"
named collective -b 8 -e 8 -n 1 --duration 1 --rounds 1 --backend weft --rails "$rail"
named straggler --barriers 20 --interval-ms 1 --rails "$rail"
named setup-cost -n 1 --rails "$rail"
umount full small fixed endless crowded
finish
