/*
 * model_faults.h: what goes wrong in a schedule, and what may come of it. Everything is drawn from the seed.
 */
#ifndef WEFT_TESTS_MODEL_FAULTS_H
#define WEFT_TESTS_MODEL_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim.h"

struct model_world;

#define MODEL_RAILS 3 /* most of one node */
#define MODEL_TRIGGERS 4
#define MODEL_MENDS 64
#define MODEL_CONTROL (-1) /* instead of a rail: the connection that says HELLO */

enum model_regime {
    MODEL_CALM,   /* nothing goes wrong */
    MODEL_SPARED, /* one pair of rails never fails: nothing may be lost */
    MODEL_CUTS,   /* connections break everywhere, and whoever dials again gets through: the same */
    MODEL_OUTAGE, /* nothing moves at all, for less than the patience of either side: the same */
    MODEL_FATAL,  /* anything: the session may fail, in an orderly way */
};

enum model_action {
    /* of one connection */
    MODEL_CUT,
    MODEL_RESET,  /* at one end; the other is deaf, or hears of it when this one is closed */
    MODEL_END,    /* the stream of one direction ends, its sender does not know */
    MODEL_DEAFEN, /* one direction stands still */
    MODEL_FREEZE, /* both do */
    MODEL_FLIP_SETUP,
    MODEL_FLIP_HEADER,
    MODEL_FLIP_PAYLOAD, /* of a frame with a checksum */
    MODEL_LIE,          /* a message that breaks the protocol, with good checksums */
    /* of several */
    MODEL_CUT_PAIR, /* all between two addresses */
    MODEL_CUT_KIND, /* all of a kind: express or bulk */
    MODEL_CUT_ALL,
    MODEL_TEAR, /* all: one node is reset, the other hears of nothing */
    MODEL_RAIL_DOWN,
    MODEL_RAIL_MUTE,
    MODEL_RAIL_SHUT, /* down, and its node's kernel says so */
    MODEL_RAIL_ROTS, /* damages payload again and again */
    /* of a node */
    MODEL_STOP, /* the process stands still, its kernel does not */
    MODEL_BLACKOUT,
    MODEL_KILL,
    MODEL_WAIT, /* for a message, to do one of the first when it passes */
    MODEL_ACTIONS
};

/* A moment to wait for: frames have their number, other things one of these. */
enum model_moment {
    MODEL_ON_SETUP = 32,   /* and the type of the message */
    MODEL_ON_REJOIN = 40,  /* and the type: of a channel that was lost before */
    MODEL_ON_RESENT = 48,  /* DATA, on another channel than at first */
    MODEL_ON_HALF_PAYLOAD, /* some of it has passed, some not */
};

struct model_trigger {
    bool armed;
    int moment;
    enum model_action action;
};

/* An action on the connection that `fd` is an end of, in a few turns. */
struct model_due {
    int turns; /* 0: none */
    int fd;
    uint64_t stream; /* it is still the same if the descriptor sends this one */
    enum model_action action;
};

/* Something that ends by itself. */
struct model_mend {
    int64_t at_ns; /* 0: none */
    int fd;        /* of a connection, or 0 */
    uint64_t stream;
    int node, rail;
};

struct model_faults {
    enum model_regime regime;
    bool active;    /* faults may begin */
    bool may_fail;  /* the session, in this schedule */
    bool must_fail; /* the same */
    bool broad;     /* CUTS: damage on every rail, and silence on none */
    bool at_joining, at_closing;
    int budget;      /* faults still to come */
    uint64_t period; /* turns between them, about */
    int spared[2];   /* rail of each node: nothing between these two fails, as far as the regime says */
    int rail_count[2];
    struct wf_sim_rail rails[2][MODEL_RAILS];
    uint32_t rots[2][MODEL_RAILS];          /* percent of payloads that are damaged */
    bool damaged[MODEL_RAILS][MODEL_RAILS]; /* something that went between these rails was */
    int64_t stopped_until_ns[2];            /* 0: it runs */
    int64_t outage_over_ns;
    uint64_t device_looks; /* turns in which a message went on device channels */
    int device_cuts;       /* how often all of these were cut */
    int lie_about;   /* the next set-up message of this type tells lies; 0: none */
    int64_t calm_ns; /* when the last fault that ends by itself is over */
    struct model_trigger triggers[MODEL_TRIGGERS];
    struct model_due due[MODEL_TRIGGERS];
    struct model_mend mends[MODEL_MENDS];
    struct model_stream *streams; /* by number; model_wire.c */
    uint64_t stream_room;
    uint64_t injected[MODEL_ACTIONS];
};

/* --- model_faults.c --- */

/* Draws what will go wrong; before the contexts exist, and once their rails are known. */
void model_faults_draw(struct model_world *world);
void model_faults_open(struct model_world *world);
void model_faults_close(struct model_world *world);
/* One turn: what is due happens, what is over is mended, something new may begin. */
void model_faults_turn(struct model_world *world);
/* When something is mended next; WF_NEVER. */
int64_t model_faults_next(const struct model_world *world);
/* No new faults; with `mend`, those there are end now. */
void model_faults_stop(struct model_world *world, bool mend);
/* The sessions are about to be closed. */
void model_faults_part(struct model_world *world);
/* Does the process of this node stand still? */
bool model_stopped(const struct model_world *world, int node);
/* One of them: its user does nothing either. */
bool model_standing_still(const struct model_world *world);
/* May this be done to a connection between these rails? */
bool model_faults_may(const struct model_world *world, enum model_action action, const int rails[2]);
/* The text of "127.0.1.1,127.0.2.1". */
void model_rail_list(char *text, size_t room, int node, int count);
/* Has payload been damaged? It may lie in the memory of what has failed. */
bool model_faults_damaged(const struct model_world *world);

/* --- model_wire.c --- */

void model_wire_open(struct model_world *world);
void model_wire_close(struct model_world *world);
/* The rail that has an address. */
int model_rail_of(const struct sockaddr_storage *address);
/* Which rails `fd` connects, by node, and whose end it is. */
int model_wire_ends(const struct model_world *world, int fd, int rails[2]);
/* Of a framed stream that `fd` sends: is it one of an express channel? */
bool model_wire_is_express(struct model_world *world, int fd);
/* Of a device channel, or its payload? */
bool model_wire_is_device(struct model_world *world, int fd);
/* Arms damage of the next such part of what `fd` sends. */
void model_wire_damage(struct model_world *world, int fd, enum model_action action);

#endif
