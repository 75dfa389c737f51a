#include "found.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"
#include "bench/words/heard.h"

#define NEAR 0.1

static double number_of(const json_t *event, const char *name)
{
    return json_number_value(json_object_get(event, name));
}

/* Where a line belongs, by a member that only such a line has. */
static bool take(struct straggler_found *found, json_t *line)
{
    json_t *deadline = json_object_get(line, "deadline");
    json_t **place = deadline                          ? &found->deadline
                     : json_object_get(line, "names")  ? &found->facts
                     : json_object_get(line, "took_s") ? &found->end
                                                       : NULL;

    if (json_object_get(line, "barrier"))
        return json_array_append(found->events, line) == 0;
    if (json_object_get(line, "to"))
        return json_array_append(found->curve, line) == 0;
    if (!place || *place)
        return false;
    *place = json_incref(deadline ? deadline : line);
    return true;
}

int straggler_found_read(struct straggler_found *found, const char *text, struct wf_status *status)
{
    found->events = json_array();
    found->curve = json_array();
    while (*text) {
        size_t length = strcspn(text, "\n");
        json_t *line = bench_heard(text, length);
        bool good = line && take(found, line);
        json_decref(line);
        if (!good)
            return wf_fail(status, -EPROTO, "rank 0 said '%.*s', which is not understood",
                           (int)(length > 100 ? 100 : length), text);
        text += length + (text[length] == '\n');
    }
    return 0;
}

void straggler_found_fini(struct straggler_found *found)
{
    json_decref(found->facts);
    json_decref(found->events);
    json_decref(found->curve);
    json_decref(found->deadline);
    json_decref(found->end);
    memset(found, 0, sizeof *found);
}

const char *straggler_name(const struct straggler_found *found, int rank)
{
    const char *name = json_string_value(json_array_get(json_object_get(found->facts, "names"), (size_t)rank));

    return name ? name : "?";
}

/* --- sums --- */

/* Figures of the events, one list each. */
struct lists {
    double *off, *late_ms, *after_ms;
    size_t off_count, named_count;
};

static void count(const json_t *event, struct straggler_sums *sums, struct lists *lists)
{
    double delayed_ms = number_of(event, "delayed_ms"), late_ms = number_of(event, "late_ms");
    bool named = json_is_true(json_object_get(event, "named"));

    sums->delayed += delayed_ms > 0;
    sums->found += delayed_ms > 0 && named;
    sums->named += delayed_ms <= 0 && named;
    sums->processor += delayed_ms <= 0 && !named;
    if (!named)
        return;
    lists->late_ms[lists->named_count] = late_ms;
    lists->after_ms[lists->named_count++] = number_of(event, "after_ms");
    if (delayed_ms <= 0)
        return;
    double off = fabs(late_ms / delayed_ms - 1);
    sums->near += off <= NEAR;
    sums->off_most = fmax(sums->off_most, off);
    lists->off[lists->off_count++] = off;
}

void straggler_sum(const struct straggler_found *found, int rank, struct straggler_sums *sums)
{
    size_t index, room = json_array_size(found->events) + 1;
    struct lists lists = {.off = calloc(3 * room, sizeof(double))};
    const json_t *event;

    memset(sums, 0, sizeof *sums);
    if (!lists.off)
        return;
    lists.late_ms = lists.off + room;
    lists.after_ms = lists.late_ms + room;
    json_array_foreach(found->events, index, event)
    {
        if (rank < 0 || (int)number_of(event, "rank") == rank)
            count(event, sums, &lists);
    }
    sums->off = wf_median(lists.off, lists.off_count);
    sums->late_ms = wf_median(lists.late_ms, lists.named_count);
    sums->after_ms = wf_median(lists.after_ms, lists.named_count);
    free(lists.off);
}
