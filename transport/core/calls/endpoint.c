/* The public calls on endpoints and connections. */
#include "core/calls/endpoint.h"

#include <errno.h>
#include <stdlib.h>

#include "core/calls/context.h"
#include "core/calls/placement.h"
#include "core/ground/reached.h"
#include "core/message/connection.h"
#include "core/request/request.h"
#include "core/session/session.h"
#include "core/session/traffic.h"

static struct weft_endpoint *find(struct weft_context *context, uint32_t id)
{
    WF_LIST_EACH (link, following, &context->endpoints.list) {
        struct weft_endpoint *endpoint = WF_CONTAINER(link, struct weft_endpoint, link);
        if (endpoint->id == id)
            return endpoint;
    }
    return NULL;
}

/* Admits the connections that peers opened to this endpoint before it existed. world.lock held. */
static void admit_orphans(struct weft_context *context, struct weft_endpoint *endpoint)
{
    WF_LIST_EACH (link, following, &context->sessions.all) {
        struct wf_session *session = WF_CONTAINER(link, struct wf_session, link);
        wf_session_lock(session);
        WF_LIST_EACH (orphan, next_orphan, &session->desk.orphans) {
            struct weft_connection *connection = WF_CONTAINER(orphan, struct weft_connection, accept_link);
            WF_REACHED_IF(connection->local_endpoint == endpoint->id,
                          "connection WAITING: the endpoint asked for is created");
            if (connection->local_endpoint == endpoint->id)
                wf_connection_admit(connection, endpoint);
        }
        wf_kicks_all(&session->kicks, NULL);
        wf_session_unlock(session);
    }
}

int weft_endpoint_create(struct weft_context *context, uint32_t id, struct weft_endpoint **out, struct weft_error *err)
{
    if (id == WEFT_ANY_ENDPOINT)
        return wf_fail(wf_status_of(err), -EINVAL, "endpoint number %u is reserved for 'any'", id);
    struct weft_endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint)
        return wf_fail(wf_status_of(err), -ENOMEM, "no memory for endpoint %u", id);
    endpoint->context = context;
    endpoint->id = id;
    endpoint->rails = WF_RAILS_ANY;
    pthread_mutex_lock(&context->world.lock);
    pthread_mutex_lock(&context->endpoints.lock);
    bool exists = find(context, id) != NULL;
    if (!exists)
        wf_list_push_back(&context->endpoints.list, &endpoint->link);
    pthread_mutex_unlock(&context->endpoints.lock);
    if (!exists)
        admit_orphans(context, endpoint);
    pthread_mutex_unlock(&context->world.lock);
    if (exists) {
        free(endpoint);
        return wf_fail(wf_status_of(err), -EEXIST, "endpoint %u exists already in this context", id);
    }
    *out = endpoint;
    return 0;
}

int weft_endpoint_set_node(struct weft_endpoint *endpoint, int numa_node)
{
    struct weft_context *context = endpoint->context;
    if (numa_node < -1)
        return -EINVAL;
    uint64_t rails = wf_placement_rails(context, numa_node);
    pthread_mutex_lock(&context->endpoints.lock);
    endpoint->rails = rails;
    pthread_mutex_unlock(&context->endpoints.lock);
    return 0;
}

int weft_endpoint_set_class(struct weft_endpoint *endpoint, uint32_t traffic_class)
{
    if (!endpoint || traffic_class >= WF_CLASSES)
        return -EINVAL;
    pthread_mutex_lock(&endpoint->context->endpoints.lock);
    endpoint->traffic = traffic_class;
    pthread_mutex_unlock(&endpoint->context->endpoints.lock);
    return 0;
}

int weft_endpoint_destroy(struct weft_endpoint *endpoint)
{
    if (!endpoint)
        return 0;
    struct weft_context *context = endpoint->context;
    pthread_mutex_lock(&context->endpoints.lock);
    bool busy = endpoint->connections > 0;
    if (!busy)
        wf_link_remove(&endpoint->link);
    pthread_mutex_unlock(&context->endpoints.lock);
    if (busy)
        return -EBUSY;
    free(endpoint);
    return 0;
}

