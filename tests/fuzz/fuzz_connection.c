/*
 * A peer that has come in with good proofs, and then says anything. An input is a list of steps: bytes and frames on
 * one of its channels, calls of the host's user, time that passes. A frame gets the checksum that belongs to it, and
 * the key of a region where it asks for that, since chance finds neither.
 *
 * The host may have a device: its user then sends from its memory, and receives there, also behind work in a stream.
 *
 * What has to hold: every request of the host ends, memory is touched within what was given and never after that, all
 * descriptors come back, and a friend of the host exchanges messages before and after.
 */
#include <errno.h>

#include "core/calls/registering.h"
#include "core/device/registration.h"
#include "core/request/pieces.h"
#include "fuzz.h"
#include "scene.h"
#include "wire/crc.h"
#include "wire/frame.h"

#define REGION 4096
#define PAYLOAD_MAX 16384
#define STEPS_MAX 64
#define REQUESTS_MAX 16
#define CHANNELS_MAX 2
#define PLACE 40000       /* of an operation in the device's memory */
#define PATIENCE_MS 60000 /* of simulated time: far more than all deadlines of a scene together */

struct input {
    const uint8_t *at, *end;
};

struct operation {
    struct weft_request *request;
    uint8_t *memory; /* of its own, and freed as soon as the request has ended: whoever touches it then is seen */
    bool on_device;  /* not that: a place in the device's memory */
};

struct attack {
    struct scene scene;
    struct input in;
    int channels, fds[CHANNELS_MAX]; /* negative: lost */
    uint32_t incarnations[CHANNELS_MAX];
    struct wf_hello hello; /* the host's */
    struct weft_peer *peer;
    struct weft_connection *connection; /* NULL: none */
    struct weft_registration *registration;
    uint8_t *region;
    uint8_t *device; /* room for all operations; NULL: there is no device */
    struct weft_registration *device_registration;
    struct wf_sim_stream *stream;
    int works; /* in the stream, that wait to be told that they are done */
    struct operation operations[REQUESTS_MAX];
};

/* `bytes` of them, little-endian; 0 from the end on. */
static uint64_t take(struct input *in, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes && in->at < in->end; i++)
        value |= (uint64_t)*in->at++ << (8 * i);
    return value;
}

/* --- what the peer says --- */

static void say(struct attack *attack, int channel, const void *bytes, size_t length)
{
    int *fd = &attack->fds[channel % attack->channels];
    if (*fd < 0 || length == 0)
        return;
    if (scene_send(&attack->scene, *fd, bytes, length) == (int64_t)length)
        return;
    scene_hang_up(&attack->scene, *fd);
    *fd = -1;
}

static void say_bytes(struct attack *attack, int channel)
{
    size_t length = take(&attack->in, 1), left = (size_t)(attack->in.end - attack->in.at);
    length = length < left ? length : left;
    say(attack, channel, attack->in.at, length);
    attack->in.at += length;
}

/* Of a list of pieces the entries name places in the region; of anything else the bytes do not matter. */
static void fill(struct attack *attack, const struct wf_frame *frame, uint8_t *payload, size_t length)
{
    memset(payload, 0xEE, length);
    if (!(frame->flags & WF_FLAG_LIST) || frame->flags & WF_FLAG_WRITE)
        return;
    for (size_t at = 0; at + WF_ENTRY_BYTES <= length; at += WF_ENTRY_BYTES) {
        struct wf_entry entry = {.key = weft_registration_key(attack->registration)};
        entry.offset = take(&attack->in, 2);
        entry.length = take(&attack->in, 1);
        wf_entry_encode(&entry, payload + at);
    }
}

/* Small numbers, where most limits are, from few bytes; and any number, where the first bit of the flags says so. */
static void say_frame(struct attack *attack, int channel, bool wide)
{
    struct input *in = &attack->in;
    uint8_t bytes[WF_FRAME_BYTES];
    static uint8_t payload[PAYLOAD_MAX];
    struct wf_frame frame = {.type = (uint8_t)take(in, 1), .flags = (uint8_t)take(in, 1)};
    frame.conn = (uint32_t)take(in, wide ? 4 : 1);
    frame.msg = take(in, wide ? 8 : 1);
    frame.offset = take(in, wide ? 8 : 2);
    frame.length = (uint32_t)take(in, wide ? 4 : 1);
    frame.total = wide ? take(in, 8) : frame.offset + frame.length + take(in, 2);
    frame.key = take(in, wide ? 8 : 1);
    frame.base = take(in, wide ? 8 : 2);
    frame.ack = (uint32_t)take(in, wide ? 4 : 1);
    frame.data_off = wide ? (uint16_t)take(in, 2) : WF_FRAME_BYTES;
    bool remote = frame.type == WF_READ || frame.flags & WF_FLAG_WRITE;
    if (remote && frame.key == 2 && attack->device)
        frame.key = weft_registration_key(attack->device_registration);
    else if (remote && frame.key < 128)
        frame.key = weft_registration_key(attack->registration) + (frame.key == 1);
    size_t length = frame.type != WF_DATA ? 0 : frame.length < PAYLOAD_MAX ? frame.length : PAYLOAD_MAX;
    fill(attack, &frame, payload, length);
    if (!wide && frame.flags & WF_FLAG_CRC)
        frame.payload_crc = wf_crc32c(0, payload, length);
    wf_frame_encode(&frame, bytes);
    say(attack, channel, bytes, sizeof bytes);
    say(attack, channel, payload, length);
}

