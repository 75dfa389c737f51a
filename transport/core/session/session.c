#include "core/session/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/ground/holders.h"
#include "core/message/connection.h"
#include "core/request/book.h"
#include "core/request/pieces.h"
#include "core/message/served.h"
#include "core/rail/address.h"
#include "core/rail/rail.h"
#include "core/request/request.h"
#include "core/request/tray.h"
#include "core/session/end.h"
#include "core/session/loss.h"
#include "core/session/news.h"
#include "wire/frame.h"

/* An acceptor waits at least so long: its dialer leaves out what has not answered after less, of 64 rails in two turns
 * (talk_dial.c). */
#define JOIN_LEAST_NS (10 * WF_NS_PER_S)

/* --- life --- */

void wf_sessions_init(struct wf_sessions *sessions)
{
    pthread_mutex_init(&sessions->log_lock, NULL);
    sessions->unknown_log.interval_ns = 5 * WF_NS_PER_S;
    wf_list_init(&sessions->all);
    wf_list_init(&sessions->accepted);
    wf_lobby_init(&sessions->lobby, sessions->waiting);
}

int wf_sessions_open(struct wf_sessions *sessions, struct wf_status *status)
{
    int result = wf_lobby_open(&sessions->lobby);
    if (result == 0)
        result = wf_tray_create(sessions->waiting, &sessions->news);
    if (result == -ENOMEM)
        return wf_fail(status, result, "no memory for a context");
    if (result < 0)
        return wf_fail(status, result, "no descriptor for the events of a context: %s; raise the limit (ulimit -n)",
                       wf_strerror(result));
    return 0;
}

void wf_sessions_fini(struct wf_sessions *sessions)
{
    wf_lobby_fini(&sessions->lobby);
    if (sessions->news)
        wf_tray_destroy(sessions->news);
    pthread_mutex_destroy(&sessions->log_lock);
}

static void destroy(struct wf_session *session)
{
    wf_kicks_fini(&session->kicks);
    wf_desk_fini(&session->desk);
    wf_lines_fini(&session->lines);
    wf_loss_fini(&session->loss);
    wf_shares_fini(&session->shares);
    wf_book_fini(&session->book);
    wf_guard_fini(&session->guard);
    explicit_bzero(session->secret, sizeof session->secret);
    free(session->peer.greeting);
    free(session);
}

static void failed(struct wf_guard *guard)
{
    wf_session_failed(WF_CONTAINER(guard, struct wf_session, guard));
}

static void unheld(struct wf_guard *guard)
{
    wf_session_unheld(WF_CONTAINER(guard, struct wf_session, guard));
}

static void kick(struct wf_guard *guard, struct wf_worker *self)
{
    wf_session_kick(WF_CONTAINER(guard, struct wf_session, guard), self);
}

static void push(struct wf_guard *guard)
{
    wf_session_push(WF_CONTAINER(guard, struct wf_session, guard));
}

static void news(struct wf_guard *guard)
{
    wf_session_tell(WF_CONTAINER(guard, struct wf_session, guard));
}

static const struct wf_guard_ops guard_ops = {
    .failed = failed, .unheld = unheld, .kick = kick, .push = push, .news = news};

static void serve(struct wf_kicks *kicks, struct wf_worker *worker)
{
    wf_session_pump(WF_CONTAINER(kicks, struct wf_session, kicks), worker);
}

/* See wf_desk.hold_twin. */
static struct wf_desk *hold_twin(struct wf_desk *desk)
{
    const struct wf_session *session = WF_CONTAINER(desk, struct wf_session, desk);
    struct wf_session *twin = NULL;
    pthread_mutex_lock(&session->guard.world->lock);
    WF_LIST_EACH (link, following, &session->sessions->all) {
        struct wf_session *other = WF_CONTAINER(link, struct wf_session, link);
        if (other != session && other->id == session->id && other->terms.dialer != session->terms.dialer)
            twin = other;
    }
    if (twin) {
        wf_session_lock(twin);
        bool up = twin->guard.state == WF_SESSION_UP;
        if (up) {
            wf_guard_refer(&twin->guard);
            wf_guard_hold(&twin->guard);
        }
        wf_session_unlock(twin);
        twin = up ? twin : NULL;
    }
    pthread_mutex_unlock(&session->guard.world->lock);
    return twin ? &twin->desk : NULL;
}

static int init_parts(struct wf_session *session, bool dialer, const struct wf_hello *peer_hello)
{
    struct wf_sessions *sessions = session->sessions;
    wf_guard_init(&session->guard, sessions->world, &guard_ops, session->peer.name);
    wf_terms_init(&session->terms, sessions->world, dialer, peer_hello);
    int result = wf_kicks_init(&session->kicks, sessions->crew, serve);
    wf_book_init(&session->book, &session->guard, &session->terms, sessions->waiting);
    wf_shares_init(&session->shares, &session->guard, &session->kicks);
    wf_loss_init(&session->loss);
    if (result == 0)
        result = wf_lines_init(&session->lines, &session->guard, &session->terms, &session->kicks);
    if (result < 0)
        return result;
    struct wf_desk_neighbours neighbours = {.guard = &session->guard,
                                            .terms = &session->terms,
                                            .book = &session->book,
                                            .shares = &session->shares,
                                            .lines = &session->lines,
                                            .kicks = &session->kicks,
                                            .registry = sessions->registry,
                                            .endpoints = sessions->endpoints,
                                            .hold_twin = hold_twin};
    return wf_desk_init(&session->desk, &neighbours);
}

