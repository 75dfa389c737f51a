/* How a session spreads its waiting bytes: the sums over lanes are those of the lanes, whatever comes, goes, sends and
 * is acknowledged; and which pairs of rails a connection is served by. */
#include "core_scene.h"

#include <stdlib.h>
#include <string.h>

#include "core/message/ring.h"
#include "core/rail/rail.h"
#include "core/session/session.h"
#include "core/session/spread_plan.h"

#define PAIRS 6
#define EACH 4 /* channels of a pair of rails */
#define CHANNELS (PAIRS * EACH)
#define STEPS 20000

/* The parts of a session that the plan reads. */
static struct stage {
    struct scene scene;
    struct wf_session session;
    struct wf_sessions sessions;
    struct wf_rails rails;
    struct wf_session_rail pairs[PAIRS];
    struct wf_route routes[CHANNELS];
    struct wf_ring ring;
    struct weft_connection connection;
    struct wf_spread *spread;
    uint64_t seed;
} stage;

static uint32_t chance(uint32_t below)
{
    stage.seed = stage.seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(stage.seed >> 33) % below;
}

static struct wf_channel *channel_of(int index)
{
    return &stage.routes[index].channel;
}

/* Pairs 2 n and 2 n + 1 have rail n of this side; the last pair's address is no rail. */
static void set_the_stage(uint64_t seed)
{
    memset(&stage, 0, sizeof stage);
    scene_begin(&stage.scene, NULL);
    stage.seed = seed;
    stage.spread = wf_spread_create(CHANNELS);
    assert_non_null(stage.spread);
    struct wf_session *session = &stage.session;
    session->sessions = &stage.sessions;
    stage.sessions.rails = &stage.rails;
    session->guard.world = &stage.scene.world;
    session->terms.chunk = SCENE_CHUNK;
    session->lines.guard = &session->guard;
    session->lines.rails = stage.pairs;
    session->lines.rail_count = PAIRS;
    session->lines.classes = 1;
    session->lines.bulk_count[0] = CHANNELS;
    session->loss.spreads[0] = stage.spread;
    for (int pair = 0; pair < PAIRS; pair++)
        stage.pairs[pair].local = pair == PAIRS - 1 ? -1 : pair / 2;
    for (int i = 0; i < CHANNELS; i++) {
        struct wf_channel *channel = channel_of(i);
        channel->lines = &session->lines;
        channel->id = (uint32_t)i;
        channel->kind = WF_CHANNEL_BULK;
        channel->rail = i / EACH;
        channel->tx.ring = 64;
        channel->tx.idle = true;
        channel->tx.window.granted_frames = channel->tx.window.granted_bytes = UINT64_MAX / 2;
    }
    stage.ring.rails = WF_RAILS_ANY;
    stage.connection.ring = &stage.ring;
}

static void clear_the_stage(void)
{
    wf_spread_destroy(stage.spread);
    scene_end(&stage.scene);
}

static void come_up(int index)
{
    channel_of(index)->up = true;
    wf_spread_note(channel_of(index));
}

static void go_down(int index)
{
    channel_of(index)->up = false;
    wf_spread_note(channel_of(index));
}

static void take(struct wf_channel *channel, uint64_t bytes)
{
    wf_rate_busy(&channel->tx.rate, stage.scene.now_ns);
    wf_window_spend(&channel->tx.window, bytes);
    channel->tx.idle = false;
    wf_spread_note(channel);
}

/* All of it, or one frame's part. */
static void acknowledge(struct wf_channel *channel, bool all)
{
    struct wf_tx *tx = &channel->tx;
    uint64_t left = tx->window.spent_bytes - tx->acknowledged_bytes, bytes = all ? left : left / 2;
    if (left == 0)
        return;
    tx->acknowledged_bytes += bytes;
    tx->acknowledged = all ? tx->window.spent_frames : tx->acknowledged;
    wf_rate_acknowledged(&tx->rate, stage.scene.now_ns, bytes, !all);
    wf_spread_note(channel);
}

