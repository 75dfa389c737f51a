/* The send half of a channel: gathers frames into a batch, posts it, and keeps frames until they are acknowledged. */
#include <errno.h>
#include <string.h>

#include "core/channel/batch.h"
#include "core/channel/lines.h"
#include "core/channel/ops.h"
#include "core/channel/payload.h"
#include "core/channel/traced.h"
#include "core/ground/counter.h"
#include "core/ground/reached.h"
#include "wire/crc.h"
#include "wire/pattern.h"

#define PROMPT_NS 1000000.0

/* The batch under construction: frames gathered under the lock, posted without it. */

/* Do bytes that are sent now arrive soon, not behind a long queue in the kernel? Yes with one bulk channel: there no
 * acknowledgement decides where the next bytes go. */
static bool is_prompt(const struct wf_channel *channel)
{
    const struct wf_tx *tx = &channel->tx;
    if (channel->kind != WF_CHANNEL_BULK || channel->lines->bulk_count[channel->traffic] < 2)
        return true;
    return (double)(tx->window.spent_bytes - tx->acknowledged_bytes) <= tx->rate.bytes_per_ns * PROMPT_NS;
}

/* Room for `bytes` in the batch's own memory, which goes out behind what was added last: as one piece with it, if that
 * lies there too and may grow. */
static inline uint8_t *add_own(struct wf_tx *tx, uint32_t bytes, bool grow)
{
    uint8_t *at = tx->headers + tx->used;
    struct iovec *last = tx->iov_count > 0 ? &tx->iov[tx->iov_count - 1] : NULL;
    tx->used += bytes;
    if (grow && last && (uint8_t *)last->iov_base + last->iov_len == at)
        last->iov_len += bytes;
    else
        tx->iov[tx->iov_count++] = (struct iovec){at, bytes};
    return at;
}

static void add_payload(struct wf_channel *channel, const struct wf_frame *frame, const struct wf_outbound *outbound)
{
    struct wf_tx *tx = &channel->tx;
    struct iovec *first = tx->iov + tx->iov_count;
    uint64_t covered; /* all of it: the chunk was made to fit */
    int count = channel->ops->out_places(outbound, frame->offset, frame->length, first, WF_TX_SEGMENTS - tx->iov_count,
                                         &covered);
    if (count == 1 && frame->length <= WF_PACKED_BYTES && !(frame->flags & WF_FLAG_CRC)) {
        const void *payload = first->iov_base;
        memcpy(add_own(tx, frame->length, true), payload, frame->length);
    } else {
        tx->iov_count += count;
    }
}

/* The payload goes on the payload stream, and the header says where in it. */
static void add_detached(struct wf_channel *channel, struct wf_frame *frame, const struct wf_outbound *outbound)
{
    struct wf_payload *payload = channel->payload;
    uint64_t covered;
    frame->data_off = WF_DETACHED_BYTES;
    uint8_t *at = add_own(&channel->tx, WF_DETACHED_BYTES, true);
    wf_frame_encode(frame, at);
    wf_frame_encode_position(payload->position, at + WF_FRAME_BYTES);
    payload->position += frame->length;
    const struct wf_card_loan *loan = channel->ops->loan(channel, outbound);
    payload->binding = loan ? loan->binding : 0;
    if (loan) {
        payload->lender = loan->device;
        wf_cards_sent(payload->cards, loan->device, frame->length);
    }
    payload->iov_count +=
        channel->ops->detached_places(channel, outbound, frame->offset, frame->length,
                                      payload->iov + payload->iov_count, WF_TX_SEGMENTS - payload->iov_count, &covered);
}

void wf_batch_add(struct wf_channel *channel, struct wf_frame *frame, const struct wf_outbound *outbound)
{
    struct wf_tx *tx = &channel->tx;
    tx->frame_count += 1;
    frame->ack = (uint32_t)channel->rx.disposed;
    if (is_prompt(channel)) {
        tx->ack_sent = channel->rx.disposed;
        wf_link_remove(&channel->rx.owing_link);
    }
    if (frame->length > 0 && channel->payload) {
        add_detached(channel, frame, outbound);
        return;
    }
    frame->data_off = (uint16_t)(frame->length > 0 ? tx->pad : WF_FRAME_BYTES);
    if (frame->length > 0 && channel->lines->guard->world->tuning.crc) {
        frame->flags |= WF_FLAG_CRC;
        tx->unsealed[tx->unsealed_count++] = (struct wf_unsealed){*frame, tx->iov_count};
        add_own(tx, frame->data_off, false);
    } else {
        wf_frame_encode(frame, add_own(tx, frame->data_off, true));
    }
    if (frame->length > 0)
        add_payload(channel, frame, outbound);
}

