#include "core/message/connection.h"

#include <errno.h>
#include <stdlib.h>

#include "core/ground/reached.h"
#include "core/message/any.h"
#include "core/message/connection_close.h"
#include "core/message/desk.h"
#include "core/message/match.h"
#include "core/message/outbound.h"
#include "core/message/ready.h"
#include "core/message/ring.h"
#include "core/message/served.h"
#include "core/request/request.h"

void wf_endpoints_init(struct wf_endpoints *endpoints)
{
    pthread_mutex_init(&endpoints->lock, NULL);
    wf_list_init(&endpoints->list);
}

void wf_endpoints_fini(struct wf_endpoints *endpoints)
{
    WF_LIST_EACH (link, following, &endpoints->list) {
        free(WF_CONTAINER(link, struct weft_endpoint, link));
    }
    pthread_mutex_destroy(&endpoints->lock);
}

/* Numbers of connections that the dialer opened are odd, the acceptor's even: 1, 3, … and 2, 4, …. */
static bool dialers_number(uint32_t number)
{
    return number % 2 == 1;
}

static uint64_t number_index(uint32_t number)
{
    return (number + 1) / 2;
}

/* The introductions that a connection has taken of WF_INTRODUCTIONS_SHARED: all but the first WF_INTRODUCTIONS_FEW. */
static uint32_t more_than_few(uint32_t introductions)
{
    return introductions > WF_INTRODUCTIONS_FEW ? introductions - WF_INTRODUCTIONS_FEW : 0;
}

/* Gives the connection as many introductions as the setting says, or as many as the session has left. The peer was told
 * of them, so the connection keeps them until its end. */
static void take_introductions(struct weft_connection *connection)
{
    struct wf_desk *desk = connection->desk;
    uint32_t wanted = desk->guard->world->tuning.introductions, had = connection->introductions;
    uint32_t left = WF_INTRODUCTIONS_SHARED - desk->introductions_taken;
    if (had == 0)
        had = wanted < WF_INTRODUCTIONS_FEW ? wanted : WF_INTRODUCTIONS_FEW;
    uint32_t more = wanted - had < left ? wanted - had : left;
    desk->introductions_taken += more;
    connection->introductions = had + more;
}

struct weft_connection *wf_connection_create(struct wf_desk *desk, uint32_t number, bool opener, uint32_t local,
                                             uint32_t remote)
{
    struct weft_connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        return NULL;
    wf_link_init(&connection->ready_link);
    wf_link_init(&connection->express_link);
    wf_link_init(&connection->todo_link);
    wf_link_init(&connection->accept_link);
    wf_link_init(&connection->line_link);
    wf_list_init(&connection->pending);
    wf_list_init(&connection->writes);
    wf_list_init(&connection->sending);
    wf_list_init(&connection->behind);
    wf_list_init(&connection->unlisted);
    wf_list_init(&connection->posted_masked);
    wf_list_init(&connection->unexpected);
    wf_list_init(&connection->posted_notes);
    wf_list_init(&connection->notes);
    wf_list_init(&connection->early_notes);
    wf_link_init(&connection->notes_link);
    wf_list_init(&connection->uploads);
    wf_finished_init(&connection->finished);
    connection->desk = desk;
    connection->number = number;
    connection->opener = opener;
    connection->local_endpoint = local;
    connection->remote_endpoint = remote;
    connection->ring = &desk->any_ring[0];
    connection->state = opener ? WF_CONNECTION_OPENING : WF_CONNECTION_WAITING;
    connection->known = !opener;
    connection->next_number = connection->next_match = 1;
    take_introductions(connection);
    connection->limit_sent = connection->introductions;
    wf_table_insert(&desk->connections, wf_hash(0, number), &connection->hash_link);
    desk->connection_count += 1;
    desk->peers_connections += !opener;
    return connection;
}

void wf_connection_set_class(struct weft_connection *connection, unsigned traffic)
{
    connection->traffic = traffic;
    connection->ring = &connection->desk->any_ring[traffic];
}

struct weft_connection *wf_connection_find(struct wf_desk *desk, uint32_t number)
{
    WF_LIST_EACH (link, following, wf_table_list(&desk->connections, wf_hash(0, number))) {
        struct weft_connection *connection = WF_CONTAINER(link, struct weft_connection, hash_link);
        if (connection->number == number)
            return connection;
    }
    return NULL;
}

bool wf_connection_was_closed(const struct wf_desk *desk, uint32_t number)
{
    return wf_finished_has(&desk->closed_numbers[dialers_number(number)], number_index(number));
}

void wf_connection_todo(struct weft_connection *connection)
{
    if (!wf_link_in_list(&connection->todo_link))
        wf_list_push_back(&connection->desk->todo_connections, &connection->todo_link);
}

