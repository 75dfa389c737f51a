/*
 * fault.h: decides which injected fault is due, and when. Pure: the caller passes bytes moved and times, and gets
 * decisions; equal seeds give equal decisions. engine_fault.h carries the decisions out.
 */
#ifndef WF_IO_FAULT_H
#define WF_IO_FAULT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/fault_spec.h"

/* --- by bytes and chance --- */

/* Owner: guarded by its user. */
struct wf_fault_dice {
    const struct wf_fault_spec *spec;
    uint64_t state;
    uint64_t until_reset, until_flip; /* bytes that move before the next fault; UINT64_MAX: never */
};

void wf_fault_dice_init(struct wf_fault_dice *dice, const struct wf_fault_spec *spec);

/* `bytes` have moved: is a reset due? */
bool wf_fault_reset_due(struct wf_fault_dice *dice, uint64_t bytes);

/* The number of the next byte to damage among `bytes` received bytes (1: the first), and its bit; 0: none of them. Call
 * it again for the bytes behind that byte. */
uint64_t wf_fault_flip_due(struct wf_fault_dice *dice, uint64_t bytes, int *bit);

/* The bytes, out of `bytes`, that the next call may move: 1 to `bytes`, and at most those left before a reset. */
uint64_t wf_fault_piece(struct wf_fault_dice *dice, uint64_t bytes);

/* --- by time --- */

#define WF_FAULT_RAILS 64

struct wf_fault_rail {
    const char *name, *device; /* names that a specification may use; live as long as the engines around */
    struct sockaddr_storage address;
};

/* A specification applied to the rails of this context. */
struct wf_fault_plan {
    struct wf_fault_spec spec;
    uint64_t rails[WF_FAULT_WINDOWS]; /* the rails of each window, as bits */
};

/* Finds the rails of each window: an index, or all rails with that interface, name or address. -EINVAL: `status` names
 * the wrong item and the existing rails. */
int wf_fault_plan_init(struct wf_fault_plan *plan, const struct wf_fault_spec *spec, const struct wf_fault_rail *rails,
                       int rail_count, struct wf_status *status);

/* The rails that stall or are gone, as bits, at `since_ns` after the start. */
struct wf_fault_state {
    uint64_t stalled, dropped;
    int64_t until_ns; /* time of the next change; WF_NEVER: no change */
};
struct wf_fault_state wf_fault_state_at(const struct wf_fault_plan *plan, int64_t since_ns);

/* The time at which the present stall of `rail` ends; `since_ns` if the rail does not stall. */
int64_t wf_fault_stall_end(const struct wf_fault_plan *plan, int rail, int64_t since_ns);

/* The rail with a local address, or -1. An IPv4-mapped IPv6 address counts as IPv4. */
int wf_fault_rail_of(const struct wf_fault_rail *rails, int rail_count, const struct sockaddr_storage *address);

#endif
