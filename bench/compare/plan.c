/* What weft peers is asked to compare: from the options to a plan. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/machine/gpus.h"
#include "bench/nodes/link.h"
#include "bench/plan/names.h"
#include "bench/words/words.h"
#include "compare.h"

#define BANDWIDTH_INFLIGHT 16
#define RATE_INFLIGHT 64
#define SECONDS_MOST 60
#define LARGE_BYTES (64u << 20) /* one buffer of so much stays in no cache: it is measured with more of them, too */

/* --- the cases --- */

/* A setting of this name, or `otherwise` where it is 0. */
static uint32_t number_or(const struct wf_config *config, enum wf_setting_id id, uint32_t otherwise)
{
    int64_t number = wf_config_number(config, id);

    return number > 0 ? (uint32_t)number : otherwise;
}

static int add_case(const struct wf_config *config, struct peers_plan *plan, enum peer_metric metric, uint64_t size,
                    uint32_t buffers, struct wf_status *status)
{
    struct peer_case *one = &plan->cases[plan->case_count];
    uint32_t most = metric == PEER_RATE ? RATE_INFLIGHT : BANDWIDTH_INFLIGHT;

    if (plan->case_count == PEERS_CASES_MAX)
        return wf_fail(status, -EINVAL, "--size: more than %d cases", PEERS_CASES_MAX);
    if (size == 0)
        return wf_fail(status, -EINVAL, "--size 0: other tools send no empty messages: name at least 1");
    plan->case_count++;
    *one = (struct peer_case){.metric = metric, .size = size, .buffers = buffers};
    one->inflight = metric == PEER_LATENCY ? 1 : number_or(config, WF_SET_INFLIGHT, most);
    if (one->buffers == 0)
        one->buffers = one->inflight;
    if (plan->fixed_messages)
        one->messages = (uint64_t)wf_config_number(config, WF_SET_ITERS);
    if (plan->fixed_warmup)
        one->warmup = (uint64_t)wf_config_number(config, WF_SET_WARMUP);
    else if (plan->fixed_messages)
        one->warmup = one->messages / 10 + one->inflight;
    return 0;
}

/* A size with one buffer, as other tools send; a large one with a buffer for each message in flight, too. */
static int add_size(const struct wf_config *config, struct peers_plan *plan, enum peer_metric metric, uint64_t size,
                    struct wf_status *status)
{
    struct wf_status unknown;
    int setting = wf_setting_find("buffers", &unknown);
    uint32_t buffers = setting >= 0 ? number_or(config, (enum wf_setting_id)setting, 0) : 0;
    int result = add_case(config, plan, metric, size, buffers ? buffers : 1, status);

    if (result == 0 && buffers == 0 && metric == PEER_BANDWIDTH && size >= LARGE_BYTES)
        result = add_case(config, plan, metric, size, 0, status);
    return result;
}

static int add_list(const struct wf_config *config, struct peers_plan *plan, enum peer_metric metric, const char *list,
                    struct wf_status *status)
{
    char words[WF_VALUE_MAX], *rest = words, *word;
    int result = 0;

    bench_copy_text(words, sizeof words, list);
    while (result == 0 && (word = bench_next_word(&rest, ',')) != NULL) {
        uint64_t size = 0;
        result = wf_parse_size(word, &size);
        if (result == 0)
            result = add_size(config, plan, metric, size, status);
    }
    return result;
}

static int add_cases(const struct bench_options *options, struct peers_plan *plan, struct wf_status *status)
{
    const struct wf_config *config = options->config;
    const char *sizes = wf_config_text(config, WF_SET_SIZE);
    bool all = !sizes[0] && !options->latency && !options->rate;
    int result = 0;

    if (options->latency || all)
        result = add_list(config, plan, PEER_LATENCY, sizes[0] ? sizes : "8", status);
    if (result == 0 && (options->rate || all))
        result = add_list(config, plan, PEER_RATE, sizes[0] ? sizes : "64", status);
    if (result == 0 && !options->latency && !options->rate)
        result = add_list(config, plan, PEER_BANDWIDTH, sizes[0] ? sizes : "64K,1M,64M", status);
    return result;
}

static int read_seconds(const struct wf_config *config, double *seconds, struct wf_status *status)
{
    const char *text = wf_config_text(config, WF_SET_SECONDS);
    char *end;

    *seconds = strtod(text, &end);
    if (end == text || *end || !isfinite(*seconds) || *seconds <= 0 || *seconds > SECONDS_MOST)
        return wf_fail(status, -EINVAL, "--seconds '%.40s': must be a number above 0, up to %d", text, SECONDS_MOST);
    return 0;
}

/* --- the place --- */

/* As the library sees them, so that names mean the same for all tools. */
static int find_rails(const struct wf_config *config, struct bench_compare_texts *texts, struct peer_place *place,
                      struct wf_status *status)
{
    struct weft_rail_info rails[PEER_RAILS_MAX];
    struct weft_config *settings = NULL;
    struct weft_context *context = NULL;
    int result = bench_library_settings(config, &settings, status);

