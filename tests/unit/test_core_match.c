/* Which receive gets which message: tags, order of posting and of numbers, sizes, notifications, closing, cancelling.
 */
#include "core_scene.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/device/turn.h"
#include "core/message/connection_close.h"
#include "core/message/inbound.h"
#include "core/message/match.h"
#include "core/message/served.h"
#include "core/request/book.h"
#include "wire/frame.h"

#define CONNECTION 1u
#define TAG 7
#define OTHER_TAG 8
#define KEY 42
#define SMALL 100
#define LARGE (SCENE_FIRST_BURST + 1000)
#define REQUESTS 100 /* the limit */

static uint8_t buffers[4][LARGE]; /* of receives */
static uint8_t content[LARGE];    /* that messages bring */
static uint8_t region[SMALL];     /* that writes land in */

static int set_up(void **state)
{
    int result = scene_set_up_locked(state);
    struct scene *scene = *state;
    scene->world.tuning.requests = REQUESTS;
    for (size_t i = 0; i < sizeof content; i++)
        content[i] = (uint8_t)(i * 13 + i / 241 + 1);
    memset(buffers, 0, sizeof buffers);
    memset(region, 0, sizeof region);
    return result;
}

/* --- receives --- */

static struct weft_request *post(struct weft_connection *connection, enum wf_request_kind kind, uint8_t *buffer,
                                 uint64_t capacity, uint64_t tag, uint32_t flags)
{
    struct weft_request *request = wf_request_take(connection->desk->book, kind, &wf_receive_ops);
    assert_non_null(request);
    request->connection = connection;
    request->buffer = buffer;
    request->length = capacity;
    request->tag = tag;
    request->flags = flags;
    wf_match_receive(request);
    return request;
}

static struct weft_request *receive(struct weft_connection *connection, int buffer, uint64_t tag)
{
    return post(connection, WF_REQUEST_RECV, buffers[buffer], LARGE, tag, 0);
}

static struct weft_request *receive_any(struct weft_connection *connection, int buffer)
{
    return post(connection, WF_REQUEST_RECV, buffers[buffer], LARGE, 0, WEFT_ANY_TAG);
}

static struct weft_request *receive_note(struct weft_connection *connection, int buffer)
{
    return post(connection, WF_REQUEST_NOTE, buffers[buffer], LARGE, 0, 0);
}

static bool is_done(const struct weft_request *request)
{
    return atomic_load(&request->done) != 0;
}

/* It has ended well, with these bytes. */
static void assert_got(const struct weft_request *request, uint64_t tag, uint64_t length)
{
    assert_true(is_done(request));
    assert_int_equal(request->status, 0);
    assert_int_equal(request->bytes, length);
    assert_int_equal(request->tag, tag);
    assert_memory_equal(request->buffer, content, length);
}

static void assert_failed(const struct weft_request *request, int status)
{
    assert_true(is_done(request));
    assert_int_equal(request->status, status);
}

/* --- messages, by the steps of a channel --- */

/* A payload that is coming. */
struct arrival {
    struct weft_connection *connection;
    struct wf_inbound *inbound;
    bool pooled; /* it goes to the unexpected pool */
};

/* Holds the place of the payload whose header has come, and matches what can be matched now. */
static struct arrival claim(struct wf_inbound *inbound)
{
    struct arrival arrival = {.connection = inbound->connection, .inbound = inbound};
    inbound->claims += 1;
    wf_match_advance(inbound->connection);
    arrival.pooled = inbound->state == WF_INBOUND_EARLY || inbound->state == WF_INBOUND_UNMATCHED || inbound->parked;
    return arrival;
}

/* The header of a message's first bytes comes. */
static struct arrival begin(struct weft_connection *connection, uint64_t number, uint64_t tag, uint64_t total)
{
    struct wf_inbound *inbound = wf_inbound_create(connection, number, tag, total, false);
    assert_non_null(inbound);
    return claim(inbound);
}

/* The payload [start, end) is here. The message may be gone afterwards. */
static void end(struct arrival *arrival, uint64_t start, uint64_t stop)
{
    struct wf_inbound *inbound = arrival->inbound;
    bool wanted = inbound->state != WF_INBOUND_DRAINING;
    for (uint64_t at = start, covered; wanted && at < stop; at += covered) {
        struct iovec piece;
        int count = arrival->pooled ? wf_inbound_pool_places(inbound, at, stop - at, &piece, 1, &covered)
                                    : wf_inbound_places(inbound, at, stop - at, &piece, 1, &covered);
        assert_int_equal(count, 1);
        memcpy(piece.iov_base, content + at, covered);
    }
    arrival->connection->pins += 1;
    if (arrival->pooled && inbound->state == WF_INBOUND_MATCHED && !inbound->parked)
        wf_inbound_copy_out(inbound, start, stop);
    inbound->claims -= 1;
    assert_int_equal(wf_inbound_mark(inbound, start, stop), 0);
    wf_inbound_check(inbound);
    arrival->connection->pins -= 1;
}

