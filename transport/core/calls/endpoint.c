/* The public calls on endpoints and connections. */
#include <errno.h>
#include <stdlib.h>

#include "core/calls/context.h"
#include "core/calls/placement.h"
#include "core/calls/setup.h"
#include "core/ground/refusal.h"
#include "core/ground/reached.h"
#include "core/message/any.h"
#include "core/message/connection.h"
#include "core/message/connection_close.h"
#include "core/message/match.h"
#include "core/message/ring.h"
#include "core/request/book.h"
#include "core/request/request.h"
#include "core/request/wait.h"
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
    if (WF_IS_NULL(wf_status_of(err), context) || WF_IS_NULL(wf_status_of(err), out))
        return -EINVAL;
    if (id == WEFT_ANY_ENDPOINT)
        return wf_fail(wf_status_of(err), -EINVAL, "endpoint number %u is reserved for 'any'", id);
    struct weft_endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint)
        return wf_fail(wf_status_of(err), -ENOMEM, "no memory for endpoint %u", id);
    endpoint->context = context;
    endpoint->id = id;
    endpoint->rails = WF_RAILS_ANY;
    endpoint->lobby = &context->sessions.lobby;
    wf_list_init(&endpoint->receives);
    wf_list_init(&endpoint->line);
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
    if (WF_IS_NULL(wf_refusal(), endpoint))
        return -EINVAL;
    struct weft_context *context = endpoint->context;
    if (numa_node < -1) {
        wf_fail(wf_refusal(), -EINVAL, "numa_node is %d: give a node, or -1 for none in particular", numa_node);
        return wf_refused(__func__, -EINVAL);
    }
    uint64_t rails = wf_placement_rails(context, numa_node);
    pthread_mutex_lock(&context->endpoints.lock);
    endpoint->rails = rails;
    pthread_mutex_unlock(&context->endpoints.lock);
    return 0;
}

int weft_endpoint_set_class(struct weft_endpoint *endpoint, uint32_t traffic_class)
{
    if (WF_IS_NULL(wf_refusal(), endpoint))
        return -EINVAL;
    if (traffic_class >= WF_CLASSES) {
        wf_fail(wf_refusal(), -EINVAL, "traffic_class is %u: traffic classes are 0 to %d", traffic_class,
                WF_CLASSES - 1);
        return wf_refused(__func__, -EINVAL);
    }
    pthread_mutex_lock(&endpoint->context->endpoints.lock);
    endpoint->traffic = traffic_class;
    pthread_mutex_unlock(&endpoint->context->endpoints.lock);
    return 0;
}

/* Ends the accepts that wait for a connection to this endpoint: they point to it. It is in no list any more, and has no
 * connection, so no accept is about to get one. */