/* --- connections --- */

static int refuse(struct wf_session *session, int result, struct weft_error *err, const char *what)
{
    if (result == -ENOTSUP)
        return wf_fail(wf_status_of(err), result,
                       "cannot %s with %s: its version of Weft knows no traffic class but 0; install the same version "
                       "on both sides",
                       what, session->peer.name);
    const char *text = session->guard.error.code ? session->guard.error.text : wf_strerror(result);
    return wf_fail(wf_status_of(err), result, "cannot %s with %s: %s", what, session->peer.name, text);
}

/* Starts an OPEN. The connection belongs to the caller, even if the request fails. Session lock held. */
static int start_open(struct wf_session *session, struct weft_endpoint *endpoint, uint32_t remote_id, unsigned traffic,
                      struct weft_connection **connection, struct weft_request **request)
{
    int result = wf_session_usable(session);
    if (result == 0)
        result = wf_session_use_class(session, traffic);
    if (result == 0 && session->desk.connection_count >= session->terms.limits.connections)
        result = -EMFILE;
    if (result < 0)
        return result;
    uint32_t number = wf_desk_next_number(&session->desk);
    *connection = wf_connection_create(&session->desk, number, true, endpoint->id, remote_id);
    if (!*connection)
        return -ENOMEM;
    *request = wf_request_take(&session->book, WF_REQUEST_OPEN, &wf_connection_ops);
    if (!*request) {
        wf_connection_free(*connection);
        return -ENOMEM;
    }
    wf_desk_take_number(&session->desk);
    wf_connection_set_class(*connection, traffic);
    wf_connection_attach(*connection, endpoint);
    (*connection)->held = true;
    (*connection)->open_due = true;
    (*connection)->waiting = *request;
    (*request)->connection = *connection;
    (*request)->remote_endpoint = remote_id;
    wf_connection_todo(*connection);
    return 0;
}

int wf_connection_open_start(struct weft_endpoint *endpoint, struct weft_peer *peer, uint32_t remote_id,
                             struct weft_connection **connection, struct weft_request **request, struct weft_error *err)
{
    struct wf_session *session = peer->session;
    pthread_mutex_lock(&endpoint->context->endpoints.lock);
    unsigned traffic = endpoint->traffic;
    pthread_mutex_unlock(&endpoint->context->endpoints.lock);
    wf_session_lock(session);
    int result = start_open(session, endpoint, remote_id, traffic, connection, request);
    if (result < 0)
        refuse(session, result, err, "open a connection");
    wf_session_unlock(session);
    if (result == 0)
        wf_session_push(session);
    return result;
}

void wf_connection_let_go(struct weft_connection *connection)
{
    struct wf_session *session = wf_session_at(connection->desk);
    wf_session_lock(session);
    connection->held = false;
    wf_connection_abort_and_close(connection);
    wf_session_unlock(session);
    wf_session_push(session);
}

int weft_connection_open(struct weft_endpoint *endpoint, struct weft_peer *peer, uint32_t remote_id, int timeout_ms,
                         struct weft_connection **out, struct weft_error *err)
{
    struct weft_connection *connection;
    struct weft_request *request;
    int result = wf_connection_open_start(endpoint, peer, remote_id, &connection, &request, err);
    if (result < 0)
        return result;
    struct weft_completion completion;
    result = wf_request_finish(request, timeout_ms, &completion);
    if (result == 0) {
        *out = connection;
        return 0;
    }
    wf_connection_let_go(connection);
    if (result == -ETIMEDOUT)
        return wf_fail(wf_status_of(err), result, "endpoint %u of %s did not appear within %.1f s", remote_id,
                       peer->name, (double)timeout_ms / 1000);
    return wf_fail(wf_status_of(err), result, "%s", completion.text);
}

