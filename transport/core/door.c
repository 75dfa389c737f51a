#include "core/door.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/redial.h"
#include "core/session.h"
#include "core/talk.h"

#define RETRY_NS (100 * WF_NS_PER_MS)
#define BACKLOG 512

int wf_door_create(struct weft_context *context, struct wf_door **out, struct wf_status *status)
{
    struct wf_door *door = calloc(1, sizeof *door);
    if (!door)
        return wf_fail(status, -ENOMEM, "no memory for the door");
    door->context = context;
    pthread_mutex_init(&door->mail_lock, NULL);
    wf_list_init(&door->new_dials);
    wf_list_init(&door->dials);
    wf_list_init(&door->talks);
    door->stranger_log.interval_ns = 5 * WF_NS_PER_S;
    atomic_store(&door->next_visit_ns, 0);
    struct wf_engine_limits limits = {.call_bytes = 64 * 1024, .pinned = true};
    int result = context->engine_ops->open(context->engine_host, &limits, &door->engine, status);
    if (result < 0) {
        wf_door_destroy(door);
        return result;
    }
    wf_rail_watch_open(&door->watch, context, door->engine);
    *out = door;
    return 0;
}

static void close_listeners(struct wf_door *door)
{
    const struct wf_engine_ops *ops = door->context->engine_ops;
    for (int i = 0; i < door->listener_count; i++) {
        if (i < door->listeners_attached)
            ops->detach(door->engine, door->listeners[i].fd);
        ops->close_fd(door->context->engine_host, door->listeners[i].fd);
    }
    door->listener_count = door->listeners_attached = 0;
}

static bool operations_out(struct wf_door *door)
{
    if (door->watch.op.posted)
        return true;
    for (int i = 0; i < door->listeners_attached; i++)
        if (door->listeners[i].op.posted)
            return true;
    WF_LIST_EACH (link, following, &door->talks) {
        if (WF_CONTAINER(link, struct wf_talk, link)->op.posted)
            return true;
    }
    return false;
}

/* Everything under way comes back before the engine closes; that may take the kernel more than one look. */
static void wind_down(struct wf_door *door)
{
    wf_talks_end(door, NULL);
    wf_rail_watch_stop(&door->watch);
    for (int i = 0; i < door->listeners_attached; i++)
        if (door->listeners[i].op.posted)
            door->engine->ops->cancel(door->engine, &door->listeners[i].op);
    while (operations_out(door)) {
        struct wf_op *finished[16];
        int count = door->engine->ops->poll(door->engine, finished, 16, 0);
        for (int i = 0; i < count; i++)
            if (finished[i]->kind == WF_OP_ACCEPT && finished[i]->result >= 0)
                door->engine->ops->close_fd(door->context->engine_host, (int)finished[i]->result);
    }
    wf_talks_tick(door, 0);
    close_listeners(door);
    wf_rail_watch_close(&door->watch);
}

void wf_door_destroy(struct wf_door *door)
{
    if (!door)
        return;
    if (door->engine) {
        wind_down(door);
        door->engine->ops->close(door->engine);
    }
    pthread_mutex_destroy(&door->mail_lock);
    free(door);
}

/* --- listening --- */

/* `rail`: NULL, or the one whose interface the listener is bound to. `shared`: others of ours have the port, too. */
static int listen_on(struct wf_door *door, const struct sockaddr_storage *address, const struct wf_rail *rail,
                     bool shared, struct wf_status *status)
{
    struct weft_context *context = door->context;
    struct wf_socket_options options = {
        .local = *address, .buffer_bytes = context->tuning.socket_buffer, .shared_port = shared};
    char text[80];
    if (rail)
        snprintf(options.device, sizeof options.device, "%s", rail->device);
    wf_address_text(address, true, text, sizeof text);
    int fd = context->engine_ops->listen(context->engine_host, &options, BACKLOG);
    if (fd == -EADDRINUSE)
        return wf_fail(status, fd, "cannot listen on %s: the port is in use; choose another with --port or WEFT_PORT",
                       text);
    if (fd < 0)
        return wf_fail(status, fd, "cannot listen on %s: %s", text, wf_strerror(fd));
    door->listeners[door->listener_count++] = (struct wf_listener){.fd = fd};
    return 0;
}

