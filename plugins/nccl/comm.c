#include "plugins/nccl/comm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AGAIN_NS (20 * 1000000LL) /* between two tries where both sides had dialled */
#define SECOND_NS 1000000000LL
#define WELCOME_TAG (UINT64_C(1) << 32) /* none of NCCL's: those have 32 bits */
#define CLOSE_MS 5000                   /* for the close of a connection on which nothing is under way */

/* A connect() that has not ended: opens a connection, then waits for the welcome that accept() sends on it. */
struct plugin_joining {
    struct plugin_task task; /* first: what is under way */
    struct plugin_joining *next;
    uint64_t number;                /* stands in the handle; 0: its user is gone, and it ends with what is under way */
    const struct plugin_user *user; /* whose connect() it is */
    int64_t deadline_ns, again_ns;  /* gives up; tries again */
    struct plugin_waiting waiting;  /* for accept() */
    struct plugin_session *session; /* on which it opens; NULL: it does not */
    struct weft_connection *connection; /* NULL: not open */
    bool ended;                         /* the task has, with `status` and `text` */
    int status;
    char text[WEFT_TEXT_BYTES];
};

/* --- comms --- */

static struct plugin_comm *make_comm(struct plugin_device *device, struct plugin_session *session,
                                     struct weft_connection *connection, struct plugin_listener *listener,
                                     nccl_profiler profiler)
{
    struct plugin_comm *comm = calloc(1, sizeof *comm);
    if (!comm)
        return NULL;
    int parts_each = listener ? PLUGIN_RECVS_MAX : 1;
    comm->free_count = PLUGIN_PARTS_MAX / parts_each;
    for (int i = 0; i < comm->free_count; i++) {
        comm->requests[i] = (struct plugin_request){.comm = comm, .parts = &comm->parts[i * parts_each]};
        comm->free[i] = (uint16_t)i;
    }
    pthread_mutex_init(&comm->lock, NULL);
    comm->device = device;
    comm->session = session;
    comm->connection = connection;
    comm->listener = listener;
    comm->profiler = profiler;
    comm->profiles = profiler ? calloc(PLUGIN_PARTS_MAX, sizeof *comm->profiles) : NULL; /* without memory: no events */
    comm->next = device->comms;
    device->comms = comm;
    return comm;
}

/* Nothing is under way on the connection any more. `task` may be NULL. */
static void close_connection(struct plugin_device *device, struct weft_connection *connection, struct plugin_task *task)
{
    struct weft_options options = {.queue = device->closing, .timeout_ms = CLOSE_MS, .user_data = task};
    struct weft_request *request;
    weft_connection_close_start(connection, &options, &request, NULL);
}

static void free_comm(struct plugin_comm *comm)
{
    pthread_mutex_destroy(&comm->lock);
    free(comm->profiles);
    free(comm);
}

enum nccl_result plugin_close(void *handle)
{
    struct plugin_comm *comm = handle;
    struct plugin_device *device = comm->device;
    if (!device) {
        free_comm(comm);
        return NCCL_SUCCESS;
    }
    enum nccl_result result = plugin_stop(comm);
    pthread_mutex_lock(&device->lock);
    struct plugin_comm **at = &device->comms;
    while (*at != comm)
        at = &(*at)->next;
    *at = comm->next;
    close_connection(device, comm->connection, comm->listener ? &comm->listener->closing : NULL);
    plugin_session_leave(device, comm->session);
    plugin_look(device);
    pthread_mutex_unlock(&device->lock);
    if (result == NCCL_SUCCESS) /* else the library may still tell of chunks (profile.h): the memory is lost */
        free_comm(comm);
    return result;
}

/* --- listeners --- */

static void connection_closed(struct plugin_device *device, struct plugin_task *task,
                              const struct weft_completion *completion)
{
    (void)device, (void)completion;
    ((struct plugin_listener *)task)->busy = false;
}

void plugin_listeners_sweep(struct plugin_device *device)
{
    for (struct plugin_listener **at = &device->listeners; *at;) {
        struct plugin_listener *listener = *at;
        if (listener->open || listener->busy || weft_endpoint_destroy(listener->endpoint) != 0) {
            at = &listener->next;
            continue;
        }
        *at = listener->next;
        free(listener);
    }
}

