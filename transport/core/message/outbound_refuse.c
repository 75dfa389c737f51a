/* How an outgoing operation ends early: by its user, by a failure here, or because the receiver refused it. */
#include "core/message/inbound.h"
#include "core/message/outbound_parts.h"
#include "core/message/stage.h"

void wf_outbound_stop(struct wf_outbound *outbound)
{
    if (outbound->stopped)
        return;
    wf_outbound_wait(outbound, -(int64_t)(outbound->sendable - outbound->next));
    outbound->stopped = true;
    wf_link_remove(&outbound->behind_link); /* REFUSE will tell */
    wf_outbound_requeue(outbound);
}

/* Is it too late to refuse? All is acknowledged: the message only waits until the kernel lets go of its memory. */
static bool has_landed(const struct wf_outbound *outbound)
{
    if (outbound->kind == WF_OUTBOUND_READ)
        return false;
    if (outbound->confirms)
        return outbound->confirmed;
    if (outbound->kind == WF_OUTBOUND_REPLY) /* all of it is under way: the peer gets it, also after a REFUSE */
        return outbound->next == outbound->total;
    return outbound->introduced && outbound->next == outbound->total && outbound->unacknowledged == 0;
}

void wf_outbound_refuse_unheard(struct wf_outbound *outbound, int status)
{
    struct wf_outbound *note = outbound->note, *list = outbound->list;
    wf_outbound_leave_line(outbound);
    wf_stage_out_withdraw(outbound);
    if (outbound->in_engine > 0) { /* copies to slots are under way: the message ends after them */
        outbound->doomed = status;
        wf_connection_ready(outbound->connection); /* it may have been the only one to send */
        return;
    }
    outbound->note = outbound->list = NULL;
    wf_outbound_complete(outbound, status);
    if (outbound->counterpart)
        wf_inbound_forget(outbound->counterpart);
    outbound->counterpart = NULL;
    if (note) {
        wf_outbound_complete(note, status);
        wf_outbound_drop(note);
    }
    if (list) {
        outbound->listed = has_landed(list);
        outbound->key = list->number;
        list->waiter = NULL;
        wf_outbound_refuse(list, status);
    }
    outbound->refused = outbound->stopped = true;
    outbound->status = status;
    if (outbound->listed || outbound->number != 0) {
        wf_outbound_join_line(outbound, outbound->number != 0); /* a message with a number goes first */
        wf_connection_ready(outbound->connection);
    } else {
        wf_outbound_destroy(outbound);
    }
}

void wf_outbound_refuse(struct wf_outbound *outbound, int status)
{
    struct wf_desk *desk = outbound->connection->desk;
    if (outbound->refused || outbound->doomed || has_landed(outbound))
        return;
    if (!outbound->introduced) {
        wf_outbound_refuse_unheard(outbound, status);
        return;
    }
    wf_outbound_stop(outbound);
    if (outbound->note) { /* the notification is refused first; its end calls this again with `deferred` */
        outbound->deferred = status;
        wf_outbound_refuse(outbound->note, status);
        return;
    }
    outbound->refused = true;
    outbound->status = status;
    if (outbound->kind == WF_OUTBOUND_READ) {
        wf_inbound_refuse(outbound->counterpart, status);
        wf_inbound_check(outbound->counterpart);
        return;
    }
    outbound->refuse_due = true;
    wf_list_push_back(&desk->todo_outbounds[outbound->connection->traffic], &outbound->todo_link);
    wf_outbound_check(outbound);
}

void wf_outbound_refused_by_peer(struct wf_outbound *outbound, int status)
{
    outbound->refuse_seen = true;
    if (outbound->kind == WF_OUTBOUND_READ && outbound->counterpart)
        outbound->counterpart->refuse_seen = true;
    if (!outbound->refused)
        wf_outbound_refuse(outbound, status);
    else if (outbound->kind == WF_OUTBOUND_READ && outbound->counterpart)
        wf_inbound_check(outbound->counterpart);
    else
        wf_outbound_check(outbound);
}

void wf_outbound_refuse_frame(struct wf_outbound *outbound, struct wf_frame *frame)
{
    *frame = (struct wf_frame){.type = WF_REFUSE,
                               .flags = outbound->kind == WF_OUTBOUND_REPLY ? WF_FLAG_PEER : 0,
                               .data_off = WF_FRAME_BYTES,
                               .conn = outbound->connection->number,
                               .msg = outbound->number,
                               .offset = outbound->charge,
                               .key = (uint64_t)(int64_t)outbound->status,
                               .base = outbound->listed ? outbound->key : 0};
    outbound->refuse_due = false;
    outbound->refuse_sent = true;
    wf_outbound_check(outbound);
}

/* If the operation has ended already, its notification is left to be refused. */
static void cancel(struct weft_request *request, int status)
{
    wf_outbound_refuse(request->outbound ? request->outbound : request->note, status);
}

const struct wf_request_ops wf_outgoing_ops = {.cancel = cancel};
