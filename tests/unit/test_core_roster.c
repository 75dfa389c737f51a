/* The ready lists of a session: which halves a worker has to look at, when it is told, and who is offered work. */
#include "core/channel/ops.h"
#include "core/channel/state.h"
#include "core/channel/work.h"
#include "core_scene.h"

#include <stdlib.h>

#define RAILS 3
#define CHANNELS (2 * RAILS) /* an express and a bulk channel for each pair of rails */

static const struct wf_channel_ops no_ops = {0};

/* A channel at work, with an open window and nothing posted. Worker 0 sends on rail 0, worker 1 on the others. */
static struct wf_channel *join(struct scene *scene, uint32_t id, enum wf_channel_kind kind, int rail)
{
    struct wf_join request = {.channel = id, .incarnation = 1, .kind = (uint8_t)kind, .rail = (uint8_t)rail};
    struct wf_channel *channel = calloc(1, sizeof *channel);
    assert_non_null(channel);
    assert_int_equal(wf_channel_init(channel, &scene->lines, &no_ops, &request), 0);
    wf_lines_rail(&scene->lines, rail);
    wf_channel_assign(channel, scene->crew.workers[rail == 0 ? 0 : 1], scene->crew.workers[1]);
    wf_lines_enter(&scene->lines, channel, false);
    wf_window_grant(&channel->tx.window, 4, UINT32_MAX);
    wf_channel_rise(channel, 100 + (int)id);
    wf_channel_set_idle(channel, true);
    return channel;
}

static int set_up(void **state)
{
    int result = scene_set_up_locked(state);
    struct scene *scene = *state;
    assert_int_equal(wf_lines_expect(&scene->lines, CHANNELS), 0);
    for (uint32_t rail = 0; rail < RAILS; rail++) {
        join(scene, 2 * rail, WF_CHANNEL_EXPRESS, (int)rail);
        join(scene, 2 * rail + 1, WF_CHANNEL_BULK, (int)rail);
    }
    return result;
}

static struct wf_channel *bulk_of(struct scene *scene, int rail)
{
    return scene->lines.channels[2 * rail + 1];
}

static struct wf_roster *roster_of(struct scene *scene, int worker)
{
    return &scene->lines.rosters[worker];
}

/* The worker has looked at everything. */
static void look(struct scene *scene, int worker)
{
    struct wf_roster *roster = roster_of(scene, worker);
    struct wf_list *lists[] = {&roster->due[WF_CHANNEL_EXPRESS], &roster->due[WF_CHANNEL_BULK], &roster->receivers};
    for (int i = 0; i < 3; i++)
        while (wf_list_pop_front(lists[i]))
            continue;
    wf_roster_seen(roster);
}

static int tell(struct scene *scene, int worker)
{
    int before = scene->engines[worker]->wakes;
    wf_lines_tell(&scene->lines, NULL);
    return scene->engines[worker]->wakes - before;
}

static bool is_due(struct scene *scene, const struct wf_channel *channel)
{
    struct wf_roster *roster = wf_lines_roster(&scene->lines, channel->tx.worker);
    WF_LIST_EACH (link, following, &roster->due[channel->kind]) {
        if (WF_CONTAINER(link, struct wf_channel, tx.due_link) == channel)
            return true;
    }
    return false;
}

static bool is_offered(const struct wf_channel *channel)
{
    const struct wf_lines *lines = channel->lines;
    bool listed = wf_link_in_list(&channel->tx.idle_link), bit = lines->offers[channel->kind] >> channel->rail & 1;
    assert_int_equal(listed, bit); /* one channel of each kind on a rail */
    return listed;
}

/* --- due --- */

static void test_what_happens_to_a_half_is_entered_once(void **state)
{
    struct scene *scene = *state;
    look(scene, 0);
    look(scene, 1);
    wf_channel_tell_state(bulk_of(scene, 0));
    wf_channel_ask(bulk_of(scene, 0), true);
    assert_true(is_due(scene, bulk_of(scene, 0)));
    assert_false(is_due(scene, bulk_of(scene, 1)));
    assert_non_null(wf_list_pop_front(&roster_of(scene, 0)->due[WF_CHANNEL_BULK]));
    assert_null(wf_list_pop_front(&roster_of(scene, 0)->due[WF_CHANNEL_BULK]));
}

