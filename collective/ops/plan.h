/*
 * plan.h: what one member does of one collective: lanes of steps. An algorithm is two functions without a state.
 *
 *     what a step sends and where it lands are read and written by no step of another lane
 *
 *     a sum that lands where a part of it was sent from comes after that part has landed: it was made from it. So its
 *     receive does not wait for the end of that send, which is told later. If the send goes again meanwhile, for its
 *     channel was lost, the other side has the message already, and drops what comes (docs/protocol.md, Lost channels)
 */
#ifndef WF_COLL_PLAN_H
#define WF_COLL_PLAN_H

#include "collective/ops/ops.h"

/* The default of the setting `eager`: a message of so many bytes needs no answer before it goes. */
#define WF_PLAN_LITTLE_BYTES 8192
/* An array of so many bytes at most is cut into such messages, all of a step at once. */
#define WF_PLAN_SMALL_BYTES (64 * 1024)

/* One turn of a lane: a send and a receive at the same time, then what is made of it. */
struct wf_step {
    uint32_t to, from; /* WF_OPS_NOBODY: neither; nor with 0 bytes */
    const char *send;
    uint64_t send_bytes;
    char *land;
    uint64_t land_bytes;
    int64_t land_after; /* the step whose send has to end before; -1: none */
    bool settle;        /* the send has to end before the result is written */
    char *result;       /* result = left op right; without `right`: a copy of `left`. NULL: nothing */
    const char *left, *right;
    uint64_t count; /* elements */
    bool divide;    /* the result is complete: an average is divided */
    uint32_t tag;   /* the same at the other side */
};

struct wf_plan;

struct wf_algorithm {
    const char *name;
    /* Fills in segment, lanes and scratch. */
    void (*lay)(struct wf_plan *plan);
    /* False: the lane has no such step. `scratch`: of this lane, until its last step is done. `out` is empty: nobody,
     * nothing, land_after -1, tag `number`. */
    bool (*step)(const struct wf_plan *plan, uint64_t lane, uint32_t number, char *scratch, struct wf_step *out);
};

struct wf_plan {
    struct wf_ask ask;
    const struct wf_algorithm *algorithm;
    uint64_t width;   /* bytes of an element */
    uint64_t segment; /* elements of a lane, of each chunk */
    uint64_t lanes;
    uint64_t scratch; /* bytes, of a lane */
};

extern const struct wf_algorithm wf_ring, wf_doubling, wf_halving, wf_gather_doubling, wf_chain, wf_tree, wf_pairs,
    wf_alone;

/* Chooses, and lays. */
void wf_plan_init(struct wf_plan *plan, const struct wf_ask *ask);
const struct wf_algorithm *wf_plan_choose(enum weft_collective kind, uint64_t bytes, uint32_t size);
const char *wf_collective_name(enum weft_collective kind);

/* Elements for a lane, where what is sent in a step is longer. */
uint64_t wf_plan_segment(const struct wf_plan *plan);
/* First element of the chunk of `rank`; size: the end. Of an all-reduce, count * rank / size. */
uint64_t wf_plan_chunk(const struct wf_plan *plan, uint32_t rank);
/* Of a tree: the parent of `rank`; WF_OPS_NOBODY: it is the root. */
uint32_t wf_tree_parent(uint32_t rank, uint32_t root, uint32_t size);

#endif
