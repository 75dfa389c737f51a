/* Runs the kernels of transport/mem/kernels.cu on the processor, thread by thread, and compares with the references. */
#include "mem/kernels.cu"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_state = 88172645463325252u;

/* xorshift64 (Marsaglia). */
static uint64_t below(uint64_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % bound;
}

template <typename Body> static void each_thread(place grid, place block, Body body)
{
    gridDim = grid;
    blockDim = block;
    for (unsigned int by = 0; by < grid.y; by++)
        for (unsigned int bx = 0; bx < grid.x; bx++)
            for (unsigned int ty = 0; ty < block.y; ty++)
                for (unsigned int tx = 0; tx < block.x; tx++) {
                    blockIdx = {bx, by, 0};
                    threadIdx = {tx, ty, 0};
                    body();
                }
}

static void check(const void *got, const void *wanted, uint64_t bytes, const char *what, uint64_t number)
{
    if (memcmp(got, wanted, bytes) == 0)
        return;
    fprintf(stderr, "%s %llu is wrong\n", what, (unsigned long long)number);
    exit(1);
}

static const uint64_t room = 1 << 20;
static unsigned char *source, *target, *wanted;

static void fill(unsigned char *memory)
{
    for (uint64_t i = 0; i < room; i++)
        memory[i] = (unsigned char)below(256);
}

/* Every difference of alignment, and lengths around those at which a kernel changes its mind. */
static void move_pieces_at_random(uint64_t round)
{
    static const uint64_t lengths[] = {0, 1, 3, 4, 15, 16, 17, 31, 100, 511, 512, 2048, 2049, 8191, 8192, 8193, 30000};
    const unsigned int most = 20;
    wf_gather_piece pieces[most];
    unsigned int count = 1 + (unsigned int)below(most), slices = 1 + (unsigned int)below(5);
    uint64_t at = below(16);
    place grid = {(count + 7) / 8, slices, 1}, block = {32, 8, 1};

    for (unsigned int i = 0; i < count; i++) {
        uint64_t bytes = lengths[below(sizeof(lengths) / sizeof(*lengths))];
        pieces[i] = {(uint64_t)source + i * 32768 + below(64), at, bytes};
        at += bytes + below(3);
    }
    fill(source);
    fill(target);
    memcpy(wanted, target, room);
    wf_reference_gather(wanted, pieces, (int)count);
    each_thread(grid, block, [&] { weft_gather((const piece *)pieces, count, (char *)target); });
    check(target, wanted, room, "gather", round);

    memcpy(wanted, source, room);
    fill(target);
    for (unsigned int i = 0; i < count; i++)
        pieces[i].address += (uint64_t)(wanted - source);
    wf_reference_scatter(target, pieces, (int)count);
    for (unsigned int i = 0; i < count; i++)
        pieces[i].address -= (uint64_t)(wanted - source);
    each_thread(grid, block, [&] { weft_scatter((const piece *)pieces, count, (char *)target); });
    check(source, wanted, room, "scatter", round);
}

template <typename T> static void sum_at_random(enum wf_number type, void (*kernel)(T *, const T *, uint64_t),
                                                uint64_t round)
{
    uint64_t count = below(3000);
    uint64_t to = below(8) * sizeof(T), from = below(3) ? to : below(8) * sizeof(T);

    fill(source);
    fill(target);
    /* Without exponents that make numbers which are none: their bits are nobody's promise. */
    for (uint64_t i = 0; i + sizeof(T) <= room; i += sizeof(T)) {
        source[i + sizeof(T) - 1] &= 0xBF;
        target[i + sizeof(T) - 1] &= 0xBF;
    }
    memcpy(wanted, target, room);
    wf_reference_sum(type, wanted + to, source + from, count);
    each_thread({1 + (unsigned int)below(3), 1, 1}, {256, 1, 1},
                [&] { kernel((T *)(target + to), (const T *)(source + from), count); });
    check(target, wanted, room, "sum", round);
}

int main()
{
    source = (unsigned char *)aligned_alloc(64, room);
    target = (unsigned char *)aligned_alloc(64, room);
    wanted = (unsigned char *)aligned_alloc(64, room);
    static_assert(sizeof(piece) == sizeof(wf_gather_piece), "the table of pieces");
    for (uint64_t round = 0; round < 60; round++) {
        move_pieces_at_random(round);
        sum_at_random<float>(WF_NUMBER_FLOAT32, weft_sum_float32, round);
        sum_at_random<__half>(WF_NUMBER_FLOAT16, weft_sum_float16, round);
        sum_at_random<__nv_bfloat16>(WF_NUMBER_BFLOAT16, weft_sum_bfloat16, round);
        sum_at_random<unsigned int>(WF_NUMBER_INT32, weft_sum_int32, round);
    }
    free(source);
    free(target);
    free(wanted);
    return 0;
}
