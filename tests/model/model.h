/*
 * model.h: the whole library, two contexts of it, on a simulated network, against a reference that knows what must
 * have arrived. One seed is one schedule: settings, delays, sizes, posts, cancels and closes all come from it.
 */
#ifndef WEFT_TESTS_MODEL_H
#define WEFT_TESTS_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/join/door.h"
#include "core/message/connection.h"
#include "core/session/session.h"
#include "model_faults.h"
#include "sim.h"
#include "sim_cards.h"
#include "sim_memory.h"
#include "weft.h"

#define MODEL_DELAY_MAX_NS (20 * WF_NS_PER_MS) /* the longest way of a byte, where ways differ */
#define MODEL_CONNECTIONS 3
#define MODEL_MESSAGES 24 /* most sends, and most receives, of one direction */
#define MODEL_TAG_LAST 99
#define MODEL_ANY_RECEIVES 16

/* Everything that happened under one seed stops here with a line that repeats it. */
void model_fail(const char *file, int line, const char *what, long long value);
#define MODEL_CHECK(condition, value)                                                                                  \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            model_fail(__FILE__, __LINE__, #condition, (long long)(value));                                            \
    } while (0)

/* Memory in many places for a message (model_vector.c). */
#define MODEL_ENTRIES 7
struct model_vector {
    void *memory;  /* NULL: the message is in one place */
    uint8_t *view; /* the same */
    uint32_t room;
    int count;
    struct iovec iov[MODEL_ENTRIES];
    uint32_t at[MODEL_ENTRIES]; /* of each entry, in `view` */
};

struct model_send {
    uint32_t size;
    uint64_t tag, look;           /* look: its first bytes */
    void *memory;                 /* as the library knows it */
    uint8_t *data;                /* the same; ruined as soon as the request has completed */
    struct weft_request *request; /* NULL once collected */
    bool posted, sync;
    bool cancelled; /* asked to, or has a deadline */
    int status;
    int taken_by; /* receive that got it, or -1 */
    struct model_vector vector;
};

struct model_receive {
    uint32_t capacity;
    uint64_t tag, mask; /* the bits of the tag that must be equal: none of them is WEFT_ANY_TAG */
    void *memory;
    uint8_t *data;
    uint32_t room; /* bytes behind `data`: capacity and a margin that must stay poisoned */
    struct weft_request *request;
    bool posted, cancelled;
    int status;
    uint64_t bytes; /* of its message, also of one that it was too small for */
    bool probed;    /* a probe has told of its message: */
    uint64_t probed_tag, probed_bytes;
    int probed_lane; /* from any connection */
    int got;         /* index of the send, or -1 */
    int lane;        /* from any connection: the one on which it came */
    struct model_vector vector;
};

/* One direction of one connection. */
struct model_lane {
    struct weft_connection *sender, *receiver;
    int send_count, receive_count;
    struct model_send sends[MODEL_MESSAGES + 1]; /* and the last one */
    struct model_receive receives[2 * MODEL_MESSAGES + 4];
    bool last_sent, last_received;
};

/* Receives of one node from any of its connections (model_any.c). */
struct model_anys {
    int count;
    struct model_receive receives[MODEL_ANY_RECEIVES];
    bool uncertain; /* one was cancelled that may have had a message */
};

/* --- one-sided operations (model_remote.c) --- */

#define MODEL_OPS 8
#define MODEL_PIECES 12
#define MODEL_REGIONS 2 /* the last one may end in the middle */
#define MODEL_NOTICES 4
#define MODEL_NOTE_RECEIVES (4 * MODEL_OPS)

enum model_wrong { MODEL_WRONG_KEY = 1, MODEL_WRONG_PLACE = 2 };

struct model_op {
    int index, region, piece_count;
    uint64_t id, size, start; /* start: of its slot, or beyond the region */
    bool reading, listed, notifies, late;
    int wrong; /* enum model_wrong, or 0 */
    uint32_t note_size;
    void *memory;
    uint8_t *local, *note;
    uint64_t room; /* bytes behind `local`: margin at the end */
    struct weft_piece pieces[MODEL_PIECES + 1];
    struct weft_request *request;
    bool cancelled, ended;
    int status, notified;
};

/* A notification without an operation. */
struct model_notice {
    uint64_t tag;
    uint32_t size;
    uint8_t *data;
    struct weft_request *request;
    bool posted, cancelled, told;
    int status, told_by; /* the index of the receive */
};

struct model_region {
    void *base; /* as the library knows it */
    uint8_t *memory;
    uint64_t bytes;
    struct weft_registration *registration;
    bool ended, given_back; /* given_back: nobody uses it any more */
};

