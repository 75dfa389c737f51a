/* The lanes of a session: when they are measured again. */
#include "core/channel/batch.h"
#include "core/channel/ops.h"
#include "core/channel/state.h"
#include "core/channel/work.h"
#include "core/message/ring.h"
#include "core/session/session.h"
#include "core_scene.h"

#include <stdlib.h>

#define LANES (WF_RIVALS + 2) /* bulk channels, all of one pair of rails: more than are measured in each round */
#define MS 1000000LL

static const struct wf_channel_ops no_ops = {0};

/* What the spread looks at of a session: its lines, its terms and its clock. */
struct stage {
    struct scene scene;
    struct wf_session session;
    struct weft_connection connection;
    struct wf_ring ring;
};

static struct wf_channel *join(struct stage *stage, uint32_t id)
{
    struct wf_join request = {.channel = id, .incarnation = 1, .kind = WF_CHANNEL_BULK};
    struct wf_lines *lines = &stage->session.lines;
    struct wf_channel *channel = calloc(1, sizeof *channel);
    assert_non_null(channel);
    assert_int_equal(wf_channel_init(channel, lines, &no_ops, &request), 0);
    wf_lines_rail(lines, 0);
    wf_channel_assign(channel, stage->scene.crew.workers[0], stage->scene.crew.workers[1]);
    wf_lines_enter(lines, channel, false);
    wf_window_grant(&channel->tx.window, 64, UINT32_MAX);
    wf_channel_rise(channel, 100 + (int)id);
    wf_channel_set_idle(channel, true);
    wf_spread_note(channel);
    return channel;
}

static int set_up(void **state)
{
    struct stage *stage = calloc(1, sizeof *stage);
    assert_non_null(stage);
    scene_begin(&stage->scene, NULL);
    pthread_mutex_lock(&stage->scene.guard.lock);
    stage->session.guard.world = &stage->scene.world;
    stage->session.terms = stage->scene.terms;
    stage->ring.rails = WF_RAILS_ANY;
    stage->connection.ring = &stage->ring;
    assert_int_equal(
        wf_lines_init(&stage->session.lines, &stage->scene.guard, &stage->session.terms, &stage->scene.kicks), 0);
    assert_int_equal(wf_lines_expect(&stage->session.lines, LANES), 0);
    assert_non_null(stage->session.loss.spreads[0] = wf_spread_create(LANES));
    for (uint32_t id = 0; id < LANES; id++)
        join(stage, id);
    *state = stage;
    return 0;
}

static int tear_down(void **state)
{
    struct stage *stage = *state;
    wf_spread_destroy(stage->session.loss.spreads[0]);
    wf_lines_fini(&stage->session.lines);
    pthread_mutex_unlock(&stage->scene.guard.lock);
    scene_end(&stage->scene);
    free(stage);
    return 0;
}

static struct wf_channel *channel_of(struct stage *stage, uint32_t id)
{
    return stage->session.lines.channels[id];
}

static void begin(struct stage *stage, struct wf_channel *channel, uint64_t bytes)
{
    wf_window_spend(&channel->tx.window, bytes);
    wf_rate_busy(&channel->tx.rate, stage->scene.now_ns);
    wf_spread_note(channel);
}

static void acknowledge(struct wf_channel *channel)
{
    uint64_t before = channel->tx.acknowledged_bytes;
    channel->tx.acknowledged_bytes = channel->tx.window.spent_bytes;
    wf_tx_note_rate(channel, before);
    wf_spread_note(channel);
}

/* Every channel carries some chunks at this pace, one after the other. */
static void run_all(struct stage *stage, int64_t chunk_ns)
{
    for (uint32_t id = 0; id < LANES; id++) {
        for (int i = 0; i < 40; i++) {
            begin(stage, channel_of(stage, id), SCENE_CHUNK);
            stage->scene.now_ns += chunk_ns;
            acknowledge(channel_of(stage, id));
        }
    }
}

static void ask(struct stage *stage)
{
    wf_spread_begin(&stage->session);
    wf_spread_plan(channel_of(stage, 0), &stage->connection, 64 * SCENE_CHUNK);
}

static double rate_of(struct stage *stage, uint32_t id)
{
    return stage->session.loss.spreads[0]->lanes[channel_of(stage, id)->lane].rate;
}

/* No acknowledgement comes on the last lane, while the first one goes on. All are measured again within as many
 * milliseconds as there are lanes, at the latest. */
static void test_a_silent_lane_of_many_is_measured_again(void **state)
{
    struct stage *stage = *state;
    run_all(stage, 10 * MS);
    begin(stage, channel_of(stage, LANES - 1), SCENE_CHUNK);
    double before = rate_of(stage, LANES - 1);
    for (int i = 0; i < 100; i++) {
        begin(stage, channel_of(stage, 0), SCENE_CHUNK);
        stage->scene.now_ns += 10 * MS;
        acknowledge(channel_of(stage, 0));
    }
    assert_true(rate_of(stage, LANES - 1) == before); /* nothing has happened to it */
    for (int i = 0; i < LANES; i++) {
        ask(stage);
        stage->scene.now_ns += MS;
    }
    assert_true(rate_of(stage, LANES - 1) < before / 10);
}

/* Their rivals are others in each round. */
static void test_many_lanes_are_measured_once_a_millisecond(void **state)
{
    struct stage *stage = *state;
    const struct wf_spread *spread = stage->session.loss.spreads[0];
    run_all(stage, 10 * MS);
    ask(stage);
    int first = spread->first, measured = spread->measured;
    stage->scene.now_ns += MS - 1;
    ask(stage);
    assert_int_equal(spread->first, (first + WF_RIVALS) % LANES);
    assert_int_equal(spread->measured, measured);
    stage->scene.now_ns += 1;
    ask(stage);
    assert_int_equal(spread->first, (first + 2 * WF_RIVALS) % LANES);
    assert_int_equal(spread->measured, (measured + WF_RIVALS) % LANES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_silent_lane_of_many_is_measured_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_lanes_are_measured_once_a_millisecond, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