static void end_accepts(struct weft_context *context, const struct weft_endpoint *endpoint)
{
    pthread_mutex_lock(&context->world.lock);
    WF_LIST_EACH (link, following, &context->sessions.all) {
        struct wf_session *session = WF_CONTAINER(link, struct wf_session, link);
        wf_session_lock(session);
        WF_LIST_EACH (waiting, next_waiting, &session->desk.acceptors) {
            struct weft_request *request = WF_CONTAINER(waiting, struct weft_request, match_link);
            if (request->endpoint == endpoint)
                wf_request_cancel(request, -ECANCELED);
        }
        wf_session_unlock(session);
    }
    pthread_mutex_unlock(&context->world.lock);
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
    if (busy) {
        wf_fail(wf_refusal(), -EBUSY, "endpoint %u has open connections: close them on both sides, or close the peer",
                endpoint->id);
        return wf_refused(__func__, -EBUSY);
    }
    wf_any_end(endpoint);
    end_accepts(context, endpoint);
    wf_wait_ring(&context->waiting); /* a thread that waits for one of them may sleep in the engine */
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

/* Starts an OPEN. If its request fails, the connection closes by itself. Session lock held. */
static int start_open(struct wf_session *session, struct weft_endpoint *endpoint, uint32_t remote_id, unsigned traffic,
                      const struct weft_options *options, struct weft_request **out)
{
    int result = wf_session_usable(session);
    if (result == 0)
        result = wf_session_use_class(session, traffic);
    if (result == 0 && session->desk.connection_count >= session->terms.limits.connections)
        result = -EMFILE;
    if (result < 0)
        return result;
    uint32_t number = wf_desk_next_number(&session->desk);
    struct weft_connection *connection = wf_connection_create(&session->desk, number, true, endpoint->id, remote_id);
    if (!connection)
        return -ENOMEM;
    struct weft_request *request = wf_request_take(&session->book, WF_REQUEST_OPEN, &wf_connection_ops);
    if (!request) {
        wf_connection_free(connection);
        return -ENOMEM;
    }
    *out = request;
    wf_desk_take_number(&session->desk);
    wf_connection_set_class(connection, traffic);
    wf_connection_attach(connection, endpoint);
    connection->held = true;
    connection->open_due = true;
    connection->waiting = request;
    request->connection = connection;
    request->remote_endpoint = remote_id;
    wf_request_adopt(request, options);
    wf_connection_todo(connection);
    return 0;
}

static int open_connection(struct weft_endpoint *endpoint, struct weft_peer *peer, uint32_t remote_id,
                           const struct weft_options *options, struct weft_request **out, struct weft_error *err)
{
    struct wf_session *session = peer->session;
    if (remote_id == WEFT_ANY_ENDPOINT)
        return wf_fail(wf_status_of(err), -EINVAL,
                       "remote_id is WEFT_ANY_ENDPOINT: a connection is opened to one endpoint, by its number");
    pthread_mutex_lock(&endpoint->context->endpoints.lock);
    unsigned traffic = options && options->flags & WEFT_CLASS ? options->traffic_class : endpoint->traffic;
    pthread_mutex_unlock(&endpoint->context->endpoints.lock);
    wf_session_lock(session);
    int result = start_open(session, endpoint, remote_id, traffic, options, out);
    if (result < 0)
        refuse(session, result, err, "open a connection");
    wf_session_unlock(session);
    if (result == 0)
        wf_session_push(session);
    return result;
}

/* Checks what options with WEFT_CLASS say. */
static int check_class(const struct weft_options *options, struct weft_error *err)
{
    if (!options || !(options->flags & WEFT_CLASS))
        return 0;
    if (options->reserved != 0)
        return wf_fail(wf_status_of(err), -EINVAL,
                       "options.reserved is %u: it must be 0 (start from options that are all zero)",
                       options->reserved);
    if (options->traffic_class >= WF_CLASSES)
        return wf_fail(wf_status_of(err), -EINVAL, "options.traffic_class is %u: traffic classes are 0 to %d",
                       options->traffic_class, WF_CLASSES - 1);
    return 0;
}

/* Checks what the calls have in common that set up a connection. */
static int check(const struct weft_endpoint *endpoint, const struct weft_peer *peer, const struct weft_options *options,
                 const void *out, uint32_t allowed, const char *call, struct weft_error *err)
{
    if (!endpoint || !peer || !out) {
        wf_refuse_null(wf_status_of(err), call, !endpoint ? "endpoint" : !peer ? "peer" : "out");
        return -EINVAL;
    }
    if (endpoint->context != wf_context_of(peer->session))
        return wf_fail(wf_status_of(err), -EINVAL, "%s() with endpoint %u and a peer of another context", call,
                       endpoint->id);
    int result = wf_setup_check(endpoint->context, options, allowed, call, err);
    return result < 0 ? result : check_class(options, err);
}

int weft_connection_open_start(struct weft_endpoint *endpoint, struct weft_peer *peer, uint32_t remote_id,
                               const struct weft_options *options, struct weft_request **out, struct weft_error *err)
{
    int result = check(endpoint, peer, options, out, WEFT_CLASS, "weft_connection_open_start", err);
    return result < 0 ? result : open_connection(endpoint, peer, remote_id, options, out, err);
}

int weft_connection_open(struct weft_endpoint *endpoint, struct weft_peer *peer, uint32_t remote_id, int timeout_ms,
                         struct weft_connection **out, struct weft_error *err)
{
    struct weft_request *request;
    int result = check(endpoint, peer, NULL, out, 0, "weft_connection_open", err);
    if (result < 0)
        return result;
    result = open_connection(endpoint, peer, remote_id, NULL, &request, err);
    if (result < 0)
        return result;
    struct weft_completion completion;
    result = wf_request_finish(request, timeout_ms, &completion);
    if (result == 0) {
        *out = completion.connection;
        return 0;
    }
    if (result == -ETIMEDOUT)
        return wf_fail(wf_status_of(err), result, "endpoint %u of %s did not appear within %.1f s", remote_id,
                       peer->name, (double)timeout_ms / 1000);
    return wf_fail(wf_status_of(err), result, "%s", completion.text);
}

static int accept_connection(struct weft_endpoint *endpoint, struct weft_peer *peer, uint32_t remote_id,
                             const struct weft_options *options, struct weft_request **out, struct weft_error *err)
{
    struct wf_session *session = peer->session;
    wf_session_lock(session);
    struct weft_request *request = wf_request_take(&session->book, WF_REQUEST_ACCEPT, &wf_request_plain_ops);
    struct weft_connection *connection =
        request ? wf_connection_from_backlog(&session->desk, endpoint, remote_id) : NULL;
    int result = !request ? -ENOMEM : connection ? 0 : wf_session_usable(session);
    if (result < 0) {
        refuse(session, result, err, "accept a connection");
        if (request)
            wf_request_drop(request);
        wf_session_unlock(session);
        return result;
    }
    *out = request;
    request->endpoint = endpoint;
    request->remote_endpoint = remote_id;
    wf_request_adopt(request, options);
    if (connection) {
        request->connection = connection;
        wf_request_complete(request, 0, 0);
        wf_match_offer_all(connection);
        /* Messages that waited may have gone to receives of other threads, one of which may sleep in the engine, and
         * answers may be due. */
        wf_kicks_all(&session->kicks, NULL);
    } else {
        wf_desk_accept(&session->desk, request);
    }
    wf_session_unlock(session);
    return 0;
}

int weft_connection_accept_start(struct weft_endpoint *endpoint, struct weft_peer *peer, uint32_t remote_id,
                                 const struct weft_options *options, struct weft_request **out, struct weft_error *err)
{
    int result = check(endpoint, peer, options, out, 0, "weft_connection_accept_start", err);
    return result < 0 ? result : accept_connection(endpoint, peer, remote_id, options, out, err);
}

int weft_connection_accept(struct weft_endpoint *endpoint, struct weft_peer *peer, uint32_t remote_id, int timeout_ms,
                           struct weft_connection **out, struct weft_error *err)
{
    struct weft_request *request;
    int result = check(endpoint, peer, NULL, out, 0, "weft_connection_accept", err);
    if (result < 0)
        return result;
    result = accept_connection(endpoint, peer, remote_id, NULL, &request, err);
    if (result < 0)
        return result;
    struct weft_completion completion;
    result = wf_request_finish(request, timeout_ms, &completion);
    if (result == 0)
        *out = completion.connection;
    if (result == -ETIMEDOUT)
        return wf_fail(wf_status_of(err), result, "no connection to endpoint %u came from %s within %.1f s",
                       endpoint->id, peer->name, (double)timeout_ms / 1000);
    return result < 0 ? wf_fail(wf_status_of(err), result, "%s", completion.text) : 0;
}

/* --- closing --- */

/* The connection closes without the user. `request`: ends when it has closed. Session lock held. */
static void close_connection(struct wf_session *session, struct weft_connection *connection,
                             struct weft_request *request)
{
    connection->held = false;
    if (session->guard.state != WF_SESSION_UP) {
        if (request)
            wf_request_complete(request, 0, 0);
        /* A message that is here may wait for its receive's turn in a stream: then the session's end frees the
         * connection. Otherwise nothing touches it any more. */
        if (session->guard.holders == 0 && connection->inbounds == 0)
            wf_connection_free(connection);
        else if (session->guard.state == WF_SESSION_DEAD)
            wf_connection_attach(connection, NULL);
        return;
    }
    if (request) {
        request->connection = connection;
        request->remote_endpoint = connection->remote_endpoint;
        connection->waiting = request;
    }
    wf_connection_start_close(connection);
}

/* NULL: there is no memory for the request. */
static struct weft_request *start_close(struct weft_connection *connection, const struct weft_options *options)
{
    struct wf_session *session = wf_session_at(connection->desk);
    wf_session_lock(session);
    struct weft_request *request = wf_request_take(&session->book, WF_REQUEST_CLOSE, &wf_connection_ops);
    if (request)
        wf_request_adopt(request, options);
    close_connection(session, connection, request);
    wf_session_unlock(session);
    wf_session_push(session);
    return request;
}

int weft_connection_close_start(struct weft_connection *connection, const struct weft_options *options,
                                struct weft_request **out, struct weft_error *err)
{
    if (WF_IS_NULL(wf_status_of(err), connection) || WF_IS_NULL(wf_status_of(err), out))
        return -EINVAL;
    struct weft_context *context = wf_context_of(wf_session_at(connection->desk));
    int result = wf_setup_check(context, options, 0, "weft_connection_close_start", err);
    if (result < 0)
        return result;
    struct weft_request *request = start_close(connection, options);
    if (!request)
        return wf_fail(wf_status_of(err), -ENOMEM, "no memory to wait for the end of a connection: it ends by itself");
    *out = request;
    return 0;
}

int weft_connection_close(struct weft_connection *connection, int timeout_ms, struct weft_error *err)
{
    if (WF_IS_NULL(wf_status_of(err), connection))
        return -EINVAL;
    struct weft_request *request = start_close(connection, NULL);
    if (!request)
        return 0;
    struct weft_completion completion;
    int result = wf_request_finish(request, timeout_ms, &completion);
    if (result == -ETIMEDOUT)
        return wf_fail(wf_status_of(err), result, "own sends did not finish within %.1f s and were cancelled",
                       (double)timeout_ms / 1000);
    return result < 0 ? wf_fail(wf_status_of(err), result, "%s", completion.text) : 0;
}

uint32_t weft_connection_remote(const struct weft_connection *connection)
{
    if (WF_IS_NULL(wf_refusal(), connection))
        return WEFT_ANY_ENDPOINT;
    return connection->remote_endpoint;
}

uint32_t weft_connection_class(const struct weft_connection *connection)
{
    return WF_IS_NULL(wf_refusal(), connection) ? 0 : connection->traffic;
}
