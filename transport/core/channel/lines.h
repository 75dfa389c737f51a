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

#define WF_CHANNELS_MAX (WF_RAILS_MAX * 65) /* of a class: an express and up to 64 bulk ones for each pair of rails */

/* Payload towards the memory of one GPU of one side: the device channels that carry it. Session lock. */
struct wf_strand {
    int up;
    struct wf_list idle; /* send halves that would take payload */
    uint64_t rails;      /* rails of this side that have a channel up, as bits */
};

/* A pair of rails, ours and the peer's. The door fills it when the two meet; counters: relaxed, written by the halves.
 */
struct wf_session_rail {
    int local; /* index of wf_rails.each; -1: an address that is no rail */
    char name[64];
    struct sockaddr_storage from, to; /* `from` with port 0 */
    bool device_bound;
    int workers; /* wf_lines_workers(), and 1 more; 0: nobody has asked yet. Session lock. */
    _Atomic uint64_t sent_bytes, received_bytes, resent_bytes, stalls, failures, damaged, retransmits;
    /* session lock */
    bool retired;                           /* it has damaged too much */
    uint16_t payload_ports[WF_DOMAINS_MAX]; /* dialer: where the acceptor takes payload for its GPUs; 0: as any other
                                             * connection, for all that is known */
    int last_code;                          /* why a channel of it was lost last; 0: none was */
    struct wf_channel *express[WF_CLASSES]; /* its express channels, once joined */
    struct wf_list idle[WF_GROUPS];         /* send halves that work is offered to, by group */
    struct wf_list behind[WF_CLASSES];      /* bulk channels whose acknowledgements wait behind an operation */
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
    uint64_t offers[WF_GROUPS];    /* pairs of rails with send halves in `idle`, as bits, by group */
    int turn[WF_GROUPS];           /* the pair that comes first in the next offer, by group */
    /* By group: the traffic classes whose frames of this kind its channels carry, as bits. Its own class, if one of
     * its channels is up; the lowest class with a channel up also carries the classes without one. */
    uint8_t carried[WF_GROUPS];
    uint8_t first[WF_GROUPS]; /* of several classes in `carried`, the one that comes first next */
    int up_of[WF_GROUPS];     /* channels that are up, by group */
    unsigned classes;         /* traffic classes in use, as bits; class 0 always */
    uint32_t strands_used;    /* strands in use, as bits */
    struct wf_strand strands[WF_STRANDS_MAX];
    struct wf_list parked;        /* payload streams whose channels have not joined yet */
    struct wf_list spent;         /* payload streams that nobody holds */
    uint32_t round;               /* of offers, counted: no send half declines twice in one */
    int per_class;                /* channels of a class; 0: not known yet */
    int room;                     /* channel numbers: per_class times the classes and strands that both sides know */
    int channel_count;            /* numbers up to the end of the highest class in use */
    int joined;                   /* channels of class 0 that have joined, or that the dialer has missed */
    int missed;                   /* acceptor: channels of class 0 that never joined, and the dialer has lost */
    int up_count;                 /* channels that are up */
    int bulk_count[WF_CLASSES];   /* bulk channels: with more than one of a class its work is spread by rate */
    uint64_t rate[WF_CLASSES];    /* bytes a second that the channels of a class may send together; 0: any */
    struct wf_channel **channels; /* by id; entries NULL until joined, or missed or planned by the dialer */
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

/* Walks the channels that have been joined, or that the dialer has missed or planned. */
#define WF_LINES_EACH(channel, lines)                                                                                  \
    for (int at_##channel = 0, once_##channel = 1; once_##channel; once_##channel = 0)                                 \
        for (struct wf_channel *channel = wf_lines_next(lines, &at_##channel); channel;                                \
             channel = wf_lines_next(lines, &at_##channel))

/* 0 or -ENOMEM. fini also accepts an object of zeroes, or one whose init has failed. */
int wf_lines_init(struct wf_lines *lines, struct wf_guard *guard, const struct wf_terms *terms, struct wf_kicks *kicks);
void wf_lines_fini(struct wf_lines *lines);

/* Room for `count` channels of each class, and for the rails that they may name. 0 or -ENOMEM; then there may be
 * another try. */
int wf_lines_expect(struct wf_lines *lines, int count);

/* The traffic class is in use from now on. Session lock. */
void wf_lines_use(struct wf_lines *lines, unsigned traffic);

/* The strand is in use from now on. Session lock. */
void wf_lines_use_strand(struct wf_lines *lines, int strand);

/* Which pair of workers drives every channel of the rail: that of the rail of this side on which the first one came. It
 * stays so where the peer dials later ones at other addresses: a worker is offered what any channel of its rails can
 * send, and two workers must not drive one send half. Session lock. */
int wf_lines_workers(struct wf_lines *lines, int rail);

/* A channel has come up (1), or is up no more (-1): which group carries what? Session lock. */
void wf_lines_count_up(struct wf_lines *lines, const struct wf_channel *channel, int by);

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
