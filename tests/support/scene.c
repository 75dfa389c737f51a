#include "scene.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/drive/worker.h"
#include "core/join/door.h"
#include "core/rail/address.h"
#include "core/session/session.h"
#include "wire/seal.h"

#define STEP_NS (20 * WF_NS_PER_MS) /* most that time moves at once */
#define PATIENCE_MS 20000

static struct scene *current; /* whose world goes on while a caller waits */

void scene_check(bool holds, const char *file, int line, const char *condition)
{
    if (holds)
        return;
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    abort();
}

/* --- the world goes on --- */

static int drive(struct weft_context *context)
{
    struct wf_worker *worker = context->crew.workers[0];
    int handled = wf_door_drive(context->door, 0);
    if (wf_worker_try(worker)) { /* else it is being driven by the caller further up */
        handled += wf_worker_drive(worker, 0);
        wf_worker_leave(worker);
    }
    return handled;
}

static void move_time(struct scene *scene)
{
    int64_t now = wf_sim_now(scene->sim), until = wf_sim_next_event(scene->sim);
    if (until <= now)
        return;
    for (int i = 0; i < SCENE_SIDES; i++) {
        struct weft_context *context = scene->contexts[i];
        int64_t visit = context ? atomic_load(&context->world.alarm.due_ns) : WF_NEVER;
        until = visit < until ? visit : until;
    }
    if (until > now + STEP_NS)
        until = now + STEP_NS;
    wf_sim_advance(scene->sim, until > now ? until : now + WF_NS_PER_US);
}

void scene_turn(struct scene *scene)
{
    int handled = 0;
    scene->turning = true;
    for (int i = 0; i < SCENE_SIDES; i++)
        if (scene->contexts[i])
            handled += drive(scene->contexts[i]);
    if (handled == 0)
        move_time(scene);
    scene->turning = false;
}

void scene_pass(struct scene *scene, int64_t ns)
{
    for (int64_t until = wf_sim_now(scene->sim) + ns; wf_sim_now(scene->sim) < until;)
        scene_turn(scene);
}

/* --- the engine: the simulator's, with a poll that waits --- */

static int patient_poll(struct wf_engine *engine, struct wf_op **finished, int max, int64_t timeout_ns)
{
    int count = wf_engine_sim.poll(engine, finished, max, 0);
    if (count > 0 || timeout_ns == 0 || !current || current->turning)
        return count;
    scene_turn(current);
    return wf_engine_sim.poll(engine, finished, max, 0);
}

static int open_patient(void *host, const struct wf_engine_limits *limits, struct wf_engine **out,
                        struct wf_status *status)
{
    static struct wf_engine_ops ops; /* the same every time */
    int result = wf_engine_sim.open(host, limits, out, status);
    if (result < 0)
        return result;
    ops = wf_engine_sim;
    ops.poll = patient_poll;
    (*out)->ops = &ops;
    return 0;
}

/* --- setting the scene --- */

/* Little memory, since there may be thousands of scenes, and short deadlines. */
static const char *const settings =
    "workers=shared spin_us=0 channels=1 chunk=4K eager=1K first_burst=8K unexpected=64K small_pool=16K requests=64 "
    "peers=4 introductions=16 window=8 staging=64K timeout=2 connect_timeout=5 rail_timeout_ms=500";

static void apply(struct wf_config *config, const char *list)
{
    char text[1024], *rest = text;
    struct wf_status status;
    snprintf(text, sizeof text, "%s", list ? list : "");
    for (char *word; (word = strsep(&rest, " "));) {
        char *value = strchr(word, '=');
        if (!value)
            continue;
        *value++ = '\0';
        int id = wf_setting_find(word, &status);
        SCENE_CHECK(id >= 0);
        SCENE_CHECK(wf_config_set(config, (enum wf_setting_id)id, value, WF_ORIGIN_COMMAND, "scene", &status) == 0);
    }
}

