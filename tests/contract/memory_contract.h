/*
 * memory_contract.h: one suite for everything behind mem/memory.h. A kind tells how its world is made and what can
 * happen in it; the cases see the ops table and nothing else.
 */
#ifndef WEFT_TESTS_CONTRACT_MEMORY_CONTRACT_H
#define WEFT_TESTS_CONTRACT_MEMORY_CONTRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem/memory.h"

#define DEVICES 2                                   /* in every world, at least */
#define DEVICE_BYTES ((uint64_t)(64) * 1024 * 1024) /* of each */

/* A kind of memory. The functions get the world's host; NULL functions: nothing of that kind can happen. */
struct memory_kind {
    const char *name;
    const struct wf_memory_ops *ops;
    bool threads; /* several threads may call at the same time */
    bool real;    /* GPUs, as many as there are: nothing goes wrong with them on demand */
    int seeds;    /* worlds in which each case is run */

    /* Is there such a kind on this machine? */
    int (*probe)(struct wf_status *status);

    void *(*create)(uint64_t seed);
    /* Fails the test if anything was left behind. */
    void (*destroy)(void *host);
    /* A moment goes by. */
    void (*pass)(void *host);

    void (*fail_copy)(void *host, int device, enum wf_copy_way way); /* the next one, on its way */
    /* The `at`-th piece of the next copy, when it is started; 1: the first. */
    void (*refuse_piece)(void *host, int device, enum wf_copy_way way, int at);
    void (*fail_alloc)(void *host, int device);
    void (*fail_pin)(void *host);
    void (*lose)(void *host, int device);

    /* A stream of the user's on a device, and work in it: `blocked` work ends with stream_release, not before. */
    void *(*stream_create)(void *host, int device);
    void (*stream_destroy)(void *host, void *stream);
    void *(*stream_handle)(void *host, void *stream); /* as the table of functions takes it */
    void (*stream_block)(void *host, void *stream);
    void (*stream_release)(void *host, void *stream);
    /* Host memory to the device's; both stay until it has happened. */
    void (*stream_write)(void *host, void *stream, void *to, const void *from, uint64_t bytes);

    int (*retained)(void *host, int device);    /* contexts in use of a device; -1: nobody knows */
    void *(*current)(void *host);               /* what a thread has as its own, which calls must not change */
    void (*set_current)(void *host, bool own);  /* something of the test's; false: nothing */
    uint64_t (*waits)(void *host);              /* calls so far that waited for a device */
    uint64_t (*copies)(void *host, int device); /* pieces copied so far */
};

extern const struct memory_kind memory_emulated;
extern const struct memory_kind memory_simulated;
extern const struct memory_kind memory_gpu;

/* A world, open, with its first devices in use. */
struct memory_world {
    const struct memory_kind *kind;
    const struct wf_memory_ops *ops;
    void *host;
    struct wf_memory *memory;
    int devices; /* in use: 1 or 2 */
    int other;   /* the last of them; the first is 0 */
    uint64_t random_state;
};

void memory_world_open(struct memory_world *world, const struct memory_kind *kind, uint64_t seed);
void memory_world_close(struct memory_world *world);
uint64_t memory_random(struct memory_world *world, uint64_t below);

/* Device memory; fails the test where there is none. */
uint8_t *device_take(struct memory_world *world, int device, uint64_t bytes);
void device_give(struct memory_world *world, int device, void *base);
/* What copy_now puts there, and whether it is there. */
void device_fill(struct memory_world *world, void *base, const void *content, uint64_t bytes);
void device_expect(struct memory_world *world, const void *base, const void *content, uint64_t bytes);

/* Host memory, page-aligned. */
uint8_t *host_take(uint64_t bytes);
void host_give(uint8_t *base, uint64_t bytes);
/* Different at every place and for every seed. */
void pattern_fill(uint8_t *base, uint64_t bytes, uint64_t seed);

/* Asks until the copy has ended; returns how. Fails the test where that takes a minute. */
int copy_await(struct memory_world *world, struct wf_copy *copy);
/* One piece, started and awaited. */
int copy_once(struct memory_world *world, int device, enum wf_copy_way way, void *to, const void *from, uint64_t bytes);

/* memory_cases.c */
void opens_and_describes(struct memory_world *world);
void copies_all_sizes(struct memory_world *world);
void copies_many_pieces(struct memory_world *world);
void copies_in_several_calls(struct memory_world *world);
void copies_between_devices(struct memory_world *world);
void copies_many_at_once(struct memory_world *world);
void copies_by_many_threads(struct memory_world *world);
void keeps_the_threads_state(struct memory_world *world);
void waits_for_no_device(struct memory_world *world);
void copies_now(struct memory_world *world);

/* memory_cases_place.c */
void locates(struct memory_world *world);
void refuses_a_range_over_two(struct memory_world *world);
void tells_allocations_apart(struct memory_world *world);
void runs_out_of_memory(struct memory_world *world);
void pins(struct memory_world *world);
void exports_or_says_why(struct memory_world *world);

/* memory_cases_fate.c */
void marks_what_a_stream_has(struct memory_world *world);
void holds_a_stream(struct memory_world *world);
void survives_a_copy_that_fails(struct memory_world *world);
void survives_a_piece_that_is_refused(struct memory_world *world);
void loses_a_device(struct memory_world *world);
void closes_after_a_loss(struct memory_world *world);

#endif
