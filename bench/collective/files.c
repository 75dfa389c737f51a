#include "files.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench/words/folder.h"
#include "bench/words/json.h"
#include "bench/words/whole.h"
#include "weft.h"

/* --- JSON --- */

static json_t *times_to_json(const struct coll_sample *sample)
{
    return json_pack("{s:f, s:f, s:f, s:f}", "mean", coll_sample_us(sample), "min", sample->min_us, "p50",
                     sample->p50_us, "max", sample->max_us);
}

static json_t *rounds_to_json(const struct coll_sample *sample)
{
    json_t *all = json_array();

    for (int i = 0; i < sample->rounds; i++)
        json_array_append_new(all, json_real(sample->means[i]));
    return all;
}

static json_t *sample_to_json(const struct coll_plan *plan, const struct coll_found *found,
                              const struct coll_sample *sample)
{
    double us = coll_sample_us(sample);
    json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:b, s:I, s:I}", "backend", sample->backend->name,
                             "way", sample->way->name, "memory", sample->memory, "op", rank_op_name(sample->op), "type",
                             rank_type_name(plan->asked.type), "redop",
                             rank_op_reduces(sample->op) ? rank_redop_name(plan->asked.redop) : "none", "ranks",
                             (json_int_t)sample->ranks, "in_place", sample->in_place, "size_bytes",
                             (json_int_t)sample->size, "count", (json_int_t)sample->count);

    if (!sample->rounds) {
        json_object_set_new(json, "not_available", json_string(sample->lacks));
        return json;
    }
    json_object_set_new(json, "iters", json_integer((json_int_t)sample->iters));
    json_object_set_new(json, "rounds_us", rounds_to_json(sample));
    json_object_set_new(json, "time_us", times_to_json(sample));
    json_object_set_new(json, "algbw_gb_per_s", json_real(bench_algorithm_bandwidth(sample->size, us)));
    json_object_set_new(json, "busbw_gb_per_s",
                        json_real(bench_bus_bandwidth(sample->op, sample->ranks, sample->size, us)));
    json_object_set_new(json, "cpu_s", json_real(sample->cpu_s));
    json_object_set_new(json, "wrong_elements",
                        plan->asked.check ? json_integer((json_int_t)sample->wrong) : json_null());
    json_object_set_new(json, "verified_elements", json_integer((json_int_t)sample->checked));
    json_object_set_new(json, "aside", json_boolean(sample->way->aside));
    json_object_set_new(json, "best", json_boolean(coll_best(found, sample, sample->backend) == sample));
    return json;
}

static json_t *comparison_to_json(const struct coll_sample *own, const struct coll_sample *other)
{
    return json_pack("{s:s, s:I, s:I, s:b, s:f, s:f, s:s, s:s, s:f}", "op", rank_op_name(own->op), "ranks",
                     (json_int_t)own->ranks, "size_bytes", (json_int_t)own->size, "in_place", own->in_place, "weft_us",
                     coll_sample_us(own), "other_us", coll_sample_us(other), "other", other->backend->name, "way",
                     other->way->name, "ratio", coll_sample_us(other) / coll_sample_us(own));
}

static json_t *comparisons(const struct coll_found *found)
{
    json_t *all = json_array();

    for (size_t i = 0; i < found->count; i++) {
        const struct coll_sample *own = &found->samples[i];
        const struct coll_sample *other = coll_is_weft(own->backend) ? coll_best_other(found, own) : NULL;
        if (other && own->rounds)
            json_array_append_new(all, comparison_to_json(own, other));
    }
    return all;
}

static json_t *samples(const struct coll_plan *plan, const struct coll_found *found)
{
    json_t *all = json_array();

    for (size_t i = 0; i < found->count; i++)
        json_array_append_new(all, sample_to_json(plan, found, &found->samples[i]));
    return all;
}

static json_t *definitions(void)
{
    return json_pack("{s:s, s:s, s:s}", "size_bytes", "the larger of what a rank hands in and what it gets",
                     "algbw_gb_per_s", "size_bytes / time_us.mean, 10^9 bytes/s", "busbw_gb_per_s",
                     "algbw times 2(n-1)/n for all_reduce, (n-1)/n for all_gather, reduce_scatter and alltoall, 1 for "
                     "broadcast and sendrecv");
}