struct wf_session *wf_session_create(struct wf_sessions *sessions, bool dialer, const struct wf_hello *peer_hello,
                                     uint64_t id, const uint8_t secret[WF_SECRET_BYTES])
{
    struct wf_session *session = calloc(1, sizeof *session);
    struct wf_world *world = sessions->world;
    if (!session)
        return NULL;
    session->sessions = sessions;
    wf_user_init(&session->user, dialer);
    session->id = id;
    session->peer.session = session;
    memcpy(session->secret, secret, WF_SECRET_BYTES);
    snprintf(session->peer.name, sizeof session->peer.name, "%s", peer_hello->name);
    int result = init_parts(session, dialer, peer_hello);
    int64_t patience = world->tuning.connect_timeout_ns;
    session->life.join_by_ns = wf_world_now(world) + (patience > JOIN_LEAST_NS ? patience : JOIN_LEAST_NS);
    pthread_mutex_lock(&world->lock);
    if (result == 0)
        result = wf_alarm_enter(&world->alarm, &session->guard.visit);
    if (result == 0) {
        wf_link_init(&session->redial_link);
        wf_list_push_back(&sessions->all, &session->link);
        sessions->count += 1;
    }
    pthread_mutex_unlock(&world->lock);
    if (result == 0)
        return session;
    destroy(session);
    return NULL;
}

void wf_session_destroy(struct wf_session *session)
{
    wf_link_remove(&session->link);
    wf_link_remove(&session->redial_link);
    wf_user_fini(&session->user, session->sessions->news);
    wf_alarm_leave(&session->guard.world->alarm, &session->guard.visit);
    session->sessions->count -= 1;
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
    wf_guard_unlock_and_release(&session->guard);
}

int wf_session_rails_taken(const struct wf_sessions *sessions, const struct wf_hello *theirs)
{
    if (theirs->features & WF_FEATURE_RAILS)
        return WF_RAILS_MAX;
    if (sessions->rails->count > WF_RAILS_FEW)
        wf_world_fallback(sessions->world,
                          "rails: %d of %d are used with %.64s, whose version of Weft takes no more; install the same "
                          "version on both sides",
                          WF_RAILS_FEW, sessions->rails->count, theirs->name);
    return WF_RAILS_FEW;
}

void wf_session_hello(const struct wf_sessions *sessions, const struct wf_hello *theirs, struct wf_hello *hello)
{
    int most = theirs ? wf_session_rails_taken(sessions, theirs) : WF_RAILS_FEW;
    const struct wf_tuning *tuning = &sessions->world->tuning;
    memset(hello, 0, sizeof *hello);
    hello->version_min = hello->version_max = WF_PROTOCOL_VERSION;
    hello->features = WF_FEATURE_RAILS | WF_FEATURE_GREETING | WF_FEATURE_MATCHING | WF_FEATURE_CLASSES |
                      WF_FEATURE_ANNOUNCE | (tuning->encrypt ? WF_FEATURE_ENCRYPT : 0) |
                      (tuning->devmem ? WF_FEATURE_DEVICE | WF_FEATURE_TRIAL : 0);
    hello->boot_nonce = sessions->world->boot_nonce;
    hello->limits = (struct wf_limits){.chunk = tuning->chunk,
                                       .eager = tuning->eager,
                                       .first_burst = tuning->first_burst,
                                       .header_pad = tuning->header_pad,
                                       .unsolicited = tuning->unexpected / WF_BLOCK_BYTES * WF_BLOCK_BYTES,
                                       .list_bytes = WF_LIST_ENTRIES_MAX * WF_ENTRY_BYTES,
                                       .connections = WF_CONNECTIONS_MAX};
    snprintf(hello->name, sizeof hello->name, "%s", sessions->world->host_name);
    hello->rail_count = (uint8_t)(sessions->rails->count < most ? sessions->rails->count : most);
    for (int i = 0; i < hello->rail_count; i++)
        wf_address_to_wire(&sessions->rails->each[i].address, sessions->rails->each[i].name, &hello->rails[i]);
}

void wf_sessions_set_greeting(struct wf_sessions *sessions, const void *bytes, uint32_t length)
{
    pthread_mutex_lock(&sessions->world->lock);
    if (length > 0)
        memcpy(sessions->greeting.bytes, bytes, length);
    sessions->greeting.length = (uint16_t)length;
    pthread_mutex_unlock(&sessions->world->lock);
}

void wf_sessions_offer(struct wf_sessions *sessions, struct wf_session *session)
{
    if (wf_lobby_welcome(&sessions->lobby, &session->peer))
        return;
    wf_list_push_back(&sessions->accepted, &session->user.accept_link);
    wf_session_lock(session);
    wf_user_offer(&session->user, true);
    wf_session_tell(session);
    wf_session_unlock(session);
}

struct wf_session *wf_sessions_take(struct wf_sessions *sessions)
{
    struct wf_link *link = wf_list_pop_front(&sessions->accepted);
    if (!link)
        return NULL;
    struct wf_session *session = WF_CONTAINER(link, struct wf_session, user.accept_link);
    wf_session_lock(session);
    wf_user_offer(&session->user, false);
    wf_session_unlock(session);
    return session;
}
