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
#include "sim_memory.h"
#include "weft.h"

#define MODEL_DELAY_MAX_NS (20 * WF_NS_PER_MS) /* the longest way of a byte, where ways differ */
#define MODEL_CONNECTIONS 3
#define MODEL_MESSAGES 24 /* most sends, and most receives, of one direction */
#define MODEL_TAG_LAST 99
#define MODEL_CONNECT_S 5 /* connect_timeout */

/* Everything that happened under one seed stops here with a line that repeats it. */
void model_fail(const char *file, int line, const char *what, long long value);
#define MODEL_CHECK(condition, value)                                                                                  \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            model_fail(__FILE__, __LINE__, #condition, (long long)(value));                                            \
    } while (0)

struct model_send {
    uint32_t size;
    uint64_t tag;
    void *memory;                 /* as the library knows it */
    uint8_t *data;                /* the same; ruined as soon as the request has completed */
    struct weft_request *request; /* NULL once collected */
    bool cancelled;               /* asked to, or has a deadline */
    int status;
    int taken_by; /* receive that got it, or -1 */
};

struct model_receive {
    uint32_t capacity;
    uint64_t tag;
    bool any;
    void *memory;
    uint8_t *data;
    uint32_t room; /* bytes behind `data`: capacity and a margin that must stay poisoned */
    struct weft_request *request;
    bool cancelled;
    int status;
    uint64_t bytes;
    int got; /* index of the send, or -1 */
};

/* One direction of one connection. */
struct model_lane {
    struct weft_connection *sender, *receiver;
    int send_count, receive_count;
    struct model_send sends[MODEL_MESSAGES + 1]; /* and the last one */
    struct model_receive receives[2 * MODEL_MESSAGES + 4];
    bool last_sent, last_received;
};

/* --- one-sided operations (model_remote.c) --- */

#define MODEL_OPS 8
#define MODEL_PIECES 12
#define MODEL_REGIONS 2 /* the last one may end in the middle */
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
    int op_count, receive_count;
    struct model_op ops[MODEL_OPS];
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
    int64_t timeout_ns, rail_timeout_ns;
    struct model_faults faults;
    struct wf_sim *sim;
    struct wf_sim_memory *devices; /* NULL: a schedule without */
    bool failing;                  /* some copies of devices fail */
    uint64_t buffers;              /* so far */
    struct model_node nodes[2];    /* 0 listens, 1 dials */
    int connection_count;
    struct weft_connection *connections[MODEL_CONNECTIONS][2];
    struct model_lane lanes[MODEL_CONNECTIONS][2]; /* by sending node */
    struct model_side sides[MODEL_CONNECTIONS][2]; /* by asking node */
    uint32_t largest;
    uint64_t remote_largest; /* of one-sided operations */
    uint64_t one_sided;      /* percent of posts that are one-sided operations */
    uint64_t pressure;       /* percent of steps that post rather than drive */
    uint64_t turns;
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
/* No copy that starts from now on fails. */
void model_devices_mend(struct model_world *world);
/* Memory of a user of `node`, on a device or not. `*view`: where the test sees it. */
void *model_memory_take(struct model_world *world, int node, uint64_t bytes, uint8_t **view);
void model_memory_give(struct model_world *world, void *memory);
/* Bits of the seed's own for what is not drawn. */
uint64_t model_bits(const struct model_world *world, uint64_t salt);

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

/* --- model_messages.c: posts, completions, the reference --- */
void model_act(struct model_world *world); /* one random action of a user */
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

/* --- model_print.c: what went wrong in a schedule that fails, and what has not ended --- */
void model_print(const struct model_world *world);

/* --- model_rows.c: how often each event of docs/protocol.md's tables of states has happened --- */
void model_rows_print(void);
/* Prints those that never have; returns how many. */
int model_rows_missed(void);

#endif
