/*
 * group.h: what the files of a group share. All of it is under the group's lock.
 *
 *     tree: rank r has the parent (r - 1) / 2 and the children 2r + 1 and 2r + 2, and a session with each of them
 *
 * Every session between two members has three connections, between the endpoints of control, of data and of work of
 * both: messages of the group, what the user does, and collectives. The side that has dialled opens them and says
 * HELLO. Messages of control are text, their tag is their kind (words.h).
 */
#ifndef WF_COLL_GROUP_H
#define WF_COLL_GROUP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "collective/ops/ops.h"
#include "collective/rendezvous/rendezvous.h"
#include "collective/weft_coll.h"

#define WF_COLL_VERSION 2
#define WF_COLL_CONTROL 0xFFFFFF00u /* endpoints */
#define WF_COLL_DATA 0xFFFFFF01u
#define WF_COLL_WORK 0xFFFFFF02u
#define WF_COLL_MESSAGE_BYTES 8192 /* of control, at most */
#define WF_COLL_ADDRESSES_BYTES 900
#define WF_COLL_HOST_BYTES 65
#define WF_COLL_RAILS_MAX 64
#define WF_COLL_NEVER INT64_MAX

enum wf_coll_state {
    WF_COLL_DIALLING, /* a connect is under way, or is to be tried again */
    WF_COLL_OPENING,  /* its connections are being opened, by this side */
    WF_COLL_KNOCKING, /* HELLO was sent, and not answered */
    WF_COLL_STRANGER, /* has come, and has not said HELLO */
    WF_COLL_HELD,     /* has said HELLO before this side knew enough to judge it */
    WF_COLL_OPEN,     /* of a member */
    WF_COLL_PARTED,   /* agreed that nobody needs it: the other side closes */
    WF_COLL_CLOSED,   /* its peer is gone; freed when nothing is under way */
};

/* Owner: the group's list. */
struct wf_coll_session {
    struct wf_coll_task dialled, control_opened, data_opened, work_opened, closed;
    struct wf_coll_session *next;
    enum wf_coll_state state;
    int64_t rank;   /* -1: not known */
    bool dials;     /* this side has dialled */
    bool on_demand; /* counts towards the limit of sessions */
    bool wanted;    /* the user has its connection */
    bool parting;   /* PART was sent, and not answered */
    bool kept;      /* the other side wants it: do not ask again */
    int under_way;  /* tasks */
    struct weft_peer *peer;
    struct weft_connection *control, *data, *work; /* NULL: not yet */
    struct weft_request *dialling;
    uint32_t attempt;        /* of the addresses */
    int64_t again_ns;        /* DIALLING without a request: the next try */
    int64_t deadline_ns;     /* until it is OPEN */
    uint64_t expected_token; /* of who answers; 0: any */
    uint64_t used;           /* a count: least recently released */
    char *hello;             /* HELD */
    int failure;             /* of the last try */
    char text[WEFT_TEXT_BYTES];
};

struct wf_coll_member {
    struct wf_coll_session *session; /* OPEN; NULL: none */
    struct wf_coll_session *dial;    /* on its way to be it; NULL: none */
    char *addresses;                 /* "HOST:PORT,HOST:PORT"; NULL: not known yet */
    char name[WF_COLL_HOST_BYTES + 48];
    char host[WF_COLL_HOST_BYTES]; /* "": not known */
    uint32_t process;
    bool left;
    uint64_t present; /* at rank 0: the last operation of which it has said that it waits in it */
    int failure;      /* of the last dial; 0: none */
    bool answered;    /* that is what the other side has answered */
    char text[WEFT_TEXT_BYTES];
};

/* Host memory of a collective whose own is a GPU's. Owner: its operation. */
struct wf_coll_stage {
    void *in, *out;
    void *to; /* the GPU's, or the caller's host memory: the result */
    uint64_t bytes;
};

/* What this member has started: a barrier, or a collective. Owner: the group's list. */
struct wf_coll_operation {
    struct wf_coll_operation *next;
    uint64_t order;               /* among all operations of this group, from 1: the same at every member */
    uint64_t barrier, collective; /* its number among those; 0: it is the other */
    struct wf_op *op;             /* NULL: a barrier */
    struct wf_coll_stage *stage;  /* NULL: all memory is the host's */
    bool waited;                  /* by a call: never polled */
    bool ended;
    void *user_data;
    int64_t started_ns, present_ns, ask_ns, deadline_ns; /* NEVER: no deadline */
    struct weft_completion completion;
};

enum wf_coll_phase {
    WF_COLL_LOOKING,   /* for rank 0's address */
    WF_COLL_JOINING,   /* dials rank 0 */
    WF_COLL_LISTED,    /* rank 0 knows this member, which waits for the table */
    WF_COLL_GATHERING, /* rank 0 waits for the others */
    WF_COLL_TREE,      /* the tree comes together, and the first barrier ends it */
    WF_COLL_MADE,
};

