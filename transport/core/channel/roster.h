/*
 * roster.h: which halves of a session's channels have something to do, so that nobody has to look at all of them.
 *
 * Due: something has happened that this half alone can answer, and its worker must look at it. Offered: a send half
 * that has nothing under way and whose window is open; what any channel may send is offered to such halves, a few at a
 * time. A half is entered where its state changes, by the calls in state.h. All with the session's lock held, where
 * nothing else is said.
 */
#ifndef WF_CORE_CHANNEL_ROSTER_H
#define WF_CORE_CHANNEL_ROSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "wire/hello.h"

struct wf_channel;
struct wf_lines;
struct wf_worker;

#define WF_KINDS (WF_CHANNEL_DEVICE + 1)     /* size of arrays by kind; no kind is 0 */
#define WF_GROUP_DEVICE (2 * WF_CLASSES + 1) /* of device channels, which carry no class's other frames */
#define WF_GROUPS (WF_GROUP_DEVICE + 1)      /* size of arrays by group; no group is 0 */
#define WF_OFFERS_AT_ONCE 8 /* workers that are told, or halves that decline, before no more are asked */

/* A group: the channels of one kind and one traffic class. What one of them may send, any of them may; of device
 * channels any of the same strand. */
static inline int wf_group(unsigned traffic, enum wf_channel_kind kind)
{
    return (int)(2 * traffic + kind);
}

static inline unsigned wf_group_class(int group)
{
    return (unsigned)(group - 1) / 2;
}

static inline enum wf_channel_kind wf_group_kind(int group)
{
    return group % 2 == 0 ? WF_CHANNEL_BULK : WF_CHANNEL_EXPRESS;
}

/* What one worker has to look at. Owner: session lock, but for `ended`. */
struct wf_roster {
    struct wf_list due[WF_KINDS]; /* send halves, by kind */
    struct wf_list receivers;     /* receive halves */
    struct wf_list held;          /* receive halves that wait for a place or a slot: every look may help them */
    struct wf_list ended;         /* send halves whose operation has ended; token of the worker */
    uint64_t pairs[WF_KINDS];     /* pairs of rails whose channels of a kind this worker sends on, as bits */
    struct wf_link untold_link;   /* in wf_lines.untold: it has grown since its worker was told */
    int worker;
};

void wf_roster_init(struct wf_roster *roster, int worker);

/* The worker of the send half, or of the receive half, must look at it. A half that has let go is not entered. */
void wf_channel_tx_due(struct wf_channel *channel);
void wf_channel_rx_due(struct wf_channel *channel);

/* Enters the send half among those that are offered work, or takes it out: after `up`, `idle`, `state_due` or the
 * window have changed. */
void wf_channel_review(struct wf_channel *channel);

/* The strand has something to send: an idle send half of these rails of this side looks. False: none is idle. */
bool wf_lines_offer_strand(struct wf_lines *lines, int strand, uint64_t rails);

/* The half has let go: it is on no list any more. */
void wf_channel_strike(struct wf_channel *channel, bool tx, bool rx);

/* Its worker has looked: it need not be told, unless a half is due again. */
void wf_roster_seen(struct wf_roster *roster);

/* Tells the workers whose rosters have grown. `self`: as for wf_worker_kick(). */
void wf_lines_tell(struct wf_lines *lines, struct wf_worker *self);

/* There is work for any channel of the group of these pairs of rails: the workers of some send halves that would be
 * offered it, others each time. Several, because the first may decline. Returns how many. */
int wf_lines_choose(struct wf_lines *lines, int group, uint64_t pairs, int workers[WF_OFFERS_AT_ONCE]);
/* Tells these. `self`: as for wf_worker_kick(). */
void wf_lines_offer(struct wf_lines *lines, int group, uint64_t pairs, struct wf_worker *self);

/* The first send half of these pairs of rails that would be offered work, the same one each time while it is idle: a
 * caller that waits for each message keeps one channel, its worker and the peer's cache warm, where turns would cool
 * them all. NULL: none. */
struct wf_channel *wf_lines_first_idle(const struct wf_lines *lines, int group, uint64_t pairs);

/* The next send half to offer work to, among the pairs of rails in `pairs`, and at other pairs each time; NULL: none.
 * It goes to the end of its pair's list. */
struct wf_channel *wf_lines_next_offer(struct wf_lines *lines, int group, uint64_t pairs);

#endif
