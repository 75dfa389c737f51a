/*
 * Receiving: what comes is decrypted straight to where the poster wants it. A record that does not fit is decrypted in
 * place, and what is left of it belongs to the next RECV, which then needs no kernel.
 */
#include <errno.h>
#include <string.h>

#include "base/whole_words.h"
#include "io/seal_parts.h"
#include "io/vector.h"

static void finish_recv(struct wf_seal_engine *engine, struct wf_seal_lane *lane, int64_t result)
{
    struct wf_op *user = lane->user;
    lane->user = NULL;
    wf_seal_finish(engine, user, result);
}

static size_t recv_room(const struct wf_op *op, size_t most)
{
    size_t bytes = 0;
    for (int i = 0; i < op->iov_count && bytes < most; i++)
        bytes += op->iov[i].iov_len;
    return bytes < most ? bytes : most;
}

/* What an earlier record has left. */
static size_t take_kept(struct wf_seal_rx *rx, struct wf_op *user, size_t room)
{
    size_t left = rx->open_end - rx->open_start;
    left = left < room ? left : room;
    for (size_t bytes = left; bytes > 0;) {
        size_t piece = user->iov->iov_len < bytes ? user->iov->iov_len : bytes;
        wf_copy_whole_words(user->iov->iov_base, rx->bytes + rx->open_start, piece);
        rx->open_start += (uint32_t)piece;
        wf_vector_advance(user, piece);
        bytes -= piece;
    }
    return left;
}

/* Opens the next record, if it is there as a whole: into the poster's memory, or in place. False: nothing has come of
 * it, and rx->failed may say why. `room`: of the poster. */
static bool open_next(struct wf_seal_rx *rx, struct wf_op *user, size_t *room)
{
    const uint8_t *record = rx->bytes + rx->start;
    uint32_t there = rx->end - rx->start;
    int length = there >= WF_RECORD_HEADER ? wf_record_length(record) : 0;
    if (length < 0)
        rx->failed = length;
    if (length <= 0 || there < (uint32_t)length + WF_RECORD_OVERHEAD)
        return false;
    struct iovec kept = {rx->bytes + rx->start + WF_RECORD_HEADER, (size_t)length};
    bool fits = (size_t)length <= *room;
    rx->failed = wf_records_open(rx->records, record, (size_t)length, fits ? user->iov : &kept);
    if (rx->failed)
        return false;
    if (fits) {
        wf_vector_advance(user, (size_t)length);
        *room -= (size_t)length;
    } else {
        rx->open_start = rx->start + WF_RECORD_HEADER;
        rx->open_end = rx->open_start + (uint32_t)length;
    }
    rx->start += (uint32_t)length + WF_RECORD_OVERHEAD;
    return true;
}

/* Gives the poster what is there. */
static void take(const struct wf_seal_engine *engine, struct wf_seal_lane *lane)
{
    struct wf_seal_rx *rx = &lane->socket->rx;
    struct wf_op *user = lane->user;
    size_t room = recv_room(user, engine->call_bytes);
    do
        room -= take_kept(rx, user, room);
    while (room > 0 && rx->failed == 0 && open_next(rx, user, &room));
}

static void submit_recv(struct wf_seal_engine *engine, struct wf_seal_lane *lane)
{
    struct wf_seal_rx *rx = &lane->socket->rx;
    uint32_t most = wf_seal_call_records(engine, WF_SEAL_INPUT_RECORDS) * WF_RECORD_WIRE;
    memmove(rx->bytes, rx->bytes + rx->start, rx->end - rx->start);
    rx->end -= rx->start;
    rx->start = rx->open_start = rx->open_end = 0;
    lane->iov = (struct iovec){rx->bytes + rx->end, most < WF_SEAL_INPUT - rx->end ? most : WF_SEAL_INPUT - rx->end};
    lane->op.kind = WF_OP_RECV;
    lane->op.fd = lane->socket->fd;
    lane->op.iov = &lane->iov;
    lane->op.iov_count = 1;
    lane->op.urgent = lane->user->urgent;
    lane->op.context = lane;
    engine->inner->ops->post(engine->inner, &lane->op);
}

/* True: the operation has ended. */
static bool try_take(struct wf_seal_engine *engine, struct wf_seal_lane *lane)
{
    take(engine, lane);
    if (lane->user->moved > 0 && lane->user->urgent)
        engine->short_calls = WF_SEAL_SHORT_CALLS;
    if (lane->user->moved > 0)
        finish_recv(engine, lane, (int64_t)lane->user->moved);
    else if (lane->socket->rx.failed)
        finish_recv(engine, lane, lane->socket->rx.failed);
    return !lane->user;
}

void wf_seal_rx_start(struct wf_seal_engine *engine, struct wf_seal_lane *lane)
{
    lane->cancelling = false;
    if (wf_vector_is_empty(lane->user))
        finish_recv(engine, lane, -EINVAL); /* 0 would read as the end of the stream */
    else if (!try_take(engine, lane))
        submit_recv(engine, lane);
}

void wf_seal_rx_returned(struct wf_seal_engine *engine, struct wf_seal_lane *lane)
{
    struct wf_seal_rx *rx = &lane->socket->rx;
    int64_t result = lane->op.result;
    if (result <= 0) {
        finish_recv(engine, lane, result == 0 && rx->end > rx->start ? -ECONNRESET : result);
        return;
    }
    rx->end += (uint32_t)result;
    if (try_take(engine, lane))
        return;
    if (lane->user->kept)
        atomic_fetch_add_explicit(lane->user->kept, (uint64_t)result, memory_order_relaxed);
    if (lane->cancelling)
        finish_recv(engine, lane, -ECANCELED);
    else
        submit_recv(engine, lane);
}

void wf_seal_rx_cancel(struct wf_seal_engine *engine, struct wf_seal_lane *lane)
{
    lane->cancelling = true;
    engine->inner->ops->cancel(engine->inner, &lane->op);
}