/* Keeps the connection to these rails: moves it to their ring. */
static void keep_to(struct weft_connection *connection, uint64_t rails)
{
    struct wf_desk *desk = connection->desk;
    struct wf_ring *ring = wf_desk_ring(desk, rails, connection->traffic);
    bool ready = wf_link_in_list(&connection->ready_link);
    if (!ring) {
        wf_guard_fail(desk->guard, -ENOMEM, "no memory to keep a connection to its rails");
        ring = &desk->any_ring[connection->traffic];
    }
    wf_desk_set_ready(desk, connection, false);
    connection->ring = ring;
    wf_desk_set_ready(desk, connection, ready);
}

void wf_connection_attach(struct weft_connection *connection, struct weft_endpoint *endpoint)
{
    struct wf_endpoints *endpoints = connection->desk->endpoints;
    if (!endpoint)
        wf_any_leave_line(connection);
    pthread_mutex_lock(&endpoints->lock);
    if (connection->endpoint)
        connection->endpoint->connections -= 1;
    if (endpoint)
        endpoint->connections += 1;
    connection->endpoint = endpoint;
    uint64_t rails = endpoint ? endpoint->rails : WF_RAILS_ANY;
    pthread_mutex_unlock(&endpoints->lock);
    keep_to(connection, rails);
}

void wf_connection_free(struct weft_connection *connection)
{
    struct wf_desk *desk = connection->desk;
    wf_connection_attach(connection, NULL);
    wf_desk_set_ready(desk, connection, false);
    wf_link_remove(&connection->hash_link);
    wf_link_remove(&connection->express_link);
    wf_link_remove(&connection->todo_link);
    wf_link_remove(&connection->accept_link);
    wf_link_remove(&connection->notes_link);
    wf_uploads_free(connection);
    wf_finished_fini(&connection->finished);
    desk->connection_count -= 1;
    desk->peers_connections -= !connection->opener;
    desk->closes -= connection->state == WF_CONNECTION_CLOSING && !connection->closed_seen;
    desk->introductions_taken -= more_than_few(connection->introductions);
    free(connection);
}

void wf_connection_over(struct weft_connection *connection)
{
    struct wf_desk *desk = connection->desk;
    uint32_t number = connection->number;
    if (wf_finished_add(&desk->closed_numbers[dialers_number(number)], number_index(number)) == -ENOMEM)
        wf_guard_fail(desk->guard, -ENOMEM, "no memory to remember a closed connection");
    wf_connection_free(connection);
}

/* --- opening --- */

static struct weft_request *acceptor_for(struct weft_connection *connection)
{
    WF_LIST_EACH (link, following, &connection->desk->acceptors) {
        struct weft_request *request = WF_CONTAINER(link, struct weft_request, match_link);
        bool wanted =
            request->remote_endpoint == WEFT_ANY_ENDPOINT || request->remote_endpoint == connection->remote_endpoint;
        if (wanted && request->endpoint == connection->endpoint)
            return request;
    }
    return NULL;
}

void wf_connection_admit(struct weft_connection *connection, struct weft_endpoint *endpoint)
{
    wf_link_remove(&connection->accept_link);
    wf_connection_attach(connection, endpoint);
    connection->state = WF_CONNECTION_OPEN;
    connection->opened_due = true;
    wf_connection_todo(connection);
    struct weft_request *request = acceptor_for(connection);
    if (request) {
        connection->held = true;
        request->connection = connection;
        wf_request_complete(request, 0, 0);
    } else {
        wf_list_push_back(&connection->desk->backlog, &connection->accept_link);
        wf_guard_news(connection->desk->guard);
    }
}

/* The node of the endpoint may have been set after the connection came. If the rails of the connection changed, and it
 * has messages to send, the workers of its new rails must be kicked. */
static void place_anew(struct weft_connection *connection)
{
    const struct wf_ring *before = connection->ring;
    wf_connection_attach(connection, connection->endpoint);
    if (connection->ring != before && wf_link_in_list(&connection->ready_link))
        wf_kicks_all(connection->desk->kicks, NULL);
}

struct weft_connection *wf_connection_from_backlog(struct wf_desk *desk, const struct weft_endpoint *endpoint,
                                                   uint32_t remote_id)
{
    WF_LIST_EACH (link, following, &desk->backlog) {
        struct weft_connection *connection = WF_CONTAINER(link, struct weft_connection, accept_link);
        if (endpoint && connection->endpoint != endpoint)
            continue;
        if (remote_id != WEFT_ANY_ENDPOINT && remote_id != connection->remote_endpoint)
            continue;
        wf_link_remove(link);
        connection->held = true;
        place_anew(connection);
        return connection;
    }
    return NULL;
}

/* Finds the endpoint and counts the connection under one lock: between the steps the endpoint could be destroyed. */
static struct weft_endpoint *attach_by_number(struct weft_connection *connection, uint32_t id)
{
    struct wf_endpoints *endpoints = connection->desk->endpoints;
    struct weft_endpoint *found = NULL;
    pthread_mutex_lock(&endpoints->lock);
    WF_LIST_EACH (link, following, &endpoints->list) {
        struct weft_endpoint *endpoint = WF_CONTAINER(link, struct weft_endpoint, link);
        if (endpoint->id == id)
            found = endpoint;
    }
    if (found)
        found->connections += 1;
    connection->endpoint = found;
    pthread_mutex_unlock(&endpoints->lock);
    return found;
}