    if (result)
        return result;
    result = bench_context_create(config, settings, &context, status);
    weft_config_destroy(settings);
    if (result)
        return result;
    int count = weft_context_rails(context, rails, PEER_RAILS_MAX);
    bench_copy_text(texts->engine, sizeof texts->engine, weft_context_engine(context));
    bench_copy_text(texts->fallbacks, sizeof texts->fallbacks, weft_context_fallbacks(context));
    weft_context_destroy(context);
    if (count > PEER_RAILS_MAX)
        return wf_fail(status, -EINVAL, "--rails: %d rails, and at most %d can be compared", count, PEER_RAILS_MAX);
    for (int i = 0; i < count; i++) {
        bench_copy_text(texts->rails[i].address, sizeof texts->rails[i].address, rails[i].address);
        bench_copy_text(texts->rails[i].interface, sizeof texts->rails[i].interface, rails[i].interface);
        place->rails[i] = texts->rails[i].address;
        place->devices[i] = texts->rails[i].interface;
    }
    place->rail_count = count;
    return 0;
}

/* Weft in the comparison has the settings that it was given here. */
static int pass_settings(const struct wf_config *config, struct bench_compare_texts *texts, struct peer_place *place,
                         struct wf_status *status)
{
    int count = 0;

    for (int i = 0; i < WF_SETTING_COUNT; i++) {
        const struct wf_setting *setting = wf_setting(i);
        size_t room = sizeof texts->settings[0];
        bool passed = setting->group == WF_GROUP_LIBRARY || i == WF_SET_NCCL_LIBRARY || i == WF_SET_PLUGIN_LIBRARY;
        if (!passed || i == WF_SET_RAILS || i == WF_SET_PORT || bench_is_default(config, i))
            continue;
        if (count == PEER_WORDS_MAX / 2 ||
            (size_t)snprintf(texts->settings[count], room, "%s=%s", setting->name, wf_config_text(config, i)) >= room)
            return wf_fail(status, -EINVAL, "%s: too long a value, or too many settings, to pass on", setting->name);
        place->settings[count] = texts->settings[count];
        count++;
    }
    return 0;
}

/* What cannot be had is said before anything is measured: here the programs that are started would be the first to. */
static bool asks_for_gpus(const struct wf_config *config)
{
    return strcmp(wf_config_text(config, WF_SET_MEMORY), "cuda") == 0 ||
           strcmp(wf_config_text(config, WF_SET_CUDA), "require") == 0 ||
           strcmp(wf_config_text(config, WF_SET_DEVMEM), "require") == 0 || wf_config_text(config, WF_SET_GPUS)[0];
}

/* Other tools move host memory, so that is what is compared unless GPU memory is asked for; a server does what the
 * client wants. */
static int find_memory(const struct bench_options *options, struct peer_place *place, struct wf_status *status)
{
    const char *asked = wf_config_text(options->config, WF_SET_MEMORY);
    struct bench_gpus gpus = {.memory = BENCH_CUDA};
    int node = options->place == BENCH_PLACE_CONNECT ? 1 : 0;
    int result = asks_for_gpus(options->config) ? bench_gpus_choose(&gpus, options, node, status) : 0;

    if (result)
        return result;
    if (strcmp(asked, "cuda") == 0 || (options->place == BENCH_PLACE_LISTEN && strcmp(asked, "auto") == 0))
        place->memory = bench_memory_name(gpus.memory);
    return 0;
}

static int find_folder(struct bench_compare_texts *texts, struct peer_place *place, struct wf_status *status)
{
    ssize_t length = readlink("/proc/self/exe", texts->folder, sizeof texts->folder - 1);

    if (length <= 0)
        return wf_fail(status, -errno, "cannot find this program's folder: %s", wf_strerror(errno));
    texts->folder[length] = '\0';
    char *slash = strrchr(texts->folder, '/');
    if (slash)
        *slash = '\0';
    place->folder = texts->folder;
    return 0;
}

int bench_compare_plan(struct bench_options *options, struct bench_compare_texts *texts, struct peers_plan *plan,
                       struct wf_status *status)
{
    struct wf_config *config = options->config;
    int result = 0;

    memset(plan, 0, sizeof *plan);
    plan->rounds = (int)wf_config_number(config, WF_SET_ROUNDS);
    plan->fixed_messages = !bench_is_default(config, WF_SET_ITERS) && wf_config_number(config, WF_SET_ITERS) > 0;
    plan->fixed_warmup = !bench_is_default(config, WF_SET_WARMUP);
    plan->place.one_machine = options->place == BENCH_PLACE_LOCAL;
    if (!bench_is_default(config, WF_SET_PORT))
        plan->place.port = (int)wf_config_number(config, WF_SET_PORT);
    if (plan->place.one_machine && !wf_config_text(config, WF_SET_RAILS)[0])
        result = wf_config_set(config, WF_SET_RAILS, "127.0.0.1", WF_ORIGIN_DEFAULT, "default of --local", status);
    if (result == 0)
        result = find_memory(options, &plan->place, status);
    if (result == 0)
        result = read_seconds(config, &plan->seconds, status);
    if (result == 0)
        result = peers_choose_tools(wf_config_text(config, WF_SET_TOOLS), plan, status);
    if (result == 0)
        result = add_cases(options, plan, status);
    if (result == 0)
        result = pass_settings(config, texts, &plan->place, status);
    if (result == 0)
        result = find_folder(texts, &plan->place, status);
    return result ? result : find_rails(config, texts, &plan->place, status);
}
