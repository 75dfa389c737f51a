/*
 * session.h: which other processes a device has met. One session for each device of each process, whoever has dialled,
 * and all comms with it share its channels.
 *
 * Both sides may dial at once. Then the session that the lower one (by number of process, then device) has dialled
 * stays: the lower one closes the other as soon as it comes in, before anything is on it; what the higher one has begun
 * there fails, and is begun again on the session that stays.
 *
 * Everything here is called with plugin_device.lock held, and nothing waits.
 */
#ifndef WEFT_NCCL_SESSION_H
#define WEFT_NCCL_SESSION_H

#include "plugins/nccl/handle.h"
#include "plugins/nccl/plugin.h"

/* What the library does for a device without being waited for; plugin_look() finds that it has ended. */
struct plugin_task {
    void (*ended)(struct plugin_device *device, struct plugin_task *task, const struct weft_completion *completion);
};

/* Owner: its device. */
struct plugin_session {
    struct plugin_task dial; /* first: see dialled() */
    struct plugin_session *next;
    uint64_t process; /* the other one, and its device: the name of the session */
    uint32_t device;
    bool former;                  /* lost, or another took its place: takes no new comms */
    bool mirror;                  /* the accepted end of a session with itself: the other end takes the comms */
    int comms;                    /* on it, also those that are only being opened */
    struct weft_peer *peer;       /* NULL: not met */
    struct weft_request *dialing; /* NULL: this side does not dial */
    int attempt;                  /* number of the handle's address that is dialled */
    int failure;                  /* why nobody was met: a negative errno; 0: nothing failed yet */
    char text[WEFT_TEXT_BYTES];   /* of the failure */
};

/* Takes what has happened on the device: peers met and lost, connections to listeners, tasks that have ended. */
void plugin_look(struct plugin_device *device);

/*
 * The session with the process and device that the handle names. 1: it has a peer, and is in `*out`; 0: not yet, this
 * side dials; or a negative errno, why no address of the handle leads there, with `err`.
 */
int plugin_meet(struct plugin_device *device, const struct plugin_handle *handle, struct plugin_session **out,
                struct weft_error *err);

/* Did a request fail because both sides had dialled, so that it should be begun again? */
bool plugin_crossed(const struct plugin_device *device, uint64_t process, uint32_t number, int status);

/* A comm leaves the session. */
void plugin_session_leave(struct plugin_device *device, struct plugin_session *session);

/* The context is gone: only memory is left. */
void plugin_sessions_free(struct plugin_device *device);

#endif
