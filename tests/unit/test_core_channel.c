/* A channel's send half without a session: how a batch is laid out, what is kept until it is acknowledged, the window.
 */
#include "core/channel/batch.h"
#include "core/channel/gather.h"
#include "core/channel/ops.h"
#include "core_scene.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "wire/crc.h"
#include "wire/frame.h"

#define CHANNELS 5 /* of the session: two of them are joined */
#define EXPRESS 3u
#define BULK 1u
#define RAIL 2
#define FD 77
#define BYTES (SCENE_CHUNK + 4096)

/* A message on its way out, as far as a channel sees it. */
struct message {
    const uint8_t *data;
    uint64_t piece; /* it lies in pieces of so many bytes, with as many between them that are not its own; 0: in one */
    int released;
};

/* What the rooms above a channel have been told. */
static struct {
    int lost, code;
    const char *doing;
    bool locked; /* when it was lost */
} above;

static struct wf_outbound *outbound_of(struct message *message)
{
    return (struct wf_outbound *)message;
}

static int out_places(const struct wf_outbound *outbound, uint64_t offset, uint64_t length, struct iovec *iov, int max,
                      uint64_t *covered)
{
    const struct message *message = (const struct message *)outbound;
    uint64_t piece = message->piece ? message->piece : UINT64_MAX / 4;
    int count = 0;
    for (*covered = 0; *covered < length && count < max; count++) {
        uint64_t at = offset + *covered, left = piece - at % piece;
        if (left > length - *covered)
            left = length - *covered;
        iov[count] = (struct iovec){(void *)(uintptr_t)(message->data + at + at / piece * piece), left};
        *covered += left;
    }
    return count;
}

static void released(struct wf_outbound *outbound)
{
    ((struct message *)outbound)->released += 1;
}

static void lost(struct wf_channel *channel, int code, const char *doing)
{
    int result = pthread_mutex_trylock(&channel->lines->guard->lock);
    if (result == 0)
        pthread_mutex_unlock(&channel->lines->guard->lock);
    above.locked = result == EBUSY;
    above.lost += 1;
    above.code = code;
    above.doing = doing;
}

static const struct wf_channel_ops channel_ops = {.out_places = out_places, .released = released, .lost = lost};

/* --- the scene --- */

static uint8_t bytes[BYTES];      /* that messages send */
static uint8_t stream[4 * BYTES]; /* what a batch would put on the wire */

static void join(struct scene *scene, uint32_t id, enum wf_channel_kind kind)
{
    struct wf_join join = {.channel = id, .incarnation = 1, .kind = (uint8_t)kind, .rail = RAIL};
    struct wf_channel *channel = calloc(1, sizeof *channel);
    assert_non_null(channel);
    assert_int_equal(wf_channel_init(channel, &scene->lines, &channel_ops, &join), 0);
    channel->tx.worker = scene->crew.workers[0];
    channel->rx.worker = scene->crew.workers[1];
    scene->lines.channels[id] = channel;
    wf_window_grant(&channel->tx.window, UINT32_MAX, UINT64_MAX / 2);
}

static int set_up(void **state)
{
    int result = scene_set_up(state);
    struct scene *scene = *state;
    memset(&above, 0, sizeof above);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 251);
    assert_int_equal(wf_lines_expect(&scene->lines, CHANNELS), 0);
    join(scene, EXPRESS, WF_CHANNEL_EXPRESS);
    join(scene, BULK, WF_CHANNEL_BULK);
    scene->lines.bulk_count[0] = 1;
    return result;
}

static struct wf_channel *bulk_of(struct scene *scene)
{
    return scene->lines.channels[BULK];
}

static struct wf_channel *express_of(struct scene *scene)
{
    return scene->lines.channels[EXPRESS];
}

static struct wf_frame data_frame(uint64_t number, uint32_t length)
{
    return (struct wf_frame){.type = WF_DATA, .conn = 1, .msg = number, .total = length, .length = length};
}

/* A DATA frame with all of a message. */
static void add(struct wf_channel *channel, struct message *message, uint64_t number, uint32_t length)
{
    struct wf_frame frame = data_frame(number, length);
    wf_batch_add_sequenced(channel, &frame, outbound_of(message));
}