/* A channel that was lost, or is to be, comes back under its next incarnation. */
static void join_again(struct attack *attack, int channel)
{
    channel %= attack->channels;
    if (attack->fds[channel] >= 0)
        scene_hang_up(&attack->scene, attack->fds[channel]);
    attack->incarnations[channel] += 1;
    attack->fds[channel] =
        scene_join(&attack->scene, &attack->hello, channel, attack->channels, attack->incarnations[channel]);
}

static void listen_to_it(struct attack *attack, int channel)
{
    uint8_t bytes[512];
    int fd = attack->fds[channel % attack->channels];
    if (fd >= 0)
        scene_receive(&attack->scene, fd, bytes, take(&attack->in, 1) + 1);
}

/* --- what the host's user does meanwhile --- */

static struct operation *free_operation(struct attack *attack)
{
    for (int i = 0; i < REQUESTS_MAX; i++)
        if (!attack->operations[i].request)
            return &attack->operations[i];
    return NULL;
}

static void ended(struct operation *operation)
{
    operation->request = NULL;
    if (!operation->on_device)
        free(operation->memory);
    operation->memory = NULL;
}

/* Memory of its own for an operation, which may have to wait for work in the stream. */
static void find_memory(struct attack *attack, struct operation *operation, size_t length, uint64_t key,
                        struct weft_options *options)
{
    operation->on_device = attack->device && key & 1;
    operation->memory =
        operation->on_device ? attack->device + (operation - attack->operations) * PLACE : calloc(1, length);
    FUZZ_CHECK(operation->memory);
    if (!operation->on_device || !(key & 2))
        return;
    options->flags |= WEFT_ON_STREAM;
    options->stream = attack->stream;
    wf_sim_stream_work(attack->stream, WF_NEVER);
    attack->works += 1;
}

static void release_work(struct attack *attack)
{
    if (attack->works == 0)
        return;
    attack->works -= 1;
    wf_sim_stream_release(attack->stream);
}

static void begin(struct attack *attack, int what)
{
    static const size_t lengths[] = {100, 900, 3000, PLACE};
    struct operation *operation = free_operation(attack);
    size_t length = lengths[take(&attack->in, 1) % 4];
    uint64_t key = take(&attack->in, 1);
    struct weft_options options = {.flags = 0};
    int rc = -EINVAL;
    if (!operation || !attack->connection)
        return;
    find_memory(attack, operation, length, what < 4 ? key : 0, &options);
    if (what == 0)
        options.flags |= WEFT_ANY_TAG;
    if (what == 0)
        rc = weft_recv(attack->connection, operation->memory, length, 0, &options, &operation->request);
    else if (what == 1)
        rc = weft_send(attack->connection, operation->memory, length, key, &options, &operation->request);
    else if (what == 2)
        rc = weft_write(attack->connection, operation->memory, length, key, 0, &options, &operation->request);
    else if (what == 3)
        rc = weft_read(attack->connection, operation->memory, length, key, 0, &options, &operation->request);
    else
        rc = weft_recv_notification(attack->connection, operation->memory, length, NULL, &operation->request);
    if (rc < 0) {
        operation->request = NULL;
        ended(operation);
    }
}

static void use(struct attack *attack)
{
    int what = (int)(take(&attack->in, 1) % 8);
    struct weft_endpoint *endpoint = attack->scene.endpoints[SCENE_HOST];
    if (what < 5) {
        begin(attack, what);
    } else if (what == 5 && !attack->connection) {
        if (weft_connection_accept(endpoint, attack->peer, WEFT_ANY_ENDPOINT, 0, &attack->connection, NULL) < 0)
            attack->connection = NULL;
    } else if (what == 6) {
        uint64_t which = take(&attack->in, 1);
        struct operation *operation = &attack->operations[which % REQUESTS_MAX];
        if (which >= 128)
            release_work(attack);
        else if (operation->request)
            weft_cancel(operation->request);
    } else if (what == 7 && !attack->connection) {
        if (weft_connection_open(endpoint, attack->peer, 7, 20, &attack->connection, NULL) < 0)
            attack->connection = NULL;
    }
}

static void collect(struct attack *attack)
{
    struct weft_completion completion;
    for (int i = 0; i < REQUESTS_MAX; i++)
        if (attack->operations[i].request && weft_test(attack->operations[i].request, &completion))
            ended(&attack->operations[i]);
}

/* --- from the beginning to the end --- */

