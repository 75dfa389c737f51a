/*
 * door.h: everything before framing: listening, dialling, the set-up conversations; the deadlines of sessions; and what
 * happens to the rails.
 *
 * The door has a thread and an engine of its own, so that strangers and slow handshakes never cost a worker anything.
 * What a stranger can make it hold is bounded: WF_VISITORS_MAX conversations of at most WF_SETUP_MAX bytes, each with
 * a deadline.
 */
#ifndef WF_CORE_JOIN_DOOR_H
#define WF_CORE_JOIN_DOOR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/list.h"
#include "base/log.h"
#include "core/rail/watch.h"
#include "core/session/session.h"
#include "io/engine.h"
#include "wire/hello.h"

struct wf_handshake_key;
struct wf_lookup;
struct wf_query;
struct wf_seal;
struct wf_session;

#define WF_VISITORS_MAX 256
#define WF_DIALS_AT_ONCE 32
#define WF_DIAL_ADDRESSES 8
#define WF_DIAL_NAME 288 /* longest name, brackets, port */
#define WF_PAYLOAD_LISTENERS_MAX 128
#define WF_LISTENERS_MAX (2 * WF_RAILS_MAX + 1 + WF_PAYLOAD_LISTENERS_MAX)

/* A call to another context, from weft_connect_start() to the last channel. Owner: the door, until `done` or `ended`.
 */
struct wf_dial {
    struct wf_link link;      /* door.new_dials, then door.dials */
    struct wf_link wish_link; /* door.wishes; door.mail_lock, as `wish` */
    struct wf_status wish;    /* with which error the user wants it to end */
    struct wf_visit visit;    /* door.dial_times */
    struct wf_list talks;     /* its conversations */
    const char *name;         /* to be looked up; NULL: the addresses are known */
    char name_text[WF_DIAL_NAME];
    struct wf_query *query;                               /* the look-up that it waits for */
    struct sockaddr_storage addresses[WF_DIAL_ADDRESSES]; /* tried one after the other, until one answers */
    int address_count;
    int attempts;
    char text[160]; /* the addresses, for messages */
    int64_t deadline_ns;
    int64_t retry_ns;        /* when to try again, while no address answers */
    bool talking;            /* the control conversation is under way */
    int next_channel;        /* channels that have been dialled; the rails take turns */
    int joining;             /* channels being dialled: at most WF_DIALS_AT_ONCE, since the peer bounds its visitors */
    int64_t share_ns;        /* how long a channel may go unanswered, beside one that is up; 0: none is dialled yet */
    int64_t up_ns;           /* when a channel was first seen up; 0: none was */
    int missed_count;        /* channels whose first attempt has failed */
    struct wf_status missed; /* why the first of them failed */
    int last_error;          /* of the last control conversation that failed */
    int closed_unheard;      /* connections that were closed before a byte of the peer had come, */
    int64_t unheard_ns;      /* and when the first of them was */
    struct wf_session *session;          /* once HELLO was answered; its channels are dialled once GREETING was, too */
    struct wf_status status;             /* why it failed; code 0: `session` is up */
    void (*ended)(struct wf_dial *dial); /* the door's last use of the dial, no lock held. NULL: `done` says so */
    bool done;
};

struct wf_listener {
    int fd;
    int next_fd; /* replaces `fd` as soon as no operation is posted; -1: none */
    struct wf_socket_options options;
    int to_rail, to_device; /* payload for this rail's inlet of this GPU comes here, and nothing else; -1: all else */
    int rail;               /* the rail to whose interface it is bound; -1: bound to none */
    uint32_t interface;     /* the number of that interface when the socket was opened, or was to be opened again */
    struct wf_op op;
};

struct wf_door {
    struct wf_sessions *sessions;
    struct wf_handshake_key *key; /* the key that every peer must hold; NULL: any peer may connect */
    struct wf_seal *seal;         /* stands around the engine; NULL: nothing is encrypted */
    struct wf_engine *engine;
    pthread_t thread;
    bool has_thread;
    _Atomic bool stopping;

    pthread_mutex_t mail_lock;
    struct wf_list new_dials; /* mail_lock */
    struct wf_list wishes;    /* mail_lock: dials that are to end early */
    bool listening;           /* mail_lock: somebody is opening the listeners, or has */
    bool listeners_changed;   /* mail_lock: there are listeners to attach */

    /* the door's thread */
    struct wf_list dials;
    struct wf_alarm dial_times, talk_times; /* when to look at which dial and which conversation next */
    struct wf_lookup *lookup;
    struct wf_list talks;        /* conversations under way, oldest first */
    struct wf_list talks_wait;   /* those in WF_TALK_WAITING */
    struct wf_list redials_wait; /* sessions with channels that are due, while WF_DIALS_AT_ONCE redials are under way */
    int visitors, redials;
    int listener_count, listeners_attached;
    struct wf_listener listeners[WF_LISTENERS_MAX];
    struct sockaddr_storage listen_address;
    _Atomic int port;   /* 0: not listening */
    bool accept_paused; /* an ACCEPT or an attach failed, or there is no room: goes on at `accept_again_ns` */
    int64_t accept_again_ns;
    struct wf_log_limit stranger_log;
    struct wf_rail_watch watch;
};

/* `key`, `seal`: as in wf_door; the caller keeps them until the door is destroyed. */
int wf_door_create(struct wf_sessions *sessions, struct wf_handshake_key *key, struct wf_seal *seal,
                   struct wf_door **out, struct wf_status *status);
int wf_door_start(struct wf_door *door, struct wf_status *status);
void wf_door_stop(struct wf_door *door);
void wf_door_destroy(struct wf_door *door);

/* Opens the listening sockets: `address`, and each rail's address unless `address` covers them. */
int wf_door_listen(struct wf_door *door, const struct sockaddr_storage *address, struct wf_status *status);

/* Prepares a dial to an address as for weft_connect(). Does not wait: the door has a name looked up. */
int wf_dial_init(struct wf_dial *dial, const struct wf_world *world, const char *address, int timeout_ms,
                 struct wf_status *status);

/* Starts a dial: the result is in dial->status. The dial is the caller's to free once it has ended. Any thread. */
void wf_door_dial(struct wf_door *door, struct wf_dial *dial);

/* Asks for an early end of a dial that has not ended, with this error. Any thread. */
void wf_door_give_up(struct wf_door *door, struct wf_dial *dial, const struct wf_status *why);

/* For `ended`: the dial is not on the list of wf_door_give_up() any more. */
void wf_door_forget_wish(struct wf_door *door, struct wf_dial *dial);

/* A rail of the context went down or came back; its `down` says which. Tells every session; if the rail is down, fails
 * the redials from it. The door's thread, no lock held. */
void wf_door_rail_changed(struct wf_door *door, int rail);

/* The port at which payload for this rail's inlet of this GPU is taken, an inlet `by_port`: opens it where need be, and
 * says so as a fallback. The door's thread. */
int wf_door_payload_port(struct wf_door *door, int rail, int device, struct wf_status *status);

/* One round: conversations, deadlines, dead sessions. The door's thread, or the test in its place. */
int wf_door_drive(struct wf_door *door, int64_t timeout_ns);

#endif
