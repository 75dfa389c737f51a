/* The receive half of a channel: posts receives, reads headers, and brings payloads to their places. */
#include <errno.h>
#include <string.h>

#include "base/whole_words.h"
#include "core/channel/gather.h"
#include "core/channel/lines.h"
#include "core/channel/ops.h"
#include "core/channel/payload.h"
#include "core/channel/state.h"
#include "core/channel/traced.h"
#include "core/channel/work.h"
#include "core/ground/counter.h"
#include "core/ground/reached.h"
#include "mem/staging.h"
#include "wire/crc.h"

/* Receives of an express channel are urgent for so long after a small message came, because more may follow.
 * Acknowledgements and grants of large messages make none urgent: an engine cuts its large calls for urgent ones. */
#define URGENT_NS (1 * WF_NS_PER_MS)

/* Where the next bytes of the payload go: the inbound message's places, or the sink. Returns the number of pieces. */
static int payload_places(struct wf_channel *channel, uint64_t *covered)
{
    struct wf_rx *rx = &channel->rx;
    uint64_t at = rx->frame.offset + rx->frame.length - rx->left;
    if (rx->slot) {
        *covered = rx->left;
        rx->iov[0] = (struct iovec){rx->slot->memory + (at - rx->frame.offset), rx->left};
        return 1;
    }
    if (rx->claim)
        return channel->ops->in_places(rx->claim, false, at, rx->left, rx->iov, WF_RX_SEGMENTS, covered);
    *covered = 0;
    int count = 0;
    while (*covered < rx->left && count < WF_RX_SEGMENTS) {
        uint64_t piece = rx->left - *covered < WF_SINK_BYTES ? rx->left - *covered : WF_SINK_BYTES;
        rx->iov[count++] = (struct iovec){rx->worker->sink, piece};
        *covered += piece;
    }
    return count;
}

/* A claimed payload that began in the pool stays there, even if the message is matched meanwhile: it is copied at the
 * end (wf_session_payload_finish). */
static int claimed_places(struct wf_channel *channel, uint64_t *covered)
{
    struct wf_rx *rx = &channel->rx;
    if (!rx->claim || !rx->pooled)
        return payload_places(channel, covered);
    uint64_t at = rx->frame.offset + rx->frame.length - rx->left;
    return channel->ops->in_places(rx->claim, true, at, rx->left, rx->iov, WF_RX_SEGMENTS, covered);
}

/* Is the payload that is coming summed? Bytes for the sink are not. */
static bool is_summed(const struct wf_rx *rx)
{
    return rx->in_frame && rx->claim && (rx->frame.flags & WF_FLAG_CRC);
}

/* Keeps the places of a payload that is summed; one that lands in a list goes to the bounce buffer first. Returns the
 * pieces of the operation. */
static int keep_places(struct wf_channel *channel, int count, uint64_t *covered)
{
    struct wf_rx *rx = &channel->rx;
    memcpy(rx->places, rx->iov, (size_t)count * sizeof rx->places[0]);
    rx->bounced = count > 0 && !rx->pooled && !rx->slot && channel->ops->is_scattered(rx->claim);
    if (!rx->bounced)
        return count;
    if (*covered > WF_BOUNCE_BYTES)
        *covered = WF_BOUNCE_BYTES;
    rx->iov[0] = (struct iovec){rx->bounce, *covered};
    return 1;
}

static void received(struct wf_task *task);

/* Builds the next receive: the rest of the payload, then the read-ahead. Session lock held. */
static void prepare(struct wf_channel *channel)
{
    struct wf_rx *rx = &channel->rx;
    int count = 0;
    uint64_t covered = 0;
    rx->op.kind = WF_OP_RECV;
    rx->op.control = NULL;
    rx->op.gather = channel->payload ? 0 : wf_rx_gathers(rx, channel->lines->guard->world->tuning.rail_timeout_ns);
    rx->task.ended = received;
    rx->op.context = &rx->task;
    rx->op.kept = &channel->kept;
    if (channel->payload && rx->left > 0) {
        wf_payload_prepare(channel);
        return;
    }
    if (rx->left > 0 && rx->skip == 0)
        count = claimed_places(channel, &covered);
    if (is_summed(rx))
        count = keep_places(channel, count, &covered);
    rx->direct = (uint32_t)covered;
    if (covered == rx->left || rx->skip > 0)
        rx->iov[count++] = (struct iovec){rx->buffer + rx->end, rx->room - rx->end};
    rx->op.fd = channel->fd;
    rx->op.iov = rx->iov;
    rx->op.iov_count = count;
    rx->op.urgent = rx->came_ns < rx->urgent_until_ns;
}

