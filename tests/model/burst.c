/*
 * What of a message goes unasked: all of a burst where nothing stands before it, no more than a little beside others,
 * and never so much that nothing is left of the credit that others need, too.
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
#define CREDIT (1024 * 1024)
#define SENDS 16

static struct scene scene;
static uint8_t *bytes;
static struct weft_request *sends[SENDS];
static size_t lengths[SENDS];
static int sent;

static void open_scene(void)
{
    static const char settings[] = "chunk=64K first_burst=256K unexpected=1M";
    bytes = malloc(LARGE);
    for (uint32_t at = 0; at < LARGE; at++)
        bytes[at] = (uint8_t)(at * 2654435761u >> 24);
    sent = 0;
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

/* Everything that was sent is received, and found whole. */
static void finish(void)
{
    uint8_t *got = malloc(LARGE);
    for (int i = 0; i < sent; i++) {
        struct weft_request *receive;
        struct weft_completion received, completion;
        memset(got, 0xee, LARGE);
        assert_int_equal(weft_recv(scene.connections[SCENE_HOST], got, LARGE, (uint64_t)i, NULL, &receive), 0);
        assert_int_equal(weft_wait(receive, 20000, &received), 0);
        assert_int_equal(received.status, 0);
        assert_int_equal(received.bytes, lengths[i]);
        assert_memory_equal(got, bytes, lengths[i]);
        assert_int_equal(weft_wait(sends[i], 20000, &completion), 0);
        assert_int_equal(completion.status, 0);
    }
    free(got);
    scene_close(&scene);
    free(bytes);
}

static void a_burst_goes_alone(void **state)
{
    (void)state;
    open_scene();
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
        cmocka_unit_test(a_burst_goes_alone),
        cmocka_unit_test(a_burst_leaves_as_much_as_it_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
