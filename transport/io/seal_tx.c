/*
 * Sending: bytes are encrypted into a batch of records, once, and the batch is kept until the kernel has taken all of
 * it, whatever becomes of the operation they came with. While one batch waits for the peer, the next is encrypted.
 */
#include <errno.h>

#include "io/seal_parts.h"
#include "io/vector.h"

static struct wf_seal_batch *first_of(struct wf_seal_tx *tx)
{
    return &tx->batches[tx->first];
}

static void drop_first(struct wf_seal_tx *tx)
{
    tx->first = (tx->first + 1) % WF_SEAL_BATCHES;
    tx->count -= 1;
}

static bool has_more(const struct wf_seal_lane *lane)
{
    return lane->user && lane->user->iov_count > 0;
}

static void finish_send(struct wf_seal_engine *engine, struct wf_seal_lane *lane, int64_t result)
{
    struct wf_op *user = lane->user;
    lane->user = NULL;
    wf_link_remove(&lane->link);
    wf_seal_finish(engine, user, result);
}

/* Drops `bytes` from the front of the poster's vector: they are in a batch. They have not moved yet. */
static void consume(struct wf_op *user, size_t bytes)
{
    uint64_t moved = user->moved;
    wf_vector_advance(user, bytes);
    user->moved = moved;
}

static size_t bytes_to_send(const struct wf_op *op, size_t most)
{
    size_t bytes = 0;
    for (int i = 0; i < op->iov_count && bytes < most; i++)
        bytes += op->iov[i].iov_len;
    return bytes < most ? bytes : most;
}

/* The front of the poster's vector becomes one more batch. 0, or the error that the direction ends in. */
static int encrypt(struct wf_seal_engine *engine, struct wf_seal_lane *lane)
{
    struct wf_seal_tx *tx = &lane->socket->tx;
    struct wf_seal_batch *batch = &tx->batches[(tx->first + tx->count) % WF_SEAL_BATCHES];
    size_t most = (size_t)wf_seal_call_records(engine, WF_SEAL_BATCH_RECORDS) * WF_RECORD_MAX;
    size_t left = bytes_to_send(lane->user, most < engine->call_bytes ? most : engine->call_bytes);
    batch->wire = batch->gone = batch->plain = 0;
    batch->told = false;
    while (left > 0 && tx->failed == 0) {
        size_t piece = left < WF_RECORD_MAX ? left : WF_RECORD_MAX;
        tx->failed = wf_records_seal(tx->records, lane->user->iov, piece, batch->bytes + batch->wire);
        consume(lane->user, piece);
        batch->wire += (uint32_t)(piece + WF_RECORD_OVERHEAD);
        batch->plain += (uint32_t)piece;
        left -= piece;
    }
    tx->count += tx->failed == 0;
    return tx->failed;
}

/* The first batch, to the inner engine. */
static void submit_batch(struct wf_seal_engine *engine, struct wf_seal_lane *lane)
{
    struct wf_seal_batch *batch = first_of(&lane->socket->tx);
    lane->iov = (struct iovec){batch->bytes + batch->gone, batch->wire - batch->gone};
    lane->op.kind = WF_OP_SEND;
    lane->op.fd = lane->socket->fd;
    lane->op.iov = &lane->iov;
    lane->op.iov_count = 1;
    lane->op.urgent = lane->user && lane->user->urgent;
    lane->op.context = lane;
    engine->inner->ops->post(engine->inner, &lane->op);
    if (!lane->op.finished && has_more(lane) && !wf_link_in_list(&lane->link))
        wf_list_push_back(&engine->ahead, &lane->link);
}

/* No byte of a cancelled SEND is left: a shutdown that waited for it happens now. */
static void left_nothing(struct wf_seal_engine *engine, struct wf_seal_lane *lane)
{
    struct wf_seal_tx *tx = &lane->socket->tx;
    if ((atomic_load_explicit(&tx->ending, memory_order_relaxed) & WF_SEAL_LEFT) &&
        atomic_fetch_and(&tx->ending, ~WF_SEAL_LEFT) == (WF_SEAL_LEFT | WF_SEAL_SHUT))
        wf_around_shutdown(engine->seal, lane->socket->fd);
}