struct model_note_receive {
    void *memory;
    uint8_t *data;
    uint32_t capacity;
    struct weft_request *request;
    bool cancelled;
};

/* What one side of a connection asks of the other: its operations, and the other's memory and receives. */
struct model_side {
    struct weft_connection *asker;
    int op_count, receive_count, notice_count;
    struct model_op ops[MODEL_OPS];
    struct model_notice notices[MODEL_NOTICES];
    struct model_region regions[MODEL_REGIONS];
    struct model_note_receive receives[MODEL_NOTE_RECEIVES];
};

struct model_node {
    struct weft_context *context;
    struct wf_session *session;
    struct weft_endpoint *endpoint;
    struct weft_queue *queue; /* NULL: this schedule tests its requests */
};

struct model_world {
    uint64_t seed;
    bool faulty; /* schedules have faults */
    bool timed;  /* some requests have deadlines */
    bool abrupt; /* connections are closed with messages under way */
    bool lost;   /* the session has ended by itself */
    bool traced; /* every frame is printed */
    bool quiet;  /* nothing is logged of what goes wrong on purpose */
    bool mortal; /* a node may be killed now: nobody waits for a request of its own */
    int lives;   /* contexts so far */
    int64_t timeout_ns, rail_timeout_ns, connect_timeout_ns;
    struct model_faults faults;
    struct wf_sim *sim;
    struct wf_sim_memory *devices; /* NULL: a schedule without */
    struct wf_sim_cards *cards;    /* NULL: payload reaches devices only through host memory */
    int card_rules;                /* streams that each of them ever leads to an inlet; 0: all */
    bool leaves_cards;             /* by what cards and contexts were made to do, also in an earlier life */
    bool failing;                  /* some copies of devices fail */
    uint64_t buffers, vectors;     /* so far; and draws for vectors */
    struct model_node nodes[2];    /* 0 listens, 1 dials */
    int connection_count;
    struct weft_connection *connections[MODEL_CONNECTIONS][2];
    struct model_lane lanes[MODEL_CONNECTIONS][2]; /* by sending node */
    struct model_side sides[MODEL_CONNECTIONS][2]; /* by asking node */
    struct model_anys anys[2];                     /* by receiving node */
    uint32_t largest;
    uint64_t remote_largest; /* of one-sided operations */
    uint64_t one_sided;      /* percent of posts that are one-sided operations */
    uint64_t pressure;       /* percent of steps that post rather than drive */
    uint64_t turns, acts;
    uint64_t ended; /* requests */
    int idle_turns; /* in a row in which nothing was found to do */
};

/* --- model_world.c: two contexts, driven by hand --- */
uint64_t model_pick(struct model_world *world, uint64_t limit); /* 0 .. limit - 1 */
uint64_t model_one_of(struct model_world *world, const uint64_t *values, int count);
#define MODEL_ONE_OF(world, ...)                                                                                       \
    model_one_of(world, (const uint64_t[]){__VA_ARGS__}, (int)(sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)))

void model_world_open(struct model_world *world, uint64_t seed);
void model_node_open(struct model_world *world, int index);
/* One turn of something: a door, a worker, or time. */
void model_drive(struct model_world *world);

/* For loops that drive until something is so: fails the schedule where that takes for ever. Zeroed at first. */
struct model_patience {
    bool begun;
    uint64_t turns, progress;
    int64_t until_ns, endless_ns;
};
void model_bear(struct model_world *world, struct model_patience *patience);

/* Drives until `request` has ended and returns its status; a stall fails the schedule. */
int model_finish(struct model_world *world, struct weft_request *request);

/* --- model_memory.c: what users' memory is --- */
/* In some schedules there are devices, and copies that fail: by the seed alone, so that what else it draws stays. */
void model_devices_open(struct model_world *world);
void model_devices_close(struct model_world *world);
/* Do cards write to devices in this schedule? In a third of them, unless the channels are encrypted. */
bool model_has_cards(const struct model_world *world);
/* May an inlet be left, and its channels be lost? By the draws of the life that made the card or the context. */
bool model_may_leave_cards(const struct model_world *world);
/* Of a context that was just made: in half of these an inlet that brings little is left soon. */
void model_judge_cards(struct model_world *world, struct weft_context *context);
/* No copy that starts from now on fails. */
void model_devices_mend(struct model_world *world);
/* Memory of a user of `node`, on a device or not. `*view`: where the test sees it. */
void *model_memory_take(struct model_world *world, int node, uint64_t bytes, uint8_t **view);
/* Of this device. */
void *model_memory_of(struct model_world *world, int device, uint64_t bytes, uint8_t **view);
void model_memory_give(struct model_world *world, void *memory);
/* Bits of the seed's own for what is not drawn. */
uint64_t model_bits(const struct model_world *world, uint64_t salt);

