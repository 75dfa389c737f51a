/*
 * talk.h: one set-up conversation on one socket, on either side: HELLO, or JOIN - CHALLENGE - PROOF. It reads exactly
 * the bytes of the message it waits for, so that the frames that follow are left to the channel. All in the door's
 * thread.
 *
 * If the context has a key, HELLO is inside TLS (wire/handshake.h) on both sides: without the key no peer gets in.
 */
#ifndef WF_CORE_JOIN_TALK_H
#define WF_CORE_JOIN_TALK_H

#include <stdbool.h>
#include <sys/uio.h>

#include "base/list.h"
#include "core/join/door.h"

enum wf_talk_role {
    WF_TALK_VISITOR, /* accepted: says HELLO or JOIN first */
    WF_TALK_CONTROL, /* dialled: HELLO */
    WF_TALK_CHANNEL, /* dialled: JOIN, of a channel that a dial needs */
    WF_TALK_REDIAL,  /* dialled: JOIN, of a channel that was lost */
};

enum wf_talk_state {
    WF_TALK_CONNECTING, /* the kernel connects */
    WF_TALK_SENDING,    /* a message goes out; then `reading` or the end */
    WF_TALK_READING,    /* the prefix, then the body of a message */
    WF_TALK_WAITING,    /* proved; the older incarnation of the channel has to let go first */
    WF_TALK_OVER,       /* to be destroyed once the operation under way has come back */
};

struct wf_talk_tls;

struct wf_talk {
    struct wf_link link; /* door.talks */
    struct wf_door *door;
    enum wf_talk_role role;
    enum wf_talk_state state;
    bool answered;      /* SENDING: nothing is expected after it */
    bool foreign;       /* READING: a TLS record, which is read to its end and dropped */
    bool denied;        /* the log has its line */
    bool proved_member; /* VISITOR: it holds the key, or knows a session: other visitors are dropped before it */
    bool heard;         /* bytes of the other side have come */
    bool handed_over;   /* the descriptor belongs to a channel now */
    int fd;
    struct sockaddr_storage peer;
    char peer_text[80];
    int64_t begun_ns, deadline_ns;
    struct wf_dial *dial;       /* CONTROL, CHANNEL */
    struct wf_session *session; /* CHANNEL, REDIAL; VISITOR after JOIN */
    struct wf_join join;        /* as sent or received */
    struct wf_challenge challenge;
    uint64_t granted_frames, granted_bytes; /* WAITING: the peer's credit */
    struct wf_talk_tls *tls;                /* TLS around it; NULL: none, or not yet */
    struct wf_op op;
    struct iovec iov;
    uint8_t bytes[WF_SETUP_MAX];
    uint32_t have, need; /* READING: bytes there, bytes of the part waited for */
};

/* Takes over an accepted descriptor. */
void wf_talk_visit(struct wf_door *door, int fd);

/* Starts the control conversation of a dial; failures to connect leave the dial to try again. */
void wf_talk_control(struct wf_dial *dial, struct wf_door *door);

/* Dials the next channels of a session that HELLO has opened, as many as may be under way. */
void wf_dial_channels(struct wf_dial *dial, struct wf_door *door);

/* The dial has succeeded: tells of the rails that have not met their partners. No lock. */
void wf_dial_tell_missed(const struct wf_dial *dial);

/* Dials a lost channel again; the result goes to wf_redial_failed() and wf_redial_over(). */
void wf_talk_redial(struct wf_door *door, struct wf_session *session, const struct wf_join *join);

/* The talk's operation has ended. */
void wf_talk_step(struct wf_talk *talk);

/* Deadlines; and destroys conversations that are over. Returns the next deadline. */
int64_t wf_talks_tick(struct wf_door *door, int64_t now_ns);
/* Fails the dial's channels that were begun at `begun_ns` or before and have had no answer. */
void wf_talks_time_out(struct wf_door *door, const struct wf_dial *dial, int64_t begun_ns);

/* Ends every conversation about a session that is to be freed. */
void wf_talks_forget(struct wf_door *door, const struct wf_session *session);

/* Ends attempts to join lost channels from a rail that is down: they would only wait. */
void wf_talks_rail_down(struct wf_door *door, int rail);

/* Ends every conversation of a dial, or all (NULL). */
void wf_talks_end(struct wf_door *door, const struct wf_dial *dial);

#endif
