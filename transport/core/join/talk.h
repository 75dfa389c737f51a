/*
 * talk.h: one set-up conversation on one socket, on either side: HELLO - GREETING, or JOIN - CHALLENGE - PROOF. It
 * reads exactly the bytes of the message it waits for, so that the frames that follow are left to the channel. All in
 * the door's thread.
 *
 * If the context has a key, HELLO and GREETING are inside TLS (wire/handshake.h) on both sides: without the key no peer
 * gets in.
 */
#ifndef WF_CORE_JOIN_TALK_H
#define WF_CORE_JOIN_TALK_H

#include <stdbool.h>
#include <sys/uio.h>

#include "base/list.h"
#include "core/join/door.h"

enum wf_talk_role {
    WF_TALK_VISITOR, /* accepted: the peer says HELLO or JOIN first */
    WF_TALK_CONTROL, /* dialled: HELLO, then GREETING */
    WF_TALK_CHANNEL, /* dialled: JOIN, of a channel that a dial needs */
    WF_TALK_REDIAL,  /* dialled: JOIN, of a channel that was lost */
};

enum wf_talk_state {
    WF_TALK_CONNECTING, /* the kernel connects */
    WF_TALK_SENDING,    /* a message goes out; then READING, a channel takes the socket, or the end */
    WF_TALK_READING,    /* the prefix, then the body of a message */
    WF_TALK_MUTE,       /* at a port for payload: nothing is said or read; JOIN on another connection claims it */
    WF_TALK_WAITING,    /* proved; an older incarnation of the channel must let go first */
    WF_TALK_OVER,       /* to be destroyed once the operation under way has come back */
};

struct wf_talk_tls;

struct wf_talk {
    struct wf_link link;      /* door.talks */
    struct wf_link dial_link; /* wf_dial.talks */
    struct wf_link wait_link; /* door.talks_wait */
    struct wf_visit visit;    /* door.talk_times */
    struct wf_door *door;
    enum wf_talk_role role;
    enum wf_talk_state state;
    bool answered;      /* SENDING: no message is expected after the one that goes out */
    bool foreign;       /* READING: a TLS record, but this side has no key: it is read to its end, then DENY follows */
    bool denied;        /* DENY was logged */
    bool proved_member; /* VISITOR: the peer holds the key, or knows a session: others are dropped before it */
    bool heard;         /* bytes of the peer have come */
    bool mute;    /* REDIAL: of a payload stream, at the port for it: nothing is said, the channel's JOIN names it */
    bool sent_on; /* REDIAL: another port was named, which is called next */
    bool handed_over; /* the descriptor belongs to a channel now */
    bool parked;      /* it is a payload stream, which waits for its channel */
    int fd;
    struct sockaddr_storage peer;
    char peer_text[80];
    int64_t begun_ns, deadline_ns;
    int to_rail, to_device;     /* MUTE: the inlet of this side that it is for */
    struct wf_dial *dial;       /* CONTROL, CHANNEL */
    struct wf_session *session; /* CHANNEL, REDIAL; VISITOR after JOIN */
    uint64_t greets;            /* VISITOR, CONTROL after HELLO: the session whose GREETING is to come; 0: none */
    struct wf_join join;        /* as sent or received */
    struct wf_challenge challenge;
    uint64_t granted_frames, granted_bytes; /* the peer's credit for the channel */
    struct wf_talk_tls *tls;                /* TLS around the messages; NULL: none, or none yet */
    struct wf_op op;
    struct iovec iov;
    uint8_t bytes[WF_SETUP_MAX];
    uint32_t have, need; /* READING: bytes that have come, bytes of the part that is read */
};

/* Is there room for a visitor, or a stranger who has had time enough and can be shown out? If not, callers wait in the
 * kernel's queue: when hundreds of peers come at once, none is shown out for another. */
bool wf_talk_has_room(struct wf_door *door, int64_t now_ns);

/* Takes over an accepted descriptor, and reads its first message. */
void wf_talk_visit(struct wf_door *door, int fd);

/* The same of one that is accepted at the port for this rail's inlet of a GPU: it waits to be claimed. What the peer
 * sends goes to the GPU, maybe, from its first byte on: so it must not be read. */
void wf_talk_visit_mute(struct wf_door *door, int fd, int rail, int device);

/* Starts the control conversation of a dial. After a failure to connect the dial tries again. */
void wf_talk_control(struct wf_dial *dial, struct wf_door *door);

/* Dials the next channels of a session that HELLO has opened, as many as may be under way. */
void wf_dial_channels(struct wf_dial *dial, struct wf_door *door);

/* The dial has succeeded: reports the rails that have failed and have no channel up. No lock. */
void wf_dial_tell_missed(const struct wf_dial *dial);

/* Dials a lost channel again; the result goes to wf_redial_failed() and wf_redial_over(). */
void wf_talk_redial(struct wf_door *door, struct wf_session *session, const struct wf_join *join);

/* The talk's operation has ended. */
void wf_talk_step(struct wf_talk *talk);

/* Fails conversations whose deadline has passed, tries to hand over the sockets in WAITING, and destroys conversations
 * that are over. Returns the time of the next call. */
int64_t wf_talks_tick(struct wf_door *door, int64_t now_ns);
/* Fails the conversations of the dial that were begun at `begun_ns` or before and have had no answer: channels, and a
 * first one whose connection was taken. */
void wf_talks_time_out(const struct wf_dial *dial, int64_t begun_ns);

/* Ends every conversation about a session that is to be freed. */
void wf_talks_forget(struct wf_door *door, const struct wf_session *session);

/* Fails the redials from a rail that is down: they would only wait. */
void wf_talks_rail_down(struct wf_door *door, int rail);

/* Ends every conversation of a dial; ends all. */
void wf_talks_end(struct wf_dial *dial);
void wf_talks_end_all(struct wf_door *door);

#endif
