/*
 * fault.h: when which injected fault is due. Pure: bytes that moved and times come in, decisions go out, and the same
 * seed decides the same. engine_fault.h puts them into effect.
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
    uint64_t until_reset, until_flip; /* bytes that move before; UINT64_MAX: never */
};

void wf_fault_dice_init(struct wf_fault_dice *dice, const struct wf_fault_spec *spec);

/* `bytes` have moved: is a reset due? */
bool wf_fault_reset_due(struct wf_fault_dice *dice, uint64_t bytes);

/* Of `bytes` received, the number of the next one to be damaged (1: the first), and its bit; 0: none of them. To be
 * called again for the bytes behind it. */
uint64_t wf_fault_flip_due(struct wf_fault_dice *dice, uint64_t bytes, int *bit);

/* How many of `bytes` the next call is to move: 1 to `bytes`, and no more than are left until a reset. */
uint64_t wf_fault_piece(struct wf_fault_dice *dice, uint64_t bytes);

/* --- by time --- */

#define WF_FAULT_RAILS 64

struct wf_fault_rail {
    const char *name, *device; /* as a person may call it; live as long as the engines around */
    struct sockaddr_storage address;
};

/* A specification on the rails that are here. */
struct wf_fault_plan {
    struct wf_fault_spec spec;
    uint64_t rails[WF_FAULT_WINDOWS]; /* which ones each window is about, as bits */
};

/* Finds the windows' rails: an index, or each with that interface, name or address. -EINVAL names the item at fault and
 * the rails there are. */
int wf_fault_plan_init(struct wf_fault_plan *plan, const struct wf_fault_spec *spec, const struct wf_fault_rail *rails,
                       int rail_count, struct wf_status *status);

/* How the rails fare at a time since the start, as bits. */
struct wf_fault_state {
    uint64_t stalled, dropped;
    int64_t until_ns; /* when it changes; WF_NEVER */
};
struct wf_fault_state wf_fault_state_at(const struct wf_fault_plan *plan, int64_t since_ns);

/* When the stall of a rail is over that it is in; `since_ns` where it is in none. */
int64_t wf_fault_stall_end(const struct wf_fault_plan *plan, int rail, int64_t since_ns);

/* The rail of a local address, or -1. IPv4-mapped IPv6 counts as IPv4. */
int wf_fault_rail_of(const struct wf_fault_rail *rails, int rail_count, const struct sockaddr_storage *address);

#endif