static void deliver(struct weft_connection *connection, uint64_t number, uint64_t tag, uint64_t length)
{
    struct arrival arrival = begin(connection, number, tag, length);
    end(&arrival, 0, length);
}

static struct wf_inbound *offer(struct weft_connection *connection, uint64_t number, uint64_t tag, uint64_t total)
{
    struct wf_inbound *inbound = wf_inbound_create(connection, number, tag, total, true);
    assert_non_null(inbound);
    wf_match_advance(connection);
    return inbound;
}

/* The header of a write to `region` comes. */
static struct arrival begin_write(struct weft_connection *connection, uint64_t number)
{
    struct wf_frame frame = {.type = WF_DATA,
                             .flags = WF_FLAG_WRITE | WF_FLAG_NOTIFY,
                             .msg = number,
                             .key = KEY,
                             .total = SMALL,
                             .length = SMALL};
    struct wf_inbound *inbound = wf_inbound_create(connection, number, KEY, SMALL, true);
    assert_non_null(inbound);
    assert_int_equal(wf_onesided_introduced(inbound, &frame), 0);
    return claim(inbound);
}

/* All of a write comes. It lives on until the peer has been told. */
static void write_region(struct weft_connection *connection, uint64_t number)
{
    struct arrival arrival = begin_write(connection, number);
    end(&arrival, 0, SMALL);
}

/* A notification of the write with the number before its own comes. */
static void notify(struct weft_connection *connection, uint64_t number, uint64_t length)
{
    struct wf_frame frame = {.type = WF_DATA,
                             .flags = WF_FLAG_NOTIFY,
                             .msg = number,
                             .base = number - 1,
                             .total = length,
                             .length = (uint32_t)length};
    struct wf_inbound *inbound = wf_inbound_create(connection, number, 0, length, false);
    assert_non_null(inbound);
    assert_int_equal(wf_onesided_introduced(inbound, &frame), 0);
    struct arrival arrival = claim(inbound);
    end(&arrival, 0, length);
}

static void register_region(struct scene *scene)
{
    struct weft_registration *registration = calloc(1, sizeof *registration);
    assert_non_null(registration);
    *registration =
        (struct weft_registration){.base = region, .length = sizeof region, .key = KEY, .access = WEFT_REMOTE_WRITE};
    wf_link_init(&registration->device_link);
    wf_registration_enter(&scene->registry, registration);
}

static struct weft_connection *connect_with_region(struct scene *scene)
{
    register_region(scene);
    return scene_connect(scene, CONNECTION, REQUESTS);
}

/* Nothing of the unexpected pool is in use, and the peer's credit is whole. */
static void assert_pool_is_free(const struct scene *scene, uint64_t settled)
{
    assert_int_equal(scene->desk.blocks.free, SCENE_POOL / WF_BLOCK_BYTES);
    assert_int_equal(scene->desk.unsolicited_settled, settled);
}

/* --- tags and posting --- */

static void test_the_receive_that_was_posted_first(void **state)
{
    enum { NONE, EXACT, OTHER, ANY };
    static const struct {
        int posted[3]; /* receives for TAG, OTHER_TAG or any, in this order */
        int got;       /* the one that a message with TAG belongs to; -1: none */
    } cases[] = {
        {{EXACT, ANY}, 0},
        {{ANY, EXACT}, 0},
        {{OTHER, ANY}, 1},
        {{OTHER, EXACT, ANY}, 1},
        {{OTHER, ANY, EXACT}, 1},
        {{EXACT, EXACT, ANY}, 0},
        {{ANY, ANY}, 0},
        {{OTHER}, -1},
        {{NONE}, -1},
        {{OTHER, OTHER, ANY}, 2},
        {{OTHER, OTHER, EXACT}, 2},
    };
    struct scene *scene = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weft_connection *connection = scene_connect(scene, CONNECTION + 2 * (uint32_t)i, REQUESTS);
        struct weft_request *requests[3] = {NULL};
        print_message("case %zu\n", i);
        for (int j = 0; j < 3 && cases[i].posted[j]; j++)
            requests[j] = cases[i].posted[j] == ANY
                              ? receive_any(connection, j)
                              : receive(connection, j, cases[i].posted[j] == EXACT ? TAG : OTHER_TAG);
        struct weft_request *expected = cases[i].got < 0 ? NULL : requests[cases[i].got];
        assert_ptr_equal(wf_match_posted(connection, TAG), expected);
        deliver(connection, 1, TAG, SMALL);
        for (int j = 0; j < 3; j++)
            if (requests[j])
                assert_int_equal(is_done(requests[j]), j == cases[i].got);
        if (expected)
            assert_got(expected, TAG, SMALL);
        assert_int_equal(wf_list_empty(&connection->unexpected), expected != NULL);
    }
}

