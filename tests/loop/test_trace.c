/* test_trace.c: the events of a trace are what was sent and received, no more and no less, however small the ring, and
 * whenever it is started, taken from and stopped. */
#include "loop_support.h"
#include "loop_world.h"
#include "tracing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define LARGE (5 * (1 << 20) + 7)
#define SMALL 100
#define SETTINGS "channels=2 chunk=64K"

static struct loop_pair pair;
static struct tracing tracing[2];

/* One message from [0] to [1], verified. */
static void send_one(struct weft_connection *ends[2], size_t size, uint64_t tag)
{
    struct loop_message message;

    loop_message_create(&message, size, tag);
    message.recv = loop_recv(ends[1], message.sink.data, size, tag);
    message.send = loop_send(ends[0], message.source.data, size, tag);
    loop_message_finish(&message);
}

static void send_between(size_t size, uint64_t tag)
{
    struct weft_connection *ends[2] = {pair.node[0].connection, pair.node[1].connection};

    send_one(ends, size, tag);
}

static void start_both(void)
{
    for (int side = 0; side < 2; side++)
        tracing_start(&tracing[side], pair.node[side].context);
}

/* Each rail has carried what its counter says. `before`: the counters at the start of the trace. */
static void check_rails(int side, int kind, const struct weft_rail_stats *before)
{
    struct weft_rail_stats stats[LOOP_RAILS_MAX];
    uint64_t bytes[LOOP_RAILS_MAX] = {0};
    int rails = weft_peer_rails(pair.node[side].peer, stats, LOOP_RAILS_MAX);

    for (int i = 0; i < tracing[side].count; i++) {
        const struct weft_trace_event *event = &tracing[side].events[i];
        LOOP_CHECK(event->rail < rails, "rail %d of %d", event->rail, rails);
        if (event->kind == kind && event->rail >= 0)
            bytes[event->rail] += event->bytes;
    }
    for (int i = 0; i < rails; i++) {
        uint64_t carried = kind == WEFT_TRACE_SENT ? stats[i].sent_bytes - before[i].sent_bytes
                                                   : stats[i].received_bytes - before[i].received_bytes;
        LOOP_CHECK(bytes[i] == carried, "rail %d: events of %llu bytes, carried were %llu", i,
                   (unsigned long long)bytes[i], (unsigned long long)carried);
    }
}

static void chunks_add_up(void)
{
    struct weft_rail_stats before[2][LOOP_RAILS_MAX];

    loop_pair_create(&pair, SETTINGS, NULL, 2);
    for (int side = 0; side < 2; side++)
        weft_peer_rails(pair.node[side].peer, before[side], LOOP_RAILS_MAX);
    start_both();
    int64_t begin_ns = loop_world_now_ns();
    send_between(LARGE, 5);
    LOOP_CHECK(loop_failures(pair.node[0].peer) == 0, "a channel was lost");
    tracing_covers(&tracing[0], WEFT_TRACE_SENT, 5, LARGE, begin_ns);
    tracing_covers(&tracing[1], WEFT_TRACE_RECEIVED, 5, LARGE, begin_ns);
    LOOP_CHECK(tracing_events(&tracing[0], WEFT_TRACE_SENT, 5) >= LARGE / (64 << 10), "too few chunks");
    check_rails(0, WEFT_TRACE_SENT, before[0]);
    check_rails(1, WEFT_TRACE_RECEIVED, before[1]);
    LOOP_CHECK(tracing_bytes(&tracing[0], WEFT_TRACE_RECEIVED, 5) == 0, "the sender has received");
    LOOP_CHECK(tracing_bytes(&tracing[1], WEFT_TRACE_SENT, 5) == 0, "the receiver has sent");
    loop_pair_destroy(&pair);
}

/* Each in one chunk, with its tag and without. */
static void small_messages(void)
{
    static const size_t sizes[] = {8, 0, 1000};

    loop_pair_create(&pair, SETTINGS, NULL, 2);
    start_both();
    for (uint64_t i = 0; i < 3; i++) {
        int64_t begin_ns = loop_world_now_ns();
        send_between(sizes[i], i);
        tracing_covers(&tracing[0], WEFT_TRACE_SENT, i, sizes[i], begin_ns);
        tracing_covers(&tracing[1], WEFT_TRACE_RECEIVED, i, sizes[i], begin_ns);
        LOOP_CHECK(tracing_events(&tracing[0], WEFT_TRACE_SENT, i) == 1, "%zu bytes in more than a chunk", sizes[i]);
        LOOP_CHECK(tracing_events(&tracing[1], WEFT_TRACE_RECEIVED, i) == 1, "%zu bytes came in several", sizes[i]);
    }
    loop_pair_destroy(&pair);
}

