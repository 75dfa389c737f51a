#include "values.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int values_init(struct values *values, uint32_t rank, uint32_t ranks)
{
    *values = (struct values){.rank = rank, .ranks = ranks, .block = malloc(VALUES_PERIOD * sizeof(double))};
    return values->block ? 0 : -ENOMEM;
}

void values_fini(struct values *values)
{
    free(values->block);
    values->block = NULL;
}

/* Even bits of a product: cheap, and neighbours differ. */
static unsigned mixed(uint32_t place, uint32_t rank)
{
    uint32_t x = (place * 2654435761u) ^ (rank * 2246822519u);

    x ^= x >> 15;
    x *= 2246822519u;
    return (x >> 13) & 0xff;
}

/* Of an average: two neighbours are as far above and below it, and the last of an odd number has it. */
static unsigned around_average(uint32_t place, uint32_t rank, uint32_t ranks)
{
    unsigned average = mixed(place, 0) & 3, off = mixed(place, rank | 1) % (average + 1);

    if ((rank | 1) >= ranks)
        return average;
    return rank % 2 ? average - off : average + off;
}

/* An element of `rank`. Sums of up to 64 of those that are reduced stay below 256. */
static unsigned element(const struct rank_call *call, uint32_t place, uint32_t rank, uint32_t ranks)
{
    if (!rank_op_reduces(call->op))
        return mixed(place, rank) % 251;
    if (call->redop == RANK_AVG)
        return around_average(place, rank, ranks);
    return call->redop == RANK_SUM ? mixed(place, rank) & 3 : mixed(place, rank) % 251;
}

/* What becomes of the elements of all ranks. */
static unsigned reduced(const struct rank_call *call, uint32_t place, uint32_t ranks)
{
    unsigned result = element(call, place, 0, ranks);

    for (uint32_t rank = 1; rank < ranks; rank++) {
        unsigned other = element(call, place, rank, ranks);
        if (call->redop == RANK_SUM || call->redop == RANK_AVG)
            result += other;
        else if (call->redop == RANK_MIN ? other < result : other > result)
            result = other;
    }
    return call->redop == RANK_AVG ? result / ranks : result;
}

/* A whole number up to 255, as the type has it. */
static void encode(enum rank_type type, unsigned value, void *to)
{
    float single = (float)value;
    uint32_t bits;
    uint16_t half;

    memcpy(&bits, &single, sizeof bits);
    switch (type) {
    case RANK_FLOAT64:
        *(double *)to = value;
        return;
    case RANK_FLOAT32:
        *(float *)to = single;
        return;
    case RANK_FLOAT16: /* exponent by another bias; the mantissa's lower bits are 0 */
        half = value ? (uint16_t)((((bits >> 23) - 127 + 15) << 10) | ((bits >> 13) & 0x3ff)) : 0;
        memcpy(to, &half, sizeof half);
        return;
    case RANK_BFLOAT16:
        half = (uint16_t)(bits >> 16);
        memcpy(to, &half, sizeof half);
        return;
    case RANK_INT32:
        *(int32_t *)to = (int32_t)value;
        return;
    case RANK_INT64:
        *(int64_t *)to = value;
        return;
    case RANK_UINT8:
        *(uint8_t *)to = (uint8_t)value;
        return;
    }
}

/* One period: of the elements of `rank`, or of the results where that is `ranks`. */
static void make_block(struct values *values, const struct rank_call *call, uint32_t rank)
{
    uint64_t bytes = rank_type_bytes(call->type);

    for (uint32_t place = 0; place < VALUES_PERIOD; place++)
        encode(call->type,
               rank == values->ranks ? reduced(call, place, values->ranks) : element(call, place, rank, values->ranks),
               (char *)values->block + place * bytes);
}

uint64_t values_sent(const struct rank_call *call, uint32_t ranks)
{
    return call->op == BENCH_REDUCE_SCATTER || call->op == BENCH_ALL_TO_ALL ? call->count * ranks : call->count;
}

