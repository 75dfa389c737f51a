#include "found.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"
#include "run.h"
#include "bench/words/words.h"

int coll_found_init(struct coll_found *found, struct wf_status *status)
{
    *found = (struct coll_found){
        .runs = json_array(), .absent = json_array(), .failed = json_array(), .skipped = json_array()};
    return found->runs && found->absent && found->failed && found->skipped
               ? 0
               : wf_fail(status, -ENOMEM, "no memory for results");
}

void coll_found_fini(struct coll_found *found)
{
    for (size_t i = 0; i < found->count; i++)
        free(found->samples[i].means);
    free(found->samples);
    json_decref(found->runs);
    json_decref(found->absent);
    json_decref(found->failed);
    json_decref(found->skipped);
    memset(found, 0, sizeof *found);
}

static bool same_case(const struct coll_sample *one, const struct coll_sample *other)
{
    return one->ranks == other->ranks && one->op == other->op && one->in_place == other->in_place &&
           one->size == other->size;
}

/* The sample of what `like` is one of, made where it is not there; NULL: no memory. */
static struct coll_sample *place_of(struct coll_found *found, const struct coll_sample *like)
{
    for (size_t i = 0; i < found->count; i++)
        if (found->samples[i].backend == like->backend && found->samples[i].way == like->way &&
            same_case(&found->samples[i], like))
            return &found->samples[i];
    if (found->count == found->room) {
        size_t room = found->room ? 2 * found->room : 64;
        struct coll_sample *grown = realloc(found->samples, room * sizeof *grown);
        if (!grown)
            return NULL;
        found->samples = grown;
        found->room = room;
    }
    struct coll_sample *sample = &found->samples[found->count];
    *sample = *like;
    sample->means = calloc(COLL_ROUNDS_MAX, sizeof *sample->means);
    if (!sample->means)
        return NULL;
    found->count++;
    return sample;
}

/* --- lines --- */

static bool take_times(struct coll_sample *sample, json_t *line)
{
    double mean, least, p50, most, cpu;
    json_int_t iters, wrong, checked;

    if (json_unpack(line, "{s:I, s:F, s:F, s:F, s:F, s:F, s:I, s:I}", "iters", &iters, "mean_us", &mean, "min_us",
                    &least, "p50_us", &p50, "max_us", &most, "cpu_s", &cpu, "wrong", &wrong, "checked",
                    &checked) != 0 ||
        iters < 1 || mean < 0 || wrong < 0 || checked < wrong || sample->rounds == COLL_ROUNDS_MAX)
        return false;
    sample->min_us = sample->rounds ? fmin(sample->min_us, least) : least;
    sample->max_us = fmax(sample->max_us, most);
    sample->means[sample->rounds++] = mean;
    sample->iters = (uint64_t)iters;
    sample->p50_us = p50;
    sample->cpu_s = cpu;
    sample->wrong += (uint64_t)wrong;
    sample->checked += (uint64_t)checked;
    return true;
}

static bool take_sample(struct coll_found *found, const struct coll_run *run, uint32_t ranks, json_t *line)
{
    const char *op, *lacks = NULL;
    json_int_t size, count;
    int in_place;

    if (json_unpack(line, "{s:s, s:I, s:I, s:b, s?:s}", "op", &op, "size_bytes", &size, "count", &count, "in_place",
                    &in_place, "lacks", &lacks) != 0 ||
        rank_op_find(op) < 0 || size < 0)
        return false;
    struct coll_sample like = {.backend = run->backend,
                               .way = run->way,
                               .ranks = ranks,
                               .op = (enum bench_collective)rank_op_find(op),
                               .in_place = in_place != 0,
                               .size = (uint64_t)size,
                               .count = (uint64_t)count};
    bench_copy_text(like.lacks, sizeof like.lacks, lacks ? lacks : "");
    struct coll_sample *sample = place_of(found, &like);
    return sample && (lacks || take_times(sample, line));
}

/* Whose lines they are. */
struct reading {
    struct coll_found *found;
    const struct coll_run *run;
};

static bool take_line(void *context, uint32_t ranks, json_t *line)
{
    struct reading *reading = context;

    return take_sample(reading->found, reading->run, ranks, line);
}

int coll_found_read(struct coll_found *found, const struct coll_run *run, const char *text, json_t **facts,
                    uint32_t *ranks, struct wf_status *status)
{
    struct reading reading = {found, run};
    int result = coll_read_lines(text, run->backend->name, take_line, &reading, facts, ranks, status);
    const char *memory = json_string_value(json_object_get(*facts, "memory"));

    for (size_t i = 0; memory && i < found->count; i++)
        if (found->samples[i].backend == run->backend && found->samples[i].ranks == *ranks)
            bench_copy_text(found->samples[i].memory, sizeof found->samples[i].memory, memory);
    return result;
}

/* --- figures --- */

double coll_sample_us(const struct coll_sample *sample)
{
    double *sorted = calloc((size_t)sample->rounds + 1, sizeof *sorted), median = -1;

    if (sorted && sample->rounds) {
        memcpy(sorted, sample->means, (size_t)sample->rounds * sizeof *sorted);
        median = wf_median(sorted, (size_t)sample->rounds);
    }
    free(sorted);
    return median;
}

const struct coll_sample *coll_best(const struct coll_found *found, const struct coll_sample *like,
                                    const struct coll_backend *backend)
{
    const struct coll_sample *best = NULL;

    for (size_t i = 0; i < found->count; i++) {
        const struct coll_sample *sample = &found->samples[i];
        if (sample->backend == backend && !sample->way->aside && sample->rounds && same_case(sample, like) &&
            (!best || coll_sample_us(sample) < coll_sample_us(best)))
            best = sample;
    }
    return best;
}

const struct coll_sample *coll_best_other(const struct coll_found *found, const struct coll_sample *own)
{
    const struct coll_sample *best = NULL;

    for (size_t i = 0; i < found->count; i++) {
        const struct coll_backend *backend = found->samples[i].backend;
        const struct coll_sample *one = coll_is_weft(backend) ? NULL : coll_best(found, own, backend);
        if (one && strcmp(one->memory, own->memory) == 0 && (!best || coll_sample_us(one) < coll_sample_us(best)))
            best = one;
    }
    return best;
}

bool coll_way_counts(const struct coll_found *found, const struct coll_backend *backend, const struct coll_way *way,
                     uint32_t ranks)
{
    for (size_t i = 0; i < found->count && !way->aside; i++) {
        const struct coll_sample *sample = &found->samples[i];
        if (sample->backend == backend && sample->way == way && sample->ranks == ranks && sample->rounds &&
            coll_sample_us(sample) <= 1.25 * coll_sample_us(coll_best(found, sample, backend)))
            return true;
    }
    return false;
}

uint64_t coll_found_wrong(const struct coll_found *found)
{
    uint64_t wrong = 0;

    for (size_t i = 0; i < found->count; i++)
        wrong += found->samples[i].wrong;
    return wrong;
}
