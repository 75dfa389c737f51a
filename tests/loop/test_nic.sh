#!/bin/bash
# test_nic.sh: weft nic where no card can: loopback, veth, dummy. Each gets a line that names what is in the way, nothing is
# changed, and nothing is recorded. What it does to a card that can is tested with a kernel that is played
# (tests/unit/test_bench_nic.c), and in a guest with cards in software.
PATH=$PATH:/usr/sbin:/sbin
if [ "${1:-}" != inside ]; then
    . "$(dirname "$0")/loop_lib.sh"
    [ "$(id -u)" = 0 ] || skip "links between network namespaces need root"
    command -v ip >/dev/null || skip "needs the program ip"
    unshare --net --mount true 2>/dev/null || skip "no network namespaces here"
    cd / && rm -rf "$work"
    exec unshare --net --mount "$0" inside
fi
. "$(dirname "$0")/loop_lib.sh"

weft nic status
if grep -q 'built without libmnl' err; then
    pass_if "without libmnl: status $status" [ "$status" -eq 77 ]
    finish
fi

# The folder of records is this test's own.
mount --make-rprivate / 2>/dev/null
mount -t tmpfs none /run || skip "no file system of its own for /run"
ip link set lo up
ip link add near0 type veth peer name far0 || skip "no veth interfaces here"
ip link add dummy0 type dummy 2>/dev/null
cards=$(ip -o link | sed -n 's/^[0-9]*: \([^:@]*\).*/\1/p' | tr '\n' ' ')

view() { # FILE
    for card in $cards; do
        echo "$card"
        "$LOOP_CARD" "$card"
        ip -o link show "$card"
    done >"$1"
}
view before
pass_if "the kernel tells of rings or features: $(cat before)" grep -q '^features: [0-9a-f][0-9a-f]' before

one_line() { # STATUS WORDS WHAT
    pass_if "$3: status $status, expected $1: $(cat out err)" [ "$status" -eq "$1" ]
    pass_if "$3: one line with '$2': $(cat err)" [ "$(grep -c . err)" -eq 1 ]
    pass_if "$3: '$2' is told: $(cat err)" grep -qF -- "$2" err
    pass_if "$3: nothing on standard output: $(cat out)" [ ! -s out ]
}

untouched() { # WHAT
    view after
    pass_if "$1: untouched: $(diff before after)" cmp -s before after
    pass_if "$1: nothing is recorded: $(ls -A /run)" [ -z "$(ls -A /run)" ]
}

# ---- what no card here can
weft nic prepare lo
one_line 77 'lo: loopback has no card' "prepare lo"
for card in $cards; do
    [ "$card" = lo ] && continue
    for dry in '' --dry-run; do
        # shellcheck disable=SC2086 # none is no word
        weft nic prepare "$card" $dry
        one_line 77 "$card: " "prepare $card $dry"
        pass_if "prepare $card $dry: the driver is named: $(cat err)" grep -q 'tells of no header split\|cannot receive' err
    done
done
# shellcheck disable=SC2086 # several
weft nic prepare $cards
pass_if "all of them: status $status" [ "$status" -eq 77 ]
pass_if "all of them: a line each: $(cat err)" [ "$(grep -c . err)" -eq "$(wc -w <<<"$cards")" ]
untouched "prepare"

weft nic status
pass_if "status: $(cat err)" [ "$status" -eq 0 ]
for card in $cards; do
    pass_if "status tells of $card: $(cat out)" grep -q "^$card: " out
done
pass_if "status tells what is in the way: $(cat out)" grep -q '^  loopback has no card' out
cp out all
weft nic status near0
pass_if "status near0: $(cat out)" grep -q '^near0: veth, MTU 1500' out
pass_if "status near0: nothing else: $(cat out)" [ "$(grep -c . out)" -eq 2 ]
setpriv --bounding-set=-net_admin --inh-caps=-net_admin "$WEFT" nic status >out 2>err
pass_if "status needs no rights: $(diff out all) $(cat err)" cmp -s out all
untouched "status"

weft nic restore
pass_if "restore: $(cat out err)" [ "$status" -eq 0 ]
pass_if "restore says that nothing was changed: $(cat out)" grep -q 'has changed no card' out
weft nic restore near0
pass_if "restore near0: $(cat out err)" [ "$status" -eq 0 ]
pass_if "restore near0 says so: $(cat out)" grep -q "^near0: 'weft nic prepare' has changed nothing here" out
untouched "restore"

# ---- wrong usage
weft nic
one_line 2 'which of prepare, status, restore and serve?' "nic"
weft nic prepair near0
one_line 2 "did you mean 'prepare'?" "nic prepair"
weft nic prepare
one_line 2 'which cards?' "nic prepare"
weft nic prepare near1
one_line 2 "there is no interface 'near1'" "nic prepare near1"
weft nic prepare near0 near1
one_line 2 "there is no interface 'near1'" "nothing is done where one is not here"
weft nic restore a-name-of-more-letters
one_line 2 'is too long for a name' "nic restore of a long name"
weft nic status near0 --dry-run
one_line 2 "--dry-run" "nic status --dry-run"
for number in 0 65 -1 x 1x '' 99999999999999999999; do
    weft nic prepare near0 --queues="$number"
    one_line 2 "must be a number from 1 to 64" "--queues $number"
done
untouched "wrong usage"

# ---- records that are somebody else's
mkdir -m 777 /run/weft && chmod 777 /run/weft
weft nic restore
pass_if "a folder that others can write to: $(cat err)" grep -q 'others can write there' err
pass_if "a folder that others can write to: status $status" [ "$status" -eq 1 ]
chmod 755 /run/weft
record=/run/weft/nic.$(stat -Lc %i /proc/self/ns/net).near0
echo 'weft-nic 7' >"$record"
weft nic restore
pass_if "a record of another version: $(cat err)" grep -q 'is no record of near0' err
pass_if "a record of another version: status $status" [ "$status" -eq 1 ]
pass_if "and it stays" [ -e "$record" ]
chmod 777 /run/weft
weft nic status near0
pass_if "another user's record is seen: $(cat out err)" grep -q "as 'weft nic prepare' has made it" out
chmod 755 /run/weft
printf 'weft-nic 1\nboot another\ninterface 7 near0\nsplit 1\nhds_thresh 0\nntuple 0\nqueues 1\nrss 1 0\nend\n' >"$record"
weft nic restore
pass_if "of another boot there is nothing to put back: $(cat out err)" [ "$status" -eq 0 ]
pass_if "and the record goes" [ ! -e "$record" ]
printf 'weft-nic 1\nboot %s\ninterface 9999 near0\nsplit 1\nhds_thresh 0\nntuple 0\nqueues 1\nrss 1 0\nend\n' \
    "$(cat /proc/sys/kernel/random/boot_id)" >"$record"
# shellcheck disable=SC2046 # many words
weft nic restore near0 $(yes far0 | head -n 600)
pass_if "a card that is not here among many: status $status" [ "$status" -eq 1 ]
pass_if "its record is named: $(cat err)" grep -q "record $record (interface 9999) is not here" err
pass_if "and it stays, too" [ -e "$record" ]
pass_if "the lock is its user's own" [ "$(stat -c %a /run/weft/.lock)" = 600 ]
rm -r /run/weft
untouched "records of others"
finish
