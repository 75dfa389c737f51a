/* The seam on top of the simulated network, and the watch over its contract. */
#include "sim_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/vector.h"
#include "sim_cards_internal.h"

static struct sim_engine *self(struct wf_engine *engine)
{
    return WF_CONTAINER(engine, struct sim_engine, base);
}

/* --- the watch over posted operations --- */

/* Remembers the operation as the engine leaves it. */
static void note(struct sim_post *post)
{
    post->copy = *post->op;
    post->front = post->op->iov_count ? *post->op->iov : (struct iovec){0};
}

static void check_untouched(const struct sim_post *post)
{
    const struct wf_op *op = post->op, *copy = &post->copy;
    bool same = op->kind == copy->kind && op->fd == copy->fd && op->iov == copy->iov &&
                op->iov_count == copy->iov_count && op->address == copy->address && op->context == copy->context &&
                op->moved == copy->moved && op->result == copy->result && op->posted && op->finished == copy->finished;
    if (same && op->iov_count)
        same = op->iov->iov_base == post->front.iov_base && op->iov->iov_len == post->front.iov_len;
    if (!same)
        sim_violation("an operation of kind %d on descriptor %d was changed while posted", (int)copy->kind, copy->fd);
}

static enum sim_side side_of(const struct wf_op *op)
{
    return op->kind == WF_OP_ACCEPT || op->kind == WF_OP_RECV ? SIM_READS : SIM_WRITES;
}

static int sharer(const struct sim_socket *socket, const struct sim_engine *engine)
{
    for (int i = 0; i < SIM_SHARERS; i++)
        if (socket->engines[i] == engine)
            return i;
    return -1;
}

/* --- an operation's turn --- */

static bool ready(const struct sim_post *post)
{
    const struct wf_op *op = post->op;
    const struct sim_socket *socket = post->socket;
    switch (op->kind) {
    case WF_OP_CONNECT:
        return socket->state != SIM_CONNECTING;
    case WF_OP_SEND:
        return !op->iov_count || sim_can_write(socket);
    case WF_OP_RECV:
        return !op->iov_count || (op->control ? sim_cards_can_read(socket) : sim_can_read(socket));
    default:
        return sim_can_read(socket);
    }
}

static void finish(struct sim_post *post, int64_t result)
{
    struct wf_op *op = post->op;
    op->result = result;
    op->finished = true;
    wf_link_remove(&post->link);
    wf_list_push_back(&post->engine->finished, &post->link);
    note(post);
}

static void turn_recv(struct sim_post *post)
{
    struct wf_op *op = post->op;
    if (!op->iov_count) {
        finish(post, -EINVAL);
        return;
    }
    if (!op->control)
        sim_cards_check_plain(post->socket);
    struct wf_portion portion = wf_portion_take(op, post->engine->call_bytes);
    int64_t n =
        op->control ? sim_cards_read(post->socket, op, portion.bytes) : sim_read(post->socket, op->iov, portion.bytes);
    wf_portion_give_back(&portion);
    op->moved = n > 0 ? (uint64_t)n : 0;
    finish(post, n);
}

static void turn_send(struct sim_post *post)
{
    struct wf_op *op = post->op;
    if (op->iov_count) {
        struct wf_portion portion = wf_portion_take(op, post->engine->call_bytes);
        int64_t n = op->binding ? sim_cards_write(post->socket, op, portion.bytes)
                                : sim_write(post->socket, op->iov, portion.bytes);
        wf_portion_give_back(&portion);
        if (n < 0) {
            finish(post, n);
            return;
        }
        wf_vector_advance(op, (size_t)n);
    }
    if (!op->iov_count)
        finish(post, (int64_t)op->moved);
    note(post);
}

/* One call's worth; the operation is ready. */
static void turn(struct sim_post *post)
{
    struct sim_socket *socket = post->socket;
    check_untouched(post);
    switch (post->op->kind) {
    case WF_OP_ACCEPT:
        finish(post, socket->state == SIM_LISTENING ? sim_accept(socket) : -EINVAL);
        break;
    case WF_OP_CONNECT:
        finish(post, -socket->answer);
        break;
    case WF_OP_RECV:
        turn_recv(post);
        break;
    case WF_OP_SEND:
        turn_send(post);
        break;
    }
}

/* --- post, cancel, poll --- */

static struct sim_post *place_for(struct sim_engine *engine, struct wf_op *op)
{
    struct sim_socket *socket = sim_socket_of(engine->sim, op->fd);
    if (sharer(socket, engine) < 0)
        sim_violation("post on descriptor %d, which is not attached to this engine", op->fd);
    struct sim_post *post = &socket->posts[side_of(op)];
    if (post->op)
        sim_violation("a second operation that %s on descriptor %d", side_of(op) == SIM_READS ? "reads" : "writes",
                      op->fd);
    struct wf_list *lists[] = {&engine->active, &engine->finished};
    for (int i = 0; i < 2; i++) {
        WF_LIST_EACH (link, following, lists[i]) {
            if (WF_CONTAINER(link, struct sim_post, link)->op == op)
                sim_violation("an operation on descriptor %d posted twice", op->fd);
        }
    }
    return post;
}

