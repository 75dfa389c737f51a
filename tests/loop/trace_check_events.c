/* A rank's trace. */
#include "trace_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIDS 512
#define DEPTH 64
#define TOLERANCE_NS 1000

/* What has come of a tid. */
struct track {
    json_int_t tid;
    bool named;
    int64_t last_ns;     /* begin of the last event */
    int64_t open[DEPTH]; /* ends of those around the next one */
    int depth;
};

struct reading {
    struct track tracks[TIDS];
    int count;
    int64_t base_ns;
    bool process_named, message; /* there was one */
    int64_t begin_ns, end_ns;    /* of the last message */
    struct check_row *row;       /* its line of the log */
};

static struct track *track_of(struct reading *reading, json_int_t tid)
{
    for (int i = 0; i < reading->count; i++)
        if (reading->tracks[i].tid == tid)
            return &reading->tracks[i];
    if (reading->count == TIDS)
        return NULL;
    reading->tracks[reading->count] = (struct track){.tid = tid, .last_ns = INT64_MIN};
    return &reading->tracks[reading->count++];
}

static int check_order(struct check *check, struct track *track, const char *name, int64_t begin_ns, int64_t end_ns)
{
    if (begin_ns < track->last_ns)
        return check_refuse(check, "%.100s: begins before the last event of tid %" JSON_INTEGER_FORMAT, name,
                            track->tid);
    track->last_ns = begin_ns;
    while (track->depth > 0 && track->open[track->depth - 1] <= begin_ns)
        track->depth--;
    if (track->depth > 0 && track->open[track->depth - 1] < end_ns)
        return check_refuse(check, "%.100s: overlaps an event of tid %" JSON_INTEGER_FORMAT " and is not within it",
                            name, track->tid);
    if (track->depth == DEPTH)
        return check_refuse(check, "%.100s: is the %dth event in each other", name, DEPTH + 1);
    track->open[track->depth++] = end_ns;
    return 0;
}

/* --- messages --- */

static int check_message_args(struct check *check, const struct check_row *row, int side, const char *name,
                              const json_t *args, json_int_t *record)
{
    const json_t *size = check_member(check, args, name, "size", JSON_INTEGER);
    const json_t *src = size ? check_member(check, args, name, "src", JSON_INTEGER) : NULL;
    const json_t *dst = src ? check_member(check, args, name, "dst", JSON_INTEGER) : NULL;
    const json_t *role = dst ? check_member(check, args, name, "role", JSON_STRING) : NULL;
    const json_t *number = role ? check_member(check, args, name, "Record function id", JSON_INTEGER) : NULL;

    if (!number || !check_member(check, args, name, "backend", JSON_STRING) ||
        !check_member(check, args, name, "stamps", JSON_ARRAY))
        return -1;
    if ((unsigned long long)json_integer_value(size) != row->size || json_integer_value(src) != row->src ||
        json_integer_value(dst) != row->dst || strcmp(json_string_value(role), side ? "recv" : "send") != 0)
        return check_refuse(check, "%.100s: its args tell of another message", name);
    *record = json_integer_value(number);
    return 0;
}

static int check_message(struct check *check, struct reading *reading, const char *name, const json_t *args,
                         int64_t begin_ns, int64_t end_ns)
{
    int side;
    struct check_row *row = check_find(check, name, &side);

    if (!row || check_message_args(check, row, side, name, args, &row->record[side]) < 0)
        return -1;
    if (row->traced[side])
        return check_refuse(check, "%.100s is there twice", name);
    row->traced[side] = true;
    /* Where the clocks say that it overlaps the message before it, it is drawn from the end of that on. */
    int64_t trimmed = json_integer_value(json_object_get(args, "trimmed_ns"));
    if (trimmed < 0 || llabs((end_ns - begin_ns + trimmed) - (row->end_ns - row->start_ns)) > TOLERANCE_NS)
        return check_refuse(check, "%.100s: takes %" PRId64 " ns, and in the log %" PRId64, name, end_ns - begin_ns,
                            row->end_ns - row->start_ns);
    if (llabs(reading->base_ns + begin_ns - trimmed - row->start_ns) > TOLERANCE_NS)
        return check_refuse(check, "%.100s: begins at %" PRId64 ", and in the log at %" PRId64, name,
                            reading->base_ns + begin_ns, row->start_ns);
    reading->message = true;
    reading->row = row;
    row->weft = strcmp(json_string_value(json_object_get(args, "backend")), "weft") == 0;
    reading->begin_ns = begin_ns;
    reading->end_ns = end_ns;
    return 0;
}

static int check_span(struct check *check, const struct reading *reading, const char *name, const json_t *args,
                      int64_t begin_ns, int64_t end_ns)
{
    const json_t *bytes = check_member(check, args, name, "bytes", JSON_INTEGER);
    const json_t *offset = bytes ? check_member(check, args, name, "offset", JSON_INTEGER) : NULL;

    if (!offset)
        return -1;
    if (!reading->message || begin_ns < reading->begin_ns || end_ns > reading->end_ns)
        return check_refuse(check, "%.100s: is not within the message before it", name);
    if (check->pieces &&
        (unsigned long long)(json_integer_value(bytes) + json_integer_value(offset)) > reading->row->size)
        return check_refuse(check, "%.100s: ends behind the %llu bytes of its message", name, reading->row->size);
    reading->row->pieces++;
    return 0;
}