/* A frame without payload. */
static void add_bare(struct wf_channel *channel, uint8_t type, uint64_t number)
{
    struct wf_frame frame = {.type = type, .conn = 1, .msg = number};
    if (wf_frame_sequenced(type))
        wf_batch_add_sequenced(channel, &frame, NULL);
    else
        wf_batch_add(channel, &frame, NULL);
}

/* What the batch would put on the wire, in `stream`. */
static size_t flatten(const struct wf_channel *channel)
{
    size_t used = 0;
    for (int i = 0; i < channel->tx.iov_count; i++) {
        const struct iovec *piece = &channel->tx.iov[i];
        assert_true(used + piece->iov_len <= sizeof stream);
        memcpy(stream + used, piece->iov_base, piece->iov_len);
        used += piece->iov_len;
    }
    return used;
}

/* The frame at `at` of the stream, which is told apart from all that stands before it. */
static struct wf_frame frame_at(size_t at)
{
    struct wf_frame frame = {0};
    assert_int_equal(wf_frame_decode(stream + at, &frame), 0);
    return frame;
}

/* --- what a channel has --- */

static void test_memory_of_a_channel(void **state)
{
    struct scene *scene = *state;
    const struct wf_channel *bulk = bulk_of(scene), *express = express_of(scene);
    assert_int_equal(bulk->tx.pad, SCENE_PAD);
    assert_int_equal(bulk->tx.ring, SCENE_WINDOW);
    assert_int_equal(bulk->rx.room, SCENE_PAD);
    assert_int_equal(bulk->rx.granted_frames, SCENE_WINDOW);
    assert_int_equal(express->tx.pad, WF_FRAME_BYTES);
    assert_int_equal(express->tx.ring, WF_EXPRESS_WINDOW);
    assert_int_equal(express->rx.room, WF_EXPRESS_READ);
    assert_int_equal(express->rx.granted_frames, WF_EXPRESS_WINDOW);
    assert_true(bulk->tx.detached && bulk->rx.detached);
    assert_int_equal(bulk->fd, -1);
}

static void test_each_skips_empty_places(void **state)
{
    struct scene *scene = *state;
    const struct wf_lines none = {0};
    uint32_t seen[CHANNELS];
    int count = 0;
    WF_LINES_EACH (channel, &scene->lines) {
        seen[count++] = channel->id;
    }
    assert_int_equal(count, 2);
    assert_int_equal(seen[0], BULK);
    assert_int_equal(seen[1], EXPRESS);
    WF_LINES_EACH (channel, &none) {
        fail_msg("channel %u of none", channel->id);
    }
}

/* --- the layout of a batch --- */

static void test_headers_follow_each_other(void **state)
{
    struct scene *scene = *state;
    struct wf_channel *channel = express_of(scene);
    channel->rx.disposed = UINT64_C(0x100000005);
    wf_batch_begin(channel);
    add_bare(channel, WF_OFFER, 4);
    add_bare(channel, WF_PING, 5);
    assert_int_equal(channel->tx.iov_count, 1); /* one entry costs the kernel less than two */
    assert_int_equal(flatten(channel), 2 * WF_FRAME_BYTES);
    struct wf_frame first = frame_at(0), second = frame_at(WF_FRAME_BYTES);
    assert_int_equal(first.type, WF_OFFER);
    assert_int_equal(first.msg, 4);
    assert_int_equal(first.data_off, WF_FRAME_BYTES);
    assert_int_equal(first.ack, 5); /* the low bits of what this side has disposed of */
    assert_int_equal(second.type, WF_PING);
    assert_int_equal(second.msg, 5);
    assert_int_equal(second.ack, 5);
    assert_int_equal(channel->tx.ack_sent, UINT64_C(0x100000005));
}

