/* Shares by rate: tables, and a small simulation of rails that drain at their own speed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/spread.h"

#define MIB (UINT64_C(1) << 20)
#define MS INT64_C(1000000)
#define CHUNK (512 * 1024)
#define LANES 4

static struct wf_lane lane(double rate, uint64_t outstanding)
{
    return (struct wf_lane){.rate = rate, .outstanding = outstanding, .ready = true};
}

static uint64_t share_with(const struct wf_lane_total *total, const struct wf_lane *lanes, int count, int index,
                           uint64_t waiting, uint64_t chunk)
{
    const struct wf_lane *rivals[WF_RIVALS];
    int better;
    for (int i = 0; i < count; i++)
        rivals[i] = &lanes[i];
    uint64_t share = wf_spread_share_of(total, &lanes[index], rivals, count, waiting, chunk, &better);
    /* Nothing under way: somebody takes the work, and whoever does not names a better one. */
    if (total->outstanding == 0)
        assert_true((share == 0) == (better >= 0));
    if (better >= 0)
        assert_true(better != index && lanes[better].ready);
    if (better >= 0 && total->outstanding == 0)
        assert_true(lanes[better].rate >= lanes[index].rate);
    else if (better >= 0) /* it is to be tried */
        assert_true(share_with(total, lanes, count, better, waiting, chunk) > 0);
    return share;
}

static uint64_t share_of(const struct wf_lane *lanes, int count, int index, uint64_t waiting, uint64_t chunk)
{
    struct wf_lane_total total = {0};
    for (int i = 0; i < count; i++)
        wf_lane_total_add(&total, &lanes[i]);
    return share_with(&total, lanes, count, index, waiting, chunk);
}

static void shares(void **state)
{
    static const struct {
        double rate[3];
        uint64_t outstanding[3];
        int count, index;
        uint64_t waiting, least, most;
    } rows[] = {
        {{1}, {0}, 1, 0, 100 * MIB, CHUNK, CHUNK},                   /* alone: all it can carry */
        {{1, 1}, {0, 0}, 2, 0, 100 * MIB, CHUNK, CHUNK},             /* the first of equals begins */
        {{1, 1}, {0, 0}, 2, 1, 100 * MIB, 0, 0},                     /* and the others wait for their turn, */
        {{1, 1}, {CHUNK, 0}, 2, 1, 100 * MIB, CHUNK, CHUNK},         /* which comes at once */
        {{0.1, 1}, {0, 0}, 2, 0, 4096, 0, 0},                        /* little work is for the faster one */
        {{1, 0.01}, {CHUNK, 0}, 2, 1, 100 * MIB, 60000, 120000},     /* a hundredth of the rate: a small piece */
        {{1, 0.01}, {CHUNK, 1300000}, 2, 1, 100 * MIB, 0, 0},        /* it has its share already */
        {{1, 0.01}, {0, 1300000}, 2, 0, 100 * MIB, CHUNK, CHUNK},    /* the other one has not */
        {{1, 0.0001}, {8 * MIB, 8 * MIB}, 2, 1, 100, 0, 0},          /* the other one will be earlier */
        {{1, 0}, {CHUNK, 0}, 2, 1, 10 * MIB, 32768, 32768},          /* unknown: one probe */
        {{1, 0}, {CHUNK, 32768}, 2, 1, 10 * MIB, 0, 0},              /* and no other before its answer */
        {{1, 0}, {20000, 0}, 2, 1, 40000, 0, 0},                     /* none where there is little to do, */
        {{1, 0}, {20000, 0}, 2, 1, 50000, 32768, 32768},             /* under way or not; */
        {{1, 0}, {0, 0}, 2, 0, 524288, 491520, 491520},              /* who is known leaves it the probe, */
        {{1, 0}, {0, 0}, 2, 0, 65536, 32768, 32768},                 /* but takes its part first, */
        {{1, 0}, {20000, 0}, 2, 0, 524288, 0, 0},                    /* and no more before the probe is taken */
        {{0, 0, 0}, {0, 0, 0}, 3, 0, 10 * MIB, 32768, 32768},        /* nothing is known at all */
        {{0, 0, 0}, {32768, 0, 0}, 3, 2, 20000, 20000, 20000},       /* then everybody is tried */
        {{1, 1, 1}, {4096, 0, 0}, 3, 2, 5, 5, 5},                    /* tiny work goes anywhere */
        {{1, 0.01}, {300 * MIB, 0}, 2, 0, 3000 * MIB, CHUNK, CHUNK}, /* the more is left, the further ahead, */
        {{1, 0.01}, {300 * MIB, 0}, 2, 0, 300 * MIB, 0, 0},          /* the less, the less */
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wf_lane lanes[3];
        for (int j = 0; j < rows[i].count; j++)
            lanes[j] = lane(rows[i].rate[j], rows[i].outstanding[j]);
        uint64_t share = share_of(lanes, rows[i].count, rows[i].index, rows[i].waiting, CHUNK);
        if (share < rows[i].least || share > rows[i].most)
            print_error("row %zu\n", i);
        assert_in_range(share, rows[i].least, rows[i].most);
    }
}

