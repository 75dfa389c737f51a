/*
 * loop_world.h: where the nodes of a loop test live: on this machine's loopback (loop_real.c), with the library's own
 * threads, or in the simulated network of tests/support (loop_sim.c), where all of it is one thread and one seed, and
 * time is simulated. A test program is linked with one of the two.
 */
#ifndef LOOP_WORLD_H
#define LOOP_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "weft.h"

/* Settings that every context of this world needs: "name=value name=value". */
extern const char *const loop_world_settings;

/* No threads, processes or sockets of the kernel's beside the library. */
extern const bool loop_world_simulated;

/* Called once, first: ends the program with 77 where this world cannot be had. */
void loop_world_begin(void);

/* As the functions of weft.h. */
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
