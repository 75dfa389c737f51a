#include "table.h"

#include <inttypes.h>
#include <string.h>

#include "bench/words/columns.h"
#include "end.h"
#include "far_below.h"

/* --- one run --- */

static const struct coll_sample *find(const struct coll_found *found, const struct coll_sample *like, bool in_place)
{
    for (size_t i = 0; i < found->count; i++) {
        const struct coll_sample *sample = &found->samples[i];
        if (sample->backend == like->backend && sample->way == like->way && sample->ranks == like->ranks &&
            sample->op == like->op && sample->size == like->size && sample->in_place == in_place)
            return sample;
    }
    return NULL;
}

/* Time, both bandwidths, wrong elements: 8 + 8 + 8 + 7 columns. */
static void put_half(FILE *out, const struct coll_sample *sample, bool checked)
{
    char wrong[24] = "N/A";

    if (!sample || !sample->rounds) {
        fprintf(out, " %9s %7s %7s %6s", sample ? "n/a" : "-", "", "", "");
        return;
    }
    double us = coll_sample_us(sample);
    if (checked)
        snprintf(wrong, sizeof wrong, "%" PRIu64, sample->wrong);
    fprintf(out, " %9.*f %7.2f %7.2f %6s",
            us < 1000     ? 2
            : us < 100000 ? 1
                          : 0,
            us, bench_algorithm_bandwidth(sample->size, us),
            bench_bus_bandwidth(sample->op, sample->ranks, sample->size, us), wrong);
}

static void put_row(FILE *out, const struct coll_plan *plan, const struct coll_found *found,
                    const struct coll_sample *sample)
{
    const struct rank_asked *asked = &plan->asked;

    fprintf(out, "%12" PRIu64 " %11" PRIu64 " %8s %5s %4s", sample->size, sample->count, rank_type_name(asked->type),
            rank_op_reduces(sample->op) ? rank_redop_name(asked->redop) : "none",
            sample->op == BENCH_BROADCAST ? "0" : "-1");
    put_half(out, find(found, sample, false), asked->check);
    put_half(out, find(found, sample, true), asked->check);
    fputc('\n', out);
}

static void put_head(FILE *out)
{
    fprintf(out, "#%43s %32s %32s\n", "", "out-of-place          ", "in-place            ");
    fprintf(out, "#%11s %11s %8s %5s %4s", "size", "count", "type", "redop", "root");
    for (int i = 0; i < 2; i++)
        fprintf(out, " %9s %7s %7s %6s", "time", "algbw", "busbw", "#wrong");
    fprintf(out, "\n#%11s %11s %8s %5s %4s", "(B)", "(elements)", "", "", "");
    for (int i = 0; i < 2; i++)
        fprintf(out, " %9s %7s %7s %6s", "(us)", "(GB/s)", "(GB/s)", "");
    fputc('\n', out);
}

static bool of_run(const struct coll_sample *sample, const struct coll_run *run, enum bench_collective op)
{
    return sample->backend == run->backend && sample->way == run->way && sample->ranks == run->ranks &&
           sample->op == op;
}

static void put_why_empty(FILE *out, const struct coll_plan *plan, enum bench_collective op)
{
    bool divided = op == BENCH_ALL_GATHER || op == BENCH_REDUCE_SCATTER || op == BENCH_ALL_TO_ALL;

    fprintf(out, "# 0 bytes: no whole element of %s (%" PRIu64 " bytes)%s is in the size asked for; nothing moves\n",
            rank_type_name(plan->asked.type), rank_type_bytes(plan->asked.type), divided ? " for each rank" : "");
}

/* A size has up to two samples, one behind the other; the row is the first one's. */
static void put_op(FILE *out, const struct coll_plan *plan, const struct coll_found *found, const struct coll_run *run,
                   enum bench_collective op)
{
    const struct coll_sample *before = NULL;
    const char *why = "";
    bool empty = false;

