#include "core/message/match.h"

#include <errno.h>

#include "core/device/turn.h"
#include "core/ground/holders.h"
#include "core/ground/reached.h"
#include "core/message/any.h"
#include "core/message/connection.h"
#include "core/message/connection_close.h"
#include "core/message/desk.h"
#include "core/message/direct.h"
#include "core/message/inbound.h"
#include "core/message/inbound_parts.h"
#include "core/message/stage.h"
#include "core/request/pieces.h"
#include "core/request/request.h"

static struct weft_request *request_of(struct wf_link *link)
{
    return link ? WF_CONTAINER(link, struct weft_request, match_link) : NULL;
}

/* The first receive posted for exactly this tag. */
static struct weft_request *posted_for(struct weft_connection *connection, uint64_t tag)
{
    struct wf_list *list = wf_table_list(&connection->desk->posted, wf_hash(connection->number, tag));
    WF_LIST_EACH (link, following, list) {
        struct weft_request *request = request_of(link);
        if (request->connection == connection && request->tag == tag)
            return request;
    }
    return NULL;
}

static uint64_t mask_of(const struct weft_request *request)
{
    return wf_match_mask(request->flags, request->tag_mask);
}

static bool agree(uint64_t tag, uint64_t other, uint64_t mask)
{
    return ((tag ^ other) & mask) == 0;
}

bool wf_match_takes(const struct weft_request *request, uint64_t tag)
{
    return agree(request->tag, tag, mask_of(request));
}

struct weft_request *wf_match_posted(struct weft_connection *connection, uint64_t tag)
{
    struct weft_request *exact = posted_for(connection, tag);
    WF_LIST_EACH (link, following, &connection->posted_masked) {
        struct weft_request *request = request_of(link);
        if (exact && exact->order < request->order)
            break;
        if (wf_match_takes(request, tag))
            return request;
    }
    return exact;
}

struct wf_inbound *wf_match_waiting(struct weft_connection *connection, uint64_t tag, uint64_t mask)
{
    if (mask == WF_MASK_EXACT) {
        struct wf_list *list = wf_table_list(&connection->desk->unexpected, wf_hash(connection->number, tag));
        WF_LIST_EACH (link, following, list) {
            struct wf_inbound *inbound = WF_CONTAINER(link, struct wf_inbound, tag_link);
            if (inbound->connection == connection && inbound->tag == tag)
                return inbound;
        }
        return NULL;
    }
    WF_LIST_EACH (link, following, &connection->unexpected) {
        struct wf_inbound *inbound = WF_CONTAINER(link, struct wf_inbound, order_link);
        if (agree(inbound->tag, tag, mask))
            return inbound;
    }
    return NULL;
}

static struct wf_inbound *message_for(const struct weft_request *request)
{
    struct weft_connection *connection = request->connection;
    if (request->kind == WF_REQUEST_NOTE) {
        /* Receives that were posted earlier take the notifications first. */
        struct wf_link *first = wf_list_empty(&connection->posted_notes) ? wf_list_first(&connection->notes) : NULL;
        return first ? WF_CONTAINER(first, struct wf_inbound, order_link) : NULL;
    }
    return wf_match_waiting(connection, request->tag, mask_of(request));
}

void wf_match_withdraw(struct weft_request *request)
{
    wf_link_remove(&request->match_link);
}

/* wf_match_notes() will see what is to be done about the receives for notifications. */
static void look_at_notes(struct weft_connection *connection)
{
    if (!wf_list_empty(&connection->posted_notes) && !wf_link_in_list(&connection->notes_link))
        wf_list_push_back(&connection->desk->notes_due, &connection->notes_link);
}

void wf_match_remove(struct wf_inbound *inbound)
{
    struct weft_connection *connection = inbound->connection;
    wf_link_remove(&inbound->tag_link);
    wf_link_remove(&inbound->order_link);
    if (connection->in_line && wf_list_empty(&connection->unexpected))
        wf_any_leave_line(connection);
    if (inbound->kind == WF_INBOUND_NOTE && connection->close_seen)
        look_at_notes(connection); /* it may have been the last one to come */
}