static void open_context(struct scene *scene, int side, const struct scene_options *options)
{
    static struct wf_engine_ops ops;
    static struct wf_config config; /* large */
    struct wf_status status;
    ops = wf_engine_sim;
    ops.open = open_patient;
    ops.poll = patient_poll;
    struct wf_environment environment = {.engine = &ops,
                                         .engine_host = scene->sim,
                                         .clock = wf_sim_clock(scene->sim),
                                         .seed = options->seed * 2 + (uint64_t)side + 1,
                                         .manual = true};
    if (side == SCENE_HOST && scene->memory) {
        environment.memory = &wf_memory_sim;
        environment.memory_host = scene->memory;
    }
    wf_config_init(&config);
    apply(&config, settings);
    apply(&config, side == SCENE_HOST ? "rails=127.0.1.1" : "rails=127.0.2.1");
    apply(&config, side == SCENE_HOST ? options->settings : options->friend_settings);
    apply(&config, side == SCENE_HOST && options->log ? "log=warn" : "log=error");
    SCENE_CHECK(wf_context_create(&config, &environment, &scene->contexts[side], &status) == 0);
    scene->contexts[side]->world.manual = false; /* no threads were started; callers drive, as they do beside threads */
    if (side == SCENE_HOST && options->log)
        scene->contexts[side]->world.log.fd = options->log;
    SCENE_CHECK(weft_endpoint_create(scene->contexts[side], 0, &scene->endpoints[side], NULL) == 0);
}

static void befriend(struct scene *scene)
{
    struct weft_context *host = scene->contexts[SCENE_HOST], *other = scene->contexts[SCENE_FRIEND];
    struct wf_status status;
    struct wf_dial dial;
    SCENE_CHECK(wf_dial_init(&dial, &other->world, "127.0.0.1:5000", PATIENCE_MS, &status) == 0);
    wf_door_dial(other->door, &dial);
    while (!dial.done)
        scene_turn(scene);
    SCENE_CHECK(dial.status.code == 0);
    scene->peers[SCENE_FRIEND] = &dial.session->peer;
    while (weft_accept(host, 0, &scene->peers[SCENE_HOST], NULL) < 0)
        scene_turn(scene);
    SCENE_CHECK(weft_connection_open(scene->endpoints[SCENE_FRIEND], scene->peers[SCENE_FRIEND], 0, PATIENCE_MS,
                                     &scene->connections[SCENE_FRIEND], NULL) == 0);
    SCENE_CHECK(weft_connection_accept(scene->endpoints[SCENE_HOST], scene->peers[SCENE_HOST], WEFT_ANY_ENDPOINT,
                                       PATIENCE_MS, &scene->connections[SCENE_HOST], NULL) == 0);
}

void scene_open(struct scene *scene, const struct scene_options *options)
{
    struct wf_status status;
    struct wf_engine_limits limits = {.call_bytes = 65536};
    memset(scene, 0, sizeof *scene);
    scene->sim =
        wf_sim_create(&(struct wf_sim_options){.seed = options->seed,
                                               .buffer_min = options->stream_bytes ? options->stream_bytes : 4096,
                                               .buffer_max = options->stream_bytes,
                                               .delay_max_ns = 200 * WF_NS_PER_US,
                                               .lag_percent = 101});
    SCENE_CHECK(scene->sim && !current);
    if (options->devices) {
        scene->memory = wf_sim_memory_create(&(struct wf_sim_memory_options){.seed = options->seed, .devices = 1});
        SCENE_CHECK(scene->memory);
        wf_sim_memory_join(scene->memory, scene->sim);
    }
    current = scene;
    for (int side = 0; side < SCENE_SIDES; side++)
        open_context(scene, side, options);
    SCENE_CHECK(wf_address_parse("127.0.0.1:5000", 0, true, &scene->address, &status) == 0);
    SCENE_CHECK(wf_door_listen(scene->contexts[SCENE_HOST]->door, &scene->address, &status) == 0);
    befriend(scene);
    SCENE_CHECK(wf_engine_sim.open(scene->sim, &limits, &scene->engine, &status) == 0);
}