struct weft_group {
    pthread_mutex_t lock;
    struct weft_context *context;
    struct weft_queue *queue;
    struct weft_endpoint *control, *data, *work;
    int set, timer, bell; /* epoll; timerfd; readable while operations have ended and were not taken */
    bool rung;
    uint32_t sleepers;              /* threads in wf_coll_rest() */
    bool taking;                    /* one of them takes completions without the lock */
    uint32_t fruitless, looks_left; /* looks before a sleep that are left out, after ones in vain */
    int64_t timer_ns;               /* to which the timer is set; 0: not yet */
    struct wf_meet meet;
    uint32_t rank, size, session_limit;
    uint32_t local_rank;
    bool from; /* made from addresses: no table */
    enum wf_coll_phase phase;
    uint64_t token; /* of this group in this run; 0: not known yet, or none */
    bool token_known;
    int64_t began_ns, deadline_ns, knows_ns; /* of its making; when one that knows who is missing ends it */
    struct weft_group_times times;           /* 0: not so far, or it was nothing to be done */
    int64_t look_ns;                         /* the next look for rank 0's address */
    uint64_t seen_token;                     /* in the line that was found */
    int timeout_ms;
    char host[WF_COLL_HOST_BYTES];
    char addresses[WF_COLL_ADDRESSES_BYTES]; /* own */
    uint32_t came;                           /* members, with this one */
    uint32_t listed;                         /* entries of the table that have come */
    struct wf_coll_member *members;
    struct wf_coll_session *sessions;
    uint32_t strangers, on_demand;
    uint64_t uses;
    char refused[1024];
    int status; /* 0, or what has ended the group */
    char text[WEFT_TEXT_BYTES];
    bool ending;    /* destroy() was called */
    uint32_t notes; /* sends under way */
    bool receiving;
    struct wf_coll_task received;
    char message[WF_COLL_MESSAGE_BYTES + 1];
    /* barriers: the numbers of the last one that was entered here, that is complete below, that is complete */
    uint64_t entered, sent, done, child_sent[2];
    struct wf_coll_operation *operations; /* in their order */
    uint64_t ordered;                     /* the last one */
    uint64_t finished;                    /* how many have ended */
    /* collectives */
    struct wf_port port;
    uint64_t collectives; /* the number of the last one */
    uint32_t transfers;   /* under way */
    bool crowded;         /* the setting `requests` was in the way */
    int trouble;          /* of a transfer; 0: none. Judged when nothing else is to be learnt */
    uint32_t trouble_rank;
    char trouble_text[WEFT_TEXT_BYTES];
    /* the board (board.c) */
    uint64_t *board; /* rank 0 */
    struct weft_registration *board_registration;
    uint64_t board_key;
    uint64_t presented, asked, first_here; /* orders of operations */
    const struct wf_coll_operation *judged;
    uint64_t *seen; /* NULL: the board was not read */
    bool seeing, seen_valid;
};

