/* The way of one operation through the engine that injects faults. */
#include <errno.h>

#include "io/fault_parts.h"

static void move_to(struct wf_fault_engine *engine, struct wf_fault_lane *lane, enum wf_fault_place place)
{
    if (lane->place == WF_FAULT_HELD && lane->user->kind == WF_OP_SEND)
        atomic_store(&lane->slot->socket->held, 0);
    wf_link_remove(&lane->link);
    lane->place = place;
    if (place == WF_FAULT_NEXT)
        wf_list_push_back(&engine->next, &lane->link);
    if (place == WF_FAULT_FINISHED)
        wf_list_push_back(&engine->finished, &lane->link);
}

static void finish_user(struct wf_fault_engine *engine, struct wf_fault_lane *lane, int64_t result)
{
    lane->user->result = result;
    lane->user->finished = true;
    move_to(engine, lane, WF_FAULT_FINISHED);
}

/* --- to the inner engine --- */

static uint64_t user_bytes(const struct wf_op *op)
{
    uint64_t bytes = 0;
    for (int i = 0; i < op->iov_count; i++)
        bytes += op->iov[i].iov_len;
    return bytes;
}

/* The front of the poster's vector, as far as the next call is to get. */
static void cut_piece(struct wf_fault_engine *engine, struct wf_fault_lane *lane)
{
    struct wf_op *user = lane->user;
    wf_vector_skip_empty(user);
    uint64_t left = user_bytes(user);
    if (!engine->set_up && left)
        left = wf_fault_next_piece(engine->fault, left);
    for (int i = 0; i < user->iov_count && i < WF_PORTION_ENTRIES && left; i++) {
        struct iovec *entry = &lane->iov[lane->op.iov_count++];
        *entry = user->iov[i];
        if (entry->iov_len > left)
            entry->iov_len = left;
        left -= entry->iov_len;
    }
}

static void submit_piece(struct wf_fault_engine *engine, struct wf_fault_lane *lane)
{
    struct wf_op *user = lane->user;
    lane->op.kind = user->kind;
    lane->op.fd = user->fd;
    lane->op.address = user->address;
    lane->op.urgent = user->urgent;
    lane->op.control = user->control;
    lane->op.binding = user->binding;
    lane->op.iov = lane->iov;
    lane->op.iov_count = 0;
    lane->op.context = lane;
    if (user->kind == WF_OP_SEND || user->kind == WF_OP_RECV)
        cut_piece(engine, lane);
    move_to(engine, lane, WF_FAULT_WITH_INNER);
    engine->inner->ops->post(engine->inner, &lane->op);
    if (user->kind == WF_OP_SEND)
        user->moved = lane->done + lane->op.moved;
}

static void hold(struct wf_fault_engine *engine, struct wf_fault_lane *lane)
{
    move_to(engine, lane, WF_FAULT_HELD);
    if (lane->user->kind == WF_OP_SEND)
        atomic_store(&lane->slot->socket->held, user_bytes(lane->user));
}

static bool is_cut(const struct wf_fault_lane *lane)
{
    return atomic_load(&lane->slot->socket->cut);
}

static int64_t cut_result(const struct wf_fault_lane *lane)
{
    return lane->user->kind == WF_OP_CONNECT ? -ENETUNREACH : -ECONNRESET;
}

static bool is_dropped(const struct wf_fault_engine *engine, const struct sockaddr_storage *address)
{
    int rail = wf_fault_rail_of(engine->fault->rails, engine->fault->rail_count, address);
    return rail >= 0 && (engine->state.dropped >> rail & 1);
}

static void cut_dropped(struct wf_fault_engine *engine, struct wf_fault_lane *lane)
{
    wf_fault_cut(engine->fault, lane->slot->socket, &engine->fault->counts.cut, "drop");
}

void wf_fault_lane_start(struct wf_fault_engine *engine, struct wf_fault_lane *lane)
{
    const struct wf_fault_socket *socket = lane->slot->socket;
    const struct wf_op *user = lane->user;
    bool connects = user->kind == WF_OP_CONNECT;
    bool dropped = wf_fault_hits(socket, engine->state.dropped);
    if (user->kind == WF_OP_ACCEPT) {
        submit_piece(engine, lane);
    } else if (is_cut(lane)) {
        finish_user(engine, lane, cut_result(lane));
    } else if (connects && (dropped || is_dropped(engine, user->address))) {
        wf_fault_note_refused(engine->fault);
        finish_user(engine, lane, -ENETUNREACH);
    } else if (dropped) {
        cut_dropped(engine, lane);
        finish_user(engine, lane, -ECONNRESET);
    } else if (wf_fault_hits(socket, engine->state.stalled)) {
        hold(engine, lane);
    } else {
        submit_piece(engine, lane);
    }
}

/* --- back from it --- */

/* It was asked for, by the poster or by us, or a piece is through: there may be more to do. */
static void go_on_after_piece(struct wf_fault_engine *engine, struct wf_fault_lane *lane)
{
    if (lane->cancelling)
        finish_user(engine, lane, -ECANCELED);
    else if (is_cut(lane))
        finish_user(engine, lane, cut_result(lane));
    else
        move_to(engine, lane, WF_FAULT_NEXT);
}

