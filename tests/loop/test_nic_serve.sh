#!/bin/bash
# test_nic_serve.sh: weft nic serve at its door, where no card is needed: who is let in, how many, what it makes of packets
# that are none, one helper at a time, and how it ends. What it lends is tested with a kernel that is played
# (tests/unit/test_bench_nic_serve.c), and in a guest with cards in software.
PATH=$PATH:/usr/sbin:/sbin
if [ "${1:-}" != inside ]; then
    . "$(dirname "$0")/loop_lib.sh"
    [ "$(id -u)" = 0 ] || skip "network namespaces need root"
    command -v setpriv >/dev/null || skip "needs the program setpriv"
    unshare --net --mount true 2>/dev/null || skip "no network namespaces here"
    cd / && rm -rf "$work"
    exec unshare --net --mount "$0" inside
fi
. "$(dirname "$0")/loop_lib.sh"

# The folder of records is this test's own.
mount --make-rprivate / 2>/dev/null
mount -t tmpfs none /run || skip "no file system of its own for /run"
chmod 755 "$work"
socket=/run/weft/nic.sock

one_line() { # STATUS WORDS WHAT
    pass_if "$3: status $status, expected $1: $(cat out err)" [ "$status" -eq "$1" ]
    pass_if "$3: one line with '$2': $(cat err)" [ "$(grep -c . err)" -eq 1 ]
    pass_if "$3: '$2' is told: $(cat err)" grep -qF -- "$2" err
}

# A condition that has to come.
until_true() { # WHAT COMMAND...
    local what=$1 end=$((SECONDS + 20))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || {
            fail "$what: did not come"
            return
        }
        sleep 0.02
    done
}

serve() { # OPTION...: in the background, its process in helper
    rm -f log # of an earlier one
    "$WEFT" nic serve "$@" 2>log >/dev/null </dev/null &
    helper=$!
    until_true "a helper: $(cat log)" grep -qs 'listens at\|built without' log
}

# Without TSAN_OPTIONS: it may name a file that this user cannot read.
call() { # USER WHAT: its output in calls
    TSAN_OPTIONS='' setpriv --reuid="$1" --regid="$1" --clear-groups "$LOOP_CALLER" $socket "$2" >calls 2>err </dev/null
}

serve --allow 1000,nobody
if grep -q 'built without libmnl' log; then
    wait "$helper"
    pass_if "without libmnl" [ $? -eq 77 ]
    finish
fi

# ---- wrong usage, and what is in the way
weft nic serve
one_line 2 '--allow USER' "nic serve"
weft nic serve --allow no-such-user
one_line 2 "--allow 'no-such-user': there is no such user" "a user who is not there"
weft nic serve --allow 1000 --dry-run
one_line 2 '--dry-run is not for' "nic serve --dry-run"
weft nic status --allow 1000
one_line 2 "--allow is for 'weft nic serve'" "nic status --allow"
weft nic serve lo --allow 1000
one_line 77 'lo: loopback has no card' "nic serve lo"
setpriv --bounding-set=-net_admin --inh-caps=-net_admin "$WEFT" nic serve --allow 1000 >out 2>err
status=$?
one_line 77 'no CAP_NET_ADMIN' "nic serve without the right"
unshare --user --map-root-user "$WEFT" nic serve --allow 1000 >out 2>err
status=$?
grep -q 'unshare failed' err || one_line 77 'no CAP_NET_ADMIN' "root of another user namespace"

# ---- one at a time
weft nic serve --allow 1000
one_line 1 "another helper, process $helper, listens at $socket" "a second helper"

# ---- who is let in
for user in 1000 65534 0; do
    call $user 1
    pass_if "user $user is let in: $(cat calls err)" grep -q '^0 $' calls
done
call 1001 1
pass_if "user 1001 is not: $(cat calls)" \
    grep -q "^-13 the helper 'weft nic serve' does not know user 1001: its --allow names those who may ask$" calls
pass_if "and that is in the log: $(cat log)" grep -q 'user 1001, process [0-9]* (loop_caller): refused' log
mkfifo go
exec 9<>go
TSAN_OPTIONS='' setpriv --reuid=1000 --regid=1000 --clear-groups "$LOOP_CALLER" $socket 20 <go >many 2>&1 9<&- &
caller=$!
until_true "20 connections" grep -q 'that was all' many
pass_if "16 of one user: $(sort many | uniq -c)" [ "$(grep -c '^0 $' many)" -eq 16 ]
pass_if "and no more: $(sort many | uniq -c)" [ "$(grep -c 'has 16 connections to the helper' many)" -eq 4 ]
call 65534 1
pass_if "another user still is let in: $(cat calls)" grep -q '^0 $' calls
kill "$caller"
wait "$caller" 2>/dev/null
all_gone() { [ -z "$(pgrep -P "$helper")" ]; }
until_true "their processes end" all_gone
exec 9>&-

# ---- packets that are no requests
call 1000 garbage
pass_if "garbage: $(cat calls err)" [ "$(cat calls)" = 'that was all' ]
until_true "their processes end, too" all_gone
pass_if "the helper goes on" kill -0 "$helper"
descriptors=$(find "/proc/$helper/fd" | wc -l)
call 1000 garbage
until_true "their processes end again" all_gone
pass_if "no descriptor stays open" [ "$(find "/proc/$helper/fd" | wc -l)" -eq "$descriptors" ]
call 1000 1
pass_if "and it answers: $(cat calls)" grep -q '^0 $' calls

# ---- how it ends
kill -9 "$helper"
wait "$helper" 2>/dev/null
pass_if "a helper that was killed leaves its socket" [ -S $socket ]
serve --allow 1000
pass_if "the next one takes its place: $(cat log)" kill -0 "$helper"
call 1000 1
pass_if "and answers: $(cat calls)" grep -q '^0 $' calls
for signal in TERM INT; do
    kill -$signal "$helper"
    wait "$helper"
    pass_if "SIG$signal: status" [ $? -eq 0 ]
    pass_if "SIG$signal: the socket is gone" [ ! -e $socket ]
    serve --allow 1000
done
kill "$helper"
wait "$helper"
pass_if "nothing is left: $(ls /run/weft)" [ -z "$(ls /run/weft)" ]
echo no socket >$socket
weft nic serve --allow 1000
one_line 1 "$socket is no socket" "a file in its place"
rm $socket
chmod 777 /run/weft
weft nic serve --allow 1000
one_line 1 'a folder of this user alone' "a folder that others can write to"
finish
