/*
 * pipe_stream.h: what one direction of a stream holds: bytes that were copied and bytes that are only counted, in the
 * order in which they were sent. All zero: empty. Owner: the end that receives.
 */
#ifndef TESTS_COST_PIPE_STREAM_H
#define TESTS_COST_PIPE_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

/* Bytes of one sort that follow each other. */
struct pipe_run {
    uint64_t length;
    bool counted;
};

/* Both are rings, of a power of two; `first` and `end` only grow. */
struct pipe_stream {
    uint64_t held; /* bytes of both sorts */
    uint8_t *bytes;
    uint32_t byte_room, first_byte, end_byte;
    struct pipe_run *runs;
    uint32_t run_room, first_run, end_run;
};

/* Takes all bytes of the pieces. Aborts without memory. Returns how many. */
uint64_t pipe_stream_put(struct pipe_stream *stream, const struct iovec *pieces, int count);

/* Gives what is there and fits. Where counted bytes land nothing is written. Returns how many. */
uint64_t pipe_stream_take(struct pipe_stream *stream, const struct iovec *pieces, int count);

void pipe_stream_free(struct pipe_stream *stream);

#endif
