/* test_storm.c: messages of all sizes, cancelled at random on either side, memory unmapped or rewritten the moment its
 * request has ended: every request ends exactly once, nothing faults, nothing lands late. */
#include "loop_support.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 24, SENTINEL = 999, LARGEST = 2000000 };

static struct loop_pair pair;
static _Thread_local uint64_t seed;

static uint64_t roll(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

static size_t roll_size(void)
{
    static const size_t tops[] = {1, 64, 8193, 65537, 300000, LARGEST};

    return roll(tops[roll(6)] + 1);
}

struct entry {
    struct loop_message message;
    bool recv_done, send_done, send_cancelled;
    int recv_status, send_status;
    bool unmap; /* else the memory is kept, rewritten, and looked at later */
};

/* What the caller may do with memory that is his again. */
static void take_back(struct loop_buffer *buffer, bool unmap, int value)
{
    if (unmap)
        loop_buffer_unmap(buffer);
    else
        loop_set(buffer->data, buffer->size, value);
}

static void recv_ended(struct entry *entry, const struct weft_completion *completion)
{
    LOOP_CHECK(!entry->recv_done, "a receive ended twice");
    entry->recv_done = true;
    entry->recv_status = completion->status;
    if (completion->status == 0) {
        int64_t at = loop_wrong(entry->message.sink.data, entry->message.sink.size, entry->message.seed);
        LOOP_CHECK(at < 0, "a receive of %zu bytes is wrong from %lld", entry->message.sink.size, (long long)at);
    }
    take_back(&entry->message.sink, entry->unmap, 0x77);
}

static void send_ended(struct entry *entry, const struct weft_completion *completion)
{
    LOOP_CHECK(!entry->send_done, "a send ended twice");
    entry->send_done = true;
    entry->send_status = completion->status;
    take_back(&entry->message.source, entry->unmap, 0x66);
}

static void post(struct entry *entries, struct weft_connection *from, struct weft_connection *to)
{
    for (uint64_t i = 0; i < BATCH; i++) {
        struct entry *entry = &entries[i];
        *entry = (struct entry){.unmap = roll(2)};
        loop_message_create(&entry->message, roll_size(), roll(UINT64_MAX));
    }
    bool receives_first = roll(2);
    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t i = 0; i < BATCH; i++) {
            struct loop_message *message = &entries[i].message;
            if ((pass == 0) == receives_first)
                message->recv = loop_recv(to, message->sink.data, message->sink.size, i);
            else
                message->send = loop_send(from, message->source.data, message->source.size, i);
        }
    }
}

/* One request in three is cancelled, after a random part of the batch has ended. */
static void cancel_some(struct entry *entries)
{
    for (uint64_t i = 0; i < BATCH; i++) {
        struct weft_completion completion;
        struct entry *entry = &entries[i];
        uint64_t what = roll(6);
        if (roll(4) == 0 && weft_test(entry->message.recv, &completion))
            recv_ended(entry, &completion);
        if (roll(4) == 0 && weft_test(entry->message.send, &completion))
            send_ended(entry, &completion);
        if (what == 0 && !entry->recv_done)
            weft_cancel(entry->message.recv);
        if (what == 1 && !entry->send_done) {
            entry->send_cancelled = true;
            weft_cancel(entry->message.send);
        }
    }
}

/* Messages whose receive was cancelled are still on their way: ANY_TAG takes them, up to the sentinel. */
static void drain(struct weft_connection *from, struct weft_connection *to)
{
    static _Thread_local unsigned char landing[LARGEST];
    struct weft_request *send = loop_send(from, NULL, 0, SENTINEL);
    uint64_t tag = 0;

    for (int taken = 0; tag != SENTINEL; taken++) {
        struct weft_completion completion = loop_end(loop_recv_any(to, landing, sizeof(landing)));
        LOOP_CHECK(completion.status == 0 || completion.status == -ECANCELED, "draining: %d: %s", completion.status,
                   completion.text);
        LOOP_CHECK(taken <= BATCH, "more messages than were sent");
        if (completion.status == 0)
            tag = completion.tag;
    }
    loop_done(send, 0, 0);
}

/* Ends every request: a send that was cancelled leaves its receive waiting, which is then cancelled too; a receive that
 * was cancelled leaves its message for drain(). */
static void settle(struct entry *entries, struct weft_connection *from, struct weft_connection *to)
{
    struct weft_completion completion;

    for (int i = 0; i < BATCH; i++) {
        struct entry *entry = &entries[i];
        if (entry->send_cancelled && !entry->send_done) {
            completion = loop_end(entry->message.send);
            send_ended(entry, &completion);
        }
        if (entry->send_done && entry->send_status < 0 && !entry->recv_done)
            weft_cancel(entry->message.recv);
        if (!entry->recv_done) {
            completion = loop_end(entry->message.recv);
            recv_ended(entry, &completion);
        }
    }
    drain(from, to);
    for (int i = 0; i < BATCH; i++) {
        struct entry *entry = &entries[i];
        if (!entry->send_done) {
            completion = loop_end(entry->message.send);
            send_ended(entry, &completion);
        }
        LOOP_CHECK(entry->recv_status == 0 || entry->recv_status == -ECANCELED, "receive %d: %d", i,
                   entry->recv_status);
        LOOP_CHECK(entry->send_status == 0 || entry->send_status == -ECANCELED, "send %d: %d", i, entry->send_status);
    }
}

