#include "core/session/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/ground/reached.h"
#include "core/join/door.h"
#include "core/message/connection.h"
#include "core/message/outbound.h"
#include "core/message/pieces.h"
#include "core/message/served.h"
#include "core/request/request.h"
#include "wire/range.h"
#include "core/calls/context.h"
#include "core/rail/address.h"

/* --- life --- */

void wf_sessions_init(struct wf_sessions *sessions)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&sessions->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&sessions->log_lock, NULL);
    sessions->unknown_log.interval_ns = 5 * WF_NS_PER_S;
    wf_list_init(&sessions->all);
    wf_list_init(&sessions->accepted);
}

void wf_sessions_fini(struct wf_sessions *sessions)
{
    pthread_cond_destroy(&sessions->changed);
    pthread_mutex_destroy(&sessions->log_lock);
}

static void init_lists(struct wf_session *session)
{
    wf_list_init(&session->book.requests);
    wf_list_init(&session->book.deadlines);
    wf_list_init(&session->desk.bulk_ready);
    wf_list_init(&session->desk.express_ready);
    wf_list_init(&session->desk.todo_connections);
    wf_list_init(&session->desk.todo_inbounds);
    wf_list_init(&session->desk.todo_outbounds);
    wf_list_init(&session->desk.backlog);
    wf_list_init(&session->desk.orphans);
    wf_list_init(&session->desk.acceptors);
    wf_list_init(&session->desk.notes_due);
    wf_list_init(&session->desk.regions_used);
    wf_list_init(&session->desk.stage_waiting);
    wf_list_init(&session->desk.pieces);
    for (int i = 0; i < WF_HASH_SIZE; i++) {
        wf_list_init(&session->desk.connection_hash[i]);
        wf_list_init(&session->desk.inbound_hash[i]);
        wf_list_init(&session->desk.outbound_hash[i]);
        wf_list_init(&session->desk.posted_hash[i]);
        wf_list_init(&session->desk.unexpected_hash[i]);
    }
    wf_finished_init(&session->desk.closed_numbers[0]);
    wf_finished_init(&session->desk.closed_numbers[1]);
}

static int init_pools(struct wf_session *session)
{
    const struct wf_tuning *tuning = &session->context->world.tuning;
    size_t slot = session->terms.eager ? session->terms.eager : 1;
    wf_pool_init(&session->book.pool, sizeof(struct weft_request), 64, 0);
    wf_pool_init(&session->desk.inbound_pool, sizeof(struct wf_inbound), 64, 0);
    wf_pool_init(&session->desk.outbound_pool, sizeof(struct wf_outbound), 64, 0);
    wf_pool_init(&session->desk.slot_pool, slot, 16, tuning->small_pool / slot ? tuning->small_pool / slot : 1);
    wf_pool_init(&session->desk.range_pool, WF_RANGE_MAX * sizeof(struct wf_range), 8, 0);
    wf_pool_init(&session->shares.transits, sizeof(struct wf_transit), 64, 0);
    int result = wf_blocks_init(&session->desk.blocks, tuning->unexpected);
    session->desk.unsolicited_told = (uint64_t)session->desk.blocks.count * WF_BLOCK_BYTES;
    return result;
}

