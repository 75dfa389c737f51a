#include "core/message/detach.h"

#include "core/channel/lines.h"
#include "core/channel/payload.h"
#include "core/device/device.h"
#include "core/device/registration.h"
#include "core/ground/reached.h"
#include "core/message/connection.h"
#include "core/message/desk.h"
#include "core/message/outbound_parts.h"
#include "core/message/ready.h"
#include "core/message/stage.h"
#include "core/request/pieces.h"
#include "core/request/request.h"

#define LOOKED_AT 16 /* messages of a strand that one look for a chunk passes */

/* Its registration, if that is known to a card. */
static const struct weft_registration *lender(const struct wf_outbound *outbound)
{
    const struct weft_request *request = outbound->request;
    return request && request->registration && request->registration->lent != 0 ? request->registration : NULL;
}

/* How the card of the channel's rail knows its memory, or NULL. */
const struct wf_card_loan *wf_detached_loan(const struct wf_channel *channel, const struct wf_outbound *outbound)
{
    const struct weft_registration *registration = outbound->lent ? lender(outbound) : NULL;
    int local = channel->lines->rails[channel->rail].local;
    if (!registration || local < 0 || !registration->loans[local].handle)
        return NULL;
    return &registration->loans[local];
}

/* Does the card of a rail with a channel of the strand know its memory? Then it needs no slots. */
static bool is_lendable(const struct wf_outbound *outbound, const struct wf_strand *strand)
{
    const struct weft_registration *registration = lender(outbound);
    return outbound->device && registration && (registration->lent & strand->rails) != 0;
}

void wf_detach(struct wf_outbound *outbound, uint64_t domain)
{
    struct wf_desk *desk = outbound->connection->desk;
    if (domain >= WF_DOMAINS_MAX || outbound->detached || outbound->kind != WF_OUTBOUND_MESSAGE ||
        outbound->connection->traffic != 0 || outbound->stopped || outbound->next == outbound->total ||
        wf_outbound_is_small(outbound))
        return;
    const struct wf_strand *strand = &desk->lines->strands[wf_strand_of((uint32_t)domain, desk->terms->dialer)];
    if (strand->up == 0)
        return;
    WF_REACHED("session UP: a GRANT names a domain with a channel up");
    wf_link_remove(&outbound->queue_link);
    wf_outbound_wait(outbound, -(int64_t)(outbound->sendable - outbound->next));
    outbound->detached = (uint32_t)domain + 1;
    outbound->lent = is_lendable(outbound, strand);
    if (outbound->lent)
        wf_stage_out_withdraw(outbound);
    wf_outbound_allow(outbound, outbound->total);
    wf_connection_ready(outbound->connection); /* it may have been the last one there */
}

/* --- chunks --- */

bool wf_detached_offer(struct wf_outbound *outbound)
{
    struct wf_desk *desk = outbound->connection->desk;
    const struct weft_registration *registration = outbound->lent ? lender(outbound) : NULL;
    return wf_lines_offer_strand(desk->lines, (int)wf_strand_of(outbound->detached - 1, desk->terms->dialer),
                                 registration ? registration->lent : UINT64_MAX);
}

void wf_detached_pass_on(struct wf_desk *desk, const struct wf_channel *channel)
{
    int looked = 0;
    WF_LIST_EACH (link, following, &desk->detached[wf_strand_domain((uint32_t)channel->strand)]) {
        if (wf_detached_offer(WF_CONTAINER(link, struct wf_outbound, queue_link)) || ++looked == LOOKED_AT)
            return;
    }
}

bool wf_detached_any(const struct wf_desk *desk, const struct wf_channel *channel)
{
    return !wf_list_empty(&desk->detached[wf_strand_domain((uint32_t)channel->strand)]);
}

/* Bytes from the start that this channel may take. */
static uint64_t ready_for(const struct wf_channel *channel, const struct wf_outbound *outbound)
{
    return outbound->lent && !wf_detached_loan(channel, outbound) ? 0 : wf_outbound_ready(outbound);
}

/* As much of the chunk as there are places left for in the channel's operation; and in that of another channel, on
 * which it is sent again (wf_ready_fitting()). */
static uint64_t fitting(const struct wf_channel *channel, const struct wf_outbound *outbound, uint64_t length)
{
    int room = WF_TX_SEGMENTS - channel->payload->iov_count, most = WF_TX_SEGMENTS - WF_TX_SEGMENTS_LEFT;
    int max = room < most ? room : most;
    if (wf_outbound_is_scattered(outbound) && (!outbound->device || outbound->lent))
        return wf_pieces_fit(outbound->pieces, outbound->next, length, max);
    if (room < WF_TX_SEGMENTS_LEFT)
        return 0;
    return outbound->device && !outbound->lent ? wf_stage_out_fit(outbound, outbound->next, length, max) : length;
}

