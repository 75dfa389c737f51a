/* What weft topo asks of a card for device-memory TCP, on a kernel that is played. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/topo/topo.h"
#include "devmem/devmem.h"
#include "devmem/lent.h"
#include "devmem_fixture.h"

static struct fake_kernel fake;
static struct bench_topo_cards cards;
static struct wf_device_way way;

static int start(void **state)
{
    struct wf_status status;

    (void)state;
    fake_kernel_init(&fake);
    cards = (struct bench_topo_cards){.tried = true};
    way = (struct wf_device_way){.queues = -7};
    return wf_devmem_open(&fake.kernel, &cards.devmem, &status);
}

static int stop(void **state)
{
    (void)state;
    bench_topo_cards_fini(&cards);
    return 0;
}

/* Packets are spread over the first `queues` queues. */
static void spread(uint32_t queues)
{
    for (uint32_t i = 0; i < FAKE_RSS; i++)
        fake.rss[i] = i % queues;
}

static void ask(const char *why, const char *change, bool prepared)
{
    int writes = fake.writes;

    bench_topo_ask_card(&cards, FAKE_NAME, &way);
    assert_true(way.asked && !way.never);
    assert_string_equal(way.why, why);
    assert_string_equal(way.change, change);
    assert_int_equal(way.prepared, prepared);
    assert_int_equal(fake.writes, writes);
}

static void a_card_is_ready_once_a_queue_is_set_aside(void **state)
{
    (void)state;
    spread(fake.queues);
    ask("other traffic reaches the last queue, too", "ethtool -X " FAKE_NAME " equal 3", true);
    assert_int_equal(way.queues_aside, 0);
    spread(1);
    ask("", "", false);
    assert_int_equal(way.queues_aside, 3);
    assert_int_equal(way.queues, fake.queues);
    assert_int_equal(way.header_split, 1);
    assert_int_equal(way.hds_thresh, 0);
    assert_int_equal(way.rules, 1);
    assert_int_equal(way.rules_most, fake.rules_most);
    assert_int_equal(way.rules_used, 0);
}

static void what_is_first_in_the_way_is_the_cards_own_word(void **state)
{
    (void)state;
    fake.split = WF_DEVMEM_SPLIT_OFF;
    ask("header split is off", "ethtool -G " FAKE_NAME " tcp-data-split on", true);
    assert_int_equal(way.header_split, 0);
    fake.used[0] = fake.used[1] = fake.used[2] = true;
    fake.rules_most = 3;
    ask("its table of rules is full: 3 of 3", "ethtool -N " FAKE_NAME " delete N", false);
    fake.loopback = true;
    bench_topo_ask_card(&cards, FAKE_NAME, &way);
    assert_true(way.never);
    assert_string_equal(way.why, "loopback has no card that could write to device memory");
}

/* Then the name of its driver is all there is. */
/* A program that has had a queue of it has found that out. */
static void a_card_that_leads_no_single_stream(void **state)
{
    char folder[] = "/tmp/weft-topo.XXXXXX", command[64];
    struct wf_status status;
    struct wf_lent_folder held;

    (void)state;
    assert_non_null(mkdtemp(folder));
    cards.folder = folder;
    bench_topo_ask_card(&cards, FAKE_NAME, &way);
    assert_false(way.by_port);
    assert_int_equal(wf_lent_hold(folder, &held, &status), 0);
    wf_lent_note_by_port(held.folder, FAKE_INDEX, true);
    bench_topo_ask_card(&cards, FAKE_NAME, &way);
    assert_true(way.by_port);
    wf_lent_note_by_port(held.folder, FAKE_INDEX, false);
    wf_lent_let_go(&held);
    bench_topo_ask_card(&cards, FAKE_NAME, &way);
    assert_false(way.by_port);
    snprintf(command, sizeof command, "rm -r -- '%s'", folder);
    assert_int_equal(system(command), 0);
}

static void a_card_that_is_gone_stays_unasked(void **state)
{
    (void)state;
    bench_topo_ask_card(&cards, "nosuchnic", &way);
    assert_false(way.asked);
    assert_int_equal(way.queues, -7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_card_is_ready_once_a_queue_is_set_aside, start, stop),
        cmocka_unit_test_setup_teardown(what_is_first_in_the_way_is_the_cards_own_word, start, stop),
        cmocka_unit_test_setup_teardown(a_card_that_leads_no_single_stream, start, stop),
        cmocka_unit_test_setup_teardown(a_card_that_is_gone_stays_unasked, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
