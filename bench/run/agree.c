#include "agree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/machine/gpus.h"
#include "bench/machine/memory_limits.h"
#include "bench/nodes/hello.h"
#include "bench/plan/idle.h"
#include "bench/plan/names.h"
#include "bench/words/heard.h"
#include "bench/words/words.h"
#include "agreeing.h"
#include "facts.h"
#include "fit.h"
#include "line.h"
#include "nearness.h"

/* What node1 decides for both. Everything else is each node's own. */
static const enum wf_setting_id shared_settings[] = {
    WF_SET_ENDPOINTS,     WF_SET_BEGIN,      WF_SET_END,        WF_SET_FACTOR,
    WF_SET_SIZE,          WF_SET_ITERS,      WF_SET_WARMUP,     WF_SET_CHECK,
    WF_SET_MEMORY,        WF_SET_PATTERN,    WF_SET_SCOPE,      WF_SET_MODE,
    WF_SET_INFLIGHT,      WF_SET_BUFFERS,    WF_SET_BACKGROUND, WF_SET_BACKGROUND_INFLIGHT,
    WF_SET_BACKEND,       WF_SET_SEED,       WF_SET_SRC,        WF_SET_DST,
    WF_SET_CHECK_TIME_MS, WF_SET_DURATION,   WF_SET_EXPECT,     WF_SET_DRIFT_S,
    WF_SET_DRIFT_WINDOWS, WF_SET_WARM_TO,    WF_SET_WARM_S,     WF_SET_REWARM_EVERY,
    WF_SET_REWARM_BELOW,  WF_SET_NODE_PAIRS,
};

#define SHARED_COUNT (sizeof shared_settings / sizeof shared_settings[0])

/* --- what the nodes tell each other --- */

static json_t *shared_to_json(const struct wf_config *config)
{
    json_t *all = json_object();

    for (size_t i = 0; i < SHARED_COUNT; i++) {
        enum wf_setting_id id = shared_settings[i];
        json_object_set_new(all, wf_setting(id)->name,
                            json_pack("{s:s, s:b, s:b}", "value", wf_config_text(config, id), "default",
                                      (int)bench_is_default(config, id), "said", (int)bench_is_said(config, id)));
    }
    return all;
}

json_t *bench_introduction(const struct bench_agreement *agreement)
{
    const struct bench_link *link = agreement->link;
    const struct wf_config *config = agreement->options->config;
    struct bench_limits limits;
    const struct bench_party party = {link->node, &link->gpus, &limits};
    char boot[64], network[64];

    bench_boot_id(boot, sizeof boot);
    bench_network_id(network, sizeof network);
    bench_limits_read(&limits, "");
    json_t *memory = bench_party_to_json(&party);
    json_t *hello =
        json_pack("{s:s, s:s, s:s, s:s, s:b, s:I, s:o, s:o, s:o, s:o, s:s, s:I, s:s, s:s, s:o}", "hello", BENCH_HELLO,
                  "boot_id", boot, "network", network, "command", bench_command_name(agreement->options->command),
                  "latency", agreement->options->latency, "eager", (json_int_t)wf_config_number(config, WF_SET_EAGER),
                  "digest", json_sprintf("%016" PRIx64, bench_plan_digest(agreement->plan)), "host",
                  bench_host_facts(link, agreement->plan->endpoints), "rails", bench_rail_facts(link), "fallbacks",
                  bench_fallback_facts(link), "stamp", agreement->result->stamp, "endpoints",
                  (json_int_t)agreement->plan->endpoints * agreement->plan->processes, "memory",
                  bench_memory_name(link->gpus.memory), "gave_way", agreement->options->gave_way, "settings",
                  shared_to_json(config));
    json_object_update(hello, memory);
    json_decref(memory);
    return hello;
}

/* --- settings --- */

static bool is_shared(enum wf_setting_id id)
{
    for (size_t i = 0; i < SHARED_COUNT; i++)
        if (shared_settings[i] == id)
            return true;
    return false;
}