static void post(struct wf_channel *channel)
{
    channel->rx.worker->engine->ops->post(channel->rx.worker->engine, &channel->rx.op);
}

/* Payload bytes that came with a header, in the read-ahead buffer. */
static void copy_payload(struct wf_channel *channel)
{
    struct wf_rx *rx = &channel->rx;
    while (rx->left > 0 && rx->start < rx->end) {
        uint64_t covered;
        int count = claimed_places(channel, &covered);
        for (int i = 0; i < count && rx->start < rx->end; i++) {
            uint32_t piece = rx->end - rx->start;
            if (piece > rx->iov[i].iov_len)
                piece = (uint32_t)rx->iov[i].iov_len;
            if (is_summed(rx))
                rx->sum = wf_crc32c(rx->sum, rx->buffer + rx->start, piece);
            wf_copy_whole_words(rx->iov[i].iov_base, rx->buffer + rx->start, piece);
            rx->start += piece;
            rx->left -= piece;
        }
    }
}

static void count_received(struct wf_channel *channel, uint64_t bytes)
{
    struct wf_lines *lines = channel->lines;
    wf_counter_add(&lines->rails[channel->rail].received_bytes, bytes);
    wf_counter_add(&lines->moved, bytes);
}

/* Counts a damaged frame for the rail. */
static int damaged(struct wf_channel *channel, const char *what)
{
    struct wf_lines *lines = channel->lines;
    wf_counter_add(&lines->rails[channel->rail].damaged, 1);
    channel->ops->lost(channel, -EBADMSG, what);
    return -EBADMSG;
}

/* Did a small message, whole in the buffer with its header, go the short way? */
static bool landed_whole(struct wf_channel *channel, const struct wf_frame *frame)
{
    struct wf_rx *rx = &channel->rx;
    uint32_t skip = frame->data_off - WF_FRAME_BYTES;
    if ((uint64_t)skip + frame->length > rx->end - rx->start ||
        !channel->ops->land_small(channel, frame, rx->buffer + rx->start + skip))
        return false;
    rx->start += skip + frame->length;
    count_received(channel, frame->length);
    return true;
}

/* A DATA frame begins, whose header `frame` was taken from the buffer. */
static void begin_payload(struct wf_channel *channel, const struct wf_frame *frame, int64_t head_ns)
{
    struct wf_rx *rx = &channel->rx;
    rx->skip = channel->payload ? 0 : frame->data_off - WF_FRAME_BYTES;
    rx->left = frame->length;
    rx->sum = 0;
    rx->in_frame = true;
    rx->head_ns = head_ns;
}

/* When the header that is parsed now was parsed, for the trace; 0: it is off. */
static int64_t head_time(const struct wf_channel *channel)
{
    const struct wf_world *world = channel->lines->guard->world;
    return wf_trace_on(&world->trace) ? wf_world_now(world) : 0;
}

/* The bytes that are left are the start of a header. */
static int wait_for_header(struct wf_rx *rx)
{
    memmove(rx->buffer, rx->buffer + rx->start, rx->end - rx->start);
    rx->end -= rx->start;
    rx->start = 0;
    return 0;
}

