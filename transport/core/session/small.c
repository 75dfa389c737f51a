#include "core/session/small.h"

#include <string.h>

#include "core/channel/channel.h"
#include "core/message/connection.h"
#include "core/message/connection_close.h"
#include "core/message/inbound.h"
#include "core/message/match.h"
#include "core/request/pieces.h"
#include "core/request/request.h"
#include "core/session/arrive.h"
#include "core/session/session.h"

/* A plain message, whole in this frame: tagged, not RESENT, without a checksum, short enough to go unsolicited, and
 * with a sender that does not wait. */
static bool is_plain(const struct wf_session *session, const struct wf_frame *frame)
{
    return frame->flags == WF_FLAG_TAGGED && frame->length == frame->total &&
           frame->total <= session->terms.limits.eager && frame->base == 0;
}

/* Is it the next message to be matched, within the windows, and has the pool room for it? It uses the pool if no
 * receive is posted, and its sender has spent credit for that room in either case. */
static bool in_turn(const struct wf_channel *channel, const struct weft_connection *connection,
                    const struct wf_frame *frame)
{
    const struct wf_session *session = wf_session_of(channel);
    uint64_t charge = wf_burst_charge(frame->total);
    return connection->state == WF_CONNECTION_OPEN && !connection->close_seen && frame->msg == connection->next_match &&
           frame->msg <= wf_connection_limit(connection) && channel->rx.disposed < channel->rx.granted_frames &&
           charge <= (uint64_t)session->desk.blocks.free * WF_BLOCK_BYTES;
}

/* Is the number new? A REFUSE may have come before the message's own frame. */
static bool is_new(struct weft_connection *connection, uint64_t number)
{
    return number > connection->highest ||
           (!wf_inbound_find(connection, number) && !wf_finished_has(&connection->finished, number));
}

static void land(struct weft_connection *connection, struct weft_request *request, const struct wf_frame *frame,
                 const uint8_t *payload)
{
    wf_match_withdraw(request);
    if (frame->length > 0 && request->pieces)
        wf_pieces_scatter(request->pieces, 0, frame->length, payload);
    else if (frame->length > 0)
        memcpy(request->buffer, payload, frame->length);
    request->tag = frame->key;
    wf_desk_settle(connection->desk, wf_burst_charge(frame->total));
    connection->next_match += 1;
    if (frame->msg > connection->highest)
        connection->highest = frame->msg;
    wf_connection_finish_number(connection, frame->msg);
    wf_request_complete(request, 0, frame->total);
}

bool wf_small_land(struct wf_channel *channel, const struct wf_frame *frame, const uint8_t *payload)
{
    struct wf_session *session = wf_session_of(channel);
    if (!is_plain(session, frame) || wf_channel_take_acknowledgement(channel, frame) < 0)
        return false;
    struct weft_connection *connection = wf_connection_find(&session->desk, frame->conn);
    if (!connection || !in_turn(channel, connection, frame) || !is_new(connection, frame->msg))
        return false;
    struct weft_request *request = wf_match_posted(connection, frame->key);
    if (request && (request->length < frame->total || request->device))
        return false;
    connection->pins += 1; /* the lock may be dropped */
    bool taken = true;
    if (request)
        land(connection, request, frame, payload);
    else
        taken = wf_match_keep_whole(connection, frame, payload);
    if (taken)
        wf_channel_dispose(channel, frame->length);
    if (taken && connection->highest > frame->msg) /* messages that came early may have waited for this one */
        wf_match_advance(connection);
    connection->pins -= 1;
    wf_connection_check(connection);
    return taken;
}