static void test_receives_are_used_once(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, REQUESTS);
    struct weft_request *exact = receive(connection, 0, TAG), *any = receive_any(connection, 1);
    deliver(connection, 1, TAG, SMALL);
    deliver(connection, 2, TAG, SMALL - 1);
    deliver(connection, 3, TAG, SMALL - 2);
    assert_got(exact, TAG, SMALL);
    assert_got(any, TAG, SMALL - 1);
    struct weft_request *third = receive(connection, 2, TAG);
    assert_got(third, TAG, SMALL - 2);
}

static void test_messages_that_nobody_expected(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, REQUESTS);
    deliver(connection, 1, OTHER_TAG, SMALL);
    deliver(connection, 2, TAG, 2 * WF_BLOCK_BYTES + 1);
    deliver(connection, 3, TAG, SMALL - 1);
    assert_int_equal(scene->desk.blocks.free, SCENE_POOL / WF_BLOCK_BYTES - 5);
    assert_int_equal(connection->finished_count, 0);
    assert_got(receive(connection, 0, TAG), TAG, 2 * WF_BLOCK_BYTES + 1); /* the first with its tag */
    assert_got(receive_any(connection, 1), OTHER_TAG, SMALL);             /* the first of all */
    assert_got(receive_any(connection, 2), TAG, SMALL - 1);
    assert_pool_is_free(scene, 5 * WF_BLOCK_BYTES);
    assert_int_equal(connection->finished_count, 3);
    assert_int_equal(connection->inbounds, 0);
    assert_false(is_done(receive_any(connection, 3)));
}

static uint64_t list_of(uint32_t number, uint64_t tag)
{
    return wf_hash(number, tag) % 1024;
}

/* Lists of a table are shared by tags and by connections. */
static void test_neighbours_in_a_list(void **state)
{
    struct scene *scene = *state;
    uint64_t tag = TAG, twin = TAG + 1;
    uint32_t neighbour = CONNECTION + 2;
    while (list_of(neighbour, tag) != list_of(CONNECTION, tag))
        neighbour += 2;
    while (list_of(CONNECTION, twin) != list_of(CONNECTION, tag))
        twin += 1;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, REQUESTS),
                           *other = scene_connect(scene, neighbour, REQUESTS);
    struct weft_request *of_twin = receive(connection, 0, twin), *of_other = receive(other, 1, tag);
    deliver(connection, 1, tag, SMALL);
    assert_false(is_done(of_twin));
    assert_false(is_done(of_other));

    deliver(connection, 2, tag, SMALL - 1);
    struct weft_request *late = receive(other, 2, tag);
    assert_false(is_done(late));
    deliver(other, 1, tag, SMALL - 2);
    assert_got(of_other, tag, SMALL - 2);
    assert_got(receive(connection, 3, tag), tag, SMALL);
    deliver(connection, 3, twin, SMALL - 3);
    assert_got(of_twin, twin, SMALL - 3);

    assert_got(receive(connection, 3, tag), tag, SMALL - 1);
    deliver(connection, 4, twin, SMALL - 4); /* nor among messages that came before their receives */
    deliver(connection, 5, tag, SMALL - 5);
    assert_got(receive(connection, 3, tag), tag, SMALL - 5);
}

/* --- numbers --- */

static void test_messages_wait_for_their_predecessors(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, REQUESTS);
    struct weft_request *requests[3];
    for (int i = 0; i < 3; i++)
        requests[i] = receive_any(connection, i);
    deliver(connection, 3, TAG, 30);
    struct arrival second = begin(connection, 2, TAG, 20);
    assert_int_equal(second.inbound->state, WF_INBOUND_EARLY);
    end(&second, 0, 20);
    for (int i = 0; i < 3; i++)
        assert_false(is_done(requests[i]));
    assert_true(wf_list_empty(&connection->unexpected)); /* nor is it to be found by a receive that comes now */
    assert_false(is_done(receive(connection, 3, TAG)));
    deliver(connection, 1, TAG, 10);
    assert_got(requests[0], TAG, 10);
    assert_got(requests[1], TAG, 20);
    assert_got(requests[2], TAG, 30);
    assert_int_equal(connection->next_match, 4);
}