/* What a wait of the one's end polls is the other's, too: both end first, and are destroyed then. */
void scene_close(struct scene *scene)
{
    SCENE_CHECK(weft_peer_status(scene->peers[SCENE_HOST], NULL) == 0);
    weft_peer_close(scene->peers[SCENE_FRIEND], PATIENCE_MS, NULL);
    weft_peer_close(scene->peers[SCENE_HOST], PATIENCE_MS, NULL);
    wf_engine_sim.close(scene->engine);
    for (int side = SCENE_SIDES; side-- > 0;) {
        struct weft_context *context = scene->contexts[side];
        scene->contexts[side] = NULL;
        weft_context_destroy(context);
    }
    if (scene->memory) {
        wf_sim_memory_join(scene->memory, NULL);
        wf_sim_memory_destroy(scene->memory);
    }
    wf_sim_destroy(scene->sim);
    current = NULL;
}

/* --- friends --- */

static void exchange_one(struct scene *scene, int from, size_t length, uint64_t seed)
{
    struct weft_request *send, *receive;
    struct weft_completion completion;
    uint8_t *source = malloc(length + 1), *sink = calloc(1, length + 1);
    SCENE_CHECK(source && sink);
    for (size_t i = 0; i < length; i++)
        source[i] = (uint8_t)(seed + i * 7 + (i >> 8));
    SCENE_CHECK(weft_recv(scene->connections[!from], sink, length, seed, NULL, &receive) == 0);
    SCENE_CHECK(weft_send(scene->connections[from], source, length, seed, NULL, &send) == 0);
    SCENE_CHECK(weft_wait(receive, PATIENCE_MS, &completion) == 0 && completion.status == 0);
    SCENE_CHECK(completion.bytes == length && memcmp(source, sink, length) == 0);
    SCENE_CHECK(weft_wait(send, PATIENCE_MS, &completion) == 0 && completion.status == 0);
    free(source);
    free(sink);
}

void scene_exchange(struct scene *scene, size_t length, uint64_t seed)
{
    exchange_one(scene, SCENE_FRIEND, length, seed);
    exchange_one(scene, SCENE_HOST, length, seed);
}

/* --- the stranger --- */

/* Until it ends, or nothing has moved for a second: then it is taken back. */
static int64_t finish(struct scene *scene, struct wf_op *op)
{
    struct wf_op *done[1];
    int64_t deadline_ns = wf_sim_now(scene->sim) + WF_NS_PER_S;
    scene->engine->ops->post(scene->engine, op);
    while (scene->engine->ops->poll(scene->engine, done, 1, 0) == 0) {
        if (wf_sim_now(scene->sim) >= deadline_ns && deadline_ns) {
            scene->engine->ops->cancel(scene->engine, op);
            deadline_ns = 0;
        }
        scene_turn(scene);
    }
    return op->result;
}

int scene_call(struct scene *scene)
{
    struct wf_op op = {.kind = WF_OP_CONNECT, .address = &scene->address};
    wf_link_init(&op.link);
    op.fd = wf_engine_sim.socket(scene->sim, AF_INET, &(struct wf_socket_options){0}, NULL);
    SCENE_CHECK(op.fd >= 0 && scene->engine->ops->attach(scene->engine, op.fd) == 0);
    int result = (int)finish(scene, &op);
    if (result == 0)
        return op.fd;
    scene_hang_up(scene, op.fd);
    return result;
}

void scene_hang_up(struct scene *scene, int fd)
{
    scene->engine->ops->detach(scene->engine, fd);
    wf_engine_sim.close_fd(scene->sim, fd);
}