static void test_small_payloads_are_packed(void **state)
{
    struct scene *scene = *state;
    struct wf_channel *channel = bulk_of(scene);
    struct message small = {.data = bytes}, most = {.data = bytes + 1000}, large = {.data = bytes + 3000};
    wf_batch_begin(channel);
    add(channel, &small, 1, 10);
    add(channel, &most, 2, WF_PACKED_BYTES);
    add_bare(channel, WF_OFFER, 3);
    assert_int_equal(channel->tx.iov_count, 1);
    add(channel, &large, 4, WF_PACKED_BYTES + 1);
    assert_int_equal(channel->tx.iov_count, 2); /* its header with the others, its payload where it lies */
    assert_ptr_equal(channel->tx.iov[1].iov_base, large.data);
    assert_int_equal(channel->tx.iov[1].iov_len, WF_PACKED_BYTES + 1);
    add(channel, &small, 5, 10);
    assert_int_equal(channel->tx.iov_count, 3);

    size_t all = flatten(channel), at = 0;
    assert_int_equal(frame_at(at).data_off, SCENE_PAD);
    assert_int_equal(frame_at(at).length, 10);
    assert_memory_equal(stream + at + SCENE_PAD, small.data, 10);
    at += SCENE_PAD + 10;
    assert_int_equal(frame_at(at).msg, 2);
    assert_memory_equal(stream + at + SCENE_PAD, most.data, WF_PACKED_BYTES);
    at += SCENE_PAD + WF_PACKED_BYTES;
    assert_int_equal(frame_at(at).msg, 3);
    at += WF_FRAME_BYTES;
    assert_int_equal(frame_at(at).msg, 4);
    assert_memory_equal(stream + at + SCENE_PAD, large.data, WF_PACKED_BYTES + 1);
    at += SCENE_PAD + WF_PACKED_BYTES + 1;
    assert_int_equal(frame_at(at).msg, 5);
    assert_memory_equal(stream + at + SCENE_PAD, small.data, 10);
    assert_int_equal(all, at + SCENE_PAD + 10);
}

/* The copy is the batch's own: its user may have the memory again. */
static void test_packed_payloads_are_copies(void **state)
{
    struct scene *scene = *state;
    struct wf_channel *channel = express_of(scene);
    uint8_t memory[4] = {1, 2, 3, 4};
    struct message message = {.data = memory};
    wf_batch_begin(channel);
    add(channel, &message, 1, sizeof memory);
    memset(memory, 0, sizeof memory);
    assert_int_equal(flatten(channel), WF_FRAME_BYTES + sizeof memory);
    assert_int_equal(stream[WF_FRAME_BYTES + 3], 4);
}

static void test_payloads_in_pieces(void **state)
{
    struct scene *scene = *state;
    struct wf_channel *channel = bulk_of(scene);
    struct message message = {.data = bytes, .piece = 16};
    struct wf_frame frame = data_frame(1, 40);
    frame.offset = 8;
    frame.total = 64;
    wf_batch_begin(channel);
    wf_batch_add_sequenced(channel, &frame, outbound_of(&message));
    assert_int_equal(channel->tx.iov_count, 4); /* 8, 16 and 16 bytes behind the header */
    assert_int_equal(flatten(channel), SCENE_PAD + 40);
    assert_memory_equal(stream + SCENE_PAD, bytes + 8, 8);
    assert_memory_equal(stream + SCENE_PAD + 8, bytes + 32, 16);
    assert_memory_equal(stream + SCENE_PAD + 24, bytes + 64, 16);
}

static void test_room_for_frames(void **state)
{
    struct scene *scene = *state;
    struct wf_channel *const channels[] = {express_of(scene), bulk_of(scene)};
    struct message message = {.data = bytes};
    for (int i = 0; i < 2; i++) { /* the batch's own memory is for so many payloads that are packed */
        struct wf_channel *channel = channels[i];
        size_t each = channel->tx.pad + WF_PACKED_BYTES;
        wf_batch_begin(channel);
        for (unsigned j = 0; j < WF_BATCH_FRAMES; j++) {
            assert_true(wf_batch_has_room(channel));
            add(channel, &message, j + 1, WF_PACKED_BYTES);
        }
        assert_false(wf_batch_has_room(channel));
        assert_int_equal(flatten(channel), WF_BATCH_FRAMES * each);
        for (unsigned j = 0; j < WF_BATCH_FRAMES; j++)
            assert_int_equal(frame_at(j * each).msg, j + 1);
        wf_batch_begin(channel);
        assert_true(wf_batch_has_room(channel));
        assert_int_equal(flatten(channel), 0);
        add(channel, &message, 1, 1);
        assert_ptr_equal(channel->tx.iov[0].iov_base, channel->tx.headers); /* from the start of it again */
    }
}

