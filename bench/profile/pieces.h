/*
 * pieces.h: the spans of one message at one end, made fit to be drawn: each lies in a lane (a channel of a rail, or the
 * copies of a GPU), and
 *
 *     begin of the message <= begin <= end <= end of the message
 *     two of a lane nest, or the one ends before the other begins
 *
 * A span that reaches out of its message is cut there: a sender hears late that its bytes have arrived. Of two that
 * overlap in part, the earlier one ends where the later begins. What was cut off is counted.
 */
#ifndef WF_BENCH_PROFILE_PIECES_H
#define WF_BENCH_PROFILE_PIECES_H

#include <stdbool.h>

#include "row.h"

struct bench_piece {
    struct bench_profile_span span; /* its times are those to draw */
    int64_t cut_ns;                 /* how much longer it was */
};

#define BENCH_PIECES_DRAWN 32 /* of a message at one end */

/* The lane of a span. */
static inline bool bench_span_copies(const struct bench_profile_span *span)
{
    return span->kind >= BENCH_SPAN_COPIED_OUT;
}

bool bench_same_lane(const struct bench_profile_span *one, const struct bench_profile_span *other);

/* Sorts by lanes and times, leaves every k-th of each lane so that at most BENCH_PIECES_DRAWN are left, and cuts them.
 * Returns how many are left; `*every` is that k. Where there are more lanes than that, the last ones have none. */
size_t bench_pieces_fit(struct bench_piece *pieces, size_t count, int64_t begin_ns, int64_t end_ns);

#endif
