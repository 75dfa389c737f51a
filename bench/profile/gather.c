/* node1 tells node0 what it has seen, in texts of bounded length; in the end node0 tells it the samples. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/words/heard.h"
#include "parts.h"

#define TEXT_BYTES (256u << 10) /* of the sampler's rows */
#define SENSED_TEXTS_MOST 4096  /* 1 GiB of them */

/* --- lists --- */

/* Makes the JSON of entry `at` of a list: a new reference. */
typedef json_t *entry_make(const struct profile *profile, size_t at);
/* Reads the JSON of entry `at` into the profile. -EPROTO: it is not what such an entry has to be. */
typedef int entry_take(struct profile *profile, size_t at, const json_t *entry, struct wf_status *status);

static int bad_entry(const char *what, struct wf_status *status)
{
    return wf_fail(status, -EPROTO, "the other node sent %s that are none: use the same build on both", what);
}

/* {"list": [...], "more": bool}, in as many texts as the list needs. */
static int tell_list(const struct profile *profile, entry_make *make, size_t count, size_t per_text,
                     struct wf_status *status)
{
    size_t at = 0;
    int result = 0;

    do {
        json_t *list = json_array();
        for (size_t i = 0; i < per_text && at < count; i++)
            json_array_append_new(list, make(profile, at++));
        json_t *text = json_pack("{s:o, s:b}", "list", list, "more", (int)(at < count));
        result = bench_control_say(profile->site->bed->control, text, status);
        json_decref(text);
    } while (result == 0 && at < count);
    return result;
}

/* At least and at most so many. */
static int hear_list(struct profile *profile, entry_take *take, size_t least, size_t most, const char *what,
                     struct wf_status *status)
{
    size_t at = 0;
    bool more = true;
    int result = 0;

    while (result == 0 && more) {
        json_t *text = NULL, *entry;
        size_t index;
        result = bench_control_hear(profile->site->bed->control, &text, status);
        if (result)
            return result;
        const json_t *list = json_object_get(text, "list");
        more = json_is_true(json_object_get(text, "more"));
        if (json_array_size(list) > most - at || (more && json_array_size(list) == 0))
            result = bad_entry(what, status);
        json_array_foreach(list, index, entry)
        {
            if (result == 0)
                result = take(profile, at++, entry, status);
        }
        json_decref(text);
    }
    return result == 0 && at < least ? bad_entry(what, status) : result;
}

static int64_t number_at(const json_t *entry, size_t at)
{
    return (int64_t)json_integer_value(json_array_get(entry, at));
}

/* --- marks --- */

static json_t *make_mark(const struct profile *profile, size_t at)
{
    const struct profile_mark *mark = &profile->marks[1][at];

    return json_pack("[I, I, I, I, I, I, I, I, I]", (json_int_t)mark->begin_ns, (json_int_t)mark->end_ns,
                     (json_int_t)mark->retransmits, (json_int_t)mark->failures, (json_int_t)mark->troubles,
                     (json_int_t)mark->events[0], (json_int_t)mark->events[1], (json_int_t)mark->events[2],
                     (json_int_t)mark->events[3]);
}

/* A time of a clock, or 0: differences of two of them fit. */
static bool is_span(const json_t *entry)
{
    int64_t begin = number_at(entry, 0), end = number_at(entry, 1);

    return begin >= 0 && begin <= end && end < INT64_MAX / 4;
}

static uint32_t count_at(const json_t *entry, size_t at)
{
    int64_t count = number_at(entry, at);

    return count < 0 ? 0 : count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
}

/* Of a message in which node1 has a part, there is a time. */
static int take_mark(struct profile *profile, size_t at, const json_t *entry, struct wf_status *status)
{
    const struct bench_pair *pair = profile_pair(profile, profile_config_of(profile, at));
    bool part = pair->src_node == 1 || pair->dst_node == 1;

    if (json_array_size(entry) != 9 || !is_span(entry) || part != (number_at(entry, 1) != 0))
        return bad_entry("times", status);
    profile->marks[1][at] = (struct profile_mark){
        .begin_ns = number_at(entry, 0),
        .end_ns = number_at(entry, 1),
        .retransmits = count_at(entry, 2),
        .failures = count_at(entry, 3),
        .troubles = count_at(entry, 4) & ((1u << BENCH_STAMPS) - 1),
        .events = {count_at(entry, 5), count_at(entry, 6), count_at(entry, 7), count_at(entry, 8)},
    };
    return 0;
}

