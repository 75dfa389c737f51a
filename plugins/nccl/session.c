#include "plugins/nccl/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/nccl/comm.h"

#define EVENTS 8
#define GOODBYE_MS 1000
#define TRY_MS 5000 /* for one address where the handle has others */

static void dialled(struct plugin_device *device, struct plugin_task *task, const struct weft_completion *completion);

/* Closes a peer that nothing is on. */
static void part_from(struct plugin_device *device, struct weft_peer *peer)
{
    struct weft_options options = {.queue = device->closing, .timeout_ms = GOODBYE_MS};
    struct weft_request *request;
    weft_peer_close_start(peer, &options, &request, NULL);
}

/* --- the list --- */

static struct plugin_session *add(struct plugin_device *device, uint64_t process, uint32_t number)
{
    struct plugin_session *session = calloc(1, sizeof *session);
    if (!session)
        return NULL;
    session->dial.ended = dialled;
    session->process = process;
    session->device = number;
    session->next = device->sessions;
    device->sessions = session;
    return session;
}

static struct plugin_session *find(struct plugin_device *device, uint64_t process, uint32_t number)
{
    struct plugin_session *session = device->sessions;
    while (session && (session->former || session->mirror || session->process != process || session->device != number))
        session = session->next;
    return session;
}

static struct plugin_session *find_peer(struct plugin_device *device, const struct weft_peer *peer)
{
    struct plugin_session *session = device->sessions;
    while (session && session->peer != peer)
        session = session->next;
    return session;
}

/* Drops a former session that nothing needs any more. */
static void tidy(struct plugin_device *device, struct plugin_session *session)
{
    if (!session->former || session->comms > 0 || session->dialing)
        return;
    if (session->peer)
        part_from(device, session->peer);
    struct plugin_session **at = &device->sessions;
    while (*at != session)
        at = &(*at)->next;
    *at = session->next;
    free(session);
}

void plugin_session_leave(struct plugin_device *device, struct plugin_session *session)
{
    session->comms--;
    tidy(device, session);
}

void plugin_sessions_free(struct plugin_device *device)
{
    while (device->sessions) {
        struct plugin_session *session = device->sessions;
        device->sessions = session->next;
        free(session);
    }
}

/* --- dialling --- */

/* Of two that dial each other the session of the lower one stays; devices of one process may dial each other, too. */
static bool is_lower(const struct plugin_device *device, uint64_t process, uint32_t number)
{
    return process < plugin_process() || (process == plugin_process() && number < (uint32_t)device->index);
}

bool plugin_crossed(const struct plugin_device *device, uint64_t process, uint32_t number, int status)
{
    return is_lower(device, process, number) && (status == -ESHUTDOWN || status == -ECONNRESET);
}

static int dial(struct plugin_device *device, struct plugin_session *session, const struct plugin_handle *handle,
                struct weft_error *err)
{
    char address[HANDLE_TEXT_BYTES];
    if (!plugin_handle_address(handle, device, session->attempt, address)) {
        session->attempt = 0;
        snprintf(err->text, sizeof err->text, "%s", session->text);
        return session->failure;
    }
    struct weft_options options = {
        .queue = device->closing,
        .user_data = &session->dial,
        .timeout_ms =
            handle->address_count > 1 && device->connect_timeout_ms > TRY_MS ? TRY_MS : device->connect_timeout_ms,
    };
    return weft_connect_start(device->context, address, &options, &session->dialing, err);
}

/* The next address is for the next call of plugin_meet(). */
static void dialled(struct plugin_device *device, struct plugin_task *task, const struct weft_completion *completion)
{
    struct plugin_session *session = (struct plugin_session *)task;
    session->dialing = NULL;
    if (completion->status == 0 && (session->former || session->peer)) {
        part_from(device, completion->peer); /* the other side's dial came first: see met() */
    } else if (completion->status == 0) {
        session->peer = completion->peer;
        session->attempt = 0;
    } else if (!plugin_crossed(device, session->process, session->device, completion->status)) {
        session->failure = completion->status;
        snprintf(session->text, sizeof session->text, "%s", completion->text);
        session->attempt++;
    }
    tidy(device, session);
}

int plugin_meet(struct plugin_device *device, const struct plugin_handle *handle, struct plugin_session **out,
                struct weft_error *err)
{
    struct plugin_session *session = find(device, handle->process, handle->device);
    if (!session)
        session = add(device, handle->process, handle->device);
    if (!session)
        return -ENOMEM;
    *out = session;
    if (session->peer)
        return 1;
    return session->dialing ? 0 : dial(device, session, handle, err);
}

/* --- who has come --- */

static bool read_greeting(const struct weft_peer *peer, uint64_t *process, uint32_t *device)
{
    unsigned long long number;
    if (sscanf(weft_peer_greeting(peer, NULL), "nccl 1 %16llx %u", &number, device) != 2)
        return false;
    *process = number;
    return true;
}

/* This side dials the peer, too, or has done so. True: that session stays. */
static bool keeps_own(const struct plugin_device *device, const struct plugin_session *session)
{
    if (is_lower(device, session->process, session->device))
        return false;
    return session->peer ? weft_peer_status(session->peer, NULL) == 0 : session->dialing != NULL;
}

static void met(struct plugin_device *device, struct weft_peer *peer)
{
    uint64_t process;
    uint32_t number;
    if (!read_greeting(peer, &process, &number)) {
        plugin_warn("%s is no process with this plugin in the same version: closed", weft_peer_name(peer));
        part_from(device, peer);
        return;
    }
    bool own = process == plugin_process() && number == (uint32_t)device->index;
    struct plugin_session *known = own ? NULL : find(device, process, number);
    if (known && keeps_own(device, known)) {
        part_from(device, peer);
        return;
    }
    if (known && known->peer) {
        known->former = true;
        tidy(device, known);
        known = NULL;
    }
    struct plugin_session *session = known ? known : add(device, process, number);
    if (!session) {
        part_from(device, peer);
        return;
    }
    session->peer = peer;
    session->mirror = own;
}

static void lost(struct plugin_device *device, const struct weft_event *event)
{
    struct plugin_session *session = find_peer(device, event->peer);
    if (event->status != -ESHUTDOWN)
        plugin_info(NCCL_NET, "%s", event->text);
    if (!session)
        return;
    session->former = true;
    tidy(device, session);
}

static void take_event(struct plugin_device *device, const struct weft_event *event)
{
    switch (event->kind) {
    case WEFT_EVENT_PEER:
        met(device, event->peer);
        break;
    case WEFT_EVENT_CONNECTION:
        plugin_arrived(device, find_peer(device, event->peer), event->endpoint, event->connection);
        break;
    case WEFT_EVENT_LOST:
        lost(device, event);
        break;
    default:
        break;
    }
}

void plugin_look(struct plugin_device *device)
{
    struct weft_event events[EVENTS];
    struct weft_completion ends[EVENTS];
    int count;
    while ((count = weft_event_poll(device->context, events, EVENTS)) > 0)
        for (int i = 0; i < count; i++)
            take_event(device, &events[i]);
    while ((count = weft_queue_poll(device->closing, ends, EVENTS)) > 0)
        for (int i = 0; i < count; i++) {
            struct plugin_task *task = ends[i].user_data;
            if (task)
                task->ended(device, task, &ends[i]);
        }
    plugin_listeners_sweep(device);
}