static json_t *everything(const struct coll_plan *plan, const struct coll_found *found, const struct coll_end *end)
{
    json_t *root = coll_head_to_json("weft.collective/1", plan->options, end);
    uint64_t wrong = coll_found_wrong(found);

    json_object_set_new(root, "definitions", definitions());
    json_object_set_new(root, "rounds", json_integer(plan->rounds));
    json_object_set(root, "runs", found->runs);
    json_object_set_new(root, "samples", samples(plan, found));
    json_object_set_new(root, "comparisons", comparisons(found));
    json_object_set(root, "not_available", found->absent);
    json_object_set(root, "skipped", found->skipped);
    json_object_set_new(root, "summary",
                        json_pack("{s:b, s:b, s:o, s:I, s:I}", "passed", end->exit_status == BENCH_PASSED, "verified",
                                  plan->asked.check && !wrong && end->exit_status == BENCH_PASSED, "wrong_elements",
                                  plan->asked.check ? json_integer((json_int_t)wrong) : json_null(), "samples",
                                  (json_int_t)found->count, "failures", (json_int_t)found->failures));
    return root;
}

/* --- CSV --- */

struct both {
    const struct coll_plan *plan;
    const struct coll_found *found;
};

static int put_csv(const void *what, FILE *file)
{
    const struct both *both = what;

    fprintf(file, "backend,way,memory,op,type,redop,ranks,in_place,size_bytes,count,iters,rounds,time_us_mean,"
                  "time_us_min,time_us_p50,time_us_max,algbw_gb_per_s,busbw_gb_per_s,cpu_s,wrong_elements,"
                  "verified_elements,best\n");
    for (size_t i = 0; i < both->found->count; i++) {
        const struct coll_sample *sample = &both->found->samples[i];
        double us = coll_sample_us(sample);
        if (!sample->rounds)
            continue;
        fprintf(file, "%s,%s,%s,%s,%s,%s,%u,%d,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%d,%.9g,%.9g,%.9g,%.9g,",
                sample->backend->name, sample->way->name, sample->memory, rank_op_name(sample->op),
                rank_type_name(both->plan->asked.type),
                rank_op_reduces(sample->op) ? rank_redop_name(both->plan->asked.redop) : "none", sample->ranks,
                sample->in_place, sample->size, sample->count, sample->iters, sample->rounds, us, sample->min_us,
                sample->p50_us, sample->max_us);
        fprintf(file, "%.9g,%.9g,%.9g,", bench_algorithm_bandwidth(sample->size, us),
                bench_bus_bandwidth(sample->op, sample->ranks, sample->size, us), sample->cpu_s);
        if (both->plan->asked.check)
            fprintf(file, "%" PRIu64, sample->wrong);
        fprintf(file, ",%" PRIu64 ",%d\n", sample->checked, coll_best(both->found, sample, sample->backend) == sample);
    }
    return 0;
}

/* --- all of them --- */

static void keep_first(int *result, int other, struct wf_status *status, const struct wf_status *why)
{
    if (other && *result == 0) {
        *result = other;
        *status = *why;
    }
}

int coll_write_files(const struct coll_plan *plan, const struct coll_found *found, const struct coll_end *end,
                     struct wf_status *status)
{
    const struct wf_config *config = plan->options->config;
    const char *out = wf_config_text(config, WF_SET_OUT), *json = wf_config_text(config, WF_SET_JSON);
    const char *csv = wf_config_text(config, WF_SET_CSV), *profile = plan->options->collective.profile;
    const struct both both = {plan, found};
    json_t *root = everything(plan, found, end);
    struct wf_status why = {0};
    char path[WF_VALUE_MAX + 32];
    int result = 0;

    if (out[0]) {
        keep_first(&result, bench_make_folder(out, &why), status, &why);
        snprintf(path, sizeof path, "%s/collective.json", out);
        keep_first(&result, bench_write_json(root, path, &why), status, &why);
        snprintf(path, sizeof path, "%s/collective.csv", out);
        keep_first(&result, bench_write_whole(path, put_csv, &both, &why), status, &why);
    }
    if (json[0])
        keep_first(&result, bench_write_json(root, json, &why), status, &why);
    if (csv[0])
        keep_first(&result, bench_write_whole(csv, put_csv, &both, &why), status, &why);
    if (profile)
        keep_first(&result, coll_write_profiles(profile, plan, found, end, &why), status, &why);
    json_decref(root);
    return result;
}
