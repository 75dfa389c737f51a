/*
 * group.h: what the files of a group share. All of it is under the lock of the hub.
 *
 *     tree: rank r has the parent (r - 1) / 2 and the children 2r + 1 and 2r + 2, and a session with each of them
 *
 * A hub is what weft_group_create() makes: members, sessions with them, and the group of all of them, `whole`. A split
 * makes groups of some of these members upon the same hub: a table of ranks, with operations of its own. A member is
 * known by its rank in the whole; its rank in another group is its place there.
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

#define WF_COLL_VERSION 7 /* of messages, and of plans: how an operation is cut and in which order it is added */
#define WF_COLL_CONTROL 0xFFFFFF00u /* endpoints */
#define WF_COLL_DATA 0xFFFFFF01u
#define WF_COLL_WORK 0xFFFFFF02u
#define WF_COLL_MESSAGE_BYTES 8192 /* of control, at most */
#define WF_COLL_ADDRESSES_BYTES 900
#define WF_COLL_HOST_BYTES 65
#define WF_COLL_RAILS_MAX 64
#define WF_COLL_IDS 65536 /* of groups: 16 bits of a tag; 0 is the whole */
#define WF_COLL_SPARES 4  /* copies of GPU memory that are kept for the next operations */
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

/* Owner: the hub's list. */
struct wf_coll_session {
    struct wf_coll_task dialled, control_opened, data_opened, work_opened, closed;
    struct wf_coll_session *next;
    enum wf_coll_state state;
    uint64_t number; /* among all of the hub, from 1 */
    int64_t rank;    /* -1: not known */
    bool dials;      /* this side has dialled */
    bool on_demand;  /* counts towards the limit of sessions */
    bool wanted;     /* the user has its connection */
    bool needed;     /* collectives go over it: it stays */
    bool parting;    /* PART was sent, and not answered */
    bool kept;       /* the other side wants it: do not ask again */
    bool keeps;      /* this side has said that it wants it */
    int under_way;   /* tasks */
    struct weft_peer *peer;
    struct weft_connection *control, *data, *work; /* NULL: not yet */
    struct weft_request *dialling;
    uint32_t attempt;        /* of the addresses */
    int64_t again_ns;        /* DIALLING without a request: the next try */
    int64_t deadline_ns;     /* until it is OPEN */
    int64_t asked_until_ns;  /* a user waits so long for it: it is not given up before; 0: none does */
    uint64_t expected_token; /* of who answers; 0: any */
    uint64_t used;           /* a count: least recently released */
    char *hello;             /* HELD */
    int64_t failing_ns;      /* the first try that failed since the other side was reached; 0: none */
    int failure;             /* of the last try */
    char text[WEFT_TEXT_BYTES];
};

struct wf_coll_member {
    struct wf_coll_session *session; /* OPEN; NULL: none */
    struct wf_coll_session *dial;    /* on its way to be it; NULL: none */
    char *addresses;                 /* "HOST:PORT,HOST:PORT"; NULL: not known yet */
    char host[WF_COLL_HOST_BYTES];   /* "": not known */
    uint32_t process;
    bool left, lost;      /* all groups */
    int failure;          /* of the last dial, or how it was lost; 0: none */
    int64_t unreached_ns; /* when it was last given up as unreached, and it has not answered since; 0: it was not */
    int refusal;          /* what the other side has answered, in the words of `text`; 0: it has not */
    char text[WEFT_TEXT_BYTES];
};

/* Who needs a connection with a member: calls of weft_group_connection(), and the group's collectives. */
enum wf_coll_asker { WF_COLL_USER, WF_COLL_COLLECTIVE, WF_COLL_ASKERS };

/* A member in one group, by its rank there. Owner: that group. */
struct wf_coll_place {
    uint32_t member; /* its rank in the whole */
    uint32_t id;     /* of the group at that member: messages to it have this number */
    bool left;
    uint64_t left_at;             /* the first operation that it has not done */
    uint64_t asked;               /* by number, the last session on which it was asked whether it has left; 0: none */
    uint64_t present;             /* at rank 0: the last operation of which it has said that it waits in it */
    uint32_t waiters;             /* threads in weft_group_connection() for it */
    bool awaited[WF_COLL_ASKERS]; /* it was not reached yet when last asked for: if that dial fails, they are told */
    char name[WF_COLL_HOST_BYTES + 48];
};

/* Host memory of a collective whose own is a GPU's. Owner: its operation; a spare one, the hub. */
struct wf_coll_stage {
    struct wf_coll_stage *next; /* of the spare ones */
    char *memory;
    uint64_t room;
    void *out, *to; /* the result, and where it goes: the GPU's, or the caller's host memory */
    uint64_t bytes;
};

