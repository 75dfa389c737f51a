/* An operation under way: lanes, each at one of its steps. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collective/ops/plan.h"
#include "collective/reduce/reduce.h"

#define AHEAD 2 /* receives posted: of this step, and of the next */

struct lane {
    uint64_t number;
    uint32_t step;   /* its turn */
    uint32_t posted; /* receives of the steps below that are posted, or there are none */
    bool known[AHEAD], landed[AHEAD], sent, over;
    struct wf_step steps[AHEAD];
    struct wf_transfer receive[AHEAD], send[WF_OPS_SENDS_MAX];
    uint32_t sending; /* under way */
    char *scratch;
};

struct wf_op {
    struct wf_plan plan;
    struct wf_port *port;
    uint64_t tag;
    uint64_t next;      /* lane that has not begun */
    uint32_t lanes;     /* places in use */
    uint32_t under_way; /* transfers */
    bool stuck, stopped;
    void *copy;    /* of `in`, where it would be overwritten */
    char *scratch; /* of all lanes */
    struct lane lane[WF_OPS_LANES_MAX];
};

static bool overwritten(const struct wf_ask *ask)
{
    return ask->in == ask->out && (ask->kind == WEFT_ALL_TO_ALL || ask->kind == WEFT_SHIFT);
}

static int make_room(struct wf_op *op)
{
    struct wf_ask *ask = &op->plan.ask;
    uint64_t bytes = ask->count * op->plan.width * (ask->kind == WEFT_ALL_TO_ALL ? ask->size : 1);
    uint64_t lanes = op->plan.lanes < WF_OPS_LANES_MAX ? op->plan.lanes : WF_OPS_LANES_MAX;
    if (overwritten(ask)) {
        op->copy = malloc(bytes);
        if (!op->copy)
            return -ENOMEM;
        memcpy(op->copy, ask->in, bytes);
        ask->in = op->copy;
    }
    op->lanes = (uint32_t)lanes;
    if (op->plan.scratch == 0)
        return 0;
    op->plan.scratch = (op->plan.scratch + 63) / 64 * 64;
    op->scratch = aligned_alloc(64, lanes * op->plan.scratch);
    return op->scratch ? 0 : -ENOMEM;
}

static void lane_begin(struct wf_op *op, uint32_t place)
{
    struct lane *lane = &op->lane[place];
    lane->number = op->next++;
    lane->step = lane->posted = 0;
    lane->sent = lane->over = false;
    memset(lane->known, 0, sizeof lane->known);
    memset(lane->landed, 0, sizeof lane->landed);
}

static void lane_init(struct wf_op *op, uint32_t place)
{
    struct lane *lane = &op->lane[place];
    struct wf_transfer transfer = {.op = op, .lane = place};
    for (int i = 0; i < WF_OPS_SENDS_MAX; i++)
        lane->send[i] = transfer;
    transfer.receives = true;
    for (int i = 0; i < AHEAD; i++)
        lane->receive[i] = transfer;
    lane->scratch = op->scratch ? op->scratch + place * op->plan.scratch : NULL;
    lane_begin(op, place);
}

int wf_op_create(const struct wf_ask *ask, uint64_t number, struct wf_port *port, struct wf_op **out)
{
    struct wf_op *op = calloc(1, sizeof *op);
    if (!op)
        return -ENOMEM;
    wf_plan_init(&op->plan, ask);
    op->port = port;
    op->tag = (number & 0xFFFF) << 32;
    int result = op->plan.lanes > 0 ? make_room(op) : 0;
    if (result < 0) {
        wf_op_destroy(op);
        return result;
    }
    for (uint32_t i = 0; i < op->lanes; i++)
        lane_init(op, i);
    *out = op;
    return 0;
}

void wf_op_destroy(struct wf_op *op)
{
    if (!op)
        return;
    free(op->scratch);
    free(op->copy);
    free(op);
}

/* --- steps --- */