static struct weft_connection *from_backlog(struct wf_session *session, struct weft_endpoint *endpoint,
                                            uint32_t remote_id)
{
    WF_LIST_EACH (link, following, &session->desk.backlog) {
        struct weft_connection *connection = WF_CONTAINER(link, struct weft_connection, accept_link);
        if (connection->endpoint != endpoint)
            continue;
        if (remote_id != WEFT_ANY_ENDPOINT && remote_id != connection->remote_endpoint)
            continue;
        wf_link_remove(&connection->accept_link);
        connection->held = true;
        return connection;
    }
    return NULL;
}

/* The node of the endpoint may have been set after the connection came. True: the rails of the connection changed, and
 * it has messages to send: the workers of its new rails must be kicked. */
static bool place_anew(struct weft_connection *connection)
{
    const struct wf_ring *before = connection->ring;
    wf_connection_attach(connection, connection->endpoint);
    return connection->ring != before && wf_link_in_list(&connection->ready_link);
}

int weft_connection_accept(struct weft_endpoint *endpoint, struct weft_peer *peer, uint32_t remote_id, int timeout_ms,
                           struct weft_connection **out, struct weft_error *err)
{
    struct wf_session *session = peer->session;
    struct weft_request *request = NULL;
    wf_session_lock(session);
    struct weft_connection *connection = from_backlog(session, endpoint, remote_id);
    bool moved = connection && place_anew(connection);
    int result = connection ? 0 : wf_session_usable(session);
    if (!connection && result == 0) {
        request = wf_request_take(&session->book, WF_REQUEST_ACCEPT, &wf_request_plain_ops);
        result = request ? 0 : -ENOMEM;
    }
    if (request) {
        request->endpoint = endpoint;
        request->remote_endpoint = remote_id;
        request->result = out;
        wf_desk_accept(&session->desk, request);
    }
    if (result < 0)
        refuse(session, result, err, "accept a connection");
    wf_session_unlock(session);
    if (connection)
        *out = connection;
    if (moved)
        wf_session_push(session);
    if (!request)
        return result;
    struct weft_completion completion;
    result = wf_request_finish(request, timeout_ms, &completion);
    if (result == -ETIMEDOUT)
        return wf_fail(wf_status_of(err), result, "no connection to endpoint %u came from %s within %.1f s",
                       endpoint->id, peer->name, (double)timeout_ms / 1000);
    return result < 0 ? wf_fail(wf_status_of(err), result, "%s", completion.text) : 0;
}

struct weft_request *wf_connection_close_start(struct weft_connection *connection)
{
    struct wf_session *session = wf_session_at(connection->desk);
    wf_session_lock(session);
    bool alive = session->guard.state == WF_SESSION_UP;
    struct weft_request *request = alive ? wf_request_take(&session->book, WF_REQUEST_CLOSE, &wf_connection_ops) : NULL;
    if (request) {
        request->connection = connection;
        request->remote_endpoint = connection->remote_endpoint;
        connection->waiting = request;
        wf_connection_start_close(connection);
    } else if (alive) { /* no memory for a request to wait for: the connection closes without the user */
        connection->held = false;
        wf_connection_start_close(connection);
    } else {
        connection->held = false;
        if (session->guard.holders == 0) /* nothing touches the connection any more: it can be freed now */
            wf_connection_free(connection);
    }
    wf_session_unlock(session);
    if (request)
        wf_session_push(session);
    return request;
}

int weft_connection_close(struct weft_connection *connection, int timeout_ms, struct weft_error *err)
{
    struct weft_request *request = wf_connection_close_start(connection);
    if (!request)
        return 0;
    struct weft_completion completion;
    int result = wf_request_finish(request, timeout_ms, &completion);
    wf_connection_let_go(connection);
    if (result == -ETIMEDOUT)
        return wf_fail(wf_status_of(err), result, "own sends did not finish within %.1f s and were cancelled",
                       (double)timeout_ms / 1000);
    return result < 0 ? wf_fail(wf_status_of(err), result, "%s", completion.text) : 0;
}

uint32_t weft_connection_remote(const struct weft_connection *connection)
{
    return connection->remote_endpoint;
}

uint32_t weft_connection_class(const struct weft_connection *connection)
{
    return connection ? connection->traffic : 0;
}
