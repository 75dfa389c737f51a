#include "core/message/any.h"

#include <errno.h>
#include <stdio.h>

#include "base/status.h"
#include "core/message/connection.h"
#include "core/message/desk.h"
#include "core/message/inbound.h"
#include "core/message/match.h"
#include "core/request/book.h"
#include "core/request/lobby.h"

static struct weft_request *request_of(struct wf_link *link)
{
    return WF_CONTAINER(link, struct weft_request, match_link);
}

/* The endpoint of a connection that takes part, or NULL. */
static struct weft_endpoint *endpoint_of(const struct weft_connection *connection)
{
    struct weft_endpoint *endpoint = connection->held ? connection->endpoint : NULL;
    return endpoint && atomic_load(&endpoint->lined) ? endpoint : NULL;
}

/* --- the line --- */

/* The session's lock and the lobby's held. */
static void stand_in_line(struct weft_connection *connection, struct weft_endpoint *endpoint)
{
    if (!connection->in_line)
        wf_list_push_back(&endpoint->line, &connection->line_link);
    connection->in_line = true;
}

void wf_any_join_line(struct weft_connection *connection)
{
    struct weft_endpoint *endpoint = endpoint_of(connection);
    if (!endpoint || wf_list_empty(&connection->unexpected))
        return;
    wf_lobby_lock(endpoint->lobby);
    stand_in_line(connection, endpoint);
    wf_guard_unlock_within(&endpoint->lobby->guard, connection->desk->guard);
}

void wf_any_leave_line(struct weft_connection *connection)
{
    struct weft_endpoint *endpoint = connection->endpoint;
    if (!connection->in_line)
        return;
    wf_lobby_lock(endpoint->lobby);
    wf_link_remove(&connection->line_link);
    connection->in_line = false;
    wf_guard_unlock_within(&endpoint->lobby->guard, connection->desk->guard);
}

void wf_any_turn_over(struct weft_connection *connection)
{
    struct weft_endpoint *endpoint = connection->endpoint;
    if (!connection->in_line)
        return;
    wf_lobby_lock(endpoint->lobby);
    wf_link_remove(&connection->line_link);
    wf_list_push_back(&endpoint->line, &connection->line_link);
    wf_guard_unlock_within(&endpoint->lobby->guard, connection->desk->guard);
}

/* --- messages --- */

/* Is the receive for an older message, which waits on the same connection? It was posted a moment ago, then, and who
 * has posted it is about to walk along the line. */
static bool is_for_older(const struct wf_inbound *inbound, const struct weft_request *request)
{
    const struct wf_inbound *first =
        wf_match_waiting(inbound->connection, request->tag, wf_match_mask(request->flags, request->tag_mask));
    return first && first != inbound && wf_match_can_come(first);
}

static struct weft_request *posted_for(const struct weft_endpoint *endpoint, const struct wf_inbound *inbound)
{
    WF_LIST_EACH (link, following, &endpoint->receives) {
        struct weft_request *request = request_of(link);
        if (wf_match_takes(request, inbound->tag) && !is_for_older(inbound, request))
            return request;
    }
    return NULL;
}

struct weft_request *wf_any_take(const struct wf_inbound *inbound)
{
    struct weft_connection *connection = inbound->connection;
    struct wf_desk *desk = connection->desk;
    struct weft_endpoint *endpoint = endpoint_of(connection);
    if (!endpoint)
        return NULL;
    /* One hold of the lock for both: a receive that is posted in between must see the message, or be seen. */
    wf_lobby_lock(endpoint->lobby);
    struct weft_request *outer = posted_for(endpoint, inbound), *request = NULL;
    if (outer)
        request = wf_request_take_inner(desk->book, outer, &wf_receive_ops);
    if (request)
        wf_link_remove(&outer->match_link);
    else
        stand_in_line(connection, endpoint);
    wf_guard_unlock_within(&endpoint->lobby->guard, desk->guard);
    if (outer && !request)
        wf_guard_fail(desk->guard, -ENOMEM, "no memory for a receive from any connection");
    if (!request)
        return NULL;
    request->connection = connection;
    request->remote_endpoint = connection->remote_endpoint;
    return request;
}

/* --- receives --- */

