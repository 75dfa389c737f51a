/*
 * gpu.h: messages between chosen devices of the simulated world, and a look at what a context keeps of them. What all
 * these tests claim: whatever devices do, every operation ends, once, and no slot is lost.
 */
#ifndef GPU_H
#define GPU_H

#include "astray.h"
#include "loop_sim.h"

#define HOST LOOP_NO_DEVICE
#define LEFT (astray_pair.node[0].connection)
#define RIGHT (astray_pair.node[1].connection)

/* astray_pair as one context that has connected to itself: LEFT sends from endpoint 1, RIGHT receives at endpoint 0. */
void gpu_self_create(const char *settings);
void gpu_self_destroy(void);

/* A message from [0] to [1], its memory on these devices (or HOST), posted on both sides. */
void gpu_message_post(struct loop_message *message, int from, int to, size_t size, uint64_t tag);
/* Both sides end well, and every byte is right. */
void gpu_message_finish(struct loop_message *message);
/* One of it, from its post to its end. */
void gpu_exchange(int from, int to, size_t size, uint64_t tag);

/* Ends in `status`, with a text that names the GPU and the bytes of the message that it failed to copy. */
void gpu_ends_badly(struct weft_request *request, int status, int device);
/* Ends in an error, whichever: cancelled, where nobody has told it of the other side's. */
void gpu_ends_somehow(struct weft_request *request);

/* Soon every slot of every device of both contexts is back, no copy is under way, and no message is left over. */
void gpu_check_clean(void);

/* Whether the staging of each device in use is kept from children of this process. */
bool gpu_staging_is_ours(const struct weft_context *context);

#endif