static void test_room_for_pieces(void **state)
{
    struct scene *scene = *state;
    struct wf_channel *channel = bulk_of(scene);
    struct message message = {.data = bytes, .piece = 1};
    uint32_t most = WF_TX_SEGMENTS - WF_TX_SEGMENTS_LEFT - 1; /* behind one header */
    wf_batch_begin(channel);
    add(channel, &message, 1, most);
    assert_true(wf_batch_has_room(channel));
    wf_batch_begin(channel);
    add(channel, &message, 1, most + 1);
    assert_false(wf_batch_has_room(channel));
}

static void test_checksums_wait_for_the_post(void **state)
{
    struct scene *scene = *state;
    struct wf_channel *channel = bulk_of(scene);
    struct message small = {.data = bytes}, pieces = {.data = bytes + 1000, .piece = 100};
    struct wf_frame frame;
    scene->world.tuning.crc = true;
    wf_batch_begin(channel);
    add_bare(channel, WF_OFFER, 1);
    add(channel, &small, 2, 10);
    add(channel, &pieces, 3, 250);
    assert_int_equal(channel->tx.unsealed_count, 2);
    assert_ptr_equal(channel->tx.iov[2].iov_base, small.data); /* not packed: it is summed where the kernel reads it */
    assert_int_equal(channel->tx.iov_count, 7);

    size_t all = flatten(channel), second = WF_FRAME_BYTES, third = second + SCENE_PAD + 10;
    assert_int_equal(frame_at(0).flags & WF_FLAG_CRC, 0);
    assert_int_equal(wf_frame_decode(stream + second, &frame), -EBADMSG);
    assert_int_equal(wf_frame_decode(stream + third, &frame), -EBADMSG);

    wf_channel_post_send(channel);
    assert_int_equal(flatten(channel), all);
    assert_true(frame_at(second).flags & WF_FLAG_CRC);
    assert_int_equal(frame_at(second).payload_crc, wf_crc32c(0, bytes, 10));
    assert_true(frame_at(third).flags & WF_FLAG_CRC);
    assert_int_equal(frame_at(third).payload_crc, wf_crc32c(0, stream + third + SCENE_PAD, 250));
    assert_memory_equal(stream + third + SCENE_PAD + 100, bytes + 1200, 100);

    wf_batch_begin(channel);
    assert_int_equal(channel->tx.unsealed_count, 0);
}

/* --- what is kept --- */

static void test_counted_frames_are_kept(void **state)
{
    struct scene *scene = *state;
    struct wf_channel *channel = bulk_of(scene);
    struct message messages[2] = {{.data = bytes}, {.data = bytes}};
    struct wf_tx *tx = &channel->tx;
    wf_batch_begin(channel);
    add_bare(channel, WF_PING, 1);
    assert_int_equal(tx->window.spent_frames, 0); /* probes are not counted */
    add(channel, &messages[0], 2, 1000);
    add_bare(channel, WF_OFFER, 3);
    add(channel, &messages[1], 4, 10);
    assert_int_equal(tx->window.spent_frames, 3);
    assert_int_equal(tx->window.spent_bytes, 1010);
    assert_int_equal(atomic_load(&scene->lines.rails[RAIL].sent_bytes), 1010);
    assert_int_equal(tx->batch_count, 2);

    wf_batch_begin(channel); /* the operation has ended: the kernel refers to neither any more */
    assert_int_equal(messages[0].released, 1);
    assert_int_equal(messages[1].released, 1);
    wf_batch_begin(channel);
    assert_int_equal(messages[0].released, 1);

    struct wf_retained retained;
    assert_true(wf_tx_next_retired(channel, 3, &retained));
    assert_int_equal(retained.frame.msg, 2);
    assert_int_equal(retained.frame.length, 1000);
    assert_ptr_equal(retained.outbound, outbound_of(&messages[0]));
    assert_int_equal(tx->acknowledged_bytes, 1000);
    assert_true(wf_tx_next_retired(channel, 3, &retained));
    assert_int_equal(retained.frame.type, WF_OFFER);
    assert_null(retained.outbound);
    assert_true(wf_tx_next_retired(channel, 3, &retained));
    assert_int_equal(retained.frame.msg, 4);
    assert_false(wf_tx_next_retired(channel, 3, &retained));
    assert_int_equal(tx->acknowledged, 3);
    assert_int_equal(tx->acknowledged_bytes, 1010);
}

