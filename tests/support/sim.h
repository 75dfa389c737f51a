/*
 * sim.h: a network in memory that behaves as badly as TCP may, and the same way each time for the same seed. It is the
 * third implementation of the engine seam (io/engine.h): byte-exact streams, bounded buffers, short transfers, delays
 * that let streams overtake each other, and on request frozen, cut, ended and damaged ones.
 *
 * Time stands still until the test moves it. poll never waits: it gives what is finished now. The test's loop is
 *
 *     drive every context;
 *     if (wf_sim_next_event(sim) > wf_sim_now(sim))
 *         wf_sim_advance(sim, min(wf_sim_next_event(sim), wf_sim_timer() of each engine));
 *
 * A caller that breaks the seam's contract ends the process with a message: two readers on one descriptor, an
 * operation changed while posted, a descriptor closed while attached or detached while in use, anything left over at
 * the end. Owner: one thread.
 */
#ifndef WEFT_TESTS_SUPPORT_SIM_H
#define WEFT_TESTS_SUPPORT_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "io/engine.h"

struct wf_sim;

/* Fields left at 0 take the value in brackets. */
struct wf_sim_options {
    uint64_t seed;
    uint32_t buffer_min;  /* bytes under way or unread that a stream holds, per direction: drawn per stream, small */
    uint32_t buffer_max;  /* sizes as often as large ones [1 .. 65536] */
    int64_t delay_min_ns; /* one way, drawn per stream and direction [1000 .. 1000000] */
    int64_t delay_max_ns;
    int64_t jitter_ns;      /* most that is added to the delay of one call's bytes; order is kept [0] */
    uint32_t short_percent; /* calls that move less than they could; above 100: none [25] */
    uint32_t lag_percent;   /* ready operations that a poll passes over; above 100: none [12] */
    bool no_device_rights;  /* binding to an interface is refused, as to an unprivileged process */
};

/* NULL when memory is out. `options` NULL: all defaults, seed 0. */
struct wf_sim *wf_sim_create(const struct wf_sim_options *options);

/* Every engine must be closed and every descriptor closed before; aborts otherwise. NULL is fine. */
void wf_sim_destroy(struct wf_sim *sim);

/* The host is the struct wf_sim. Interfaces: every name exists, except those that begin with "nosuch". */
extern const struct wf_engine_ops wf_engine_sim;

/* --- time --- */

const struct wf_clock *wf_sim_clock(const struct wf_sim *sim);
int64_t wf_sim_now(const struct wf_sim *sim);

/* Now, if a poll could finish or move something at this moment (or an engine was woken); else the time at which
 * something arrives; WF_NEVER when nothing will happen by itself. */
int64_t wf_sim_next_event(struct wf_sim *sim);

/* When this engine wants to be polled again whatever happens: its last poll said how long it would have waited, or gave
 * something to do. WF_NEVER: it does not. */
int64_t wf_sim_timer(const struct wf_engine *engine);

/* The process that drives this engine stands still: that it could move something is no event, nor has it a timer. */
void wf_sim_stop(struct wf_engine *engine, bool stopped);

/* Moves time forward to `until_ns`, letting everything due on the way happen in order. Never back. */
void wf_sim_advance(struct wf_sim *sim, int64_t until_ns);

/* Advances to the next event. False: nothing will happen by itself. */
bool wf_sim_step(struct wf_sim *sim);

/* A number from the simulation's own sequence, for choices of the test that belong to the seed. */
uint64_t wf_sim_random(struct wf_sim *sim);

/* --- rails: what leaves from one local address, whatever the port --- */

struct wf_sim_rail {
    uint64_t bytes_per_second; /* shared by its streams; 0: no limit */
    int64_t delay_ns;          /* on top of each stream's own */
    bool down;                 /* nothing passes in or out, nobody is told; set-up waits too */
    bool mute;                 /* the same of what leaves from it only: it hears, and is not heard */
};
void wf_sim_set_rail(struct wf_sim *sim, const struct sockaddr_storage *local, const struct wf_sim_rail *rail);

/* --- faults; `fd` is either end of a connection --- */

/* Nothing arrives any more, in either direction, until thawed. What had arrived stays readable. */
void wf_sim_freeze(struct wf_sim *sim, int fd, bool frozen);

/* The same in one direction: at `fd` nothing arrives any more, nor does its kernel hear what the other one has got. */
void wf_sim_deafen(struct wf_sim *sim, int fd, bool deaf);

/* `fd` alone sees a reset: its peer hears of it when it sends, or when `fd` is closed, unless it is deaf. */
void wf_sim_reset(struct wf_sim *sim, int fd);

/* Something on the way ends the stream that `fd` sends: behind what is under way the peer reads the end. `fd` is not
 * told; what it sends from now on is taken by its kernel, as far as there is room, and reaches nobody. */
void wf_sim_end(struct wf_sim *sim, int fd);

/* Both ends see a reset now, even if frozen. What had arrived stays readable first. */
void wf_sim_cut(struct wf_sim *sim, int fd);

/* Damages the byte at `offset` of the stream that `fd` receives (first byte: 0). One at a time per direction: a later
 * call replaces an earlier one still ahead. False: that byte has been read already. */
bool wf_sim_flip(struct wf_sim *sim, int fd, uint64_t offset, uint8_t mask);

/* Bytes that `fd` has read so far, for choosing an offset. */
uint64_t wf_sim_bytes_read(struct wf_sim *sim, int fd);

/* A connected descriptor chosen by the seed; -1 when there is none. */
int wf_sim_pick_connection(struct wf_sim *sim);

/* Both ends of all connections, up to `max` of them; returns how many there are. */
int wf_sim_list_connections(const struct wf_sim *sim, int *fds, int max);

/* Bytes on their way into a stream. */
struct wf_sim_piece {
    uint64_t stream;  /* one direction of one connection: a number of its own, from 1 */
    uint64_t reverse; /* the other direction */
    int fd;           /* who sends */
    uint64_t offset;  /* of the first byte in the stream */
    uint8_t *bytes;
    size_t length;
};

/* Is shown everything that is sent before anybody can read it, in order, and may change the bytes. Of the simulation it
 * may only ask, and draw numbers. NULL: nobody looks. */
typedef void wf_sim_watcher(void *context, const struct wf_sim_piece *piece);
void wf_sim_watch(struct wf_sim *sim, wf_sim_watcher *watcher, void *context);

/* The number of the stream that `fd` sends; 0 when there is no peer. And of the one that it receives. */
uint64_t wf_sim_stream_of(struct wf_sim *sim, int fd);
uint64_t wf_sim_reverse_of(struct wf_sim *sim, int fd);

/* How the descriptor was marked (DSCP), and paced (bytes a second; 0: not). */
int wf_sim_dscp_of(struct wf_sim *sim, int fd);
uint64_t wf_sim_pace_of(struct wf_sim *sim, int fd);

/* Descriptors now open. */
int wf_sim_open_descriptors(const struct wf_sim *sim);

#endif
