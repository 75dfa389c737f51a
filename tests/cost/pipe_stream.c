#include "pipe_stream.h"

#include <stdlib.h>
#include <string.h>

#include "pipe_engine.h"

#define BYTES_MIN 4096
#define RUNS_MIN 32

static void *demand(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

/* --- bytes --- */

/* The bytes from `at` on that lie in one piece. */
static uint32_t unbroken(const struct pipe_stream *stream, uint32_t at, uint64_t bytes)
{
    uint32_t to_end = stream->byte_room - (at & (stream->byte_room - 1));
    return bytes < to_end ? (uint32_t)bytes : to_end;
}

static void copy_out(const struct pipe_stream *stream, uint8_t *to, uint32_t at, uint64_t bytes)
{
    while (bytes > 0) {
        uint32_t part = unbroken(stream, at, bytes);
        memcpy(to, stream->bytes + (at & (stream->byte_room - 1)), part);
        to += part;
        at += part;
        bytes -= part;
    }
}

static void grow_bytes(struct pipe_stream *stream, uint64_t wanted)
{
    uint32_t used = stream->end_byte - stream->first_byte, room = stream->byte_room ? stream->byte_room : BYTES_MIN;
    while (room < used + wanted)
        room *= 2;
    if (room == stream->byte_room)
        return;
    uint8_t *bytes = demand(malloc(room));
    copy_out(stream, bytes, stream->first_byte, used);
    free(stream->bytes);
    stream->bytes = bytes;
    stream->byte_room = room;
    stream->first_byte = 0;
    stream->end_byte = used;
}

static void copy_in(struct pipe_stream *stream, const uint8_t *from, uint64_t bytes)
{
    grow_bytes(stream, bytes);
    while (bytes > 0) {
        uint32_t part = unbroken(stream, stream->end_byte, bytes);
        memcpy(stream->bytes + (stream->end_byte & (stream->byte_room - 1)), from, part);
        from += part;
        stream->end_byte += part;
        bytes -= part;
    }
}

/* --- runs --- */

static struct pipe_run *run_at(const struct pipe_stream *stream, uint32_t at)
{
    return &stream->runs[at & (stream->run_room - 1)];
}

static void grow_runs(struct pipe_stream *stream)
{
    uint32_t used = stream->end_run - stream->first_run, room = stream->run_room ? 2 * stream->run_room : RUNS_MIN;
    if (used < stream->run_room)
        return;
    struct pipe_run *runs = demand(malloc(room * sizeof *runs));
    for (uint32_t i = 0; i < used; i++)
        runs[i] = *run_at(stream, stream->first_run + i);
    free(stream->runs);
    stream->runs = runs;
    stream->run_room = room;
    stream->first_run = 0;
    stream->end_run = used;
}

static void add_run(struct pipe_stream *stream, uint64_t length, bool counted)
{
    struct pipe_run *last = stream->end_run == stream->first_run ? NULL : run_at(stream, stream->end_run - 1);
    if (last && last->counted == counted) {
        last->length += length;
        return;
    }
    grow_runs(stream);
    *run_at(stream, stream->end_run++) = (struct pipe_run){length, counted};
}

/* --- both --- */

uint64_t pipe_stream_put(struct pipe_stream *stream, const struct iovec *pieces, int count)
{
    uint64_t put = 0;
    for (int i = 0; i < count; i++) {
        bool counted = pieces[i].iov_len > PIPE_COPIED;
        if (pieces[i].iov_len == 0)
            continue;
        add_run(stream, pieces[i].iov_len, counted);
        if (!counted)
            copy_in(stream, pieces[i].iov_base, pieces[i].iov_len);
        put += pieces[i].iov_len;
    }
    stream->held += put;
    return put;
}

/* From one run, into one piece. */
static uint64_t take_part(struct pipe_stream *stream, uint8_t *to, uint64_t room)
{
    struct pipe_run *run = run_at(stream, stream->first_run);
    uint64_t part = run->length < room ? run->length : room;
    if (!run->counted) {
        copy_out(stream, to, stream->first_byte, part);
        stream->first_byte += (uint32_t)part;
    }
    run->length -= part;
    stream->first_run += run->length == 0;
    return part;
}

uint64_t pipe_stream_take(struct pipe_stream *stream, const struct iovec *pieces, int count)
{
    uint64_t taken = 0;
    for (int i = 0; i < count; i++) {
        uint64_t within = 0;
        while (within < pieces[i].iov_len && taken < stream->held) {
            uint64_t part = take_part(stream, (uint8_t *)pieces[i].iov_base + within, pieces[i].iov_len - within);
            within += part;
            taken += part;
        }
    }
    stream->held -= taken;
    return taken;
}

void pipe_stream_free(struct pipe_stream *stream)
{
    free(stream->bytes);
    free(stream->runs);
    *stream = (struct pipe_stream){0};
}