static void same_total(const struct wf_lane_total *found, const struct wf_lane_total *expected)
{
    assert_int_equal(found->lanes, expected->lanes);
    assert_int_equal(found->known, expected->known);
    assert_int_equal(found->rates, expected->rates);
    assert_int_equal(found->bytes, expected->bytes);
    assert_int_equal(found->outstanding, expected->outstanding);
}

/* Everything that the spread keeps follows from the channels and their lanes. */
static void check(void)
{
    const struct wf_spread *spread = stage.spread;
    struct wf_lane_total total = {0}, pairs[PAIRS] = {{0}};
    uint64_t pairs_up = 0, pairs_of[WF_RAILS_MAX] = {0};
    for (int i = 0; i < CHANNELS; i++) {
        const struct wf_channel *channel = channel_of(i);
        if (!channel->up)
            continue;
        const struct wf_lane *lane = &spread->lanes[stage.routes[i].lane];
        assert_ptr_equal(spread->channels[stage.routes[i].lane], channel);
        assert_int_equal(lane->outstanding, channel->tx.window.spent_bytes - channel->tx.acknowledged_bytes);
        wf_lane_total_add(&total, lane);
        wf_lane_total_add(&pairs[channel->rail], lane);
        pairs_up |= UINT64_C(1) << channel->rail;
        if (stage.pairs[channel->rail].local >= 0)
            pairs_of[stage.pairs[channel->rail].local] |= UINT64_C(1) << channel->rail;
    }
    same_total(&spread->total, &total);
    for (int pair = 0; pair < PAIRS; pair++)
        same_total(&spread->pairs[pair], &pairs[pair]);
    assert_int_equal(spread->pairs_up, pairs_up);
    assert_memory_equal(spread->pairs_of, pairs_of, sizeof pairs_of);
}

/* A share is none only if the question is sure to be asked again. */
static void ask(struct wf_channel *channel)
{
    uint64_t waiting = 1 + chance(8 * SCENE_CHUNK);
    if (!channel->up || !wf_channel_open(channel, 1) || !wf_spread_serves(channel, &stage.ring))
        return;
    channel->tx.idle = true;
    if (chance(2))
        wf_spread_begin(&stage.session);
    uint64_t share = wf_spread_plan(channel, &stage.connection, waiting);
    struct wf_channel *better = wf_spread_take_better(channel);
    assert_true(share <= SCENE_CHUNK);
    if (share == 0)
        assert_true(better || stage.spread->total.outstanding > 0);
    if (better) {
        assert_true(better->up && better != channel && better->tx.idle);
        assert_true(wf_spread_serves(better, &stage.ring));
    }
    assert_null(wf_spread_take_better(channel)); /* it is forgotten */
    if (share > 0)
        take(channel, share < waiting ? share : waiting);
}

static void sums_follow(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        set_the_stage(seed);
        for (int step = 0; step < STEPS / 10; step++) {
            int index = (int)chance(CHANNELS);
            struct wf_channel *channel = channel_of(index);
            stage.scene.now_ns += chance(2000000);
            stage.ring.rails = chance(3) ? WF_RAILS_ANY : 1 + chance(7);
            switch (chance(8)) {
            case 0:
                go_down(index);
                break;
            case 1:
            case 2:
                come_up(index);
                break;
            case 3:
            case 4:
                acknowledge(channel, chance(2));
                break;
            case 5:
                channel->tx.idle = !channel->tx.idle;
                wf_spread_note(channel);
                break;
            default:
                ask(channel);
            }
            check();
        }
        clear_the_stage();
    }
}

/* A channel that is told of twice, or was never up, changes nothing. */
static void told_twice(void **state)
{
    (void)state;
    set_the_stage(1);
    go_down(3);
    check();
    come_up(3);
    come_up(3);
    come_up(5);
    assert_int_equal(stage.spread->total.lanes, 2);
    check();
    go_down(3);
    go_down(3);
    assert_int_equal(stage.spread->total.lanes, 1);
    check();
    channel_of(7)->kind = WF_CHANNEL_EXPRESS;
    come_up(7);
    assert_int_equal(stage.spread->total.lanes, 1);
    channel_of(7)->up = false;
    clear_the_stage();
}