    fprintf(out, "# %s\n", rank_op_name(op));
    put_head(out);
    for (size_t i = 0; i < found->count; i++) {
        const struct coll_sample *sample = &found->samples[i];
        if (!of_run(sample, run, op))
            continue;
        if (!before || before->size != sample->size)
            put_row(out, plan, found, sample);
        if (sample->lacks[0])
            why = sample->lacks;
        empty = empty || sample->size == 0;
        before = sample;
    }
    if (empty)
        put_why_empty(out, plan, op);
    if (why[0])
        fprintf(out, "# n/a: %s\n", why);
}

void coll_table_run(FILE *out, const struct coll_plan *plan, const struct coll_found *found, const struct coll_run *run,
                    const json_t *facts)
{
    const char *key;
    json_t *value;

    fprintf(out, "\n# %s, %s, %u ranks\n", run->backend->name, run->way->name, run->ranks);
    json_object_foreach((json_t *)facts, key, value)
    {
        const char *name;
        json_t *text;
        if (json_is_string(value) && strcmp(key, "algorithms") != 0)
            fprintf(out, "# %s: %s\n", key, json_string_value(value));
        json_object_foreach(value, name, text) fprintf(out, "#   %s=%s\n", name, json_string_value(text));
    }
    for (int i = 0; i < plan->asked.op_count; i++)
        put_op(out, plan, found, run, plan->asked.ops[i]);
}

/* --- side by side --- */

/* Whether an earlier sample is of the same operation, size, place and ranks. */
static bool seen(const struct coll_found *found, size_t index)
{
    const struct coll_sample *sample = &found->samples[index];

    for (size_t i = 0; i < index; i++)
        if (found->samples[i].op == sample->op && found->samples[i].size == sample->size &&
            found->samples[i].ranks == sample->ranks && found->samples[i].in_place == sample->in_place)
            return true;
    return false;
}

static void put_comparison(FILE *out, const struct coll_plan *plan, const struct coll_found *found,
                           const struct coll_sample *sample)
{
    const struct coll_backend *weft = coll_backend_find("weft");
    const struct coll_sample *own = coll_best(found, sample, weft);
    const struct coll_sample *other = own ? coll_best_other(found, own) : NULL;

    fprintf(out, "%-14s %5u %12" PRIu64 " %-3s", rank_op_name(sample->op), sample->ranks, sample->size,
            sample->in_place ? "in" : "out");
    for (int i = 0; i < plan->backend_count; i++) {
        const struct coll_sample *one = coll_best(found, sample, plan->backends[i]);
        if (one)
            fprintf(out, " %10.1f", coll_sample_us(one));
        else
            fprintf(out, " %10s", "n/a");
    }
    if (other)
        fprintf(out, "  %5.2f  %s, %s", coll_sample_us(other) / coll_sample_us(own), other->backend->name,
                other->way->name);
    fputc('\n', out);
}

static void put_comparisons(FILE *out, const struct coll_plan *plan, const struct coll_found *found)
{
    fprintf(out, "\n# Best time of each backend (us), and the best other's over Weft's: above 1, Weft is faster\n");
    fprintf(out, "#%-13s %5s %12s %-3s", "operation", "ranks", "size (B)", "");
    for (int i = 0; i < plan->backend_count; i++)
        fprintf(out, " %10s", plan->backends[i]->name);
    fprintf(out, "  %5s  %s\n", "ratio", "best other");
    for (size_t i = 0; i < found->count; i++)
        if (!seen(found, i))
            put_comparison(out, plan, found, &found->samples[i]);
}

/* Figures in one kind of memory say nothing of those in another. */
static void put_unlike(FILE *out, const struct coll_found *found)
{
    const struct coll_sample *own = NULL;

    for (size_t i = 0; i < found->count && !own; i++)
        own = coll_is_weft(found->samples[i].backend) && found->samples[i].rounds ? &found->samples[i] : NULL;
    for (size_t i = 0; i < found->count && own; i++) {
        const struct coll_sample *other = &found->samples[i];
        if (other->rounds == 0 || strcmp(other->memory, own->memory) == 0)
            continue;
        fprintf(out, "# no ratio of %s, in memory %s, and weft, in memory %s: --memory cuda measures both alike\n",
                other->backend->name, other->memory, own->memory);
        return;
    }
}

