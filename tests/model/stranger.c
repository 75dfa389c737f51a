/* A stranger who knows the protocol talks to a listening context on the simulated network, at the worst moments. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/door.h"
#include "core/session.h"
#include "sim.h"
#include "wire/seal.h"

/* The host under attack, and the stranger's own engine. */
struct scene {
    struct wf_sim *sim;
    struct weft_context *host;
    struct wf_engine *engine;
    struct sockaddr_storage address;
};

static void open_scene(struct scene *scene)
{
    static struct wf_config config; /* large */
    struct wf_status status;
    scene->sim = wf_sim_create(
        &(struct wf_sim_options){.seed = 7, .buffer_min = 4096, .short_percent = 101, .lag_percent = 101});
    struct wf_environment environment = {.engine = &wf_engine_sim,
                                         .engine_host = scene->sim,
                                         .clock = wf_sim_clock(scene->sim),
                                         .seed = 7,
                                         .manual = true};
    wf_config_init(&config);
    assert_int_equal(wf_config_set(&config, WF_SET_RAILS, "127.0.1.1", WF_ORIGIN_COMMAND, "test", &status), 0);
    assert_int_equal(wf_config_set(&config, WF_SET_LOG, "error", WF_ORIGIN_COMMAND, "test", &status), 0);
    assert_int_equal(wf_config_set(&config, WF_SET_CONNECT_TIMEOUT, "5", WF_ORIGIN_COMMAND, "test", &status), 0);
    assert_int_equal(wf_context_create(&config, &environment, &scene->host, &status), 0);
    assert_int_equal(wf_address_parse("127.0.0.1:5000", 0, true, &scene->address, &status), 0);
    assert_int_equal(wf_door_listen(scene->host->door, &scene->address, &status), 0);
    struct wf_engine_limits limits = {.call_bytes = 65536};
    assert_int_equal(wf_engine_sim.open(scene->sim, &limits, &scene->engine, &status), 0);
}

static void close_scene(struct scene *scene)
{
    wf_engine_sim.close(scene->engine);
    weft_context_destroy(scene->host);
    wf_sim_destroy(scene->sim);
}

/* Lets the host and the network go on for `ns`. */
static void pass(struct scene *scene, int64_t ns)
{
    for (int64_t until = wf_sim_now(scene->sim) + ns; wf_sim_now(scene->sim) < until;) {
        for (int i = 0; i < 4; i++) {
            wf_door_drive(scene->host->door, 0);
            wf_worker_drive(scene->host->workers[0], 0);
        }
        wf_sim_advance(scene->sim, wf_sim_now(scene->sim) + 10 * WF_NS_PER_MS);
    }
}

static int64_t finish(struct scene *scene, struct wf_op *op)
{
    struct wf_op *done[1];
    scene->engine->ops->post(scene->engine, op);
    for (int turn = 0; turn < 1000; turn++) {
        if (scene->engine->ops->poll(scene->engine, done, 1, 0) == 1)
            return op->result;
        pass(scene, 10 * WF_NS_PER_MS);
    }
    fail_msg("the host does not answer");
    return 0;
}

static int call(struct scene *scene)
{
    struct wf_op op = {.kind = WF_OP_CONNECT, .address = &scene->address};
    wf_link_init(&op.link);
    op.fd = wf_engine_sim.socket(scene->sim, AF_INET, &(struct wf_socket_options){0}, NULL);
    assert_true(op.fd >= 0);
    assert_int_equal(scene->engine->ops->attach(scene->engine, op.fd), 0);
    assert_int_equal(finish(scene, &op), 0);
    return op.fd;
}

static void hang_up(struct scene *scene, int fd)
{
    scene->engine->ops->detach(scene->engine, fd);
    wf_engine_sim.close_fd(scene->sim, fd);
}

static void say(struct scene *scene, int fd, const struct wf_setup *setup)
{
    uint8_t bytes[WF_SETUP_MAX];
    int length = wf_setup_encode(setup, bytes, sizeof bytes);
    struct iovec iov = {bytes, (size_t)length};
    struct wf_op op = {.kind = WF_OP_SEND, .fd = fd, .iov = &iov, .iov_count = 1};
    wf_link_init(&op.link);
    assert_int_equal(finish(scene, &op), length);
}

static void hear(struct scene *scene, int fd, struct wf_setup *setup)
{
    uint8_t bytes[WF_SETUP_MAX];
    size_t have = 0, need = WF_SETUP_PREFIX;
    while (have < need) {
        struct iovec iov = {bytes + have, need - have};
        struct wf_op op = {.kind = WF_OP_RECV, .fd = fd, .iov = &iov, .iov_count = 1};
        wf_link_init(&op.link);
        int64_t got = finish(scene, &op);
        assert_true(got > 0);
        have += (size_t)got;
        if (have == WF_SETUP_PREFIX)
            need = (size_t)wf_setup_length(bytes);
    }
    assert_int_equal(wf_setup_decode(bytes, have, setup), 0);
}