static void destroy(struct wf_session *session)
{
    for (int i = 0; i < session->context->crew.count; i++)
        wf_worker_forget(&session->kicks.each[i]);
    for (int i = 0; i < WF_HASH_SIZE; i++) {
        WF_LIST_EACH (link, following, &session->desk.connection_hash[i])
            wf_connection_free(WF_CONTAINER(link, struct weft_connection, hash_link));
    }
    struct wf_link *link;
    while ((link = wf_list_pop_front(&session->desk.pieces))) /* of operations that the end of the session found */
        free(WF_CONTAINER(link, struct wf_pieces, link));
    for (int i = 0; i < session->lines.channel_count; i++) {
        if (session->lines.channels[i])
            wf_channel_fini(session->lines.channels[i]);
        free(session->lines.channels[i]);
    }
    wf_strays_fini(&session->loss.strays[0]);
    wf_strays_fini(&session->loss.strays[1]);
    free(session->lines.channels);
    free(session->lines.told);
    wf_spread_fini(&session->loss.spread);
    wf_finished_fini(&session->desk.closed_numbers[0]);
    wf_finished_fini(&session->desk.closed_numbers[1]);
    wf_pool_fini(&session->book.pool);
    wf_pool_fini(&session->desk.inbound_pool);
    wf_pool_fini(&session->desk.outbound_pool);
    wf_pool_fini(&session->desk.slot_pool);
    wf_pool_fini(&session->desk.range_pool);
    wf_pool_fini(&session->shares.transits);
    wf_device_shares_fini(session);
    wf_blocks_fini(&session->desk.blocks);
    wf_guard_fini(&session->guard);
    explicit_bzero(session->secret, sizeof session->secret);
    free(session);
}

struct wf_session *wf_session_create(struct weft_context *context, bool dialer, const struct wf_hello *peer_hello,
                                     uint64_t id, const uint8_t secret[WF_SECRET_BYTES])
{
    struct wf_session *session = calloc(1, sizeof *session);
    if (!session)
        return NULL;
    session->context = context;
    session->known = dialer;
    session->id = id;
    session->peer.session = session;
    memcpy(session->secret, secret, WF_SECRET_BYTES);
    snprintf(session->peer.name, sizeof session->peer.name, "%s", peer_hello->name);
    wf_guard_init(&session->guard, &context->world, session->peer.name);
    wf_terms_init(&session->terms, &context->world, dialer, peer_hello);
    init_lists(session);
    session->loss.lost_log.interval_ns = WF_NS_PER_S;
    for (int i = 0; i < context->crew.count; i++) {
        session->kicks.each[i].session = session;
        session->kicks.each[i].worker = context->crew.workers[i];
        wf_link_init(&session->kicks.each[i].link);
    }
    for (int i = 0; i < WF_RAILS_MAX; i++) { /* of those that the dialer has paired, and that have not met yet */
        session->lines.rails[i].local = -1;
        snprintf(session->lines.rails[i].name, sizeof session->lines.rails[i].name, "unmet");
    }
    session->desk.unsolicited_limit = peer_hello->limits.unsolicited;
    atomic_store(&session->lines.heard_ns, wf_world_now(&context->world));
    session->life.join_by_ns = wf_world_now(&context->world) + context->world.tuning.connect_timeout_ns;
    if (init_pools(session) < 0) {
        destroy(session);
        return NULL;
    }
    pthread_mutex_lock(&context->world.lock);
    wf_link_init(&session->accept_link);
    wf_list_push_back(&context->sessions.all, &session->link);
    context->sessions.count += 1;
    pthread_mutex_unlock(&context->world.lock);
    return session;
}

void wf_session_destroy(struct wf_session *session)
{
    wf_link_remove(&session->link);
    wf_link_remove(&session->accept_link);
    session->context->sessions.count -= 1;
    destroy(session);
}

bool wf_session_is_over(struct wf_session *session)
{
    wf_session_lock(session);
    bool over = session->guard.state == WF_SESSION_DEAD && session->guard.references == 0;
    wf_session_unlock(session);
    return over;
}

void wf_session_release(struct wf_session *session)
{
    wf_session_lock(session);
    wf_session_unlock_and_release(session);
}

void wf_session_unlock_and_release(struct wf_session *session)
{
    struct weft_context *context = session->context;
    session->guard.references -= 1;
    bool over = session->guard.references == 0 && session->guard.state == WF_SESSION_DEAD;
    wf_session_unlock(session);
    if (over)
        wf_alarm_by(&context->world.alarm, 0); /* the door frees it: no worker can be looking at it there */
}