static bool covered(const struct sockaddr_storage *listening, const struct sockaddr_storage *rail)
{
    if (wf_address_is_any(listening)) /* the IPv4 wildcard is deaf to IPv6, the others hear both */
        return listening->ss_family != AF_INET || rail->ss_family == AF_INET;
    return wf_address_same_host(listening, rail);
}

static bool any_crowded(const struct weft_context *context)
{
    for (int i = 0; i < context->rail_count; i++)
        if (context->rails[i].crowded)
            return true;
    return false;
}

/*
 * With two interfaces in one subnet the kernel answers a call from the first that leads to the caller, and the caller's
 * socket, bound to the second, does not hear it. A listener that is bound to the interface answers from there.
 */
static int listen_on_rail(struct wf_door *door, const struct sockaddr_storage *address, int index, int port,
                          bool shared, struct wf_status *status)
{
    struct wf_rail rail;
    wf_context_rail(door->context, index, &rail);
    struct sockaddr_storage place = rail.address;
    wf_address_set_port(&place, port);
    int result = covered(address, &place) ? 0 : listen_on(door, &place, NULL, shared, status);
    return rail.crowded && result == 0 ? listen_on(door, &place, &rail, true, status) : result;
}

int wf_door_listen(struct wf_door *door, const struct sockaddr_storage *address, struct wf_status *status)
{
    struct weft_context *context = door->context;
    if (door->port != 0)
        return wf_fail(status, -EALREADY, "this context listens on port %d already", door->port);
    struct sockaddr_storage bound = *address;
    bool shared = any_crowded(context);
    int result = listen_on(door, address, NULL, shared, status);
    if (result == 0)
        result = context->engine_ops->address(context->engine_host, door->listeners[0].fd, false, &bound);
    int port = result < 0 ? 0 : wf_address_port(&bound);
    for (int i = 0; i < context->rail_count && result == 0; i++)
        result = listen_on_rail(door, address, i, port, shared, status);
    if (result < 0) {
        close_listeners(door);
        return result;
    }
    pthread_mutex_lock(&door->mail_lock);
    door->listen_address = bound;
    door->port = port;
    door->listeners_changed = true;
    pthread_mutex_unlock(&door->mail_lock);
    door->engine->ops->wake(door->engine);
    return 0;
}

static void post_accept(struct wf_door *door, struct wf_listener *listener)
{
    listener->op.kind = WF_OP_ACCEPT;
    listener->op.fd = listener->fd;
    listener->op.context = NULL;
    door->engine->ops->post(door->engine, &listener->op);
}

static void attach_listeners(struct wf_door *door)
{
    pthread_mutex_lock(&door->mail_lock);
    bool changed = door->listeners_changed;
    door->listeners_changed = false;
    pthread_mutex_unlock(&door->mail_lock);
    if (!changed)
        return;
    for (; door->listeners_attached < door->listener_count; door->listeners_attached++) {
        struct wf_listener *listener = &door->listeners[door->listeners_attached];
        int result = door->engine->ops->attach(door->engine, listener->fd);
        if (result < 0) {
            wf_log(&door->context->log, WF_LOG_ERROR, "cannot wait for peers: %s", wf_strerror(result));
            return;
        }
        post_accept(door, listener);
    }
}

static void accepted(struct wf_door *door, struct wf_listener *listener)
{
    int64_t now = wf_context_now(door->context);
    if (listener->op.result >= 0) {
        wf_talk_visit(door, (int)listener->op.result);
        post_accept(door, listener);
        return;
    }
    wf_log_limited(&door->context->log, &door->stranger_log, now, WF_LOG_WARN,
                   "cannot accept a connection: %s; raise the limit of open files (ulimit -n)",
                   wf_strerror((int)listener->op.result));
    door->accept_paused = true; /* trying again at once would only spin */
    door->accept_again_ns = now + RETRY_NS;
}

