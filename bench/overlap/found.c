/* From the lines of a rank to cases with their figures. */
#include "parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"
#include "bench/words/words.h"

static const char *const modes[] = {"compute", "communicate", "serial", "overlapped"};

#define LAYERS_MOST 65536 /* that are believed */
#define MODES (sizeof modes / sizeof modes[0])

int overlap_found_init(struct overlap_found *found, struct wf_status *status)
{
    *found = (struct overlap_found){.runs = json_array(), .cases = json_array(), .absent = json_array()};
    return found->runs && found->cases && found->absent ? 0 : wf_fail(status, -ENOMEM, "no memory for results");
}

void overlap_found_fini(struct overlap_found *found)
{
    json_decref(found->runs);
    json_decref(found->cases);
    json_decref(found->absent);
    memset(found, 0, sizeof *found);
}

static double number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

/* --- figures of a case --- */

static double hidden_of(const json_t *iteration)
{
    return (number(iteration, "serial_s") - number(iteration, "overlapped_s")) / number(iteration, "communicate_s");
}

/* Collects what `pick`, or the member `name` where there is none, has in all iterations; returns the median. */
static double median(const json_t *iterations, const char *name, double (*pick)(const json_t *), double *least,
                     double *most)
{
    size_t count = json_array_size(iterations);
    double *values = calloc(count + 1, sizeof *values), middle = 0;

    for (size_t i = 0; values && i < count; i++) {
        const json_t *one = json_array_get(iterations, i);
        values[i] = pick ? pick(one) : number(one, name);
        *least = i ? fmin(*least, values[i]) : values[i];
        *most = i ? fmax(*most, values[i]) : values[i];
    }
    if (values && count)
        middle = wf_median(values, count);
    free(values);
    return middle;
}

/* What is hidden where communication costs the computation nothing: each bucket begins when its layers are done and the
 * one before it is through. */
static double most_hidden(const json_t *one, double compute, double communicate)
{
    double total = number(one, "layers") * number(one, "layer_bytes"), last = number(one, "last_bucket_bytes");
    double count = number(one, "buckets"), each = count > 1 ? (total - last) / (count - 1) : last, end = 0;

    for (double bucket = 1; bucket <= count; bucket++) {
        double ready = bucket < count ? compute * bucket * each / total : compute;
        end = fmax(end, ready) + communicate * (bucket < count ? each : last) / total;
    }
    return (compute + communicate - end) / communicate;
}

static void sum_up(json_t *one)
{
    const json_t *iterations = json_object_get(one, "iterations");
    double walls[MODES], cpus[MODES], least = 0, most = 0;
    json_t *wall = json_object(), *cpu = json_object();
    char name[32];

    for (size_t i = 0; i < MODES; i++) {
        snprintf(name, sizeof name, "%s_s", modes[i]);
        walls[i] = median(iterations, name, NULL, &least, &most);
        json_object_set_new(wall, modes[i], json_real(walls[i]));
        snprintf(name, sizeof name, "%s_cpu_s", modes[i]);
        cpus[i] = median(iterations, name, NULL, &least, &most);
        json_object_set_new(cpu, modes[i], json_real(cpus[i]));
    }
    double hidden = median(iterations, NULL, hidden_of, &least, &most);
    json_object_set_new(one, "wall_s", wall);
    json_object_set_new(one, "cpu_s", cpu);
    json_object_set_new(one, "hidden", json_pack("{s:f, s:f, s:f}", "median", hidden, "min", least, "max", most));
    json_object_set_new(one, "hidden_at_most", json_real(most_hidden(one, walls[0], walls[1])));
    json_object_set_new(one, "cores_to_communicate", json_real(cpus[1] / walls[1] / number(one, "ranks")));
}

/* --- lines --- */

static bool has_numbers(const json_t *line, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(line, names[i]);
        if (!json_is_number(value) || !(json_number_value(value) >= 0))
            return false;
    }
    return true;
}

static bool begin(struct overlap_found *found, const struct coll_run *run, uint32_t ranks, json_t *line)
{
    static const char *const needed[] = {"layers", "layer_bytes", "batch", "buckets", "last_bucket_bytes"};
    json_t *one =
        json_pack("{s:s, s:s, s:I}", "backend", run->backend->name, "way", run->way->name, "ranks", (json_int_t)ranks);

    if (!one || !has_numbers(line, needed, sizeof needed / sizeof needed[0]) || number(line, "buckets") < 1 ||
        number(line, "layers") < number(line, "buckets") || number(line, "layers") > LAYERS_MOST ||
        number(line, "layer_bytes") < 1 || json_object_update(one, line) != 0) {
        json_decref(one);
        return false;
    }
    json_object_del(one, "event");
    json_object_set_new(one, "iterations", json_array());
    return json_array_append_new(found->cases, one) == 0;
}

static bool iterate(json_t *one, json_t *line)
{
    static const char *const needed[] = {"compute_s",     "communicate_s",     "serial_s",     "overlapped_s",
                                         "compute_cpu_s", "communicate_cpu_s", "serial_cpu_s", "overlapped_cpu_s"};

    if (!one || !has_numbers(line, needed, sizeof needed / sizeof needed[0]) || number(line, "communicate_s") == 0)
        return false;
    json_object_del(line, "event");
    json_object_del(line, "style");
    json_object_del(line, "bucket_bytes");
    json_array_append(json_object_get(one, "iterations"), line);
    sum_up(one);
    return true;
}

static bool end(struct overlap_found *found, json_t *one, const json_t *line)
{
    static const char *const needed[] = {"wrong", "checked"};

    if (!one || !has_numbers(line, needed, 2) || !json_is_object(json_object_get(line, "timeline")))
        return false;
    found->wrong += (uint64_t)number(line, "wrong");
    json_object_set(one, "wrong_elements", json_object_get(line, "wrong"));
    json_object_set(one, "verified_elements", json_object_get(line, "checked"));
    json_object_set(one, "timeline", json_object_get(line, "timeline"));
    return true;
}

static bool lack(struct overlap_found *found, const struct coll_run *run, const json_t *line)
{
    const char *why = json_string_value(json_object_get(line, "why"));
    const char *style = json_string_value(json_object_get(line, "style"));

    if (!why || !style)
        return false;
    coll_reason_add(found->absent, why, "%s, %s, buckets of %.0f MiB", run->backend->name, style,
                    number(line, "bucket_bytes") / (1 << 20));
    return true;
}

/* Whose lines they are. */
struct reading {
    struct overlap_found *found;
    const struct coll_run *run;
};

static bool take(void *context, uint32_t ranks, json_t *line)
{
    const struct reading *reading = context;
    struct overlap_found *found = reading->found;
    const struct coll_run *run = reading->run;
    const char *event = json_string_value(json_object_get(line, "event"));
    size_t count = json_array_size(found->cases);
    json_t *last = count ? json_array_get(found->cases, count - 1) : NULL;

    if (!event)
        return false;
    if (strcmp(event, "start") == 0)
        return begin(found, run, ranks, line);
    if (strcmp(event, "iteration") == 0)
        return iterate(last, line);
    if (strcmp(event, "end") == 0)
        return end(found, last, line);
    return strcmp(event, "lack") == 0 && lack(found, run, line);
}

int overlap_read(struct overlap_found *found, const struct coll_run *run, const char *text, json_t **facts,
                 struct wf_status *status)
{
    struct reading reading = {found, run};
    uint32_t ranks = 0;

    return coll_read_lines(text, run->backend->name, take, &reading, facts, &ranks, status);
}