/* A retained copy and a counted place for a sequenced frame; the window is open. */
static void retain(struct wf_channel *channel, const struct wf_frame *frame, struct wf_outbound *outbound)
{
    struct wf_tx *tx = &channel->tx;
    struct wf_retained *place = &tx->retained[tx->window.spent_frames % tx->ring];
    place->frame = *frame;
    place->outbound = outbound;
    wf_window_spend(&tx->window, frame->length);
    if (channel->kind == WF_CHANNEL_EXPRESS && frame->length > channel->lines->terms->eager)
        tx->op.urgent = true; /* a brief message: its caller may not look again for long */
    if (frame->length == 0 || channel->kind != WF_CHANNEL_BULK)
        return;
    if (wf_rate_busy(&tx->rate, wf_world_now(channel->lines->guard->world)))
        atomic_store_explicit(&tx->began_ns, 0, memory_order_relaxed);
}

void wf_batch_add_sequenced(struct wf_channel *channel, struct wf_frame *frame, struct wf_outbound *outbound)
{
    retain(channel, frame, outbound);
    wf_batch_add(channel, frame, outbound);
    if (!outbound)
        return;
    channel->tx.batch[channel->tx.batch_count++] = outbound;
    struct wf_session_rail *rail = &channel->lines->rails[channel->rail];
    wf_counter_add(&rail->sent_bytes, frame->length);
}

void wf_batch_state_frame(struct wf_channel *channel, struct wf_frame *frame)
{
    *frame = (struct wf_frame){.type = WF_STATE, .key = wf_channel_key(channel->id, channel->incarnation)};
    frame->offset = channel->rx.disposed;
    wf_channel_credit(channel, &frame->total, &frame->base);
    channel->rx.granted_frames = frame->total;
    channel->tx.ack_sent = frame->offset;
    channel->tx.state_due = false;
    wf_channel_review(channel);
    wf_link_remove(&channel->rx.owing_link);
}

void wf_batch_add_pattern(struct wf_channel *channel)
{
    struct wf_payload *payload = channel->payload;
    struct wf_frame frame = {.type = WF_TRIAL};
    payload->binding = 0;
    payload->iov[payload->iov_count++] = (struct iovec){payload->trial.pattern, WF_PATTERN_BYTES};
    payload->position = WF_PATTERN_BYTES;
    wf_batch_add(channel, &frame, NULL);
}

void wf_channel_release_batch(struct wf_channel *channel)
{
    struct wf_tx *tx = &channel->tx;
    if (tx->posted_ns != 0) {
        wf_traced_batch(channel);
        tx->posted_ns = tx->ended_ns = 0;
    }
    if (tx->watched)
        channel->ops->watched(channel);
    for (int i = 0; i < tx->batch_count; i++)
        channel->ops->released(tx->batch[i]);
    tx->batch_count = 0;
}

void wf_batch_begin(struct wf_channel *channel)
{
    struct wf_tx *tx = &channel->tx;
    wf_channel_release_batch(channel);
    tx->iov_count = tx->unsealed_count = tx->frame_count = 0;
    tx->used = 0;
    tx->op.urgent = false;
    tx->op.result = -ECANCELED; /* until it is posted */
    if (channel->payload)
        channel->payload->iov_count = 0;
}

bool wf_tx_next_retired(struct wf_channel *channel, uint64_t disposed, struct wf_retained *retained)
{
    struct wf_tx *tx = &channel->tx;
    if (tx->acknowledged >= disposed)
        return false;
    *retained =
        tx->retained[tx->acknowledged % tx->ring]; /* a copy: retiring may end the message and look here again */
    tx->acknowledged += 1;
    tx->acknowledged_bytes += retained->frame.length;
    return true;
}

