/* The public calls on peers. */
#include "core/calls/peer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/brackets.h"
#include "core/calls/context.h"
#include "core/join/door.h"
#include "core/message/connection.h"
#include "core/rail/address.h"
#include "core/request/request.h"
#include "core/session/end.h"
#include "core/session/session.h"
#include "core/session/traffic.h"

static void sleep_until(struct weft_context *context, int64_t until_ns)
{
    if (until_ns == WF_NEVER) {
        pthread_cond_wait(&context->sessions.changed, &context->world.lock);
        return;
    }
    struct timespec until = {.tv_sec = until_ns / WF_NS_PER_S, .tv_nsec = until_ns % WF_NS_PER_S};
    pthread_cond_timedwait(&context->sessions.changed, &context->world.lock, &until);
}

/* A call with this address has failed. "::1:8555" is an address, and may not have been meant as one. Returns `code`. */
static int suspect_address(const char *address, int code, struct wf_status *status)
{
    char meant[128];
    if (status && wf_brackets_meant(address, meant, sizeof meant) && !strstr(status->text, meant))
        wf_fail(status, code, "%.180s (is %s meant?)", status->text, meant);
    return code;
}

int weft_listen(struct weft_context *context, const char *address, struct weft_error *err)
{
    struct sockaddr_storage parsed;
    const char *text = address ? address : "";
    int result = wf_address_parse(text, context->world.tuning.port, true, &parsed, wf_status_of(err));
    if (result == 0)
        result = wf_door_listen(context->door, &parsed, wf_status_of(err));
    return result < 0 ? suspect_address(text, result, wf_status_of(err)) : 0;
}

int weft_listen_port(const struct weft_context *context)
{
    return context->door->port ? context->door->port : -ENOTCONN;
}

int weft_connect(struct weft_context *context, const char *address, int timeout_ms, struct weft_peer **out,
                 struct weft_error *err)
{
    struct wf_dial dial;
    int result = wf_dial_init(&dial, &context->world, address, timeout_ms, wf_status_of(err));
    if (result < 0)
        return result;
    wf_door_dial(context->door, &dial);
    wf_dial_wait(&dial, &context->sessions);
    if (dial.status.code < 0) {
        if (err)
            *wf_status_of(err) = dial.status;
        return suspect_address(address, dial.status.code, wf_status_of(err));
    }
    *out = &dial.session->peer;
    return 0;
}

int weft_accept(struct weft_context *context, int timeout_ms, struct weft_peer **out, struct weft_error *err)
{
    int64_t deadline = wf_deadline_after_ms(wf_world_now(&context->world), timeout_ms);
    pthread_mutex_lock(&context->world.lock);
    struct wf_session *session;
    while (!(session = wf_sessions_take(&context->sessions)) && wf_world_now(&context->world) < deadline)
        sleep_until(context, deadline);
    pthread_mutex_unlock(&context->world.lock);
    if (!session)
        return wf_fail(wf_status_of(err), -ETIMEDOUT, "no peer connected within %.1f s", (double)timeout_ms / 1000);
    wf_session_lock(session);
    session->user_has_it = true;
    wf_session_unlock(session);
    *out = &session->peer;
    return 0;
}

/* Ends the user's handles on connections together with the handle on the peer. Session lock held. */
static void drop_handles(struct wf_session *session)
{
    WF_DESK_EACH_CONNECTION (connection, &session->desk) {
        connection->held = false;
        wf_connection_check(connection);
    }
}

struct weft_request *wf_session_ask_to_close(struct wf_session *session)
{
    struct weft_request *request = NULL;
    wf_session_lock(session);
    wf_session_dismiss(session, NULL);
    drop_handles(session);
    if (session->guard.state == WF_SESSION_JOINING)
        wf_guard_fail(&session->guard, -ESHUTDOWN, "closed before all channels were joined");
    else if (session->guard.state != WF_SESSION_DEAD)
        request = wf_request_take(&session->book, WF_REQUEST_PEER_CLOSE, &wf_closing_ops);
    wf_session_dismiss(session, request);
    if (request)
        wf_session_start_close(session);
    else if (session->guard.state == WF_SESSION_UP)
        wf_guard_fail(&session->guard, -ENOMEM, "no memory to close the session in an orderly way");
    wf_session_unlock(session);
    return request;
}

/* Detaches the connections from their endpoints: the door frees the session later, and until then the endpoints would
 * be busy. */