/* What this member has started: a barrier, or a collective. Owner: the hub's list. */
struct wf_coll_operation {
    struct wf_coll_operation *next;
    struct weft_group *group;
    uint64_t order;               /* among all operations of its group, from 1: the same at every member */
    uint64_t barrier, collective; /* its number among those; 0: it is the other */
    const char *name;             /* in errors; NULL: that of its collective */
    char byte;                    /* a barrier's that is an all-reduce */
    struct wf_op *op;             /* NULL: a barrier of the whole */
    struct wf_coll_stage *stage;  /* NULL: all memory is the host's */
    bool waited;                  /* by a call: never polled */
    bool ended;
    void *user_data;
    int64_t started_ns, present_ns, ask_ns, deadline_ns; /* NEVER: no deadline */
    struct weft_completion completion;
};

/* Who of a group waits in which operation (board.c). */
struct wf_coll_board {
    uint64_t *marks; /* at rank 0: by rank; others write and read them */
    struct weft_registration *registration;
    uint64_t key;
    uint64_t presented, asked, first_here; /* orders of operations */
    uint64_t early;                        /* at rank 0: the last one in which somebody waited before it was started */
    uint64_t *seen;                        /* NULL: the board was not read */
    bool seeing, seen_valid;
};

/* Owner: its hub, whose `whole` it is, or the list `groups` of the hub, until it is destroyed and nothing is under way.
 */
struct weft_group {
    struct wf_coll_hub *hub;
    struct weft_group *next, **before; /* before: what points to it */
    uint32_t id;                       /* at this member: messages to it have this number; 0: the whole */
    uint32_t rank, size;
    struct wf_coll_place *places; /* by rank */
    bool formed;                  /* false: the split is under way, and the places are those of its parent */
    bool leaving;                 /* destroy() was called */
    bool abandoned;               /* destroy() has returned, and something is under way */
    int status;                   /* 0, or what has ended the group */
    bool by_loss;                 /* of a member, of which all are told apart from the groups */
    char text[WEFT_TEXT_BYTES];
    uint64_t ordered, barriers, collectives; /* the numbers of the last ones */
    bool some_left;
    struct wf_port port;
    uint32_t under_way; /* transfers, and operations on the board */
    int trouble;        /* of a transfer; 0: none. Judged when nothing else is to be learnt */
    uint32_t trouble_rank;
    char trouble_text[WEFT_TEXT_BYTES];
    struct wf_coll_board board;
    const struct wf_coll_operation *judged;
    uint64_t tended;                            /* the round of what follows: */
    uint64_t present_due, ask_due, judged_next; /* orders of operations; 0: none */
    int64_t judged_next_ns;
};

enum wf_coll_phase {
    WF_COLL_LOOKING,   /* for rank 0's address */
    WF_COLL_JOINING,   /* dials rank 0 */
    WF_COLL_LISTED,    /* rank 0 knows this member, which waits for the table */
    WF_COLL_GATHERING, /* rank 0 waits for the others */
    WF_COLL_TREE,      /* the tree comes together, and the first barrier ends it */
    WF_COLL_MADE,
};

/* Owner: the user, by `whole`; when that is destroyed, the last of the other groups. */
struct wf_coll_hub {
    pthread_mutex_t lock;
    struct weft_group whole;
    struct weft_group *groups;      /* all others */
    uint64_t ids[WF_COLL_IDS / 64]; /* bits: in use */
    uint32_t last_id;
    uint32_t abandoned; /* groups */
    struct weft_context *context;
    struct wf_coll_stage *spares; /* WF_COLL_SPARES at most: memory that is new costs more than the copy into it */
    struct weft_queue *queue;
    struct weft_endpoint *control, *data, *work;
    int set, timer, bell; /* epoll, the user's; timerfd; readable while operations have ended and were not taken */
    bool rung;
    int inner, waker; /* epoll: all of `set` but the bell, and the waker; readable until `to_wake` threads have woken */
    uint64_t wakes;   /* calls of wf_coll_wake() */
    uint32_t to_wake;
    uint32_t sleepers;              /* threads in wf_coll_rest() */
    bool looking;                   /* one thread looks for completions before it sleeps */
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
    int64_t room_ns;    /* when the one that was asked to part last has had its time; 0: none was, or it has had it */
    uint64_t uses, met; /* met: sessions so far */
    char refused[1024];
    uint64_t left_at;            /* ending: the first operation of the whole that this member has not done */
    bool ending;                 /* the whole is being destroyed */
    bool over;                   /* it is: nothing is left but other groups that are not destroyed yet */
    uint32_t notes;              /* sends under way */
    struct wf_coll_note *unsent; /* of these, what waits for a request: the setting `requests` is in the way */
    bool receiving;
    struct wf_coll_task received;
    char message[WF_COLL_MESSAGE_BYTES + 1];
    /* barriers of the whole: the last one that was entered here, that is complete below, that is complete */
    uint64_t entered, sent, done, child_sent[2];
    struct wf_coll_operation *operations; /* of all groups, in their order */
    uint64_t finished;                    /* how many have ended */
    uint64_t rounds;
    uint32_t transfers; /* of all groups, under way */
    bool crowded;       /* the setting `requests` was in the way, or a member that does not part */
    bool troubled;      /* some group is */
};