/* Little work is handed out at once, and evenly: whoever got more would be late by that. */
static void little_work_is_shared_exactly(void **state)
{
    (void)state;
    static const double rates[LANES] = {0.4, 0.2, 0.1, 0.1};
    struct wf_lane lanes[LANES];
    uint64_t waiting = 256 * 1024;
    for (int i = 0; i < LANES; i++)
        lanes[i] = lane(rates[i], 0);
    for (int i = 0; i < LANES; i++) {
        double fair = rates[i] / 0.8 * 256 * 1024;
        uint64_t share = share_of(lanes, LANES, i, waiting, CHUNK);
        assert_in_range(share, (uint64_t)fair - 8, (uint64_t)fair + 8);
        lanes[i].outstanding = share;
        lanes[i].ready = false;
        waiting -= share;
    }
    assert_in_range(waiting, 0, 32);
}

/* Idle for long, a slow lane is tried with little though another would be earlier; but not for little work. */
static void a_stale_lane_is_tried(void **state)
{
    (void)state;
    struct wf_lane lanes[2] = {lane(1, 20000), lane(0.0001, 0)};
    assert_int_equal(share_of(lanes, 2, 1, MIB, CHUNK), 0);
    assert_in_range(share_of(lanes, 2, 0, MIB, CHUNK), CHUNK, CHUNK);
    lanes[1].stale = true;
    assert_int_equal(share_of(lanes, 2, 1, MIB, CHUNK), WF_SPREAD_LEAST_BYTES);
    assert_int_equal(share_of(lanes, 2, 1, 100000, CHUNK), 0);
    assert_int_equal(share_of(lanes, 2, 0, MIB, CHUNK), 0); /* the other one goes on when it has been tried */
    lanes[1].outstanding = WF_SPREAD_LEAST_BYTES;
    assert_int_equal(share_of(lanes, 2, 1, MIB, CHUNK), 0);
    assert_in_range(share_of(lanes, 2, 0, MIB, CHUNK), CHUNK, CHUNK);
}

/* Of many lanes some are always idle for long. Only one that was never tried comes before more for another. */
static void of_many_the_unknown_are_tried_first(void **state)
{
    struct wf_lane lanes[WF_RIVALS + 1];
    struct wf_lane_total total = {0};
    (void)state;
    for (int i = 0; i <= WF_RIVALS; i++)
        lanes[i] = lane(1, 20000);
    lanes[1] = lane(0.001, 0);
    lanes[1].stale = true;
    lanes[2] = lane(0, 0);
    for (int unknown = 0; unknown < 2; unknown++) {
        lanes[2].outstanding = unknown ? 0 : 1;
        total = (struct wf_lane_total){0};
        for (int i = 0; i <= WF_RIVALS; i++)
            wf_lane_total_add(&total, &lanes[i]);
        assert_true((share_with(&total, lanes, WF_RIVALS, 0, MIB, CHUNK) == 0) == unknown);
    }
}

static uint64_t seed = 1;
static uint64_t draw(uint64_t limit)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % limit;
}

/* The lane that would be done first with a little more. */
static int first_done(const struct wf_lane *lanes, int count, double bytes)
{
    int best = 0;
    for (int i = 1; i < count; i++)
        if (((double)lanes[i].outstanding + bytes) / lanes[i].rate <
            ((double)lanes[best].outstanding + bytes) / lanes[best].rate)
            best = i;
    return best;
}

/* Work never waits for an estimate. With nothing under way exactly one lane takes it; else the end of what is under way
 * is an occasion to ask again, and should the lane that is done first be idle, it takes something. */