/* A number whose message was refused before its turn, or that ended without a message, is not waited for. */
static void test_predecessors_that_are_no_messages(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, REQUESTS);
    struct weft_request *request = receive(connection, 0, TAG);
    struct arrival refused = begin(connection, 2, TAG, SMALL);
    deliver(connection, 4, TAG, SMALL - 1);
    wf_inbound_refuse(refused.inbound, -ECANCELED);
    wf_connection_finish_number(connection, 3);
    assert_int_equal(connection->next_match, 1);
    deliver(connection, 1, OTHER_TAG, SMALL);
    assert_int_equal(connection->next_match, 5);
    assert_got(request, TAG, SMALL - 1);
    end(&refused, 0, SMALL);
}

/* --- sizes --- */

/* A message that is too large for a receive stays where it is, and its sender hears nothing. */
static void test_too_large(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, REQUESTS);
    /* All of it is here. */
    deliver(connection, 1, TAG, SMALL);
    struct weft_request *request = post(connection, WF_REQUEST_RECV, buffers[0], SMALL - 1, 0, WEFT_ANY_TAG);
    assert_failed(request, -EMSGSIZE);
    assert_int_equal(request->bytes, SMALL); /* what it would have taken */
    assert_int_equal(request->tag, TAG);
    assert_int_equal(buffers[0][0], 0);
    assert_int_equal(connection->inbounds, 1);
    assert_true(wf_list_empty(&scene->desk.todo_inbounds[0]));
    deliver(connection, 2, TAG, SMALL - 1); /* it fits the next receive, but is not the first */
    request = post(connection, WF_REQUEST_RECV, buffers[0], SMALL - 1, TAG, 0);
    assert_failed(request, -EMSGSIZE);
    assert_got(receive(connection, 0, TAG), TAG, SMALL);
    assert_got(receive(connection, 0, TAG), TAG, SMALL - 1);
    assert_int_equal(connection->inbounds, 0);
    assert_pool_is_free(scene, 2 * WF_BLOCK_BYTES);

    /* The rest waits for a receive with room. */
    struct wf_inbound *inbound = offer(connection, 3, TAG, LARGE);
    request = post(connection, WF_REQUEST_RECV, buffers[0], LARGE - 1, TAG, 0);
    assert_failed(request, -EMSGSIZE);
    assert_int_equal(inbound->state, WF_INBOUND_UNMATCHED);
    assert_true(wf_list_empty(&scene->desk.todo_inbounds[0]));
    request = receive(connection, 0, TAG);
    assert_ptr_equal(inbound->request, request);
    assert_true(inbound->grant_due);
    assert_false(inbound->refuse_due);
    struct arrival rest = claim(inbound);
    end(&rest, 0, LARGE);
    assert_got(request, TAG, LARGE);
}

/* The same where the receives were posted before: those that are too small end, the first with room takes it. */
static void test_too_large_for_those_posted(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, REQUESTS);
    struct weft_request *small = post(connection, WF_REQUEST_RECV, buffers[0], SMALL - 1, TAG, 0);
    struct weft_request *any = post(connection, WF_REQUEST_RECV, buffers[0], SMALL - 1, 0, WEFT_ANY_TAG);
    struct weft_request *other = receive(connection, 2, OTHER_TAG);
    struct weft_request *next = post(connection, WF_REQUEST_RECV, buffers[1], SMALL, TAG, 0);
    deliver(connection, 1, TAG, SMALL);
    assert_failed(small, -EMSGSIZE);
    assert_failed(any, -EMSGSIZE);
    assert_int_equal(any->tag, TAG);
    assert_got(next, TAG, SMALL); /* it fits exactly */
    assert_false(is_done(other));
    assert_int_equal(buffers[0][0], 0);

    /* And where none has room: the message waits for the next one. */
    small = post(connection, WF_REQUEST_RECV, buffers[0], SMALL - 1, TAG, 0);
    deliver(connection, 2, TAG, SMALL);
    assert_failed(small, -EMSGSIZE);
    assert_got(receive(connection, 3, TAG), TAG, SMALL);
    assert_int_equal(connection->inbounds, 0);
}