/* The step `number`, which is the lane's turn or the next; NULL: there is none. */
static const struct wf_step *step_at(struct wf_op *op, struct lane *lane, uint32_t number)
{
    struct wf_step *step = &lane->steps[number % AHEAD];
    if (!lane->known[number % AHEAD]) {
        *step = (struct wf_step){.to = WF_OPS_NOBODY, .from = WF_OPS_NOBODY, .land_after = -1, .tag = number};
        if (!op->plan.algorithm->step(&op->plan, lane->number, number, lane->scratch, step))
            return NULL;
        lane->known[number % AHEAD] = true;
    }
    return step;
}

static bool send_ended(const struct lane *lane, int64_t step)
{
    const struct wf_transfer *transfer = &lane->send[step % WF_OPS_SENDS_MAX];
    return !(transfer->busy && transfer->step == (uint32_t)step);
}

static int post(struct wf_op *op, struct lane *lane, struct wf_transfer *transfer, const struct wf_step *step,
                uint32_t number)
{
    uint64_t tag = op->tag | (lane->number & 0xFFFF) << 16 | (step->tag & 0xFFFF);
    transfer->step = number;
    transfer->rank = transfer->receives ? step->from : step->to;
    transfer->bytes = transfer->receives ? step->land_bytes : step->send_bytes;
    int result = transfer->receives ? op->port->receive(op->port, transfer, step->land, tag)
                                    : op->port->send(op->port, transfer, step->send, tag);
    if (result == 0) {
        transfer->busy = true;
        op->under_way++;
        lane->sending += !transfer->receives;
    }
    op->stuck = op->stuck || result == -EAGAIN;
    return result;
}

/* Posts the receives of `steps` steps from this one on, in their order. */
static int post_receives(struct wf_op *op, struct lane *lane, uint32_t steps)
{
    while (lane->posted < lane->step + steps) {
        uint32_t number = lane->posted;
        const struct wf_step *step = step_at(op, lane, number);
        if (!step)
            return 0;
        if (step->from == WF_OPS_NOBODY || step->land_bytes == 0) {
            lane->landed[number % AHEAD] = true;
        } else {
            if (step->land_after >= 0 && (step->land_after >= (int64_t)lane->step + lane->sent || /* not even sent */
                                          !send_ended(lane, step->land_after)))
                return 0;
            int result = post(op, lane, &lane->receive[number % AHEAD], step, number);
            if (result < 0)
                return result;
        }
        lane->posted++;
    }
    return 0;
}

static int post_send(struct wf_op *op, struct lane *lane, const struct wf_step *step)
{
    struct wf_transfer *transfer = &lane->send[lane->step % WF_OPS_SENDS_MAX];
    if (lane->sent)
        return 0;
    if (step->to != WF_OPS_NOBODY && step->send_bytes > 0) {
        if (transfer->busy) /* an older one */
            return 0;
        int result = post(op, lane, transfer, step, lane->step);
        if (result < 0)
            return result;
    }
    lane->sent = true;
    return 0;
}

static void finish(const struct wf_op *op, const struct wf_step *step)
{
    const struct wf_ask *ask = &op->plan.ask;
    if (step->count == 0 || !step->result)
        return;
    if (!step->right) {
        if (step->result != step->left)
            memcpy(step->result, step->left, step->count * op->plan.width);
        return;
    }
    wf_reduce(ask->type, ask->op, step->result, step->left, step->right, step->count);
    if (step->divide && ask->op == WEFT_AVG)
        wf_reduce_divide(ask->type, step->result, step->count, ask->size);
}

/* Where requests run out, this step's come first: the other members wait for its send, and not for the next receive. */
static int post_all(struct wf_op *op, struct lane *lane, const struct wf_step *step)
{
    int result = post_receives(op, lane, 1);
    if (result == 0 && step)
        result = post_send(op, lane, step);
    if (result < 0)
        return result;
    result = post_receives(op, lane, AHEAD);
    return result == -EAGAIN ? 0 : result;
}

static int turn(struct wf_op *op, struct lane *lane, bool *moved)
{
    const struct wf_step *step = step_at(op, lane, lane->step);
    int result = post_all(op, lane, step);
    *moved = false;
    if (result < 0)
        return result;
    if (!step) {
        lane->over = lane->sending == 0;
        return 0;
    }
    if (!lane->sent || lane->posted <= lane->step || !lane->landed[lane->step % AHEAD] ||
        (step->settle && !send_ended(lane, lane->step)))
        return 0;
    finish(op, step);
    lane->known[lane->step % AHEAD] = lane->landed[lane->step % AHEAD] = lane->sent = false;
    lane->step++;
    *moved = true;
    return 0;
}