static void test_the_ring_goes_round(void **state)
{
    struct scene *scene = *state;
    struct wf_channel *channel = bulk_of(scene);
    struct wf_retained retained;
    uint64_t sent = 0, retired = 0;
    for (int round = 0; round < 5; round++) {
        while (wf_channel_open(channel, 0)) {
            wf_batch_begin(channel);
            add_bare(channel, WF_OFFER, ++sent);
        }
        assert_int_equal(sent - retired, SCENE_WINDOW);
        for (int i = 0; i < 3; i++) {
            assert_true(wf_tx_next_retired(channel, retired + 1, &retained));
            assert_int_equal(retained.frame.msg, ++retired);
        }
        assert_false(wf_tx_next_retired(channel, retired, &retained));
    }
}

/* --- the window --- */

static void test_open(void **state)
{
    static const struct {
        uint64_t granted_frames, granted_bytes; /* by the peer */
        uint64_t spent_frames, spent_bytes, acknowledged;
        uint64_t bytes;
        bool open;
    } cases[] = {
        {3, 100, 2, 0, 0, 0, true},     {2, 100, 2, 0, 0, 0, false}, /* no frame more */
        {3, 100, 2, 60, 0, 40, true},                                /* exactly what is left */
        {3, 100, 2, 60, 0, 41, false},                               /* and a byte more than that */
        {3, 100, 2, 100, 0, 0, true},                                /* a frame without payload needs none */
        {100, 100, 8, 0, 0, 0, false},                               /* no place to keep it, whatever the peer takes */
        {100, 100, 8, 0, 1, 0, true},   {100, 100, 50, 0, 42, 0, false}, /* SCENE_WINDOW are under way */
        {100, 100, 50, 0, 43, 0, true},
    };
    struct scene *scene = *state;
    struct wf_channel *channel = bulk_of(scene);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        print_message("case %zu\n", i);
        channel->tx.window = (struct wf_window){cases[i].granted_frames, cases[i].granted_bytes, cases[i].spent_frames,
                                                cases[i].spent_bytes};
        channel->tx.acknowledged = cases[i].acknowledged;
        assert_int_equal(wf_channel_open(channel, cases[i].bytes), cases[i].open);
    }
}

static void test_credit(void **state)
{
    struct scene *scene = *state;
    struct wf_channel *channel = bulk_of(scene);
    struct wf_frame frame;
    uint64_t frames, credit;
    channel->rx.disposed = 5;
    channel->rx.disposed_bytes = 1000;
    channel->tx.state_due = true;
    wf_channel_credit(channel, &frames, &credit);
    assert_int_equal(frames, 5 + SCENE_WINDOW);
    assert_int_equal(credit, 1000 + (uint64_t)SCENE_WINDOW * SCENE_CHUNK);
    assert_int_equal(channel->rx.granted_frames, SCENE_WINDOW); /* what the peer has not been told does not count yet */

    wf_batch_state_frame(channel, &frame);
    assert_int_equal(frame.type, WF_STATE);
    assert_int_equal(frame.key, wf_channel_key(BULK, 1));
    assert_int_equal(frame.offset, 5);
    assert_int_equal(frame.total, frames);
    assert_int_equal(frame.base, credit);
    assert_int_equal(channel->rx.granted_frames, frames);
    assert_int_equal(channel->tx.ack_sent, 5);
    assert_false(channel->tx.state_due);
}

/* An acknowledgement behind a queue in the kernel arrives late: the peer would take the rail for a slow one. */
static void test_acknowledgements_that_wait_in_a_queue_do_not_count(void **state)
{
    struct scene *scene = *state;
    struct wf_channel *bulk = bulk_of(scene), *express = express_of(scene);
    struct message message = {.data = bytes};
    bulk->rx.disposed = express->rx.disposed = 1;
    wf_batch_begin(bulk);
    add(bulk, &message, 1, SCENE_CHUNK);
    assert_int_equal(bulk->tx.ack_sent, 1); /* one bulk channel alone */
    scene->lines.bulk_count[0] = 2;
    bulk->rx.disposed = 2;
    add_bare(bulk, WF_PING, 2);
    assert_int_equal(bulk->tx.ack_sent, 1);
    bulk->tx.rate.bytes_per_ns = SCENE_CHUNK / 1e6; /* a millisecond for what is under way */
    add_bare(bulk, WF_PING, 3);
    assert_int_equal(bulk->tx.ack_sent, 2);
    bulk->rx.disposed = 3;
    add(bulk, &message, 4, 1);
    assert_int_equal(bulk->tx.ack_sent, 2);
    wf_batch_begin(express);
    add(express, &message, 5, 1);
    assert_int_equal(express->tx.ack_sent, 1);
}

