/* Cards and the GPUs whose memory they write to: what is counted, and when an inlet is left. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/cards/cards.h"

#define MIB (UINT64_C(1) << 20)
#define DEVICE 3

/* Two rails, whose cards take everything. */
struct scene {
    struct wf_world world;
    struct wf_cards cards;
};

static int open_any(void *host, const struct wf_card_way *way, struct wf_inlet *inlet, struct wf_status *status)
{
    (void)way, (void)status;
    *inlet = (struct wf_inlet){.handle = host, .bytes = 64 * 4096, .buffer_bytes = 4096};
    return 0;
}

static void close_any(void *host, struct wf_inlet *inlet)
{
    (void)host, (void)inlet;
}

static int lend(void *host, const struct wf_card_way *way, const void *base, uint64_t bytes, struct wf_card_loan *loan,
                struct wf_status *status)
{
    (void)way, (void)base, (void)bytes, (void)status;
    *loan = (struct wf_card_loan){.handle = host, .binding = 7};
    return 0;
}

static void take_back(void *host, struct wf_card_loan *loan)
{
    (void)host, (void)loan;
}

static int set_up(void **state)
{
    static const struct wf_card_ops ops = {.open = open_any, .close = close_any, .lend = lend, .take_back = take_back};
    static struct scene scene; /* large */

    memset(&scene, 0, sizeof scene);
    wf_world_init(&scene.world, WF_LOG_ERROR, 1);
    wf_cards_init(&scene.cards, &scene.world, &ops, &scene);
    scene.cards.rail_count = 2;
    strcpy(scene.cards.interfaces[0], "first");
    strcpy(scene.cards.interfaces[1], "second");
    if (wf_cards_use(&scene.cards, NULL, NULL, DEVICE, NULL) != 0)
        return -1;
    *state = &scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;

    wf_cards_fini(&scene->cards);
    wf_world_fini(&scene->world);
    return 0;
}

static void what_came_and_went_is_counted(void **state)
{
    struct scene *scene = *state;
    struct wf_cards *cards = &scene->cards;
    struct wf_inlet *first = wf_cards_inlet(cards, 0, DEVICE), *second = wf_cards_inlet(cards, 1, DEVICE);

    assert_int_equal(wf_cards_came(cards, first, 8192, 100, 3), 0);
    assert_int_equal(wf_cards_came(cards, second, 4096, 0, 1), 0);
    wf_cards_gave_back(first, 2);
    wf_cards_sent(cards, DEVICE, 5000);
    wf_cards_copied(cards, DEVICE, 4);

    struct wf_card_counts counts = wf_cards_counts(cards, DEVICE), other = wf_cards_counts(cards, DEVICE + 1);
    assert_int_equal(counts.inlets, 2);
    assert_int_equal(counts.device_bytes, 12288);
    assert_int_equal(counts.host_bytes, 100);
    assert_int_equal(counts.held, 2);
    assert_int_equal(counts.sent_bytes, 5000);
    assert_int_equal(counts.sends_copied, 4);
    assert_int_equal(other.inlets + other.device_bytes + other.sent_bytes, 0);
    counts = wf_cards_counts(cards, WF_DOMAINS_MAX);
    assert_int_equal(counts.inlets + counts.sent_bytes, 0);
}

static void a_good_inlet_stays(void **state)
{
    struct scene *scene = *state;
    struct wf_inlet *inlet = wf_cards_inlet(&scene->cards, 0, DEVICE);

    for (int i = 0; i < 64; i++)
        assert_int_equal(wf_cards_came(&scene->cards, inlet, MIB, MIB, 0), 0);
    assert_ptr_equal(wf_cards_inlet(&scene->cards, 0, DEVICE), inlet);
    assert_string_equal(scene->world.fallbacks, "");
}

/* No word before the trial is over: what comes first may be what was under way before the card knew of the stream. */
static void a_poor_inlet_is_left_after_its_trial(void **state)
{
    struct scene *scene = *state;
    struct wf_cards *cards = &scene->cards;
    struct wf_inlet *inlet = wf_cards_inlet(cards, 0, DEVICE);

    assert_int_equal(wf_cards_came(cards, inlet, 4 * MIB, 12 * MIB - 1, 9), 0);
    assert_non_null(wf_cards_inlet(cards, 0, DEVICE));
    assert_int_equal(wf_cards_came(cards, inlet, 0, 1, 0), -EOPNOTSUPP);
    assert_null(wf_cards_inlet(cards, 0, DEVICE));
    assert_int_equal(wf_cards_came(cards, inlet, 64 * MIB, 0, 0), -EOPNOTSUPP); /* once left, always left */

    struct wf_card_counts counts = wf_cards_counts(cards, DEVICE);
    assert_int_equal(counts.inlets, 1);
    assert_int_equal(counts.device_bytes, 68 * MIB);
    assert_int_equal(counts.held, 9);
}

static void the_other_rail_goes_on(void **state)
{
    struct scene *scene = *state;
    struct wf_cards *cards = &scene->cards;

    for (int rail = 0; rail < 2; rail++) {
        assert_true(wf_cards_reach(cards, DEVICE));
        assert_int_equal(wf_cards_came(cards, wf_cards_inlet(cards, rail, DEVICE), 0, 16 * MIB, 0), -EOPNOTSUPP);
    }
    assert_false(wf_cards_reach(cards, DEVICE));
    assert_int_equal(wf_cards_use(cards, NULL, NULL, DEVICE, NULL), 0); /* and is not tried again */
    assert_false(wf_cards_reach(cards, DEVICE));
}

/* With the card, the GPU and the share. */
static void it_is_said_once(void **state)
{
    struct scene *scene = *state;
    struct wf_cards *cards = &scene->cards;
    struct wf_inlet *inlet = wf_cards_inlet(cards, 1, DEVICE);

    pthread_mutex_lock(&scene->world.lock); /* whatever the caller holds */
    assert_int_equal(wf_cards_came(cards, inlet, 5 * MIB, 15 * MIB, 0), -EOPNOTSUPP);
    assert_int_equal(wf_cards_came(cards, inlet, 0, 20 * MIB, 0), -EOPNOTSUPP);
    pthread_mutex_unlock(&scene->world.lock);
    assert_non_null(strstr(scene->world.fallbacks, "GPU 3 is staged on second: the card has put only 25 % of 20 MiB"));
    assert_null(strchr(scene->world.fallbacks, '\n'));
}

/* A card that brings little may still send. */
static void loans_go_on(void **state)
{
    struct scene *scene = *state;
    struct wf_cards *cards = &scene->cards;
    struct wf_card_loan *loans;
    char memory;

    assert_int_equal(wf_cards_came(cards, wf_cards_inlet(cards, 0, DEVICE), 0, 16 * MIB, 0), -EOPNOTSUPP);
    assert_int_equal(wf_cards_lend(cards, NULL, NULL, DEVICE, &memory, 1, &loans), 3);
    assert_int_equal(loans[0].device, DEVICE);
    assert_int_equal(loans[1].device, DEVICE);
    wf_cards_take_back(cards, loans);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_came_and_went_is_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_good_inlet_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_poor_inlet_is_left_after_its_trial, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_other_rail_goes_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_is_said_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(loans_go_on, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