/* A setting of the library that the other node's user would say, too: the dialling side decides about channels. */
static bool suits_both(enum wf_setting_id id)
{
    static const enum wf_setting_id here_alone[] = {
        WF_SET_RAILS,       WF_SET_PORT,        WF_SET_PIN,     WF_SET_RAIL_POLICY, WF_SET_IRQ_POLICY,
        WF_SET_TX_BINDINGS, WF_SET_RX_BINDINGS, WF_SET_CUDA,    WF_SET_GPUS,        WF_SET_STAGING,
        WF_SET_FAULT,       WF_SET_LOG,         WF_SET_KEY_FILE};

    for (size_t i = 0; i < sizeof here_alone / sizeof here_alone[0]; i++)
        if (here_alone[i] == id)
            return false;
    return wf_setting(id)->group == WF_GROUP_LIBRARY;
}

void bench_print_shared(const struct bench_options *options, bool presets, FILE *out)
{
    const struct wf_config *config = options->config;

    for (int id = 0; id < WF_SETTING_COUNT; id++) {
        if (!(wf_setting(id)->uses & options->command) || bench_is_idle(options, id))
            continue; /* said in a file or variable that is for other commands, too */
        const char *text = wf_config_text(config, id), *name = wf_setting(id)->name;
        const char *quote = text[0] == '\0' || strpbrk(text, " \t;&|<>$*?()") ? "'" : "";
        bool said = is_shared(id) ? bench_is_said(config, id)
                                  : suits_both(id) && config->values[id].origin == WF_ORIGIN_COMMAND;
        if (said)
            fprintf(out, " --%s %s%s%s", name, quote, text, quote);
        else if (presets && is_shared(id) && !bench_is_default(config, id))
            fprintf(out, " --preset %s=%s%s%s", name, quote, text, quote);
    }
}

/* What somebody asked for here and does not get is told as that. */
static void tell_adopted(const struct bench_agreement *agreement, enum wf_setting_id id, const char *text)
{
    const struct wf_config *config = agreement->options->config;
    const char *here = wf_config_text(config, id)[0] ? wf_config_text(config, id) : "none";

    const char *whom = agreement->options->member ? "node0" : "the client";

    text = text[0] ? text : "none";
    if (!bench_is_said(config, id))
        fprintf(agreement->news, "adopted from %s: %s = %s (%s here: %s)\n", whom, wf_setting(id)->name, text,
                config->values[id].source, here);
    else
        fprintf(agreement->news, "overridden by %s: %s = %s (set here to %s: %s)\n", whom, wf_setting(id)->name, text,
                here, config->values[id].source);
}

/* A node that does not say whether the user has said it means that, unless it is a default. */
static enum wf_origin origin_of(const json_t *entry, const char **source)
{
    const json_t *said = json_object_get(entry, "said");

    if (json_is_true(json_object_get(entry, "default"))) {
        *source = "default";
        return WF_ORIGIN_DEFAULT;
    }
    *source = json_is_false(said) ? "preset of the other node" : "the other node";
    return json_is_false(said) ? WF_ORIGIN_PRESET : WF_ORIGIN_COMMAND;
}

static int adopt_one(struct bench_agreement *agreement, enum wf_setting_id id, const json_t *entry,
                     struct wf_status *status)
{
    struct wf_config *config = agreement->options->config;
    const char *text = json_string_value(json_object_get(entry, "value")), *source;
    enum wf_origin origin = origin_of(entry, &source);
    bool same = text && strcmp(text, wf_config_text(config, id)) == 0;

    if (!entry && bench_is_default(config, id)) /* one of a newer version than theirs, which nobody asks for here */
        return 0;
    if (!text || strlen(text) >= WF_VALUE_MAX)
        return wf_fail(status, -EPROTO, "the other node does not say '%s': use the same build on both",
                       wf_setting(id)->name);
    if (same && (origin == WF_ORIGIN_COMMAND) == bench_is_said(config, id) &&
        (origin == WF_ORIGIN_DEFAULT) == bench_is_default(config, id))
        return 0;
    if (!same && agreement->news)
        tell_adopted(agreement, id, text);
    return wf_config_set(config, id, text, origin, source, status);
}

/* Their number counts, which may be that of their GPUs; but it is one that could have been set here. */
static int adopt_endpoints(struct bench_agreement *agreement, const json_t *hello, struct wf_status *status)
{
    json_int_t endpoints = json_integer_value(json_object_get(hello, "endpoints"));

    if (endpoints < 1 || endpoints > wf_setting(WF_SET_ENDPOINTS)->max)
        return wf_fail(status, -EPROTO, "the other node has %lld endpoints: use the same build on both",
                       (long long)endpoints);
    agreement->options->default_endpoints = (uint32_t)endpoints;
    return 0;
}

