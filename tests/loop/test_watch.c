/* test_watch.c: the watcher of an operation hears of each of its chunks once when it begins and once when it ends, all
 * of it before the operation completes, also where channels are lost, it is cancelled, or its session ends. */
#include "loop_support.h"
#include "loop_world.h"

#include <errno.h>
#include <string.h>

#define LARGE (5 * (1 << 20) + 7)
#define CHUNK (64 << 10)
#define CHUNKS_MAX 4096
#define SETTINGS "channels=2 chunk=64K"

struct heard {
    struct weft_chunk chunk;
    bool ended, whole;
};

/* One operation. */
struct watch {
    int count, under_way;
    bool over; /* it has completed: nothing is told any more */
    struct heard heard[CHUNKS_MAX];
};

static struct loop_pair pair;
static struct watch watch[2]; /* of the send, and of the receive */

static void *begins(void *user_data, const struct weft_chunk *chunk)
{
    struct watch *own = user_data;

    LOOP_CHECK(!own->over, "a chunk begins after the end of its operation");
    LOOP_CHECK(own->count < CHUNKS_MAX, "%d chunks", own->count);
    own->under_way += 1;
    own->heard[own->count].chunk = *chunk;
    return &own->heard[own->count++];
}

static void ends(void *user_data, void *own, int whole)
{
    struct watch *of = user_data;
    struct heard *heard = own;

    LOOP_CHECK(!of->over, "a chunk ends after the end of its operation");
    LOOP_CHECK(heard >= of->heard && heard < of->heard + of->count, "the chunk is none of the operation's");
    LOOP_CHECK(!heard->ended, "a chunk ends twice");
    heard->ended = true;
    heard->whole = whole;
    of->under_way -= 1;
}

static const struct weft_watcher watcher = {.begins = begins, .ends = ends};

static struct weft_options watched(struct watch *own)
{
    *own = (struct watch){0};
    return (struct weft_options){.flags = WEFT_WATCH, .user_data = own, .watcher = &watcher};
}

/* The library's threads have told what there was to tell, and say nothing more. */
static struct weft_completion await(struct weft_request *request, struct watch *own)
{
    struct weft_completion completion = loop_end(request);

    LOOP_CHECK(own->under_way == 0, "%d chunks have not ended", own->under_way);
    for (int i = 0; i < own->count; i++)
        LOOP_CHECK(own->heard[i].ended, "chunk %d has not ended", i);
    own->over = true;
    return completion;
}

static struct weft_request *send_watched(const void *data, size_t size, uint64_t tag)
{
    struct weft_options options = watched(&watch[0]);
    struct weft_request *request;

    LOOP_CHECK(weft_send(pair.node[0].connection, data, size, tag, &options, &request) == 0, "%s", weft_last_error());
    return request;
}

static struct weft_request *receive_watched(void *data, size_t size, uint64_t tag)
{
    struct weft_options options = watched(&watch[1]);
    struct weft_request *request;

    LOOP_CHECK(weft_recv(pair.node[1].connection, data, size, tag, &options, &request) == 0, "%s", weft_last_error());
    return request;
}

/* The bytes of the message that whole chunks have, each counted once. */
static uint64_t covered(const struct watch *own, uint64_t size)
{
    static unsigned char seen[LARGE];
    uint64_t bytes = 0;

    memset(seen, 0, sizeof seen);
    for (int i = 0; i < own->count; i++) {
        const struct weft_chunk *chunk = &own->heard[i].chunk;
        LOOP_CHECK(chunk->offset + chunk->bytes <= size && chunk->bytes <= CHUNK, "chunk of %llu bytes at %llu",
                   (unsigned long long)chunk->bytes, (unsigned long long)chunk->offset);
        for (uint64_t at = chunk->offset; own->heard[i].whole && at < chunk->offset + chunk->bytes; at++) {
            bytes += !seen[at];
            seen[at] = 1;
        }
    }
    return bytes;
}

static void check_places(const struct watch *own, const struct loop_node *node, bool receives)
{
    struct weft_rail_stats stats[LOOP_RAILS_MAX];
    int rails = weft_peer_rails(node->peer, stats, LOOP_RAILS_MAX);

    for (int i = 0; i < own->count; i++) {
        const struct weft_chunk *chunk = &own->heard[i].chunk;
        LOOP_CHECK(chunk->rail >= 0 && chunk->rail < rails, "rail %d of %d", chunk->rail, rails);
        LOOP_CHECK(chunk->channel >= 0 && chunk->fd >= 0, "channel %d, descriptor %d", chunk->channel, chunk->fd);
        LOOP_CHECK(chunk->receives == receives, "receives is %d", chunk->receives);
        for (int k = 0; k < i; k++) {
            const struct weft_chunk *other = &own->heard[k].chunk;
            LOOP_CHECK((other->channel == chunk->channel) == (other->fd == chunk->fd),
                       "channel %d has descriptor %d, channel %d has %d", other->channel, other->fd, chunk->channel,
                       chunk->fd);
        }
    }
}

