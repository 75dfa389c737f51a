/*
 * pattern.h: the data of a message and the proof that it arrived.
 *
 * Both nodes hold the same pseudo-random stream. The message (pair, size, iteration) is a window of it, so nothing is
 * filled or checked in a timed region, and a message that is late, repeated, shifted or another pair's is found:
 *
 *     data(pair, size, iteration)[i] = stream[offset(pair, size, iteration) + i]
 */
#ifndef WF_BENCH_PATTERN_H
#define WF_BENCH_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#define BENCH_STREAM_SLACK (4ull << 20) /* windows start in the first so many bytes */
#define BENCH_POISON 0xA5               /* what a landing holds before the data comes */
#define BENCH_GUARD 64                  /* poisoned bytes behind a landing that must stay so */
#define BENCH_SHOWN 8                   /* bytes shown of the first wrong place */
#define BENCH_PIECE (64ull << 20)       /* filled or checked at once: a fraction of a second */

/* Bytes a stream for messages of up to `largest` bytes needs. */
uint64_t bench_stream_bytes(uint64_t largest);

/* Fills the stream from `from` to `to`, both multiples of 8, as bench_stream_bytes() gives them. */
void bench_stream_fill(uint8_t *stream, uint64_t from, uint64_t to, uint64_t seed);

/* Where the window of a message starts: below BENCH_STREAM_SLACK, cache-line aligned. */
uint64_t bench_window_offset(uint64_t seed, uint32_t pair, uint64_t size, uint64_t iteration);

/* What a check found so far. */
struct bench_wrong {
    uint64_t bytes;     /* wrong bytes; 0: all right */
    uint64_t size;      /* of the message with the first one */
    uint64_t first;     /* offset of the first one; at or behind the size: written past the end */
    uint64_t iteration; /* of the message it is in */
    int shown;          /* valid bytes below */
    uint8_t expected[BENCH_SHOWN], found[BENCH_SHOWN];
};

/* Compares `length` bytes of a landing of `size` bytes and its guard, from offset `from` on; `found` is what stands
 * there, `expected` the whole message. Adds to `wrong` (all zero at first). */
void bench_verify(const uint8_t *found, const uint8_t *expected, uint64_t size, uint64_t from, uint64_t length,
                  uint64_t iteration, struct bench_wrong *wrong);

/* One sentence: first offset, what was expected, what stood there, or that only the other node knows. Returns
 * `buffer`. */
char *bench_wrong_text(const struct bench_wrong *wrong, char *buffer, size_t room);

#endif
