#include "result.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "bench/backends/backend.h"
#include "bench/machine/gpus.h"
#include "bench/plan/names.h"
#include "bench/words/heard.h"
#include "bench/words/interrupt.h"
#include "bench/words/words.h"
#include "stream.h"

void bench_result_init(struct bench_result *result, const struct bench_options *options, int node)
{
    char stamp[32];
    time_t now = time(NULL);
    struct tm utc;

    memset(result, 0, sizeof *result);
    pthread_mutex_init(&result->lock, NULL);
    (void)bench_result_set_nodes(result, 2, &(struct wf_status){0});
    result->options = options;
    result->node = node;
    gmtime_r(&now, &utc);
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc);
    bench_result_stamp(result, stamp);
}

static void forget_nodes(struct bench_result *result)
{
    for (int node = 0; node < result->node_count; node++) {
        json_decref(result->host[node]);
        json_decref(result->rail_totals[node]);
        json_decref(result->fallbacks[node]);
        json_decref(result->faults[node]);
    }
    result->node_count = 0;
    free(result->rails);
    free(result->host); /* and the other lists, which are one piece of memory with it */
}

int bench_result_set_nodes(struct bench_result *result, int count, struct wf_status *status)
{
    struct bench_rail_names *rails = calloc((size_t)count, sizeof *rails);
    json_t **lists = calloc(4 * (size_t)count, sizeof *lists);

    if (!rails || !lists) {
        free(rails);
        free(lists);
        return wf_fail(status, -ENOMEM, "no memory for the results of %d nodes", count);
    }
    pthread_mutex_lock(&result->lock);
    forget_nodes(result);
    result->rails = rails;
    result->host = lists;
    result->rail_totals = lists + count;
    result->fallbacks = lists + 2 * count;
    result->faults = lists + 3 * count;
    result->node_count = count;
    pthread_mutex_unlock(&result->lock);
    return 0;
}

void bench_result_fini(struct bench_result *result)
{
    forget_nodes(result);
    for (int i = 0; i < result->set_count; i++)
        free(result->sets[i].busy);
    free(result->samples);
    free(result->sets);
    pthread_mutex_destroy(&result->lock);
}

bool bench_is_stamp(const char *text)
{
    static const char digits[] = "0123456789";

    if (strnlen(text, 16) < 16 || strspn(text, digits) != 8 || text[8] != 'T' || strspn(text + 9, digits) != 6 ||
        text[15] != 'Z')
        return false;
    const char *number = text + 16;
    size_t length = strlen(number);
    return length == 0 || (number[0] == '-' && length > 1 && length <= 10 && strspn(number + 1, digits) == length - 1);
}

void bench_result_stamp(struct bench_result *result, const char *stamp)
{
    bench_copy_text(result->stamp, sizeof result->stamp, stamp);
    if (bench_is_stamp(stamp))
        snprintf(result->started, sizeof result->started, "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", stamp, stamp + 4, stamp + 6,
                 stamp + 9, stamp + 11, stamp + 13);
}

int bench_result_add(struct bench_result *result, const struct bench_sample *sample, struct wf_status *status)
{
    int code = 0;

    pthread_mutex_lock(&result->lock);
    if (result->sample_count == result->sample_room) {
        size_t room = result->sample_room ? 2 * result->sample_room : 256;
        struct bench_sample *grown = realloc(result->samples, room * sizeof *grown);
        if (grown) {
            result->samples = grown;
            result->sample_room = room;
        } else {
            code = wf_fail(status, -ENOMEM, "no memory for %zu samples", room);
        }
    }
    if (code == 0) {
        result->samples[result->sample_count++] = *sample;
        bench_stream_add(result, sample);
    }
    pthread_mutex_unlock(&result->lock);
    return code;
}