/* The message is matched and its receive's memory may be written: asks for the rest, lands the bytes that are here. */
static void go_on(struct wf_inbound *inbound)
{
    /* A session that fails meanwhile waits for the copy below, as for a half, before it completes the request. */
    struct wf_desk *desk = inbound->connection->desk;
    wf_guard_hold(desk->guard);
    if (inbound->total > inbound->burst && inbound->device)
        wf_stage_in_begin(inbound);
    if (inbound->total > inbound->burst && !wf_direct_ask(inbound)) {
        inbound->grant_due = true;
        wf_inbound_todo(inbound);
    }
    wf_inbound_land(inbound);
    wf_inbound_check(inbound);
    wf_guard_let_go(desk->guard);
}

/* A receive that is too small for the message ends. The message keeps its place: the next receive for it gets it. */
static bool ended_as_too_small(const struct wf_inbound *inbound, struct weft_request *request)
{
    if (request->length >= inbound->total)
        return false;
    WF_REACHED("incoming message UNMATCHED: a receive that is too small");
    request->tag = inbound->tag;
    wf_match_withdraw(request);
    wf_request_complete(request, -EMSGSIZE, inbound->total);
    return true;
}

/* Matches the message and a receive that has room for it. Both may be gone afterwards. May drop the lock. */
static void join(struct wf_inbound *inbound, struct weft_request *request)
{
    wf_match_remove(inbound);
    wf_match_withdraw(request);
    WF_REACHED_IF(request->kind == WF_REQUEST_RECV, "incoming message UNMATCHED: a receive for its tag");
    WF_REACHED_IF(request->kind == WF_REQUEST_NOTE,
                  "incoming message UNMATCHED: a receive for a notification, and what it announces has ended");
    inbound->state = WF_INBOUND_MATCHED;
    inbound->request = request;
    inbound->watched = request->watcher;
    inbound->place = request->buffer;
    inbound->pieces = request->pieces;
    if (inbound->pieces)
        wf_pieces_hold(inbound->pieces);
    inbound->device = request->device;
    request->inbound = inbound;
    if (request->turn && !request->turn->come) { /* the receive's memory must not be touched yet */
        inbound->parked = true;
        inbound->claims += 1;
        return;
    }
    go_on(inbound);
}

/* Lies all of it in the pool, not more than is copied in a moment, for a receive in host memory? */
static bool lies_whole(const struct wf_inbound *inbound, const struct weft_request *request)
{
    return inbound->kind == WF_INBOUND_MESSAGE && !wf_inbound_confirms(inbound) &&
           inbound->arrived.covered == inbound->total && inbound->total <= WF_BLOCK_BYTES && inbound->claims == 0 &&
           request->length >= inbound->total && !request->device && !request->pieces;
}

/* As join(), for such a message: with no claim on the receive's memory, as the lock is held. */
static void hand_over(struct wf_inbound *inbound, struct weft_request *request)
{
    struct weft_connection *connection = inbound->connection;
    uint64_t number = inbound->number, bytes = inbound->total;
    WF_REACHED("incoming message UNMATCHED: a receive for its tag");
    WF_REACHED("incoming message MATCHED: all bytes present and no claim left");
    request->tag = inbound->tag;
    wf_inbound_take_whole(inbound, request->buffer);
    wf_request_complete(request, 0, bytes);
    wf_connection_finish_number(connection, number);
    wf_connection_check(connection);
}

void wf_match_unpark(struct wf_inbound *inbound)
{
    struct weft_connection *connection = inbound->connection;
    connection->pins += 1;
    inbound->parked = false;
    go_on(inbound);
    inbound->claims -= 1;
    wf_inbound_check(inbound);
    connection->pins -= 1;
    wf_connection_check(connection);
}

bool wf_match_can_come(const struct wf_inbound *inbound)
{
    return wf_guard_over(inbound->connection->desk->guard) == 0 || inbound->arrived.covered == inbound->total;
}

int wf_match_over(const struct weft_connection *connection)
{
    int over = wf_guard_over(connection->desk->guard);
    return over == 0 && connection->close_seen && !connection->close_waits ? -ESHUTDOWN : over;
}