static uint64_t pairs_for(uint64_t rails)
{
    stage.ring.rails = rails;
    return wf_spread_pairs(&stage.session, 0, &stage.ring);
}

/* Rail 0 of this side has pairs 0 and 1, rail 1 has 2 and 3, rail 2 has 4; pair 5 is of no rail. */
static void kept_to_rails(void **state)
{
    (void)state;
    set_the_stage(1);
    assert_int_equal(pairs_for(WF_RAILS_ANY), 0);
    for (int i = 0; i < CHANNELS; i++)
        come_up(i);
    assert_int_equal(pairs_for(WF_RAILS_ANY), 0x3f);
    assert_int_equal(pairs_for(1), 0x03);
    assert_int_equal(pairs_for(2), 0x0c);
    assert_int_equal(pairs_for(5), 0x13);
    assert_int_equal(pairs_for(8), 0x3f); /* none of these works: all others do */
    for (int i = 0; i < EACH - 1; i++)
        go_down(2 * EACH + i);
    assert_int_equal(pairs_for(2), 0x0c); /* one channel of pair 2 is left */
    go_down(2 * EACH + EACH - 1);
    assert_int_equal(pairs_for(2), 0x08);
    for (int i = 0; i < EACH; i++)
        go_down(3 * EACH + i);
    assert_int_equal(pairs_for(2), 0x33);
    stage.ring.rails = 1;
    assert_true(wf_spread_serves(channel_of(0), &stage.ring));
    assert_false(wf_spread_serves(channel_of(4 * EACH), &stage.ring));
    clear_the_stage();
}

/* 1 MiB in 10 ms is 105 MB/s. Before a pair has a rate, that of its interface counts. */
static void which_pair_is_slow(void **state)
{
    (void)state;
    set_the_stage(1);
    for (int i = 0; i < CHANNELS; i++)
        come_up(i);
    const int64_t ms = 1000000;
    assert_false(wf_spread_is_slow(&stage.session, 0, 0, SCENE_CHUNK, 10 * ms)); /* nobody knows */
    stage.rails.each[0].speed_mbit = 100;
    assert_true(wf_spread_is_slow(&stage.session, 0, 0, 2 * SCENE_CHUNK, 10 * ms));
    stage.rails.each[0].speed_mbit = 1000;
    assert_false(wf_spread_is_slow(&stage.session, 0, 0, 2 * SCENE_CHUNK, 10 * ms));
    assert_false(wf_spread_is_slow(&stage.session, 0, PAIRS - 1, 2 * SCENE_CHUNK, 10 * ms));
    for (int i = 0; i < 200; i++) { /* a channel of it carries 50 MB/s */
        take(channel_of(0), 50000);
        stage.scene.now_ns += ms;
        acknowledge(channel_of(0), true);
    }
    assert_true(wf_spread_is_slow(&stage.session, 0, 0, 2 * SCENE_CHUNK, 10 * ms));
    assert_false(wf_spread_is_slow(&stage.session, 0, 0, 2 * SCENE_CHUNK, 30 * ms));
    for (int i = EACH; i < CHANNELS; i++)
        go_down(i);
    assert_false(wf_spread_is_slow(&stage.session, 0, 0, 2 * SCENE_CHUNK, 10 * ms)); /* no other could help */
    clear_the_stage();
}

/* One channel alone takes whole chunks, whatever its rate. */
static void one_channel(void **state)
{
    (void)state;
    set_the_stage(1);
    stage.session.lines.bulk_count[0] = 1;
    come_up(0);
    assert_int_equal(wf_spread_plan(channel_of(0), &stage.connection, 10), SCENE_CHUNK);
    assert_true(wf_spread_suits(channel_of(0), 10, SCENE_CHUNK));
    clear_the_stage();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_follow),        cmocka_unit_test(told_twice),  cmocka_unit_test(kept_to_rails),
        cmocka_unit_test(which_pair_is_slow), cmocka_unit_test(one_channel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