int wf_connection_take_open(struct wf_desk *desk, const struct wf_frame *frame)
{
    if (frame->conn == 0 || dialers_number(frame->conn) == desk->terms->dialer)
        return -EPROTO; /* a number that only this side may give */
    if (wf_connection_find(desk, frame->conn) || wf_connection_was_closed(desk, frame->conn))
        return 0; /* OPEN came twice */
    /* A gap between closed numbers is a connection that is open, or whose OPEN is still to come. */
    uint32_t gaps = desk->closed_numbers[dialers_number(frame->conn)].count;
    /* Its own count may be smaller: OPENs cross, and OPEN may overtake what ends another connection. */
    if (desk->peers_connections >= 2 * WF_CONNECTIONS_MAX || gaps >= 2 * WF_CONNECTIONS_MAX)
        return -EPROTO;
    uint32_t local = (uint32_t)frame->key, remote = (uint32_t)(frame->key >> 32);
    struct weft_connection *connection = wf_connection_create(desk, frame->conn, false, local, remote);
    if (!connection)
        return -ENOMEM;
    connection->introduced_limit = frame->offset;
    wf_connection_set_class(connection, (unsigned)frame->base);
    struct weft_endpoint *endpoint = attach_by_number(connection, local);
    if (endpoint)
        wf_connection_admit(connection, endpoint);
    else
        wf_list_push_back(&desk->orphans, &connection->accept_link);
    return 0;
}

void wf_connection_opened(struct weft_connection *connection)
{
    if (connection->state != WF_CONNECTION_OPENING)
        return;
    connection->state = WF_CONNECTION_OPEN;
    connection->known = true;
    struct weft_request *request = connection->waiting;
    connection->waiting = NULL;
    if (request)
        wf_request_complete(request, 0, 0);
    wf_connection_ready(connection);
    wf_connection_check(connection);
}

int wf_connection_take_opened(struct wf_desk *desk, const struct wf_frame *frame)
{
    struct weft_connection *connection = wf_connection_find(desk, frame->conn);
    if (!connection)
        return wf_connection_was_closed(desk, frame->conn) ? 0 : -EPROTO;
    if (!connection->opener)
        return -EPROTO;
    if (frame->offset > connection->introduced_limit)
        connection->introduced_limit = frame->offset;
    wf_connection_ready(connection);
    WF_REACHED_IF(connection->state == WF_CONNECTION_OPENING, "connection OPENING: OPENED");
    wf_connection_opened(connection);
    return 0;
}

void wf_connection_acknowledged(struct weft_connection *connection)
{
    connection->known = true;
    wf_connection_check(connection);
}

/* --- numbers and lists --- */

void wf_connection_list_ended(struct weft_connection *connection)
{
    connection->lists -= 1;
    struct wf_link *link = wf_list_pop_front(&connection->unlisted);
    if (link)
        wf_onesided_begin(WF_CONTAINER(link, struct wf_outbound, queue_link));
}

uint64_t wf_connection_limit(const struct weft_connection *connection)
{
    return connection->finished_count - connection->confirming + connection->introductions;
}

/* An introduction has been given back: CREDIT is due once a quarter of `introductions` has not been told. */
static void check_limit(struct weft_connection *connection)
{
    uint64_t step = connection->introductions / 4;
    if (wf_connection_limit(connection) - connection->limit_sent < (step ? step : 1))
        return;
    connection->credit_due = true;
    wf_connection_todo(connection);
}

void wf_connection_finish_number(struct weft_connection *connection, uint64_t number)
{
    struct wf_desk *desk = connection->desk;
    int result = wf_finished_add(&connection->finished, number);
    if (result == -ENOMEM)
        wf_guard_fail(desk->guard, -ENOMEM, "no memory to remember a finished message");
    if (result < 0)
        return;
    connection->finished_count += 1;
    if (connection->introductions < desk->guard->world->tuning.introductions)
        take_introductions(connection);
    wf_match_release_notes(connection, number);
    check_limit(connection);
}

void wf_connection_confirmed(struct weft_connection *connection)
{
    connection->confirming -= 1;
    check_limit(connection);
}

/* --- requests --- */

/* Ends an OPEN or CLOSE request. If the session ends and nothing was left to send, the CLOSE has succeeded. */
static void cancel_connection(struct weft_request *request, int status)
{
    struct weft_connection *connection = request->connection;
    connection->waiting = NULL;
    if (request->kind == WF_REQUEST_CLOSE && status == -ESHUTDOWN && connection->outbounds == 0)
        status = 0;
    wf_request_complete(request, status, 0);
    connection->held = false;
    if (status == -ECANCELED || status == -ETIMEDOUT) /* else the session ends, and the connection with it */
        wf_connection_abort_and_close(connection);
}

const struct wf_request_ops wf_connection_ops = {.cancel = cancel_connection};