/* --- the rate --- */

static void test_the_rate_of_bulk_channels(void **state)
{
    struct scene *scene = *state;
    struct wf_channel *const channels[] = {bulk_of(scene), express_of(scene)};
    struct message message = {.data = bytes};
    struct wf_retained retained;
    for (int i = 0; i < 2; i++) {
        struct wf_tx *tx = &channels[i]->tx;
        atomic_store(&tx->began_ns, 1);
        wf_batch_begin(channels[i]);
        add(channels[i], &message, 1, SCENE_CHUNK);
        assert_int_equal(atomic_load(&tx->began_ns), i == 0 ? 0 : 1); /* the engine is to tell anew */
        atomic_store(&tx->began_ns, 1);
        add(channels[i], &message, 2, SCENE_CHUNK);
        assert_int_equal(atomic_load(&tx->began_ns), 1); /* but not of what follows */
        scene->now_ns += 2 * WF_NS_PER_MS;
        wf_tx_note_rate(channels[i], 0); /* nothing was acknowledged */
        assert_int_equal(tx->rate.heard_ns, 0);
        assert_true(wf_tx_next_retired(channels[i], 1, &retained));
        wf_tx_note_rate(channels[i], 0);
        assert_int_equal(tx->rate.heard_ns, i == 0 ? scene->now_ns : 0);
        assert_true(i == 0 ? tx->rate.bytes_per_ns > 0 : tx->rate.bytes_per_ns == 0);
    }
}

/* --- the operation --- */

static void test_the_operation(void **state)
{
    static const struct {
        int64_t result;
        int lost;
    } cases[] = {{WF_FRAME_BYTES, 0}, {-ECANCELED, 0}, {-EPIPE, 1}};
    struct scene *scene = *state;
    struct wf_channel *channel = bulk_of(scene);
    struct wf_tx *tx = &channel->tx;
    channel->fd = FD;
    for (int i = 0; i < 3; i++) {
        memset(&above, 0, sizeof above);
        wf_batch_begin(channel);
        add_bare(channel, WF_PING, 1);
        wf_channel_post_send(channel);
        assert_int_equal(scene->engines[0]->posted_count, i + 1);
        assert_ptr_equal(scene->engines[0]->posted[i], &tx->op);
        assert_int_equal(tx->op.kind, WF_OP_SEND);
        assert_int_equal(tx->op.fd, FD);
        assert_ptr_equal(tx->op.iov, tx->iov);
        assert_int_equal(tx->op.iov_count, 1);
        assert_ptr_equal(tx->op.began_ns, &tx->began_ns);
        tx->op.result = cases[i].result;
        scene_finish(scene, 0, &tx->op);
        assert_int_equal(wf_worker_drive(scene->crew.workers[0], 0), 2);
        assert_int_equal(scene->served[0], i + 1); /* the half has to be looked at */
        assert_int_equal(above.lost, cases[i].lost);
    }
    assert_int_equal(above.code, -EPIPE);
    assert_string_equal(above.doing, "sending");
    assert_true(above.locked);
    assert_int_equal(scene->engines[1]->posted_count, 0);

    wf_batch_begin(express_of(scene));
    add_bare(express_of(scene), WF_PING, 1);
    wf_channel_post_send(express_of(scene));
    assert_null(express_of(scene)->tx.op.began_ns); /* nobody measures it */
}

/* --- another incarnation --- */

