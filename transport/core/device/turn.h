/*
 * turn.h: an operation's place in the order of a user's stream (WEFT_ON_STREAM).
 *
 *     work before ... | mark | wait until flag >= value | work after ...
 *
 * Once the mark is reached, the work before it is done: only then the operation touches its memory. The flag is set
 * when the operation ends, with or without success: only then the stream goes on. No thread waits for the mark or the
 * flag; the device's worker asks for the mark. A turn is used again, with the next value, once its mark is reached and
 * its flag is set.
 */
#ifndef WF_CORE_DEVICE_TURN_H
#define WF_CORE_DEVICE_TURN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/device/device.h"
#include "core/device/transit.h"

struct weft_request;

#define WF_TURNS 4096 /* of one device at the same time */

/* Owner: session lock; while free, device.lock. */
struct wf_turn {
    struct wf_link link; /* device.free_turns */
    struct wf_transit transit;
    _Atomic uint32_t *flag; /* pinned; read by the device */
    uint32_t value;
    struct weft_request *request; /* NULL: the operation has ended, or was never begun */
    /* Lock held: the mark was reached, or the device failed. `request` is not NULL. */
    void (*go)(struct wf_turn *turn, const struct wf_transit *transit);
    bool begun;  /* the device's worker asks for the mark */
    bool come;   /* the mark was reached, or the device failed */
    int refusal; /* 0, or the error for which the operation is refused */
};

/* Makes the turns of a device; `flags`: WF_TURNS words of pinned memory. 0 or -ENOMEM. */
int wf_turns_init(struct wf_device *device, uint32_t *flags, struct wf_status *status);

/* Takes a place in the stream. No lock. -EINVAL: the memory is not a device's; -EAGAIN: no turn is free; -ENOTSUP: the
 * stream is being captured into a graph, or the staging memory is not pinned; -EIO, -ENODEV. 0 and a `refusal` in the
 * turn: the device cannot wait for the flag; the caller must drop the turn. */
int wf_turn_take(struct wf_device *device, void *stream, struct wf_turn **out);

/* --- with the session's lock held --- */

/* The turn belongs to this operation. `go` is called when the mark is reached, unless the operation has ended. */
void wf_turn_begin(struct wf_turn *turn, struct wf_shares *shares, struct weft_request *request,
                   void (*go)(struct wf_turn *turn, const struct wf_transit *transit));
/* The operation has ended: the stream goes on. */
void wf_turn_end(struct wf_turn *turn);
/* No operation was begun: the stream goes on, and the turn is freed once its mark is reached. */
void wf_turn_drop(struct wf_turn *turn, struct wf_shares *shares);

#endif
