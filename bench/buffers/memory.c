#include "memory.h"

#include <stdio.h>
#include <string.h>

#include "bench/words/words.h"
#include "pattern.h"

#define PAGE 4096ull
/* What a process needs beside the buffers: its own pools and threads, up to 20 MiB, and what the kernel keeps in its
 * sockets, measured over loopback with 2 to 8 rails of up to 8 channels at up to 57 MiB of each node. */
#define LIBRARY_BYTES (96ull << 20)
/* Of these a process has taken so much before it compares again, with the other node. */
#define MET_BYTES (4ull << 20)
#define PROFILE_ROW_BYTES 192ull  /* of a message of a profile, */
#define PROFILE_PIECE_BYTES 56ull /* of a piece of it or of the piece's copy, */
#define PROFILE_PIECES 128ull     /* of which at most so many are kept at each end */
#define PAGE_ENTRY 8              /* bytes of a page table, for each page of a buffer */

uint64_t bench_landing_stride(uint64_t size)
{
    return (size + BENCH_GUARD + PAGE - 1) & ~(PAGE - 1);
}

/* Only the two endpoints of a ping-pong have it. */
uint64_t bench_background_need(const struct bench_plan *plan, int node, uint32_t places, uint32_t place)
{
    if (!plan->background || !bench_plan_receivers_at(plan, BENCH_ISOLATED, node, places, place))
        return 0;
    return plan->background_inflight * bench_landing_stride(plan->background);
}

uint64_t bench_landings_need(const struct bench_plan *plan, int node, uint32_t places, uint32_t place)
{
    uint64_t most = 0;

    for (int mode = 0; mode < BENCH_MODES; mode++) {
        uint64_t receivers = plan->modes[mode] ? bench_plan_receivers_at(plan, mode, node, places, place) : 0;
        for (int i = 0; i < plan->size_count; i++) {
            uint64_t count = receivers * bench_plan_areas(plan, plan->sizes[i]), bytes;
            if (__builtin_mul_overflow(count, bench_landing_stride(plan->sizes[i]), &bytes))
                return UINT64_MAX;
            if (bytes > most)
                most = bytes;
        }
    }
    return most;
}

/* Either way of a ping-pong has its own: neither node's data can pass for the other's. */
uint64_t bench_sender_areas(const struct bench_plan *plan, uint64_t size)
{
    return (uint64_t)bench_plan_areas(plan, size) * (plan->latency ? 2 : 1);
}

/* Both nodes hold what either sends, to verify it. */
uint64_t bench_stream_need(const struct bench_plan *plan)
{
    uint64_t largest = bench_plan_largest(plan);
    uint64_t most = bench_stream_bytes(plan->background > largest ? plan->background : largest);

    for (int mode = 0; plan->buffers && mode < BENCH_MODES; mode++)
        for (int i = 0; plan->modes[mode] && i < plan->size_count * 2; i++) {
            uint64_t size = plan->sizes[i / 2], senders = bench_plan_senders(plan, mode, i % 2), bytes;
            if (__builtin_mul_overflow(senders * bench_sender_areas(plan, size), bench_landing_stride(size), &bytes))
                return UINT64_MAX;
            if (bytes > most)
                most = bytes;
        }
    return most;
}

uint64_t bench_stream_need_at(const struct bench_plan *plan, int node, uint32_t places, uint32_t place)
{
    bool sends = false;

    for (int mode = 0; mode < BENCH_MODES; mode++)
        sends |= plan->modes[mode] && bench_plan_senders_at(plan, mode, node, places, place) > 0;
    return sends ? bench_stream_need(plan) : 0;
}

/* Either end of each pair, and again where it is GPU memory: there each piece is copied, too. */
static uint64_t traced_ends(const struct bench_plan *plan)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < plan->pair_count; i++)
        count += 2ull + (plan->pairs[i].src_memory != BENCH_HOST) + (plan->pairs[i].dst_memory != BENCH_HOST);
    return count;
}

/* What both nodes saw of the messages of a profile, and pieces of them at both ends, in lists that grow by doubling. */
static uint64_t profile_need(const struct bench_plan *plan)
{
    uint64_t sum = 0, ends = traced_ends(plan), bytes;

    for (int i = 0; plan->command == BENCH_PROFILE && i < plan->size_count; i++) {
        uint64_t pieces = 1 + plan->sizes[i] / plan->chunk;
        sum += PROFILE_ROW_BYTES * plan->pair_count +
               2 * PROFILE_PIECE_BYTES * ends * (pieces < PROFILE_PIECES ? pieces : PROFILE_PIECES);
    }
    if (__builtin_mul_overflow(sum, (uint64_t)plan->iters * (uint64_t)plan->backend_count, &bytes))
        return UINT64_MAX;
    return bytes;
}

/* Times of one phase, and the samples of all; of a group, node0 has those of all nodes. */
static uint64_t records_need(const struct bench_plan *plan, int node)
{
    enum bench_mode mode = plan->modes[BENCH_LOADED] ? BENCH_LOADED : BENCH_ISOLATED;
    uint64_t pairs = bench_plan_span(plan, mode), longest = plan->warmup, times, samples;
    uint64_t kept = bench_plan_samples(plan);

    for (int i = 0; i < plan->size_count; i++)
        if (bench_plan_most_iters(plan, plan->sizes[i], (uint32_t)pairs) > longest)
            longest = bench_plan_most_iters(plan, plan->sizes[i], (uint32_t)pairs);
    if (plan->bouts && node > 0)
        kept = kept / plan->pair_count * plan->busiest;
    if (__builtin_mul_overflow(pairs * (sizeof(double) + sizeof(int64_t)), longest, &times) ||
        __builtin_mul_overflow(kept, BENCH_SAMPLE_BYTES, &samples))
        return UINT64_MAX;
    if (__builtin_add_overflow(times, samples, &samples) ||
        __builtin_add_overflow(samples, profile_need(plan), &samples))
        return UINT64_MAX;
    return samples;
}

