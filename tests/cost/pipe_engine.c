#include "pipe_engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pipe_stream.h"

#define NONE (-1)

struct pipe_engine {
    struct wf_engine base;
    struct pipe_net *net;
    struct wf_list finished;
};

/* An operation that has begun, and the engine that it goes back to. */
struct under_way {
    struct wf_op *op; /* NULL: none is under way */
    struct pipe_engine *engine;
};

/* A descriptor: one end of a stream, or a listener. */
struct pipe_end {
    struct under_way reads, writes;
    struct pipe_stream in; /* sent to this end, and not received */
    uint64_t sent;
    int other;    /* the other end; NONE: there is none, or it is closed */
    bool ended;   /* the other end sends no more */
    bool dropped; /* by kill, of this end or of the other one */
    bool listens;
    int waiting; /* a listener's: the first end that is to be accepted; such an end's: the next one behind it; or NONE
                  */
    int next;    /* a listener's: 1 + the next listener; 0: it is the last one */
    struct sockaddr_storage address;
};

static struct pipe_engine *engine_of(struct wf_engine *engine)
{
    return WF_CONTAINER(engine, struct pipe_engine, base);
}

static void finish(struct under_way *under_way, int64_t result)
{
    struct wf_op *op = under_way->op;
    if (!op)
        return;
    op->result = result;
    op->finished = true;
    wf_list_push_back(&under_way->engine->finished, &op->link);
    under_way->op = NULL;
}

/* --- bytes --- */

static void receive(struct pipe_end *end)
{
    struct wf_op *op = end->reads.op;
    if (!op)
        return;
    if (end->in.held > 0)
        finish(&end->reads, (int64_t)pipe_stream_take(&end->in, op->iov, op->iov_count));
    else if (end->dropped)
        finish(&end->reads, -ECONNRESET);
    else if (end->ended)
        finish(&end->reads, 0);
}

static void send_bytes(struct pipe_net *net, struct pipe_end *end)
{
    struct wf_op *op = end->writes.op;
    if (!op)
        return;
    if (end->dropped || end->other == NONE) {
        finish(&end->writes, end->dropped ? -ECONNRESET : -EPIPE);
        return;
    }
    struct pipe_end *other = &net->ends[end->other];
    if (other->in.held >= PIPE_HELD)
        return;
    op->moved = pipe_stream_put(&other->in, op->iov, op->iov_count);
    end->sent += op->moved;
    finish(&end->writes, (int64_t)op->moved);
    receive(other);
}

/* There may be room again for what the other end sends. */
static void receive_and_make_room(struct pipe_net *net, struct pipe_end *end)
{
    receive(end);
    if (end->other != NONE && net->ends[end->other].writes.op)
        send_bytes(net, &net->ends[end->other]);
}

/* --- connections --- */

static int new_end(struct pipe_net *net)
{
    if (net->count == net->room) {
        int room = net->room ? 2 * net->room : 64;
        struct pipe_end *ends = realloc(net->ends, (size_t)room * sizeof *ends);
        if (!ends)
            return -ENOMEM;
        net->ends = ends;
        net->room = room;
    }
    net->ends[net->count] = (struct pipe_end){.other = NONE, .waiting = NONE};
    return net->count++;
}

static struct sockaddr_in *v4(struct sockaddr_storage *address)
{
    return (struct sockaddr_in *)address;
}

static int find_listener(struct pipe_net *net, struct sockaddr_storage *address)
{
    for (int at = net->listener; at != 0; at = net->ends[at - 1].next) {
        struct sockaddr_in *own = v4(&net->ends[at - 1].address);
        if (own->sin_port == v4(address)->sin_port && own->sin_addr.s_addr == v4(address)->sin_addr.s_addr)
            return at - 1;
    }
    return -ECONNREFUSED;
}

static void accept_one(struct pipe_net *net, int listener)
{
    struct pipe_end *end = &net->ends[listener];
    if (!end->reads.op || end->waiting == NONE)
        return;
    int accepted = end->waiting;
    end->waiting = net->ends[accepted].waiting;
    net->ends[accepted].waiting = NONE;
    finish(&end->reads, accepted);
}

