/* The public calls on peers. */
#include "core/calls/peer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/calls/context.h"
#include "core/calls/setup.h"
#include "core/ground/refusal.h"
#include "core/message/connection.h"
#include "core/message/connection_close.h"
#include "core/rail/address.h"
#include "core/request/book.h"
#include "core/request/request.h"
#include "core/session/end.h"
#include "core/session/session.h"
#include "core/session/traffic.h"

/* Ends the user's handles on connections together with the handle on the peer. Session lock held. */
static void drop_handles(struct wf_session *session)
{
    WF_DESK_EACH_CONNECTION (connection, &session->desk) {
        connection->held = false;
        wf_connection_check(connection);
    }
}

static struct weft_request *start_close(struct wf_session *session, const struct weft_options *options)
{
    wf_session_lock(session);
    wf_session_dismiss(session, NULL);
    drop_handles(session);
    if (session->guard.state == WF_SESSION_JOINING)
        wf_guard_fail(&session->guard, -ESHUTDOWN, "closed before all channels were joined");
    struct weft_request *request = wf_request_take(&session->book, WF_REQUEST_PEER_CLOSE, &wf_closing_ops);
    if (request)
        wf_request_adopt(request, options);
    wf_session_dismiss(session, request);
    bool dead = session->guard.state == WF_SESSION_DEAD;
    if (request)
        wf_session_start_close(session); /* also of a dead one: receives may wait for their streams */
    if (request && dead)
        wf_request_complete(request, wf_session_close_status(session), 0);
    else if (!request && session->guard.state == WF_SESSION_UP)
        wf_guard_fail(&session->guard, -ENOMEM, "no memory to close the session in an orderly way");
    wf_session_unlock(session);
    return request;
}

struct weft_request *wf_session_ask_to_close(struct wf_session *session)
{
    return start_close(session, NULL);
}

int weft_peer_close_start(struct weft_peer *peer, const struct weft_options *options, struct weft_request **out,
                          struct weft_error *err)
{
    if (WF_IS_NULL(wf_status_of(err), peer) || WF_IS_NULL(wf_status_of(err), out))
        return -EINVAL;
    struct wf_session *session = peer->session;
    int result = wf_setup_check(wf_context_of(session), options, 0, "weft_peer_close_start", err);
    if (result < 0)
        return result;
    struct weft_request *request = start_close(session, options);
    if (request)
        *out = request;
    else
        result =
            wf_fail(wf_status_of(err), -ENOMEM, "no memory to close the session with %s in an orderly way", peer->name);
    wf_session_push(session);
    wf_session_release(session);
    return result;
}

int weft_peer_close(struct weft_peer *peer, int timeout_ms, struct weft_error *err)
{
    if (WF_IS_NULL(wf_status_of(err), peer))
        return -EINVAL;
    struct wf_session *session = peer->session;
    struct weft_request *request = start_close(session, NULL);
    struct weft_completion completion;
    int result = -ENOMEM;
    wf_session_push(session);
    if (request)
        result = wf_request_finish(request, timeout_ms, &completion);
    if (result < 0)
        wf_fail(wf_status_of(err), result, "%s",
                request ? completion.text : "no memory to close the session in an orderly way");
    wf_session_release(session);
    return result;
}

const char *weft_peer_name(const struct weft_peer *peer)
{
    if (WF_IS_NULL(wf_refusal(), peer))
        return "";
    return peer->name;
}

int weft_peer_status(const struct weft_peer *peer, struct weft_error *err)
{
    if (WF_IS_NULL(wf_status_of(err), peer))
        return -EINVAL;
    struct wf_session *session = peer->session;
    wf_session_lock(session);
    int result = wf_session_usable(session);
    if (result < 0)
        wf_fail(wf_status_of(err), result, "%s", wf_session_why_unusable(session));
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
    if (WF_IS_NULL(wf_refusal(), peer) || (max > 0 && WF_IS_NULL(wf_refusal(), stats)))
        return -EINVAL;
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
    if (WF_IS_NULL(wf_refusal(), peer))
        return 0;
    struct wf_session *session = peer->session;
    wf_session_lock(session);
    uint64_t denied = session->desk.denied;
    wf_session_unlock(session);
    return denied;
}

int weft_peer_set_rate(struct weft_peer *peer, uint32_t traffic_class, uint64_t bytes_per_second)
{
    if (WF_IS_NULL(wf_refusal(), peer))
        return -EINVAL;
    if (traffic_class >= WF_CLASSES) {
        wf_fail(wf_refusal(), -EINVAL, "traffic_class is %u: traffic classes are 0 to %d", traffic_class,
                WF_CLASSES - 1);
        return wf_refused(__func__, -EINVAL);
    }
    struct wf_session *session = peer->session;
    wf_session_lock(session);
    int result = wf_session_usable(session);
    if (result < 0)
        wf_fail(wf_refusal(), result, "%s", wf_session_why_unusable(session));
    uint64_t least = wf_session_least_rate(session);
    if (result == 0 && bytes_per_second > 0 && bytes_per_second < least)
        result =
            wf_fail(wf_refusal(), -ERANGE,
                    "a rate of %llu bytes a second would make the peer look dead: the least is %llu (settings chunk, "
                    "eager, channels, header_pad and timeout), or 0 for no limit",
                    (unsigned long long)bytes_per_second, (unsigned long long)least);
    if (result == 0 && traffic_class > 0)
        result = wf_session_use_class(session, traffic_class);
    if (result == -ENOTSUP)
        wf_fail(wf_refusal(), result, "%s runs an older version of Weft, which knows no traffic class but 0",
                session->peer.name);
    if (result == 0)
        wf_session_set_rate(session, traffic_class, bytes_per_second);
    wf_session_unlock(session);
    return result < 0 ? wf_refused(__func__, result) : 0;
}
