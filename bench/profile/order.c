/* Which configurations there are, and in which order. */
#include <errno.h>
#include <stdlib.h>

#include "bench/words/random.h"
#include "parts.h"

static uint64_t ranks_of(const struct profile *profile, const struct profile_config *config)
{
    const struct bench_pair *pair = profile_pair(profile, config);

    return (uint64_t)profile_rank(profile, pair->src_node, pair->src) << 32 |
           profile_rank(profile, pair->dst_node, pair->dst);
}

/* The plan's pairs are shuffled already; numbers go by ranks. */
static int by_ranks(const void *one, const void *other, void *context)
{
    const struct profile *profile = context;
    const struct profile_config *a = one, *b = other;
    uint64_t left = ranks_of(profile, a), right = ranks_of(profile, b);

    if (left != right)
        return left < right ? -1 : 1;
    if (a->size != b->size)
        return a->size < b->size ? -1 : 1;
    return a->backend - b->backend;
}

/* Fisher and Yates. */
static void shuffle(struct profile *profile)
{
    uint64_t state = profile->plan->seed;

    for (size_t left = profile->config_count; left > 1; left--) {
        size_t at = bench_random_next(&state) % left;
        struct profile_config kept = profile->configs[at];
        profile->configs[at] = profile->configs[left - 1];
        profile->configs[left - 1] = kept;
    }
}

int profile_order(struct profile *profile, struct wf_status *status)
{
    const struct bench_plan *plan = profile->plan;
    size_t count = (size_t)plan->pair_count * (size_t)plan->size_count * (size_t)plan->backend_count, at = 0;

    profile->configs = calloc(count, sizeof *profile->configs);
    if (!profile->configs)
        return wf_fail(status, -ENOMEM, "no memory for %zu configurations: lower --endpoints or name fewer sizes",
                       count);
    for (uint32_t pair = 0; pair < plan->pair_count; pair++)
        for (int size = 0; size < plan->size_count; size++)
            for (int backend = 0; backend < plan->backend_count; backend++)
                profile->configs[at++] =
                    (struct profile_config){.pair = pair, .size = plan->sizes[size], .backend = backend};
    profile->config_count = count;
    profile->row_count = count * plan->iters;
    qsort_r(profile->configs, count, sizeof *profile->configs, by_ranks, profile);
    for (size_t i = 0; i < count; i++)
        profile->configs[i].id = (uint32_t)i;
    shuffle(profile);
    return 0;
}

uint64_t profile_order_digest(const struct profile *profile)
{
    uint64_t digest = bench_random_mix(profile->config_count);

    for (size_t i = 0; i < profile->config_count; i++)
        digest = bench_random_mix(digest ^ profile->configs[i].id);
    return digest;
}