int bench_adopt(struct bench_agreement *agreement, const json_t *hello, struct wf_status *status)
{
    const json_t *settings = json_object_get(hello, "settings");
    const char *command = json_string_value(json_object_get(hello, "command"));
    struct bench_link *link = agreement->link;
    int result = 0;

    if (!command || strcmp(command, bench_command_name(agreement->options->command)) != 0)
        return wf_fail(status, -ENOEXEC, "node0 runs 'weft %s' and node1 'weft %.20s': start the same command on both",
                       bench_command_name(agreement->options->command), command ? command : "?");
    agreement->options->latency = json_is_true(json_object_get(hello, "latency"));
    /* Those of other commands do not matter, and an older node may not know them. */
    for (size_t i = 0; result == 0 && i < SHARED_COUNT; i++)
        if (wf_setting(shared_settings[i])->uses & agreement->options->command)
            result = adopt_one(agreement, shared_settings[i],
                               json_object_get(settings, wf_setting(shared_settings[i])->name), status);
    if (result)
        return result;
    result = adopt_endpoints(agreement, hello, status);
    if (result == 0) /* their word on memory may be another */
        result = bench_gpus_choose(&link->gpus, agreement->options, link->node, status);
    if (result)
        return result;
    pthread_mutex_lock(&agreement->result->lock); /* the signal thread may ask what was planned */
    bench_plan_fini(agreement->plan);
    result = bench_plan_init(agreement->plan, agreement->options, status);
    bench_plan_set_memory(agreement->plan, link->node, link->gpus.memory, link->gpus.count);
    pthread_mutex_unlock(&agreement->result->lock);
    return result;
}

/* --- both --- */

/* It stands among others in a table, and may be cut in the middle of a character. */
static void keep_name(char name[32], const char *text)
{
    bench_copy_text(name, 32, text);
    bench_heard_plain(name);
    while ((name = strpbrk(name, ",;=\"")))
        *name = '?';
}

void bench_remember(struct bench_result *result, int node, const json_t *about)
{
    const json_t *rail;
    size_t index;

    pthread_mutex_lock(&result->lock);
    result->host[node] = json_incref(json_object_get(about, "host"));
    result->fallbacks[node] = json_incref(json_object_get(about, "fallbacks"));
    result->rail_totals[node] = json_incref(json_object_get(about, "rails"));
    result->rails[node].count = 0;
    json_array_foreach(result->rail_totals[node], index, rail)
    {
        const char *name = json_string_value(json_object_get(rail, "name"));
        if (name && index < BENCH_RAILS_MAX)
            keep_name(result->rails[node].names[result->rails[node].count++], name);
    }
    pthread_mutex_unlock(&result->lock);
}

/* node0 knows what both nodes have by now: what the user has not said gives way to that. */
static int fit_both(struct bench_agreement *agreement, const json_t *theirs, struct wf_status *status)
{
    struct bench_gpus *their_gpus = calloc(1, sizeof *their_gpus);
    struct bench_limits limits, their_limits;
    struct bench_parties parties = {
        .all = {{0, &agreement->link->gpus, &limits}, {1, their_gpus, &their_limits}}, .count = 2, .met = true};

    if (!their_gpus)
        return wf_fail(status, -ENOMEM, "no memory for a list of GPUs");
    bench_limits_read(&limits, "");
    bench_party_from_json(theirs, their_gpus, &their_limits);
    pthread_mutex_lock(&agreement->result->lock);
    int result = bench_fit(agreement->options, agreement->plan, &parties, agreement->news, status);
    pthread_mutex_unlock(&agreement->result->lock);
    free(their_gpus);
    return result;
}

int bench_adopt_fit(struct bench_agreement *agreement, const json_t *theirs, struct wf_status *status)
{
    uint64_t asked = bench_plan_digest(agreement->plan);

    pthread_mutex_lock(&agreement->result->lock);
    int result = bench_fit_adopt(agreement->options, agreement->plan, json_object_get(theirs, "settings"), status);
    pthread_mutex_unlock(&agreement->result->lock);
    if (result == 0 && agreement->news && bench_plan_digest(agreement->plan) != asked)
        fprintf(agreement->news, "%s\n", bench_heard_text(theirs, "gave_way"));
    return result;
}