/* One message from [0] to [1], watched on both sides, verified. */
static void exchange(size_t size, uint64_t tag)
{
    struct loop_message message;

    loop_message_create(&message, size, tag);
    message.recv = receive_watched(message.sink.data, size, tag);
    message.send = send_watched(message.source.data, size, tag);
    struct weft_completion in = await(message.recv, &watch[1]), out = await(message.send, &watch[0]);
    LOOP_CHECK(in.status == 0 && in.bytes == size && out.status == 0, "%s%s", in.text, out.text);
    LOOP_CHECK(in.user_data == &watch[1] && out.user_data == &watch[0], "other user data");
    loop_message_verify(&message);
    loop_message_destroy(&message);
}

static void all_chunks(void)
{
    loop_pair_create(&pair, SETTINGS " first_burst=0", NULL, 2);
    exchange(LARGE, 1);
    LOOP_CHECK(loop_failures(pair.node[0].peer) == 0, "a channel was lost");
    for (int side = 0; side < 2; side++) {
        LOOP_CHECK(watch[side].count >= LARGE / CHUNK, "%d chunks", watch[side].count);
        LOOP_CHECK(covered(&watch[side], LARGE) == LARGE, "some bytes are in no chunk");
        check_places(&watch[side], &pair.node[side], side == 1);
    }
    LOOP_CHECK(watch[0].count == watch[1].count, "%d chunks were sent, %d came", watch[0].count, watch[1].count);
    loop_pair_destroy(&pair);
}

/* A small message is copied when it is posted: no chunk of it is sent. */
static void small_messages(void)
{
    static const size_t sizes[] = {8, 0, 1000};

    loop_pair_create(&pair, SETTINGS, NULL, 2);
    for (uint64_t i = 0; i < 3; i++) {
        exchange(sizes[i], i);
        LOOP_CHECK(watch[0].count == 0, "%d chunks of a copied message", watch[0].count);
    }
    loop_pair_destroy(&pair);
}

/* Lists, and sends that wait until all has landed. */
static void lists(void)
{
    struct loop_message message;

    if (loop_memory() != LOOP_ALL_HOST) /* of one buffer there */
        return;
    loop_pair_create(&pair, SETTINGS " first_burst=0", NULL, 2);
    loop_message_create(&message, LARGE, 3);
    struct iovec from[3] = {{message.source.data, 100},
                            {message.source.data + 100, 1000000},
                            {message.source.data + 1000100, LARGE - 1000100}};
    struct iovec to[2] = {{message.sink.data, 2000000}, {message.sink.data + 2000000, LARGE - 2000000}};
    struct weft_options in = watched(&watch[1]), out = watched(&watch[0]);
    out.flags |= WEFT_SYNC;
    LOOP_CHECK(weft_recvv(pair.node[1].connection, to, 2, 3, &in, &message.recv) == 0, "%s", weft_last_error());
    LOOP_CHECK(weft_sendv(pair.node[0].connection, from, 3, 3, &out, &message.send) == 0, "%s", weft_last_error());
    struct weft_completion came = await(message.recv, &watch[1]), went = await(message.send, &watch[0]);
    LOOP_CHECK(came.status == 0 && went.status == 0, "%s%s", came.text, went.text);
    LOOP_CHECK(covered(&watch[0], LARGE) == LARGE && covered(&watch[1], LARGE) == LARGE, "some bytes are in no chunk");
    loop_message_verify(&message);
    loop_message_destroy(&message);
    loop_pair_destroy(&pair);
}

/* What comes before its receive lies in the pool. */
static void late_receives(void)
{
    struct loop_message message;

    if (loop_memory() != LOOP_ALL_HOST) /* none of it goes before it is asked for */
        return;
    loop_pair_create(&pair, SETTINGS " first_burst=1M unexpected=4M", NULL, 2);
    for (uint64_t tag = 1; tag <= (uint64_t)LOOP_COUNT(5, 2); tag++) {
        loop_message_create(&message, LARGE, tag);
        uint64_t before = loop_received(pair.node[1].peer);
        message.send = send_watched(message.source.data, LARGE, tag);
        while (loop_received(pair.node[1].peer) == before)
            loop_world_sleep_ns(100000);
        message.recv = receive_watched(message.sink.data, LARGE, tag);
        struct weft_completion in = await(message.recv, &watch[1]), out = await(message.send, &watch[0]);
        LOOP_CHECK(in.status == 0 && out.status == 0, "%s%s", in.text, out.text);
        LOOP_CHECK(covered(&watch[0], LARGE) == LARGE, "some bytes are in no chunk");
        uint64_t came = covered(&watch[1], LARGE);
        LOOP_CHECK(came > 0 && came < LARGE, "%llu bytes in chunks of the receive", (unsigned long long)came);
        loop_message_verify(&message);
        loop_message_destroy(&message);
    }
    loop_pair_destroy(&pair);
}