void wf_tx_note_rate(struct wf_channel *channel, uint64_t before)
{
    struct wf_tx *tx = &channel->tx;
    if (tx->acknowledged_bytes == before || channel->kind != WF_CHANNEL_BULK)
        return;
    wf_rate_began(&tx->rate, atomic_load_explicit(&tx->began_ns, memory_order_relaxed));
    wf_rate_acknowledged(&tx->rate, wf_world_now(channel->lines->guard->world), tx->acknowledged_bytes - before,
                         tx->acknowledged_bytes != tx->window.spent_bytes);
}

/* --- the operation --- */

/* Sums a payload and writes the header that tells the sum. The kernel reads the same bytes next. */
static void seal(struct wf_tx *tx, struct wf_unsealed *unsealed)
{
    const struct iovec *piece = &tx->iov[unsealed->at];
    uint8_t *header = piece->iov_base;
    uint32_t sum = 0;
    for (uint64_t left = unsealed->frame.length; left > 0; left -= piece->iov_len) {
        piece += 1;
        sum = wf_crc32c(sum, piece->iov_base, piece->iov_len);
    }
    unsealed->frame.payload_crc = sum;
    wf_frame_encode(&unsealed->frame, header);
}

/* An operation of the batch has ended; the batch with the last one. */
static void ended(struct wf_channel *channel, int64_t result)
{
    struct wf_tx *tx = &channel->tx;
    struct wf_guard *guard = channel->lines->guard;
    if (result < 0 && result != -ECANCELED) {
        wf_guard_lock(guard);
        WF_REACHED("channel UP: error");
        channel->ops->lost(channel, (int)result, "sending");
        wf_lines_tell(channel->lines, tx->worker);
        wf_guard_unlock(guard);
    }
    tx->under_way -= 1;
    if (tx->under_way > 0)
        return;
    if (tx->posted_ns != 0)
        tx->ended_ns = wf_world_now(guard->world);
    wf_list_push_back(&wf_lines_roster(channel->lines, tx->worker)->ended, &tx->ended_link);
    wf_channel_kick(channel, tx->worker);
}

static void sent(struct wf_task *task)
{
    struct wf_channel *channel = WF_CONTAINER(task, struct wf_channel, tx.task);
    ended(channel, channel->tx.op.result);
}

static void payload_sent(struct wf_task *task)
{
    struct wf_payload *payload = WF_CONTAINER(task, struct wf_payload, task);
    if (payload->op.copied > 0)
        wf_cards_copied(payload->cards, payload->lender, payload->op.copied);
    ended(payload->joined, payload->op.result);
}

/* The part of the batch that goes on the payload stream, if there is one. */
static void post_payload(struct wf_channel *channel)
{
    struct wf_payload *payload = channel->payload;
    if (!payload || payload->iov_count == 0)
        return;
    payload->joined = channel;
    payload->op.kind = WF_OP_SEND;
    payload->op.fd = payload->fd;
    payload->op.iov = payload->iov;
    payload->op.iov_count = payload->iov_count;
    payload->op.binding = payload->binding;
    payload->task.ended = payload_sent;
    payload->op.context = &payload->task;
    channel->tx.under_way += 1;
    channel->tx.worker->engine->ops->post(channel->tx.worker->engine, &payload->op);
}

void wf_channel_post_send(struct wf_channel *channel)
{
    struct wf_tx *tx = &channel->tx;
    tx->under_way = 1;
    for (int i = 0; i < tx->unsealed_count; i++)
        seal(tx, &tx->unsealed[i]);
    tx->op.kind = WF_OP_SEND;
    tx->op.fd = channel->fd;
    tx->op.iov = tx->iov;
    tx->op.iov_count = tx->iov_count;
    tx->task.ended = sent;
    tx->op.context = &tx->task;
    tx->op.began_ns = channel->kind == WF_CHANNEL_BULK ? &tx->began_ns : NULL;
    const struct wf_world *world = channel->lines->guard->world;
    if (wf_trace_on(&world->trace))
        tx->posted_ns = wf_world_now(world);
    post_payload(channel);
    tx->worker->engine->ops->post(tx->worker->engine, &tx->op);
}
