#!/bin/bash
# test_key.sh: 'weft key' makes keys that work; they never show up anywhere else; who listens without one is warned.
. "$(dirname "$0")/loop_lib.sh"
limit=30
umask 077

# ---- weft key
weft key
pass_if "weft key: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "weft key: a comment and a key: $(wc -l <out) lines" [ "$(wc -l <out)" -eq 2 ]
pass_if "weft key: 64 digits" grep -Eqx '[0-9a-f]{64}' out
pass_if "weft key: nothing on standard error: $(cat err)" [ ! -s err ]
cp out one.key
weft key
cp out other.key
pass_if "two keys are alike" [ "$(tail -n 1 one.key)" != "$(tail -n 1 other.key)" ]
weft key --size 4
pass_if "weft key with arguments: status $status" [ "$status" -eq 2 ]
weft key --help
pass_if "weft key --help: status $status: $(cat out)" grep -q 'weft key >FILE' out
secret=$(tail -n 1 one.key)
for mode in 644 640 604; do
    : >open.key
    chmod $mode open.key
    status=0
    "$WEFT" key >open.key 2>err || status=$?
    pass_if "weft key into a file of mode $mode: status $status" [ "$status" -eq 1 ]
    pass_if "weft key into a file of mode $mode: the mode and what to do: $(cat err)" grep -q "0$mode.*umask 077.*chmod 600" err
    pass_if "weft key into a file of mode $mode: something is in it" [ ! -s open.key ]
done
chmod 600 open.key
"$WEFT" key >open.key
pass_if "weft key into a file of one's own" [ "$(wc -l <open.key)" -eq 2 ]
pass_if "weft key into a pipe" [ "$("$WEFT" key | wc -l)" -eq 2 ]

# ---- two nodes
# Starts a server; its port in $port, what it says in `served` (standard output) and `serving` (standard error).
serve() { # ADDRESS ARGUMENTS...
    local address=$1
    shift
    rm -f served serving
    "$WEFT" pair --listen "${address}0" --connect-timeout 20 --rails 127.0.1.1 "$@" >served 2>serving </dev/null &
    server=$!
    waiting "$server" served serving
}

stop() {
    kill "$server" 2>/dev/null
    wait "$server" 2>/dev/null
}

connect() { # ARGUMENTS...
    weft pair --connect "127.0.1.1:$port" --connect-timeout 10 --rails 127.0.1.1 --size 64K -n 2 "$@"
}

# Neither the key nor a piece of it.
hidden() { # WHAT
    pass_if "$1: the key shows" [ "$(cat out err served serving ./*.json 2>/dev/null | grep -c "${secret:8:16}")" -eq 0 ]
}

serve 127.0.1.1: --set key_file=one.key --set log=debug
connect --set key_file=one.key --set log=debug --json result.json
pass_if "the same key: status $status: $(cat err)" [ "$status" -eq 0 ]
wait "$server"
pass_if "the same key: the server's status: $(cat serving)" [ $? -eq 0 ]
pass_if "the file's name is among the settings" grep -q one.key result.json
pass_if "the invitation names the key file: $(cat served)" grep -q -e '--set key_file=one.key' served
hidden "the same key"

serve 127.0.1.1: --set key_file=one.key --set log=debug
connect --set key_file=other.key --set log=debug
pass_if "another key: status $status" [ "$status" -eq 1 ]
pass_if "another key: $(cat err)" grep -q 'refused: another key than ours' err
pass_if "another key, told there: $(cat serving)" grep -q 'refused 127.*another key than ours' serving
connect
pass_if "no key: status $status" [ "$status" -eq 1 ]
pass_if "no key: $(cat err)" grep -q 'the dialling side none' err
stop
hidden "another key"