static void test_only_workers_with_something_due_are_told_and_once(void **state)
{
    struct scene *scene = *state;
    look(scene, 0);
    look(scene, 1);
    assert_int_equal(tell(scene, 0) + tell(scene, 1), 0);
    wf_channel_tell_state(bulk_of(scene, 1));
    wf_channel_tell_state(bulk_of(scene, 2));
    assert_int_equal(tell(scene, 1), 1);
    assert_int_equal(tell(scene, 1), 0);
    assert_int_equal(scene->engines[0]->wakes, 0);
}

static void test_a_half_that_becomes_due_after_the_look_is_told_again(void **state)
{
    struct scene *scene = *state;
    look(scene, 1);
    wf_channel_tell_state(bulk_of(scene, 1));
    look(scene, 1);
    wf_channel_tell_state(bulk_of(scene, 1));
    assert_true(wf_link_in_list(&roster_of(scene, 1)->untold_link));
    look(scene, 1);
    assert_false(wf_link_in_list(&roster_of(scene, 1)->untold_link)); /* it has looked: no notice is needed */
}

static void test_a_half_that_has_let_go_is_on_no_list(void **state)
{
    struct scene *scene = *state;
    struct wf_channel *channel = bulk_of(scene, 0);
    wf_channel_doom(channel);
    wf_channel_sink(channel);
    assert_true(is_due(scene, channel));
    assert_false(wf_channel_detach(channel, true, false));
    assert_false(is_due(scene, channel));
    assert_true(wf_link_in_list(&channel->rx.due_link)); /* the other half has not let go yet */
    assert_true(wf_channel_detach(channel, false, true));
    wf_channel_tx_due(channel);
    wf_channel_rx_due(channel);
    assert_false(is_due(scene, channel));
    assert_false(wf_link_in_list(&channel->rx.due_link));
}

/* --- offers --- */

static void test_an_idle_half_with_an_open_window_is_offered_work(void **state)
{
    struct scene *scene = *state;
    struct wf_channel *channel = bulk_of(scene, 1);
    assert_true(is_offered(channel));
    wf_channel_set_idle(channel, false);
    assert_false(is_offered(channel));
    wf_channel_set_idle(channel, true);
    assert_true(is_offered(channel));
    wf_channel_sink(channel);
    assert_false(is_offered(channel));
}

static void test_a_window_that_closes_and_opens_again(void **state)
{
    struct scene *scene = *state;
    struct wf_channel *channel = bulk_of(scene, 2);
    while (wf_channel_open(channel, 1))
        wf_window_spend(&channel->tx.window, 1);
    wf_channel_set_idle(channel, true);
    assert_false(is_offered(channel));
    look(scene, 1);
    wf_window_grant(&channel->tx.window, 8, UINT32_MAX);
    wf_channel_reopened(channel, false);
    assert_true(is_offered(channel));
    assert_false(is_due(scene, channel)); /* there is no work for it */
    wf_channel_reopened(channel, true);
    assert_true(is_due(scene, channel));
}

static void test_offers_go_to_other_rails_each_time(void **state)
{
    struct scene *scene = *state;
    int seen[RAILS] = {0};
    for (int i = 0; i < 2 * RAILS; i++)
        seen[wf_lines_next_offer(&scene->lines, WF_CHANNEL_BULK, UINT64_MAX)->rail] += 1;
    for (int i = 0; i < RAILS; i++)
        assert_int_equal(seen[i], 2);
    for (int i = 0; i < 3; i++)
        assert_int_equal(wf_lines_next_offer(&scene->lines, WF_CHANNEL_BULK, UINT64_C(1) << 1)->rail, 1);
    assert_null(wf_lines_next_offer(&scene->lines, WF_CHANNEL_BULK, UINT64_C(1) << 5));
}

static void test_the_first_idle_half_is_the_same_each_time(void **state)
{
    struct scene *scene = *state;
    for (int i = 0; i < 3; i++)
        assert_ptr_equal(wf_lines_first_idle(&scene->lines, WF_CHANNEL_BULK, UINT64_MAX), bulk_of(scene, 0));
    wf_channel_set_idle(bulk_of(scene, 0), false);
    assert_ptr_equal(wf_lines_first_idle(&scene->lines, WF_CHANNEL_BULK, UINT64_MAX), bulk_of(scene, 1));
    wf_channel_set_idle(bulk_of(scene, 0), true);
    assert_ptr_equal(wf_lines_first_idle(&scene->lines, WF_CHANNEL_BULK, UINT64_MAX), bulk_of(scene, 0));
    for (int i = 0; i < RAILS; i++)
        wf_channel_set_idle(bulk_of(scene, i), false);
    assert_null(wf_lines_first_idle(&scene->lines, WF_CHANNEL_BULK, UINT64_MAX));
}