static void nothing_stalls(void **state)
{
    int alone = 0, idle = 0;
    (void)state;
    for (int round = 0; round < 50000; round++) {
        struct wf_lane lanes[5];
        uint64_t waiting = 1 + draw(draw(2) ? 8 * MIB : 5000), under_way = 0;
        bool known = true;
        int busy = (int)draw(8), open = 0, ready = 0;
        for (int i = 0; i < 5; i++) {
            lanes[i] = lane(draw(16) ? 1e-6 + (double)draw(1000000) / 1e6 : 0, i == busy ? 1 + draw(64 * MIB) : 0);
            lanes[i].ready = draw(4) > 0;
            lanes[i].stale = draw(4) == 0;
            lanes[i].lag_ns = draw(4) ? 0 : (int64_t)draw(1000000000);
            known &= lanes[i].rate > 0;
            ready += lanes[i].ready;
            under_way += lanes[i].outstanding;
        }
        for (int i = 0; i < 5; i++) {
            uint64_t share = share_of(lanes, 5, i, waiting, CHUNK);
            assert_in_range(share, 0, waiting < CHUNK ? waiting : CHUNK);
            assert_true(share == 0 || share >= WF_SPREAD_LEAST_BYTES || share == waiting);
            open += lanes[i].ready && share > 0;
        }
        if (under_way == 0 && ready > 0) {
            assert_int_equal(open, 1);
            alone += 1;
        }
        uint64_t least = waiting < WF_SPREAD_LEAST_BYTES ? waiting : WF_SPREAD_LEAST_BYTES;
        int first = known ? first_done(lanes, 5, (double)least) : busy;
        if (under_way > 0 && known && first != busy) {
            assert_true(share_of(lanes, 5, first, waiting, CHUNK) > 0);
            idle += 1;
        }
    }
    assert_true(alone > 1000 && idle > 1000);
}

/* Who changes one lane at a time is told the same as who looks at all of them. */
static void a_total_follows(void **state)
{
    struct wf_lane lanes[5] = {{0}};
    struct wf_lane_total total = {0};
    (void)state;
    for (int i = 0; i < 5; i++)
        wf_lane_total_add(&total, &lanes[i]);
    for (int round = 0; round < 50000; round++) {
        int i = (int)draw(5);
        wf_lane_total_remove(&total, &lanes[i]);
        lanes[i] = lane(draw(3) ? (double)(1 + draw(1000)) / 1024 : 0, draw(3) ? draw(64 * MIB) : 0);
        lanes[i].ready = draw(2);
        wf_lane_total_add(&total, &lanes[i]);
        uint64_t waiting = 1 + draw(draw(2) ? 8 * MIB : 5000);
        int asking = (int)draw(5);
        assert_int_equal(share_with(&total, lanes, 5, asking, waiting, CHUNK),
                         share_of(lanes, 5, asking, waiting, CHUNK));
    }
}

static void rates(void **state)
{
    (void)state;
    struct wf_rate rate = {0};
    assert_true(wf_rate_estimate(&rate, 0, 0) <= 0); /* unknown */
    wf_rate_busy(&rate, MS);
    wf_rate_acknowledged(&rate, 3 * MS, 2000000, true);
    assert_true(rate.bytes_per_ns > 0.99 && rate.bytes_per_ns < 1.01);
    /* Silence of all: nothing is known. Others are heard: the estimate sinks with the time it takes. */
    assert_true(wf_rate_estimate(&rate, 3 * MS, 1000000) >= rate.bytes_per_ns);
    assert_true(wf_rate_estimate(&rate, 103 * MS, 1000000) < 0.011);
    wf_rate_acknowledged(&rate, 203 * MS, 1000000, false);
    assert_true(rate.bytes_per_ns < 0.4);
    /* Idle: it stays, and is stale after 100 ms. */
    assert_true(wf_rate_estimate(&rate, 350 * MS, 0) >= rate.bytes_per_ns);
    assert_false(wf_rate_is_stale(&rate, 302 * MS));
    assert_true(wf_rate_is_stale(&rate, 303 * MS));
}