static void leave_endpoints(struct wf_session *session)
{
    wf_session_lock(session);
    WF_DESK_EACH_CONNECTION (connection, &session->desk) {
        wf_connection_attach(connection, NULL);
    }
    wf_session_unlock(session);
}

int weft_peer_close(struct weft_peer *peer, int timeout_ms, struct weft_error *err)
{
    struct wf_session *session = peer->session;
    struct weft_request *request = wf_session_ask_to_close(session);
    int result = 0;
    if (request) {
        wf_session_push(session);
        struct weft_completion completion;
        result = weft_wait(request, timeout_ms, &completion);
        if (result < 0) { /* no answer from the peer: failing the session cuts its channels, and ends the request */
            wf_session_lock(session);
            wf_guard_fail(&session->guard, -ETIMEDOUT, "%s did not answer while its session was closed", peer->name);
            wf_session_unlock(session);
            wf_session_push(session);
            weft_wait(request, -1, &completion);
            completion.status = -ETIMEDOUT;
        }
        result = completion.status;
    }
    if (result < 0) {
        wf_session_lock(session);
        wf_fail(wf_status_of(err), result, "%s", session->guard.error.text);
        wf_session_unlock(session);
    }
    leave_endpoints(session);
    wf_session_release(session);
    return result;
}

const char *weft_peer_name(const struct weft_peer *peer)
{
    return peer->name;
}

int weft_peer_status(const struct weft_peer *peer, struct weft_error *err)
{
    struct wf_session *session = peer->session;
    wf_session_lock(session);
    int result = wf_session_usable(session);
    if (result < 0)
        wf_fail(wf_status_of(err), result, "%s",
                session->guard.error.code ? session->guard.error.text : "the peer has closed the session");
    wf_session_unlock(session);
    return result;
}

/* Fills the numbers of one rail as they are now. Session lock held. */
static void fill_rail(struct wf_session *session, int index, struct weft_rail_stats *stats)
{
    const struct wf_session_rail *rail = &session->lines.rails[index];
    memset(stats, 0, sizeof *stats);
    WF_LINES_EACH (channel, &session->lines) {
        if (channel->rail != index)
            continue;
        stats->channels += 1;
        stats->channels_up += channel->up;
        if (channel->up)
            wf_channel_note_retransmits(channel);
    }
    snprintf(stats->name, sizeof stats->name, "%s", rail->name);
    wf_address_text(&rail->from, false, stats->local, sizeof stats->local);
    wf_address_text(&rail->to, false, stats->remote, sizeof stats->remote);
    stats->sent_bytes = atomic_load(&rail->sent_bytes);
    stats->received_bytes = atomic_load(&rail->received_bytes);
    stats->resent_bytes = atomic_load(&rail->resent_bytes);
    stats->stalls = atomic_load(&rail->stalls);
    stats->failures = atomic_load(&rail->failures);
    stats->damaged = atomic_load(&rail->damaged);
    stats->retransmits = atomic_load(&rail->retransmits);
    stats->device_bound = rail->device_bound;
    stats->retired = rail->retired;
}

int weft_peer_rails(const struct weft_peer *peer, struct weft_rail_stats *stats, int max)
{
    struct wf_session *session = peer->session;
    wf_session_lock(session);
    int count = session->lines.rail_count;
    for (int i = 0; i < count && i < max; i++)
        fill_rail(session, i, &stats[i]);
    wf_session_unlock(session);
    return count;
}

uint64_t weft_peer_denied(const struct weft_peer *peer)
{
    struct wf_session *session = peer->session;
    wf_session_lock(session);
    uint64_t denied = session->desk.denied;
    wf_session_unlock(session);
    return denied;
}

int weft_peer_set_rate(struct weft_peer *peer, uint32_t traffic_class, uint64_t bytes_per_second)
{
    if (!peer || traffic_class >= WF_CLASSES)
        return -EINVAL;
    struct wf_session *session = peer->session;
    wf_session_lock(session);
    int result = wf_session_usable(session);
    if (result == 0 && bytes_per_second > 0 && bytes_per_second < wf_session_least_rate(session))
        result = -ERANGE;
    if (result == 0 && traffic_class > 0)
        result = wf_session_use_class(session, traffic_class);
    if (result == 0)
        wf_session_set_rate(session, traffic_class, bytes_per_second);
    wf_session_unlock(session);
    return result;
}