static void test_restart(void **state)
{
    struct scene *scene = *state;
    struct wf_channel *channel = bulk_of(scene);
    struct message message = {.data = bytes};
    struct wf_tx before = channel->tx;
    struct wf_rx before_rx = channel->rx;
    wf_batch_begin(channel);
    add(channel, &message, 1, 1000);
    wf_channel_release_batch(channel);
    channel->tx.acknowledged = channel->tx.ack_sent = 1;
    channel->tx.rate = (struct wf_rate){.bytes_per_ns = 2,
                                        .heard_ns = 3,
                                        .lag_ns = 4,
                                        .samples = 5,
                                        .bytes = 6,
                                        .worked_ns = 7,
                                        .since_ns = 8,
                                        .waits = true};
    channel->tx.detached = channel->rx.detached = false;
    channel->tx.state_due = channel->tx.shut = channel->tx.bye_sent = channel->tx.moved = channel->tx.started = true;
    channel->rx.disposed = channel->rx.disposed_bytes = 9;
    channel->rx.start = channel->rx.end = 10;
    channel->rx.in_frame = channel->rx.ended = channel->rx.held = channel->rx.started = true;
    channel->kill = channel->gone = channel->bye_seen = true;
    channel->retransmits = 11;
    atomic_store(&channel->heard, 14);
    atomic_store(&channel->kept, 15);

    wf_channel_restart(channel, 2);
    assert_int_equal(channel->incarnation, 2);
    assert_int_equal(channel->id, BULK);
    assert_ptr_equal(channel->tx.headers, before.headers);
    assert_ptr_equal(channel->tx.retained, before.retained);
    assert_ptr_equal(channel->rx.buffer, before_rx.buffer);
    assert_ptr_equal(channel->rx.bounce, before_rx.bounce);
    assert_ptr_equal(channel->tx.worker, before.worker);
    assert_ptr_equal(channel->rx.worker, before_rx.worker);
    assert_int_equal(channel->tx.ring, before.ring);
    assert_int_equal(channel->tx.pad, before.pad);
    assert_int_equal(channel->rx.room, before_rx.room);

    assert_int_equal(channel->tx.window.spent_frames, 0);
    assert_int_equal(channel->tx.window.spent_bytes, 0);
    assert_int_equal(channel->tx.window.granted_frames, 0);
    assert_int_equal(channel->tx.acknowledged, 0);
    assert_int_equal(channel->tx.ack_sent, 0);
    assert_int_equal(channel->rx.disposed, 0);
    assert_int_equal(channel->rx.disposed_bytes, 0);
    assert_int_equal(channel->rx.end - channel->rx.start, 0);
    assert_int_equal(channel->rx.granted_frames, SCENE_WINDOW);
    assert_true(channel->tx.detached && channel->rx.detached);
    assert_false(channel->tx.state_due || channel->tx.shut || channel->tx.bye_sent || channel->tx.moved);
    assert_false(channel->tx.started || channel->rx.started);
    assert_false(channel->rx.in_frame || channel->rx.ended || channel->rx.held);
    assert_false(channel->kill || channel->gone || channel->bye_seen);
    assert_int_equal(channel->retransmits, 0);
    assert_int_equal(atomic_load(&channel->heard), 0);
    assert_int_equal(atomic_load(&channel->kept), 0);

    /* What the rail was like is still worth knowing. */
    assert_true(channel->tx.rate.bytes_per_ns == 2);
    assert_int_equal(channel->tx.rate.heard_ns, 3);
    assert_int_equal(channel->tx.rate.lag_ns, 4);
    assert_int_equal(channel->tx.rate.samples, 5);
    assert_int_equal(channel->tx.rate.since_ns, 0);
    assert_false(channel->tx.rate.waits);

    wf_window_grant(&channel->tx.window, 1, 1000);
    wf_batch_begin(channel);
    add(channel, &message, 1, 1000);
    assert_int_equal(flatten(channel), SCENE_PAD + 1000);
    assert_false(wf_channel_open(channel, 0));
}

/* --- what a channel tells --- */