static int64_t resume_accept(struct wf_door *door, int64_t now)
{
    if (!door->accept_paused)
        return WF_NEVER;
    if (now < door->accept_again_ns)
        return door->accept_again_ns;
    door->accept_paused = false;
    for (int i = 0; i < door->listeners_attached; i++)
        if (!door->listeners[i].op.posted)
            post_accept(door, &door->listeners[i]);
    return WF_NEVER;
}

/* --- dialling --- */

void wf_door_dial(struct wf_door *door, struct wf_dial *dial)
{
    pthread_mutex_lock(&door->mail_lock);
    wf_list_push_back(&door->new_dials, &dial->link);
    pthread_mutex_unlock(&door->mail_lock);
    door->engine->ops->wake(door->engine);
}

static void collect_dials(struct wf_door *door)
{
    pthread_mutex_lock(&door->mail_lock);
    struct wf_link *link;
    while ((link = wf_list_pop_front(&door->new_dials)))
        wf_list_push_back(&door->dials, link);
    pthread_mutex_unlock(&door->mail_lock);
}

static void finish_dial(struct wf_door *door, struct wf_dial *dial)
{
    struct weft_context *context = door->context;
    wf_link_remove(&dial->link);
    wf_talks_end(door, dial);
    if (dial->status.code < 0 && dial->session) {
        wf_session_lock(dial->session);
        wf_session_fail(dial->session, dial->status.code, "%s", dial->status.text);
        wf_session_unlock(dial->session);
        wf_session_release(dial->session);
        dial->session = NULL;
    }
    pthread_mutex_lock(&context->lock);
    dial->done = true;
    pthread_cond_broadcast(&context->changed);
    pthread_mutex_unlock(&context->lock);
}

/* Is the dial over? Looks at its session and its deadline. */
static bool dial_is_over(struct wf_dial *dial, int64_t now)
{
    if (dial->status.code < 0)
        return true;
    if (dial->session) {
        wf_session_lock(dial->session);
        enum wf_session_state state = dial->session->state;
        if (state == WF_SESSION_FAILED || state == WF_SESSION_DEAD)
            dial->status = dial->session->error;
        wf_session_unlock(dial->session);
        if (state != WF_SESSION_JOINING)
            return true;
    }
    if (now < dial->deadline_ns)
        return false;
    wf_fail(&dial->status, -ETIMEDOUT, "no answer from %s before the deadline%s%s; is the other node's server running?",
            dial->text, dial->last_error ? ": " : "", dial->last_error ? wf_strerror(dial->last_error) : "");
    return true;
}

static int64_t tick_dials(struct wf_door *door, int64_t now)
{
    int64_t next = WF_NEVER;
    WF_LIST_EACH (link, following, &door->dials) {
        struct wf_dial *dial = WF_CONTAINER(link, struct wf_dial, link);
        if (dial_is_over(dial, now)) {
            finish_dial(door, dial);
            continue;
        }
        if (!dial->session && !dial->talking && now >= dial->retry_ns) {
            dial->retry_ns = now + RETRY_NS;
            wf_talk_control(dial, door);
        }
        int64_t due = !dial->session && !dial->talking ? dial->retry_ns : dial->deadline_ns;
        next = due < next ? due : next;
    }
    return next;
}

/* --- sessions --- */

void wf_door_visit_by(struct wf_door *door, int64_t when_ns)
{
    if (!door)
        return;
    int64_t known = atomic_load(&door->next_visit_ns);
    while (when_ns < known)
        if (atomic_compare_exchange_weak(&door->next_visit_ns, &known, when_ns)) {
            door->engine->ops->wake(door->engine);
            return;
        }
}

/* A session that came up goes to weft_accept(); one that ended before it was ever told of is let go. */
static void announce(struct weft_context *context, struct wf_session *session)
{
    if (session->dialer || session->reported)
        return;
    wf_session_lock(session);
    enum wf_session_state state = session->state;
    wf_session_unlock(session);
    if (state == WF_SESSION_JOINING)
        return;
    session->reported = true;
    if (state == WF_SESSION_UP) {
        wf_list_push_back(&context->accepted, &session->accept_link);
        pthread_cond_broadcast(&context->changed);
    } else {
        wf_session_release(session);
    }
}

