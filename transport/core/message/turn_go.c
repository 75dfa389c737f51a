#include "core/message/turn_go.h"

#include "core/device/transit.h"
#include "core/message/connection.h"
#include "core/message/inbound.h"
#include "core/message/match.h"
#include "core/message/outbound.h"
#include "core/message/ready.h"
#include "core/message/served.h"
#include "core/message/stage.h"
#include "core/request/request.h"

/* The operation's memory may be touched from now on. */
static void go(struct weft_request *request)
{
    struct wf_outbound *outbound = request->outbound;
    switch (request->kind) {
    case WF_REQUEST_RECV:
        if (request->inbound && request->inbound->parked)
            wf_match_unpark(request->inbound);
        break;
    case WF_REQUEST_SEND:
        if (!outbound)
            break;
        outbound->waits = false;
        wf_stage_out_more(outbound);
        wf_outbound_requeue(outbound); /* it may need no staging */
        wf_connection_ready(outbound->connection);
        break;
    default: /* a write or a read: it has not begun yet */
        if (outbound && !outbound->refused)
            wf_asking_begin(outbound);
    }
}

void wf_turn_go(struct wf_turn *turn, const struct wf_transit *transit)
{
    struct weft_request *request = turn->request;
    struct wf_desk *desk = request->connection->desk;
    if (transit->result < 0) {
        wf_request_note_mishap(request, transit);
        wf_request_cancel(request, transit->result);
    } else {
        go(request);
    }
    wf_match_notes(desk);
}