static void sim_post_op(struct wf_engine *engine_base, struct wf_op *op)
{
    struct sim_engine *engine = self(engine_base);
    struct sim_post *post = place_for(engine, op);
    op->posted = true;
    op->finished = false;
    op->result = 0;
    op->moved = 0;
    if (op->kind == WF_OP_SEND || op->kind == WF_OP_RECV)
        wf_vector_skip_empty(op);
    else
        op->iov_count = 0;
    post->op = op;
    post->engine = engine;
    wf_list_push_back(&engine->active, &post->link);
    note(post);
    int rc = op->kind == WF_OP_CONNECT ? sim_connect(post->socket, op->address) : 0;
    if (rc)
        finish(post, rc);
    else if (ready(post) && sim_chance(engine->sim, 50)) /* it may be tried at once, or not */
        turn(post);
}

static void sim_cancel(struct wf_engine *engine_base, struct wf_op *op)
{
    struct sim_engine *engine = self(engine_base);
    if (!op->posted || op->finished)
        return;
    struct sim_post *post = &sim_socket_of(engine->sim, op->fd)->posts[side_of(op)];
    if (post->op != op || post->engine != engine)
        sim_violation("cancel of an operation on descriptor %d that is not posted here", op->fd);
    /* The real result may win the race, or a send get a bit further. */
    if (ready(post) && sim_chance(engine->sim, 25))
        turn(post);
    if (!op->finished) {
        check_untouched(post);
        finish(post, -ECANCELED);
    }
}

bool sim_engine_busy(const struct sim_engine *engine)
{
    if (atomic_load(&engine->woken) || !wf_list_empty(&engine->finished))
        return true;
    WF_LIST_EACH (link, following, &engine->active) {
        if (ready(WF_CONTAINER(link, struct sim_post, link)))
            return true;
    }
    return false;
}

/* Each ready operation once, some passed over; the order of the next round is the seed's. */
static void run_round(struct sim_engine *engine)
{
    struct wf_sim *sim = engine->sim;
    struct wf_list round;
    wf_list_init(&round);
    struct wf_link *link;
    while ((link = wf_list_pop_front(&engine->active)))
        wf_list_push_back(&round, link);
    while ((link = wf_list_pop_front(&round))) {
        struct sim_post *post = WF_CONTAINER(link, struct sim_post, link);
        if (wf_sim_random(sim) & 1)
            wf_list_push_back(&engine->active, link);
        else
            wf_list_push_front(&engine->active, link);
        if (ready(post) && !sim_chance(sim, sim->options.lag_percent))
            turn(post);
    }
}

static int sim_poll(struct wf_engine *engine_base, struct wf_op **finished, int max, int64_t timeout_ns)
{
    struct sim_engine *engine = self(engine_base);
    engine->due_ns = timeout_ns < 0 ? WF_NEVER : engine->sim->now_ns + timeout_ns; /* time stands still */
    atomic_store(&engine->woken, false);
    run_round(engine);
    int count = 0;
    struct wf_link *link;
    while (count < max && (link = wf_list_pop_front(&engine->finished))) {
        struct sim_post *post = WF_CONTAINER(link, struct sim_post, link);
        check_untouched(post);
        struct wf_op *op = post->op;
        post->op = NULL;
        post->engine = NULL;
        op->posted = op->finished = false;
        finished[count++] = op;
    }
    if (count)
        engine->due_ns = engine->sim->now_ns; /* with something to do a caller comes again before it waits */
    return count;
}

static void sim_wake(struct wf_engine *engine_base)
{
    atomic_store(&self(engine_base)->woken, true);
}

/* --- engines and what they know --- */

static int sim_probe(void *host, struct wf_status *status)
{
    return host ? 0 : wf_fail(status, -EINVAL, "the simulator needs its network as host");
}

static int sim_open(void *host, const struct wf_engine_limits *limits, struct wf_engine **out, struct wf_status *status)
{
    int rc = sim_probe(host, status);
    if (rc)
        return rc;
    struct sim_engine *engine = calloc(1, sizeof(*engine));
    if (!engine)
        return wf_fail(status, -ENOMEM, "simulated engine: out of memory");
    engine->base.ops = &wf_engine_sim;
    engine->sim = host;
    engine->due_ns = WF_NEVER;
    engine->call_bytes = limits && limits->call_bytes ? limits->call_bytes : 256 * 1024;
    wf_list_init(&engine->active);
    wf_list_init(&engine->finished);
    atomic_init(&engine->woken, false);
    wf_list_push_back(&engine->sim->engines, &engine->link);
    *out = &engine->base;
    return 0;
}

static void sim_engine_close(struct wf_engine *engine_base)
{
    struct sim_engine *engine = self(engine_base);
    if (!wf_list_empty(&engine->active) || !wf_list_empty(&engine->finished))
        sim_violation("an engine was closed with operations posted");
    if (engine->attached)
        sim_violation("an engine was closed with %d descriptors attached", engine->attached);
    wf_link_remove(&engine->link);
    free(engine);
}