void wf_session_hello(struct weft_context *context, struct wf_hello *hello)
{
    const struct wf_tuning *tuning = &context->world.tuning;
    memset(hello, 0, sizeof *hello);
    hello->version_min = hello->version_max = WF_PROTOCOL_VERSION;
    hello->features = tuning->encrypt ? WF_FEATURE_ENCRYPT : 0;
    hello->boot_nonce = context->world.boot_nonce;
    hello->limits = (struct wf_limits){.chunk = tuning->chunk,
                                       .eager = tuning->eager,
                                       .first_burst = tuning->first_burst,
                                       .header_pad = tuning->header_pad,
                                       .unsolicited = tuning->unexpected / WF_BLOCK_BYTES * WF_BLOCK_BYTES,
                                       .list_bytes = WF_LIST_ENTRIES_MAX * WF_ENTRY_BYTES,
                                       .connections = WF_CONNECTIONS_MAX};
    snprintf(hello->name, sizeof hello->name, "%s", context->world.host_name);
    hello->rail_count = (uint8_t)context->rails.count;
    for (int i = 0; i < context->rails.count; i++)
        wf_address_to_wire(&context->rails.each[i].address, context->rails.each[i].name, &hello->rails[i]);
}

int wf_session_expect(struct wf_session *session, int count)
{
    session->lines.channels = calloc((size_t)count, sizeof *session->lines.channels);
    session->lines.told = calloc((size_t)count, sizeof *session->lines.told);
    if (session->lines.channels && session->lines.told && wf_spread_init(&session->loss.spread, count) == 0) {
        session->lines.channel_count = count;
        return 0;
    }
    free(session->lines.channels); /* there may be another try */
    free(session->lines.told);
    wf_spread_fini(&session->loss.spread);
    session->lines.channels = NULL;
    session->lines.told = NULL;
    return -ENOMEM;
}

/* --- joining --- */

/* One worker for everything, or a pair for each rail: even ones send, odd ones receive. */
static void assign_workers(struct wf_session *session, struct wf_channel *channel)
{
    struct weft_context *context = session->context;
    int local = session->lines.rails[channel->rail].local;
    int pair = local < 0 ? 0 : local;
    channel->tx.worker = context->crew.workers[context->world.shared ? 0 : 2 * pair];
    channel->rx.worker = context->crew.workers[context->world.shared ? 0 : 2 * pair + 1];
}

static void discard(struct wf_channel *channel)
{
    wf_channel_fini(channel);
    free(channel);
}

/* A channel that was never joined. NULL: memory. */
static struct wf_channel *first_incarnation(struct wf_session *session, const struct wf_join *join)
{
    struct wf_channel *channel = calloc(1, sizeof *channel);
    if (!channel || wf_channel_init(channel, session, join) == 0)
        return channel;
    discard(channel);
    return NULL;
}

int wf_session_may_join(struct wf_session *session, const struct wf_join *join)
{
    wf_session_lock(session);
    struct wf_channel *channel = session->lines.channels[join->channel];
    bool open = session->guard.state == WF_SESSION_JOINING || session->guard.state == WF_SESSION_UP;
    int result = open && (!channel || channel->incarnation < join->incarnation) ? 0 : -EALREADY;
    if (result == 0 && channel && !channel->gone) {
        WF_REACHED("channel PROVING: an older incarnation is up");
        WF_REACHED_IF(!channel->kill, "channel UP: superseded");
        wf_session_lost(session, channel, -ECONNRESET, "the peer has joined it anew");
        result = -EAGAIN;
    }
    wf_session_unlock(session);
    return result;
}

/* The first channel after none: the peer gets time to answer on it, once for each time that it was heard. Session lock
 * held. */
static void greet(struct wf_session *session, int64_t now_ns)
{
    bool heard = atomic_load_explicit(&session->lines.heard_ns, memory_order_relaxed) >= session->life.greeted_ns;
    if (session->lines.up_count > 0 || !heard)
        return;
    session->life.greeted_ns = session->life.progress_ns = now_ns;
    session->life.ping_ns = 0;
}