/* --- group.c --- */
int64_t wf_coll_now_ns(void);
/* How far the making has come: `at` is one of the hub's times. What is done again counts when it is done last. */
void wf_coll_note(struct wf_coll_hub *hub, int64_t *at);
int wf_coll_refuse(struct weft_error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* How much earlier somebody who knows the cause has to speak so that all others hear it in time. */
int64_t wf_coll_margin_ns(int timeout_ms);
/* Closed, and of no group any more. */
void wf_coll_hub_free(struct wf_coll_hub *hub);

/* --- failure.c --- */
/* Ends the group here and, by the sessions with its members, at all of them. The first cause stays. */
void wf_coll_fail(struct weft_group *group, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* All groups of this member: its hub cannot go on. */
void wf_coll_fail_all(struct wf_coll_hub *hub, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Ends every group that this member of the whole is in, and tells all others. */
void wf_coll_member_lost(struct wf_coll_hub *hub, uint32_t member, int code, const char *why);
/* The same of one group, if its member of that rank has been lost; below 0: it has none. */
void wf_coll_end_if_lost(struct weft_group *group, int64_t rank);
/* Its members, if it has failed and is formed: not all that one of them tells can tell the others. */
void wf_coll_tell_failed(struct weft_group *group);
void wf_coll_told_failed(struct wf_coll_hub *hub, struct wf_coll_session *session, const char *text);
void wf_coll_told_gone(struct wf_coll_hub *hub, const char *text);
/* What has ended before this session was open. */
void wf_coll_tell_ended(struct wf_coll_hub *hub, struct wf_coll_session *session);
/* The names of a member of the whole, in all groups; `host` NULL: not known. */
void wf_coll_name(struct wf_coll_hub *hub, uint32_t member, const char *host, uint32_t process);
void wf_coll_name_place(struct weft_group *group, uint32_t rank);
const char *wf_coll_name_of(const struct wf_coll_hub *hub, uint32_t member); /* in the whole */
/* "rank 3 (host, process 4711)", or "ranks 3-5, 9", of those for which `is` holds. Returns how many. */
uint32_t wf_coll_list(struct weft_group *group, bool (*is)(struct weft_group *, uint32_t rank), char *text,
                      size_t room);

/* --- session.c --- */
int wf_coll_dial(struct wf_coll_hub *hub, uint32_t rank, int64_t deadline_ns, uint64_t expected_token, bool on_demand);
/* Both have dialled, and the other one's stays: this one is closed, and tried again where that does not arrive. */
void wf_coll_dial_later(struct wf_coll_hub *hub, struct wf_coll_session *session);
void wf_coll_dials_cancel(struct wf_coll_hub *hub);
/* How the dial ended, for the member. */
void wf_coll_note_failure(struct wf_coll_member *member, const struct wf_coll_session *session);
void wf_coll_came(struct wf_coll_hub *hub, struct weft_peer *peer);
void wf_coll_connected(struct wf_coll_hub *hub, struct weft_peer *peer, struct weft_endpoint *endpoint,
                       struct weft_connection *connection);
void wf_coll_lost(struct wf_coll_hub *hub, const struct weft_event *event);
void wf_coll_session_close(struct wf_coll_hub *hub, struct wf_coll_session *session);
struct wf_coll_session *wf_coll_session_of(struct wf_coll_hub *hub, const struct weft_connection *control);
void wf_coll_sessions_tend(struct wf_coll_hub *hub, int64_t now_ns);
int64_t wf_coll_sessions_next_ns(const struct wf_coll_hub *hub);
void wf_coll_sessions_free(struct wf_coll_hub *hub);

/* --- hello.c --- */
void wf_coll_knock(struct wf_coll_hub *hub, struct wf_coll_session *session);
void wf_coll_hello(struct wf_coll_hub *hub, struct wf_coll_session *session, const char *text);
void wf_coll_welcome(struct wf_coll_hub *hub, struct wf_coll_session *session, const char *text);
void wf_coll_refused(struct wf_coll_hub *hub, struct wf_coll_session *session, const char *text);
void wf_coll_crossed(struct wf_coll_hub *hub, struct wf_coll_session *session);
void wf_coll_judge_held(struct wf_coll_hub *hub);

/* --- gather.c --- */
int wf_coll_meet(struct wf_coll_hub *hub, struct weft_error *err);
void wf_coll_look(struct wf_coll_hub *hub, int64_t now_ns);
void wf_coll_member_came(struct wf_coll_hub *hub, int patience_ms);
void wf_coll_table(struct wf_coll_hub *hub, const char *text);
void wf_coll_to_tree(struct wf_coll_hub *hub);
void wf_coll_making_tend(struct wf_coll_hub *hub, int64_t now_ns);
void wf_coll_join_failed(struct wf_coll_hub *hub, struct wf_coll_session *session);

/* --- split.c --- */
/* The rank in the group of a member of the whole; -1: it is not in it. */
int64_t wf_coll_rank_of(const struct weft_group *group, int64_t member);
/* The next of all groups of a hub after this one, the whole first; NULL: there is none. */
struct weft_group *wf_coll_next_group(struct wf_coll_hub *hub, const struct weft_group *group);
/* Of which a message from that session speaks by its number; NULL: there is no such group, or not with that member. */
struct weft_group *wf_coll_group_of(struct wf_coll_hub *hub, uint64_t id, const struct wf_coll_session *session);
void wf_coll_told_left(struct wf_coll_hub *hub, struct wf_coll_session *session, const char *text);
/* Ends the group where somebody has left it before one of the operations under way. */
void wf_coll_judge_left(struct weft_group *group);
/* Asks that member, once on each session with it, whether it has left the group before this operation: one that had no
 * session then has told nobody. */
void wf_coll_ask(struct weft_group *group, uint32_t rank, const struct wf_op *op);
void wf_coll_asked(struct wf_coll_hub *hub, struct wf_coll_session *session, const char *text);
/* Tells all members that a session is open with. */
void wf_coll_say_leave(struct weft_group *group);
void wf_coll_leave(struct weft_group *group);
/* The whole is destroyed: the others have ended. */
void wf_coll_groups_end(struct wf_coll_hub *hub);
/* Those that were abandoned, and on which nothing is under way any more. */
void wf_coll_groups_free(struct wf_coll_hub *hub);

/* --- operations.c --- */
struct wf_coll_operation *wf_coll_operation_of(const struct wf_coll_hub *hub, const struct wf_op *op); /* NULL: none */
/* NULL: no memory. `timeout_ms` below 0: no deadline. */
struct wf_coll_operation *wf_coll_operation_add(struct weft_group *group, int timeout_ms, bool waited, void *user_data);
/* The last one that was added never began. */
void wf_coll_operation_undo(struct wf_coll_operation *operation);
void wf_coll_operation_end(struct wf_coll_operation *operation, int status, uint64_t bytes);
/* Waits, takes it out, and returns its status. With the lock, which it lets go of meanwhile. */
int wf_coll_await(struct wf_coll_operation *operation, struct weft_error *err);
int wf_coll_take_ended(struct weft_group *group, struct weft_completion *completions, int max);
void wf_coll_operations_end(struct weft_group *group); /* with the status of the group */
void wf_coll_operations_tend(struct wf_coll_hub *hub, int64_t now_ns);
int64_t wf_coll_operations_next_ns(struct wf_coll_hub *hub);
void wf_coll_operations_free(struct weft_group *group);
/* The first one that has not ended, or the next. */
uint64_t wf_coll_operations_done(const struct weft_group *group);
/* Releases the lock; the descriptor tells of what has ended. */
void wf_coll_unlock(struct wf_coll_hub *hub);

/* --- barrier.c, of the whole --- */
int wf_coll_enter(struct wf_coll_hub *hub, int timeout_ms, bool waited, void *user_data,
                  struct wf_coll_operation **out);
void wf_coll_up(struct wf_coll_hub *hub, struct wf_coll_session *session, const char *text);
void wf_coll_down(struct wf_coll_hub *hub, const char *text);
void wf_coll_advance(struct wf_coll_hub *hub);
bool wf_coll_is_near(const struct wf_coll_hub *hub, uint32_t rank); /* parent or child in the tree */

/* --- collectives.c, port.c, stage.c --- */
/* How a call was made. */
struct wf_coll_way {
    int timeout_ms;
    bool waits;
    void *user_data;
};
/* A call of the user's; rank and size of `ask` are filled in. `name` as an operation's. */
int wf_coll_collective(struct weft_group *group, struct wf_ask ask, struct wf_coll_way way, const char *call,
                       const char *name, struct weft_error *err);
/* A barrier of another group than the whole. */
int wf_coll_pass(struct weft_group *group, int timeout_ms, bool waited, void *user_data,
                 struct wf_coll_operation **out);
void wf_coll_collective_advance(struct wf_coll_hub *hub, const struct wf_op *op);
int wf_coll_collectives_tend(struct wf_coll_hub *hub); /* those that could not go on; how many can now */
void wf_coll_collectives_stop(struct weft_group *group);
void wf_coll_port_init(struct weft_group *group);
void wf_coll_judge_trouble(struct wf_coll_hub *hub);
/* Where memory of `ask` is a GPU's: copies `in`, and changes `ask`. Else `*out` is NULL. */
int wf_coll_stage_create(struct wf_coll_hub *hub, struct wf_ask *ask, uint64_t in_bytes, uint64_t out_bytes,
                         struct wf_coll_stage **out, struct weft_error *err);
int wf_coll_stage_out(struct wf_coll_hub *hub, const struct wf_coll_stage *stage, struct weft_error *err);
void wf_coll_stage_end(struct wf_coll_hub *hub, struct wf_coll_stage *stage); /* NULL is fine */
void wf_coll_stages_free(struct wf_coll_hub *hub);

/* --- board.c --- */
/* At rank 0, and where it is not known yet who that is. */
int wf_coll_board_create(struct weft_group *group, struct weft_error *err);
void wf_coll_board_destroy(struct weft_group *group);
/* This member, rank 0, has started an operation: to those that wait in it already. */
void wf_coll_board_began(struct weft_group *group);
void wf_coll_board_present(struct weft_group *group, uint64_t number);
void wf_coll_board_ask(struct weft_group *group, uint64_t number);
/* A session with the member ends, and what this one has said there of itself may not have been read. */
void wf_coll_board_unsaid(struct wf_coll_hub *hub, uint32_t member);
void wf_coll_board_is_present(struct wf_coll_hub *hub, struct wf_coll_session *session, const char *text);
void wf_coll_board_here(struct wf_coll_hub *hub, struct wf_coll_session *session, const char *text);
/* Ends the group: names who is not in that operation. */
void wf_coll_board_judge(const struct wf_coll_operation *operation);

/* --- drive.c --- */
int wf_coll_drive_open(struct wf_coll_hub *hub, struct weft_error *err);
void wf_coll_drive_close(struct wf_coll_hub *hub);
void wf_coll_drive(struct wf_coll_hub *hub);
void wf_coll_sleep(struct wf_coll_hub *hub, int64_t until_ns); /* without the lock */
/* Something has changed that a thread in wf_coll_rest() may wait for: an operation has ended, a group, or its last
 * transfer; a session has opened or closed, or may not part; a member has left, or cannot be reached. */
void wf_coll_wake(struct wf_coll_hub *hub);
/* A transfer of the group, or a look at its board, is not under way any more. The last wakes who destroys the group. */
void wf_coll_one_less(struct weft_group *group);
/* Releases the lock, sleeps until there is something to do, and takes it again. */
void wf_coll_rest(struct wf_coll_hub *hub, int64_t until_ns);
int wf_coll_listen_for(struct wf_coll_hub *hub); /* posts the receive of control */

/* --- reach.c --- */
/* 1: the member's session has its connections; 0: not yet; or why not. That it could not be reached before `asker`
 * asked is no answer: then it is dialled anew. */
int wf_coll_reach(struct weft_group *group, uint32_t rank, enum wf_coll_asker asker, int64_t until_ns,
                  struct weft_error *err);
/* Who waits for room asks the next member to part, if the one before it had its time. */
void wf_coll_room_tend(struct wf_coll_hub *hub, int64_t now_ns);
void wf_coll_part(struct wf_coll_hub *hub, struct wf_coll_session *session);
void wf_coll_asked_to_part(struct wf_coll_hub *hub, struct wf_coll_session *session);
void wf_coll_may_part(struct wf_coll_hub *hub, struct wf_coll_session *session, bool may);
/* The user has released it. */
void wf_coll_done_with(struct wf_coll_hub *hub, struct wf_coll_session *session);

#endif
