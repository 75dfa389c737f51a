#include "forecast.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "csv.h"
#include "stats.h"

#define FORECAST_MOST (256u << 20)

/* --- the file --- */

int report_forecast_read(struct report_forecast *forecast, const char *path, struct wf_status *status)
{
    struct wf_status why = {0};
    uint64_t bytes;
    FILE *file;
    int result = report_open(path, &file, &bytes, &why);

    *forecast = (struct report_forecast){.path = path};
    if (result)
        return wf_fail(status, result, "--predicted %s: %s", path, why.text);
    if (bytes > FORECAST_MOST || !(forecast->text = malloc((size_t)bytes + 2))) {
        fclose(file);
        return wf_fail(status, -EFBIG,
                       "--predicted %s: it has more than the %u MiB that are read, or than memory is free", path,
                       FORECAST_MOST >> 20);
    }
    size_t room = (size_t)bytes + 1; /* so that one that grows meanwhile is seen */
    size_t length = fread(forecast->text, 1, room, file);
    bool failed = ferror(file) || length == room;
    fclose(file);
    forecast->text[length] = '\0';
    if (failed)
        return wf_fail(status, -EIO, "--predicted %s: it cannot be read as a whole", path);
    return 0;
}

void report_forecast_fini(struct report_forecast *forecast)
{
    free(forecast->text);
    *forecast = (struct report_forecast){0};
}

/* --- endpoints --- */

/* The run's endpoints in the order of ranks. */
static uint32_t *ranks_of(const struct report_run *run)
{
    uint32_t *ranks = calloc(run->ends.count + 1, sizeof *ranks);

    for (uint32_t i = 0; ranks && i < run->ends.count; i++)
        ranks[i] = i;
    if (ranks)
        qsort_r(ranks, run->ends.count, sizeof *ranks, report_compare_ends, run->ends.list);
    return ranks;
}

static bool find_end(const struct report_run *run, const uint32_t *ranks, const char *field, uint32_t *end)
{
    double rank = report_csv_number(field);

    if (rank >= 0 && rank < (double)run->ends.count && rank == floor(rank)) {
        *end = ranks[(size_t)rank];
        return true;
    }
    for (uint32_t i = 0; i < run->ends.count; i++)
        if (strcmp(run->ends.list[i], field) == 0) {
            *end = i;
            return true;
        }
    return false;
}

/* --- lines --- */

#define FIELDS_MAX 16
enum { SRC, DST, SIZE, TIME, FIELDS };

/* Reads a line. 0, 1 where it is of no endpoint of this run, or -EPROTO. */
static int read_line(const struct report_run *run, const uint32_t *ranks, char *line, const size_t at[FIELDS],
                     struct report_prediction *prediction)
{
    char *values[FIELDS_MAX];
    size_t count = report_csv_split(line, values, FIELDS_MAX);

    for (int i = 0; i < FIELDS; i++)
        if (at[i] >= count)
            return -EPROTO;
    double size = report_csv_number(values[at[SIZE]]);
    prediction->time_us = report_csv_number(values[at[TIME]]);
    if (!(size >= 0 && size < 0x1p62) || !(prediction->time_us > 0))
        return -EPROTO;
    prediction->size = (uint64_t)size;
    return find_end(run, ranks, values[at[SRC]], &prediction->src) &&
                   find_end(run, ranks, values[at[DST]], &prediction->dst)
               ? 0
               : 1;
}

static int read_header(const struct report_forecast *forecast, char *line, size_t at[FIELDS], struct wf_status *status)
{
    static const char *const names[] = {"src", "dst", "size_bytes", "time_us"};
    char *header[FIELDS_MAX];
    size_t count = line ? report_csv_split(line, header, FIELDS_MAX) : 0;

    for (int i = 0; i < FIELDS; i++) {
        at[i] = report_csv_find(header, count < FIELDS_MAX ? count : FIELDS_MAX, names[i]);
        if (at[i] == SIZE_MAX)
            return wf_fail(status, -EPROTO,
                           "--predicted %s: its first line does not name the column %s: it must be "
                           "src,dst,size_bytes,time_us",
                           forecast->path, names[i]);
    }
    return 0;
}

/* The predictions for endpoints of this run. `list` has room for a line each. */
static int read_lines(const struct report_forecast *forecast, const struct report_run *run, char *text,
                      struct report_prediction *list, size_t *count, struct wf_status *status)
{
    char *rest = text, *line = report_csv_line(&rest);
    uint32_t *ranks = ranks_of(run);
    size_t at[FIELDS], number = 1;
    int result =
        ranks ? read_header(forecast, line, at, status) : wf_fail(status, -ENOMEM, "no memory for what was predicted");

    *count = 0;
    while (result == 0 && (line = report_csv_line(&rest)) != NULL) {
        number++;
        int read = line[0] ? read_line(run, ranks, line, at, &list[*count]) : 1;
        if (read < 0)
            result = wf_fail(status, -EPROTO,
                             "--predicted %s: line %zu is not src,dst,size_bytes,time_us with a time above 0",
                             forecast->path, number);
        *count += read == 0;
    }
    free(ranks);
    return result;
}

/* --- beside what was measured --- */

/* The sample of a pair and size in isolated, of the first backend that has one; `least` is the time of the pair's
 * smallest size. */
static const struct report_sample *measured(const struct report_grid *grid, const struct report_prediction *of,
                                            double *least)
{
    size_t pair = report_pair_find(grid, of->src, of->dst);

    for (uint32_t backend = 0; pair != SIZE_MAX && backend < grid->run->backends.count; backend++) {
        *least = NAN;
        for (size_t set = 0; set < grid->set_count; set++) {
            const struct report_set *at = &grid->sets[set];
            const struct report_sample *sample = report_cell(grid, set, pair);
            if (at->backend != backend || at->mode != REPORT_ISOLATED || at->latency || !sample)
                continue;
            *least = isnan(*least) ? sample->p50 : *least; /* sets are in the order of sizes */
            if (at->size == of->size)
                return sample;
        }
    }
    return NULL;
}

static size_t match_all(const struct report_grid *grid, const struct report_prediction *list, size_t count,
                        struct report_match *matches)
{
    size_t matched = 0;
    double least;

    for (size_t i = 0; i < count; i++) {
        const struct report_sample *sample = measured(grid, &list[i], &least);
        if (sample && sample->p50 > 0)
            matches[matched++] = (struct report_match){sample, list[i].time_us, list[i].time_us / sample->p50 - 1,
                                                       sample->p50 >= 2 * least};
    }
    return matched;
}

int report_forecast_add(struct report_figures *figures, struct report_verdict *verdict, const struct report_grid *grid,
                        const struct report_forecast *forecast, struct wf_status *status)
{
    size_t lines = report_csv_lines(forecast->text), count = 0;
    char *text = strdup(forecast->text); /* is taken apart */
    struct report_prediction *list = calloc(lines, sizeof *list);
    struct report_match *matches = calloc(lines, sizeof *matches);
    int result = text && list && matches ? read_lines(forecast, grid->run, text, list, &count, status)
                                         : wf_fail(status, -ENOMEM, "no memory for what was predicted");

    size_t matched = result == 0 ? match_all(grid, list, count, matches) : 0;
    if (result == 0 && !matched)
        report_say(verdict, REPORT_DOUBT, "%s predicts no pair and size of this run.", forecast->path);
    else if (result == 0)
        result = report_forecast_draw(figures, verdict, grid->run, matches, matched, status);
    free(matches);
    free(list);
    free(text);
    return result;
}