/* --- events --- */

static int64_t to_ns(const json_t *us)
{
    return llround(json_real_value(us) * 1e3);
}

static int check_complete(struct check *check, struct reading *reading, struct track *track, const char *name,
                          const json_t *event)
{
    const json_t *category = check_member(check, event, name, "cat", JSON_STRING);
    const json_t *ts = category ? check_member(check, event, name, "ts", JSON_REAL) : NULL;
    const json_t *duration = ts ? check_member(check, event, name, "dur", JSON_REAL) : NULL;
    const json_t *args = duration ? check_member(check, event, name, "args", JSON_OBJECT) : NULL;

    if (!args)
        return -1;
    int64_t begin_ns = to_ns(ts), end_ns = begin_ns + to_ns(duration);
    if (begin_ns < 0 || end_ns < begin_ns)
        return check_refuse(check, "%.100s: a negative time", name);
    if (!track->named)
        return check_refuse(check, "%.100s: tid %" JSON_INTEGER_FORMAT " has no name yet", name, track->tid);
    if (check_order(check, track, name, begin_ns, end_ns) < 0)
        return -1;
    if (strcmp(json_string_value(category), "user_annotation") == 0)
        return check_message(check, reading, name, args, begin_ns, end_ns);
    return check_span(check, reading, name, args, begin_ns, end_ns);
}

static int check_meta(struct check *check, struct reading *reading, struct track *track, const char *name,
                      const json_t *event)
{
    const json_t *args = check_member(check, event, name, "args", JSON_OBJECT);

    if (!args)
        return -1;
    bool index = strstr(name, "sort_index") != NULL, labels = strcmp(name, "process_labels") == 0;
    if (!check_member(check, args, name,
                      index    ? "sort_index"
                      : labels ? "labels"
                               : "name",
                      index ? JSON_INTEGER : JSON_STRING))
        return -1;
    track->named |= strcmp(name, "thread_name") == 0;
    reading->process_named |= strcmp(name, "process_name") == 0;
    return 0;
}

static int check_event(struct check *check, struct reading *reading, const json_t *event)
{
    const json_t *name = check_member(check, event, "an event", "name", JSON_STRING);
    const json_t *phase = name ? check_member(check, event, json_string_value(name), "ph", JSON_STRING) : NULL;

    if (!phase || !check_member(check, event, json_string_value(name), "pid", JSON_INTEGER))
        return -1;
    const json_t *tid = check_member(check, event, json_string_value(name), "tid", JSON_INTEGER);
    struct track *track = tid ? track_of(reading, json_integer_value(tid)) : NULL;
    if (!track)
        return tid ? check_refuse(check, "there are more than %d tids", TIDS) : -1;
    if (strcmp(json_string_value(phase), "M") == 0)
        return check_meta(check, reading, track, json_string_value(name), event);
    if (strcmp(json_string_value(phase), "X") == 0)
        return check_complete(check, reading, track, json_string_value(name), event);
    return check_refuse(check, "%.100s: its ph is '%s', which is neither M nor X", json_string_value(name),
                        json_string_value(phase));
}

static int check_head(struct check *check, const json_t *root, struct reading *reading)
{
    static const struct {
        const char *name;
        json_type type;
    } wanted[] = {{"schemaVersion", JSON_INTEGER},  {"deviceProperties", JSON_ARRAY},
                  {"displayTimeUnit", JSON_STRING}, {"baseTimeNanoseconds", JSON_INTEGER},
                  {"traceName", JSON_STRING},       {"baseMonotonicNanoseconds", JSON_INTEGER},
                  {"distributedInfo", JSON_OBJECT}, {"traceEvents", JSON_ARRAY}};
    const json_t *member = NULL, *info = json_object_get(root, "distributedInfo");

    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if ((member = check_member(check, root, "the trace", wanted[i].name, wanted[i].type)) == NULL)
            return -1;
    const json_t *rank = check_member(check, info, "distributedInfo", "rank", JSON_INTEGER);
    const json_t *world = rank ? check_member(check, info, "distributedInfo", "world_size", JSON_INTEGER) : NULL;
    if (!world || !check_member(check, info, "distributedInfo", "backend", JSON_STRING))
        return -1;
    if (json_integer_value(rank) != check->rank || json_integer_value(world) <= check->rank)
        return check_refuse(check, "it is of rank %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT,
                            json_integer_value(rank), json_integer_value(world));
    check->world = (unsigned)json_integer_value(world);
    reading->base_ns = json_integer_value(json_object_get(root, "baseMonotonicNanoseconds"));
    return 0;
}

int check_trace(struct check *check, const json_t *root)
{
    struct reading *reading = calloc(1, sizeof *reading);
    const json_t *event;
    size_t i;

    if (!reading)
        return check_refuse(check, "no memory");
    int result = check_head(check, root, reading);
    json_array_foreach(json_object_get(root, "traceEvents"), i, event)
    {
        if (result == 0)
            result = check_event(check, reading, event);
    }
    if (result == 0 && !reading->process_named)
        result = check_refuse(check, "its process has no name");
    free(reading);
    return result;
}
