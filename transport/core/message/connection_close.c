#include "core/message/connection_close.h"

#include <errno.h>

#include "core/device/turn.h"
#include "core/ground/reached.h"
#include "core/message/inbound.h"
#include "core/message/match.h"
#include "core/message/outbound.h"
#include "core/request/book.h"
#include "core/request/request.h"

static void end_posted(struct weft_connection *connection, int status)
{
    WF_LIST_EACH (link, following, &connection->desk->book->requests) {
        struct weft_request *request = WF_CONTAINER(link, struct weft_request, link);
        bool receiving = request->kind == WF_REQUEST_RECV || request->kind == WF_REQUEST_NOTE;
        bool to_come = request->kind == WF_REQUEST_NOTE && wf_match_notes_to_come(connection);
        if (request->connection != connection || !receiving)
            continue;
        if ((!request->inbound && !to_come) || status == -ECANCELED)
            wf_request_cancel(request, status);
    }
}

static void refuse_list(struct wf_list *list)
{
    while (!wf_list_empty(list)) {
        WF_REACHED("incoming message UNMATCHED: connection closed");
        struct wf_inbound *inbound = WF_CONTAINER(wf_list_first(list), struct wf_inbound, order_link);
        wf_inbound_refuse(inbound, -ESHUTDOWN);
        wf_inbound_check(inbound);
    }
}

static void refuse_unmatched(struct weft_connection *connection)
{
    refuse_list(&connection->unexpected);
    refuse_list(&connection->notes);
    refuse_list(&connection->early_notes);
}

/* Ends messages of this side that are not introduced. Messages with a number stay until the peer has answered their
 * REFUSE. */
static void drop_pending(struct weft_connection *connection, int status)
{
    struct wf_list *lists[] = {&connection->unlisted, &connection->writes, &connection->pending};
    for (int i = 0; i < 3; i++) {
        struct wf_link *link = wf_list_first(lists[i]);
        while (link) {
            struct wf_outbound *outbound = WF_CONTAINER(link, struct wf_outbound, queue_link);
            bool kept = outbound->refused || outbound->number != 0;
            if (!kept)
                wf_outbound_refuse(outbound, status);
            struct wf_link *next = kept ? link->next : lists[i]->head.next;
            link = next == &lists[i]->head ? NULL : next;
        }
    }
}

/* Ends writes and reads that wait for their turn in a stream: they are in no list of drop_pending() yet. */
static void drop_parked(struct weft_connection *connection, int status)
{
    WF_LIST_EACH (link, following, &connection->desk->book->requests) {
        struct weft_request *request = WF_CONTAINER(link, struct weft_request, link);
        bool parked = request->turn && !request->turn->come && wf_request_one_sided(request);
        if (request->connection == connection && parked)
            wf_request_cancel(request, status);
    }
}

/* Ends the connection's first message in the bucket that still has bytes to send; others there may end with it. */
static bool refuse_one(struct weft_connection *connection, struct wf_list *bucket, int status)
{
    WF_LIST_EACH (link, following, bucket) {
        struct wf_outbound *outbound = WF_CONTAINER(link, struct wf_outbound, hash_link);
        bool open = outbound->next < outbound->total && !outbound->stopped && outbound->kind != WF_OUTBOUND_READ;
        if (outbound->connection == connection && open) {
            wf_outbound_refuse(outbound, status);
            return true;
        }
    }
    return false;
}

/* Ends all sends of this side on the connection, introduced or not. */
static void refuse_sends(struct weft_connection *connection, int status)
{
    WF_LIST_EACH (link, following, &connection->desk->book->requests) {
        struct weft_request *request = WF_CONTAINER(link, struct weft_request, link);
        bool own =
            request->kind == WF_REQUEST_SEND || request->kind == WF_REQUEST_NOTIFY || wf_request_one_sided(request);
        if (request->connection == connection && own)
            wf_request_cancel(request, status);
    }
    drop_pending(connection, status);                               /* copied ones have no request any more */
    for (uint32_t i = 0; i < connection->desk->outbounds.size; i++) /* nor have copied ones that were only offered */
        while (refuse_one(connection, &connection->desk->outbounds.lists[i], status))
            ;
}

