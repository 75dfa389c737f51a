#!/usr/bin/env bash
# one_message_test.sh PROGRAM: examples/one_message.c moves its message, and says what it was called wrong with.
set -u
# shellcheck source=tests/examples/pair.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/pair.sh"
program=$1

if listen "$program"; then
    run timeout 50 "$program" connect "127.0.0.1:$port"
    expect_status 0 'the sender'
    expect_text 'sent 16777216 bytes' 'the sender'
    listened
    expect_status 0 'the receiver'
    expect_text 'received 16777216 bytes' 'the receiver'
fi

run "$program" listen
expect_status 2 'without a port'
expect_text 'usage: ' 'without a port'
run timeout 50 "$program" listen nowhere.invalid:1
expect_status 1 'an address that does not exist'
expect_text nowhere.invalid 'an address that does not exist'

finish