static int lane_advance(struct wf_op *op, uint32_t place)
{
    struct lane *lane = &op->lane[place];
    bool moved = true;
    while (moved && !lane->over && !op->stopped) {
        int result = turn(op, lane, &moved);
        if (result < 0)
            return result;
        if (lane->over && op->next < op->plan.lanes) {
            lane_begin(op, place);
            moved = true;
        }
    }
    return 0;
}

int wf_op_advance(struct wf_op *op)
{
    op->stuck = false;
    for (uint32_t i = 0; i < op->lanes; i++) {
        int result = lane_advance(op, i);
        if (result < 0 && result != -EAGAIN)
            return result;
    }
    return 0;
}

void wf_op_transfer_ended(struct wf_transfer *transfer, int status)
{
    struct wf_op *op = transfer->op;
    struct lane *lane = &op->lane[transfer->lane];
    transfer->busy = false;
    op->under_way--;
    lane->sending -= !transfer->receives;
    if (status < 0)
        op->stopped = true;
    else if (transfer->receives)
        lane->landed[transfer->step % AHEAD] = true;
}

/* --- what there is to know --- */

bool wf_op_stuck(const struct wf_op *op)
{
    return op->stuck;
}

bool wf_op_idle(const struct wf_op *op)
{
    return op->under_way == 0;
}

bool wf_op_done(const struct wf_op *op)
{
    for (uint32_t i = 0; i < op->lanes; i++)
        if (!op->lane[i].over)
            return false;
    return op->under_way == 0;
}

void wf_op_stop(struct wf_op *op)
{
    op->stopped = true;
    for (uint32_t i = 0; i < op->lanes; i++) {
        for (int j = 0; j < AHEAD; j++)
            if (op->lane[i].receive[j].busy)
                op->port->cancel(op->port, &op->lane[i].receive[j]);
        for (int j = 0; j < WF_OPS_SENDS_MAX; j++)
            if (op->lane[i].send[j].busy)
                op->port->cancel(op->port, &op->lane[i].send[j]);
    }
}

struct wf_port *wf_op_port(const struct wf_op *op)
{
    return op->port;
}

uint64_t wf_op_bytes(const struct wf_op *op)
{
    const struct wf_ask *ask = &op->plan.ask;
    bool all = ask->kind == WEFT_ALL_GATHER || ask->kind == WEFT_ALL_TO_ALL;
    return ask->count * op->plan.width * (all ? ask->size : 1);
}

const char *wf_op_name(const struct wf_op *op)
{
    return wf_collective_name(op->plan.ask.kind);
}

bool wf_op_is_line(const struct wf_op *op)
{
    return op->plan.ask.kind == WEFT_SHIFT || op->plan.ask.kind == WEFT_BROADCAST;
}

uint32_t wf_op_neighbour(const struct wf_op *op, uint32_t rank, bool receives)
{
    const struct wf_ask *ask = &op->plan.ask;
    uint32_t by = ask->kind == WEFT_SHIFT ? ask->by : 1, last = (ask->root + ask->size - 1) % ask->size;
    if (ask->kind == WEFT_BROADCAST && op->plan.algorithm != &wf_chain)
        return receives ? wf_tree_parent(rank, ask->root, ask->size) : WF_OPS_NOBODY;
    if (ask->kind == WEFT_BROADCAST && rank == (receives ? ask->root : last))
        return WF_OPS_NOBODY;
    return (rank + (receives ? ask->size - by : by)) % ask->size;
}

uint32_t wf_op_waits_for(const struct wf_op *op, bool receives)
{
    for (uint32_t i = 0; i < op->lanes; i++) {
        const struct wf_transfer *all = receives ? op->lane[i].receive : op->lane[i].send;
        for (int j = 0; j < (receives ? AHEAD : WF_OPS_SENDS_MAX); j++)
            if (all[j].busy)
                return all[j].rank;
    }
    return WF_OPS_NOBODY;
}