/* Does the payload of the header in the buffer begin where the payload stream is? */
static int check_position(struct wf_channel *channel, const struct wf_frame *frame)
{
    uint64_t position;
    if (frame->type != WF_DATA || !channel->payload)
        return 0;
    /* The scratch has room for a chunk, also where the payload is only drained; no sum is made of fragments. */
    if (wf_payload_is_on_trial(channel->payload) || frame->data_off != WF_DETACHED_BYTES || frame->length == 0 ||
        !channel->payload->incoming || frame->length > channel->lines->guard->world->tuning.chunk ||
        (frame->flags & WF_FLAG_CRC))
        return -EPROTO;
    if (wf_frame_decode_position(channel->rx.buffer + channel->rx.start, &position) < 0)
        return damaged(channel, "a damaged position");
    channel->rx.start += WF_DETACHED_BYTES - WF_FRAME_BYTES;
    return wf_payload_expect(channel->payload, position, frame);
}

/* Takes a header from the buffer. 1: a frame was taken; 0: not complete yet; negative: broken. */
static int next_header(struct wf_channel *channel)
{
    struct wf_rx *rx = &channel->rx;
    struct wf_frame frame;
    if (rx->end - rx->start < WF_FRAME_BYTES)
        return wait_for_header(rx);
    int result = wf_frame_decode(rx->buffer + rx->start, &frame);
    if (result == 0 && channel->payload && frame.type == WF_DATA && rx->end - rx->start < WF_DETACHED_BYTES)
        return wait_for_header(rx);
    WF_REACHED_IF(result == -EBADMSG, "channel UP: damaged header");
    if (result == -EBADMSG)
        return damaged(channel, "a damaged header");
    if (result < 0)
        return result;
    rx->start += WF_FRAME_BYTES;
    result = check_position(channel, &frame);
    if (result < 0)
        return result;
    if (frame.type == WF_DATA && channel->kind == WF_CHANNEL_EXPRESS)
        rx->urgent_until_ns = rx->came_ns + URGENT_NS;
    int64_t head_ns = frame.type == WF_DATA ? head_time(channel) : 0;
    if (frame.type == WF_DATA && !channel->payload && landed_whole(channel, &frame)) {
        if (head_ns != 0)
            wf_traced_arrival(channel, &frame, head_ns);
        return 1;
    }
    if (frame.type == WF_DATA) {
        rx->frame = frame;
        rx->claim = NULL;
    }
    result = channel->ops->take_frame(channel, &frame);
    if (result < 0)
        return result;
    if (frame.type == WF_DATA)
        begin_payload(channel, &frame, head_ns);
    return 1;
}

/* Every byte of the payload is in its place. The message counts them only if the checksum is right. */
static int finish_payload(struct wf_channel *channel)
{
    struct wf_rx *rx = &channel->rx;
    bool good = !is_summed(rx) || rx->sum == rx->frame.payload_crc;
    rx->in_frame = false;
    if (wf_payload_is_on_trial(channel->payload))
        return channel->ops->take_pattern(channel, true);
    if (!good) {
        WF_REACHED("channel UP: damaged payload");
        channel->ops->drop_claim(channel);
        return damaged(channel, "a damaged chunk (setting crc)");
    }
    count_received(channel, rx->frame.length);
    if (rx->head_ns != 0 && rx->claim) /* without a claim the bytes went to the sink */
        wf_traced_arrival(channel, &rx->frame, rx->head_ns);
    channel->ops->finish_payload(channel);
    return 0;
}

/* Works through the buffer until more bytes are needed. Session lock held. */
static int parse(struct wf_channel *channel)
{
    struct wf_rx *rx = &channel->rx;
    while (!rx->held) {
        uint32_t there = rx->end - rx->start;
        uint32_t skip = rx->skip < there ? rx->skip : there;
        rx->skip -= skip;
        rx->start += skip;
        if (rx->skip == 0 && !channel->payload)
            copy_payload(channel);
        if (rx->start == rx->end)
            rx->start = rx->end = 0;
        if (rx->skip > 0 || rx->left > 0)
            return 0;
        int result = rx->in_frame ? finish_payload(channel) : 0;
        if (rx->held)
            return result;
        if (result == 0)
            result = next_header(channel);
        if (result <= 0)
            return result;
    }
    return 0;
}

void wf_channel_dispose(struct wf_channel *channel, uint32_t bytes)
{
    struct wf_rx *rx = &channel->rx;
    rx->disposed += 1;
    rx->disposed_bytes += bytes;
    if (!wf_link_in_list(&rx->owing_link))
        wf_list_push_back(&channel->lines->owing, &rx->owing_link);
}