static void test_each_worker_is_chosen_once_for_an_offer(void **state)
{
    struct scene *scene = *state;
    int workers[WF_OFFERS_AT_ONCE];
    assert_int_equal(wf_lines_choose(&scene->lines, WF_CHANNEL_BULK, UINT64_MAX, workers), 2);
    assert_int_equal(workers[0] + workers[1], 1);
    wf_channel_set_idle(bulk_of(scene, 0), false);
    assert_int_equal(wf_lines_choose(&scene->lines, WF_CHANNEL_BULK, UINT64_MAX, workers), 1);
    assert_int_equal(workers[0], 1);
    assert_int_equal(wf_lines_choose(&scene->lines, WF_CHANNEL_BULK, 1, workers), 0);
}

static void test_a_half_is_asked_once_in_a_round(void **state)
{
    struct scene *scene = *state;
    wf_lines_begin_round(&scene->lines);
    assert_true(wf_channel_ask_once(bulk_of(scene, 0)));
    assert_false(wf_channel_ask_once(bulk_of(scene, 0)));
    assert_true(wf_channel_ask_once(bulk_of(scene, 1)));
    wf_lines_begin_round(&scene->lines);
    assert_true(wf_channel_ask_once(bulk_of(scene, 0)));
}

/* --- acknowledgements behind an operation --- */

static void test_acknowledgements_behind_an_operation_go_on_the_express_channel(void **state)
{
    struct scene *scene = *state;
    struct wf_channel *channel = bulk_of(scene, 1), *express = scene->lines.channels[2];
    wf_channel_set_idle(channel, false);
    look(scene, 1);
    wf_channel_tell_state(channel);
    assert_true(wf_link_in_list(&channel->tx.behind_link));
    assert_true(is_due(scene, express));
    wf_channel_set_idle(channel, true);
    assert_false(wf_link_in_list(&channel->tx.behind_link)); /* it can tell them itself */
}

/* --- workers --- */

static void test_all_channels_of_a_rail_have_one_pair_of_workers(void **state)
{
    struct scene *scene = *state;
    struct wf_session_rail *rail = wf_lines_rail(&scene->lines, 1);
    rail->local = 2;
    assert_int_equal(wf_lines_workers(&scene->lines, 1), 2);
    rail->local = 0; /* the peer has dialled another channel of it at another address */
    assert_int_equal(wf_lines_workers(&scene->lines, 1), 2);
    assert_int_equal(wf_lines_rail(&scene->lines, 2)->local, -1);
    assert_int_equal(wf_lines_workers(&scene->lines, 2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_happens_to_a_half_is_entered_once, set_up, scene_tear_down_locked),
        cmocka_unit_test_setup_teardown(test_only_workers_with_something_due_are_told_and_once, set_up,
                                        scene_tear_down_locked),
        cmocka_unit_test_setup_teardown(test_a_half_that_becomes_due_after_the_look_is_told_again, set_up,
                                        scene_tear_down_locked),
        cmocka_unit_test_setup_teardown(test_a_half_that_has_let_go_is_on_no_list, set_up, scene_tear_down_locked),
        cmocka_unit_test_setup_teardown(test_an_idle_half_with_an_open_window_is_offered_work, set_up,
                                        scene_tear_down_locked),
        cmocka_unit_test_setup_teardown(test_a_window_that_closes_and_opens_again, set_up, scene_tear_down_locked),
        cmocka_unit_test_setup_teardown(test_offers_go_to_other_rails_each_time, set_up, scene_tear_down_locked),
        cmocka_unit_test_setup_teardown(test_the_first_idle_half_is_the_same_each_time, set_up, scene_tear_down_locked),
        cmocka_unit_test_setup_teardown(test_each_worker_is_chosen_once_for_an_offer, set_up, scene_tear_down_locked),
        cmocka_unit_test_setup_teardown(test_a_half_is_asked_once_in_a_round, set_up, scene_tear_down_locked),
        cmocka_unit_test_setup_teardown(test_acknowledgements_behind_an_operation_go_on_the_express_channel, set_up,
                                        scene_tear_down_locked),
        cmocka_unit_test_setup_teardown(test_all_channels_of_a_rail_have_one_pair_of_workers, set_up,
                                        scene_tear_down_locked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
