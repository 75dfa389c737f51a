/*
 * test_vector.c: messages whose memory is in many places (weft_sendv, weft_recvv): every byte comes out in the order of
 * the entries, however differently the two sides have cut the message, and nothing between the entries is touched.
 *
 * A message is made of cells with a pattern of their own. Each side joins neighbouring cells to entries as it likes,
 * and lays the entries out backwards with gaps between them, so that no two of them are neighbours in memory.
 */
#include "loop_support.h"
#include "loop_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define CELLS_MAX 1000
#define GAP 3
#define EMPTY_EVERY 5 /* an entry without bytes stands before every so many others */

static uint64_t state;

static size_t draw(size_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % below;
}

struct cells {
    int count;
    size_t size[CELLS_MAX], total;
    uint64_t seed;
};

/* A message's memory at one side. */
struct side {
    struct loop_buffer buffer;
    struct iovec iov[WEFT_IOV_MAX];
    int count; /* 0 with `plain`: one place, for a call without a vector */
    bool plain;
    unsigned char *at[CELLS_MAX];
    struct weft_request *request;
};

static void cut(struct cells *cells, size_t total, int count, uint64_t seed)
{
    size_t left = total;
    *cells = (struct cells){.total = total, .seed = seed};
    for (int i = 0; i < count && left > 0; i++) {
        size_t share = 2 * left / (size_t)(count - i) + 1;
        size_t size = i == count - 1 ? left : 1 + draw(share);
        cells->size[cells->count++] = size < left ? size : left;
        left -= cells->size[cells->count - 1];
    }
}

/* Joins 1 to `most` cells to an entry; 0: all in one place. `extra`: bytes of room behind the message. */
static void lay_out(struct side *side, const struct cells *cells, size_t most, enum loop_side whose, size_t extra)
{
    size_t used = cells->total + extra + (most ? (size_t)(cells->count + 1) * GAP : 0);
    side->count = 0;
    side->plain = most == 0;
    loop_buffer_create(&side->buffer, whose, used);
    loop_set(side->buffer.data, used, LOOP_POISON);
    unsigned char *end = side->buffer.data + used, *start = side->buffer.data;
    for (int i = 0; i < cells->count;) {
        size_t bytes = 0, joined = most ? 1 + draw(most) : (size_t)cells->count;
        int next = i;
        for (; next < cells->count && (size_t)(next - i) < joined; next++)
            bytes += cells->size[next];
        unsigned char *place = most ? (end -= bytes) : start;
        if (most && draw(EMPTY_EVERY) == 0 && side->count < WEFT_IOV_MAX - CELLS_MAX)
            side->iov[side->count++] = (struct iovec){NULL, 0};
        side->iov[side->count++] = (struct iovec){place, bytes};
        for (; i < next; i++) {
            side->at[i] = place;
            place += cells->size[i];
        }
        end -= most ? GAP : 0;
    }
    if (most && extra) {
        end -= extra;
        side->iov[side->count++] = (struct iovec){end, extra};
    }
}

static void fill(struct side *side, const struct cells *cells)
{
    for (int i = 0; i < cells->count; i++)
        loop_fill(side->at[i], cells->size[i], cells->seed + (uint64_t)i);
}

/* Every cell is right, and nothing else was written. */
static void verify(struct side *side, const struct cells *cells)
{
    for (int i = 0; i < cells->count; i++) {
        int64_t wrong = loop_wrong(side->at[i], cells->size[i], cells->seed + (uint64_t)i);
        LOOP_CHECK(wrong < 0, "cell %d of %d, of %zu bytes, is wrong at %lld", i, cells->count, cells->size[i],
                   (long long)wrong);
    }
    for (int i = 0; i < cells->count; i++)
        loop_set(side->at[i], cells->size[i], LOOP_POISON);
    int64_t at = loop_differs(side->buffer.data, side->buffer.size, LOOP_POISON);
    LOOP_CHECK(at < 0, "byte %lld, between the entries, was written", (long long)at);
}

static void send_side(struct weft_connection *connection, struct side *side, const struct cells *cells, uint64_t tag)
{
    int result = side->plain ? weft_send(connection, side->buffer.data, cells->total, tag, NULL, &side->request)
                             : weft_sendv(connection, side->iov, side->count, tag, NULL, &side->request);
    LOOP_CHECK(result == 0, "%s", weft_last_error());
    memset(side->iov, 0x7f, sizeof side->iov); /* the call has copied it */
}

