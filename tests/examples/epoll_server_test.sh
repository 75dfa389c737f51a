#!/usr/bin/env bash
# epoll_server_test.sh PROGRAM: examples/epoll_server.c serves hundreds of clients that come, go, die and stall, and none
# waits for another. CROWD is the program that plays them.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
program=$1
clients=256
export WEFT_RAILS=127.0.0.1 WEFT_PEERS=400
processes=()
trap 'kill -9 "${processes[@]}" 2>/dev/null; rm -rf -- "$scratch"' EXIT
ulimit -n "$(ulimit -Hn)" 2>/dev/null
[[ $(ulimit -n) == unlimited || $(ulimit -n) -ge 4096 ]] || clients=64

"$program" 0 >"$scratch/server" 2>"$scratch/complaints" &
server=$!
processes+=("$server")
until port=$(sed -n 's/^port //p' "$scratch/server") && [[ -n $port ]]; do
    kill -0 "$server" 2>/dev/null || { fail "the server does not start: $(<"$scratch/complaints")"; finish; }
    sleep 0.02
done

# Some say nothing, some half a word, and stay.
for i in {1..20}; do
    exec {stranger}<>"/dev/tcp/127.0.0.1/$port" || fail "stranger $i does not get through"
    ((i % 2)) && printf 'WEFT' >&"$stranger"
done

# Some die in the middle: each is killed once its first message has come back.
for i in 1 2 3; do
    "$CROWD" "127.0.0.1:$port" 24 >"$scratch/victim$i" 2>&1 &
    processes+=("$!")
done
for i in 1 2 3; do
    until grep -q '^talking$' "$scratch/victim$i" || ! kill -0 "${processes[i]}" 2>/dev/null; do
        sleep 0.02
    done
    grep -q '^talking$' "$scratch/victim$i" || fail "victim $i never talked: $(<"$scratch/victim$i")"
    kill -9 "${processes[i]}" 2>/dev/null
done

run timeout 100 "$CROWD" "127.0.0.1:$port" "$clients"
expect_status 0 "a crowd of $clients"
expect_text "$((clients - clients / 4)) clients served, " "a crowd of $clients"

# After all that it serves the next as it did the first.
run timeout 100 "$CROWD" "127.0.0.1:$port" 8
expect_status 0 'those who come later'
expect_text '6 clients served, 2 stalled' 'those who come later'

kill -TERM "$server"
wait "$server"
status=$? output=$(<"$scratch/server")
expect_status 0 'the server'
answers=$(sed -n 's/ messages went back$//p' "$scratch/server")
[[ ${answers:-0} -ge $(((clients - clients / 4 + 6) * 12)) ]] || fail "only ${answers:-no} messages went back"
run "$program"
expect_status 2 'without a port'
expect_text 'usage: ' 'without a port'

finish
