/*
 * profile.h: what NCCL's profiler hears of a part and of its chunks: an event of the whole, and one of each of the
 * first chunks. Chunks begin and end on Weft's threads, which only note it. The profiler is called when NCCL posts and
 * tests, as it is by NCCL's transport for InfiniBand: what an event belongs to exists no longer than NCCL asks for the
 * request. Where an operation is stopped, events end, and none begins.
 *
 * With plugin_comm.lock held; the memory stays until the library has let go of the part.
 */
#ifndef WEFT_NCCL_PROFILE_H
#define WEFT_NCCL_PROFILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "plugins/nccl/abi.h"
#include "weft.h"

/* NCCL's example of a profiler keeps eight events of a request, and writes a ninth behind them. */
#define PLUGIN_CHUNKS_TOLD 7

struct plugin_chunk {
    size_t bytes;
    int fd;
    _Atomic bool ended;
    bool told;   /* the profiler knows that it has begun; with the lock, as the next */
    void *event; /* what it has given for that; NULL: it records none, or knows of the end, too */
};

struct plugin_profile {
    nccl_profiler profiler;
    void *phandle; /* what the events belong to */
    void *event;   /* of the whole; NULL: none */
    bool receives;
    _Atomic int begun; /* chunks, the first ones in `chunks` */
    struct plugin_chunk chunks[PLUGIN_CHUNKS_TOLD];
};

/* An operation of `bytes` begins. Its `options` get what tells of chunks. */
void plugin_profile_begin(struct plugin_profile *profile, nccl_profiler profiler, void *phandle, bool receives,
                          size_t bytes, struct weft_options *options);
/* Tells of what chunks have done. */
void plugin_profile_look(struct plugin_profile *profile);
/* The operation has ended, or was never begun. */
void plugin_profile_end(struct plugin_profile *profile);

#endif
