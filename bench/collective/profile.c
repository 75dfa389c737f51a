/* Files of the collective communication profiler: its names, its layout, its units. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench/words/folder.h"
#include "bench/words/whole.h"
#include "files.h"

#define RULE "================================================================================"
#define MIB (1024.0 * 1024.0)

struct profile {
    const struct coll_plan *plan;
    const struct coll_found *found;
    const struct coll_backend *backend;
    uint32_t ranks;
};

static const char *profiler_name(enum bench_collective op)
{
    static const char *const names[RANK_OPS] = {
        [BENCH_ALL_REDUCE] = "AllReduce", [BENCH_ALL_GATHER] = "AllGather", [BENCH_REDUCE_SCATTER] = "ReduceScatter",
        [BENCH_BROADCAST] = "Broadcast",  [BENCH_ALL_TO_ALL] = "AllToAll",  [BENCH_SEND_RECEIVE] = "SendRecv",
    };

    return names[op];
}

/* Out of place where there is such a sample, as the profiler has them; else in place. */
static const struct coll_sample *best_of(const struct profile *profile, enum bench_collective op, uint64_t size)
{
    struct coll_sample like = {.ranks = profile->ranks, .op = op, .size = size};
    const struct coll_sample *sample = coll_best(profile->found, &like, profile->backend);

    like.in_place = true;
    return sample ? sample : coll_best(profile->found, &like, profile->backend);
}

static void put_number(FILE *file, uint64_t number)
{
    if (number >= 1000)
        put_number(file, number / 1000);
    fprintf(file, number >= 1000 ? ",%03" PRIu64 : "%" PRIu64, number % 1000);
}

/* Sizes that no whole number of elements makes up were rounded down: each operation has its own nearest below. */
static uint64_t size_of(const struct profile *profile, enum bench_collective op, uint64_t asked)
{
    uint64_t bytes = rank_type_bytes(profile->plan->asked.type);
    bool divided = op == BENCH_ALL_GATHER || op == BENCH_REDUCE_SCATTER || op == BENCH_ALL_TO_ALL;

    return divided ? asked / bytes / profile->ranks * profile->ranks * bytes : asked / bytes * bytes;
}

static void put_size(FILE *file, const struct profile *profile, uint64_t asked)
{
    fprintf(file, "\nTensor Size: ");
    put_number(file, asked / rank_type_bytes(profile->plan->asked.type));
    fprintf(file, " elements (%.2f MB)\n", (double)asked / MIB);
    for (int i = 0; i < profile->plan->asked.op_count; i++) {
        enum bench_collective op = profile->plan->asked.ops[i];
        uint64_t size = size_of(profile, op, asked);
        const struct coll_sample *sample = best_of(profile, op, size);
        char name[24];
        snprintf(name, sizeof name, "%s:", profiler_name(op));
        if (!sample) {
            fprintf(file, "  %-14s n/a\n", name);
            continue;
        }
        double us = coll_sample_us(sample);
        fprintf(file, "  %-14s %.3f ms | AlgBW: %.2f GB/s | BusBW: %.2f GB/s\n", name, us / 1e3,
                bench_algorithm_bandwidth(size, us), bench_bus_bandwidth(op, profile->ranks, size, us));
    }
}

static int put_profile(const void *what, FILE *file)
{
    const struct profile *profile = what;
    const char *by = profile->backend->program        ? profile->backend->program
                     : coll_is_weft(profile->backend) ? "libweft_coll"
                                                      : "NCCL";

    fprintf(file, "%s\nConfiguration: World Size=%u\nBackend: %s (%s)\n%s\n", RULE, profile->ranks,
            profile->backend->name, by, RULE);
    for (int i = 0; i < profile->plan->asked.size_count; i++)
        put_size(file, profile, profile->plan->asked.sizes[i]);
    return 0;
}

/* Whether the backend has any sample among so many ranks. */
static bool has_any(const struct coll_found *found, const struct coll_backend *backend, uint32_t ranks)
{
    for (size_t i = 0; i < found->count; i++)
        if (found->samples[i].backend == backend && found->samples[i].ranks == ranks && found->samples[i].rounds)
            return true;
    return false;
}

static int write_one(const char *folder, const struct profile *profile, const struct coll_end *end,
                     struct wf_status *status)
{
    char path[BENCH_WHOLE_PATH];

    if (snprintf(path, sizeof path, "%s/profile_%s_world%u_%s.txt", folder, profile->backend->name, profile->ranks,
                 end->time.stamp) >= (int)sizeof path)
        return wf_fail(status, -ENAMETOOLONG, "--profile %.40s...: the name is too long", folder);
    return bench_write_whole(path, put_profile, profile, status);
}

int coll_write_profiles(const char *folder, const struct coll_plan *plan, const struct coll_found *found,
                        const struct coll_end *end, struct wf_status *status)
{
    int result = bench_make_folder(folder, status);

    for (int i = 0; i < plan->backend_count; i++)
        for (uint32_t ranks = 1; ranks <= COLL_RANKS_MAX && result == 0; ranks++) {
            const struct profile profile = {plan, found, plan->backends[i], ranks};
            if (has_any(found, profile.backend, ranks))
                result = write_one(folder, &profile, end, status);
        }
    return result;
}