static void put_aside(FILE *out, const struct coll_found *found)
{
    bool begun = false;

    for (size_t i = 0; i < found->count; i++) {
        const struct coll_sample *sample = &found->samples[i];
        if (!sample->way->aside || !sample->rounds)
            continue;
        if (!begun)
            fprintf(out, "\n# For information, by shared memory and not by the network (us)\n");
        begun = true;
        fprintf(out, "%-14s %5u %12" PRIu64 " %-3s %10.1f  %s\n", rank_op_name(sample->op), sample->ranks, sample->size,
                sample->in_place ? "in" : "out", coll_sample_us(sample), sample->backend->name);
    }
}

/* --- the end --- */

/* With its size, as a peak without one says nothing. */
static void put_peak(FILE *out, const struct coll_found *found)
{
    const struct coll_sample *best = NULL;
    double most = 0;

    for (size_t i = 0; i < found->count; i++) {
        const struct coll_sample *sample = &found->samples[i];
        double busbw = bench_bus_bandwidth(sample->op, sample->ranks, sample->size, coll_sample_us(sample));
        if (sample->backend == coll_backend_find("weft") && busbw > most) {
            most = busbw;
            best = sample;
        }
    }
    if (best)
        fprintf(out, "# Peak bus bandwidth of weft: %.2f GB/s (%s, %" PRIu64 " bytes, %u ranks)\n", most,
                rank_op_name(best->op), best->size, best->ranks);
}

/* Once for each backend and number of ranks. */
static void put_far_below(FILE *out, const struct coll_plan *plan, const struct coll_found *found)
{
    char text[512];

    for (int i = 0; i < plan->backend_count; i++)
        for (int count = 0; count < plan->count_count; count++) {
            uint32_t ranks = plan->counts[count];
            if (!ranks && found->count) /* found ones: all runs are among as many */
                ranks = found->samples[0].ranks;
            if (coll_far_below(found, plan->backends[i], ranks, text, sizeof text)[0])
                fprintf(out, "# %s\n", text);
        }
}

void coll_table_end(FILE *out, const struct coll_plan *plan, const struct coll_found *found)
{
    uint64_t wrong = coll_found_wrong(found);

    if (plan->backend_count > 1 || plan->best)
        put_comparisons(out, plan, found);
    put_unlike(out, found);
    put_aside(out, found);
    fputc('\n', out);
    coll_reasons_put(out, found->absent, "n/a");
    coll_reasons_put(out, found->skipped, "skipped");
    if (plan->asked.check && found->count > 0)
        fprintf(out, "# Out of bounds values: %" PRIu64 " %s\n", wrong, wrong ? "FAILED" : "OK");
    put_peak(out, found);
    put_far_below(out, plan, found);
}

void coll_table_self_test(FILE *out, const struct coll_plan *plan, const struct coll_found *found)
{
    for (int i = 0; i < plan->backend_count; i++) {
        int passed = 0, lacking = 0;
        uint64_t wrong = 0;
        for (size_t j = 0; j < found->count; j++) {
            const struct coll_sample *sample = &found->samples[j];
            if (sample->backend != plan->backends[i])
                continue;
            passed += sample->rounds > 0 && sample->wrong == 0;
            lacking += sample->lacks[0] != '\0';
            wrong += sample->wrong;
        }
        if (passed || lacking || wrong)
            fprintf(out, "%-8s %d operations right%s", plan->backends[i]->name, passed,
                    wrong ? ", WRONG elements" : "");
        if (lacking)
            fprintf(out, ", %d n/a", lacking);
        if (passed || lacking || wrong)
            fputc('\n', out);
    }
    coll_reasons_put(out, found->absent, "n/a");
    coll_reasons_put(out, found->failed, "FAILED");
}