static void queue_up(struct pipe_net *net, int listener, int fresh)
{
    int at = listener;
    while (net->ends[at].waiting != NONE)
        at = net->ends[at].waiting;
    net->ends[at].waiting = fresh;
    accept_one(net, listener);
}

static int connect_to(struct pipe_net *net, int fd, struct sockaddr_storage *address)
{
    int listener = find_listener(net, address), fresh = listener < 0 ? listener : new_end(net);
    if (fresh < 0)
        return fresh;
    net->ends[fresh].other = fd;
    net->ends[fresh].address = *address;
    net->ends[fd].other = fresh;
    queue_up(net, listener, fresh);
    return 0;
}

/* Nobody is to connect to it any more; ends that wait for it are refused by the caller's close. */
static void unlist(struct pipe_net *net, int listener)
{
    int *at = &net->listener;
    while (*at != 0 && *at != listener + 1)
        at = &net->ends[*at - 1].next;
    if (*at != 0)
        *at = net->ends[listener].next;
}

/* --- the contract: operations --- */

static int open_engine(void *host, const struct wf_engine_limits *limits, struct wf_engine **out,
                       struct wf_status *status)
{
    struct pipe_engine *engine = calloc(1, sizeof *engine);
    (void)limits;
    if (!engine)
        return wf_fail(status, -ENOMEM, "no memory for an engine");
    engine->base.ops = &pipe_engine_ops;
    engine->net = host;
    wf_list_init(&engine->finished);
    *out = &engine->base;
    return 0;
}

static void close_engine(struct wf_engine *engine)
{
    free(engine_of(engine));
}

static int attach(struct wf_engine *engine, int fd)
{
    (void)engine;
    (void)fd;
    return 0;
}

static void detach(struct wf_engine *engine, int fd)
{
    (void)engine;
    (void)fd;
}

static void post(struct wf_engine *base, struct wf_op *op)
{
    struct pipe_engine *engine = engine_of(base);
    struct pipe_net *net = engine->net;
    struct pipe_end *end = &net->ends[op->fd];
    bool writes = op->kind == WF_OP_SEND || op->kind == WF_OP_CONNECT;
    *(writes ? &end->writes : &end->reads) = (struct under_way){op, engine};
    op->posted = true;
    op->finished = false;
    op->moved = 0;
    if (op->kind == WF_OP_SEND) {
        send_bytes(net, end);
    } else if (op->kind == WF_OP_RECV) {
        receive_and_make_room(net, end);
    } else if (op->kind == WF_OP_ACCEPT) {
        accept_one(net, op->fd);
    } else {
        int result = connect_to(net, op->fd, op->address);
        finish(&net->ends[op->fd].writes, result); /* the ends may have moved */
    }
}

static void cancel(struct wf_engine *base, struct wf_op *op)
{
    struct pipe_end *end = &engine_of(base)->net->ends[op->fd];
    if (end->reads.op == op)
        finish(&end->reads, -ECANCELED);
    if (end->writes.op == op)
        finish(&end->writes, -ECANCELED);
}

static int poll_engine(struct wf_engine *base, struct wf_op **finished, int max, int64_t timeout_ns)
{
    struct pipe_engine *engine = engine_of(base);
    struct wf_link *link;
    int count = 0;
    (void)timeout_ns;
    while (count < max && (link = wf_list_pop_front(&engine->finished))) {
        struct wf_op *op = WF_CONTAINER(link, struct wf_op, link);
        op->posted = op->finished = false;
        finished[count++] = op;
    }
    return count;
}

static void wake(struct wf_engine *engine)
{
    (void)engine;
}

/* --- the contract: descriptors --- */

