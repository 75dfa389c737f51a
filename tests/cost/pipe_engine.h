/*
 * pipe_engine.h: an engine in memory that completes at once. A stream holds what was sent until it is received: bytes
 * of pieces of up to PIPE_COPIED bytes (headers, small messages) are copied, bytes of larger pieces (payload) are only
 * counted, and nothing is written where they land. So what a program over it costs is the library's cost.
 *
 * A SEND ends at once while its stream holds less than PIPE_HELD bytes, else when the receiver has taken enough: as
 * with the buffers of real sockets. A RECV takes all that is there and fits. Streams lose nothing, and poll never
 * waits.
 */
#ifndef TESTS_COST_PIPE_ENGINE_H
#define TESTS_COST_PIPE_ENGINE_H

#include "io/engine.h"

#define PIPE_COPIED (64u * 1024) /* more than the headers of a batch, which are one piece if their payload is, too */
#define PIPE_HELD (4u * 1024 * 1024)

struct pipe_end;

/* The network: what open() takes as its host. All zero at first. Descriptors are not used again. Owner: the only
 * thread. */
struct pipe_net {
    struct pipe_end *ends; /* by descriptor */
    int count, room;
    int listener; /* 1 + the first listener; 0: there is none */
};

extern const struct wf_engine_ops pipe_engine_ops;

/* After every engine is closed. */
void pipe_net_fini(struct pipe_net *net);

#endif