/* --- spans --- */

static json_t *make_span(const struct profile *profile, size_t at)
{
    const struct bench_profile_span *span = &profile->spans[at];

    return json_pack("[I, I, I, I, I, I, i, i, i, i]", (json_int_t)span->begin_ns, (json_int_t)span->end_ns,
                     (json_int_t)span->offset, (json_int_t)span->bytes, (json_int_t)span->row, (json_int_t)span->rank,
                     (int)span->rail, (int)span->channel, (int)span->gpu, (int)span->kind);
}

/* A small number that may be -1: none. */
static bool is_small(int64_t number)
{
    return number >= -1 && number <= INT16_MAX;
}

/* Whether a piece can be one of node1's end of its message. */
static bool belongs(const struct profile *profile, const json_t *entry)
{
    int64_t row = number_at(entry, 4), rank = number_at(entry, 5), kind = number_at(entry, 9);

    if (json_array_size(entry) != 10 || !is_span(entry) || row < 0 || (size_t)row >= profile->row_count || kind < 0 ||
        kind >= BENCH_SPAN_KINDS)
        return false;
    const struct bench_pair *pair = profile_pair(profile, profile_config_of(profile, (size_t)row));
    bool leaves = kind == BENCH_SPAN_SENT || kind == BENCH_SPAN_COPIED_OUT;
    return (leaves ? pair->src_node : pair->dst_node) == 1 &&
           rank == profile_rank(profile, 1, leaves ? pair->src : pair->dst) && number_at(entry, 2) >= 0 &&
           number_at(entry, 3) >= 0 && is_small(number_at(entry, 6)) && is_small(number_at(entry, 7)) &&
           is_small(number_at(entry, 8));
}

static int take_span(struct profile *profile, size_t at, const json_t *entry, struct wf_status *status)
{
    (void)at;
    if (!belongs(profile, entry))
        return bad_entry("spans", status);
    const struct bench_profile_span span = {
        .begin_ns = number_at(entry, 0),
        .end_ns = number_at(entry, 1),
        .offset = (uint64_t)number_at(entry, 2),
        .bytes = (uint64_t)number_at(entry, 3),
        .row = (uint32_t)number_at(entry, 4),
        .rank = (uint32_t)number_at(entry, 5),
        .rail = (int16_t)number_at(entry, 6),
        .channel = (int16_t)number_at(entry, 7),
        .gpu = (int16_t)number_at(entry, 8),
        .kind = (uint8_t)number_at(entry, 9),
    };
    return profile_keep_span(profile, &span, status);
}

/* --- what came to node1, and which way from and to its memory --- */

static bool has_end(const struct bench_pair *pair, int node)
{
    return pair->src_node == node || pair->dst_node == node;
}

static json_t *make_sum(const struct profile *profile, size_t at)
{
    const struct bench_bed *bed = profile->site->bed;
    struct bench_sample sample;

    if (!has_end(profile_pair(profile, &profile->configs[at]), bed->node))
        return json_null();
    profile_sample(profile, at, &sample);
    return bench_sample_to_json(&sample, profile->plan->pattern, &profile->site->result->rails[bed->node]);
}

static int take_sum(struct profile *profile, size_t at, const json_t *entry, struct wf_status *status)
{
    struct profile_sum *sum = &profile->sums[at];
    const struct bench_pair *pair = profile_pair(profile, &profile->configs[at]);
    struct bench_sample sample;

    if (has_end(pair, 1) == json_is_null(entry))
        return bad_entry("samples", status);
    if (json_is_null(entry))
        return 0;
    int result = bench_sample_from_json(entry, profile->site->options->backends, profile->plan, &sample, status);
    if (result)
        return result;
    sum->resent_bytes += sample.resent_bytes; /* of node1's own, whichever end it has */
    if (pair->src_node == 1)
        sum->path_send = sample.path_send;
    if (pair->dst_node != 1)
        return 0;
    sum->path_receive = sample.path_receive;
    sum->verified_bytes = sample.verified_bytes;
    sum->wrong = sample.wrong;
    free(sum->rail_bytes);
    sum->rail_bytes = calloc((size_t)sample.rail_count + 1, sizeof *sum->rail_bytes);
    if (!sum->rail_bytes)
        return wf_fail(status, -ENOMEM, "no memory for what came on each rail");
    sum->rail_count = sample.rail_count;
    memcpy(sum->rail_bytes, sample.rail_bytes, (size_t)sample.rail_count * sizeof *sum->rail_bytes);
    return 0;
}

