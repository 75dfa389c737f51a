/* Somebody who knows the protocol, on the simulated network: see stranger.h. */
#include "core/calls/context.h"
#include "core/rail/address.h"
#include "stranger.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void open_scene(struct scene *scene, const char *key_file)
{
    open_scene_with(scene, key_file, false, NULL);
}

static void open_host(struct scene *scene, const char *key_file, bool device, const struct wf_sim_cards_options *cards,
                      const char *setting);

void open_scene_with(struct scene *scene, const char *key_file, bool device, const char *setting)
{
    open_host(scene, key_file, device, NULL, setting);
}

void open_scene_with_cards(struct scene *scene, uint32_t host_percent)
{
    const struct wf_sim_cards_options cards = {.buffers = 64, .buffer_bytes = 4096, .host_percent = host_percent};
    open_host(scene, NULL, true, &cards, "crc=off");
}

static void open_host(struct scene *scene, const char *key_file, bool device, const struct wf_sim_cards_options *cards,
                      const char *setting)
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
    scene->memory = device ? wf_sim_memory_create(&(struct wf_sim_memory_options){.seed = 7, .devices = 1}) : NULL;
    if (device) {
        assert_non_null(scene->memory);
        wf_sim_memory_join(scene->memory, scene->sim);
        environment.memory = &wf_memory_sim;
        environment.memory_host = scene->memory;
    }
    scene->cards = cards ? wf_sim_cards_create(scene->sim, scene->memory, cards) : NULL;
    if (cards) {
        assert_non_null(scene->cards);
        environment.cards = &wf_cards_sim;
        environment.cards_host = scene->cards;
    }
    wf_config_init(&config);
    assert_int_equal(
        wf_config_set(&config, WF_SET_RAILS, cards ? "127.0.0.1" : "127.0.1.1", WF_ORIGIN_COMMAND, "test", &status), 0);
    assert_int_equal(wf_config_set(&config, WF_SET_LOG, "error", WF_ORIGIN_COMMAND, "test", &status), 0);
    assert_int_equal(wf_config_set(&config, WF_SET_CONNECT_TIMEOUT, "5", WF_ORIGIN_COMMAND, "test", &status), 0);
    if (setting) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(setting, "="), setting);
        int id = wf_setting_find(name, &status);
        assert_true(id >= 0);
        assert_int_equal(wf_config_set(&config, (enum wf_setting_id)id, strchr(setting, '=') + 1, WF_ORIGIN_COMMAND,
                                       "test", &status),
                         0);
    }
    if (key_file)
        assert_int_equal(wf_config_set(&config, WF_SET_KEY_FILE, key_file, WF_ORIGIN_COMMAND, "test", &status), 0);
    assert_int_equal(wf_context_create(&config, &environment, &scene->host, &status), 0);
    assert_int_equal(wf_address_parse("127.0.0.1:5000", 0, true, &scene->address, &status), 0);
    assert_int_equal(wf_door_listen(scene->host->door, &scene->address, &status), 0);
    struct wf_engine_limits limits = {.call_bytes = 65536};
    assert_int_equal(wf_engine_sim.open(scene->sim, &limits, &scene->engine, &status), 0);
}

void close_scene(struct scene *scene)
{
    wf_engine_sim.close(scene->engine);
    weft_context_destroy(scene->host);
    wf_sim_cards_destroy(scene->cards);
    if (scene->memory) {
        wf_sim_memory_join(scene->memory, NULL);
        wf_sim_memory_destroy(scene->memory);
    }
    wf_sim_destroy(scene->sim);
}