static void test_too_large_a_note(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = connect_with_region(scene);
    struct weft_request *small = post(connection, WF_REQUEST_NOTE, buffers[0], SMALL - 1, 0, 0);
    struct weft_request *next = receive_note(connection, 1);
    struct arrival write = begin_write(connection, 1);
    end(&write, 0, SMALL);
    notify(connection, 2, SMALL);
    wf_match_notes(&scene->desk);
    assert_failed(small, -EMSGSIZE);
    assert_int_equal(small->bytes, SMALL);
    assert_got(next, 0, SMALL);
}

static void test_a_match_asks_for_the_rest(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, REQUESTS);
    struct wf_inbound *offered = offer(connection, 1, TAG, SMALL);
    assert_false(offered->grant_due);
    struct weft_request *request = receive(connection, 0, TAG);
    assert_true(offered->grant_due);
    assert_ptr_equal(wf_list_first(&scene->desk.todo_inbounds[0]), &offered->todo_link);
    assert_false(is_done(request));
    struct arrival arrival = claim(offered);
    assert_false(arrival.pooled);
    end(&arrival, 0, SMALL);
    assert_got(request, TAG, SMALL);

    struct arrival burst = begin(connection, 2, TAG, LARGE); /* more than comes unasked */
    end(&burst, 0, SCENE_FIRST_BURST);
    request = receive(connection, 1, TAG);
    assert_true(burst.inbound->grant_due);
    assert_false(is_done(request));
    assert_memory_equal(buffers[1], content, SCENE_FIRST_BURST);
    assert_pool_is_free(scene, SCENE_FIRST_BURST); /* with the burst at its place, its credit goes back */
    arrival = claim(burst.inbound);
    end(&arrival, SCENE_FIRST_BURST, LARGE);
    assert_got(request, TAG, LARGE);

    struct arrival whole = begin(connection, 3, TAG, SCENE_FIRST_BURST); /* all of it does */
    receive(connection, 2, TAG);
    assert_false(whole.inbound->grant_due);
    end(&whole, 0, SCENE_FIRST_BURST);
}

/* --- landing --- */

/* The receive comes while a payload is on its way to the pool: that copies itself, and only then the receive ends. */
static void test_a_receive_during_the_payload(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, REQUESTS);
    struct arrival arrival = begin(connection, 1, TAG, SMALL);
    assert_true(arrival.pooled);
    struct weft_request *request = receive(connection, 0, TAG);
    assert_int_equal(arrival.inbound->state, WF_INBOUND_MATCHED);
    assert_false(is_done(request));
    assert_false(wf_match_is_here(request));
    assert_int_equal(wf_inbound_mark(arrival.inbound, 0, 0), 0);
    end(&arrival, 0, SMALL);
    assert_got(request, TAG, SMALL);
    assert_pool_is_free(scene, WF_BLOCK_BYTES);
}

static void test_is_here(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, REQUESTS);
    struct weft_request *request = receive(connection, 0, TAG);
    assert_false(wf_match_is_here(request));
    struct arrival arrival = begin(connection, 1, TAG, SMALL);
    assert_ptr_equal(request->inbound, arrival.inbound);
    struct arrival other = claim(arrival.inbound); /* a copy to a device, say */
    end(&arrival, 0, SMALL);
    assert_false(is_done(request)); /* the copy may still write there */
    assert_true(wf_match_is_here(request));
    other.inbound->claims -= 1;
    wf_inbound_check(other.inbound);
    assert_got(request, TAG, SMALL);
}

/* What is copied from the pool in a moment needs no holder, as the lock is not released. */
static void test_the_short_copy_from_the_pool(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, REQUESTS);
    deliver(connection, 1, TAG, SMALL);
    deliver(connection, 2, TAG, WF_BLOCK_BYTES);
    deliver(connection, 3, TAG, 0);
    wf_guard_enter(&scene->guard, WF_SESSION_FAILED);
    for (int i = 0; i < 3; i++) {
        struct weft_request *request = receive(connection, i, TAG);
        assert_got(request, TAG, i == 0 ? SMALL : i == 1 ? WF_BLOCK_BYTES : 0);
    }
    assert_int_equal(scene->unheld, 0);
    assert_int_equal(connection->inbounds, 0);
    assert_int_equal(connection->finished_count, 3);
    assert_pool_is_free(scene, 2 * WF_BLOCK_BYTES);
}

/* A message that is the next to be matched and whole, as wf_small_land() finds it. */
static bool keep_whole(struct weft_connection *connection, uint64_t number, uint64_t length)
{
    const struct wf_frame frame = {.type = WF_DATA,
                                   .flags = WF_FLAG_TAGGED,
                                   .conn = CONNECTION,
                                   .msg = number,
                                   .key = TAG,
                                   .total = length,
                                   .length = (uint32_t)length};
    return wf_match_keep_whole(connection, &frame, content);
}