static void receive_side(struct weft_connection *connection, struct side *side, uint64_t tag)
{
    int result = side->plain ? weft_recv(connection, side->buffer.data, side->buffer.size, tag, NULL, &side->request)
                             : weft_recvv(connection, side->iov, side->count, tag, NULL, &side->request);
    LOOP_CHECK(result == 0, "%s", weft_last_error());
    memset(side->iov, 0x7f, sizeof side->iov);
}

/* --- all shapes --- */

#define UNDER_WAY 24

static const size_t sizes[] = {0,    1,     2,     100,   4095,  4096,   4097,   8191,          8192,
                               8193, 20000, 65535, 65536, 65537, 131072, 200001, (1 << 20) + 1, 3 * (1 << 20) + 5};
#define SIZE_COUNT (sizeof sizes / sizeof sizes[0])

static const struct {
    int cells;
    size_t sender, receiver; /* the most cells of an entry; 0: no vector */
    size_t extra;
} shapes[] = {
    {1, 1, 1, 0}, {2, 1, 1, 0}, {2, 1, 0, 9}, {7, 0, 3, 100}, {60, 4, 1, 1}, {300, 1, 5, 0}, {CELLS_MAX, 1, 1, 4},
};
#define SHAPE_COUNT (sizeof shapes / sizeof shapes[0])

static struct cells cells[UNDER_WAY];
static struct side from[UNDER_WAY], to[UNDER_WAY];

/* All sizes of one shape under way at once; every second receive comes after the sends. */
static void run_shape(struct weft_connection *sender, struct weft_connection *receiver, size_t shape)
{
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        cut(&cells[i], sizes[i], shapes[shape].cells, 1000 * (uint64_t)i);
        lay_out(&from[i], &cells[i], shapes[shape].sender, LOOP_NEAR, 0);
        lay_out(&to[i], &cells[i], shapes[shape].receiver, LOOP_FAR, shapes[shape].extra);
        fill(&from[i], &cells[i]);
    }
    for (size_t i = 0; i < SIZE_COUNT; i += 2)
        receive_side(receiver, &to[i], i);
    for (size_t i = 0; i < SIZE_COUNT; i++)
        send_side(sender, &from[i], &cells[i], i);
    for (size_t i = 1; i < SIZE_COUNT; i += 2)
        receive_side(receiver, &to[i], i);
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        loop_note("shape %zu, %zu bytes in %d cells", shape, sizes[i], cells[i].count);
        loop_done(from[i].request, 0, sizes[i]);
        loop_set(from[i].buffer.data, from[i].buffer.size, 0x11); /* a send that is done does not read it */
        loop_done(to[i].request, 0, sizes[i]);
        verify(&to[i], &cells[i]);
        loop_buffer_unmap(&from[i].buffer);
        loop_buffer_unmap(&to[i].buffer);
    }
}

static void run_all(const char *settings, int rails)
{
    struct loop_pair pair;
    loop_pair_create(&pair, settings, NULL, rails);
    for (size_t shape = 0; shape < SHAPE_COUNT; shape++)
        run_shape(pair.node[shape % 2].connection, pair.node[1 - shape % 2].connection, shape);
    for (int i = 0; i < 2; i++)
        LOOP_CHECK(loop_failures(pair.node[i].peer) == 0, "a channel was lost");
    loop_pair_destroy(&pair);
}

static void all_sizes_and_shapes(void)
{
    run_all("channels=2 eager=8K chunk=64K first_burst=64K", 2);
}

static void nothing_unasked(void)
{
    run_all("channels=1 eager=0 chunk=4K first_burst=0", 1);
}

static void large_chunks(void)
{
    run_all("channels=3 eager=64K chunk=1M first_burst=1M", 2);
}

/* No room for copies of small messages, and little for bursts: the pieces go from where they are. */
static void small_pools(void)
{
    run_all("channels=2 eager=64K chunk=64K small_pool=4K unexpected=64K", 1);
}

/* --- ends that are no success --- */

static void too_large_writes_nothing(void)
{
    struct loop_pair pair;
    loop_pair_create(&pair, "eager=8K chunk=64K first_burst=32K", NULL, 1);
    for (int late = 0; late < 2; late++)
        for (int large = 0; large < 2; large++) {
            static char bytes[300000];
            uint64_t tag = (uint64_t)(2 * late + large);
            size_t size = large ? sizeof bytes : 500;
            cut(&cells[0], size - 1, 20, 7);
            lay_out(&to[0], &cells[0], 2, LOOP_FAR, 0);
            struct weft_request *send = NULL;
            if (late)
                send = loop_send(pair.node[0].connection, bytes, size, tag);
            receive_side(pair.node[1].connection, &to[0], tag);
            if (!late)
                send = loop_send(pair.node[0].connection, bytes, size, tag);
            loop_done(to[0].request, -EMSGSIZE, size);
            LOOP_CHECK(loop_differs(to[0].buffer.data, to[0].buffer.size, LOOP_POISON) < 0, "something was written");
            loop_buffer_unmap(&to[0].buffer);
            weft_cancel(send);
            loop_end(send);
        }
    loop_pair_destroy(&pair);
}