uint64_t bench_memory_need_at(const struct bench_plan *plan, int node, uint32_t places, uint32_t place)
{
    uint64_t sum = bench_stream_need_at(plan, node, places, place);

    if (__builtin_add_overflow(sum, bench_landings_need(plan, node, places, place), &sum) ||
        __builtin_add_overflow(sum, bench_background_need(plan, node, places, place), &sum))
        return UINT64_MAX;
    return sum;
}

uint64_t bench_memory_need(const struct bench_plan *plan, int node, const struct bench_gpus *gpus)
{
    uint64_t sum = LIBRARY_BYTES, staging = gpus->staging_bytes * gpus->count + BENCH_BOUNCE;
    uint64_t landings = bench_landings_need(plan, node, 1, 0);

    if (!gpus->count && __builtin_add_overflow(landings, bench_background_need(plan, node, 1, 0), &landings))
        return UINT64_MAX;
    if (__builtin_add_overflow(sum, bench_stream_need(plan), &sum) ||
        __builtin_add_overflow(sum, gpus->count ? staging : landings, &sum) ||
        __builtin_add_overflow(sum, records_need(plan, node), &sum) ||
        __builtin_add_overflow(sum, sum / PAGE * PAGE_ENTRY, &sum))
        return UINT64_MAX;
    return sum;
}

/* --- what there is --- */

/* Nothing lacks more than what is noted already: a need beyond all numbers is the largest. */
static void note(struct bench_lack *lack, const struct bench_lack *found)
{
    if (found->need <= found->room)
        return;
    if (!lack->nodes || found->need - found->room > lack->need - lack->room)
        *lack = *found;
}

static void add_need(struct bench_lack *lack, int node, uint64_t need)
{
    lack->nodes |= 1u << (node < 31 ? node : 31);
    if (__builtin_add_overflow(lack->need, need, &lack->need))
        lack->need = UINT64_MAX;
}

static bool is_under(const struct bench_party *party, const struct bench_limit *limit)
{
    for (int i = 0; i < party->limits->count; i++)
        if (bench_limit_shared(&party->limits->all[i], limit))
            return true;
    return false;
}

static void compare_limits(const struct bench_plan *plan, const struct bench_parties *parties,
                           const struct bench_party *of, struct bench_lack *lack)
{
    for (int i = 0; i < of->limits->count; i++) {
        const struct bench_limit *limit = &of->limits->all[i];
        struct bench_lack found = {.room = limit->free_bytes, .limit = bench_limit_name(limit)};
        for (int k = 0; k < parties->count; k++) {
            const struct bench_party *party = &parties->all[k];
            if (party == of || is_under(party, limit))
                add_need(&found, party->node,
                         bench_memory_need(plan, party->node, party->gpus) - (parties->met ? MET_BYTES : 0));
        }
        note(lack, &found);
    }
}

static bool on_one_machine(const struct bench_party *one, const struct bench_party *other)
{
    for (int i = 0; i < one->limits->count; i++)
        if (is_under(other, &one->limits->all[i]))
            return true;
    return false;
}

/* Two nodes on one machine may have the same one. */
static bool is_same_gpu(const struct bench_party *one, uint32_t i, const struct bench_party *other, uint32_t j)
{
    const char *pci = one->gpus->infos[i].pci;

    if (one == other)
        return i == j;
    return pci[0] && strcmp(pci, other->gpus->infos[j].pci) == 0 && on_one_machine(one, other);
}

static void compare_gpu(const struct bench_plan *plan, const struct bench_parties *parties,
                        const struct bench_party *of, uint32_t at, struct bench_lack *lack)
{
    struct bench_lack found = {.room = of->gpus->infos[at].bytes, .gpu = &of->gpus->infos[at]};

    for (int i = 0; i < parties->count; i++) {
        const struct bench_party *party = &parties->all[i];
        for (uint32_t place = 0; place < party->gpus->count; place++)
            if (is_same_gpu(of, at, party, place))
                add_need(&found, party->node, bench_memory_need_at(plan, party->node, party->gpus->count, place));
    }
    note(lack, &found);
}

bool bench_memory_suffices(const struct bench_plan *plan, const struct bench_parties *parties, struct bench_lack *lack)
{
    memset(lack, 0, sizeof *lack);
    for (int i = 0; i < parties->count; i++) {
        compare_limits(plan, parties, &parties->all[i], lack);
        for (uint32_t gpu = 0; parties->met && gpu < parties->all[i].gpus->count; gpu++)
            compare_gpu(plan, parties, &parties->all[i], gpu, lack);
    }
    return lack->nodes == 0;
}

char *bench_lack_text(const struct bench_lack *lack, bool met, const char *even, char *text, size_t room)
{
    const char *who = !met ? "" : lack->nodes == 3 ? "the nodes " : lack->nodes == 2 ? "node1 " : "node0 ";
    const char *verb = met && lack->nodes == 3 ? "need" : "needs", *has = met && lack->nodes == 3 ? "have" : "has";
    char wanted[32], there[32];

    bench_human_bytes(lack->need, wanted, sizeof wanted);
    bench_human_bytes(lack->room, there, sizeof there);
    if (lack->gpu)
        snprintf(text, room, "%s%s %s of the memory of GPU %d%s, which has %s", who, verb, wanted, lack->gpu->index,
                 even, there);
    else
        snprintf(text, room, "%s%s %s of memory%s%s and %s %s (%s)", who, verb, wanted, met ? "" : " here", even, has,
                 there, lack->limit);
    return text;
}