void wf_session_check_joined(struct wf_session *session)
{
    bool all = session->lines.joined + session->lines.missed == session->lines.channel_count;
    if (session->guard.state != WF_SESSION_JOINING || !all || session->lines.up_count == 0)
        return;
    int64_t now = wf_world_now(&session->context->world);
    WF_REACHED("session JOINING: every channel has proved itself or was missed, and one is up");
    session->guard.state = WF_SESSION_UP;
    session->life.progress_ns = now; /* its patience begins now */
    atomic_store(&session->lines.heard_ns, now);
    wf_alarm_by(&session->context->world.alarm, 0);
}

/* The channel is at work from now on. Session lock held. */
static void raise(struct wf_session *session, struct wf_channel *channel, int fd)
{
    channel->fd = fd;
    assign_workers(session, channel);
    channel->tx.detached = channel->rx.detached = false;
    channel->up = true;
    channel->redial.refused = false;
    int64_t now = wf_world_now(&session->context->world);
    channel->tx.progress_ns = channel->redial.joined_ns = now;
    greet(session, now);
    channel->tx.ping_due = channel->pulse.asked = channel->incarnation > 1; /* the peer may not have got the proof */
    session->guard.holders += 2;
    session->lines.up_count += 1;
    wf_session_check_joined(session);
    wf_session_repeat_totals(session);
    if (session->lines.told[channel->id] >= channel->incarnation)
        wf_session_lost(session, channel, -ECONNRESET, "the peer has lost it");
    else /* both sides had nothing else; the next damage retires it again */
        session->lines.rails[channel->rail].retired = false;
    wf_session_kick_all(session, NULL);
}

/* A channel has its place in the session. Session lock held. */
static void enter(struct wf_session *session, struct wf_channel *channel)
{
    session->lines.channels[channel->id] = channel;
    session->lines.joined += 1;
    session->lines.missed -= !session->terms.dialer && session->lines.told[channel->id] > 0;
    session->lines.bulk_count += channel->kind == WF_CHANNEL_BULK;
    /* A hole in what has come is a chunk under way, or one of a lost channel, before which nothing new is sent. */
    session->desk.range_pool.limit += channel->tx.ring;
}

int wf_session_miss(struct wf_session *session, const struct wf_join *join, int code)
{
    struct wf_channel *channel = first_incarnation(session, join);
    if (!channel)
        return -ENOMEM;
    wf_session_lock(session);
    bool joins = session->guard.state == WF_SESSION_JOINING;
    if (joins) {
        enter(session, channel);
        assign_workers(session, channel);
        wf_channel_missed(channel, code);
        wf_session_check_joined(session);
    }
    wf_session_unlock(session);
    if (!joins)
        discard(channel);
    return 0;
}

int wf_session_join(struct wf_session *session, const struct wf_join *join, uint64_t granted_frames,
                    uint64_t granted_bytes, int fd)
{
    /* Only the door joins: what may_join() has said still holds, but for the end of the session. */
    struct wf_channel *channel = session->lines.channels[join->channel], *fresh = NULL;
    if (!channel)
        fresh = channel = first_incarnation(session, join);
    if (!channel)
        return -ENOMEM;
    wf_session_lock(session);
    bool open = session->guard.state == WF_SESSION_JOINING || session->guard.state == WF_SESSION_UP;
    if (open && fresh) {
        enter(session, fresh);
    } else if (open) {
        wf_channel_restart(channel, join->incarnation);
        wf_log(&session->context->world.log, WF_LOG_INFO, "rail %s to %s: channel %u is joined again",
               session->lines.rails[channel->rail].name, session->peer.name, channel->id);
    }
    if (open) {
        wf_window_grant(&channel->tx.window, granted_frames, granted_bytes);
        raise(session, channel, fd);
    }
    wf_session_unlock(session);
    if (!open && fresh)
        discard(fresh);
    return open ? 0 : -EALREADY;
}

void wf_session_settle(struct wf_session *session, uint64_t charge)
{
    session->desk.unsolicited_settled += charge;
    uint64_t pool = (uint64_t)session->desk.blocks.count * WF_BLOCK_BYTES;
    uint64_t step = pool / 4;
    if (session->desk.unsolicited_settled + pool - session->desk.unsolicited_told >= (step ? step : 1))
        session->desk.credit_due = true;
}