/* One operation reads from the memory of one binding. */
static bool suits_batch(const struct wf_channel *channel, const struct wf_outbound *outbound)
{
    const struct wf_payload *payload = channel->payload;
    const struct wf_card_loan *loan = wf_detached_loan(channel, outbound);
    return payload->iov_count == 0 || payload->binding == (loan ? loan->binding : 0);
}

static struct wf_outbound *take(struct wf_list *line, struct wf_outbound *outbound, uint64_t length,
                                struct wf_frame *frame)
{
    wf_ready_take(outbound, length, frame);
    wf_link_remove(&outbound->queue_link); /* the others have their turn */
    wf_list_push_back(line, &outbound->queue_link);
    if (!outbound->lent)
        wf_stage_out_more(outbound);
    wf_outbound_requeue(outbound);
    return outbound;
}

struct wf_outbound *wf_detached_next(struct wf_desk *desk, struct wf_channel *channel, struct wf_frame *frame)
{
    struct wf_list *line = &desk->detached[wf_strand_domain((uint32_t)channel->strand)];
    int looked = 0;
    WF_LIST_EACH (link, following, line) {
        struct wf_outbound *outbound = WF_CONTAINER(link, struct wf_outbound, queue_link);
        uint64_t ready = ready_for(channel, outbound), length = ready > outbound->next ? ready - outbound->next : 0;
        if (length > desk->terms->chunk)
            length = desk->terms->chunk;
        length = suits_batch(channel, outbound) ? fitting(channel, outbound, length) : 0;
        if (length > 0)
            return wf_channel_open(channel, length) ? take(line, outbound, length, frame) : NULL;
        if (++looked == LOOKED_AT)
            break;
    }
    return NULL;
}

int wf_detached_places(const struct wf_channel *channel, const struct wf_outbound *outbound, uint64_t offset,
                       uint64_t length, struct iovec *iov, int max, uint64_t *covered)
{
    const struct wf_card_loan *loan = wf_detached_loan(channel, outbound);
    if (!loan)
        return wf_outbound_places(outbound, offset, length, iov, max, covered);
    int count = 1;
    if (wf_outbound_is_scattered(outbound)) {
        count = wf_pieces_places(outbound->pieces, offset, length, iov, max, covered);
    } else {
        iov[0] = (struct iovec){(void *)(uintptr_t)(outbound->data + offset), length};
        *covered = length;
    }
    const uint8_t *base = lender(outbound)->base;
    for (int i = 0; i < count; i++)
        iov[i].iov_base = (void *)(uintptr_t)(loan->offset + (uint64_t)((uint8_t *)iov[i].iov_base - base));
    return count;
}

/* --- back to the others --- */

/* Its bytes are staged from now on. */
static void end_loan(struct wf_outbound *outbound)
{
    outbound->lent = false;
    if (outbound->claimed < outbound->next)
        outbound->claimed = outbound->next;
    if (outbound->staged < outbound->next)
        outbound->staged = outbound->next;
    wf_stage_out_more(outbound);
}

static void attach(struct wf_outbound *outbound)
{
    uint64_t granted = outbound->granted > outbound->next ? outbound->granted : outbound->next;
    wf_link_remove(&outbound->queue_link);
    outbound->detached = 0;
    outbound->sendable = granted;
    if (!outbound->stopped)
        wf_outbound_wait(outbound, (int64_t)(granted - outbound->next));
    if (outbound->lent)
        end_loan(outbound);
    wf_outbound_requeue(outbound);
}

bool wf_detached_revise(struct wf_outbound *outbound)
{
    const struct wf_desk *desk = outbound->connection->desk;
    const struct wf_strand *strand = &desk->lines->strands[wf_strand_of(outbound->detached - 1, desk->terms->dialer)];
    if (strand->up == 0) {
        attach(outbound);
        return true;
    }
    if (outbound->lent && !is_lendable(outbound, strand))
        end_loan(outbound);
    return false;
}

void wf_detached_review(struct wf_desk *desk, int strand)
{
    if (wf_strand_to_acceptor((uint32_t)strand) != desk->terms->dialer)
        return; /* towards this side */
    struct wf_list *line = &desk->detached[wf_strand_domain((uint32_t)strand)];
    WF_LIST_EACH (link, following, line) {
        (void)wf_detached_revise(WF_CONTAINER(link, struct wf_outbound, queue_link));
    }
}

bool wf_detached_is_staged(struct wf_outbound *outbound, uint64_t offset, uint32_t length)
{
    return !outbound->device || wf_stage_out_again(outbound, offset, length);
}