static void fail_piece(struct wf_fault_engine *engine, struct wf_fault_lane *lane, int64_t result)
{
    if (result == -ECANCELED)
        go_on_after_piece(engine, lane);
    else
        finish_user(engine, lane, is_cut(lane) ? cut_result(lane) : result);
}

static void returned_send(struct wf_fault_engine *engine, struct wf_fault_lane *lane)
{
    struct wf_op *user = lane->user;
    user->moved = lane->done;
    wf_vector_advance(user, lane->op.moved);
    lane->done = user->moved;
    if (!engine->set_up)
        wf_fault_moved(engine->fault, lane->slot->socket, lane->op.moved);
    if (lane->op.result < 0)
        fail_piece(engine, lane, lane->op.result);
    else if (user->iov_count)
        go_on_after_piece(engine, lane);
    else
        finish_user(engine, lane, (int64_t)user->moved);
}

static void returned_recv(struct wf_fault_engine *engine, struct wf_fault_lane *lane)
{
    int64_t result = lane->op.result;
    if (result <= 0) {
        fail_piece(engine, lane, result);
        return;
    }
    if (!engine->set_up) {
        wf_fault_damage(engine->fault, lane->slot->socket, lane->iov, (uint64_t)result);
        wf_fault_moved(engine->fault, lane->slot->socket, (uint64_t)result);
    }
    lane->user->moved = (uint64_t)result;
    finish_user(engine, lane, result);
}

/* A CONNECT is never taken back for a stall, for a socket connects only once. So it may have succeeded during the
 * stall; its poster hears of that after it. */
static void returned_connect(struct wf_fault_engine *engine, struct wf_fault_lane *lane)
{
    struct wf_fault_socket *socket = lane->slot->socket;
    if (lane->op.result < 0) {
        fail_piece(engine, lane, lane->op.result);
        return;
    }
    wf_fault_find_rail(engine->fault, socket);
    lane->connected = true;
    if (wf_fault_hits(socket, engine->state.dropped))
        cut_dropped(engine, lane);
    if (is_cut(lane))
        finish_user(engine, lane, -ENETUNREACH);
    else if (wf_fault_hits(socket, engine->state.stalled) && !lane->cancelling)
        hold(engine, lane);
    else
        finish_user(engine, lane, 0);
}

static void returned_accept(struct wf_fault_engine *engine, struct wf_fault_lane *lane)
{
    struct wf_fault *fault = engine->fault;
    struct sockaddr_storage local;
    int fd = (int)lane->op.result;
    if (fd < 0) {
        fail_piece(engine, lane, fd);
    } else if (engine->state.dropped && wf_around_address(fault, fd, false, &local) == 0 &&
               is_dropped(engine, &local)) {
        wf_fault_note_refused(fault);
        wf_around_kill(fault, fd);
        wf_around_close_fd(fault, fd);
        go_on_after_piece(engine, lane);
    } else {
        finish_user(engine, lane, fd);
    }
}

void wf_fault_lane_returned(struct wf_fault_engine *engine, struct wf_fault_lane *lane)
{
    move_to(engine, lane, WF_FAULT_NOWHERE);
    switch (lane->user->kind) {
    case WF_OP_ACCEPT:
        returned_accept(engine, lane);
        break;
    case WF_OP_CONNECT:
        returned_connect(engine, lane);
        break;
    case WF_OP_RECV:
        returned_recv(engine, lane);
        break;
    case WF_OP_SEND:
        returned_send(engine, lane);
        break;
    }
}

/* --- what happens to it meanwhile --- */

void wf_fault_lane_cancel(struct wf_fault_engine *engine, struct wf_fault_lane *lane)
{
    lane->cancelling = true;
    if (lane->place == WF_FAULT_WITH_INNER)
        engine->inner->ops->cancel(engine->inner, &lane->op);
    else
        finish_user(engine, lane, -ECANCELED);
}

void wf_fault_lane_end(struct wf_fault_engine *engine, struct wf_fault_lane *lane)
{
    if (lane->place == WF_FAULT_WITH_INNER)
        engine->inner->ops->cancel(engine->inner, &lane->op);
    else if (lane->place == WF_FAULT_HELD || lane->place == WF_FAULT_NEXT)
        finish_user(engine, lane, cut_result(lane));
}

void wf_fault_lane_stall(struct wf_fault_engine *engine, struct wf_fault_lane *lane)
{
    bool moves = lane->user && (lane->user->kind == WF_OP_SEND || lane->user->kind == WF_OP_RECV);
    if (moves && lane->place == WF_FAULT_WITH_INNER)
        engine->inner->ops->cancel(engine->inner, &lane->op); /* and is held once it is back */
}

void wf_fault_lane_go_on(struct wf_fault_engine *engine, struct wf_fault_lane *lane)
{
    if (lane->place != WF_FAULT_HELD)
        return;
    if (lane->connected)
        finish_user(engine, lane, 0);
    else
        move_to(engine, lane, WF_FAULT_NEXT);
}
