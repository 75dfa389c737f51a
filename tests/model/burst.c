/*
 * What of a message goes unasked: all of it behind others, if the peer takes an announcement, which what is posted
 * later does not overtake; else all of a burst where nothing stands before it; and never so much that nothing is left
 * of the credit that others need, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/session/session.h"
#include "scene.h"

#define LITTLE (64 * 1024)
#define LARGE (256 * 1024)
#define LARGER (2 * 1024 * 1024)
#define SMALL 8
#define CREDIT (1024 * 1024)
#define SENDS 16

static struct scene scene;
static uint8_t *bytes;
static struct weft_request *sends[SENDS];
static size_t lengths[SENDS];
static int sent;
static unsigned taken; /* a bit for each that a test has received */

static void open_scene(void)
{
    static const char settings[] = "chunk=256K first_burst=256K unexpected=1M window=16";
    bytes = malloc(LARGER);
    for (uint32_t at = 0; at < LARGER; at++)
        bytes[at] = (uint8_t)(at * 2654435761u >> 24);
    sent = 0;
    taken = 0;
    scene_open(&scene, &(struct scene_options){.seed = 1, .settings = settings, .friend_settings = settings});
}

static struct wf_session *sender(void)
{
    return scene.peers[SCENE_FRIEND]->session;
}

static uint64_t spent(void)
{
    return sender()->desk.unsolicited_spent;
}

static void post(size_t length)
{
    assert_true(sent < SENDS);
    assert_int_equal(weft_send(scene.connections[SCENE_FRIEND], bytes, length, (uint64_t)sent, NULL, &sends[sent]), 0);
    lengths[sent++] = length;
}

/* Until whatever is under way has been taken. */
static void settle(void)
{
    scene_pass(&scene, WF_NS_PER_MS);
    while (sender()->desk.waiting[0] > 0 || sender()->desk.bulk_frames[0] > 0)
        scene_turn(&scene);
}

static void receive(struct weft_request *request, size_t length)
{
    struct weft_completion completion;
    assert_int_equal(weft_wait(request, 20000, &completion), 0);
    assert_int_equal(completion.status, 0);
    assert_int_equal(completion.bytes, length);
}

/* Everything that was sent is received, and found whole. */
static void finish(void)
{
    uint8_t *got = malloc(LARGER);
    for (int i = 0; i < sent; i++) {
        struct weft_request *request;
        struct weft_completion completion;
        if (!(taken >> i & 1)) {
            memset(got, 0xee, LARGER);
            assert_int_equal(weft_recv(scene.connections[SCENE_HOST], got, LARGER, (uint64_t)i, NULL, &request), 0);
            receive(request, lengths[i]);
            assert_memory_equal(got, bytes, lengths[i]);
        }
        assert_int_equal(weft_wait(sends[i], 20000, &completion), 0);
        assert_int_equal(completion.status, 0);
    }
    free(got);
    scene_close(&scene);
    free(bytes);
}

static void a_message_goes_whole_behind_others(void **state)
{
    (void)state;
    open_scene();
    uint64_t before = spent();
    post(LARGE);
    post(LARGE);
    settle();
    assert_int_equal(spent() - before, 2 * LARGE);
    finish();
}

static void part_of_a_message_does_not(void **state)
{
    (void)state;
    open_scene();
    uint64_t before = spent();
    post(LARGE);
    post(LARGER); /* of this one the first burst could go */
    settle();
    assert_int_equal(spent() - before, LARGE);
    post(LARGER);
    settle();
    assert_int_equal(spent() - before, 2 * LARGE);
    finish();
}

/* The small message is received while the second large one is still coming, for the third one was announced: a channel
 * has taken both at once. */
static void what_is_posted_later_is_received_before(void **state)
{
    (void)state;
    enum { SECOND = 1, SMALL_ONE = 3 };
    struct weft_request *second, *small;
    uint8_t got[SMALL], *large = malloc(LARGE);
    open_scene();
    for (int i = 0; i < SMALL_ONE; i++)
        post(LARGE);
    while (sender()->desk.in_line[0] > 0)
        scene_turn(&scene);
    post(SMALL);
    assert_int_equal(weft_recv(scene.connections[SCENE_HOST], large, LARGE, SECOND, NULL, &second), 0);
    assert_int_equal(weft_recv(scene.connections[SCENE_HOST], got, SMALL, SMALL_ONE, NULL, &small), 0);
    receive(small, SMALL);
    assert_memory_equal(got, bytes, SMALL);
    assert_int_equal(weft_test(second, NULL), 0);
    receive(second, LARGE);
    assert_memory_equal(large, bytes, LARGE);
    taken = 1u << SECOND | 1u << SMALL_ONE;
    free(large);
    finish();
}

/* All of the larger one was asked for, and most of it has not been sent. */
static void a_chunk_does_not_wait_behind_a_larger_message(void **state)
{
    (void)state;
    enum { FIRST, SECOND };
    struct weft_request *first, *second;
    uint8_t *large = malloc(LARGE), *larger = malloc(LARGER);
    open_scene();
    assert_int_equal(weft_recv(scene.connections[SCENE_HOST], larger, LARGER, FIRST, NULL, &first), 0);
    assert_int_equal(weft_recv(scene.connections[SCENE_HOST], large, LARGE, SECOND, NULL, &second), 0);
    post(LARGER);
    while (sender()->desk.waiting[0] == 0)
        scene_turn(&scene);
    post(LARGE);
    receive(second, LARGE);
    assert_memory_equal(large, bytes, LARGE);
    assert_int_equal(weft_test(first, NULL), 0);
    receive(first, LARGER);
    assert_memory_equal(larger, bytes, LARGER);
    taken = 1u << FIRST | 1u << SECOND;
    free(large);
    free(larger);
    finish();
}

static void a_burst_goes_alone_to_an_old_peer(void **state)
{
    (void)state;
    open_scene();
    sender()->terms.features &= ~(uint64_t)WF_FEATURE_ANNOUNCE;
    uint64_t before = spent();
    post(LARGE);
    post(LARGE); /* behind it: offered, so that what follows need not wait for the first one's bytes */
    post(LITTLE);
    settle();
    assert_int_equal(spent() - before, LARGE + LITTLE);
    post(LARGE);
    settle();
    assert_int_equal(spent() - before, 2 * LARGE + LITTLE);
    finish();
}

static void a_burst_leaves_as_much_as_it_takes(void **state)
{
    (void)state;
    open_scene();
    uint64_t before = spent();
    for (int i = 0; i < 4; i++) {
        post(LARGE);
        settle();
    }
    assert_int_equal(spent() - before, CREDIT - LARGE); /* of the last half of it nothing, */
    for (int i = 0; i < 5; i++) {
        post(LITTLE);
        settle();
    }
    assert_int_equal(spent() - before, CREDIT); /* but for small ones all that there is */
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_goes_whole_behind_others),
        cmocka_unit_test(part_of_a_message_does_not),
        cmocka_unit_test(what_is_posted_later_is_received_before),
        cmocka_unit_test(a_chunk_does_not_wait_behind_a_larger_message),
        cmocka_unit_test(a_burst_goes_alone_to_an_old_peer),
        cmocka_unit_test(a_burst_leaves_as_much_as_it_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