static int sim_attach(struct wf_engine *engine_base, int fd)
{
    struct sim_engine *engine = self(engine_base);
    struct sim_socket *socket = sim_socket_of(engine->sim, fd);
    if (sharer(socket, engine) >= 0)
        return -EEXIST;
    int at = sharer(socket, NULL);
    if (at < 0)
        return -ENOSPC;
    socket->engines[at] = engine;
    engine->attached++;
    return 0;
}

static void sim_detach(struct wf_engine *engine_base, int fd)
{
    struct sim_engine *engine = self(engine_base);
    struct sim_socket *socket = sim_socket_of(engine->sim, fd);
    int at = sharer(socket, engine);
    if (at < 0)
        sim_violation("detach of descriptor %d, which is not attached to this engine", fd);
    for (int side = 0; side < 2; side++)
        if (socket->posts[side].op && socket->posts[side].engine == engine)
            sim_violation("detach of descriptor %d with an operation posted", fd);
    socket->engines[at] = NULL;
    engine->attached--;
}

/* --- descriptors --- */

static int check_device(const char *device)
{
    return strncmp(device, "nosuch", 6) ? 0 : -ENODEV;
}

static int sim_op_socket(void *host, int family, const struct wf_socket_options *options, bool *bound_device)
{
    struct wf_sim *sim = host;
    int rc = check_device(options->device);
    if (rc)
        return rc;
    if ((family != AF_INET && family != AF_INET6) || (options->local.ss_family && options->local.ss_family != family))
        return -EAFNOSUPPORT;
    if (bound_device)
        *bound_device = options->device[0] && !sim->options.no_device_rights;
    int fd = sim_socket_new(sim, &options->local);
    if (fd >= 0)
        sim_socket_of(sim, fd)->dscp = options->dscp;
    return fd;
}

static int sim_op_listen(void *host, const struct wf_socket_options *options, int backlog)
{
    int rc = check_device(options->device);
    int fd = rc ? rc : sim_listen(host, &options->local, backlog);
    if (fd >= 0)
        sim_socket_of(host, fd)->dscp = options->dscp;
    return fd;
}

static int sim_op_bind_device(void *host, int fd, const char *device)
{
    struct wf_sim *sim = host;
    (void)sim_socket_of(sim, fd);
    int rc = check_device(device);
    return rc ? rc : device[0] && sim->options.no_device_rights ? -EPERM : 0;
}

static int sim_op_mark(void *host, int fd, int dscp)
{
    sim_socket_of(host, fd)->dscp = dscp;
    return 0;
}

static int sim_op_pace(void *host, int fd, uint64_t bytes_per_second)
{
    sim_socket_of(host, fd)->pace = bytes_per_second;
    return 0;
}

static int sim_op_address(void *host, int fd, bool remote, struct sockaddr_storage *out)
{
    struct sim_socket *socket = sim_socket_of(host, fd);
    if (remote && socket->state != SIM_CONNECTED)
        return -ENOTCONN;
    *out = remote ? socket->remote : socket->local;
    return 0;
}

static void sim_op_shutdown(void *host, int fd)
{
    struct sim_socket *socket = sim_socket_of(host, fd);
    if (socket->state != SIM_CONNECTED || socket->end_sent)
        return;
    socket->end_sent = true;
    if (socket->peer && !socket->swallows)
        sim_send_end(socket->peer, sim_path_ns(socket, socket->peer));
}

static void sim_op_kill(void *host, int fd)
{
    sim_kill(sim_socket_of(host, fd));
}

static uint64_t sim_op_retransmits(void *host, int fd)
{
    return sim_socket_of(host, fd)->retransmits;
}

static int sim_op_progress(void *host, int fd, struct wf_progress *out)
{
    const struct sim_socket *socket = sim_socket_of(host, fd);
    if (socket->state != SIM_CONNECTED)
        return -ENOTCONN;
    *out = socket->peer ? sim_progress(&socket->peer->in) : socket->left;
    out->pending += socket->unheard;
    return 0;
}

static void sim_op_close_fd(void *host, int fd)
{
    struct sim_socket *socket = sim_socket_of(host, fd);
    for (int i = 0; i < SIM_SHARERS; i++)
        if (socket->engines[i])
            sim_violation("descriptor %d was closed while attached", fd);
    sim_cards_closed(socket);
    sim_close(socket);
}

const struct wf_engine_ops wf_engine_sim = {
    .name = "sim",
    .probe = sim_probe,
    .open = sim_open,
    .close = sim_engine_close,
    .attach = sim_attach,
    .detach = sim_detach,
    .post = sim_post_op,
    .cancel = sim_cancel,
    .poll = sim_poll,
    .wake = sim_wake,
    .socket = sim_op_socket,
    .listen = sim_op_listen,
    .bind_device = sim_op_bind_device,
    .mark = sim_op_mark,
    .pace = sim_op_pace,
    .address = sim_op_address,
    .shutdown = sim_op_shutdown,
    .kill = sim_op_kill,
    .retransmits = sim_op_retransmits,
    .give_back = sim_cards_give_back,
    .progress = sim_op_progress,
    .close_fd = sim_op_close_fd,
};