int bench_result_add_set(struct bench_result *result, const struct bench_set *set, struct wf_status *status)
{
    struct bench_busy *busy = calloc((size_t)result->node_count, sizeof *busy);
    struct bench_set *grown;

    pthread_mutex_lock(&result->lock);
    grown = busy ? realloc(result->sets, ((size_t)result->set_count + 1) * sizeof *grown) : NULL;
    if (grown) {
        result->sets = grown;
        result->sets[result->set_count] = *set;
        result->sets[result->set_count].busy = busy;
        if (set->busy)
            memcpy(busy, set->busy, (size_t)result->node_count * sizeof *busy);
        if (result->begun_ns)
            result->sets[result->set_count].ended_s =
                (double)(wf_clock_now(&wf_clock_monotonic) - result->begun_ns) / 1e9;
        result->set_count++;
    }
    pthread_mutex_unlock(&result->lock);
    if (!grown)
        free(busy);
    return grown ? 0 : wf_fail(status, -ENOMEM, "no memory for a result");
}

/* A word of the command line that is repeated in it need not be UTF-8, as JSON has to be. */
static void keep_error(struct bench_result *result, const char *reason)
{
    snprintf(result->error, sizeof result->error, "%s", reason);
    wf_text_utf8(result->error);
}

void bench_result_cut(struct bench_result *result, const struct bench_cut *cut, const char *reason)
{
    pthread_mutex_lock(&result->lock);
    if (!result->complete && !result->cut.by)
        result->cut = *cut;
    if (!result->error[0]) {
        keep_error(result, reason);
        result->error_code = cut->code;
        result->exit_status = cut->exit_status;
    }
    pthread_mutex_unlock(&result->lock);
}

void bench_result_unwritten(struct bench_result *result, const struct wf_status *why)
{
    if (result->error[0])
        return;
    keep_error(result, why->text);
    result->error_code = why->code;
    result->exit_status = BENCH_FAILED;
}

static void keep(json_t **place, const json_t *totals, const char *name)
{
    json_decref(*place);
    *place = json_incref(json_object_get(totals, name));
}

/* What bench_footprint_to_json() tells, and nothing else: the other node may tell it as often as it likes. */
static void keep_footprint(json_t *host, const json_t *footprint)
{
    static const char *const names[] = {"session_s",   "connect_s", "max_rss_bytes", "buffer_bytes",
                                        "descriptors", "threads",   "sessions"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (json_object_get(footprint, names[i]))
            json_object_set(host, names[i], json_object_get(footprint, names[i]));
}

static void keep_gpus(json_t *host, const json_t *totals, const char *name)
{
    json_t *each = json_object_get(totals, name);

    if (json_array_size(each) > 0)
        json_object_set(host, name, each);
}

static void keep_in_host(json_t *host, const json_t *totals)
{
    json_t *affinity = json_object_get(totals, "affinity"), *backends = json_object_get(totals, "backends");

    keep_footprint(host, json_object_get(totals, "footprint"));
    if (affinity)
        json_object_set(host, "affinity", affinity);
    if (backends)
        json_object_set(host, "backends", backends);
    if (json_is_object(json_object_get(totals, "memory_watch")))
        json_object_set(host, "memory_watch", json_object_get(totals, "memory_watch"));
    keep_gpus(host, totals, "gpu_copies");
    keep_gpus(host, totals, "devmem");
    bench_gpu_states_into(host, json_object_get(totals, "gpus"), "after");
}

void bench_result_keep_totals(struct bench_result *result, int node, const json_t *totals)
{
    pthread_mutex_lock(&result->lock);
    keep(&result->rail_totals[node], totals, "rails");
    keep(&result->faults[node], totals, "faults");
    if (json_object_get(totals, "fallbacks")) /* GPUs that were made ready may have added some */
        keep(&result->fallbacks[node], totals, "fallbacks");
    if (result->host[node])
        keep_in_host(result->host[node], totals);
    pthread_mutex_unlock(&result->lock);
}

static void add_rail(json_t *sum, const json_t *rail)
{
    static const char *const counts[] = {"bytes",    "sent_bytes",   "received_bytes", "stalls",
                                         "failures", "resent_bytes", "retransmits",    "damaged"};

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        json_int_t one = json_integer_value(json_object_get(sum, counts[i]));
        json_object_set_new(sum, counts[i], json_integer(one + json_integer_value(json_object_get(rail, counts[i]))));
    }
}