static void test_messages_that_come_whole(void **state)
{
    static const uint64_t lengths[] = {0, 1, SMALL, WF_BLOCK_BYTES, WF_BLOCK_BYTES + 1, 3 * WF_BLOCK_BYTES + 5};
    enum { COUNT = sizeof lengths / sizeof lengths[0] };
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, REQUESTS);
    for (uint64_t i = 0; i < COUNT; i++) {
        assert_true(keep_whole(connection, i + 1, lengths[i]));
        assert_int_equal(connection->next_match, i + 2);
        assert_int_equal(connection->highest, i + 1);
    }
    assert_int_equal(connection->inbounds, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        assert_got(receive(connection, 0, TAG), TAG, lengths[i]);
    assert_int_equal(connection->inbounds, 0);
    assert_int_equal(connection->finished_count, COUNT);
    assert_pool_is_free(scene, 9 * WF_BLOCK_BYTES);
}

/* Then the general way finds the same, and says what the peer did wrong. */
static void test_a_message_that_comes_whole_and_finds_no_room(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, REQUESTS);
    uint32_t all = wf_blocks_take(&scene->desk.blocks, SCENE_POOL);
    assert_int_not_equal(all, WF_NO_BLOCK);
    assert_false(keep_whole(connection, 1, SMALL));
    assert_int_equal(connection->next_match, 1);
    assert_int_equal(connection->inbounds, 0);
    wf_blocks_give(&scene->desk.blocks, all);
    assert_true(keep_whole(connection, 1, SMALL));
    assert_got(receive(connection, 0, TAG), TAG, SMALL);
}

/* A longer copy from the pool is made without the lock: a session that ends meanwhile waits for it, and what it ends
 * has another time than the batch that came before. */
static void test_the_copy_from_the_pool(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, REQUESTS);
    deliver(connection, 1, TAG, WF_BLOCK_BYTES + 1);
    wf_guard_enter(&scene->guard, WF_SESSION_FAILED);
    wf_guard_batch(&scene->guard, SCENE_START_NS - 5);
    struct weft_request *request = receive(connection, 0, TAG);
    assert_got(request, TAG, WF_BLOCK_BYTES + 1);
    assert_int_equal(scene->unheld, 1);
    assert_int_equal(scene->guard.holders, 0);
    assert_int_equal(request->completed_ns, SCENE_START_NS);
}

/* Its memory is the stream's until the work before it has been done. */
static void test_a_receive_that_waits_for_its_stream(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, REQUESTS);
    struct wf_turn turn = {.come = false};
    struct weft_request *request = wf_request_take(&scene->book, WF_REQUEST_RECV, &wf_receive_ops);
    request->connection = connection;
    request->buffer = buffers[0];
    request->length = LARGE;
    request->tag = TAG;
    request->turn = &turn;
    wf_match_receive(request);
    struct arrival arrival = begin(connection, 1, TAG, SMALL);
    assert_true(arrival.inbound->parked);
    assert_true(arrival.pooled);
    end(&arrival, 0, SMALL);
    assert_false(is_done(request));
    assert_int_equal(buffers[0][0], 0);
    request->turn = NULL; /* its end would need the device */
    wf_match_unpark(arrival.inbound);
    assert_got(request, TAG, SMALL);
}

/* --- notifications --- */

static void test_a_note_waits_for_the_end(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = connect_with_region(scene);
    struct weft_request *request = receive_note(connection, 0);
    struct arrival write = begin_write(connection, 1);
    notify(connection, 2, SMALL);
    wf_match_notes(&scene->desk);
    assert_false(is_done(request));
    assert_false(is_done(receive_note(connection, 1)));
    end(&write, 0, SMALL);
    assert_memory_equal(region, content, SMALL);
    assert_int_equal(write.inbound->state, WF_INBOUND_CONFIRMING); /* its number has ended, though the peer waits */
    assert_true(write.inbound->grant_due);
    wf_guard_take_stir(&scene->guard);
    wf_match_notes(&scene->desk);
    assert_got(request, 0, SMALL);
    assert_true(wf_guard_take_stir(&scene->guard));
    assert_int_equal(connection->pins, 0);
}

static void test_a_note_of_what_has_ended(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = connect_with_region(scene);
    struct weft_request *request = receive_note(connection, 0);
    write_region(connection, 1);
    notify(connection, 2, SMALL);
    assert_got(request, 0, SMALL); /* at once */
    write_region(connection, 3);
    notify(connection, 4, SMALL - 1);
    assert_got(receive_note(connection, 1), 0, SMALL - 1);
}