/* The inner engine has nothing of this direction. */
static void go_on_sending(struct wf_seal_engine *engine, struct wf_seal_lane *lane)
{
    struct wf_seal_tx *tx = &lane->socket->tx;
    if (tx->count == 0 && has_more(lane) && encrypt(engine, lane) < 0)
        finish_send(engine, lane, tx->failed);
    else if (tx->count > 0)
        submit_batch(engine, lane);
    else if (lane->user)
        finish_send(engine, lane, (int64_t)lane->user->moved);
    if (tx->count == 0)
        left_nothing(engine, lane);
}

void wf_seal_tx_start(struct wf_seal_engine *engine, struct wf_seal_lane *lane)
{
    struct wf_seal_tx *tx = &lane->socket->tx;
    if (wf_vector_is_empty(lane->user))
        finish_send(engine, lane, 0);
    else if (tx->failed)
        finish_send(engine, lane, tx->failed);
    else if (!lane->op.posted)
        go_on_sending(engine, lane);
    else /* something of a cancelled operation is on its way */
        wf_list_push_back(&engine->ahead, &lane->link);
}

void wf_seal_tx_ahead(struct wf_seal_engine *engine, struct wf_seal_lane *lane)
{
    struct wf_seal_tx *tx = &lane->socket->tx;
    wf_link_remove(&lane->link);
    if (tx->failed == 0 && has_more(lane) && tx->count < WF_SEAL_BATCHES)
        (void)encrypt(engine, lane); /* if it fails, the operation ends with what is on its way */
}

/* --- back from it --- */

/* What the kernel has taken of whole records, before encryption. */
static uint32_t plain_gone(const struct wf_seal_batch *batch)
{
    uint32_t whole = batch->gone / WF_RECORD_WIRE * WF_RECORD_MAX;
    return batch->gone == batch->wire ? batch->plain : whole;
}

/* The connection is lost, and with it what is in the batches. */
static void fail_batches(struct wf_seal_engine *engine, struct wf_seal_lane *lane, int result)
{
    struct wf_seal_tx *tx = &lane->socket->tx;
    if (lane->user && !first_of(tx)->told)
        lane->user->moved += plain_gone(first_of(tx));
    tx->failed = result;
    tx->count = 0;
    if (lane->user)
        finish_send(engine, lane, result);
    left_nothing(engine, lane);
}

void wf_seal_tx_returned(struct wf_seal_engine *engine, struct wf_seal_lane *lane)
{
    struct wf_seal_tx *tx = &lane->socket->tx;
    struct wf_seal_batch *batch = first_of(tx);
    batch->gone += (uint32_t)lane->op.moved;
    if (lane->op.result == -ECANCELED && !lane->user) /* the descriptor is being detached: it stays where it is */
        return;
    if (lane->op.result < 0) {
        fail_batches(engine, lane, (int)lane->op.result);
        return;
    }
    if (lane->user && !batch->told)
        lane->user->moved += batch->plain;
    drop_first(tx);
    if (tx->failed && lane->user)
        finish_send(engine, lane, tx->failed);
    go_on_sending(engine, lane);
}

/* What is encrypted has been taken from the poster for good, and leaves. */
void wf_seal_tx_cancel(struct wf_seal_engine *engine, struct wf_seal_lane *lane)
{
    struct wf_seal_tx *tx = &lane->socket->tx;
    for (int i = 0; i < tx->count; i++) {
        struct wf_seal_batch *batch = &tx->batches[(tx->first + i) % WF_SEAL_BATCHES];
        if (!batch->told)
            lane->user->moved += batch->plain;
        batch->told = true;
    }
    if (tx->count > 0)
        atomic_fetch_or(&tx->ending, WF_SEAL_LEFT);
    finish_send(engine, lane, -ECANCELED);
}
