#include "show.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/words/json.h"

/* --- the table --- */

static void put_steps(FILE *out, const struct setup_row *row)
{
    const char *between = "#   of that, ms: ";

    for (int i = 0; i < row->step_count; i++) {
        if (row->step_us[i] <= 0)
            continue;
        fprintf(out, "%s%s %.2f", between, row->step[i], row->step_us[i] / 1e3);
        between = ", ";
    }
    if (between[0] == ',')
        fputc('\n', out);
}

static void put_row(FILE *out, const struct setup_row *row)
{
    char times[24] = "-";

    if (row->times_kept > 0)
        snprintf(times, sizeof times, "%.4g", row->times_kept);
    fprintf(out, "%-9s %5u  %-18s %10.3f %10.3f %10.3f %9s\n", row->backend, row->ranks, row->what, row->us / 1e3,
            (row->us - row->operation_us) / 1e3, row->operation_us / 1e3, times);
    put_steps(out, row);
}

int setup_show(FILE *out, const struct setup_run *run)
{
    size_t count, index;
    struct setup_row *rows = setup_rows(run->found, &count);
    const json_t *entry;

    if (!rows)
        return -ENOMEM;
    fprintf(out,
            "# weft setup-cost: one all_reduce of %" PRIu64 " bytes an iteration, %" PRIu64 " iterations of a kind\n",
            run->size, run->iters);
    fprintf(out, "# cold: the first of a process; kept: nothing is made anew; else what is made anew each time\n");
    fprintf(out, "#%-8s %5s  %-18s %10s %10s %10s %9s\n", "backend", "ranks", "anew", "iteration", "set-up",
            "operation", "times");
    fprintf(out, "#%-8s %5s  %-18s %10s %10s %10s %9s\n", "", "", "", "(ms)", "(ms)", "(ms)", "kept");
    for (size_t i = 0; i < count; i++)
        put_row(out, &rows[i]);
    json_array_foreach(run->found->absent, index, entry)
        fprintf(out, "# n/a: %s: %s\n", json_string_value(json_object_get(entry, "what")),
                json_string_value(json_object_get(entry, "reason")));
    free(rows);
    return 0;
}

/* --- JSON --- */

static json_t *row_to_json(const struct setup_row *row)
{
    json_t *steps = json_object();

    for (int i = 0; i < row->step_count; i++)
        json_object_set_new(steps, row->step[i], json_real(row->step_us[i]));
    return json_pack("{s:s, s:I, s:s, s:I, s:{s:f, s:f, s:f}, s:f, s:o, s:o}", "backend", row->backend, "ranks",
                     (json_int_t)row->ranks, "anew", row->what, "iters", (json_int_t)row->count, "time_us", "p50",
                     row->us, "min", row->least_us, "max", row->most_us, "operation_us", row->operation_us,
                     "times_kept", bench_number_or_null(row->times_kept > 0 ? row->times_kept : -1), "steps_us", steps);
}

static json_t *rows_to_json(const struct setup_found *found)
{
    size_t count;
    struct setup_row *rows = setup_rows(found, &count);
    json_t *all = json_array();

    for (size_t i = 0; rows && i < count; i++)
        json_array_append_new(all, row_to_json(&rows[i]));
    free(rows);
    return all;
}

static json_t *everything(const struct setup_run *run)
{
    json_t *root = coll_head_to_json("weft.setup_cost/1", run->options, &run->end);

    json_object_set_new(root, "size_bytes", json_integer((json_int_t)run->size));
    json_object_set(root, "runs", run->found->runs);
    json_object_set_new(root, "rows", rows_to_json(run->found));
    json_object_set(root, "iterations", run->found->samples);
    json_object_set(root, "not_available", run->found->absent);
    json_object_set_new(root, "summary",
                        json_pack("{s:b, s:I}", "passed", run->end.exit_status == BENCH_PASSED, "failures",
                                  (json_int_t)run->found->failures));
    return root;
}

int setup_write(const struct setup_run *run, struct wf_status *status)
{
    return coll_write_result(everything(run), "setup_cost.json", run->options, status);
}
