#include "pieces.h"

#include <stdlib.h>

static int compare(int64_t one, int64_t other)
{
    return (one > other) - (one < other);
}

static int by_lane(const struct bench_profile_span *one, const struct bench_profile_span *other)
{
    int order = compare(bench_span_copies(one), bench_span_copies(other));

    if (order == 0 && bench_span_copies(one))
        return compare(one->gpu, other->gpu);
    order = order ? order : compare(one->rail, other->rail);
    return order ? order : compare(one->channel, other->channel);
}

bool bench_same_lane(const struct bench_profile_span *one, const struct bench_profile_span *other)
{
    return by_lane(one, other) == 0;
}

/* Of those that begin together the longest is first: the others nest in it. */
static int by_time(const void *a, const void *b)
{
    const struct bench_profile_span *one = &((const struct bench_piece *)a)->span,
                                    *other = &((const struct bench_piece *)b)->span;
    int order = by_lane(one, other);

    order = order ? order : compare(one->begin_ns, other->begin_ns);
    order = order ? order : compare(other->end_ns, one->end_ns);
    return order ? order : compare((int64_t)one->offset, (int64_t)other->offset);
}

/* How many are left of them if every `every`-th of each lane is. With `keep` the others are taken away. */
static size_t thin(struct bench_piece *pieces, size_t count, size_t every, bool keep)
{
    size_t left = 0, place = 0;

    for (size_t i = 0; i < count; i++) {
        bool follows = i > 0 && bench_same_lane(&pieces[i - 1].span, &pieces[i].span);
        place = follows ? place + 1 : 0;
        if (place % every != 0)
            continue;
        if (keep)
            pieces[left] = pieces[i];
        left++;
    }
    return left;
}

static void cut(struct bench_piece *piece, int64_t begin_ns, int64_t end_ns)
{
    int64_t length = piece->span.end_ns - piece->span.begin_ns;

    piece->span.begin_ns = begin_ns;
    piece->span.end_ns = end_ns;
    piece->cut_ns += length - (end_ns - begin_ns);
}

static int64_t within(int64_t time, int64_t least, int64_t most)
{
    return time < least ? least : time > most ? most : time;
}

static void clip(struct bench_piece *piece, int64_t begin_ns, int64_t end_ns)
{
    int64_t begin = within(piece->span.begin_ns, begin_ns, end_ns);

    cut(piece, begin, within(piece->span.end_ns, begin, end_ns));
}

/* A stack of what is open where a piece begins: each ends no later than the one below it. */
static void part(struct bench_piece *pieces, size_t count)
{
    struct bench_piece *open[BENCH_PIECES_DRAWN];
    size_t depth = 0;

    for (size_t i = 0; i < count; i++) {
        struct bench_piece *piece = &pieces[i];
        if (i > 0 && !bench_same_lane(&pieces[i - 1].span, &piece->span))
            depth = 0;
        for (; depth > 0 && open[depth - 1]->span.end_ns < piece->span.end_ns; depth--)
            if (open[depth - 1]->span.end_ns > piece->span.begin_ns)
                cut(open[depth - 1], open[depth - 1]->span.begin_ns, piece->span.begin_ns);
        open[depth++] = piece;
    }
}

size_t bench_pieces_fit(struct bench_piece *pieces, size_t count, int64_t begin_ns, int64_t end_ns)
{
    size_t step = 1;

    if (count > 0)
        qsort(pieces, count, sizeof *pieces, by_time);
    while (step < count && thin(pieces, count, step, false) > BENCH_PIECES_DRAWN)
        step += step / 8 + 1;
    count = thin(pieces, count, step, true);
    count = count < BENCH_PIECES_DRAWN ? count : BENCH_PIECES_DRAWN;
    for (size_t i = 0; i < count; i++)
        clip(&pieces[i], begin_ns, end_ns);
    if (count > 0)
        qsort(pieces, count, sizeof *pieces, by_time);
    part(pieces, count);
    return count;
}
