/*
 * ops.h: collectives, carried out by one member. Knows the others by their ranks, and reaches them by a port.
 *
 *     an operation is cut into lanes, and a lane is a list of steps, one after the other; the plan alone says what a
 *     step does: so a result depends on the plan, and never on what came first
 *
 * All of an operation is called by one thread at a time. Nothing here waits or reads a clock.
 */
#ifndef WF_COLL_OPS_H
#define WF_COLL_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "collective/weft_coll.h"

#define WF_OPS_LANES_MAX 8 /* of an operation, under way at once */
#define WF_OPS_SENDS_MAX 8 /* of a lane, under way at once */
#define WF_OPS_NOBODY UINT32_MAX

struct wf_coll_hub; /* the port's owner knows it */

/* First in what a request's user_data points to: who takes its completion. */
struct wf_coll_task {
    void (*ended)(struct wf_coll_hub *hub, struct wf_coll_task *task, const struct weft_completion *completion);
    bool taken; /* its completion was polled, and `ended` is to come: its request's handle is gone */
};

struct wf_op;

/* A message under way. Owner: its operation; `task` and `request` are the port's. */
struct wf_transfer {
    struct wf_coll_task task;
    struct weft_request *request;
    struct wf_op *op;
    uint32_t lane, step; /* the lane's place in the operation */
    uint32_t rank;       /* of the other member */
    uint64_t bytes;      /* that it has to move */
    bool receives, busy; /* busy: the port has it */
};

/*
 * What moves the messages. A post returns 0: wf_op_transfer_ended() will be called for the transfer, later; -EAGAIN:
 * nothing was posted, and wf_op_advance() is to be called again; another negative errno: the port knows why, and
 * nothing was posted. Messages of one tag between two members are one: every tag is used once in an operation. The
 * upper 16 bits of a tag are the port's own: 0 here.
 */
struct wf_port {
    int (*send)(struct wf_port *port, struct wf_transfer *transfer, const void *bytes, uint64_t tag);
    int (*receive)(struct wf_port *port, struct wf_transfer *transfer, void *place, uint64_t tag);
    void (*cancel)(struct wf_port *port, struct wf_transfer *transfer); /* it ends soon */
};

/* What is asked for, as in weft_coll.h, with everything checked. */
struct wf_ask {
    enum weft_collective kind;
    enum weft_type type;
    enum weft_op op;
    uint32_t rank, size, root, by; /* by: 0 to size - 1 */
    uint64_t count;
    const void *in;
    void *out;
};

/* `number`: of the operation, the same at every member; its low 16 bits are in every tag. -ENOMEM. */
int wf_op_create(const struct wf_ask *ask, uint64_t number, struct wf_port *port, struct wf_op **out);
/* Not while a transfer is under way. NULL is allowed. */
void wf_op_destroy(struct wf_op *op);
/* Begins, and goes on with, what can be: after the creation, and after each end of a transfer. 0, or what a post has
 * returned: then nothing more is posted. */
int wf_op_advance(struct wf_op *op);
/* A post has returned -EAGAIN since the last wf_op_advance(). */
bool wf_op_stuck(const struct wf_op *op);
/* Every step is done, and no transfer is under way. */
bool wf_op_done(const struct wf_op *op);
/* Nothing more is posted, and what is under way is cancelled. */
void wf_op_stop(struct wf_op *op);
bool wf_op_idle(const struct wf_op *op); /* no transfer is under way */
/* `status`: as the completion's. An error stops that transfer's lane: the port's owner ends the operation. */
void wf_op_transfer_ended(struct wf_transfer *transfer, int status);
struct wf_port *wf_op_port(const struct wf_op *op);
/* Of `out`. */
uint64_t wf_op_bytes(const struct wf_op *op);
const char *wf_op_name(const struct wf_op *op); /* "all-reduce" */

/* Where each member waits for one other alone, in either direction (broadcast, shift), so that some may be done before
 * all have begun. */
bool wf_op_is_line(const struct wf_op *op);
/* Of a line: whose message `rank` needs, or who takes its own; WF_OPS_NOBODY: nobody, or several. */
uint32_t wf_op_neighbour(const struct wf_op *op, uint32_t rank, bool receives);
/* Whom this member waits for now, to receive, or to send; WF_OPS_NOBODY: nobody. */
uint32_t wf_op_waits_for(const struct wf_op *op, bool receives);

#endif