/* Nothing was written to a landing after its end. */
static void look_again(struct entry *entries)
{
    for (int i = 0; i < BATCH; i++) {
        struct loop_message *message = &entries[i].message;
        if (!entries[i].unmap) {
            int64_t at = loop_differs(message->sink.data, message->sink.size, 0x77);
            LOOP_CHECK(at < 0, "a landing of %zu was written at %lld after its end (status %d)", message->sink.size,
                       (long long)at, entries[i].recv_status);
        }
        loop_message_destroy(message);
    }
}

/* One thread and its connection. */
struct weather {
    pthread_t thread;
    struct weft_connection *end[2];
    uint64_t seed;
    int rounds;
    struct entry entries[2][BATCH]; /* the batch before is looked at after this one */
};

static void *storm(void *arg)
{
    struct weather *weather = arg;

    seed = weather->seed;
    for (int round = 0; round < weather->rounds; round++) {
        int from = round % 3 == 0;
        struct entry *entries = weather->entries[round % 2];
        post(entries, weather->end[from], weather->end[!from]);
        cancel_some(entries);
        settle(entries, weather->end[from], weather->end[!from]);
        if (round)
            look_again(weather->entries[(round + 1) % 2]);
    }
    look_again(weather->entries[(weather->rounds + 1) % 2]);
    return NULL;
}

static void storms(const char *settings, int rails, int threads, uint64_t start)
{
    static struct weather weather[4];

    loop_note("%s, %d rails, %d threads, seed %llu", settings, rails, threads, (unsigned long long)start);
    loop_pair_create(&pair, settings, NULL, rails);
    for (int i = 0; i < threads; i++) {
        weather[i] = (struct weather){.seed = start + (uint64_t)i * 7919, .rounds = LOOP_COUNT(60, 12) / threads};
        loop_connection(&pair, i % 2, weather[i].end);
        if (threads > 1)
            LOOP_CHECK(pthread_create(&weather[i].thread, NULL, storm, &weather[i]) == 0, "pthread_create");
        else
            storm(&weather[i]);
    }
    for (int i = 0; i < threads; i++) {
        if (threads > 1)
            pthread_join(weather[i].thread, NULL);
        loop_exchange(weather[i].end[0], weather[i].end[1], 3000001, 1);
        loop_connection_end(weather[i].end);
    }
    for (int side = 0; side < 2; side++)
        LOOP_CHECK(loop_failures(pair.node[side].peer) == 0, "a channel was lost");
    loop_pair_destroy(&pair);
}

/* `requests` is small: a request that leaks is missed soon. */
static void cancels_at_random(void)
{
    uint64_t start = getenv("LOOP_SEED") ? strtoull(getenv("LOOP_SEED"), NULL, 10) : 1001;

    storms("requests=128 channels=1 window=2 chunk=16K", 1, 1, start);
    storms("requests=128 channels=2 chunk=4K window=16", 2, 1, start + 1);
    storms("requests=128 unexpected=64K small_pool=64K chunk=64K", 2, 1, start + 2);
    storms("requests=128 eager=0 first_burst=0", 1, 1, start + 3);
}

static void cancels_at_random_in_threads(void)
{
    uint64_t start = getenv("LOOP_SEED") ? strtoull(getenv("LOOP_SEED"), NULL, 10) : 2001;

    loop_needs_kernel("threads");
    storms("requests=256 channels=2 chunk=16K window=4", 2, 4, start);
    storms("requests=256 unexpected=64K small_pool=64K chunk=64K", 2, 4, start + 1);
    storms("requests=256 introductions=26 channels=3 chunk=8K", 2, 4, start + 2);
}

/* The same without a cancel: memory is unmapped the moment it may be. */
static void unmapped_at_once(void)
{
    static struct entry entries[BATCH];

    loop_pair_create(&pair, "channels=2 chunk=32K", NULL, 2);
    seed = 77;
    for (int round = 0; round < LOOP_COUNT(60, 10); round++) {
        struct weft_request *all[2][BATCH]; /* of one context each: the receives, the sends */
        int left[2] = {BATCH, BATCH};
        loop_note("round %d", round);
        post(entries, pair.node[0].connection, pair.node[1].connection);
        for (int i = 0; i < BATCH; i++) {
            entries[i].unmap = true;
            all[0][i] = entries[i].message.recv;
            all[1][i] = entries[i].message.send;
        }
        while (left[0] + left[1] > 0) {
            struct weft_completion completion;
            bool sending = left[1] > left[0];
            int index = -1, rc = weft_wait_any(all[sending], BATCH, LOOP_WAIT_MS, &index, &completion);
            LOOP_CHECK(rc == 0 && index >= 0 && all[sending][index], "weft_wait_any: %d, index %d", rc, index);
            LOOP_CHECK(completion.status == 0, "%s", completion.text);
            all[sending][index] = NULL;
            left[sending] -= 1;
            if (sending)
                send_ended(&entries[index], &completion);
            else
                recv_ended(&entries[index], &completion);
        }
    }
    LOOP_CHECK(loop_failures(pair.node[0].peer) + loop_failures(pair.node[1].peer) == 0, "a channel was lost");
    loop_pair_destroy(&pair);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(unmapped_at_once, 40),
        LOOP_CASE(cancels_at_random, 120),
        LOOP_CASE(cancels_at_random_in_threads, 120),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