/* It ended while it waited for weft_accept(): nobody will ask for it. Context lock held. */
static void give_up_unclaimed(struct wf_session *session)
{
    if (!wf_link_in_list(&session->accept_link))
        return;
    wf_session_lock(session);
    bool dead = session->state == WF_SESSION_DEAD;
    wf_session_unlock(session);
    if (!dead)
        return;
    wf_link_remove(&session->accept_link);
    wf_session_release(session);
}

static int64_t visit_sessions(struct wf_door *door, int64_t now)
{
    struct weft_context *context = door->context;
    int64_t next = WF_NEVER;
    pthread_mutex_lock(&context->lock);
    WF_LIST_EACH (link, following, &context->sessions) {
        struct wf_session *session = WF_CONTAINER(link, struct wf_session, link);
        announce(context, session);
        give_up_unclaimed(session);
        if (wf_session_is_over(session)) {
            wf_talks_forget(door, session);
            wf_session_destroy(session);
            continue;
        }
        int64_t due = wf_session_tick(session, now), redial = wf_redial_tick(door, session, now);
        next = due < next ? due : next;
        next = redial < next ? redial : next;
    }
    pthread_mutex_unlock(&context->lock);
    return next;
}

static void tick_sessions(struct wf_door *door, int64_t now)
{
    if (now < atomic_load(&door->next_visit_ns))
        return;
    /* Whoever asks for a visit from here on is heard: the value is set before the sessions are looked at. */
    atomic_store(&door->next_visit_ns, WF_NEVER);
    wf_door_visit_by(door, visit_sessions(door, now));
}

/* --- driving --- */

static struct wf_listener *listener_of(struct wf_door *door, const struct wf_op *op)
{
    for (int i = 0; i < door->listener_count; i++)
        if (&door->listeners[i].op == op)
            return &door->listeners[i];
    return NULL;
}

int wf_door_drive(struct wf_door *door, int64_t timeout_ns)
{
    attach_listeners(door);
    collect_dials(door);
    int64_t now = wf_context_now(door->context);
    int64_t next = resume_accept(door, now);
    wf_talks_tick(door, now); /* a conversation that is over lets its dial try again */
    int64_t dials = tick_dials(door, now), talks = wf_talks_tick(door, now);
    int64_t watch = wf_rail_watch_tick(&door->watch, now);
    tick_sessions(door, now);
    int64_t visit = atomic_load(&door->next_visit_ns);
    next = dials < next ? dials : next;
    next = talks < next ? talks : next;
    next = watch < next ? watch : next;
    next = visit < next ? visit : next;
    int64_t wait = next == WF_NEVER ? -1 : next > now ? next - now : 0;
    if (timeout_ns >= 0 && (wait < 0 || wait > timeout_ns))
        wait = timeout_ns;
    struct wf_op *finished[16];
    int count = door->engine->ops->poll(door->engine, finished, 16, wait);
    for (int i = 0; i < count; i++) {
        if (finished[i]->kind == WF_OP_ACCEPT)
            accepted(door, listener_of(door, finished[i]));
        else if (!wf_rail_watch_step(&door->watch, finished[i]))
            wf_talk_step(finished[i]->context);
    }
    return count;
}

static void *run(void *argument)
{
    struct wf_door *door = argument;
    pthread_setname_np(pthread_self(), "weft-door");
    while (!atomic_load(&door->stopping))
        wf_door_drive(door, -1);
    return NULL;
}

int wf_door_start(struct wf_door *door, struct wf_status *status)
{
    int result = pthread_create(&door->thread, NULL, run, door);
    if (result != 0)
        return wf_fail(status, -result, "cannot start a thread: %s; raise the limit of processes (ulimit -u)",
                       wf_strerror(result));
    door->has_thread = true;
    return 0;
}

void wf_door_stop(struct wf_door *door)
{
    if (!door->has_thread)
        return;
    atomic_store(&door->stopping, true);
    door->engine->ops->wake(door->engine);
    pthread_join(door->thread, NULL);
    door->has_thread = false;
}