static int open_endpoint(struct plugin_device *device, struct plugin_listener *listener, struct weft_error *err)
{
    int result = weft_endpoint_create(device->context, device->next_endpoint, &listener->endpoint, err);
    while (result == -EEXIST) { /* 2^32 listeners later */
        device->next_endpoint++;
        result = weft_endpoint_create(device->context, device->next_endpoint, &listener->endpoint, err);
    }
    return result;
}

static enum nccl_result listen_locked(struct plugin_device *device, struct plugin_listener *listener,
                                      struct plugin_handle *handle)
{
    struct weft_error err = {0};
    plugin_look(device);
    int result = open_endpoint(device, listener, &err);
    if (result < 0) {
        plugin_warn("%s", err.text);
        return plugin_result(result);
    }
    plugin_handle_fill(handle, device, device->next_endpoint++, weft_listen_port(device->context));
    listener->next = device->listeners;
    device->listeners = listener;
    return NCCL_SUCCESS;
}

enum nccl_result plugin_listen(struct plugin_user *user, int index, void *handle, void **out)
{
    struct plugin_device *device = plugin_device(index);
    struct plugin_listener *listener = device ? calloc(1, sizeof *listener) : NULL;
    if (!listener)
        return device ? NCCL_SYSTEM_ERROR : NCCL_INVALID_ARGUMENT;
    *listener = (struct plugin_listener){
        .closing.ended = connection_closed,
        .device = device,
        .profiler = user ? user->profiler : NULL,
        .open = true,
        .waiting.since_ns = plugin_now_ns(),
    };
    struct plugin_handle made;
    pthread_mutex_lock(&device->lock);
    enum nccl_result result = listen_locked(device, listener, &made);
    pthread_mutex_unlock(&device->lock);
    if (result == NCCL_SUCCESS) {
        memcpy(handle, &made, sizeof made);
        *out = listener;
    } else {
        free(listener);
    }
    return result;
}

void plugin_arrived(struct plugin_device *device, struct plugin_session *session, struct weft_endpoint *endpoint,
                    struct weft_connection *connection)
{
    struct plugin_listener *listener = device->listeners;
    if (!session) /* its peer was closed, and the connection with it */
        return;
    while (listener && listener->endpoint != endpoint)
        listener = listener->next;
    if (!listener || !listener->open || listener->busy) {
        close_connection(device, connection, NULL);
        return;
    }
    listener->arrived = connection;
    listener->session = session;
    listener->busy = true;
    session->comms++;
}

/* Tells the other side's connect() that the connection was accepted; nobody waits for it to arrive. */
static void welcome(struct plugin_device *device, struct weft_connection *connection)
{
    struct weft_options options = {.queue = device->closing};
    struct weft_request *request;
    weft_send(connection, NULL, 0, WELCOME_TAG, &options, &request);
}

/* NCCL waits without a limit, and its log would say nothing: a line each time that `connect_timeout` is over. */
static void say_who_waits(const struct plugin_device *device, struct plugin_waiting *waiting, const char *for_what)
{
    int64_t now_ns = plugin_now_ns(), limit_ns = (int64_t)device->connect_timeout_ms * 1000000;
    if (now_ns - waiting->since_ns < limit_ns || now_ns - waiting->said_ns < limit_ns)
        return;
    waiting->said_ns = now_ns;
    plugin_warn("%s: %s for %lld s", device->name, for_what, (long long)((now_ns - waiting->since_ns) / SECOND_NS));
}

enum nccl_result plugin_accept(void *handle, void **out)
{
    struct plugin_listener *listener = handle;
    struct plugin_device *device = listener->device;
    struct plugin_comm *comm = NULL;
    enum nccl_result result = NCCL_SUCCESS;
    pthread_mutex_lock(&device->lock);
    plugin_look(device);
    if (listener->arrived) {
        comm = make_comm(device, listener->session, listener->arrived, listener, listener->profiler);
        result = comm ? NCCL_SUCCESS : NCCL_SYSTEM_ERROR;
    }
    if (comm) {
        listener->arrived = NULL;
        welcome(device, comm->connection);
    } else {
        say_who_waits(device, &listener->waiting, "nobody has connected");
    }
    pthread_mutex_unlock(&device->lock);
    *out = comm;
    return result;
}

