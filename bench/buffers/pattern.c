#include "pattern.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench/words/random.h"

#define BLOCK (64u << 10) /* compared at once: the fast path is memcmp */
#define WINDOW_STEP 64u

uint64_t bench_stream_bytes(uint64_t largest)
{
    return (largest + BENCH_STREAM_SLACK + 7) & ~7ull;
}

void bench_stream_fill(uint8_t *stream, uint64_t from, uint64_t to, uint64_t seed)
{
    uint64_t key = bench_random_mix(seed + BENCH_GOLDEN);

    for (uint64_t at = from; at + 8 <= to; at += 8) {
        uint64_t word = bench_random_mix(key + at * BENCH_GOLDEN);
        memcpy(stream + at, &word, sizeof word);
    }
}

uint64_t bench_window_offset(uint64_t seed, uint32_t pair, uint64_t size, uint64_t iteration)
{
    /* An odd stride makes neighbouring iterations and pairs differ for certain, not only probably. */
    uint64_t start = bench_random_mix(seed ^ size) + pair * 40503ull + iteration * 25717ull;

    return start % (BENCH_STREAM_SLACK / WINDOW_STEP) * WINDOW_STEP;
}

static void note_first(const uint8_t *landing, const uint8_t *expected, uint64_t at, uint64_t left,
                       struct bench_wrong *wrong)
{
    wrong->shown = left < BENCH_SHOWN ? (int)left : BENCH_SHOWN;
    memcpy(wrong->expected, expected, (size_t)wrong->shown);
    memcpy(wrong->found, landing, (size_t)wrong->shown);
    wrong->first = at;
}

/* The slow path: a block that is known to differ. `base` is its offset in the message. */
static void count_wrong(const uint8_t *landing, const uint8_t *expected, uint64_t base, uint64_t length,
                        uint64_t iteration, struct bench_wrong *wrong)
{
    for (uint64_t i = 0; i < length; i++) {
        if (landing[i] == expected[i])
            continue;
        if (wrong->bytes++ == 0) {
            wrong->iteration = iteration;
            note_first(landing + i, expected + i, base + i, length - i, wrong);
        }
    }
}

void bench_verify(const uint8_t *found, const uint8_t *expected, uint64_t size, uint64_t from, uint64_t length,
                  uint64_t iteration, struct bench_wrong *wrong)
{
    uint64_t end = from + length, data_end = end < size ? end : size;
    uint8_t guard[BENCH_GUARD];

    if (wrong->bytes == 0)
        wrong->size = size;
    for (uint64_t at = from; at < data_end; at += BLOCK) {
        uint64_t block = data_end - at < BLOCK ? data_end - at : BLOCK;
        if (memcmp(found + (at - from), expected + at, block) != 0)
            count_wrong(found + (at - from), expected + at, at, block, iteration, wrong);
    }
    if (end <= size)
        return;
    from = from > size ? from : size;
    memset(guard, BENCH_POISON, sizeof guard);
    found += length - (end - from);
    if (memcmp(found, guard, end - from) != 0)
        count_wrong(found, guard, from, end - from, iteration, wrong);
}

static void hex(const uint8_t *bytes, int count, char *text)
{
    for (int i = 0; i < count; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    text[2 * count] = '\0';
}

char *bench_wrong_text(const struct bench_wrong *wrong, char *buffer, size_t room)
{
    char expected[2 * BENCH_SHOWN + 1], found[2 * BENCH_SHOWN + 1];
    const char *hint = "";
    int poison = 0;

    if (wrong->shown < 1) {
        snprintf(buffer, room, "%" PRIu64 " wrong bytes, found by the other node", wrong->bytes);
        return buffer;
    }
    hex(wrong->expected, wrong->shown, expected);
    hex(wrong->found, wrong->shown, found);
    while (poison < wrong->shown && wrong->found[poison] == BENCH_POISON)
        poison++;
    if (wrong->first >= wrong->size)
        hint = " (written past the end)";
    else if (poison == wrong->shown && poison > 1)
        hint = " (never written)";
    snprintf(buffer, room,
             "%" PRIu64 " wrong bytes, the first at offset %" PRIu64 " of iteration %" PRIu64
             ": expected %s, found %s%s",
             wrong->bytes, wrong->first, wrong->iteration, expected, found, hint);
    return buffer;
}