/* Tells the peer of disposals when a quarter of the window is used, or when it waits for the end of a message. */
static void note_disposals(struct wf_channel *channel)
{
    struct wf_rx *rx = &channel->rx;
    uint64_t frames, bytes;
    wf_channel_credit(channel, &frames, &bytes);
    uint64_t quarter = (frames - rx->disposed) / 4;
    if (frames - rx->granted_frames >= (quarter ? quarter : 1))
        wf_channel_tell_state(channel);
    bool awaited = channel->kind != WF_CHANNEL_EXPRESS; /* sends of small messages have completed already */
    if (rx->disposed != channel->tx.ack_sent && !wf_link_in_list(&rx->untold_link))
        wf_list_push_back(awaited ? &rx->worker->awaited : &rx->worker->untold, &rx->untold_link);
}

static void note_bytes(struct wf_channel *channel, uint64_t bytes)
{
    struct wf_rx *rx = &channel->rx;
    uint64_t direct = bytes < rx->direct ? bytes : rx->direct;
    rx->left -= (uint32_t)direct;
    rx->end += (uint32_t)(bytes - direct);
}

/* The stream ended: fine after BYE, a lost channel otherwise. Session lock held. */
static void end_of_stream(struct wf_channel *channel)
{
    wf_channel_ended(channel);
    WF_REACHED_IF(channel->bye_seen, "channel CLOSING: end of the peer's stream");
    WF_REACHED_IF(!channel->bye_seen, "channel UP: end of the peer's stream");
    if (!channel->bye_seen)
        channel->ops->lost(channel, -ECONNRESET, "the peer closed the connection");
}

/* Sums the payload bytes that a receive has just brought, while they are in the cache and no lock is held. */
static void sum_received(struct wf_rx *rx)
{
    if (!is_summed(rx) || rx->op.result <= 0)
        return;
    uint64_t left = (uint64_t)rx->op.result < rx->direct ? (uint64_t)rx->op.result : rx->direct;
    const uint8_t *bounced = rx->bounce;
    if (rx->bounced)
        rx->sum = wf_crc32c(rx->sum, bounced, left);
    for (const struct iovec *place = rx->places; left > 0; place++) {
        uint64_t piece = place->iov_len < left ? place->iov_len : left;
        if (rx->bounced)
            memcpy(place->iov_base, bounced, piece);
        else
            rx->sum = wf_crc32c(rx->sum, place->iov_base, piece);
        bounced += piece;
        left -= piece;
    }
}

/* Payload has come on the payload stream. */
static int take_fragments(struct wf_channel *channel, uint64_t bytes)
{
    int result = wf_payload_take(channel, bytes);
    WF_REACHED_IF(result == -EOPNOTSUPP, "channel UP: its inlet is left");
    bool full = result == 0 && bytes < channel->rx.left && wf_payload_is_full(channel->payload);
    if (full && channel->rx.claim)
        result = channel->ops->land_part(channel);
    else if (full && wf_payload_is_on_trial(channel->payload))
        result = channel->ops->take_pattern(channel, false);
    if (result == 0 && channel->rx.claim && bytes < channel->rx.left && wf_payload_is_behind(channel->payload))
        wf_channel_hold(channel, true);
    return result;
}

static const char *what_broke(int result)
{
    return result == -ENOMEM ? "taking in a frame" : "a frame that breaks the protocol";
}

static void digest(struct wf_channel *channel, int64_t result)
{
    if (result == -ECANCELED)
        result = 0;
    else if (result == 0)
        end_of_stream(channel);
    if (result == -EBADMSG) {
        WF_REACHED("channel UP: damaged record");
        damaged(channel, "a record that does not open (setting encrypt)");
        return;
    }
    if (result < 0) {
        WF_REACHED("channel UP: error");
        channel->ops->lost(channel, (int)result, "receiving");
        return;
    }
    int broken = result > 0 && channel->rx.op.control ? take_fragments(channel, (uint64_t)result) : 0;
    if (broken < 0) {
        channel->ops->lost(channel, broken, "fragments of device memory");
        return;
    }
    note_bytes(channel, (uint64_t)result);
    if (channel->rx.redirect)
        channel->ops->drop_claim(channel);
    broken = parse(channel);
    WF_REACHED_IF(broken == -EPROTO, "channel UP: frame against the protocol");
    if (broken < 0)
        channel->ops->lost(channel, broken, what_broke(broken));
    note_disposals(channel);
}

