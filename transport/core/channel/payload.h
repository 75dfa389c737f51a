/*
 * payload.h: the payload stream of a device channel. A network card writes what comes on it to the memory of a GPU, or
 * reads what goes out on it from there; so it carries nothing but payload, one direction only, and the headers go on
 * the channel's other stream. Each header says where its payload begins in this stream.
 *
 * What has come is a list of fragments, in the order of the stream: bytes in the memory of the inlet, each with a token
 * by which it is given back to the card, and bytes that the card has left in host memory. A copy on the GPU brings them
 * to their places.
 *
 * Invariant: the stream stays open until every fragment that it brought is given back, or no copy reads it any more: a
 * closed stream gives all its fragments back, and the card would overwrite them.
 */
#ifndef WF_CORE_CHANNEL_PAYLOAD_H
#define WF_CORE_CHANNEL_PAYLOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/list.h"
#include "core/cards/cards.h"
#include "core/channel/channel.h"
#include "devmem/intake.h"
#include "io/engine.h"

#define WF_LANDING_PIECES 256   /* of each kind */
#define WF_CONTROL_FRAGMENTS 64 /* that one receive tells of at most */
#define WF_PAYLOAD_POOL_PART                                                                                           \
    4 /* what is not on its way to its place takes at most one part in so many of the inlet                            \
       */

/* Pieces of a message that have come and that copies bring to their places: those in the memory of the inlet, and those
 * in host memory. `to` is where in the message, plus 1. Owner: the receive half, then the copies. */
struct wf_landing {
    struct wf_link link;        /* wf_payload.under_way, or wf_payload.spare */
    struct wf_payload *payload; /* held */
    uint32_t copies;            /* that read it; session lock. 0: none does any more */
    uint64_t device_bytes, host_bytes;
    uint8_t *host; /* a copy of the bytes in host memory; NULL: there are none */
    struct wf_devmem_batch batch;
    struct wf_devmem_gather gathers[WF_LANDING_PIECES];
    struct wf_devmem_copy hosts[WF_LANDING_PIECES];
};

/* The pattern that a payload stream begins with, where both sides know it. What comes of it is read back from the
 * inlet's memory and compared, before anything else is taken from the stream. */
struct wf_payload_trial {
    uint8_t *pattern;      /* NULL: there is none, or it is over */
    uint8_t *back;         /* incoming: what was read back, in the order of the stream */
    uint32_t device_bytes; /* that came as fragments */
    bool came;             /* all of it has */
    int result;            /* of reading it back */
};

/* Owner: session lock, but for what a half's token owns. */
struct wf_payload {
    struct wf_link link; /* wf_lines.parked or wf_lines.spent */
    struct wf_lines *lines;
    struct wf_cards *cards;
    uint32_t channel, incarnation; /* that it was joined for */
    int fd;
    bool incoming, started; /* attached to the engine of the half's worker */
    uint32_t holds;         /* of the channel, or `parked`, and of landings */
    uint64_t position;      /* bytes that have come, or that were given to batches; token of the half */
    struct wf_payload_trial trial;
    /* incoming */
    struct wf_inlet *inlet;
    void *rule;
    struct wf_devmem_intake *intake; /* session lock */
    struct wf_control control;
    uint8_t control_room[WF_DEVMEM_CONTROL_BYTES(WF_CONTROL_FRAGMENTS)];
    uint8_t *scratch;                /* a chunk: for bytes that the card leaves in host memory */
    uint32_t loose, loose_in_device; /* pieces that have come and are in no landing yet */
    uint64_t host_bytes;             /* of landings under way */
    struct wf_list under_way;        /* landings, in the order of their batches */
    struct wf_list spare;
    /* outgoing */
    struct wf_op op;
    struct wf_task task;
    struct wf_channel *joined; /* whose batch goes out */
    uint32_t binding;          /* of the batch, */
    int lender;                /* and the GPU whose memory that is; with a binding only */
    int iov_count;
    struct iovec iov[WF_TX_SEGMENTS];
};

/* `fd` is the payload's from now on. `inlet`: that the stream is led to by `rule`; NULL: payload goes out. NULL: no
 * memory, and nothing is taken over. No lock. */
struct wf_payload *wf_payload_create(struct wf_lines *lines, struct wf_cards *cards, const struct wf_join *join, int fd,
                                     struct wf_inlet *inlet, void *rule);
/* Its descriptor is known to the engine of the half's worker. Token held. */
static inline void wf_payload_started(struct wf_payload *payload)
{
    payload->started = true;
}

/* Keeps it until its channel joins; one of an older incarnation is dropped. Session lock. */
void wf_payload_park(struct wf_payload *payload);
bool wf_payload_is_parked(const struct wf_lines *lines, uint32_t channel, uint32_t incarnation);
/* The parked one of this incarnation, which leaves with its hold; NULL: there is none. Session lock. */
struct wf_payload *wf_payload_unpark(struct wf_lines *lines, uint32_t channel, uint32_t incarnation);
/* The attempt to join its channel is over: drops the one of this incarnation, if it is still parked. Session lock. */
void wf_payload_unclaimed(struct wf_lines *lines, uint32_t channel, uint32_t incarnation);
/* One hold less. The door closes what nobody holds. Session lock. */
void wf_payload_release(struct wf_payload *payload);
/* Takes what nobody holds, and what is parked though its session ends or its inlet was left: moves it to `spent`, apart
 * from its session. The door's thread, or the last one; no session lock. */
void wf_payloads_take_spent(struct wf_lines *lines, struct wf_list *spent);
/* Closes them. Waits for the drivers of cards, so no lock is held. */
void wf_payloads_close(struct wf_list *spent);

/* Is the pattern still to be sent, or to be found right? */
static inline bool wf_payload_is_on_trial(const struct wf_payload *payload)
{
    return payload && payload->trial.pattern && (payload->incoming || payload->position == 0);
}

/* --- the receive half; token and session lock held --- */

/* TRIAL has come: the pattern comes next. 0; -EPROTO: not on this channel, or not now. */
int wf_payload_await_pattern(struct wf_channel *channel);
/* It has come as it was sent. */
void wf_payload_passed(struct wf_payload *payload);

/* A frame whose payload comes next. 0; -EBADMSG: the peer says that it begins where the stream is not. */
int wf_payload_expect(struct wf_payload *payload, uint64_t position, const struct wf_frame *frame);
/* Fills the operation that takes the payload of the frame in progress. */
void wf_payload_prepare(struct wf_channel *channel);
/* Takes in what the operation has brought. 0; -EBADMSG: what the kernel says of it makes no sense; -EOPNOTSUPP: the
 * inlet is left, for most payload does not come there. */
int wf_payload_take(struct wf_channel *channel, uint64_t bytes);
/* Is so much in no landing yet that it has to be copied before more comes? */
bool wf_payload_is_full(const struct wf_payload *payload);
/* What has come and is in no landing yet, as far as one landing holds it; NULL: nothing has, or -ENOMEM in `result`. */
struct wf_landing *wf_payload_land(struct wf_payload *payload, int *result);
/* Has so much come in host memory that more has to wait for copies? They end by themselves. Fragments of the inlet wait
 * for nothing: what one stream holds of it the others lack. */
bool wf_payload_is_behind(const struct wf_payload *payload);
/* Nobody wants what has come and is in no landing yet. */
void wf_payload_forget(struct wf_payload *payload);

/* One of the landing's copies has ended: with the last one its fragments go back to the card. No lock held. */
void wf_landing_copied(struct wf_landing *landing);
/* The same with the session's lock held, of a landing that nothing reads. */
void wf_landing_drop(struct wf_landing *landing);

#endif
