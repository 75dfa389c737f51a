/*
 * ready.h: which outgoing operations of a connection, and which of their bytes, may go now: depends on numbers, credit,
 * slots and lines.
 *
 * All with the session's lock held.
 */
#ifndef WF_CORE_MESSAGE_READY_H
#define WF_CORE_MESSAGE_READY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/message/outbound.h"
#include "wire/frame.h"

struct weft_connection;
struct wf_channel;
struct wf_desk;

/* Puts the connection on, or takes it off, the session's ready rings. */
void wf_connection_ready(struct weft_connection *connection);

/* The same for the connection of a message that has been queued. */
void wf_ready_queued(struct wf_outbound *outbound);

/* Bytes that may go before the peer has matched the message. A write needs no match. */
uint64_t wf_ready_burst(const struct wf_outbound *outbound);

/* All bytes of the message, if it may go whole and unasked while credit lasts, else 0. */
uint64_t wf_ready_unasked(const struct wf_outbound *outbound);

/* Goes the head of the line before `first`, which is being sent? What goes whole in a chunk does not wait behind what
 * does not. */
bool wf_ready_goes_before(const struct wf_outbound *head, const struct wf_outbound *first);

/* The message that a bulk channel may introduce: the head of the line, or a large write, which is in no line; of both
 * the one that was posted first. NULL: none. */
struct wf_outbound *wf_ready_candidate(const struct weft_connection *connection);
/* A large message at the head of the line whose first bytes may go unsolicited, or NULL. */
struct wf_outbound *wf_ready_head(const struct weft_connection *connection);
/* Larger than small, but may it go whole on an express channel, if the peer's limits allow it? Callers drive these
 * channels where the rails have workers of their own: nobody has to be woken for it. */
bool wf_ready_is_brief(const struct wf_outbound *outbound);
/* May the whole message go now, in one frame of an express channel? */
bool wf_ready_whole(const struct wf_outbound *outbound);

/* Hands [next, next + length) to a channel. */
struct wf_outbound *wf_ready_take(struct wf_outbound *outbound, uint64_t length, struct wf_frame *frame);
/* The burst goes now: spends its credit. Behind other bytes, the message will need an announcement if an express
 * channel takes one of the same connection before the peer has acknowledged anything of it. */
void wf_ready_spend(struct wf_outbound *outbound, uint64_t burst);
/* Introduces the head of the line: with all its payload, which wf_ready_whole() allows, or by a frame without. */
void wf_ready_go_whole(struct wf_outbound *outbound, struct wf_frame *frame);
void wf_ready_bare(struct wf_outbound *outbound, struct wf_frame *frame);

/* Announces the first of the messages that stand behind other bytes. False: there is none. */
bool wf_ready_announce(struct weft_connection *connection, struct wf_frame *frame);

/* Takes the whole of a small or brief message that is in no queue and gets no `order`: no other message of its
 * connection waits, and the peer's limits allow it. False: it must be queued; nothing has changed. */
bool wf_ready_pull_fresh(struct wf_outbound *outbound, struct wf_frame *frame);

/* As much of [offset, offset + length) as the entries left in the channel's operation can refer to. */
uint64_t wf_ready_fitting(const struct wf_channel *channel, const struct wf_outbound *outbound, uint64_t offset,
                          uint64_t length);

/* More unsolicited credit has come: messages that would have been offered may go to the bulk channels now. */
void wf_ready_credit_came(struct wf_desk *desk);

/* Takes it out of its line and gives it its number, and its notification the next one. Its frames go from now on. */
void wf_outbound_introduce(struct wf_outbound *outbound);

/* Puts it into connection.sending if it can send, else takes it out. */
void wf_outbound_requeue(struct wf_outbound *outbound);

static inline struct wf_outbound *wf_outbound_first_of(const struct wf_list *list)
{
    struct wf_link *link = wf_list_first(list);
    return link ? WF_CONTAINER(link, struct wf_outbound, queue_link) : NULL;
}

#endif