bool wf_any_post(struct weft_endpoint *endpoint, struct weft_request *request)
{
    request->order = endpoint->lobby->next_order++;
    wf_list_push_back(&endpoint->receives, &request->match_link);
    return !wf_list_empty(&endpoint->line);
}

/* Is the receive still to be carried out? Its memory may be another request's by now. Lobby's lock held. */
static bool is_wanted(const struct wf_any_wish *wish)
{
    const struct weft_request *receive = wish->receive;
    return !receive || (receive->order == wish->order && !receive->inner && wf_link_in_list(&receive->match_link));
}

/* The message that the wish is for. Session's lock held. */
static struct wf_inbound *message_on(struct weft_connection *connection, const struct wf_any_wish *wish)
{
    if (!connection->held || connection->state != WF_CONNECTION_OPEN)
        return NULL;
    struct wf_inbound *inbound = wf_match_waiting(connection, wish->tag, wish->mask);
    return inbound && wf_match_can_come(inbound) ? inbound : NULL;
}

/* A place in the line: a link of nobody's. Only threads with world.lock walk, so each meets no place but its own. A
 * walk ends no request: nobody is to be woken, least of all with the locks held. */
struct walk {
    struct weft_endpoint *endpoint;
    struct wf_link place;
};

/* Steps over the next connection: `*desk` and `*number` name it. False: the line has ended, or the wish has. */
static bool next_in_line(struct walk *walk, const struct wf_any_wish *wish, struct wf_desk **desk, uint32_t *number)
{
    struct wf_lobby *lobby = walk->endpoint->lobby;
    wf_lobby_lock(lobby);
    struct wf_link *next = walk->place.next;
    bool found = next != &walk->endpoint->line.head && is_wanted(wish);
    wf_link_remove(&walk->place);
    if (found) {
        struct weft_connection *connection = WF_CONTAINER(next, struct weft_connection, line_link);
        *desk = connection->desk;
        *number = connection->number;
        wf_link_insert_before(&walk->place, next->next);
    }
    wf_guard_unlock(&lobby->guard);
    return found;
}

static void leave(struct walk *walk)
{
    wf_lobby_lock(walk->endpoint->lobby);
    wf_link_remove(&walk->place);
    wf_guard_unlock(&walk->endpoint->lobby->guard);
}

struct weft_connection *wf_any_find(struct weft_endpoint *endpoint, const struct wf_any_wish *wish,
                                    struct wf_inbound **inbound)
{
    struct wf_world *world = endpoint->lobby->guard.world;
    struct walk walk = {.endpoint = endpoint};
    struct weft_connection *found = NULL;
    struct wf_desk *desk;
    uint32_t number;
    pthread_mutex_lock(&world->lock); /* no session is freed, and nobody else walks */
    wf_lobby_lock(endpoint->lobby);
    wf_list_push_front(&endpoint->line, &walk.place);
    wf_guard_unlock(&endpoint->lobby->guard);
    while (!found && next_in_line(&walk, wish, &desk, &number)) {
        wf_guard_lock(desk->guard);
        struct weft_connection *connection = wf_connection_find(desk, number);
        *inbound = connection && connection->endpoint == endpoint ? message_on(connection, wish) : NULL;
        if (*inbound)
            found = connection;
        else
            wf_guard_unlock(desk->guard);
    }
    leave(&walk);
    pthread_mutex_unlock(&world->lock);
    return found;
}

static void cancel(struct weft_request *request, int status)
{
    if (request->inner)
        wf_lobby_leave(request, status);
    else
        wf_request_complete(request, status, 0);
}

static void describe(const struct weft_request *request, char *text, size_t room)
{
    const char *why = wf_lobby_text(request);
    if (why)
        snprintf(text, room, "%s", why);
    else
        snprintf(text, room, "receive of %llu bytes, tag %llu, from any connection of endpoint %u: %s",
                 (unsigned long long)request->length, (unsigned long long)request->tag, request->remote_endpoint,
                 wf_strerror(request->status));
}

const struct wf_request_ops wf_any_ops = {.cancel = cancel, .describe = describe, .gone = wf_lobby_forget};

void wf_any_end(struct weft_endpoint *endpoint)
{
    struct wf_link *link;
    wf_lobby_lock(endpoint->lobby);
    while ((link = wf_list_first(&endpoint->receives)))
        wf_request_complete(request_of(link), -ECANCELED, 0);
    wf_lobby_unlock(endpoint->lobby);
}