void bench_result_add_rails(struct bench_result *result, int node, const json_t *rails)
{
    const json_t *rail;
    size_t index;

    pthread_mutex_lock(&result->lock);
    json_array_foreach(rails, index, rail)
    {
        json_t *sum = json_array_get(result->rail_totals[node], index);
        if (sum)
            add_rail(sum, rail);
    }
    pthread_mutex_unlock(&result->lock);
}

char *bench_cut_text(const struct bench_result *result, char *buffer, size_t room)
{
    buffer[0] = '\0';
    if (result->cut.by == BENCH_CUT_SIGNAL)
        snprintf(buffer, room, "cut short by %s at node%d", bench_signal_name(result->cut.signal), result->cut.node);
    else if (result->cut.by)
        snprintf(buffer, room, "cut short: %s", result->error);
    return buffer;
}

uint64_t bench_result_wrong_bytes(const struct bench_result *result)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < result->sample_count; i++)
        sum += result->samples[i].wrong.bytes;
    return sum;
}

uint64_t bench_result_measured_bytes(const struct bench_result *result)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < result->sample_count; i++)
        sum += result->samples[i].checked ? bench_sample_measured_bytes(&result->samples[i]) : 0;
    return sum;
}

uint64_t bench_result_verified_bytes(const struct bench_result *result)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < result->sample_count; i++)
        sum += result->samples[i].verified_bytes;
    return sum;
}

bool bench_result_checked(const struct bench_result *result)
{
    for (size_t i = 0; i < result->sample_count; i++)
        if (result->samples[i].checked)
            return true;
    return false;
}

bool bench_result_passed(const struct bench_result *result)
{
    return result->complete && !result->error[0] && bench_result_wrong_bytes(result) == 0;
}

int bench_result_exit_status(const struct bench_result *result)
{
    if (bench_result_passed(result))
        return BENCH_PASSED;
    return result->exit_status ? result->exit_status : BENCH_FAILED;
}

bool bench_sample_in_set(const struct bench_sample *sample, const struct bench_set *set)
{
    return sample->backend == set->backend && sample->mode == set->mode && sample->size == set->size;
}

size_t bench_set_rates(const struct bench_result *result, const struct bench_set *set, double *rates)
{
    size_t count = 0;

    for (size_t i = 0; i < result->sample_count; i++) {
        double rate = bench_sample_in_set(&result->samples[i], set) ? bench_sample_rate(&result->samples[i]) : -1;
        if (rate >= 0)
            rates[count++] = rate;
    }
    return count;
}

double bench_set_aggregate(const struct bench_set *set)
{
    if (set->mode != BENCH_LOADED || !set->backend->moves_data || set->elapsed_ns <= 0)
        return -1;
    return (double)set->bytes / (double)set->elapsed_ns;
}

void bench_result_tell_wrong(const struct bench_result *result)
{
    for (size_t i = 0; i < result->sample_count; i++) {
        const struct bench_sample *sample = &result->samples[i];
        char src[32], dst[32], size[32], text[256];
        if (sample->wrong.bytes == 0)
            continue;
        fprintf(stderr, "weft: %s -> %s, %s, %s: %s\n", bench_src_name(&sample->pair, src, sizeof src),
                bench_dst_name(&sample->pair, dst, sizeof dst), wf_format_size(sample->wrong.size, size, sizeof size),
                bench_mode_name(sample->mode), bench_wrong_text(&sample->wrong, text, sizeof text));
        return;
    }
}