/* What was handed over at 1 ms left at 3 ms: a byte a nanosecond, and half of that had it left at once. */
static void late_start(void **state)
{
    (void)state;
    struct wf_rate rate = {0};
    assert_true(wf_rate_busy(&rate, MS));
    assert_false(wf_rate_busy(&rate, 2 * MS));
    wf_rate_began(&rate, 3 * MS);
    wf_rate_acknowledged(&rate, 5 * MS, 2000000, true);
    assert_true(rate.bytes_per_ns > 0.99 && rate.bytes_per_ns < 1.01);
    /* More is under way since then: when its first byte left is no news. */
    wf_rate_began(&rate, 6 * MS);
    wf_rate_acknowledged(&rate, 7 * MS, 2000000, false);
    assert_true(rate.bytes_per_ns > 0.99 && rate.bytes_per_ns < 1.01);
    /* Nobody tells, or an old time: it counts from when it was handed over. */
    for (int64_t told = 0; told <= 6 * MS; told += 6 * MS) {
        rate = (struct wf_rate){0};
        wf_rate_busy(&rate, 10 * MS);
        wf_rate_began(&rate, told);
        wf_rate_acknowledged(&rate, 14 * MS, 2000000, false);
        assert_true(rate.bytes_per_ns > 0.49 && rate.bytes_per_ns < 0.51);
    }
}

/* Stretches of work make one sample together, and no sample more than doubles a rate: what passes at once after a rest
 * says little. */
static void short_stretches(void **state)
{
    (void)state;
    struct wf_rate rate = {0};
    int64_t now = MS;
    wf_rate_busy(&rate, now);
    wf_rate_acknowledged(&rate, now += 8 * MS, 10000, false);
    double slow = rate.bytes_per_ns;
    for (int i = 0; i < 9; i++) {
        wf_rate_busy(&rate, now += 50 * MS);
        wf_rate_acknowledged(&rate, now += MS / 10, 70000, false);
        assert_true(rate.bytes_per_ns <= slow && rate.bytes_per_ns >= slow);
    }
    wf_rate_busy(&rate, now += 50 * MS);
    wf_rate_acknowledged(&rate, now += MS / 5, 70000, false);
    assert_true(rate.bytes_per_ns > 1.99 * slow && rate.bytes_per_ns < 2.01 * slow);
    for (int i = 0; i < 400; i++) {
        wf_rate_busy(&rate, now += 50 * MS);
        wf_rate_acknowledged(&rate, now += MS / 10, 70000, false);
    }
    assert_true(rate.bytes_per_ns > 0.6 && rate.bytes_per_ns < 0.8);
}

/* --- rails that are simulated --- */

struct flight {
    uint64_t bytes;
    int64_t acknowledged_ns; /* 0: still on the way there */
};

struct rail {
    double speed, bucket, tokens; /* bytes per ns; bytes that pass at once after a rest */
    int64_t way_ns;               /* from the end of a chunk to its acknowledgement */
    int window;                   /* chunks */
    struct wf_rate rate;
    struct flight flights[256];
    int flight_count;
    double first_left; /* of the first flight that is on the way */
    uint64_t outstanding, carried;
};

struct world {
    struct rail rails[LANES];
    int count;
    uint64_t waiting;
    int64_t now;
};

#define STEP_NS (MS / 20)

static struct world *world_of(int count, const double *speeds)
{
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->count = count;
    world->now = MS;
    for (int i = 0; i < count; i++) {
        struct rail *rail = &world->rails[i];
        *rail = (struct rail){.speed = speeds[i], .way_ns = MS / 10, .window = 64};
        rail->bucket = speeds[i] * 2e6 > 18028 ? speeds[i] * 2e6 : 18028; /* as in the lab */
    }
    return world;
}

static bool ask(struct world *world, int index)
{
    struct wf_lane lanes[LANES];
    int64_t news = 0;
    for (int i = 0; i < world->count; i++)
        news = world->rails[i].rate.heard_ns > news ? world->rails[i].rate.heard_ns : news;
    for (int i = 0; i < world->count; i++) {
        const struct rail *rail = &world->rails[i];
        lanes[i] = (struct wf_lane){.rate = wf_rate_estimate(&rail->rate, news, rail->outstanding),
                                    .outstanding = rail->outstanding,
                                    .lag_ns = rail->rate.lag_ns,
                                    .ready = rail->flight_count < rail->window,
                                    .stale = wf_rate_is_stale(&rail->rate, world->now)};
    }
    struct rail *rail = &world->rails[index];
    uint64_t take = 0;
    if (world->waiting > 0 && lanes[index].ready)
        take = share_of(lanes, world->count, index, world->waiting, CHUNK);
    if (take == 0)
        return false;
    wf_rate_busy(&rail->rate, world->now);
    rail->flights[rail->flight_count++] = (struct flight){.bytes = take};
    rail->outstanding += take;
    world->waiting -= take;
    return true;
}