void wf_match_receive(struct weft_request *request)
{
    struct weft_connection *connection = request->connection;
    WF_REACHED_IF(connection->state == WF_CONNECTION_OPEN, "connection OPEN: receive");
    struct wf_inbound *inbound = message_for(request);
    if (inbound && !wf_match_can_come(inbound))
        inbound = NULL;
    if (inbound && lies_whole(inbound, request)) {
        hand_over(inbound, request);
        return;
    }
    if (inbound) {
        if (!ended_as_too_small(inbound, request))
            join(inbound, request);
        return;
    }
    int over = wf_match_over(connection);
    bool to_come = request->kind == WF_REQUEST_NOTE && wf_match_notes_to_come(connection);
    if (over < 0 && !to_come) {
        wf_request_complete(request, over, 0);
        return;
    }
    request->order = connection->desk->next_order++;
    if (request->kind == WF_REQUEST_NOTE)
        wf_list_push_back(&connection->posted_notes, &request->match_link);
    else if (mask_of(request) != WF_MASK_EXACT)
        wf_list_push_back(&connection->posted_masked, &request->match_link);
    else
        wf_table_insert(&connection->desk->posted, wf_hash(connection->number, request->tag), &request->match_link);
}

/* If the connection has both a notification and a receive for one, wf_match_notes() will match them. */
static void make_due(struct weft_connection *connection)
{
    if (!wf_list_empty(&connection->notes))
        look_at_notes(connection);
}

static void keep_unexpected(struct wf_inbound *inbound)
{
    struct weft_connection *connection = inbound->connection;
    inbound->state = WF_INBOUND_UNMATCHED;
    if (inbound->kind == WF_INBOUND_NOTE) {
        bool ended = wf_finished_has(&connection->finished, inbound->after);
        wf_list_push_back(ended ? &connection->notes : &connection->early_notes, &inbound->order_link);
        if (ended)
            make_due(connection);
        return;
    }
    wf_list_push_back(&connection->unexpected, &inbound->order_link);
    wf_table_insert(&connection->desk->unexpected, wf_hash(connection->number, inbound->tag), &inbound->tag_link);
}

/* The receive for a notification. NULL: its operation has not ended, other notifications are due first, or no receive
 * is posted. */
static struct weft_request *receive_for_note(const struct wf_inbound *note)
{
    const struct weft_connection *connection = note->connection;
    bool ended = wf_finished_has(&connection->finished, note->after);
    return ended && wf_list_empty(&connection->notes) ? request_of(wf_list_first(&connection->posted_notes)) : NULL;
}

void wf_match_release_notes(struct weft_connection *connection, uint64_t number)
{
    WF_LIST_EACH (link, following, &connection->early_notes) {
        struct wf_inbound *note = WF_CONTAINER(link, struct wf_inbound, order_link);
        if (note->after != number)
            continue;
        wf_link_remove(link);
        wf_list_push_back(&connection->notes, link);
        make_due(connection);
    }
}

bool wf_match_notes_to_come(const struct weft_connection *connection)
{
    bool any = !wf_list_empty(&connection->early_notes) || !wf_list_empty(&connection->notes);
    return any && connection->desk->guard->state == WF_SESSION_UP; /* the last BYE may bring the end of its operation */
}

/* The peer has closed the connection, and its last notification is handed out. */
static void end_posted_notes(struct weft_connection *connection)
{
    struct wf_link *link;
    while ((link = wf_list_first(&connection->posted_notes)))
        wf_request_cancel(request_of(link), -ESHUTDOWN);
}

void wf_match_notes(struct wf_desk *desk)
{
    struct wf_link *link;
    while ((link = wf_list_pop_front(&desk->notes_due))) {
        struct weft_connection *connection = WF_CONTAINER(link, struct weft_connection, notes_link);
        connection->pins += 1;
        while (!wf_list_empty(&connection->notes) && !wf_list_empty(&connection->posted_notes)) {
            struct wf_link *first = wf_list_first(&connection->notes);
            struct wf_inbound *note = WF_CONTAINER(first, struct wf_inbound, order_link);
            struct weft_request *request = request_of(wf_list_first(&connection->posted_notes));
            wf_guard_stir(desk->guard);
            if (!ended_as_too_small(note, request))
                join(note, request);
        }
        if (connection->close_seen && !connection->close_waits && !wf_match_notes_to_come(connection))
            end_posted_notes(connection);
        connection->pins -= 1;
        wf_connection_check(connection);
    }
}

/* The next receive for a message whose turn it is: of its connection, then of the endpoint. */
static struct weft_request *next_receive(const struct wf_inbound *inbound)
{
    if (inbound->kind == WF_INBOUND_NOTE)
        return receive_for_note(inbound);
    struct weft_request *request = wf_match_posted(inbound->connection, inbound->tag);
    return request ? request : wf_any_take(inbound);
}