void wf_connection_abort_and_close(struct weft_connection *connection)
{
    connection->pins += 1;
    connection->waiting = NULL;
    refuse_sends(connection, -ECANCELED);
    wf_connection_start_close(connection);
    connection->pins -= 1;
    wf_connection_check(connection);
}

static void enter_closing(struct weft_connection *connection)
{
    connection->desk->closes += connection->state != WF_CONNECTION_CLOSING;
    connection->state = WF_CONNECTION_CLOSING;
}

void wf_connection_start_close(struct weft_connection *connection)
{
    WF_REACHED_IF(connection->state == WF_CONNECTION_OPENING, "connection OPENING: given up");
    WF_REACHED_IF(connection->state == WF_CONNECTION_OPEN, "connection OPEN: closed by this side");
    connection->pins += 1;
    enter_closing(connection);
    end_posted(connection, -ECANCELED);
    refuse_unmatched(connection);
    connection->pins -= 1;
    wf_connection_check(connection);
}

int wf_connection_take_close(struct wf_desk *desk, const struct wf_frame *frame)
{
    struct weft_connection *connection = wf_connection_find(desk, frame->conn);
    if (!connection)
        return wf_connection_was_closed(desk, frame->conn) ? 0 : -EPROTO;
    if (connection->close_seen)
        return 0;
    WF_REACHED_IF(connection->state == WF_CONNECTION_OPEN, "connection OPEN: CLOSE of the peer");
    connection->pins += 1;
    wf_connection_opened(connection);
    wf_match_notes(desk); /* notifications that came before CLOSE are still delivered */
    connection->close_seen = true;
    connection->close_waits = connection->advancing > 0;
    if (!connection->close_waits)
        wf_connection_peer_closed(connection);
    connection->pins -= 1;
    wf_connection_check(connection);
    return 0;
}

void wf_connection_peer_closed(struct weft_connection *connection)
{
    connection->close_waits = false;
    /* Every message of the peer is here or refused: a posted receive without a match can wait for nothing but a
     * notification whose operation has not ended here. */
    end_posted(connection, -ESHUTDOWN);
    /* Introduced messages stay: the peer acknowledges or refuses each. CLOSE may overtake that on another channel. */
    drop_pending(connection, -ESHUTDOWN);
    drop_parked(connection, -ESHUTDOWN);
    /* The user has not accepted it. If something has come on it, it can still be accepted. */
    bool unread = !wf_list_empty(&connection->unexpected) || wf_match_notes_to_come(connection);
    if (!connection->held && !unread && connection->state != WF_CONNECTION_CLOSING) {
        wf_link_remove(&connection->accept_link);
        enter_closing(connection);
    }
}

int wf_connection_take_closed(struct wf_desk *desk, const struct wf_frame *frame)
{
    struct weft_connection *connection = wf_connection_find(desk, frame->conn);
    if (!connection)
        return wf_connection_was_closed(desk, frame->conn) ? 0 : -EPROTO;
    if (!connection->close_sent)
        return -EPROTO;
    desk->closes -= !connection->closed_seen;
    connection->closed_seen = true;
    if (connection->waiting) {
        struct weft_request *request = connection->waiting;
        connection->waiting = NULL;
        wf_request_complete(request, 0, 0);
    }
    wf_connection_check(connection);
    return 0;
}

/* The last message may have ended with its send operation, at a worker that has no express channel. */
static void frame_due(struct weft_connection *connection)
{
    wf_connection_todo(connection);
    wf_guard_stir(connection->desk->guard);
}

void wf_connection_step(struct weft_connection *connection)
{
    if (connection->outbounds == 0) {
        if (connection->state == WF_CONNECTION_CLOSING && connection->known && !connection->close_sent &&
            !connection->close_due) {
            connection->close_due = true;
            frame_due(connection);
        }
        if (connection->close_seen && !connection->closed_sent && !connection->closed_due) {
            connection->closed_due = true;
            frame_due(connection);
        }
    }
    bool over = connection->closed_seen && connection->closed_sent && !connection->held && connection->outbounds == 0 &&
                connection->inbounds == 0;
    if (!over)
        return;
    WF_REACHED("connection CLOSING: CLOSE and CLOSED both sent and received");
    wf_connection_over(connection);
}