/* One step of time for a rail. True: something was acknowledged. */
static bool move(struct world *world, struct rail *rail)
{
    uint64_t acknowledged = 0;
    rail->tokens += rail->speed * (double)STEP_NS;
    for (int i = 0; i < rail->flight_count && rail->tokens > 0; i++) {
        struct flight *flight = &rail->flights[i];
        if (flight->acknowledged_ns != 0)
            continue;
        double left = rail->first_left > 0 ? rail->first_left : (double)flight->bytes;
        double moved = left < rail->tokens ? left : rail->tokens;
        rail->tokens -= moved;
        rail->first_left = left - moved;
        if (rail->first_left <= 0)
            flight->acknowledged_ns = world->now + rail->way_ns;
    }
    rail->tokens = rail->tokens < rail->bucket ? rail->tokens : rail->bucket;
    int done = 0;
    while (done < rail->flight_count && rail->flights[done].acknowledged_ns != 0 &&
           rail->flights[done].acknowledged_ns <= world->now)
        acknowledged += rail->flights[done++].bytes;
    if (done == 0)
        return false;
    rail->flight_count -= done;
    memmove(rail->flights, rail->flights + done, (size_t)rail->flight_count * sizeof rail->flights[0]);
    rail->outstanding -= acknowledged;
    rail->carried += acknowledged;
    wf_rate_acknowledged(&rail->rate, world->now, acknowledged, rail->outstanding > 0);
    return true;
}

/* Rails are asked when something happens, and not because time passes. */
static void step(struct world *world, bool happened)
{
    for (int i = 0; i < world->count; i++)
        happened |= move(world, &world->rails[i]);
    for (bool took = happened; took;) {
        took = false;
        for (int i = 0; i < world->count; i++)
            took |= ask(world, i);
    }
    world->now += STEP_NS;
}

static bool under_way(const struct world *world)
{
    for (int i = 0; i < world->count; i++)
        if (world->rails[i].outstanding > 0)
            return true;
    return world->waiting > 0;
}

/* Carries a message; the time it took. */
static int64_t carry(struct world *world, uint64_t bytes)
{
    int64_t began = world->now;
    world->waiting = bytes;
    step(world, true);
    while (under_way(world)) {
        step(world, false);
        assert_true(world->now - began < 100000 * MS); /* a stall */
    }
    return world->now - began;
}

static void rest(struct world *world, int64_t ns)
{
    for (int64_t until = world->now + ns; world->now < until;)
        step(world, false);
}

static double sum_of(const struct world *world)
{
    double sum = 0;
    for (int i = 0; i < world->count; i++)
        sum += world->rails[i].speed;
    return sum;
}

static const double hundredfold[] = {0.125, 0.0125, 0.00125}, equal[] = {0.125, 0.125, 0.125, 0.125};

/* Three rails of 1 : 0.1 : 0.01: 8 MiB, the very first message as well, take at most 1.2 times what the sum allows, and
 * 64 MiB 1.05 times. */
static void unequal_rails_finish_together(void **state)
{
    (void)state;
    struct world *world = world_of(3, hundredfold);
    double allowed = (double)(8 * MIB) / sum_of(world);
    for (int i = 0; i < 10; i++)
        assert_true((double)carry(world, 8 * MIB) < 1.2 * allowed);
    for (int i = 0; i < 3; i++) {
        rest(world, 150 * MS);
        assert_true((double)carry(world, 8 * MIB) < 1.2 * allowed);
    }
    for (int i = 0; i < 3; i++)
        assert_true((double)carry(world, 64 * MIB) < 1.05 * 8 * allowed);
    assert_in_range(world->rails[2].carried, 296 * MIB / 160, 296 * MIB / 90);
    free(world);
}

/* Small messages with pauses between them do not wait for the slow rail. One may, when the bucket that has made it look
 * fast is empty. */
static void a_slow_rail_spoils_nothing(void **state)
{
    (void)state;
    struct world *world = world_of(3, hundredfold);
    int64_t all = 0;
    carry(world, 8 * MIB);
    for (int i = 0; i < 60; i++) {
        rest(world, (int64_t)draw(200) * MS);
        int64_t one = carry(world, MIB);
        assert_true(one < 50 * MS); /* the fastest alone: 8.5 */
        all += one;
    }
    assert_true(all < 60 * 8 * MS);
    free(world);
}

