/* weft_sendv() and weft_recvv(): one message whose memory is in many places. */
#include <errno.h>

#include "core/calls/context.h"
#include "core/calls/post.h"
#include "core/device/device.h"
#include "core/ground/refusal.h"
#include "core/request/pieces.h"
#include "core/session/session.h"

/* Copies the vector into `posting`, without its empty entries. */
static int gather(const struct iovec *iov, int count, struct wf_posting *posting)
{
    uintptr_t low = UINTPTR_MAX, high = 0;
    if (count < 0 || count > WEFT_IOV_MAX)
        return wf_fail(wf_refusal(), count < 0 ? -EINVAL : -E2BIG, "count is %d: give 0 to %d entries", count,
                       WEFT_IOV_MAX);
    if (count > 0 && !iov)
        return wf_fail(wf_refusal(), -EINVAL, "iov is NULL, and count %d: give the entries, or a count of 0", count);
    struct wf_pieces *pieces = posting->pieces = wf_pieces_create((uint32_t)count, false);
    if (!pieces)
        return -ENOMEM;
    for (int i = 0; i < count; i++) {
        uintptr_t start = (uintptr_t)iov[i].iov_base;
        if (iov[i].iov_len == 0)
            continue;
        if (start == 0 || start + iov[i].iov_len < start)
            return wf_fail(wf_refusal(), -EINVAL, "iov[%d] is %zu bytes at %p: give memory, or a length of 0", i,
                           iov[i].iov_len, iov[i].iov_base);
        if (iov[i].iov_len > INT64_MAX - pieces->total)
            return wf_fail(wf_refusal(), -EINVAL, "iov[0] to iov[%d] have more than %lld bytes together", i,
                           (long long)INT64_MAX);
        wf_pieces_add(pieces, iov[i].iov_base, iov[i].iov_len);
        low = start < low ? start : low;
        high = start + iov[i].iov_len > high ? start + iov[i].iov_len : high;
    }
    posting->length = pieces->total;
    posting->span = (void *)low;
    posting->span_bytes = pieces->total > 0 ? high - low : 0;
    return 0;
}

/* A vector of one piece, or of none, is a plain message. */
static void make_plain(struct wf_posting *posting)
{
    if (posting->pieces->count > 1)
        return;
    posting->buffer = posting->pieces->count > 0 ? posting->pieces->piece[0].at : NULL;
    wf_pieces_release(posting->pieces);
    posting->pieces = NULL;
}

int wf_vector_check(struct weft_context *context, struct wf_posting *posting)
{
    const struct wf_pieces *pieces = posting->pieces;
    struct wf_message_memory *memory = &posting->memory;
    if (memory->registration || !wf_devices_any(&context->devices))
        return 0;
    for (uint32_t i = 0; i < pieces->count; i++)
        if (wf_devices_own(&context->devices, pieces->piece[i].at))
            return wf_fail(
                wf_refusal(), -ENOTSUP,
                "%p is GPU memory, and no registration has all pieces: give pieces of host memory, or of one "
                "registration",
                (void *)pieces->piece[i].at);
    return 0;
}

static int post_vector(struct wf_posting *posting, const struct iovec *iov, int count,
                       int (*post)(struct wf_posting *posting, struct weft_request **out), struct weft_request **out)
{
    int result = gather(iov, count, posting);
    if (result == 0) {
        make_plain(posting);
        result = post(posting, out);
    } else {
        wf_pieces_release(posting->pieces);
    }
    return result;
}

int weft_sendv(struct weft_connection *connection, const struct iovec *iov, int count, uint64_t tag,
               const struct weft_options *options, struct weft_request **out)
{
    if (WF_IS_NULL(wf_refusal(), connection) || WF_IS_NULL(wf_refusal(), out))
        return -EINVAL;
    struct wf_posting posting = {.connection = connection, .tag = tag, .options = options};
    int result = post_vector(&posting, iov, count, wf_post_send, out);
    return result < 0 ? wf_refused(__func__, result) : 0;
}

int weft_recvv(struct weft_connection *connection, const struct iovec *iov, int count, uint64_t tag,
               const struct weft_options *options, struct weft_request **out)
{
    if (WF_IS_NULL(wf_refusal(), connection) || WF_IS_NULL(wf_refusal(), out))
        return -EINVAL;
    struct wf_posting posting = {.connection = connection, .tag = tag, .options = options};
    int result = post_vector(&posting, iov, count, wf_post_receive, out);
    return result < 0 ? wf_refused(__func__, result) : 0;
}