static void test_disposals_are_told(void **state)
{
    struct scene *scene = *state;
    struct wf_channel *due = bulk_of(scene), *told = express_of(scene);
    struct wf_worker *worker = scene->crew.workers[1]; /* of the receive halves */
    due->tx.detached = false;                          /* it has not let go */
    due->rx.disposed = 4;
    due->tx.ack_sent = 3;
    told->rx.disposed = told->tx.ack_sent = 4;
    wf_list_push_back(&worker->untold, &told->rx.untold_link);
    wf_worker_drive(worker, 0);
    assert_false(told->tx.state_due); /* a frame has carried them meanwhile */
    assert_int_equal(scene->engines[0]->wakes, 0);
    wf_list_push_back(&worker->untold, &due->rx.untold_link);
    wf_worker_drive(worker, 0);
    assert_true(wf_list_empty(&worker->untold));
    assert_true(due->tx.state_due);
    assert_int_equal(scene->engines[0]->wakes, 1); /* of the worker that drives the send half */
    assert_int_equal(wf_worker_drive(scene->crew.workers[0], 0), 1);
}

static void test_retransmits_add_up(void **state)
{
    struct scene *scene = *state;
    const struct wf_session_rail *rail = &scene->lines.rails[RAIL];
    scene->retransmits = 5;
    wf_channel_note_retransmits(bulk_of(scene));
    scene->retransmits = 7;
    wf_channel_note_retransmits(bulk_of(scene));
    assert_int_equal(atomic_load(&rail->retransmits), 7);
    wf_channel_note_retransmits(express_of(scene)); /* of another descriptor */
    assert_int_equal(atomic_load(&rail->retransmits), 14);
}

#define IN_SCENE(test) cmocka_unit_test_setup_teardown(test, set_up, scene_tear_down)

/* --- the receive half --- */

static uint32_t gathers(int64_t result, int64_t gap_us, uint32_t skip, uint32_t left)
{
    struct wf_rx rx = {.op.result = result, .gap_ns = gap_us * WF_NS_PER_US, .skip = skip, .left = left};
    assert_int_equal(wf_rx_gathers(&rx, 999 * WF_NS_PER_MS), 0); /* rails are given up too soon for that */
    return wf_rx_gathers(&rx, WF_NS_PER_S);
}

static void test_what_a_sleeping_thread_waits_for(void **state)
{
    (void)state;
    assert_int_equal(gathers(4096, 33, 0, 500000), 64 * 1024); /* 1 Gbit/s */
    assert_int_equal(gathers(4096, 66, 0, 500000), 32 * 1024); /* half of it, */
    assert_int_equal(gathers(4096, 70, 0, 500000), 32 * 1024); /* or nearly */
    assert_int_equal(gathers(4096, 33, 500, 40000), 40500);    /* what is left, with its padding */
    assert_int_equal(gathers(4096, 33, 0, 4095), 0);           /* too little is left */
    assert_int_equal(gathers(1448, 1000, 0, 500000), 0);       /* a slow stream: each segment counts */
    assert_int_equal(gathers(4096, 1000, 0, 500000), 4096);
    assert_int_equal(gathers(65536, 100, 0, 500000), 0);      /* a fast one */
    assert_int_equal(gathers(65536, 0, 0, 500000), 0);        /* the clock stands */
    assert_int_equal(gathers(-ECANCELED, 33, 0, 500000), 0);  /* nothing came */
    assert_int_equal(gathers(64 << 20, 1, 0, UINT32_MAX), 0); /* no overflow */
    assert_int_equal(gathers(4096, 33, UINT32_MAX, UINT32_MAX), 64 * 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCENE(test_memory_of_a_channel),
        IN_SCENE(test_each_skips_empty_places),
        IN_SCENE(test_headers_follow_each_other),
        IN_SCENE(test_small_payloads_are_packed),
        IN_SCENE(test_packed_payloads_are_copies),
        IN_SCENE(test_payloads_in_pieces),
        IN_SCENE(test_room_for_frames),
        IN_SCENE(test_room_for_pieces),
        IN_SCENE(test_checksums_wait_for_the_post),
        IN_SCENE(test_counted_frames_are_kept),
        IN_SCENE(test_the_ring_goes_round),
        IN_SCENE(test_open),
        IN_SCENE(test_credit),
        IN_SCENE(test_acknowledgements_that_wait_in_a_queue_do_not_count),
        IN_SCENE(test_the_rate_of_bulk_channels),
        IN_SCENE(test_the_operation),
        IN_SCENE(test_restart),
        IN_SCENE(test_disposals_are_told),
        IN_SCENE(test_retransmits_add_up),
        cmocka_unit_test(test_what_a_sleeping_thread_waits_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
