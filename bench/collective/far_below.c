#include "far_below.h"

#include <inttypes.h>
#include <stdio.h>

#define TIMES 10           /* so far below */
#define ENOUGH (16u << 20) /* bytes that fill any rail */

/* What the rails allow each rank; negative: it is not known. */
static double line_among(const struct coll_found *found, uint32_t ranks)
{
    size_t index;
    json_t *run;

    json_array_foreach(found->runs, index, run)
    {
        const json_t *line = json_object_get(json_object_get(run, "facts"), "line_gb_per_s");
        if (json_is_number(line) && json_integer_value(json_object_get(run, "ranks")) == (json_int_t)ranks)
            return json_number_value(line);
    }
    return -1;
}

char *coll_far_below(const struct coll_found *found, const struct coll_backend *backend, uint32_t ranks, char *text,
                     size_t room)
{
    const struct coll_sample *best = NULL;
    double line = line_among(found, ranks), most = 0;

    text[0] = '\0';
    for (size_t i = 0; i < found->count; i++) {
        const struct coll_sample *sample = &found->samples[i];
        if (sample->backend != backend || sample->ranks != ranks || sample->size < ENOUGH || !sample->rounds ||
            sample->way->aside)
            continue;
        double rate = bench_bus_bandwidth(sample->op, ranks, sample->size, coll_sample_us(sample));
        if (!best || rate > most) {
            most = rate;
            best = sample;
        }
    }
    if (best && line > 0 && most * TIMES < line)
        snprintf(
            text, room,
            "far below what the rails allow (%.2f GB/s for each rank): %s, %u ranks, %.3f GB/s at most (%s, %" PRIu64
            " bytes): %s",
            line, backend->name, ranks, most, rank_op_name(best->op), best->size,
            backend->slow ? backend->slow : "'weft doctor' examines the path between two hosts");
    return text;
}