static int make_socket(void *host, int family, const struct wf_socket_options *options, bool *bound_device)
{
    struct pipe_net *net = host;
    int fd = new_end(net);
    if (bound_device)
        *bound_device = false;
    if (fd < 0)
        return fd;
    struct sockaddr_storage *address = &net->ends[fd].address;
    *address = options->local;
    address->ss_family = (sa_family_t)family;
    if (v4(address)->sin_port == 0)
        v4(address)->sin_port = htons((uint16_t)(10000 + fd % 50000));
    return fd;
}

static int make_listener(void *host, const struct wf_socket_options *options, int backlog)
{
    struct pipe_net *net = host;
    int fd = make_socket(host, AF_INET, options, NULL);
    (void)backlog;
    if (fd < 0)
        return fd;
    net->ends[fd].listens = true;
    net->ends[fd].next = net->listener;
    net->listener = fd + 1;
    return fd;
}

static int bind_device(void *host, int fd, const char *device)
{
    (void)host;
    (void)fd;
    (void)device;
    return -EPERM;
}

static int mark(void *host, int fd, int dscp)
{
    (void)host;
    (void)fd;
    (void)dscp;
    return 0;
}

static int pace(void *host, int fd, uint64_t bytes_per_second)
{
    (void)host;
    (void)fd;
    (void)bytes_per_second;
    return 0;
}

static int address_of(void *host, int fd, bool remote, struct sockaddr_storage *out)
{
    const struct pipe_net *net = host;
    const struct pipe_end *end = &net->ends[fd];
    if (remote && end->other == NONE)
        return -ENOTCONN;
    *out = remote ? net->ends[end->other].address : end->address;
    return 0;
}

/* The other end reads what is there, then the end of the stream. */
static void shut_down(void *host, int fd)
{
    struct pipe_net *net = host;
    int other = net->ends[fd].other;
    if (other == NONE)
        return;
    net->ends[other].ended = true;
    receive(&net->ends[other]);
}

static void drop(struct pipe_net *net, struct pipe_end *end)
{
    end->dropped = true;
    pipe_stream_free(&end->in);
    receive(end);
    send_bytes(net, end);
}

static void kill_fd(void *host, int fd)
{
    struct pipe_net *net = host;
    int other = net->ends[fd].other;
    drop(net, &net->ends[fd]);
    if (other != NONE)
        drop(net, &net->ends[other]);
}

static void close_fd(void *host, int fd)
{
    struct pipe_net *net = host;
    struct pipe_end *end = &net->ends[fd];
    shut_down(host, fd);
    if (end->listens)
        unlist(net, fd);
    if (end->other != NONE) {
        struct pipe_end *other = &net->ends[end->other];
        other->other = NONE;
        send_bytes(net, other); /* what waits for room gets none any more */
    }
    end->other = NONE;
    pipe_stream_free(&end->in);
}

static uint64_t retransmits(void *host, int fd)
{
    (void)host;
    (void)fd;
    return 0;
}

/* What a stream has taken is with the peer. */
static int progress(void *host, int fd, struct wf_progress *out)
{
    const struct pipe_net *net = host;
    *out = (struct wf_progress){.acknowledged = net->ends[fd].sent};
    return 0;
}

static int probe(void *host, struct wf_status *status)
{
    (void)host;
    (void)status;
    return 0;
}

void pipe_net_fini(struct pipe_net *net)
{
    for (int fd = 0; fd < net->count; fd++)
        pipe_stream_free(&net->ends[fd].in);
    free(net->ends);
    *net = (struct pipe_net){0};
}

const struct wf_engine_ops pipe_engine_ops = {
    .name = "pipe",
    .probe = probe,
    .open = open_engine,
    .close = close_engine,
    .attach = attach,
    .detach = detach,
    .post = post,
    .cancel = cancel,
    .poll = poll_engine,
    .wake = wake,
    .socket = make_socket,
    .listen = make_listener,
    .bind_device = bind_device,
    .mark = mark,
    .pace = pace,
    .address = address_of,
    .shutdown = shut_down,
    .kill = kill_fd,
    .retransmits = retransmits,
    .progress = progress,
    .close_fd = close_fd,
};
