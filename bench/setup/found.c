#include "found.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"
#include "bench/collective/run.h"
#include "bench/words/heard.h"
#include "bench/words/words.h"

int setup_found_init(struct setup_found *found, struct wf_status *status)
{
    *found = (struct setup_found){.samples = json_array(), .runs = json_array(), .absent = json_array()};
    return found->samples && found->runs && found->absent ? 0 : wf_fail(status, -ENOMEM, "no memory for results");
}

void setup_found_fini(struct setup_found *found)
{
    json_decref(found->samples);
    json_decref(found->runs);
    json_decref(found->absent);
    memset(found, 0, sizeof *found);
}

/* --- lines --- */

/* Whose lines they are. */
struct reading {
    struct setup_found *found;
    const char *backend;
};

static bool take_sample(void *context, uint32_t ranks, json_t *line)
{
    struct reading *reading = context;

    if (!json_is_string(json_object_get(line, "what")) || !json_is_number(json_object_get(line, "us")) ||
        !json_is_number(json_object_get(line, "operation_us")) || !json_is_object(json_object_get(line, "steps_us")))
        return false;
    json_object_set_new(line, "backend", json_string(reading->backend));
    json_object_set_new(line, "ranks", json_integer(ranks));
    return json_array_append(reading->found->samples, line) == 0;
}

int setup_found_read(struct setup_found *found, const char *backend, const char *text, json_t **facts,
                     struct wf_status *status)
{
    struct reading reading = {found, backend};
    uint32_t ranks = 0;

    return coll_read_lines(text, backend, take_sample, &reading, facts, &ranks, status);
}

/* --- rows --- */

static bool of_row(const json_t *sample, const struct setup_row *row)
{
    return strcmp(bench_heard_text(sample, "backend"), row->backend) == 0 &&
           strcmp(bench_heard_text(sample, "what"), row->what) == 0 &&
           json_integer_value(json_object_get(sample, "ranks")) == row->ranks;
}

/* The median of a number of all samples of the row, within `part` of each (NULL: in the sample itself). */
static double median(const struct setup_found *found, struct setup_row *row, const char *part, const char *name)
{
    double *values = calloc(json_array_size(found->samples) + 1, sizeof *values), result = 0;
    const json_t *sample;
    size_t index, count = 0;

    json_array_foreach(found->samples, index, sample)
    {
        if (!values || !of_row(sample, row))
            continue;
        values[count++] = json_number_value(json_object_get(part ? json_object_get(sample, part) : sample, name));
    }
    if (count) {
        result = wf_median(values, count);
        row->count = count;
        row->least_us = part ? row->least_us : values[0];
        row->most_us = part ? row->most_us : values[count - 1];
    }
    free(values);
    return result;
}

static void fill(const struct setup_found *found, struct setup_row *row, const json_t *first)
{
    const char *name;
    json_t *value;

    bench_copy_text(row->backend, sizeof row->backend, bench_heard_text(first, "backend"));
    bench_copy_text(row->what, sizeof row->what, bench_heard_text(first, "what"));
    row->ranks = (uint32_t)json_integer_value(json_object_get(first, "ranks"));
    row->operation_us = median(found, row, NULL, "operation_us");
    row->us = median(found, row, NULL, "us"); /* last: whose ends they are */
    json_object_foreach(json_object_get(first, "steps_us"), name, value)
    {
        if (row->step_count == SETUP_STEPS_MOST)
            return;
        bench_copy_text(row->step[row->step_count], sizeof row->step[0], name);
        row->step_us[row->step_count++] = median(found, row, "steps_us", name);
    }
}

static void compare(struct setup_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++)
            if (strcmp(rows[j].what, "kept") == 0 && strcmp(rows[i].backend, rows[j].backend) == 0 &&
                rows[i].ranks == rows[j].ranks && rows[j].us > 0)
                rows[i].times_kept = rows[i].us / rows[j].us;
}

struct setup_row *setup_rows(const struct setup_found *found, size_t *count)
{
    struct setup_row *rows = calloc(json_array_size(found->samples) + 1, sizeof *rows);
    const json_t *sample;
    size_t index;

    *count = 0;
    if (!rows)
        return NULL;
    json_array_foreach(found->samples, index, sample)
    {
        size_t row = 0;
        while (row < *count && !of_row(sample, &rows[row]))
            row++;
        if (row == *count)
            fill(found, &rows[(*count)++], sample);
    }
    compare(rows, *count);
    return rows;
}
