#!/bin/bash
# test_inputs.sh: wrong input is told in one line that names the value and the remedy, with the right exit status: 2 for
# what was typed or set, 1 for the state of the machine. test_usage.sh is about what becomes of runs.
. "$(dirname "$0")/loop_lib.sh"
limit=20

base="--local --endpoints 1 --size 64K -n 1 -w 0 --rails $rails"
near="--rails $rails --size 64K -n 1 --connect-timeout 2"

# One line on standard error with WORD in it, and the status.
told() { # STATUS WORD WHAT
    pass_if "$3: status $status, expected $1: $(head -3 err)" [ "$status" -eq "$1" ]
    pass_if "$3: no line names $2: $(head -3 err)" grep -Fqe "$2" err
    pass_if "$3: not one line: $(cat err)" [ "$(wc -l <err)" -eq 1 ]
    pass_if "$3: a control character: $(cat -v err)" [ "$(LC_ALL=C tr -d '\n' <err | LC_ALL=C grep -c '[[:cntrl:]]')" -eq 0 ]
}

# ---- addresses
for command in "mesh --connect" "pair --connect" "mesh --listen" "peers --connect" "raw --connect" "raw --listen"; do
    # shellcheck disable=SC2086
    expect 2 "an IPv6 address with a port is written [::1]:18555" $command ::1:18555
done
expect 2 "[fe80::1%lo]:18555" mesh --connect fe80::1%lo:18555
expect 2 "[V6ADDR]:PORT" mesh --connect ::1:99999
expect 1 "is [::1]:8555 meant?" mesh --connect ::1:8555 $near
expect 1 "is [::1]:8555 meant?" mesh --listen ::1:8555 $near
expect 1 "is [::1]:8555 meant?" raw --listen ::1:8555
expect 2 "port 0" mesh --connect 127.0.0.1:0 $near
expect 2 "port 0" pair --connect 127.0.0.1 --port 0 $near
expect 2 "port 0" peers --connect 127.0.0.1:0 $near
expect 2 "port 0" raw --connect 127.0.0.1:0
expect 2 "'18555' is a number" mesh --connect 18555 $near
expect 2 "'http://127.0.0.1:18555' is not an address" mesh --connect http://127.0.0.1:18555 $near
expect 2 "name one" mesh --connect 127.0.0.1,127.0.0.2 $near
expect 2 "two addresses" mesh --connect 127.0.0.1:1 --connect 127.0.0.1:2 $near
expect 2 "link-local" raw --connect fe80::1
expect 1 "no interface of this machine has that address" mesh --listen 203.0.113.5:0 $near
expect 1 "no interface of this machine has that address" raw --listen 203.0.113.5:0

# ---- what is not here is wrong, what is down is not
expect 2 "rail 'eth99' (setting rails) is not here" mesh $base --rails eth99
expect 2 "rails has an empty item" mesh $base --rails lo,
expect 1 "no network interface is taken unasked: none is up" mesh $base \
    --rails "^*,$(printf 'eth%d,' {1..200})lo"
expect 2 "kernel has no foo" mesh $base --congestion foo
expect 2 "none of that name" raw --connect 127.0.0.1:1 --congestion foo
expect 2 "--cpu 1000" raw --connect 127.0.0.1:1 --cpu 1000
expect 2 "gpus = 'x'" mesh $base --gpus x
expect 2 "there is no rail 'eth99'" mesh $base --tx-bindings eth99:0
NCCL_SOCKET_IFNAME=eth99 weft mesh --local --size 64K
told 2 "environment NCCL_SOCKET_IFNAME" "NCCL_SOCKET_IFNAME of an interface that is not here"
NCCL_SOCKET_IFNAME=eth99,lo weft mesh --local --size 64K
pass_if "NCCL's interfaces of a whole cluster: status $status: $(cat err)" [ "$status" -eq 0 ]
# A variable of another program that a WEFT_ one beats is not even looked at, by node1 either.
long=$(printf 'eth%d,' {1..999})
NCCL_SOCKET_IFNAME=$long WEFT_RAILS=$rails weft mesh --local --size 64K -n 2
pass_if "NCCL's interfaces, too many, and WEFT_RAILS: status $status: $(cat err)" [ "$status" -eq 0 ]
UCCL_TCPX_NUM_CHANNELS=many WEFT_CHANNELS=2 weft mesh $base
pass_if "another's channels, no number, and WEFT_CHANNELS: status $status: $(cat err)" [ "$status" -eq 0 ]
NCCL_GPUDIRECTTCPX_TX_BINDINGS='eth98:0;eth99:0' weft mesh $base --json lenient.json
pass_if "NCCL's bindings of a whole cluster: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "are noted" grep -q 'node0.*tx_bindings: eth98 is not among the rails' lenient.json
WEFT_TX_BINDINGS=eth99:0 weft mesh $base
told 2 "there is no rail 'eth99'" "WEFT_TX_BINDINGS"