uint64_t values_received(const struct rank_call *call, uint32_t ranks)
{
    return call->op == BENCH_ALL_GATHER || call->op == BENCH_ALL_TO_ALL ? call->count * ranks : call->count;
}

void values_fill(struct values *values, const struct rank_call *call)
{
    uint64_t bytes = rank_type_bytes(call->type), left = values_sent(call, values->ranks) * bytes;
    char *to = (char *)(uintptr_t)call->send;

    make_block(values, call, values->rank);
    for (uint64_t piece; left; left -= piece, to += piece) {
        piece = left < VALUES_PERIOD * bytes ? left : VALUES_PERIOD * bytes;
        memcpy(to, values->block, piece);
    }
}

/* --- what has come --- */

static double as_number(enum rank_type type, const void *at)
{
    return type == RANK_FLOAT64 ? *(const double *)at : *(const float *)at;
}

/* The same bits, or an average of floating-point numbers that is off by no more than two units in the last place of a
 * 16-bit type, or 8 epsilon of a wider one. */
static bool right(const struct rank_call *call, const char *at, const char *expected)
{
    uint64_t bytes = rank_type_bytes(call->type);

    if (memcmp(at, expected, bytes) == 0)
        return true;
    if (!rank_op_reduces(call->op) || call->redop != RANK_AVG)
        return false;
    if (bytes == 2) { /* neighbours in their order are neighbours as bits */
        uint16_t is, shall;
        memcpy(&is, at, sizeof is);
        memcpy(&shall, expected, sizeof shall);
        return abs((int)is - (int)shall) <= 2;
    }
    if (call->type != RANK_FLOAT32 && call->type != RANK_FLOAT64)
        return false;
    double off = as_number(call->type, at) - as_number(call->type, expected);
    return fabs(off) <= 8 * (call->type == RANK_FLOAT32 ? 0x1p-23 : 0x1p-52);
}

/* Compares `count` elements at `at` with those of the block from its element `place` on. */
static uint64_t compare(struct values *values, const struct rank_call *call, const char *at, uint64_t count,
                        uint64_t place, uint64_t *first)
{
    uint64_t bytes = rank_type_bytes(call->type), wrong = 0, done = 0;

    while (done < count) {
        uint64_t from = (place + done) % VALUES_PERIOD, most = VALUES_PERIOD - from;
        uint64_t piece = count - done < most ? count - done : most;
        const char *expected = (const char *)values->block + from * bytes, *found = at + done * bytes;
        bool same = memcmp(found, expected, piece * bytes) == 0;
        for (uint64_t i = 0; !same && i < piece; i++)
            if (!right(call, found + i * bytes, expected + i * bytes) && wrong++ == 0)
                *first = done + i;
        done += piece;
    }
    return wrong;
}

/* Of which rank a part of the result is, and at which of its elements that part begins. `ranks`: the reduced ones. */
static uint32_t source_of(const struct values *values, const struct rank_call *call, uint32_t part, uint64_t *place)
{
    *place = 0;
    switch (call->op) {
    case BENCH_REDUCE_SCATTER:
        *place = values->rank * call->count;
        return values->ranks;
    case BENCH_ALL_REDUCE:
        return values->ranks;
    case BENCH_ALL_GATHER:
        return part;
    case BENCH_ALL_TO_ALL:
        *place = values->rank * call->count;
        return part;
    case BENCH_SEND_RECEIVE:
        return (values->rank + values->ranks - 1) % values->ranks;
    case BENCH_BROADCAST:
        break;
    }
    return 0; /* the root */
}

uint64_t values_wrong(struct values *values, const struct rank_call *call, uint64_t *first)
{
    uint64_t bytes = rank_type_bytes(call->type), wrong = 0, place, at = 0;
    uint32_t parts = (uint32_t)(call->count ? values_received(call, values->ranks) / call->count : 0);

    for (uint32_t part = 0; part < parts; part++) {
        make_block(values, call, source_of(values, call, part, &place));
        uint64_t found =
            compare(values, call, (const char *)call->result + part * call->count * bytes, call->count, place, &at);
        if (found && !wrong)
            *first = part * call->count + at;
        wrong += found;
    }
    return wrong;
}