static void come_in(struct attack *attack)
{
    scene_introduce(&attack->scene, &attack->hello);
    for (int i = 0; i < attack->channels; i++) {
        attack->incarnations[i] = 1;
        attack->fds[i] = scene_join(&attack->scene, &attack->hello, i, attack->channels, 1);
        FUZZ_CHECK(attack->fds[i] >= 0);
    }
    while (weft_accept(attack->scene.contexts[SCENE_HOST], 0, &attack->peer, NULL) < 0)
        scene_turn(&attack->scene);
    attack->region = calloc(1, REGION);
    FUZZ_CHECK(attack->region);
    FUZZ_CHECK(weft_register(attack->scene.contexts[SCENE_HOST], attack->region, REGION, &attack->registration, NULL) ==
               0);
    if (!attack->scene.memory)
        return;
    attack->device = wf_sim_memory_take(attack->scene.memory, 0, REQUESTS_MAX * PLACE);
    attack->stream = wf_sim_stream_create(attack->scene.memory, 0);
    FUZZ_CHECK(attack->device && attack->stream);
    FUZZ_CHECK(weft_register(attack->scene.contexts[SCENE_HOST], attack->device, REQUESTS_MAX * PLACE,
                             &attack->device_registration, NULL) == 0);
}

static void step(struct attack *attack)
{
    uint8_t what = (uint8_t)take(&attack->in, 1);
    int channel = what >> 7;
    switch (what % 8) {
    case 0:
        say_bytes(attack, channel);
        break;
    case 1:
    case 2:
    case 3:
        say_frame(attack, channel, what % 8 == 3);
        break;
    case 4:
        scene_pass(&attack->scene, (int64_t)take(&attack->in, 1) * WF_NS_PER_MS);
        break;
    case 5:
        listen_to_it(attack, channel);
        break;
    case 6:
        if (what & 8 && what & 16) { /* seldom: it ends what is on the way */
            join_again(attack, channel);
            break;
        }
        /* fall through */
    default:
        use(attack);
        break;
    }
    for (int i = 0; i < 3; i++)
        scene_turn(&attack->scene);
    collect(attack);
}

/* Ends the registration: what the peer was doing with it lets go soon, with the world's turns. (weft_deregister()
 * waits, for threads that this world has not.) */
static void deregister(struct attack *attack, struct weft_registration *registration)
{
    wf_registration_end(registration);
    int64_t limit_ns = wf_sim_now(attack->scene.sim) + PATIENCE_MS * WF_NS_PER_MS;
    while (atomic_load(&registration->uses) != WF_REGISTRATION_ENDED) {
        FUZZ_CHECK(wf_sim_now(attack->scene.sim) < limit_ns);
        scene_turn(&attack->scene);
    }
    weft_deregister(registration);
}

/* Nothing is left in the stream, whatever became of the operations that it was to wait for. */
static void put_device_away(struct attack *attack)
{
    deregister(attack, attack->device_registration);
    int64_t limit_ns = wf_sim_now(attack->scene.sim) + PATIENCE_MS * WF_NS_PER_MS;
    while (!wf_sim_stream_idle(attack->stream)) {
        FUZZ_CHECK(wf_sim_now(attack->scene.sim) < limit_ns);
        scene_turn(&attack->scene);
    }
    wf_sim_stream_destroy(attack->stream);
    wf_sim_memory_give(attack->scene.memory, attack->device);
}

static void leave(struct attack *attack)
{
    struct weft_completion completion;
    for (int i = 0; i < attack->channels; i++)
        if (attack->fds[i] >= 0)
            scene_hang_up(&attack->scene, attack->fds[i]);
    while (attack->works > 0) {
        release_work(attack);
        scene_pass(&attack->scene, WF_NS_PER_MS); /* the next one comes when what it waits for has ended */
    }
    for (int i = 0; i < REQUESTS_MAX; i++) {
        struct operation *operation = &attack->operations[i];
        if (!operation->request)
            continue;
        FUZZ_CHECK(weft_wait(operation->request, PATIENCE_MS, &completion) == 0);
        ended(operation);
    }
    deregister(attack, attack->registration);
    if (attack->device)
        put_device_away(attack);
    free(attack->region);
    weft_peer_close(attack->peer, 100, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct attack attack; /* all of it is written below */
    struct weft_context *host;
    memset(&attack, 0, sizeof attack);
    attack.in = (struct input){data, data + size};
    uint8_t kind = (uint8_t)take(&attack.in, 1);
    attack.channels = 1 + (kind & 1);
    scene_open(
        &attack.scene,
        &(struct scene_options){.seed = 1 + (kind >> 4), .settings = kind & 2 ? "crc=on" : NULL, .devices = kind & 4});
    host = attack.scene.contexts[SCENE_HOST];
    scene_exchange(&attack.scene, 5000, 1);
    int before = wf_sim_open_descriptors(attack.scene.sim);
    come_in(&attack);
    for (int i = 0; i < STEPS_MAX && attack.in.at < attack.in.end; i++)
        step(&attack);
    leave(&attack);
    for (int i = 0; i < 500 && host->sessions.count > 1; i++)
        scene_pass(&attack.scene, 20 * WF_NS_PER_MS);
    FUZZ_CHECK(host->sessions.count == 1);
    FUZZ_CHECK(wf_sim_open_descriptors(attack.scene.sim) == before);
    scene_exchange(&attack.scene, 5000, 2);
    scene_close(&attack.scene);
    return 0;
}
