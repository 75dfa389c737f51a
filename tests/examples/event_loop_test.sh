#!/usr/bin/env bash
# event_loop_test.sh PROGRAM: examples/event_loop.c moves all its messages, and a signal ends both sides.
set -u
# shellcheck source=tests/examples/pair.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/pair.sh"
program=$1

if listen "$program"; then
    run timeout 50 "$program" connect "127.0.0.1:$port"
    expect_status 0 'the sender'
    expect_text 'sent 1000 of 1000 messages' 'the sender'
    listened
    expect_status 0 'the receiver'
    expect_text 'received 1000 of 1000 messages' 'the receiver'
fi

# The signal comes before there is a peer, so the loop finds it at its first look.
if listen "$program"; then
    kill -TERM "$listener"
    run timeout 50 "$program" connect "127.0.0.1:$port"
    expect_status 1 'the sender beside a receiver that was told to end'
    listened
    expect_status 1 'the receiver that was told to end'
    expect_text Terminated 'the receiver that was told to end'
    expect_text ' of 1000 messages' 'the receiver that was told to end'
    expect_no_text 'received 1000 ' 'the receiver that was told to end'
fi

run "$program" connect
expect_status 2 'without an address'
expect_text 'usage: ' 'without an address'
run timeout 50 "$program" listen nowhere.invalid:1
expect_status 1 'an address that does not exist'
expect_text nowhere.invalid 'an address that does not exist'

finish