/* In the order in which their operations have ended, whatever their numbers. */
static void test_the_order_of_notes(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = connect_with_region(scene);
    struct weft_request *requests[2] = {receive_note(connection, 0), receive_note(connection, 1)};
    struct arrival first = begin_write(connection, 1);
    notify(connection, 2, 20);
    struct arrival second = begin_write(connection, 3);
    notify(connection, 4, 40);
    end(&second, 0, SMALL);
    wf_match_notes(&scene->desk);
    assert_got(requests[0], 0, 40);
    assert_false(is_done(requests[1]));
    end(&first, 0, SMALL);
    wf_match_notes(&scene->desk);
    assert_got(requests[1], 0, 20);
}

/* A notification that is due, and the receive that it is for, have not been joined yet: neither loses its place. */
static void test_places_of_what_is_due(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = connect_with_region(scene);
    struct weft_request *first = receive_note(connection, 0);
    struct arrival write = begin_write(connection, 1);
    notify(connection, 2, 20);
    end(&write, 0, SMALL);
    assert_false(is_done(first));
    struct weft_request *second = receive_note(connection, 1);
    assert_false(is_done(second));
    write_region(connection, 3);
    notify(connection, 4, 40);
    assert_false(is_done(first));
    wf_match_notes(&scene->desk);
    assert_got(first, 0, 20);
    assert_got(second, 0, 40);
}

static void test_notes_are_no_messages(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = connect_with_region(scene);
    struct weft_request *any = receive_any(connection, 0), *note = receive_note(connection, 1);
    deliver(connection, 1, TAG, SMALL);
    assert_got(any, TAG, SMALL);
    assert_false(is_done(note));
    any = receive_any(connection, 0);
    write_region(connection, 2);
    notify(connection, 3, SMALL - 1);
    assert_got(note, 0, SMALL - 1);
    assert_false(is_done(any));
}

static void test_a_note_of_what_was_refused(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = connect_with_region(scene);
    struct weft_request *request = receive_note(connection, 0);
    struct arrival write = begin_write(connection, 1);
    notify(connection, 2, SMALL);
    wf_inbound_refuse(write.inbound, -EACCES);
    assert_null(wf_inbound_find(connection, 2)); /* all of it was here */
    struct arrival other = begin_write(connection, 3);
    wf_inbound_refuse(other.inbound, -EACCES);
    struct wf_inbound *note = wf_inbound_find(connection, 4); /* what has not come is refused all the same */
    assert_non_null(note);
    assert_int_equal(note->state, WF_INBOUND_DRAINING);
    assert_int_equal(note->refuse_status, -EACCES);
    wf_match_notes(&scene->desk);
    assert_false(is_done(request));
    end(&write, 0, SMALL);
    end(&other, 0, SMALL);
    assert_false(is_done(request));
}

/* --- the end of a connection --- */

static void test_a_connection_that_closes(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, REQUESTS);
    connection->held = true;
    struct wf_inbound *unexpected = offer(connection, 1, OTHER_TAG, LARGE);
    deliver(connection, 2, OTHER_TAG, SMALL);
    struct weft_request *exact = receive(connection, 0, TAG), *note = receive_note(connection, 1);
    wf_connection_start_close(connection);
    assert_failed(exact, -ECANCELED);
    assert_failed(note, -ECANCELED);
    assert_int_equal(unexpected->state, WF_INBOUND_DRAINING);
    assert_int_equal(unexpected->refuse_status, -ESHUTDOWN);
    assert_true(unexpected->refuse_due);
    assert_null(wf_inbound_find(connection, 2)); /* its sender is done with it */
    assert_pool_is_free(scene, WF_BLOCK_BYTES);

    struct wf_inbound *late = offer(connection, 3, TAG, LARGE);
    assert_int_equal(late->state, WF_INBOUND_DRAINING);
    assert_int_equal(late->refuse_status, -ESHUTDOWN);
    assert_true(wf_list_empty(&connection->unexpected));
}

static void test_a_connection_that_the_peer_closes(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, REQUESTS);
    struct wf_frame close = {.type = WF_CLOSE, .conn = CONNECTION};
    connection->held = true;
    struct weft_request *matched = receive(connection, 0, TAG), *posted = receive(connection, 1, OTHER_TAG);
    struct arrival arrival = begin(connection, 1, TAG, SMALL);
    deliver(connection, 2, TAG, SMALL);
    assert_int_equal(wf_connection_take_close(&scene->desk, &close), 0);
    assert_failed(posted, -ESHUTDOWN);
    assert_false(is_done(matched)); /* the rest of it is on its way */
    end(&arrival, 0, SMALL);
    assert_got(matched, TAG, SMALL);
    assert_got(receive(connection, 2, TAG), TAG, SMALL);
    assert_failed(receive(connection, 3, TAG), -ESHUTDOWN);
}