/* HELLO like any peer; fills what the host answers. */
static void introduce(struct scene *scene, struct wf_hello *answer)
{
    struct wf_setup setup = {.type = WF_SETUP_HELLO};
    int fd = call(scene);
    wf_session_hello(scene->host, &setup.hello);
    say(scene, fd, &setup);
    hear(scene, fd, &setup);
    assert_int_equal(setup.type, WF_SETUP_HELLO);
    *answer = setup.hello;
    hang_up(scene, fd);
}

/* JOIN of channel 0 of `channels`, up to the host's CHALLENGE. */
static int join(struct scene *scene, const struct wf_hello *hello, uint16_t channels, struct wf_setup *proof)
{
    struct wf_setup setup = {.type = WF_SETUP_JOIN};
    int fd = call(scene);
    setup.join = (struct wf_join){.session = hello->session,
                                  .incarnation = 1,
                                  .channels = channels,
                                  .kind = WF_CHANNEL_EXPRESS,
                                  .granted_frames = 64,
                                  .granted_bytes = 1 << 20};
    struct wf_join sent = setup.join;
    say(scene, fd, &setup);
    hear(scene, fd, &setup);
    assert_int_equal(setup.type, WF_SETUP_CHALLENGE);
    *proof = (struct wf_setup){.type = WF_SETUP_PROOF};
    assert_int_equal(wf_seal_prove(hello->secret, WF_ROLE_DIALER, &sent, setup.challenge.nonce, proof->proof.proof), 0);
    return fd;
}

/* The session's patience ends between CHALLENGE and PROOF: nothing of it may be touched by the PROOF. */
static void proof_after_the_end(void **state)
{
    (void)state;
    struct scene scene;
    struct wf_hello hello;
    struct wf_setup proof;
    open_scene(&scene);
    introduce(&scene, &hello);
    pass(&scene, 4 * WF_NS_PER_S);
    int fd = join(&scene, &hello, 2, &proof);
    pass(&scene, 2 * WF_NS_PER_S);
    assert_int_equal(scene.host->session_count, 0);
    say(&scene, fd, &proof);
    pass(&scene, WF_NS_PER_S);
    assert_int_equal(scene.host->session_count, 0);
    hang_up(&scene, fd);
    close_scene(&scene);
}

/* Complete sessions that go before anybody accepts them leave nothing behind. */
static void come_and_go(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    int before = wf_sim_open_descriptors(scene.sim);
    for (int round = 0; round < 20; round++) {
        struct wf_hello hello;
        struct wf_setup proof;
        introduce(&scene, &hello);
        int fd = join(&scene, &hello, 1, &proof);
        say(&scene, fd, &proof);
        pass(&scene, WF_NS_PER_S / 10);
        assert_int_equal(scene.host->session_count, 1);
        hang_up(&scene, fd);
        pass(&scene, 3 * WF_NS_PER_S); /* it might have come back: rail_timeout_ms */
        assert_int_equal(scene.host->session_count, 0);
    }
    assert_int_equal(wf_sim_open_descriptors(scene.sim), before);
    close_scene(&scene);
}

/* A wrong proof, or one for another role, lets nobody in. */
static void wrong_proofs(void **state)
{
    (void)state;
    struct scene scene;
    struct wf_hello hello;
    open_scene(&scene);
    introduce(&scene, &hello);
    for (int bit = 0; bit < 8; bit++) {
        struct wf_setup proof;
        int fd = join(&scene, &hello, 1, &proof);
        proof.proof.proof[bit * 4] ^= (uint8_t)(1 << bit);
        say(&scene, fd, &proof);
        struct wf_setup answer;
        hear(&scene, fd, &answer);
        assert_int_equal(answer.type, WF_SETUP_DENY);
        assert_int_equal(answer.deny.reason, WF_DENY_PROOF);
        hang_up(&scene, fd);
    }
    pass(&scene, 6 * WF_NS_PER_S);
    assert_int_equal(scene.host->session_count, 0);
    close_scene(&scene);
}

/* --- a peer that lies --- */

#define REGION 4096

/* Frames after a good handshake: the first `count` of `frames`, then 64 bytes of payload. */
struct lie {
    const char *what;
    int count;
    struct wf_frame frames[3];
};

#define OPENING                                                                                                        \
    {                                                                                                                  \
        .type = WF_OPEN, .conn = 1, .offset = 1024                                                                     \
    }