# ---- files that are no use
weft config --set key_file=one.key
pass_if "weft config names the file: $(grep key_file out)" grep -q '^key_file  *one.key' out
hidden "weft config"
weft pair --local --rails 127.0.1.1 --size 64K -n 1 --set key_file="$secret"
pass_if "the key for its file: status $status" [ "$status" -eq 2 ]
hidden "the key for its file"
WEFT_KEY_FILE=$secret weft config
pass_if "the same in the environment: status $status" [ "$status" -eq 2 ]
hidden "the same in the environment"
chmod 644 one.key
weft pair --local --rails 127.0.1.1 --size 64K -n 1 --set key_file=one.key
pass_if "readable by others: status $status" [ "$status" -eq 2 ]
pass_if "with the mode and the command: $(cat err)" grep -q '0644.*chmod 600 one.key' err
chmod 600 one.key
head -c 70 one.key >short.key
weft pair --local --rails 127.0.1.1 --size 64K -n 1 --set key_file=short.key
pass_if "half a file: status $status" [ "$status" -eq 2 ]
pass_if "the file is named: $(cat err)" grep -q 'short.key' err
# A value that cannot be used is wrong usage, whatever is wrong with it, and whichever command it is for.
for command in "mesh --local" "pair --local" "pair --listen 127.0.1.1:0" "pair --connect 127.0.1.1:1" "peers --size 4K"; do
    # shellcheck disable=SC2086
    weft $command --rails 127.0.1.1 --key-file none.key --json bad.json
    pass_if "weft $command without its key file: status $status" [ "$status" -eq 2 ]
    pass_if "the file is named: $(cat err)" grep -q "key_file 'none.key': No such file" err
    pass_if "once: $(cat err)" [ "$(wc -l <err)" -eq 1 ]
    pass_if "and in the JSON" grep -q '^ "error": "cannot open key_file .none.key.' bad.json
    pass_if "with the status" grep -q '^ "exit_status": 2,' bad.json
    rm -f bad.json
done
hidden "files that are no use"

# ---- the warning
serve "" --json -
pass_if "everywhere without a key: one line warns: $(cat serving)" [ "$(grep -c 'warning' serving)" -eq 1 ]
pass_if "the commands are there: $(cat serving)" [ "$(grep -c 'key_file=weft.key' serving)" -eq 2 ]
connect
wait "$server"
pass_if "none of it on standard output" [ "$(grep -c 'warning\|weft.key' served)" -eq 0 ]
pass_if "once: $(cat serving)" [ "$(grep -c 'warning' serving)" -eq 1 ]
pass_if "who connects is not warned: $(cat err)" [ "$(grep -c 'warning' err)" -eq 0 ]
serve "" --set key_file=one.key
pass_if "with a key: $(cat serving)" [ "$(grep -c 'warning' serving)" -eq 0 ]
stop
serve 127.0.1.1:
pass_if "on loopback: $(cat serving)" [ "$(grep -c 'warning' serving)" -eq 0 ]
stop
weft pair --local --rails 127.0.1.1 --size 64K -n 1
pass_if "--local: $(cat err)" [ ! -s err ]

# ---- where a node listens: at the address that is named, at those of the rails, and nowhere else
# Addresses that something listens on at the port, as the kernel writes them.
listening() {
    awk -v port="$(printf ':%04X$' "$port")" '$4 == "0A" && $2 ~ port { print substr($2, 1, length($2) - 5) }' \
        /proc/net/tcp /proc/net/tcp6 2>/dev/null | sort | tr '\n' ' '
}
serve 127.0.1.1:
alone=$(listening)
stop
pass_if "the one rail alone: $alone" [ "$(wc -w <<<"$alone")" -eq 1 ]
serve 127.0.0.1: --rails 127.0.1.1,127.0.2.1
both=$(listening)
stop
pass_if "an address and two rails: $both" [ "$(wc -w <<<"$both")" -eq 3 ]
pass_if "one of which is the one before: $both" grep -q "$alone" <<<"$both"

pass_if "nobody is left" nothing_left
finish