/* The peer has gone, and what it had not sent entirely will not come. */
static void test_a_session_that_the_peer_ends(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, REQUESTS);
    struct arrival part = begin(connection, 1, TAG, LARGE);
    end(&part, 0, SMALL);
    deliver(connection, 2, OTHER_TAG, SMALL);
    scene->guard.peer_closing = true;
    assert_failed(receive(connection, 0, TAG), -ESHUTDOWN);
    assert_got(receive(connection, 1, OTHER_TAG), OTHER_TAG, SMALL);
    assert_failed(receive(connection, 2, OTHER_TAG), -ESHUTDOWN);
}

/* --- cancelling --- */

static void test_cancel_of_what_is_posted(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, REQUESTS);
    struct weft_request *requests[] = {receive(connection, 0, TAG), receive_any(connection, 1),
                                       receive_note(connection, 2)};
    for (int i = 0; i < 3; i++) {
        wf_request_cancel(requests[i], -ECANCELED);
        assert_failed(requests[i], -ECANCELED);
    }
    assert_null(wf_match_posted(connection, TAG));
    assert_true(wf_list_empty(&connection->posted_notes));
    deliver(connection, 1, TAG, SMALL);
    assert_int_equal(buffers[0][0], 0);
    assert_got(receive(connection, 3, TAG), TAG, SMALL); /* the message is not lost */
}

/* A channel may still write to its memory: it ends when that is over, and its sender is told to stop. */
static void test_cancel_of_what_is_matched(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, REQUESTS);
    struct weft_request *request = receive(connection, 0, TAG);
    struct wf_inbound *inbound = offer(connection, 1, TAG, LARGE);
    struct arrival arrival = claim(inbound);
    wf_request_cancel(request, -ETIMEDOUT);
    assert_false(is_done(request));
    assert_int_equal(inbound->state, WF_INBOUND_DRAINING);
    assert_int_equal(inbound->refuse_status, -ETIMEDOUT);
    assert_true(inbound->refuse_due);
    assert_false(inbound->grant_due);
    wf_request_cancel(request, -ECANCELED); /* the first reason counts */
    end(&arrival, 0, SMALL);
    assert_failed(request, -ETIMEDOUT);
    assert_int_equal(buffers[0][0], 0);
    assert_int_equal(connection->inbounds, 1); /* until its sender has said that it stops */
    inbound->refuse_due = false;
    inbound->refuse_sent = inbound->refuse_seen = true;
    wf_inbound_check(inbound);
    assert_int_equal(connection->inbounds, 0);
    assert_int_equal(connection->finished_count, 1);
}

#define IN_SCENE(test) cmocka_unit_test_setup_teardown(test, set_up, scene_tear_down_locked)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCENE(test_the_receive_that_was_posted_first),
        IN_SCENE(test_receives_are_used_once),
        IN_SCENE(test_messages_that_nobody_expected),
        IN_SCENE(test_neighbours_in_a_list),
        IN_SCENE(test_messages_wait_for_their_predecessors),
        IN_SCENE(test_predecessors_that_are_no_messages),
        IN_SCENE(test_too_large),
        IN_SCENE(test_too_large_for_those_posted),
        IN_SCENE(test_too_large_a_note),
        IN_SCENE(test_a_match_asks_for_the_rest),
        IN_SCENE(test_a_receive_during_the_payload),
        IN_SCENE(test_is_here),
        IN_SCENE(test_the_short_copy_from_the_pool),
        IN_SCENE(test_messages_that_come_whole),
        IN_SCENE(test_a_message_that_comes_whole_and_finds_no_room),
        IN_SCENE(test_the_copy_from_the_pool),
        IN_SCENE(test_a_receive_that_waits_for_its_stream),
        IN_SCENE(test_a_note_waits_for_the_end),
        IN_SCENE(test_a_note_of_what_has_ended),
        IN_SCENE(test_the_order_of_notes),
        IN_SCENE(test_places_of_what_is_due),
        IN_SCENE(test_notes_are_no_messages),
        IN_SCENE(test_a_note_of_what_was_refused),
        IN_SCENE(test_a_connection_that_closes),
        IN_SCENE(test_a_connection_that_the_peer_closes),
        IN_SCENE(test_a_session_that_the_peer_ends),
        IN_SCENE(test_cancel_of_what_is_posted),
        IN_SCENE(test_cancel_of_what_is_matched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