#define FAR (3 * 65536)

/* What they say of the region is right: key 0 stands for its key. */
static const struct lie lies[] = {
    {"bytes for a READ, far outside of what it may read",
     3,
     {OPENING,
      {.type = WF_READ, .conn = 1, .msg = 1, .total = 100},
      {.type = WF_DATA, .flags = WF_FLAG_TAGGED, .conn = 1, .msg = 1, .offset = FAR, .total = FAR + 64, .length = 64}}},
    {"a size that nothing has",
     2,
     {OPENING, {.type = WF_OFFER, .flags = WF_FLAG_TAGGED, .conn = 1, .msg = 1, .total = UINT64_MAX}}},
    {"a write that grows",
     3,
     {OPENING,
      {.type = WF_DATA, .flags = WF_FLAG_WRITE, .conn = 1, .msg = 1, .total = 1, .length = 0, .base = 0},
      {.type = WF_DATA, .flags = WF_FLAG_WRITE, .conn = 1, .msg = 1, .offset = FAR, .total = FAR + 64, .length = 64}}},
    {"a reply that nobody asked for",
     2,
     {OPENING,
      {.type = WF_DATA, .flags = WF_FLAG_READ_REPLY | WF_FLAG_PEER, .conn = 1, .msg = 1, .total = 64, .length = 64}}},
    {"a notification of what comes later",
     2,
     {OPENING, {.type = WF_DATA, .flags = WF_FLAG_NOTIFY, .conn = 1, .msg = 1, .base = 1, .total = 64, .length = 64}}},
    {"a list of pieces and a half",
     2,
     {OPENING, {.type = WF_DATA, .flags = WF_FLAG_LIST, .conn = 1, .msg = 1, .total = 36, .length = 36}}},
    {"a grant for what was never sent",
     2,
     {OPENING, {.type = WF_GRANT, .flags = WF_FLAG_PEER, .conn = 1, .msg = 1, .offset = 64}}},
    {"a READ beyond the limit of introductions",
     2,
     {OPENING, {.type = WF_READ, .conn = 1, .msg = 1 << 20, .total = 100}}},
};

static void tell(struct scene *scene, int fd, const struct lie *lie, uint64_t key)
{
    uint8_t bytes[3 * WF_FRAME_BYTES + 64];
    for (int i = 0; i < lie->count; i++) {
        struct wf_frame frame = lie->frames[i];
        frame.data_off = WF_FRAME_BYTES;
        if (frame.type == WF_READ || frame.flags & WF_FLAG_WRITE)
            frame.key = key;
        wf_frame_encode(&frame, bytes + i * WF_FRAME_BYTES);
    }
    size_t length = (size_t)lie->count * WF_FRAME_BYTES + 64;
    memset(bytes + length - 64, 0xEE, 64);
    struct iovec iov = {bytes, length};
    struct wf_op op = {.kind = WF_OP_SEND, .fd = fd, .iov = &iov, .iov_count = 1};
    wf_link_init(&op.link);
    assert_int_equal(finish(scene, &op), length);
}

/* Each ends the session, and none writes a byte that it may not. */
static void lies_end_the_session(void **state)
{
    (void)state;
    static uint8_t memory[FAR + 65536];
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct scene scene;
        struct wf_hello hello;
        struct wf_setup proof;
        struct weft_endpoint *endpoint;
        struct weft_registration *registration;
        struct weft_peer *peer;
        print_message("%s\n", lies[i].what);
        open_scene(&scene);
        assert_int_equal(weft_endpoint_create(scene.host, 0, &endpoint, NULL), 0);
        assert_int_equal(weft_register(scene.host, memory, REGION, &registration, NULL), 0);
        introduce(&scene, &hello);
        int fd = join(&scene, &hello, 1, &proof);
        say(&scene, fd, &proof);
        pass(&scene, WF_NS_PER_S / 10);
        assert_int_equal(weft_accept(scene.host, 0, &peer, NULL), 0);
        assert_int_equal(weft_peer_status(peer, NULL), 0);
        tell(&scene, fd, &lies[i], weft_registration_key(registration));
        pass(&scene, WF_NS_PER_S / 10);
        assert_int_equal(weft_peer_status(peer, NULL), -EPROTO);
        for (size_t at = 0; at < sizeof memory; at++)
            assert_int_equal(memory[at], 0);
        hang_up(&scene, fd);
        weft_deregister(registration);
        weft_peer_close(peer, 0, NULL);
        close_scene(&scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lies_end_the_session),
        cmocka_unit_test(proof_after_the_end),
        cmocka_unit_test(come_and_go),
        cmocka_unit_test(wrong_proofs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