/* Lets the host and the network go on for `ns`. */
void pass(struct scene *scene, int64_t ns)
{
    for (int64_t until = wf_sim_now(scene->sim) + ns; wf_sim_now(scene->sim) < until;) {
        for (int i = 0; i < 4; i++) {
            wf_door_drive(scene->host->door, 0);
            wf_worker_drive(scene->host->crew.workers[0], 0);
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

int call(struct scene *scene)
{
    struct wf_op op = {.kind = WF_OP_CONNECT, .address = &scene->address};
    wf_link_init(&op.link);
    op.fd = wf_engine_sim.socket(scene->sim, AF_INET, &(struct wf_socket_options){0}, NULL);
    assert_true(op.fd >= 0);
    assert_int_equal(scene->engine->ops->attach(scene->engine, op.fd), 0);
    assert_int_equal(finish(scene, &op), 0);
    return op.fd;
}

int listen_here(struct scene *scene)
{
    struct wf_socket_options options = {0};
    struct wf_status status;
    assert_int_equal(wf_address_parse(STRANGER_ADDRESS, 0, true, &options.local, &status), 0);
    int listener = wf_engine_sim.listen(scene->sim, &options, 8);
    assert_true(listener >= 0);
    assert_int_equal(scene->engine->ops->attach(scene->engine, listener), 0);
    return listener;
}

int take_call(struct scene *scene, int listener)
{
    struct wf_engine *engine = scene->engine;
    struct wf_op op = {.kind = WF_OP_ACCEPT, .fd = listener}, *done[1];
    wf_link_init(&op.link);
    engine->ops->post(engine, &op);
    for (int turn = 0; engine->ops->poll(engine, done, 1, 0) == 0; turn++) {
        assert_in_range(turn, 0, 1000);
        pass(scene, 10 * WF_NS_PER_MS);
    }
    assert_true(op.result >= 0);
    assert_int_equal(engine->ops->attach(engine, (int)op.result), 0);
    return (int)op.result;
}

void hang_up(struct scene *scene, int fd)
{
    scene->engine->ops->detach(scene->engine, fd);
    wf_engine_sim.close_fd(scene->sim, fd);
}

void send_bytes(struct scene *scene, int fd, const void *bytes, size_t length)
{
    struct iovec iov = {(void *)bytes, length};
    struct wf_op op = {.kind = WF_OP_SEND, .fd = fd, .iov = &iov, .iov_count = 1};
    wf_link_init(&op.link);
    assert_int_equal(finish(scene, &op), length);
}

size_t receive_bytes(struct scene *scene, int fd, void *bytes, size_t room)
{
    struct iovec iov = {bytes, room};
    struct wf_op op = {.kind = WF_OP_RECV, .fd = fd, .iov = &iov, .iov_count = 1};
    wf_link_init(&op.link);
    int64_t got = finish(scene, &op);
    return got > 0 ? (size_t)got : 0;
}

void say(struct scene *scene, int fd, const struct wf_setup *setup)
{
    uint8_t bytes[WF_SETUP_MAX];
    int length = wf_setup_encode(setup, bytes, sizeof bytes);
    assert_true(length > 0);
    send_bytes(scene, fd, bytes, (size_t)length);
}

void hear(struct scene *scene, int fd, struct wf_setup *setup)
{
    uint8_t bytes[WF_SETUP_MAX];
    size_t have = 0, need = WF_SETUP_PREFIX;
    while (have < need) {
        size_t got = receive_bytes(scene, fd, bytes + have, need - have);
        assert_true(got > 0);
        have += got;
        if (have == WF_SETUP_PREFIX)
            need = (size_t)wf_setup_length(bytes);
    }
    assert_int_equal(wf_setup_decode(bytes, have, setup), 0);
}

/* HELLO and GREETING like any peer; fills what the host answers. */
void introduce(struct scene *scene, struct wf_hello *answer)
{
    introduce_without(scene, 0, answer);
}

void introduce_without(struct scene *scene, uint64_t features, struct wf_hello *answer)
{
    struct wf_setup setup = {.type = WF_SETUP_HELLO};
    int fd = call(scene);
    wf_session_hello(&scene->host->sessions, NULL, &setup.hello);
    setup.hello.features &= ~features;
    say(scene, fd, &setup);
    hear(scene, fd, &setup);
    assert_int_equal(setup.type, WF_SETUP_HELLO);
    *answer = setup.hello;
    greet(scene, fd);
    hang_up(scene, fd);
}

void greet(struct scene *scene, int fd)
{
    struct wf_setup setup = {.type = WF_SETUP_GREETING, .greeting = {.length = 8, .bytes = "stranger"}};
    say(scene, fd, &setup);
    hear(scene, fd, &setup);
    assert_int_equal(setup.type, WF_SETUP_GREETING);
}

/* JOIN of channel 0 of `channels`, up to the host's CHALLENGE. */
int join(struct scene *scene, const struct wf_hello *hello, uint16_t channels, struct wf_setup *proof)
{
    return join_as(scene, hello, channels, 1, proof);
}

int join_as(struct scene *scene, const struct wf_hello *hello, uint16_t channels, uint32_t incarnation,
            struct wf_setup *proof)
{
    struct wf_setup setup = {.type = WF_SETUP_JOIN};
    int fd = call(scene);
    setup.join = (struct wf_join){.session = hello->session,
                                  .incarnation = incarnation,
                                  .channels = channels,
                                  .kind = WF_CHANNEL_EXPRESS,
                                  .granted_frames = 64,
                                  .granted_bytes = 1 << 20};
    struct wf_join sent = setup.join;
    say(scene, fd, &setup);
    hear(scene, fd, &setup);
    assert_int_equal(setup.type, WF_SETUP_CHALLENGE);
    *proof = (struct wf_setup){.type = WF_SETUP_PROOF};
    assert_int_equal(wf_seal_prove(hello->secret, WF_ROLE_DIALER, &sent, &setup.challenge, proof->proof.proof), 0);
    return fd;
}

int come_in(struct scene *scene, struct weft_peer **peer)
{
    struct wf_hello hello;
    struct wf_setup proof;
    introduce(scene, &hello);
    int fd = join(scene, &hello, 1, &proof);
    say(scene, fd, &proof);
    pass(scene, WF_NS_PER_S / 10);
    assert_int_equal(weft_accept(scene->host, 0, peer, NULL), 0);
    return fd;
}

void say_frame(struct scene *scene, int fd, struct wf_frame frame, size_t payload)
{
    uint8_t bytes[WF_FRAME_BYTES + 64] = {0};
    frame.data_off = WF_FRAME_BYTES;
    wf_frame_encode(&frame, bytes);
    memset(bytes + WF_FRAME_BYTES, 0xEE, 64);
    send_bytes(scene, fd, bytes, WF_FRAME_BYTES + payload);
}