static void cancelled(void)
{
    struct loop_pair pair;
    loop_pair_create(&pair, "eager=8K chunk=64K first_burst=0", NULL, 1);
    cut(&cells[0], 200000, 50, 9);
    lay_out(&from[0], &cells[0], 1, LOOP_NEAR, 0);
    lay_out(&to[0], &cells[0], 2, LOOP_FAR, 0);
    fill(&from[0], &cells[0]);
    receive_side(pair.node[1].connection, &to[0], 1);
    weft_cancel(to[0].request);
    loop_done(to[0].request, -ECANCELED, 0);
    send_side(pair.node[0].connection, &from[0], &cells[0], 2); /* nobody receives it */
    weft_cancel(from[0].request);
    loop_done(from[0].request, -ECANCELED, 0);
    loop_set(from[0].buffer.data, from[0].buffer.size, 0);
    loop_buffer_unmap(&from[0].buffer);
    loop_buffer_unmap(&to[0].buffer);
    loop_exchange(pair.node[0].connection, pair.node[1].connection, 100000, 3);
    loop_pair_destroy(&pair);
}

/* The session ends with vectors of both kinds under way: nothing of them is left, and their memory is not touched. */
static void session_ends(void)
{
    struct loop_pair pair;
    struct weft_error err = {0};
    loop_pair_create(&pair, "eager=8K chunk=64K first_burst=0", NULL, 1);
    cut(&cells[0], 200000, 50, 9);
    lay_out(&from[0], &cells[0], 1, LOOP_NEAR, 0);
    lay_out(&to[0], &cells[0], 2, LOOP_FAR, 0);
    fill(&from[0], &cells[0]);
    receive_side(pair.node[0].connection, &to[0], 1);
    send_side(pair.node[0].connection, &from[0], &cells[0], 2);
    pair.node[0].connection = NULL; /* ends with its peer */
    weft_peer_close(pair.node[0].peer, 0, &err);
    pair.node[0].peer = NULL;
    LOOP_CHECK(loop_end(from[0].request).status < 0 && loop_end(to[0].request).status < 0, "one has succeeded");
    loop_buffer_unmap(&from[0].buffer);
    loop_buffer_unmap(&to[0].buffer);
    loop_pair_destroy(&pair);
}

/* GPU memory of two registrations, or beside host memory, is not taken for one message. */
static void memory_of_several_kinds(void)
{
    struct loop_buffer one, two, host;
    struct weft_request *request;
    struct loop_pair pair;
    if (loop_memory() != LOOP_ALL_CUDA)
        return;
    loop_pair_create(&pair, NULL, NULL, 1);
    loop_buffer_create_on(&one, 0, 1000);
    loop_buffer_create_on(&two, 0, 1000);
    loop_buffer_create_on(&host, LOOP_NO_DEVICE, 1000);
    struct iovec devices[2] = {{one.data, 10}, {two.data, 10}}, mixed[2] = {{host.data, 10}, {one.data, 10}};
    LOOP_CHECK(weft_sendv(pair.node[0].connection, devices, 2, 0, NULL, &request) == -ENOTSUP &&
                   strstr(weft_last_error(), "GPU memory"),
               "%s", weft_last_error());
    LOOP_CHECK(weft_recvv(pair.node[0].connection, mixed, 2, 0, NULL, &request) == -ENOTSUP, "%s", weft_last_error());
    loop_buffer_unmap(&one);
    loop_buffer_unmap(&two);
    loop_buffer_unmap(&host);
    loop_pair_destroy(&pair);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LOOP_CASE(all_sizes_and_shapes, 30), LOOP_CASE(nothing_unasked, 60),          LOOP_CASE(large_chunks, 30),
        LOOP_CASE(small_pools, 30),          LOOP_CASE(too_large_writes_nothing, 20), LOOP_CASE(cancelled, 20),
        LOOP_CASE(session_ends, 20),         LOOP_CASE(memory_of_several_kinds, 20),
    };
    loop_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