int bench_check_digest(const struct bench_plan *plan, const json_t *theirs, struct wf_status *status)
{
    const char *other = json_string_value(json_object_get(theirs, "digest"));
    char mine[24];

    snprintf(mine, sizeof mine, "%016" PRIx64, bench_plan_digest(plan));
    if (other && strcmp(mine, other) == 0)
        return 0;
    return wf_fail(status, -EPROTO, "the nodes plan different measurements: use the same build of weft on both");
}

int bench_adopt_stamp(struct bench_result *result, const json_t *theirs, struct wf_status *status)
{
    const char *stamp = json_string_value(json_object_get(theirs, "stamp"));

    if (!stamp || !bench_is_stamp(stamp))
        return wf_fail(status, -EPROTO, "the other node does not say when it started: use the same build on both");
    bench_result_stamp(result, stamp);
    return 0;
}

/* node1: asks, then hears what node0 makes of it. */
static int ask(struct bench_agreement *agreement, json_t **mine, json_t **theirs, struct wf_status *status)
{
    *mine = bench_introduction(agreement);
    int result = bench_control_say(agreement->control, *mine, status);
    if (result == 0)
        result = bench_control_hear(agreement->control, theirs, status);
    if (result == 0)
        result =
            bench_check_hello(*theirs, bench_command_name(agreement->options->command), agreement->link->node, status);
    if (result == 0)
        result = bench_adopt_fit(agreement, *theirs, status);
    if (result == 0)
        result = bench_check_digest(agreement->plan, *theirs, status);
    return result ? result : bench_adopt_stamp(agreement->result, *theirs, status);
}

/* node0: hears, adopts, makes it fit, answers. */
static int grant(struct bench_agreement *agreement, json_t **mine, json_t **theirs, struct wf_status *status)
{
    int result = bench_control_hear(agreement->control, theirs, status);

    if (result == 0)
        result =
            bench_check_hello(*theirs, bench_command_name(agreement->options->command), agreement->link->node, status);
    if (result == 0)
        result = bench_adopt(agreement, *theirs, status);
    if (result == 0)
        result = bench_check_digest(agreement->plan, *theirs, status);
    if (result == 0)
        result = fit_both(agreement, *theirs, status);
    if (result)
        return result;
    *mine = bench_introduction(agreement);
    return bench_control_say(agreement->control, *mine, status);
}

void bench_adopt_memory(struct bench_plan *plan, int node, const json_t *theirs)
{
    const char *text = json_string_value(json_object_get(theirs, "memory"));
    enum bench_memory memory = bench_memory_named(text ? text : "host");

    bench_plan_set_memory(plan, node, memory < BENCH_MEMORIES ? memory : BENCH_HOST,
                          (uint32_t)json_array_size(json_object_get(theirs, "gpus")));
}

static void note_meeting(struct bench_result *result, const json_t *mine, const json_t *theirs)
{
    pthread_mutex_lock(&result->lock);
    result->nearness = bench_nearness_of(mine, theirs);
    result->begun_ns = wf_clock_now(&wf_clock_monotonic);
    pthread_mutex_unlock(&result->lock);
}

int bench_agree(struct bench_agreement *agreement, struct wf_status *status)
{
    json_t *mine = NULL, *theirs = NULL;
    int node = agreement->link->node;
    int result = node == 1 ? ask(agreement, &mine, &theirs, status) : grant(agreement, &mine, &theirs, status);

    if (result == 0) {
        uint64_t one = (uint64_t)json_integer_value(json_object_get(mine, "eager"));
        uint64_t other = (uint64_t)json_integer_value(json_object_get(theirs, "eager"));
        agreement->eager = one > other ? one : other;
        bench_adopt_memory(agreement->plan, 1 - node, theirs);
        bench_remember(agreement->result, node, mine);
        bench_remember(agreement->result, 1 - node, theirs);
        note_meeting(agreement->result, mine, theirs);
    }
    json_decref(mine);
    json_decref(theirs);
    return result;
}
