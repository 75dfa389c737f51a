/*
 * A slow rail is not a dead one: where channels are encrypted nothing of a record is told before all of it is there,
 * and that may take longer than a rail may be silent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/rail/address.h"
#include "core/session/session.h"
#include "scene.h"

#define SEEDS 8
#define BYTES (1024 * 1024)
#define PIECE 4096    /* that a stream holds: little of a record, */
#define RATE 500000   /* at so many bytes a second: a record takes 130 ms and a piece of it 8 ms, */
#define PATIENCE "50" /* and a rail may be silent for so many of them */

static struct scene scene;

static void open_scene(uint64_t seed, const char *encryption)
{
    static const char *const friends[] = {"127.0.2.1:0", "127.0.2.2:0"};
    char host[900], other[950];
    struct wf_status status;
    snprintf(host, sizeof host, "chunk=64K call=64K window=4 rail_timeout_ms=" PATIENCE " %s", encryption);
    snprintf(other, sizeof other, "rails=127.0.2.1,127.0.2.2 %s", host);
    scene_open(&scene, &(struct scene_options){
                           .seed = seed, .settings = host, .friend_settings = other, .stream_bytes = PIECE});
    for (int i = 0; i < 2; i++) {
        struct sockaddr_storage rail;
        assert_int_equal(wf_address_parse(friends[i], 0, false, &rail, &status), 0);
        wf_sim_set_rail(scene.sim, &rail, &(struct wf_sim_rail){.bytes_per_second = RATE});
    }
}

/* Channels that a side has lost. */
static uint64_t losses(int side)
{
    const struct wf_session *session = scene.peers[side]->session;
    uint64_t count = 0;
    for (int i = 0; i < session->lines.rail_count; i++)
        count += atomic_load(&session->lines.rails[i].failures);
    return count;
}

static struct wf_channel *bulk_channel(int side)
{
    const struct wf_session *session = scene.peers[side]->session;
    int i = 0;
    while (session->lines.channels[i]->kind != WF_CHANNEL_BULK)
        i++;
    return session->lines.channels[i];
}

/* In the middle of it: what was lost waits for the channel when it is joined again, and goes with the answer to the
 * question whether it is heard. */
static void cut_one(void)
{
    const struct wf_channel *channel = bulk_channel(SCENE_HOST);
    while (atomic_load(&channel->heard) < BYTES / 8)
        scene_turn(&scene);
    wf_sim_cut(scene.sim, channel->fd);
    while (channel->incarnation < 2 || !channel->up)
        scene_turn(&scene);
}

static void stays_up(uint64_t seed, const char *encryption)
{
    uint8_t *source = calloc(1, BYTES), *sink = calloc(1, BYTES);
    struct weft_request *send, *receive;
    struct weft_completion completion;
    open_scene(seed, encryption);
    assert_int_equal(weft_recv(scene.connections[SCENE_HOST], sink, BYTES, 1, NULL, &receive), 0);
    assert_int_equal(weft_send(scene.connections[SCENE_FRIEND], source, BYTES, 1, NULL, &send), 0);
    cut_one();
    assert_int_equal(weft_wait(receive, 20000, &completion), 0);
    assert_int_equal(completion.status, 0);
    assert_int_equal(weft_wait(send, 20000, &completion), 0);
    assert_int_equal(completion.status, 0);
    assert_int_equal(losses(SCENE_HOST), 1);
    assert_int_equal(losses(SCENE_FRIEND), 1);
    scene_close(&scene);
    free(source);
    free(sink);
}

static void a_slow_rail_stays_up(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        stays_up(seed, "");
}

static void an_encrypted_one_does_too(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        stays_up(seed, "encrypt=on key_file=" KEY_FILE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_rail_stays_up),
        cmocka_unit_test(an_encrypted_one_does_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