enum nccl_result plugin_close_listen(void *handle)
{
    struct plugin_listener *listener = handle;
    struct plugin_device *device = listener->device;
    pthread_mutex_lock(&device->lock);
    listener->open = false;
    if (listener->arrived) {
        close_connection(device, listener->arrived, &listener->closing);
        listener->arrived = NULL;
        plugin_session_leave(device, listener->session);
    }
    plugin_look(device);
    pthread_mutex_unlock(&device->lock);
    return NCCL_SUCCESS;
}

/* --- connect --- */

static void end_task(struct plugin_joining *joining, int status, const char *text)
{
    joining->ended = true;
    joining->status = status;
    snprintf(joining->text, sizeof joining->text, "%s", text);
}

static void end_joining(struct plugin_device *device, struct plugin_joining *joining)
{
    struct plugin_joining **at = &device->joinings;
    while (*at != joining)
        at = &(*at)->next;
    *at = joining->next;
    free(joining);
}

/* Its user is gone. If something is under way, it ends with that: the wait for a welcome with the connection, an open
 * after connect_timeout at the latest. */
static void give_up(struct plugin_device *device, struct plugin_joining *joining)
{
    bool under_way = joining->session && !joining->ended;
    joining->number = 0;
    joining->user = NULL;
    if (joining->connection)
        close_connection(device, joining->connection, NULL);
    joining->connection = NULL;
    if (under_way)
        return;
    if (joining->session)
        plugin_session_leave(device, joining->session);
    end_joining(device, joining);
}

static void welcomed(struct plugin_device *device, struct plugin_task *task, const struct weft_completion *completion)
{
    struct plugin_joining *joining = (struct plugin_joining *)task;
    end_task(joining, completion->status, completion->text);
    if (joining->number == 0)
        give_up(device, joining);
}

static int milliseconds_left(const struct plugin_joining *joining)
{
    int64_t left_ms = (joining->deadline_ns - plugin_now_ns()) / 1000000;
    return left_ms > 1 ? (int)left_ms : 1;
}

/* The other side's library opens connections by itself; only its accept() says that this one is wanted. */
static void opened(struct plugin_device *device, struct plugin_task *task, const struct weft_completion *completion)
{
    struct plugin_joining *joining = (struct plugin_joining *)task;
    joining->connection = completion->status < 0 ? NULL : completion->connection;
    if (completion->status < 0 || joining->number == 0) {
        welcomed(device, task, completion);
        return;
    }
    joining->task.ended = welcomed;
    struct weft_options options = {.queue = device->closing, .user_data = &joining->task};
    struct weft_request *request;
    int result = weft_recv(joining->connection, NULL, 0, WELCOME_TAG, &options, &request);
    if (result < 0)
        end_task(joining, result, weft_last_error());
}

static struct plugin_joining *begin_joining(struct plugin_device *device, const struct plugin_user *user,
                                            struct plugin_handle *handle)
{
    struct plugin_joining *joining = calloc(1, sizeof *joining);
    if (!joining)
        return NULL;
    joining->number = handle->joining = device->next_joining++;
    joining->user = user;
    joining->waiting.since_ns = plugin_now_ns();
    joining->deadline_ns = joining->waiting.since_ns + (int64_t)device->connect_timeout_ms * 1000000;
    joining->next = device->joinings;
    device->joinings = joining;
    return joining;
}

static struct plugin_joining *find_joining(struct plugin_device *device, const struct plugin_handle *handle)
{
    struct plugin_joining *joining = device->joinings;
    while (joining && joining->number != handle->joining)
        joining = joining->next;
    return joining;
}

static int open_on(struct plugin_device *device, struct plugin_joining *joining, struct plugin_session *session,
                   const struct plugin_handle *handle, int traffic_class, struct weft_error *err)
{
    struct weft_options options = {
        .flags = traffic_class == PLUGIN_CLASS_UNSET ? 0 : WEFT_CLASS,
        .traffic_class = traffic_class == PLUGIN_CLASS_UNSET ? 0 : (uint32_t)traffic_class,
        .timeout_ms = milliseconds_left(joining),
        .queue = device->closing,
        .user_data = &joining->task,
    };
    struct weft_request *request;
    joining->task.ended = opened;
    int result = weft_connection_open_start(device->sender, session->peer, handle->endpoint, &options, &request, err);
    if (result == 0) {
        joining->session = session;
        session->comms++;
    }
    return result;
}