# ---- sizes
expect 2 "size = '1 M': write 1M (" mesh $base --size "1 M"
expect 2 "write 1536K (" mesh $base --size 1.5M
expect 2 "write 1K (" mesh $base --chunk 1KB
expect 2 "write 1M for '1MiB' (" mesh $base --size 64K,1MiB
expect 2 "write 1536K (" raw --connect 127.0.0.1:1 --size 1.5M

# ---- settings files
printf '\xef\xbb\xbfchunk = 64K\r\n' >mark.conf
weft mesh $base --config mark.conf
pass_if "a byte order mark is passed over: status $status: $(cat err)" [ "$status" -eq 0 ]
printf 'CHUNK=64K\n' >upper.conf
expect 2 "upper.conf:1: unknown setting 'CHUNK': did you mean 'chunk'?" mesh $base --config upper.conf
printf 'WEFT_CHUNK=64K\n' >variable.conf
expect 2 "'WEFT_CHUNK': did you mean 'chunk'?" mesh $base --config variable.conf
printf 'chunk = "64K"\n' >quoted.conf
expect 2 "without quotation marks" mesh $base --config quoted.conf
printf 'chunk = 64K\0\n' >null.conf
expect 2 "null.conf:1: the line has a null byte" mesh $base --config null.conf
truncate -s 100M large.conf
expect 2 "'large.conf' has 104857600 bytes" mesh $base --config large.conf
mkfifo pipe.conf
expect 2 "'pipe.conf' is no regular file" mesh $base --config pipe.conf
WEFT_CONFIG=pipe.conf weft mesh $base
told 2 "'pipe.conf' is no regular file" "WEFT_CONFIG of a pipe"
printf 'window = 32\n' >good.conf
WEFT_CONFIG=pipe.conf weft mesh $base --config good.conf --json replaced.json
pass_if "--config takes the place of WEFT_CONFIG, for the library, too: status $status: $(cat err)" [ "$status" -eq 0 ]
pass_if "its values count: $(grep -A2 '"window": {' replaced.json)" \
    grep -q '"origin": "file good.conf:1"' <(grep -A2 '"window": {' replaced.json)
WEFT_CONFIG=good.conf weft mesh $base --config=
told 2 "--config is empty: name a file" "an empty --config, which no variable replaces"
expect 2 "Is a directory" mesh $base --config .
expect 2 "is no regular file" mesh $base --config /dev/zero

# ---- limits of this process
weft_limited() { # ULIMIT-OPTION VALUE ARGUMENTS...: `err` has room, whatever the limit
    local option=$1 value=$2
    shift 2
    # shellcheck disable=SC2016
    timeout -k 5 "$limit" bash -c 'ulimit "$1" "$2" || exit 99; shift 2; exec "$@"' _ "$option" "$value" "$WEFT" "$@" \
        2>&1 >out </dev/null | cat >err
    status=${PIPESTATUS[0]}
}
# A sanitizer's runtime writes a file before the program begins.
if (ulimit -f 0 && exec "$WEFT" --version) >/dev/null 2>&1; then
    weft_limited -f 0 mesh $base --quiet --log-dir= --json small.json
    told 1 "cannot write small.json: a file may have 0 bytes (ulimit -f)" "ulimit -f"
else
    echo "skipped: ulimit -f 0: the program does not start behind it, which is no doing of weft's"
fi
weft_limited -f 1 topo --json topo.json
told 1 "cannot write topo.json: a file may have 1024 bytes (ulimit -f)" "ulimit -f of weft topo"
weft_limited -f 1 config
told 1 "cannot write standard output: a file may have 1024 bytes (ulimit -f)" "ulimit -f of standard output"
if [ -z "${LOOP_SANITIZED:-}" ]; then
    weft_limited -v 400000 mesh --local --endpoints 4 --size 64M -n 1 --rails $rails
    told 1 "400000 KiB of address space: ulimit -v" "ulimit -v"
    weft_limited -v 200000 raw --connect 127.0.0.1:1 --size 64M
    told 1 "200000 KiB of address space: ulimit -v" "ulimit -v of weft raw"
    weft_limited -s 100 config
    told 1 "ulimit -s" "ulimit -s"
fi

# ---- a full disk: a device of the test's own where it may make one
full=/dev/full
if mknod full c 1 7 2>/dev/null; then
    full=$PWD/full
fi
for what in config --version --help "mesh --help" topo "raw --help" "mesh $base" \
    "pair --local --lat --size 8 -n 4 --rails $rails"; do
    # shellcheck disable=SC2086
    timeout -k 5 "$limit" "$WEFT" $what >"$full" 2>err </dev/null
    status=$?
    told 1 "cannot write standard output: No space left on device" "weft $what to a full disk"
done