/* The same. Those that are too small end. NULL: none is left. */
static struct weft_request *receive_for(const struct wf_inbound *inbound)
{
    struct weft_request *request;
    do
        request = next_receive(inbound);
    while (request && ended_as_too_small(inbound, request));
    return request;
}

static void advance(struct weft_connection *connection)
{
    for (;;) {
        struct wf_inbound *inbound = wf_inbound_find(connection, connection->next_match);
        if (!inbound && !wf_finished_has(&connection->finished, connection->next_match))
            return;
        connection->next_match += 1;
        if (!inbound || inbound->state != WF_INBOUND_EARLY)
            continue; /* refused before its turn */
        WF_REACHED("incoming message EARLY: every message before it is introduced or finished");
        if (connection->state == WF_CONNECTION_CLOSING) {
            wf_inbound_refuse(inbound, -ESHUTDOWN);
            wf_inbound_check(inbound);
            continue;
        }
        struct weft_request *request = receive_for(inbound);
        if (request)
            join(inbound, request);
        else
            keep_unexpected(inbound);
    }
}

/* `first`: a message whose turn it is, and its receive; NULL: there is none. Then those behind it. */
static void advance_from(struct weft_connection *connection, struct wf_inbound *first, struct weft_request *request)
{
    connection->pins += 1; /* landing a message may drop the lock, and end the connection */
    connection->advancing += 1;
    if (first)
        join(first, request);
    advance(connection);
    connection->advancing -= 1;
    enum wf_session_state state = connection->desk->guard->state;
    if (connection->advancing == 0 && connection->close_waits && state != WF_SESSION_FAILED && state != WF_SESSION_DEAD)
        wf_connection_peer_closed(connection);
    connection->pins -= 1;
    wf_connection_check(connection);
}

void wf_match_advance(struct weft_connection *connection)
{
    advance_from(connection, NULL, NULL);
}

bool wf_match_keep_whole(struct weft_connection *connection, const struct wf_frame *frame, const uint8_t *payload)
{
    struct wf_inbound *inbound = wf_inbound_create_whole(connection, frame, payload);
    if (!inbound)
        return false;
    connection->next_match += 1;
    struct weft_request *request = wf_any_take(inbound);
    if (request && ended_as_too_small(inbound, request))
        request = receive_for(inbound);
    if (request)
        advance_from(connection, inbound, request); /* a CLOSE meanwhile waits for those behind it, too */
    else
        keep_unexpected(inbound);
    return true;
}

bool wf_match_offer(struct wf_inbound *inbound)
{
    struct weft_connection *connection = inbound->connection;
    struct weft_request *request = receive_for(inbound);
    if (!request)
        return false;
    connection->pins += 1;
    wf_any_turn_over(connection);
    join(inbound, request);
    connection->pins -= 1;
    wf_connection_check(connection);
    return true;
}

/* The first message that waits and has a number above `number`. */
static struct wf_inbound *waiting_after(const struct weft_connection *connection, uint64_t number)
{
    WF_LIST_EACH (link, following, &connection->unexpected) {
        struct wf_inbound *inbound = WF_CONTAINER(link, struct wf_inbound, order_link);
        if (inbound->number > number && wf_match_can_come(inbound))
            return inbound;
    }
    return NULL;
}

void wf_match_offer_all(struct weft_connection *connection)
{
    struct wf_inbound *inbound;
    uint64_t number = 0;
    connection->pins += 1;
    while ((inbound = waiting_after(connection, number))) { /* the list may change while a message lands */
        number = inbound->number;
        wf_match_offer(inbound);
    }
    connection->pins -= 1;
    wf_connection_check(connection);
}

bool wf_match_is_here(const struct weft_request *request)
{
    const struct wf_inbound *inbound = request->inbound;
    return inbound && inbound->state == WF_INBOUND_MATCHED && inbound->arrived.covered == inbound->total;
}

static void cancel_receive(struct weft_request *request, int status)
{
    struct wf_inbound *inbound = request->inbound;
    if (!inbound) {
        wf_match_withdraw(request);
        wf_request_complete(request, status, 0);
        return;
    }
    WF_REACHED_IF(status == -ECANCELED, "incoming message MATCHED: cancelled");
    WF_REACHED_IF(status == -ETIMEDOUT, "incoming message MATCHED: deadline");
    wf_inbound_refuse(inbound, status);
    wf_inbound_check(inbound);
}

const struct wf_request_ops wf_receive_ops = {.cancel = cancel_receive};