/* --- the sampler's rows --- */

static int tell_sensed(struct profile *profile, struct wf_status *status)
{
    char *lines = malloc(TEXT_BYTES);
    uint64_t next = 0;
    size_t length;
    int result = lines ? 0 : wf_fail(status, -ENOMEM, "no memory for the sampler's rows");

    do {
        length = result ? 0 : bench_sense_rows(profile->sense, 1, &next, lines, TEXT_BYTES);
        json_t *text = json_pack("{s:s%}", "text", length ? lines : "", length);
        if (result == 0)
            result = bench_control_say(profile->site->bed->control, text, status);
        json_decref(text);
    } while (result == 0 && length > 0);
    free(lines);
    return result;
}

static int hear_sensed(struct profile *profile, struct wf_status *status)
{
    bool more = true;
    int result = 0;

    profile->sensed = json_array();
    while (result == 0 && more) {
        json_t *text = NULL;
        result = bench_control_hear(profile->site->bed->control, &text, status);
        if (result)
            return result;
        more = json_string_length(json_object_get(text, "text")) > 0;
        if (json_array_size(profile->sensed) == SENSED_TEXTS_MOST ||
            json_string_length(json_object_get(text, "text")) > TEXT_BYTES)
            result = bad_entry("temperatures", status);
        else if (more)
            json_array_append(profile->sensed, json_object_get(text, "text"));
        json_decref(text);
    }
    return result;
}

/* --- all of it --- */

static int tell_all(struct profile *profile, struct wf_status *status)
{
    int result = bench_control_say(profile->site->bed->control, profile->about[1], status);

    if (result == 0)
        result = tell_list(profile, make_mark, profile->row_count, PROFILE_TEXT_ROWS, status);
    if (result == 0)
        result = tell_list(profile, make_span, profile->span_count, PROFILE_TEXT_ROWS, status);
    if (result == 0)
        result = tell_list(profile, make_sum, profile->config_count, BENCH_SAMPLES_PER_TEXT, status);
    return result ? result : tell_sensed(profile, status);
}

static int hear_all(struct profile *profile, struct wf_status *status)
{
    int result = bench_control_hear(profile->site->bed->control, &profile->about[1], status);

    if (result == 0)
        result = hear_list(profile, take_mark, profile->row_count, profile->row_count, "times", status);
    if (result == 0)
        result = hear_list(profile, take_span, 0, profile->row_count * 2 * PROFILE_SPANS_MOST, "spans", status);
    if (result == 0)
        result = hear_list(profile, take_sum, profile->config_count, profile->config_count, "samples", status);
    return result ? result : hear_sensed(profile, status);
}

int profile_gather(struct profile *profile, struct wf_status *status)
{
    return profile->site->bed->node == 1 ? tell_all(profile, status) : hear_all(profile, status);
}

static json_t *make_sample(const struct profile *profile, size_t at)
{
    const struct bench_result *result = profile->site->result;
    const struct bench_sample *sample = &result->samples[at];

    return bench_sample_to_json(sample, profile->plan->pattern, &result->rails[sample->pair.dst_node]);
}

static int take_sample(struct profile *profile, size_t at, const json_t *entry, struct wf_status *status)
{
    struct bench_sample sample;
    int result = bench_sample_from_json(entry, profile->site->options->backends, profile->plan, &sample, status);

    (void)at;
    return result ? result : bench_result_add(profile->site->result, &sample, status);
}

int profile_share_samples(struct profile *profile, struct wf_status *status)
{
    if (profile->site->bed->node == 0)
        return tell_list(profile, make_sample, profile->site->result->sample_count, BENCH_SAMPLES_PER_TEXT, status);
    return hear_list(profile, take_sample, profile->config_count, profile->config_count, "samples", status);
}