static int64_t move(struct scene *scene, enum wf_op_kind kind, int fd, void *bytes, size_t length)
{
    size_t moved = 0;
    while (moved < length) {
        struct iovec iov = {(uint8_t *)bytes + moved, length - moved};
        struct wf_op op = {.kind = kind, .fd = fd, .iov = &iov, .iov_count = 1};
        wf_link_init(&op.link);
        int64_t result = finish(scene, &op);
        if (result <= 0)
            return moved ? (int64_t)moved : result;
        moved += (size_t)result;
    }
    return (int64_t)moved;
}

int64_t scene_send(struct scene *scene, int fd, const void *bytes, size_t length)
{
    return move(scene, WF_OP_SEND, fd, (void *)bytes, length);
}

int64_t scene_receive(struct scene *scene, int fd, void *bytes, size_t length)
{
    return move(scene, WF_OP_RECV, fd, bytes, length);
}

void scene_say(struct scene *scene, int fd, const struct wf_setup *setup)
{
    uint8_t bytes[WF_SETUP_MAX];
    int length = wf_setup_encode(setup, bytes, sizeof bytes);
    SCENE_CHECK(length > 0 && scene_send(scene, fd, bytes, (size_t)length) == length);
}

void scene_hear(struct scene *scene, int fd, struct wf_setup *setup)
{
    uint8_t bytes[WF_SETUP_MAX];
    SCENE_CHECK(scene_receive(scene, fd, bytes, WF_SETUP_PREFIX) == WF_SETUP_PREFIX);
    int length = wf_setup_length(bytes);
    SCENE_CHECK(length > 0);
    size_t rest = (size_t)length - WF_SETUP_PREFIX;
    SCENE_CHECK(scene_receive(scene, fd, bytes + WF_SETUP_PREFIX, rest) == (int64_t)rest);
    SCENE_CHECK(wf_setup_decode(bytes, (size_t)length, setup) == 0);
}

void scene_introduce(struct scene *scene, struct wf_hello *answer)
{
    struct wf_setup setup = {.type = WF_SETUP_HELLO};
    int fd = scene_call(scene);
    SCENE_CHECK(fd >= 0);
    wf_session_hello(&scene->contexts[SCENE_FRIEND]->sessions, NULL, &setup.hello); /* anybody's will do */
    scene_say(scene, fd, &setup);
    scene_hear(scene, fd, &setup);
    SCENE_CHECK(setup.type == WF_SETUP_HELLO);
    *answer = setup.hello;
    setup = (struct wf_setup){.type = WF_SETUP_GREETING, .greeting = {.length = 1, .bytes = "?"}};
    scene_say(scene, fd, &setup);
    scene_hear(scene, fd, &setup);
    SCENE_CHECK(setup.type == WF_SETUP_GREETING);
    scene_hang_up(scene, fd);
}

int scene_join(struct scene *scene, const struct wf_hello *hello, int channel, int channels, uint32_t incarnation)
{
    struct wf_setup setup = {.type = WF_SETUP_JOIN};
    int fd = scene_call(scene);
    SCENE_CHECK(fd >= 0);
    setup.join = (struct wf_join){.session = hello->session,
                                  .channel = (uint32_t)channel,
                                  .incarnation = incarnation,
                                  .channels = (uint16_t)channels,
                                  .kind = channel == 0 ? WF_CHANNEL_EXPRESS : WF_CHANNEL_BULK,
                                  .granted_frames = 64,
                                  .granted_bytes = 1 << 20};
    struct wf_join sent = setup.join;
    scene_say(scene, fd, &setup);
    scene_hear(scene, fd, &setup);
    if (setup.type == WF_SETUP_DENY) {
        scene_hang_up(scene, fd);
        return -ECONNREFUSED;
    }
    SCENE_CHECK(setup.type == WF_SETUP_CHALLENGE);
    struct wf_setup proof = {.type = WF_SETUP_PROOF};
    SCENE_CHECK(wf_seal_prove(hello->secret, WF_ROLE_DIALER, &sent, &setup.challenge, proof.proof.proof) == 0);
    scene_say(scene, fd, &proof);
    return fd;
}