/* 1: the connection is open; 0: call again; or a negative errno with `err`. */
static int join(struct plugin_device *device, struct plugin_joining *joining, const struct plugin_handle *handle,
                int traffic_class, struct weft_error *err)
{
    int64_t now_ns = plugin_now_ns();
    struct plugin_session *session;
    int result = 0;
    if (joining->ended && joining->status == 0)
        return 1;
    if (joining->ended) {
        if (joining->connection)
            close_connection(device, joining->connection, NULL);
        joining->connection = NULL;
        plugin_session_leave(device, joining->session);
        joining->session = NULL;
        joining->ended = false;
        joining->again_ns = now_ns + AGAIN_NS;
        result = joining->status;
        snprintf(err->text, sizeof err->text, "%s", joining->text);
    } else if (!joining->session && now_ns >= joining->again_ns) {
        result = plugin_meet(device, handle, &session, err);
        if (result == 1)
            result = open_on(device, joining, session, handle, traffic_class, err);
    } else if (joining->connection) {
        say_who_waits(device, &joining->waiting, "connect: the other side has not called accept()");
    }
    return plugin_crossed(device, handle->process, handle->device, result) && now_ns < joining->deadline_ns ? 0
                                                                                                            : result;
}

static enum nccl_result connect_locked(struct plugin_device *device, struct plugin_user *user, int traffic_class,
                                       struct plugin_handle *handle, struct plugin_comm **out)
{
    plugin_look(device);
    struct plugin_joining *joining =
        handle->joining ? find_joining(device, handle) : begin_joining(device, user, handle);
    if (!joining) {
        plugin_warn("a handle for connect() names a connect that this process has not begun, or there is no memory");
        return NCCL_INVALID_ARGUMENT;
    }
    struct weft_error err = {0};
    int result = join(device, joining, handle, traffic_class, &err);
    if (result == 0)
        return NCCL_SUCCESS;
    if (result == 1) {
        *out = make_comm(device, joining->session, joining->connection, NULL, user ? user->profiler : NULL);
        if (!*out) {
            result = -ENOMEM;
            snprintf(err.text, sizeof err.text, "no memory");
            close_connection(device, joining->connection, NULL);
            plugin_session_leave(device, joining->session);
        }
    }
    if (result < 0)
        plugin_warn("%s: connect: %s", device->name, err.text);
    if (result < 0 || *out) {
        handle->joining = 0;
        end_joining(device, joining);
    }
    return result < 0 ? plugin_result(result) : NCCL_SUCCESS;
}

enum nccl_result plugin_connect(struct plugin_user *user, int traffic_class, int index, void *bytes, void **out)
{
    struct plugin_device *device = plugin_device(index);
    struct plugin_handle handle;
    memcpy(&handle, bytes, sizeof handle);
    const char *fault = plugin_handle_fault(&handle);
    *out = NULL;
    if (fault)
        plugin_warn("a handle for connect() is refused: %s", fault);
    if (fault || !device)
        return NCCL_INVALID_ARGUMENT;
    struct plugin_comm *comm = NULL;
    pthread_mutex_lock(&device->lock);
    enum nccl_result result = connect_locked(device, user, traffic_class, &handle, &comm);
    pthread_mutex_unlock(&device->lock);
    memcpy(bytes, &handle, sizeof handle);
    *out = comm;
    return result;
}

/* --- the end --- */

void plugin_connects_end(struct plugin_device *device, const struct plugin_user *user)
{
    pthread_mutex_lock(&device->lock);
    for (struct plugin_joining *joining = device->joinings, *next; joining; joining = next) {
        next = joining->next;
        if (joining->user == user)
            give_up(device, joining);
    }
    plugin_look(device);
    pthread_mutex_unlock(&device->lock);
}

bool plugin_comms_open(struct plugin_device *device)
{
    if (pthread_mutex_trylock(&device->lock) != 0)
        return true;
    bool open = device->comms || device->joinings;
    for (const struct plugin_listener *listener = device->listeners; listener && !open; listener = listener->next)
        open = listener->open;
    pthread_mutex_unlock(&device->lock);
    return open;
}

void plugin_comms_forget(struct plugin_device *device)
{
    while (device->comms) {
        struct plugin_comm *comm = device->comms;
        device->comms = comm->next;
        comm->device = NULL;
    }
    while (device->listeners) {
        struct plugin_listener *listener = device->listeners;
        device->listeners = listener->next;
        free(listener);
    }
    while (device->joinings)
        end_joining(device, device->joinings);
}