/* Posts the next receive, if there is to be one. Unlocks the session. */
static void go_on(struct wf_channel *channel)
{
    struct wf_rx *rx = &channel->rx;
    struct wf_lines *lines = channel->lines;
    channel->ops->worked_through(channel);
    if (rx->redirect) /* the message was refused while notifications were copied */
        channel->ops->drop_claim(channel);
    bool ends = channel->kill || rx->ended, more = !ends && !rx->held;
    if (more)
        prepare(channel);
    else if (ends)
        wf_channel_rx_due(channel);
    lines->guard->ops->kick(lines->guard, rx->worker);
    wf_guard_unlock(lines->guard);
    if (more)
        post(channel);
}

static void received(struct wf_task *task)
{
    struct wf_channel *channel = WF_CONTAINER(task, struct wf_channel, rx.task);
    struct wf_lines *lines = channel->lines;
    int64_t result = channel->rx.op.result;
    sum_received(&channel->rx);
    wf_guard_lock(lines->guard);
    int64_t before_ns = channel->rx.came_ns;
    channel->rx.came_ns = wf_world_now(lines->guard->world);
    channel->rx.gap_ns = channel->rx.came_ns - before_ns;
    wf_guard_batch(lines->guard, channel->rx.came_ns);
    if (result > 0) {
        atomic_store_explicit(&lines->heard_ns, channel->rx.came_ns, memory_order_relaxed);
        wf_counter_add(&channel->heard, (uint64_t)result);
        if (channel->payload && !channel->payload->incoming && wf_payload_is_on_trial(channel->payload))
            wf_channel_tx_due(channel); /* the pattern waits for a sign of the peer */
    }
    digest(channel, result);
    wf_guard_batch(lines->guard, 0);
    go_on(channel);
}

void wf_channel_resume(struct wf_channel *channel)
{
    struct wf_rx *rx = &channel->rx;
    wf_guard_lock(channel->lines->guard);
    bool waits = rx->held && !channel->kill && !wf_payload_is_on_trial(channel->payload);
    if (waits) {
        wf_channel_hold(channel, false);
        bool placed = channel->payload && (rx->claim || !rx->in_frame); /* or there is nothing to place */
        int broken = placed ? 0 : channel->ops->place_payload(channel);
        if (broken < 0)
            channel->ops->lost(channel, broken, what_broke(broken));
    }
    if (waits && !rx->held) {
        digest(channel, -ECANCELED); /* works through the bytes that are in the buffer already */
        go_on(channel);
    } else {
        wf_guard_unlock(channel->lines->guard);
    }
}

void wf_channel_start_rx(struct wf_channel *channel)
{
    wf_guard_lock(channel->lines->guard);
    channel->rx.started = true;
    prepare(channel);
    wf_guard_unlock(channel->lines->guard);
    post(channel);
}

void wf_channel_redirect(struct wf_channel *channel)
{
    struct wf_rx *rx = &channel->rx;
    if (rx->op.posted) /* the receive comes back, and is posted again for the sink */
        rx->worker->engine->ops->cancel(rx->worker->engine, &rx->op);
}

void wf_channels_tell(struct wf_worker *worker, struct wf_list *untold)
{
    struct wf_link *link;
    while ((link = wf_list_pop_front(untold))) {
        struct wf_channel *channel = WF_CONTAINER(link, struct wf_channel, rx.untold_link);
        struct wf_guard *guard = channel->lines->guard;
        wf_guard_lock(guard);
        if (channel->rx.disposed != channel->tx.ack_sent) {
            wf_channel_tell_state(channel);
            wf_lines_tell(channel->lines, worker);
        }
        wf_guard_unlock(guard);
    }
}