static void lost_channels(void)
{
    int cut[2] = {0};

    loop_pair_create(&pair, SETTINGS " first_burst=0 log=error fault=seed=3,reset_every=1M", NULL, 2);
    for (uint64_t tag = 1; tag <= (uint64_t)LOOP_COUNT(20, 4); tag++) {
        exchange(LARGE, tag);
        LOOP_CHECK(covered(&watch[1], LARGE) == LARGE, "some bytes have not come in a chunk");
        for (int side = 0; side < 2; side++)
            for (int i = 0; i < watch[side].count; i++)
                cut[side] += !watch[side].heard[i].whole;
    }
    LOOP_CHECK(cut[0] > 0 && cut[1] > 0, "%d and %d chunks were cut: nothing was tested", cut[0], cut[1]);
    loop_pair_destroy(&pair);
}

/* Wherever the message is at that time. */
static void cancelled(void)
{
    struct loop_message message;

    int told = 0;

    loop_pair_create(&pair, SETTINGS " log=error", NULL, 2);
    for (uint64_t round = 1; round <= (uint64_t)LOOP_COUNT(40, 16); round++) {
        loop_message_create(&message, LARGE, round);
        message.recv = receive_watched(message.sink.data, LARGE, round);
        message.send = send_watched(message.source.data, LARGE, round);
        loop_world_sleep_ns((int64_t)round * LOOP_COUNT(20000, 100000));
        weft_cancel(round % 2 ? message.send : message.recv);
        loop_world_sleep_ns(100000);
        weft_cancel(round % 2 ? message.recv : message.send); /* the other side may never have heard of it */
        struct weft_completion in = await(message.recv, &watch[1]), out = await(message.send, &watch[0]);
        LOOP_CHECK(in.status != 0 || in.bytes == LARGE, "%llu bytes", (unsigned long long)in.bytes);
        LOOP_CHECK(in.status == 0 || in.status == -ECANCELED, "%s", in.text);
        LOOP_CHECK(out.status == 0 || out.status == -ECANCELED, "%s", out.text);
        told += (in.status != 0 && watch[1].count > 0) || (out.status != 0 && watch[0].count > 0);
        loop_message_destroy(&message);
    }
    LOOP_CHECK(told > 0, "nothing was cancelled with chunks under way: nothing was tested");
    loop_exchange(pair.node[0].connection, pair.node[1].connection, LARGE, 99);
    loop_pair_destroy(&pair);
}

static void session_ends(void)
{
    struct loop_message message;
    int told = 0;

    for (int round = 0; round < 10; round++) {
        loop_pair_create(&pair, SETTINGS " log=error", NULL, 2);
        loop_message_create(&message, LARGE, 1);
        message.recv = receive_watched(message.sink.data, LARGE, 1);
        message.send = send_watched(message.source.data, LARGE, 1);
        loop_world_sleep_ns(round * 50000);
        for (int side = 0; side < 2; side++) {
            pair.node[side].connection = NULL; /* ends with its peer */
            weft_peer_close(pair.node[side].peer, 0, NULL);
            pair.node[side].peer = NULL;
        }
        told += await(message.send, &watch[0]).status != 0 && watch[0].count > 0;
        told += await(message.recv, &watch[1]).status != 0 && watch[1].count > 0;
        loop_message_destroy(&message);
        loop_pair_destroy(&pair);
    }
    LOOP_CHECK(told > 0, "no session has ended with chunks under way: nothing was tested");
}

static void wrong_options(void)
{
    static const struct weft_watcher no_begins = {.ends = ends}, no_ends = {.begins = begins};
    const struct weft_watcher *wrong[] = {NULL, &no_begins, &no_ends};
    static const char *lacks[] = {"the struct", "begins", "ends"};
    struct weft_request *request;
    unsigned char byte = 0;

    loop_pair_create(&pair, SETTINGS, NULL, 1);
    for (int i = 0; i < 3; i++) {
        struct weft_options options = {.flags = WEFT_WATCH, .watcher = wrong[i]};
        LOOP_CHECK(weft_send(pair.node[0].connection, &byte, 1, 0, &options, &request) == -EINVAL &&
                       strstr(weft_last_error(), lacks[i]),
                   "%s", weft_last_error());
        options.flags = 0; /* then it does not count */
        LOOP_CHECK(weft_send(pair.node[0].connection, &byte, 1, (uint64_t)i, &options, &request) == 0, "%s",
                   weft_last_error());
        loop_done(request, 0, 1);
    }
    struct weft_options options = watched(&watch[0]);
    LOOP_CHECK(weft_write(pair.node[0].connection, &byte, 1, 1, 0, &options, &request) == -EINVAL, "a write");
    LOOP_CHECK(weft_notify(pair.node[0].connection, &byte, 1, 0, &options, &request) == -EINVAL, "a notification");
    loop_pair_destroy(&pair);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LOOP_CASE(all_chunks, 20),    LOOP_CASE(small_messages, 20), LOOP_CASE(lists, 20),
        LOOP_CASE(late_receives, 30), LOOP_CASE(lost_channels, 60),  LOOP_CASE(cancelled, 40),
        LOOP_CASE(session_ends, 40),  LOOP_CASE(wrong_options, 20),
    };
    loop_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
