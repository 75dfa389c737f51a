#!/usr/bin/env bash
# conform_mutations_test.sh CONFORM STANDIN: a plugin that breaks a rule fails the case of that rule, and says why.
set -u
# shellcheck source=tests/scripts/check.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/check.sh"
conform=$1 standin=$2

# caught FAULT CASE WORDS: with the fault of standin.c the case fails with these words; without it passed before.
caught() {
    STANDIN_FAULT=$1 run "$conform" --plugin "$standin" --table v11 --rounds 20 --bound 150 --limit 3000 --case "$2"
    expect_status 1 "$1"
    expect_text "$3" "$1"
}

run "$conform" --plugin "$standin" --table v11 --rounds 20 --bound 150 --limit 3000 \
    --case basic,call_again,foreign_handle,sizes,larger_receives,any_order,requests_32,would_block,groups \
    --case close_in_flight,larger_send,rounds,properties,never_used,killed_peer
expect_status 0 'without a fault'

caught accept_blocks basic 'accept blocked for'
caught test_blocks basic 'test blocked for'
caught close_blocks close_in_flight 'blocked for'
caught prints basic 'printed beside'
caught handle_unread foreign_handle 'foreign handle'
caught marker_stays would_block 'leaves the marker'
caught done_unwritten basic 'without a word'
caught byte_wrong sizes 'byte 999'
caught writes_behind larger_receives 'behind a buffer'
caught size_of_room larger_receives 'are reported'
caught sizes_behind larger_receives 'NCCL adds all'
caught few_requests requests_32 'nothing moves'
caught oldest_only youngest_first 'nothing moves'
caught tags_ignored groups 'FAILED: groups'
caught larger_taken larger_send 'are no error'
caught writes_late close_in_flight 'FAILED'
caught descriptor_stays rounds 'descriptors after'
caught thread_stays never_used 'threads after'
caught no_speed properties 'speed 0'
caught consumed_refused basic 'irecvConsumed fails'
caught loss_unseen killed_peer 'are no error'
caught loss_unsaid killed_peer 'no warning'
finish
