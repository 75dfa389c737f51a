/* One sample after the other. */
#include "measure.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ITERS_LEAST 3 /* with iters auto */
#define LONG_MS 2000  /* what takes so long is not repeated: nothing of it is warm-up */
#define POISON 0xa5

static double seconds(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* --- one size of one operation --- */

/* Fills in a call for `size` bytes. A size that no whole number of elements makes up is rounded down. */
static void make_call(const struct rank_world *world, enum bench_collective op, uint64_t size, bool in_place,
                      struct rank_call *call)
{
    uint64_t bytes = rank_type_bytes(world->asked->type), count = size / bytes;
    bool divided = op == BENCH_ALL_GATHER || op == BENCH_REDUCE_SCATTER || op == BENCH_ALL_TO_ALL;

    *call = (struct rank_call){.op = op,
                               .type = world->asked->type,
                               .redop = world->asked->redop,
                               .count = divided ? count / world->ranks : count,
                               .in_place = in_place,
                               .send = world->send,
                               .recv = world->recv};
    char *own = (char *)world->recv + world->rank * call->count * bytes;
    if (in_place)
        call->send = op == BENCH_ALL_GATHER ? own : world->recv;
    if (in_place && op == BENCH_REDUCE_SCATTER)
        call->recv = own;
    call->result = call->recv;
}

static uint64_t bytes_of(const struct rank_world *world, const struct rank_call *call)
{
    return bench_collective_bytes(call->op, world->ranks,
                                  values_sent(call, world->ranks) * rank_type_bytes(call->type));
}

/* A number of rank 0, at every rank. */
static int agree(struct rank_world *world, double *number, struct wf_status *status)
{
    int result = world->backend->gather(number, 1, world->all, status);

    *number = world->all[0];
    return result;
}

/* --- time --- */

static int run_times(struct rank_world *world, struct rank_call *call, uint64_t times, struct wf_status *status)
{
    int result = 0;

    for (uint64_t i = 0; i < times && result == 0; i++)
        result = world->backend->run(call, status);
    return result;
}

/* Warm-up, and how many iterations are measured. */
static int prepare(struct rank_world *world, struct rank_call *call, uint64_t *iters, struct wf_status *status)
{
    uint64_t warmup = world->asked->warmup ? world->asked->warmup : world->asked->iters ? 0 : 1;
    double before = seconds(CLOCK_MONOTONIC);
    int result = run_times(world, call, warmup, status);
    double took_ms = warmup ? (seconds(CLOCK_MONOTONIC) - before) * 1e3 / (double)warmup : 0;
    double number = (double)world->asked->iters;

    if (result == 0 && world->asked->iters == 0) {
        number = ceil((double)world->asked->share_ms / (took_ms > 1e-6 ? took_ms : 1e-6));
        number = fmin(fmax(number, took_ms < LONG_MS ? ITERS_LEAST : 1), RANK_ITERS_MAX);
        result = agree(world, &number, status);
    }
    *iters = (uint64_t)number;
    return result;
}

static int later(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;

    return (a > b) - (a < b);
}

/* Iterations back to back, as nccl-tests has them: its time is the mean over iterations and ranks. */
static int time_them(struct rank_world *world, struct rank_call *call, struct rank_sample *sample,
                     struct wf_status *status)
{
    double told[RANK_TOLD], cpu;
    int result = world->backend->barrier(status);

    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    double begun = seconds(CLOCK_MONOTONIC), before = begun;
    for (uint64_t i = 0; i < sample->iters && result == 0; i++) {
        result = world->backend->run(call, status);
        double now = seconds(CLOCK_MONOTONIC);
        world->times_us[i] = (now - before) * 1e6;
        before = now;
    }
    if (result)
        return result;
    told[0] = (before - begun) * 1e6 / (double)sample->iters;
    told[4] = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    qsort(world->times_us, sample->iters, sizeof *world->times_us, later);
    told[1] = world->times_us[0];
    told[2] = world->times_us[sample->iters / 2];
    told[3] = world->times_us[sample->iters - 1];
    told[5] = 0;
    result = world->backend->gather(told, RANK_TOLD, world->all, status);
    sample->min_us = told[1];
    for (uint32_t i = 0; i < world->ranks; i++) {
        const double *of = world->all + i * RANK_TOLD;
        sample->mean_us += of[0] / world->ranks;
        sample->min_us = fmin(sample->min_us, of[1]);
        sample->p50_us += of[2] / world->ranks;
        sample->max_us = fmax(sample->max_us, of[3]);
        sample->cpu_s += of[4];
    }
    return result;
}

/* --- proof --- */

static int prove(struct rank_world *world, struct rank_call *call, struct rank_sample *sample, struct wf_status *status)
{
    uint64_t first = 0;

    memset(world->recv, POISON, world->recv_bytes);
    values_fill(&world->values, call);
    int result = world->backend->barrier(status);
    if (result == 0)
        result = world->backend->run(call, status);
    if (result)
        return result;
    double told[2] = {(double)values_wrong(&world->values, call, &first), (double)values_received(call, world->ranks)};
    if (told[0] > 0)
        fprintf(stderr, "%s: rank %u: %s of %llu bytes: %.0f elements are wrong, the first is %llu\n",
                world->backend->name, world->rank, rank_op_name(call->op), (unsigned long long)sample->bytes, told[0],
                (unsigned long long)first);
    result = world->backend->gather(told, 2, world->all, status);
    for (uint32_t i = 0; i < world->ranks; i++) {
        sample->wrong += (uint64_t)world->all[2 * i];
        sample->checked += (uint64_t)world->all[2 * i + 1];
    }
    return result;
}

/* --- all of them --- */

static int measure_one(struct rank_world *world, struct rank_call *call, struct wf_status *status)
{
    struct rank_sample sample = {.call = *call, .bytes = bytes_of(world, call)};
    const char *why = world->backend->lacks(call);

    if (why) {
        if (world->rank == 0)
            rank_say_lack(call, sample.bytes, why);
        return 0;
    }
    values_fill(&world->values, call);
    int result = prepare(world, call, &sample.iters, status);
    if (result == 0)
        result = time_them(world, call, &sample, status);
    if (result == 0 && world->asked->check)
        result = prove(world, call, &sample, status);
    if (result == 0 && world->rank == 0)
        rank_say_sample(&sample);
    return result ? wf_fail_prefix(status, "%s of %llu bytes", rank_op_name(call->op), (unsigned long long)sample.bytes)
                  : 0;
}

int rank_measure(struct rank_world *world, struct wf_status *status)
{
    const struct rank_asked *asked = world->asked;
    struct rank_call call;
    int result = 0;

    for (int op = 0; op < asked->op_count; op++)
        for (int size = 0; size < asked->size_count; size++)
            for (int in_place = 0; in_place < 2 && result == 0; in_place++) {
                if (!(in_place ? asked->in_place : asked->out_of_place))
                    continue;
                make_call(world, asked->ops[op], asked->sizes[size], in_place != 0, &call);
                result = measure_one(world, &call, status);
            }
    return result;
}