# ---- paths
echo precious >precious
expect 1 "--json .: that is a folder" mesh $base --json .
expect 1 "--json .: that is a folder" peers --local --tools raw --json .
expect 1 "cannot write precious/: that is a file" mesh $base --out precious
weft mesh $base --out made --latest precious
told 1 "--latest precious: that is no link" "--latest"
pass_if "a file in the place of a link is kept" grep -q precious precious

# ---- words
expect 2 "unknown command '?[31mmesh'" $'\e[31mmesh'
expect 2 "unknown option '--?[31mred'" mesh $base $'--\e[31mred'
expect 2 "'eth??31m'" mesh $base --rails $'eth\xc2\x9b31m'
expect 2 "unknown setting 'aaaaaaaaaa" mesh $base --set "$(printf 'a%.0s' {1..3000})=1"
expect 2 "did you mean '--help'?" mesh --hlep
expect 2 "unknown option '--frobnicate': see 'weft mesh --help'" mesh $base --frobnicate
expect 2 "unknown command 'pies': see 'weft --help'" pies
expect 2 "--set '': expected NAME=VALUE" mesh $base --set ""
expect 2 "--seconds 'abc'" peers --local --seconds abc

# ---- somebody else at the address
start() { # COMMAND...: sets pid; its output in files heard.out, heard.err
    rm -f heard.out heard.err
    "$@" >heard.out 2>heard.err </dev/null &
    pid=$!
}
stop() {
    kill $pid 2>/dev/null
    wait $pid 2>/dev/null
}
# Sets port to the one that the command of start() has printed.
await_port() { # PATTERN
    local tries
    for ((tries = 0; tries < 500; tries++)); do
        port=$(sed -n "s/^$1\([0-9]*\).*/\1/p" heard.out heard.err 2>/dev/null | head -1)
        [ -n "$port" ] && return
        sleep 0.02
    done
    fail "no port: $(cat heard.out heard.err)"
}
for answer in 'HTTP/1.1 400 Bad Request' $'\e[31mX\x07 whatever it says' ''; do
    printf '%s' "$answer" >answer
    start "$LOOP_TOOL" answer answer
    await_port ''
    word="is that a weft server? What it says begins with '$(LC_ALL=C tr -c '\40-\176' . <<<"$answer" | head -c 8)'"
    [ -n "$answer" ] || word="took the connection and said nothing for 2"
    expect 1 "$word" mesh --connect 127.0.0.1:"$port" $near
    stop
    start "$LOOP_TOOL" answer answer
    await_port ''
    expect 1 "is it 'weft raw --listen'?" raw --connect 127.0.0.1:"$port" --timeout 1
    stop
done

# ---- the other node runs another command
for server in mesh pair peers; do
    for client in mesh pair peers raw; do
        [ $server = $client ] && continue
        # shellcheck disable=SC2086
        start timeout 20 "$WEFT" $server --listen 127.0.0.1:0 $near
        await_port 'node0 waits on port '
        if [ $client = raw ]; then
            expect 1 "is it 'weft raw --listen'?" raw --connect 127.0.0.1:"$port" --timeout 2
            pass_if "weft raw does not end weft $server" kill -0 $pid
            stop
            continue
        fi
        expect 1 "node0 runs 'weft $server' and node1 'weft $client'" $client --connect 127.0.0.1:"$port" $near
        wait $pid
        status=$?
        cp heard.err err
        told 1 "node0 runs 'weft $server' and node1 'weft $client'" "the server of weft $server"
    done
done
start timeout 20 "$WEFT" raw --listen 127.0.0.1:0
await_port 'weft: listening on port '
expect 1 "that is 'weft raw --listen'" mesh --connect 127.0.0.1:"$port" $near
expect 1 "that is 'weft raw --listen'" pair --connect 127.0.0.1:"$port" $near
pass_if "weft mesh does not end weft raw" kill -0 $pid
stop

# ---- somebody else who comes
# shellcheck disable=SC2086
start timeout 20 "$WEFT" mesh --listen 127.0.0.1:0 $near
await_port 'node0 waits on port '
exec 3<>"/dev/tcp/127.0.0.1/$port"
(
    trap '' PIPE # the node may have hung up after the first bytes
    printf 'GET / HTTP/1.1\r\nHost: weft\r\n\r\n' >&3 2>/dev/null
)
timeout 10 cat <&3 >/dev/null
exec 3>&-
# shellcheck disable=SC2086
weft mesh --connect 127.0.0.1:"$port" $near
pass_if "the node that was meant is served after a browser: status $status: $(cat err)" [ "$status" -eq 0 ]
wait $pid
pass_if "and the server ends well: $(cat heard.err)" [ $? -eq 0 ]
pass_if "and has told who came: $(cat heard.err)" grep -Fq "what it says begins with 'GET / HT'" heard.err
pass_if "nobody is left" nothing_left
finish