/* --- model_vector.c: messages whose memory is in many places --- */

/* Post the send or the receive, some of them from or to a vector. As weft_send() and weft_recv(). */
int model_vector_send(struct model_world *world, int node, struct weft_connection *connection, struct model_send *send,
                      const struct weft_options *options);
int model_vector_recv(struct model_world *world, int node, struct weft_connection *connection,
                      struct model_receive *receive, const struct weft_options *options);
/* The receive has ended: moves what the vector has to `data`. */
void model_vector_landed(struct model_vector *vector, uint8_t *data);
/* From here on nobody may touch it; and nobody has. */
void model_vector_ruin(struct model_vector *vector);
void model_vector_judge(const struct model_vector *vector);
void model_vector_free(struct model_world *world, struct model_vector *vector);

/* --- model_join.c: how the two meet --- */

/* The session, and connections; false: it was lost meanwhile. */
bool model_join(struct model_world *world);

/* --- model_play.c --- */

/* All of a session but its end. */
void model_live(struct model_world *world);

/* --- model_end.c --- */
void model_world_close(struct model_world *world);
/* The process of a node ends at once; false where it has before. */
bool model_kill(struct model_world *world, int node);
/* Has the session ended by itself? Fails the schedule where it may not. */
bool model_is_lost(struct model_world *world);
/* May a request of `node` end like this because its session has? */
bool model_excused(const struct model_world *world, int node, int status);

/* --- model_messages.c: posts and completions --- */
void model_act(struct model_world *world); /* one random action of a user */
/* The send whose bytes the receive has, or -1. */
int model_find_send(struct model_world *world, int connection, int side, const struct model_receive *receive,
                    uint64_t tag);
bool model_expected_error(const struct model_world *world, int node, int status);
/* A message of any size and tag. */
void model_send_one(struct model_world *world, int connection, int side);
void model_collect(struct model_world *world); /* takes what has completed, checks it */
void model_place_endpoint(struct model_world *world, int index, int connection); /* for connections from now on */
/* The traffic class of a connection that this node opens. */
uint32_t model_traffic_class(const struct model_world *world, int opener, int connection);
void model_queues_open(struct model_world *world); /* for some seeds: requests end in a queue of their node */
void model_queues_close(struct model_world *world);
bool model_drain(struct model_world *world); /* posts what is missing so that everything ends; true when it has */
bool model_all_ended(const struct model_world *world);
/* The requests of a node that is gone: nobody may touch their memory any more. */
void model_forget(struct model_world *world, int node);
void model_judge(struct model_world *world); /* the reference's verdict on the whole */
void model_free(struct model_world *world);

/* --- model_alike.c: messages that nobody can tell from each other --- */
bool model_alike(const struct model_send *one, const struct model_send *other);
/* The first send of the lane that is like this one. */
int model_first_alike(const struct model_lane *lane, int index);
/* Have receives got this one, and all like it of which a receive must have the bytes? */
bool model_is_got(const struct model_lane *lane, const struct model_send *send);
/* Is any message lost, or has a send waited in vain? */
void model_alike_judge(const struct model_world *world, const struct model_lane *lane, const struct model_anys *anys);

/* --- model_match.c: the reference --- */
bool model_fits(const struct model_receive *receive, uint64_t tag);
/* Has each receive got what the orders of posting say? `anys`: the other receives that may take from the lane. */
void model_match_judge(const struct model_lane *lane, const struct model_anys *anys);
/* Have the receives from any connection kept the order of each lane, which is that of `connection`? */
void model_match_judge_anys(const struct model_lane *lane, const struct model_anys *anys, int connection);
#define MODEL_TAKEN_BY_ANY 1000 /* send.taken_by is this and the index */

/* --- model_any.c: receives from any connection --- */
void model_any_act(struct model_world *world, uint64_t bits);
void model_any_collect(struct model_world *world, int node);
/* Whether this completion is of one of them; takes it. */
bool model_any_completion(struct model_world *world, int node, const struct weft_completion *completion);
/* No message comes any more: cancels those that are left. True: none is. */
bool model_any_stop(struct model_world *world, int node);
bool model_any_ended(const struct model_world *world);
/* Has one ended that is not collected? */
bool model_any_is_done(const struct model_world *world, int node);
void model_any_forget(struct model_world *world, int node);
void model_any_judge(const struct model_world *world);
void model_any_free(struct model_world *world);

/* --- model_print.c: what went wrong in a schedule that fails, and what has not ended --- */
void model_print(const struct model_world *world);

/* --- model_rows.c: how often each event of docs/protocol.md's tables of states has happened --- */
void model_rows_print(void);
/* Prints those that never have; returns how many. */
int model_rows_missed(void);

#endif