static void a_window_of_one(void **state)
{
    static const double speeds[] = {0.125, 0.0625, 0.03125, 0.03125};
    (void)state;
    struct world *world = world_of(4, speeds);
    for (int i = 0; i < 4; i++)
        world->rails[i].window = 1;
    for (int i = 0; i < 4; i++)
        assert_true((double)carry(world, 64 * MIB) < 1.15 * (double)(64 * MIB) / sum_of(world));
    assert_in_range(world->rails[0].carried, 256 * MIB * 46 / 100, 256 * MIB * 54 / 100);
    assert_in_range(world->rails[1].carried, 256 * MIB * 23 / 100, 256 * MIB * 27 / 100);
    free(world);
}

/* What all rails carried in the next `ns`, in bytes per ns. */
static double total_of(struct world *world, int64_t ns)
{
    uint64_t before = world->waiting;
    for (int i = 0; i < world->count; i++)
        before += world->rails[i].outstanding;
    int64_t from = world->now;
    uint64_t after = 0;
    rest(world, ns);
    for (int i = 0; i < world->count; i++)
        after += world->rails[i].outstanding;
    return (double)(before - after - world->waiting) / (double)(world->now - from);
}

/* A rail that falls to a tenth in mid-message and comes back: 200 ms later the total is what it may be. The message is
 * not late for it either. */
static void a_rail_that_changes(void **state)
{
    (void)state;
    struct world *world = world_of(4, equal);
    carry(world, 64 * MIB);
    world->waiting = 2048 * MIB;
    step(world, true);
    rest(world, 300 * MS);
    assert_true(total_of(world, 200 * MS) > 0.95 * 0.5);
    world->rails[1].speed /= 10;
    rest(world, 200 * MS);
    assert_true(total_of(world, 200 * MS) > 0.95 * 0.3875);
    world->rails[1].speed *= 10;
    rest(world, 200 * MS);
    assert_true(total_of(world, 200 * MS) > 0.95 * 0.5);
    while (under_way(world))
        step(world, false);

    /* Messages one after the other: only the one in which it falls is late, and not by much. */
    carry(world, 64 * MIB);
    world->waiting = 64 * MIB;
    step(world, true);
    int64_t began = world->now;
    rest(world, 30 * MS);
    world->rails[1].speed /= 10;
    while (under_way(world))
        step(world, false);
    assert_true(world->now - began < 330 * MS);
    for (int i = 0; i < 3; i++)
        assert_true((double)carry(world, 64 * MIB) < 1.08 * (double)(64 * MIB) / sum_of(world));
    world->rails[1].speed *= 10;
    for (int i = 0; i < 2; i++)
        carry(world, 64 * MIB);
    assert_true((double)carry(world, 64 * MIB) < 1.05 * (double)(64 * MIB) / sum_of(world));
    free(world);
}

/* 50 ms there and back: the way is kept full, also by messages that are shorter than it is. */
static void a_long_way(void **state)
{
    (void)state;
    struct world *world = world_of(2, equal);
    for (int i = 0; i < 2; i++)
        world->rails[i].way_ns = 50 * MS;
    for (int i = 0; i < 3; i++)
        carry(world, 512 * MIB);
    assert_true((double)carry(world, 512 * MIB) < 1.1 * (512 * (double)MIB / 0.25 + 50e6));
    for (int i = 0; i < 10; i++)
        carry(world, 8 * MIB);
    assert_true(carry(world, 8 * MIB) < 100 * MS);
    free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares),
        cmocka_unit_test(little_work_is_shared_exactly),
        cmocka_unit_test(a_stale_lane_is_tried),
        cmocka_unit_test(of_many_the_unknown_are_tried_first),
        cmocka_unit_test(nothing_stalls),
        cmocka_unit_test(a_total_follows),
        cmocka_unit_test(rates),
        cmocka_unit_test(late_start),
        cmocka_unit_test(short_stretches),
        cmocka_unit_test(unequal_rails_finish_together),
        cmocka_unit_test(a_slow_rail_spoils_nothing),
        cmocka_unit_test(a_window_of_one),
        cmocka_unit_test(a_rail_that_changes),
        cmocka_unit_test(a_long_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