static void endpoints_are_named(void)
{
    struct weft_endpoint *endpoint[2];
    struct weft_connection *ends[2];
    struct weft_error err = {0};

    loop_pair_create(&pair, SETTINGS, NULL, 2);
    for (uint32_t side = 0; side < 2; side++)
        LOOP_CALL(weft_endpoint_create(pair.node[side].context, 7 + side, &endpoint[side], &err), &err);
    LOOP_CALL(weft_connection_open(endpoint[0], pair.node[0].peer, 8, LOOP_WAIT_MS, &ends[0], &err), &err);
    LOOP_CALL(weft_connection_accept(endpoint[1], pair.node[1].peer, 7, LOOP_WAIT_MS, &ends[1], &err), &err);
    start_both();
    int64_t begin_ns = loop_world_now_ns();
    send_one(ends, LARGE, 5);
    send_one(ends, SMALL, 6);
    for (int side = 0; side < 2; side++) {
        int kind = side ? WEFT_TRACE_RECEIVED : WEFT_TRACE_SENT;
        tracing_covers(&tracing[side], kind, 5, LARGE, begin_ns);
        tracing_covers(&tracing[side], kind, 6, SMALL, begin_ns);
        for (int i = 0; i < tracing[side].count; i++) {
            const struct weft_trace_event *event = &tracing[side].events[i];
            LOOP_CHECK(event->endpoint == (side ? 8 : 7) && event->remote == (side ? 7 : 8), "endpoint %u, remote %u",
                       event->endpoint, event->remote);
        }
    }
    loop_connection_end(ends);
    loop_pair_destroy(&pair);
}

static uint64_t lost_of(struct weft_context *context)
{
    uint64_t lost = 0;

    LOOP_CHECK(weft_trace_take(context, NULL, 0, &lost) == 0, "events in no room");
    return lost;
}

/* The first events stay, the others are counted, and there is room again for as many as are taken. */
static void a_small_ring_counts(void)
{
    enum { ROOM = 3, COUNT = 10 };
    struct weft_trace_event events[COUNT];
    struct weft_error err = {0};
    uint64_t lost;

    loop_pair_create(&pair, SETTINGS, NULL, 1);
    struct weft_context *context = pair.node[1].context;
    LOOP_CALL(weft_trace_start(context, ROOM, &err), &err);
    for (uint64_t i = 0; i < COUNT; i++)
        send_between(SMALL, i);
    int64_t limit = loop_now_ms() + LOOP_WAIT_MS;
    while (lost_of(context) < COUNT - ROOM)
        LOOP_CHECK(loop_now_ms() < limit, "only %llu lost", (unsigned long long)lost_of(context));
    LOOP_CHECK(weft_trace_take(context, events, 1, NULL) == 1 && events[0].tag == 0, "not the first one");
    int count = weft_trace_take(context, events, COUNT, &lost);
    LOOP_CHECK(count == ROOM - 1 && lost == COUNT - ROOM, "%d taken, %llu lost", count, (unsigned long long)lost);
    LOOP_CHECK(events[0].tag == 1 && events[1].tag == 2, "not in order");
    send_between(SMALL, COUNT);
    while ((count = weft_trace_take(context, events, COUNT, &lost)) == 0)
        LOOP_CHECK(loop_now_ms() < limit, "no room after all were taken");
    LOOP_CHECK(count == 1 && events[0].tag == COUNT && lost == COUNT - ROOM, "%d taken, %llu lost", count,
               (unsigned long long)lost);
    send_between(SMALL, 1);
    LOOP_CALL(weft_trace_start(context, ROOM, &err), &err);
    LOOP_CHECK(weft_trace_take(context, events, COUNT, &lost) == 0 && lost == 0, "something from before");
    loop_pair_destroy(&pair);
}

static void nothing_when_off(void)
{
    struct weft_trace_event event;
    struct weft_error err = {0};
    uint64_t lost;

    loop_pair_create(&pair, SETTINGS, NULL, 2);
    for (int round = 0; round < 2; round++) {
        send_between(LARGE, 1);
        send_between(SMALL, 1);
        for (int side = 0; side < 2; side++) {
            LOOP_CHECK(weft_trace_take(pair.node[side].context, &event, 1, &lost) == 0 && lost == 0,
                       "something was traced");
            LOOP_CALL(weft_trace_start(pair.node[side].context, 10, &err), &err);
            LOOP_CALL(weft_trace_start(pair.node[side].context, 0, &err), &err);
        }
    }
    loop_pair_destroy(&pair);
}

