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

/* --- life --- */

static void init_lists(struct wf_session *session)
{
    wf_list_init(&session->requests);
    wf_list_init(&session->deadlines);
    wf_list_init(&session->bulk_ready);
    wf_list_init(&session->express_ready);
    wf_list_init(&session->todo_connections);
    wf_list_init(&session->todo_inbounds);
    wf_list_init(&session->todo_outbounds);
    wf_list_init(&session->backlog);
    wf_list_init(&session->orphans);
    wf_list_init(&session->acceptors);
    wf_list_init(&session->notes_due);
    wf_list_init(&session->regions_used);
    wf_list_init(&session->stage_waiting);
    wf_list_init(&session->pieces);
    for (int i = 0; i < WF_HASH_SIZE; i++) {
        wf_list_init(&session->connection_hash[i]);
        wf_list_init(&session->inbound_hash[i]);
        wf_list_init(&session->outbound_hash[i]);
        wf_list_init(&session->posted_hash[i]);
        wf_list_init(&session->unexpected_hash[i]);
    }
    wf_finished_init(&session->closed_numbers[0]);
    wf_finished_init(&session->closed_numbers[1]);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void agree(struct wf_session *session, const struct wf_hello *hello)
{
    const struct wf_tuning *tuning = &session->context->tuning;
    session->limits = hello->limits;
    session->peer_boot = hello->boot_nonce;
    session->chunk = smaller(tuning->chunk, hello->limits.chunk);
    session->eager = smaller(tuning->eager, session->chunk);
    session->first_burst = tuning->first_burst;
    /* What the peer will do with its own `eager`, by the same rule. */
    session->limits.eager = smaller(hello->limits.eager, session->chunk);
    session->unsolicited_limit = hello->limits.unsolicited;
}

static int init_pools(struct wf_session *session)
{
    const struct wf_tuning *tuning = &session->context->tuning;
    size_t slot = session->eager ? session->eager : 1;
    wf_pool_init(&session->request_pool, sizeof(struct weft_request), 64, 0);
    wf_pool_init(&session->inbound_pool, sizeof(struct wf_inbound), 64, 0);
    wf_pool_init(&session->outbound_pool, sizeof(struct wf_outbound), 64, 0);
    wf_pool_init(&session->slot_pool, slot, 16, tuning->small_pool / slot ? tuning->small_pool / slot : 1);
    wf_pool_init(&session->range_pool, WF_RANGE_MAX * sizeof(struct wf_range), 8, 0);
    wf_pool_init(&session->transit_pool, sizeof(struct wf_transit), 64, 0);
    int result = wf_blocks_init(&session->blocks, tuning->unexpected);
    session->unsolicited_told = (uint64_t)session->blocks.count * WF_BLOCK_BYTES;
    return result;
}

static void destroy(struct wf_session *session)
{
    for (int i = 0; i < session->context->worker_count; i++)
        wf_worker_forget(&session->kicks[i]);
    for (int i = 0; i < WF_HASH_SIZE; i++) {
        WF_LIST_EACH (link, following, &session->connection_hash[i])
            wf_connection_free(WF_CONTAINER(link, struct weft_connection, hash_link));
    }
    struct wf_link *link;
    while ((link = wf_list_pop_front(&session->pieces))) /* of operations that the end of the session found */
        free(WF_CONTAINER(link, struct wf_pieces, link));
    for (int i = 0; i < session->channel_count; i++) {
        if (session->channels[i])
            wf_channel_fini(session->channels[i]);
        free(session->channels[i]);
    }
    wf_strays_fini(&session->strays[0]);
    wf_strays_fini(&session->strays[1]);
    free(session->channels);
    free(session->told);
    wf_spread_fini(&session->spread);
    wf_finished_fini(&session->closed_numbers[0]);
    wf_finished_fini(&session->closed_numbers[1]);
    wf_pool_fini(&session->request_pool);
    wf_pool_fini(&session->inbound_pool);
    wf_pool_fini(&session->outbound_pool);
    wf_pool_fini(&session->slot_pool);
    wf_pool_fini(&session->range_pool);
    wf_pool_fini(&session->transit_pool);
    wf_device_shares_fini(session);
    wf_blocks_fini(&session->blocks);
    pthread_mutex_destroy(&session->lock);
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
    session->dialer = session->known = dialer;
    session->id = id;
    session->references = 1;
    session->peer.session = session;
    memcpy(session->secret, secret, WF_SECRET_BYTES);
    snprintf(session->peer.name, sizeof session->peer.name, "%s", peer_hello->name);
    pthread_mutex_init(&session->lock, NULL);
    init_lists(session);
    session->lost_log.interval_ns = WF_NS_PER_S;
    for (int i = 0; i < context->worker_count; i++) {
        session->kicks[i].session = session;
        session->kicks[i].worker = context->workers[i];
        wf_link_init(&session->kicks[i].link);
    }
    for (int i = 0; i < WF_RAILS_MAX; i++) { /* of those that the dialer has paired, and that have not met yet */
        session->rails[i].local = -1;
        snprintf(session->rails[i].name, sizeof session->rails[i].name, "unmet");
    }
    agree(session, peer_hello);
    atomic_store(&session->heard_ns, wf_context_now(context));
    session->join_by_ns = wf_context_now(context) + context->tuning.connect_timeout_ns;
    if (init_pools(session) < 0) {
        destroy(session);
        return NULL;
    }
    pthread_mutex_lock(&context->lock);
    wf_link_init(&session->accept_link);
    wf_list_push_back(&context->sessions, &session->link);
    context->session_count += 1;
    pthread_mutex_unlock(&context->lock);
    return session;
}

void wf_session_destroy(struct wf_session *session)
{
    wf_link_remove(&session->link);
    wf_link_remove(&session->accept_link);
    session->context->session_count -= 1;
    destroy(session);
}

bool wf_session_is_over(struct wf_session *session)
{
    wf_session_lock(session);
    bool over = session->state == WF_SESSION_DEAD && session->references == 0;
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
    session->references -= 1;
    bool over = session->references == 0 && session->state == WF_SESSION_DEAD;
    wf_session_unlock(session);
    if (over)
        wf_door_visit_by(context->door, 0); /* the door frees it: no worker can be looking at it there */
}

void wf_session_hello(struct weft_context *context, struct wf_hello *hello)
{
    const struct wf_tuning *tuning = &context->tuning;
    memset(hello, 0, sizeof *hello);
    hello->version_min = hello->version_max = WF_PROTOCOL_VERSION;
    hello->features = tuning->encrypt ? WF_FEATURE_ENCRYPT : 0;
    hello->boot_nonce = context->boot_nonce;
    hello->limits = (struct wf_limits){.chunk = tuning->chunk,
                                       .eager = tuning->eager,
                                       .first_burst = tuning->first_burst,
                                       .header_pad = tuning->header_pad,
                                       .unsolicited = tuning->unexpected / WF_BLOCK_BYTES * WF_BLOCK_BYTES,
                                       .list_bytes = WF_LIST_ENTRIES_MAX * WF_ENTRY_BYTES,
                                       .connections = WF_CONNECTIONS_MAX};
    snprintf(hello->name, sizeof hello->name, "%s", context->host_name);
    hello->rail_count = (uint8_t)context->rail_count;
    for (int i = 0; i < context->rail_count; i++)
        wf_address_to_wire(&context->rails[i].address, context->rails[i].name, &hello->rails[i]);
}

int wf_session_expect(struct wf_session *session, int count)
{
    session->channels = calloc((size_t)count, sizeof *session->channels);
    session->told = calloc((size_t)count, sizeof *session->told);
    if (session->channels && session->told && wf_spread_init(&session->spread, count) == 0) {
        session->channel_count = count;
        return 0;
    }
    free(session->channels); /* there may be another try */
    free(session->told);
    wf_spread_fini(&session->spread);
    session->channels = NULL;
    session->told = NULL;
    return -ENOMEM;
}

/* --- joining --- */

/* One worker for everything, or a pair for each rail: even ones send, odd ones receive. */
static void assign_workers(struct wf_session *session, struct wf_channel *channel)
{
    struct weft_context *context = session->context;
    int local = session->rails[channel->rail].local;
    int pair = local < 0 ? 0 : local;
    channel->tx.worker = context->workers[context->shared ? 0 : 2 * pair];
    channel->rx.worker = context->workers[context->shared ? 0 : 2 * pair + 1];
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
    struct wf_channel *channel = session->channels[join->channel];
    bool open = session->state == WF_SESSION_JOINING || session->state == WF_SESSION_UP;
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
    bool heard = atomic_load_explicit(&session->heard_ns, memory_order_relaxed) >= session->greeted_ns;
    if (session->up_count > 0 || !heard)
        return;
    session->greeted_ns = session->progress_ns = now_ns;
    session->ping_ns = 0;
}

void wf_session_check_joined(struct wf_session *session)
{
    bool all = session->joined + session->missed == session->channel_count;
    if (session->state != WF_SESSION_JOINING || !all || session->up_count == 0)
        return;
    int64_t now = wf_context_now(session->context);
    WF_REACHED("session JOINING: every channel has proved itself or was missed, and one is up");
    session->state = WF_SESSION_UP;
    session->progress_ns = now; /* its patience begins now */
    atomic_store(&session->heard_ns, now);
    wf_door_visit_by(session->context->door, 0);
}

/* The channel is at work from now on. Session lock held. */
static void raise(struct wf_session *session, struct wf_channel *channel, int fd)
{
    channel->fd = fd;
    assign_workers(session, channel);
    channel->tx.detached = channel->rx.detached = false;
    channel->up = true;
    channel->redial.refused = false;
    int64_t now = wf_context_now(session->context);
    channel->tx.progress_ns = channel->redial.joined_ns = now;
    greet(session, now);
    channel->tx.ping_due = channel->pulse.asked = channel->incarnation > 1; /* the peer may not have got the proof */
    session->halves += 2;
    session->up_count += 1;
    wf_session_check_joined(session);
    wf_session_repeat_totals(session);
    if (session->told[channel->id] >= channel->incarnation)
        wf_session_lost(session, channel, -ECONNRESET, "the peer has lost it");
    else /* both sides had nothing else; the next damage retires it again */
        session->rails[channel->rail].retired = false;
    wf_session_kick_all(session, NULL);
}

/* A channel has its place in the session. Session lock held. */
static void enter(struct wf_session *session, struct wf_channel *channel)
{
    session->channels[channel->id] = channel;
    session->joined += 1;
    session->missed -= !session->dialer && session->told[channel->id] > 0;
    session->bulk_count += channel->kind == WF_CHANNEL_BULK;
    /* A hole in what has come is a chunk under way, or one of a lost channel, before which nothing new is sent. */
    session->range_pool.limit += channel->tx.ring;
}

int wf_session_miss(struct wf_session *session, const struct wf_join *join, int code)
{
    struct wf_channel *channel = first_incarnation(session, join);
    if (!channel)
        return -ENOMEM;
    wf_session_lock(session);
    bool joins = session->state == WF_SESSION_JOINING;
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
    struct wf_channel *channel = session->channels[join->channel], *fresh = NULL;
    if (!channel)
        fresh = channel = first_incarnation(session, join);
    if (!channel)
        return -ENOMEM;
    wf_session_lock(session);
    bool open = session->state == WF_SESSION_JOINING || session->state == WF_SESSION_UP;
    if (open && fresh) {
        enter(session, fresh);
    } else if (open) {
        wf_channel_restart(channel, join->incarnation);
        wf_log(&session->context->log, WF_LOG_INFO, "rail %s to %s: channel %u is joined again",
               session->rails[channel->rail].name, session->peer.name, channel->id);
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
    session->unsolicited_settled += charge;
    uint64_t pool = (uint64_t)session->blocks.count * WF_BLOCK_BYTES;
    uint64_t step = pool / 4;
    if (session->unsolicited_settled + pool - session->unsolicited_told >= (step ? step : 1))
        session->credit_due = true;
}
