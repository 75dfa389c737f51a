/*
 * lines.h: the channels of a session, and the pairs of rails that they run on.
 */
#ifndef WF_CORE_CHANNEL_LINES_H
#define WF_CORE_CHANNEL_LINES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/channel/channel.h"
#include "core/channel/roster.h"
#include "core/drive/worker.h"
#include "core/ground/guard.h"
#include "core/ground/terms.h"

#define WF_CHANNELS_MAX (WF_RAILS_MAX * 65) /* an express and up to 64 bulk channels for each pair of rails */

/* A pair of rails, ours and the peer's. The door fills it when the two meet; counters: relaxed, written by the halves.
 */
struct wf_session_rail {
    int local; /* index of wf_rails.each; -1: an address that is no rail */
    char name[64];
    struct sockaddr_storage from, to; /* `from` with port 0 */
    bool device_bound;
    _Atomic uint64_t sent_bytes, received_bytes, resent_bytes, stalls, failures, damaged, retransmits;
    /* session lock */
    bool retired;                  /* it has damaged too much */
    int last_code;                 /* why a channel of it was lost last; 0: none was */
    struct wf_channel *express;    /* its express channel, once joined */
    struct wf_list idle[WF_KINDS]; /* send halves that work is offered to, by kind */
    struct wf_list behind;         /* bulk channels whose acknowledgements wait behind an operation */
};

/* Owner: the session; what follows is its lock's, where nothing else is said. */
struct wf_lines {
    struct wf_guard *guard;
    const struct wf_terms *terms;
    struct wf_kicks *kicks;
    int rail_count;
    struct wf_session_rail *rails; /* room for as many as channels, WF_RAILS_MAX at most */
    struct wf_roster *rosters;     /* by worker */
    struct wf_list untold;         /* rosters that have grown since their workers were told */
    struct wf_list owing;          /* receive halves with disposals that no frame has told the peer */
    uint64_t offers[WF_KINDS];     /* pairs of rails with send halves in `idle`, as bits, by kind */
    int turn[WF_KINDS];            /* the pair that comes first in the next offer, by kind */
    uint32_t round;                /* of offers, counted: no send half declines twice in one */
    int channel_count, joined;
    int missed;                   /* acceptor: channels that were never joined, and the dialer has lost */
    int up_count;                 /* channels that are up */
    int bulk_count;               /* bulk channels: with more than one the work is spread by rate */
    struct wf_channel **channels; /* by id; entries NULL until joined, or missed by the dialer */
    uint32_t *lost_by_peer;       /* by id: the highest incarnation that the peer has told us it has lost */
    _Atomic int64_t heard_ns;     /* last byte from the peer */
    _Atomic uint64_t moved;       /* payload bytes, both directions: the progress an error text tells of */
};

/* The next channel from the place `*at` on, which moves behind it; NULL: there is none. */
static inline struct wf_channel *wf_lines_next(const struct wf_lines *lines, int *at)
{
    while (*at < lines->channel_count) {
        struct wf_channel *channel = lines->channels[(*at)++];
        if (channel)
            return channel;
    }
    return NULL;
}

/* Walks the channels that have been joined, or that the dialer has missed. */
#define WF_LINES_EACH(channel, lines)                                                                                  \
    for (int at_##channel = 0, once_##channel = 1; once_##channel; once_##channel = 0)                                 \
        for (struct wf_channel *channel = wf_lines_next(lines, &at_##channel); channel;                                \
             channel = wf_lines_next(lines, &at_##channel))

/* 0 or -ENOMEM. fini also accepts an object of zeroes, or one whose init has failed. */
int wf_lines_init(struct wf_lines *lines, struct wf_guard *guard, const struct wf_terms *terms, struct wf_kicks *kicks);
void wf_lines_fini(struct wf_lines *lines);

/* Room for `count` channels, and for the rails that they may name. 0 or -ENOMEM; then there may be another try. */
int wf_lines_expect(struct wf_lines *lines, int count);

static inline struct wf_roster *wf_lines_roster(struct wf_lines *lines, const struct wf_worker *worker)
{
    return &lines->rosters[worker->index];
}

/* Leaves a notice for the worker of the channel's send half. `self`: as for wf_worker_kick(). */
static inline void wf_channel_kick(struct wf_channel *channel, struct wf_worker *self)
{
    wf_kicks_one(channel->lines->kicks, channel->tx.worker->index, self);
}

#endif
