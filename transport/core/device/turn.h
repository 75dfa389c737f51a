/*
 * turn.h: an operation's place in the order of a user's stream (WEFT_ON_STREAM).
 *
 *     work before ... | mark | wait until flag >= value | work after ...
 *
 * The mark tells that the work before has been done: only then the operation's memory is touched. The flag is set when
 * the operation ends, however it does: only then the stream goes on. Nobody waits for either; the worker of the device
 * asks for the mark. A turn is used again, with the next value, once both are past.
 */
#ifndef WF_CORE_DEVICE_TURN_H
#define WF_CORE_DEVICE_TURN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/device/device.h"
#include "core/device/transit.h"

struct weft_request;

#define WF_TURNS 4096 /* of a device at a time */

/* Owner: session lock; while free, device.lock. */
struct wf_turn {
    struct wf_link link; /* device.free_turns */
    struct wf_transit transit;
    _Atomic uint32_t *flag; /* pinned; read by the device */
    uint32_t value;
    struct weft_request *request; /* NULL: it has ended, or there never was one */
    /* Lock held: the mark was reached, or the device failed. `request` is not NULL. */
    void (*go)(struct wf_turn *turn, const struct wf_transit *transit);
    bool begun;  /* its mark is asked for */
    bool come;   /* the work before it has been done */
    int refusal; /* why there can be no operation; 0: there can */
};

/* `flags`: room for WF_TURNS words of pinned memory. -ENOMEM. */
int wf_turns_init(struct wf_device *device, uint32_t *flags, struct wf_status *status);

/* Takes a place in the stream. No lock. -EINVAL: not memory of a device; -EAGAIN: too many; -ENOTSUP: the stream is
 * being captured into a graph, or waits cannot be put to any; -EIO, -ENODEV. The turn's `refusal` is -ENOTSUP where the
 * device cannot wait for a flag: then it is to be dropped. */
int wf_turn_take(struct wf_device *device, void *stream, struct wf_turn **out);

/* --- with the session's lock held --- */

/* It is this operation's. */
void wf_turn_begin(struct wf_turn *turn, struct wf_shares *shares, struct weft_request *request,
                   void (*go)(struct wf_turn *turn, const struct wf_transit *transit));
/* The operation has ended: the stream goes on. */
void wf_turn_end(struct wf_turn *turn);
/* There will be no operation. */
void wf_turn_drop(struct wf_turn *turn, struct wf_shares *shares);

#endif