/* --- group.c --- */
int64_t wf_coll_now_ns(void);
/* How far the making has come: `at` is one of the group's times. What is done again counts when it is done last. */
void wf_coll_note(struct weft_group *group, int64_t *at);
int wf_coll_refuse(struct weft_error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Ends the group here and, by its sessions, everywhere. The first cause stays. */
void wf_coll_fail(struct weft_group *group, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
void wf_coll_name(struct weft_group *group, uint32_t rank, const char *host, uint32_t process);
/* "rank 3 (host, process 4711)", or "ranks 3-5, 9", of those for which `is` holds. Returns how many. */
uint32_t wf_coll_list(struct weft_group *group, bool (*is)(struct weft_group *, uint32_t rank), char *text,
                      size_t room);
/* How much earlier somebody who knows the cause has to speak so that all others hear it in time. */
int64_t wf_coll_margin_ns(int timeout_ms);

/* --- session.c --- */
int wf_coll_dial(struct weft_group *group, uint32_t rank, int64_t deadline_ns, uint64_t expected_token, bool on_demand);
/* Both have dialled, and the other one's stays: this one is closed, and tried again where that does not arrive. */
void wf_coll_dial_later(struct weft_group *group, struct wf_coll_session *session);
void wf_coll_dials_cancel(struct weft_group *group);
void wf_coll_came(struct weft_group *group, struct weft_peer *peer);
void wf_coll_connected(struct weft_group *group, struct weft_peer *peer, struct weft_endpoint *endpoint,
                       struct weft_connection *connection);
void wf_coll_lost(struct weft_group *group, const struct weft_event *event);
void wf_coll_session_close(struct weft_group *group, struct wf_coll_session *session);
struct wf_coll_session *wf_coll_session_of(struct weft_group *group, const struct weft_connection *control);
void wf_coll_sessions_tend(struct weft_group *group, int64_t now_ns);
int64_t wf_coll_sessions_next_ns(const struct weft_group *group);
void wf_coll_sessions_free(struct weft_group *group);

/* --- hello.c --- */
void wf_coll_knock(struct weft_group *group, struct wf_coll_session *session);
void wf_coll_hello(struct weft_group *group, struct wf_coll_session *session, const char *text);
void wf_coll_welcome(struct weft_group *group, struct wf_coll_session *session, const char *text);
void wf_coll_refused(struct weft_group *group, struct wf_coll_session *session, const char *text);
void wf_coll_crossed(struct weft_group *group, struct wf_coll_session *session);
void wf_coll_judge_held(struct weft_group *group);

/* --- gather.c --- */
int wf_coll_meet(struct weft_group *group, struct weft_error *err);
void wf_coll_look(struct weft_group *group, int64_t now_ns);
void wf_coll_member_came(struct weft_group *group, uint32_t rank, int patience_ms);
void wf_coll_table(struct weft_group *group, const char *text);
void wf_coll_to_tree(struct weft_group *group);
void wf_coll_making_tend(struct weft_group *group, int64_t now_ns);
void wf_coll_join_failed(struct weft_group *group, struct wf_coll_session *session);

/* --- operations.c --- */
/* NULL: no memory. `timeout_ms` below 0: no deadline. */
struct wf_coll_operation *wf_coll_operation_add(struct weft_group *group, int timeout_ms, bool waited, void *user_data);
void wf_coll_operation_end(struct weft_group *group, struct wf_coll_operation *operation, int status, uint64_t bytes);
/* Waits, takes it out, and returns its status. With the lock, which it lets go of meanwhile. */
int wf_coll_await(struct weft_group *group, struct wf_coll_operation *operation, struct weft_error *err);
int wf_coll_take_ended(struct weft_group *group, struct weft_completion *completions, int max);
void wf_coll_operations_end(struct weft_group *group); /* with the status of the group */
void wf_coll_operations_tend(struct weft_group *group, int64_t now_ns);
int64_t wf_coll_operations_next_ns(const struct weft_group *group);
void wf_coll_operations_free(struct weft_group *group);
/* Releases the lock; the descriptor tells of what has ended. */
void wf_coll_unlock(struct weft_group *group);

/* --- barrier.c --- */
int wf_coll_enter(struct weft_group *group, int timeout_ms, bool waited, void *user_data,
                  struct wf_coll_operation **out);
void wf_coll_up(struct weft_group *group, struct wf_coll_session *session, const char *text);
void wf_coll_down(struct weft_group *group, const char *text);
void wf_coll_advance(struct weft_group *group);
void wf_coll_left(struct weft_group *group, uint32_t rank);
bool wf_coll_is_near(const struct weft_group *group, uint32_t rank); /* parent or child in the tree */

/* --- collectives.c, port.c, stage.c --- */
void wf_coll_collective_advance(struct weft_group *group, const struct wf_op *op);
int wf_coll_collectives_tend(struct weft_group *group); /* those that could not go on; how many can now */
void wf_coll_collectives_stop(struct weft_group *group);
void wf_coll_port_init(struct weft_group *group);
void wf_coll_judge_trouble(struct weft_group *group);
/* Where memory of `ask` is a GPU's: copies `in`, and changes `ask`. Else `*out` is NULL. */
int wf_coll_stage_create(struct weft_group *group, struct wf_ask *ask, uint64_t in_bytes, uint64_t out_bytes,
                         struct wf_coll_stage **out, struct weft_error *err);
int wf_coll_stage_out(struct weft_group *group, const struct wf_coll_stage *stage, struct weft_error *err);
void wf_coll_stage_destroy(struct wf_coll_stage *stage);

/* --- board.c --- */
int wf_coll_board_create(struct weft_group *group, struct weft_error *err);
void wf_coll_board_destroy(struct weft_group *group);
void wf_coll_board_present(struct weft_group *group, uint64_t number);
void wf_coll_board_ask(struct weft_group *group, uint64_t number);
void wf_coll_board_is_present(struct weft_group *group, struct wf_coll_session *session, const char *text);
void wf_coll_board_here(struct weft_group *group, const char *text);
/* Ends the group: names who is not in that operation. */
void wf_coll_board_judge(struct weft_group *group, const struct wf_coll_operation *operation);

/* --- drive.c --- */
int wf_coll_drive_open(struct weft_group *group, struct weft_error *err);
void wf_coll_drive_close(struct weft_group *group);
void wf_coll_drive(struct weft_group *group);
void wf_coll_sleep(struct weft_group *group, int64_t until_ns); /* without the lock */
/* Releases the lock, sleeps until there is something to do, and takes it again. */
void wf_coll_rest(struct weft_group *group, int64_t until_ns);
int wf_coll_listen_for(struct weft_group *group); /* posts the receive of control */

/* --- reach.c --- */
int wf_coll_reach(struct weft_group *group, uint32_t rank, int64_t deadline_ns, struct weft_error *err);
void wf_coll_part(struct weft_group *group, struct wf_coll_session *session);
void wf_coll_asked_to_part(struct weft_group *group, struct wf_coll_session *session);
void wf_coll_may_part(struct weft_group *group, struct wf_coll_session *session, bool may);

#endif
