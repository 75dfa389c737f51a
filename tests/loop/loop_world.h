/*
 * loop_world.h: where the nodes of a loop test live: on this machine's loopback (loop_real.c), with the library's own
 * threads, or in the simulated network of tests/support (loop_sim.c), where all of it is one thread and one seed, and
 * time is simulated. A test program is linked with one of the two.
 */
#ifndef LOOP_WORLD_H
#define LOOP_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft.h"

/* Settings that every context of this world needs: "name=value name=value". */
extern const char *const loop_world_settings;

/* No threads, processes or sockets of the kernel's beside the library. */
extern const bool loop_world_simulated;

/* Called once, first: ends the program with 77 where this world cannot be had, with device memory where that is asked
 * for. */
void loop_world_begin(bool device_memory);

/* Device memory of this world, which outlives contexts. It is there as long as a context of the test's is, or any of it
 * has not been given back. Every one of these fails the test where it cannot be done. */
int loop_world_devices(void);
void *loop_world_take(int device, size_t bytes);
void loop_world_give(int device, void *memory);
/* Between any two places. */
void loop_world_copy(void *to, const void *from, size_t bytes);

/* As the functions of weft.h. */
void loop_world_context_end(struct weft_context *context);
int loop_world_context(const struct weft_config *config, struct weft_context **out, struct weft_error *err);
int loop_world_connect(struct weft_context *context, const char *address, int timeout_ms, struct weft_peer **out,
                       struct weft_error *err);
int loop_world_accept(struct weft_context *context, int timeout_ms, struct weft_peer **out, struct weft_error *err);

void loop_world_deregister(struct weft_registration *registration);

/* Only in the simulated world: inverts a bit of what a stream, chosen by the seed, delivers `ahead` bytes from now. */
void loop_world_flip(uint64_t ahead);

int64_t loop_world_now_ns(void);
void loop_world_sleep_ns(int64_t duration_ns);

#endif
