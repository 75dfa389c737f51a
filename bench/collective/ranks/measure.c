/* One sample after the other. */
#include "measure.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ITERS_FIRST 2 /* with iters auto: the first batch */
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

/* A line from rank 0 now and then: who reads takes ranks that say nothing for long for ones that hang. */
static void stay_heard(struct rank_world *world, double now_s)
{
    if (world->rank > 0 || now_s - world->heard_s < (double)world->asked->timeout_s)
        return;
    rank_say_nothing();
    world->heard_s = now_s;
}

static int run_times(struct rank_world *world, struct rank_call *call, uint64_t times, struct wf_status *status)
{
    int result = 0;

    for (uint64_t i = 0; i < times && result == 0; i++) {
        result = world->backend->run(call, status);
        stay_heard(world, seconds(CLOCK_MONOTONIC));
    }
    return result;
}

/* Iterations back to back, behind what was timed before. Adds up what they took. */
static int time_batch(struct rank_world *world, struct rank_call *call, uint64_t count, struct rank_sample *sample,
                      double *took_s, struct wf_status *status)
{
    int result = world->backend->barrier(status);
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), begun = seconds(CLOCK_MONOTONIC), before = begun;

    for (uint64_t i = 0; i < count && result == 0; i++) {
        result = world->backend->run(call, status);
        double now = seconds(CLOCK_MONOTONIC);
        world->times_us[sample->iters++] = (now - before) * 1e6;
        before = now;
        stay_heard(world, now);
    }
    sample->cpu_s += seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    *took_s += before - begun;
    return result;
}

/* As many as were asked for; or batches, each at most as large as all before it, until the share is used up. How long
 * one takes cannot be foreseen: the first may be quick and the next wait for a processor. */
static int time_all(struct rank_world *world, struct rank_call *call, struct rank_sample *sample, double *took_s,
                    struct wf_status *status)
{
    uint64_t count = world->asked->iters ? world->asked->iters : ITERS_FIRST;
    double share_s = (double)world->asked->share_ms / 1e3, number = 0;
    int result = 0;

    while (result == 0 && count > 0) {
        result = time_batch(world, call, count, sample, took_s, status);
        if (world->asked->iters || result)
            break;
        double left = (share_s - *took_s) * (double)sample->iters / fmax(*took_s, 1e-9);
        number = fmin(fmax(ceil(left), 0), fmin((double)sample->iters, (double)(RANK_ITERS_MAX - sample->iters)));
        result = agree(world, &number, status);
        count = (uint64_t)number;
    }
    return result;
}

static int later(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;

    return (a > b) - (a < b);
}

/* What nccl-tests calls the time: the mean over iterations and ranks. */
static int sum_up(struct rank_world *world, struct rank_sample *sample, double took_s, struct wf_status *status)
{
    const double *times = world->times_us;

    qsort(world->times_us, sample->iters, sizeof *times, later);
    const double told[RANK_TOLD] = {took_s * 1e6 / (double)sample->iters, times[0], times[sample->iters / 2],
                                    times[sample->iters - 1], sample->cpu_s};
    int result = world->backend->gather(told, RANK_TOLD, world->all, status);
    sample->min_us = told[1];
    sample->cpu_s = 0;
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

static int time_them(struct rank_world *world, struct rank_call *call, struct rank_sample *sample,
                     struct wf_status *status)
{
    double took_s = 0;
    world->heard_s = seconds(CLOCK_MONOTONIC);
    int result = run_times(world, call, world->asked->warmup, status);

    if (result == 0)
        result = time_all(world, call, sample, &took_s, status);
    return result ? result : sum_up(world, sample, took_s, status);
}

/* --- proof --- */

/* Where the backend has memory of its own, `mirror` is what the processor writes and reads instead. */
int rank_fill(struct rank_world *world, const struct rank_call *call, struct wf_status *status)
{
    struct rank_call here = *call;

    if (world->mirror)
        here.send = world->mirror;
    values_fill(&world->values, &here);
    return world->mirror ? world->backend->copy((void *)(uintptr_t)call->send, world->mirror,
                                                values_sent(call, world->ranks) * rank_type_bytes(call->type), status)
                         : 0;
}

static int poison(struct rank_world *world, struct wf_status *status)
{
    memset(world->mirror ? world->mirror : world->recv, POISON, world->recv_bytes);
    return world->mirror ? world->backend->copy(world->recv, world->mirror, world->recv_bytes, status) : 0;
}

static int count_wrong(struct rank_world *world, const struct rank_call *call, uint64_t *first, double *wrong,
                       struct wf_status *status)
{
    struct rank_call here = *call;
    int result = 0;

    if (world->mirror) {
        here.result = world->mirror;
        result = world->backend->copy(world->mirror, call->result,
                                      values_received(call, world->ranks) * rank_type_bytes(call->type), status);
    }
    *wrong = result ? 0 : (double)values_wrong(&world->values, &here, first);
    return result;
}

static int prove(struct rank_world *world, struct rank_call *call, struct rank_sample *sample, struct wf_status *status)
{
    double told[2] = {0, (double)values_received(call, world->ranks)};
    uint64_t first = 0;
    int result = poison(world, status);

    if (result == 0)
        result = rank_fill(world, call, status);
    if (result == 0)
        result = world->backend->barrier(status);
    if (result == 0)
        result = world->backend->run(call, status);
    if (result == 0)
        result = count_wrong(world, call, &first, &told[0], status);
    if (result)
        return result;
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

double rank_now_us(void)
{
    return seconds(CLOCK_MONOTONIC) * 1e6;
}

void rank_first_call(const struct rank_world *world, struct rank_call *call)
{
    make_call(world, world->asked->ops[0], world->asked->sizes[0], true, call);
}

static int measure_one(struct rank_world *world, struct rank_call *call, struct wf_status *status)
{
    struct rank_sample sample = {.call = *call, .bytes = bytes_of(world, call)};
    const char *why = world->backend->lacks(call);

    if (why) {
        if (world->rank == 0)
            rank_say_lack(call, sample.bytes, why);
        return 0;
    }
    int result = rank_fill(world, call, status);
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