/* Only what began after the start, and nothing after the end. */
static void starts_and_ends_under_way(void)
{
    struct loop_message message;
    struct weft_error err = {0};

    loop_pair_create(&pair, SETTINGS, NULL, 2);
    for (int round = 0; round < 20; round++) {
        loop_message_create(&message, LARGE, 5);
        message.recv = loop_recv(pair.node[1].connection, message.sink.data, LARGE, 5);
        message.send = loop_send(pair.node[0].connection, message.source.data, LARGE, 5);
        loop_world_sleep_ns(round * 100000);
        int64_t begin_ns = loop_world_now_ns();
        start_both();
        loop_world_sleep_ns(round * 100000);
        for (int side = 0; side < 2; side++) {
            tracing_take(&tracing[side]);
            LOOP_CALL(weft_trace_start(pair.node[side].context, 0, &err), &err);
            for (int i = 0; i < tracing[side].count; i++)
                LOOP_CHECK(tracing[side].events[i].begin_ns >= begin_ns, "an event from before the start");
        }
        loop_message_finish(&message);
        for (int side = 0; side < 2; side++)
            LOOP_CHECK(weft_trace_take(pair.node[side].context, tracing[side].events, 1, NULL) == 0,
                       "an event after the end");
    }
    loop_pair_destroy(&pair);
}

/* What was sent again was sent, and is received once. */
static void lost_channels(void)
{
    static const char *settings = SETTINGS " log=error fault=seed=3,reset_every=1M";
    uint64_t failures = 0;

    loop_pair_create(&pair, settings, NULL, 2);
    start_both();
    int64_t begin_ns = loop_world_now_ns();
    for (uint64_t tag = 1; tag <= 8; tag++) {
        send_between(LARGE, tag);
        tracing_covers(&tracing[1], WEFT_TRACE_RECEIVED, tag, LARGE, begin_ns);
    }
    failures = loop_failures(pair.node[0].peer);
    LOOP_CHECK(failures > 0, "no channel was lost: nothing was tested");
    loop_pair_destroy(&pair);
}

/* --- another thread --- */

struct player {
    pthread_t thread;
    _Atomic bool over;
    uint64_t taken;
};

static void check_taken(const struct weft_trace_event *event)
{
    LOOP_CHECK(event->begin_ns <= event->end_ns && event->end_ns <= loop_world_now_ns(), "it ends before it begins");
    LOOP_CHECK(event->kind == WEFT_TRACE_SENT || event->kind == WEFT_TRACE_RECEIVED, "kind %d", event->kind);
    LOOP_CHECK(event->rail >= 0 && event->rail < 2 && event->bytes <= 16 << 10, "rail %d, %llu bytes", event->rail,
               (unsigned long long)event->bytes);
}

/* Starts, takes and ends traces of both contexts, of all sizes, until it is told to stop. */
static void *play(void *arg)
{
    struct player *player = arg;
    struct weft_trace_event events[100];
    struct weft_error err = {0};

    for (uint32_t round = 0; !atomic_load(&player->over); round++) {
        for (int side = 0; side < 2; side++) {
            struct weft_context *context = pair.node[side].context;
            uint64_t lost;
            int count = weft_trace_take(context, events, (int)(round % 100), &lost);
            for (int i = 0; i < count; i++)
                check_taken(&events[i]);
            player->taken += (uint64_t)count;
            if (round % 7 == 0)
                LOOP_CALL(weft_trace_start(context, round % 3 ? round % 1000 : 0, &err), &err);
        }
    }
    return NULL;
}

/* While messages go both ways, channels are lost, and sessions end. */
static void played_with_under_traffic(const char *settings)
{
    struct player player = {.over = false};
    struct weft_error err = {0};

    loop_needs_kernel("threads");
    loop_note("%s", settings);
    loop_pair_create(&pair, settings, NULL, 2);
    struct weft_context *context[2] = {pair.node[0].context, pair.node[1].context};
    LOOP_CHECK(pthread_create(&player.thread, NULL, play, &player) == 0, "pthread_create");
    for (uint64_t i = 0; i < (uint64_t)LOOP_COUNT(200, 40); i++)
        loop_exchange(pair.node[0].connection, pair.node[1].connection, i % 3 ? 300001 : 50, i);
    for (int side = 0; side < 2; side++) {
        weft_connection_close(pair.node[side].connection, 2000, NULL);
        pair.node[side].connection = NULL;
    }
    for (int side = 0; side < 2; side++) {
        weft_peer_close(pair.node[side].peer, 2000, NULL);
        pair.node[side].peer = NULL;
    }
    atomic_store(&player.over, true);
    pthread_join(player.thread, NULL);
    LOOP_CHECK(player.taken > 0, "no event was taken: nothing was tested");
    for (int side = 0; side < 2; side++)
        LOOP_CALL(weft_trace_start(context[side], 10, &err), &err); /* freed with the context */
    loop_pair_destroy(&pair);
}

static void played_with(void)
{
    played_with_under_traffic("channels=2 chunk=16K");
    played_with_under_traffic("channels=2 chunk=16K log=error fault=seed=5,reset_every=4M");
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(chunks_add_up, 20),       LOOP_CASE(small_messages, 20),   LOOP_CASE(endpoints_are_named, 20),
        LOOP_CASE(a_small_ring_counts, 20), LOOP_CASE(nothing_when_off, 20), LOOP_CASE(starts_and_ends_under_way, 20),
        LOOP_CASE(lost_channels, 40),       LOOP_CASE(played_with, 60),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
