/* Which cards write to which GPUs: each pair is tried once, and what `required` makes of it. Cards of the test's own. */
#include "core_scene.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/cards/cards.h"

#define RAILS 3
#define GPU 1

/* What the cards are asked, and answer. */
static struct {
    struct wf_world world;
    struct wf_cards cards;
    int opened[RAILS], closed, lent, taken_back; /* calls */
    int open_result[RAILS], lend_result[RAILS];
} the;

static int rail_of(const struct wf_card_way *way)
{
    return way->interface[3] - '0';
}

static int open_inlet(void *host, const struct wf_card_way *way, struct wf_inlet *inlet, struct wf_status *status)
{
    (void)host;
    int rail = rail_of(way);
    the.opened[rail] += 1;
    if (the.open_result[rail] < 0)
        return wf_fail(status, the.open_result[rail], "card %d does not want to", rail);
    *inlet = (struct wf_inlet){.handle = &the.opened[rail], .bytes = 4096, .buffer_bytes = 4096};
    return 0;
}

static void close_inlet(void *host, struct wf_inlet *inlet)
{
    (void)host, (void)inlet;
    the.closed += 1;
}

static int lend(void *host, const struct wf_card_way *way, const void *base, uint64_t bytes, struct wf_card_loan *loan,
                struct wf_status *status)
{
    (void)host, (void)base, (void)bytes;
    int rail = rail_of(way);
    if (the.lend_result[rail] < 0)
        return wf_fail(status, the.lend_result[rail], "card %d lacks room", rail);
    the.lent += 1;
    *loan = (struct wf_card_loan){.handle = &the.lent, .binding = (uint32_t)rail + 1};
    return 0;
}

static void take_back(void *host, struct wf_card_loan *loan)
{
    (void)host;
    assert_non_null(loan->handle);
    the.taken_back += 1;
}

static const struct wf_card_ops card_ops = {
    .open = open_inlet, .close = close_inlet, .lend = lend, .take_back = take_back};

static int set_up(void **state)
{
    (void)state;
    memset(&the, 0, sizeof the);
    wf_world_init(&the.world, WF_LOG_ERROR, 1);
    wf_cards_init(&the.cards, &the.world, &card_ops, NULL);
    the.cards.rail_count = RAILS;
    for (int rail = 0; rail < RAILS; rail++)
        snprintf(the.cards.interfaces[rail], sizeof the.cards.interfaces[rail], "eth%d", rail);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wf_cards_fini(&the.cards);
    wf_world_fini(&the.world);
    return 0;
}

static int use(int device, struct wf_status *status)
{
    return wf_cards_use(&the.cards, NULL, NULL, device, status);
}

static void test_each_pair_is_tried_once(void **state)
{
    (void)state;
    struct wf_status status = {0};
    the.open_result[1] = -EOPNOTSUPP;
    the.open_result[2] = -EAGAIN;
    assert_int_equal(use(GPU, &status), 0);
    assert_int_equal(use(GPU, &status), 0);
    for (int rail = 0; rail < RAILS; rail++)
        assert_int_equal(the.opened[rail], 1);
    assert_non_null(wf_cards_inlet(&the.cards, 0, GPU));
    assert_null(wf_cards_inlet(&the.cards, 1, GPU));
    assert_null(wf_cards_inlet(&the.cards, 0, GPU + 1));
    assert_true(wf_cards_reach(&the.cards, GPU));
    assert_false(wf_cards_reach(&the.cards, GPU + 1));
    wf_cards_fini(&the.cards);
    assert_int_equal(the.closed, 1);
    wf_cards_init(&the.cards, &the.world, &card_ops, NULL);
    memset(the.cards.pairs, 0, sizeof the.cards.pairs);
}

static void test_numbers_that_are_none(void **state)
{
    (void)state;
    struct wf_status status = {0};
    assert_null(wf_cards_inlet(&the.cards, -1, 0));
    assert_null(wf_cards_inlet(&the.cards, WF_RAILS_MAX, 0));
    assert_null(wf_cards_inlet(&the.cards, 0, -1));
    assert_null(wf_cards_inlet(&the.cards, 0, WF_DOMAINS_MAX));
    assert_int_equal(use(WF_DOMAINS_MAX, &status), 0);
    the.cards.required = true;
    assert_int_equal(use(WF_DOMAINS_MAX, &status), -ENOTSUP);
}

static void test_one_card_is_enough_where_it_is_required(void **state)
{
    (void)state;
    struct wf_status status = {0};
    the.cards.required = true;
    the.open_result[0] = the.open_result[1] = -EAGAIN;
    assert_int_equal(use(GPU, &status), 0);
}

static void test_none_is_an_error_where_it_is_required(void **state)
{
    (void)state;
    struct wf_status status = {0};
    the.cards.required = true;
    the.open_result[0] = the.open_result[2] = -EOPNOTSUPP;
    the.open_result[1] = -EAGAIN;
    assert_int_equal(use(GPU, &status), -EOPNOTSUPP);
    assert_non_null(strstr(status.text, "card 1 does not want to")); /* the one that somebody could mend */
    assert_int_equal(use(GPU, &status), -EOPNOTSUPP);
}

static void test_rails_without_a_card(void **state)
{
    (void)state;
    struct wf_status status = {0};
    the.cards.interfaces[0][0] = '\0';
    assert_int_equal(use(GPU, &status), 0);
    assert_int_equal(the.opened[0], 0);
    assert_int_equal(the.opened[1], 1);
}

static void test_loans_of_the_cards_that_take_it(void **state)
{
    (void)state;
    struct wf_status status = {0};
    struct wf_card_loan *loans = NULL;
    static uint8_t memory[64];
    the.open_result[0] = -EOPNOTSUPP; /* no inlet, no loan */
    the.lend_result[1] = -ENOSPC;
    assert_int_equal(use(GPU, &status), 0);
    assert_int_equal(wf_cards_lend(&the.cards, NULL, NULL, GPU, memory, sizeof memory, &loans), 1 << 2);
    assert_non_null(loans);
    assert_null(loans[0].handle);
    assert_null(loans[1].handle);
    assert_int_equal(loans[2].binding, 3);
    wf_cards_take_back(&the.cards, loans);
    assert_int_equal(the.taken_back, 1);

    the.lend_result[2] = -ENOSPC;
    assert_int_equal(wf_cards_lend(&the.cards, NULL, NULL, GPU, memory, sizeof memory, &loans), 0);
    assert_null(loans);
    wf_cards_take_back(&the.cards, loans);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_each_pair_is_tried_once),
        TEST(test_numbers_that_are_none),
        TEST(test_one_card_is_enough_where_it_is_required),
        TEST(test_none_is_an_error_where_it_is_required),
        TEST(test_rails_without_a_card),
        TEST(test_loans_of_the_cards_that_take_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
