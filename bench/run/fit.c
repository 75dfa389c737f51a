#include "fit.h"

#include <errno.h>
#include <string.h>

#include "bench/words/words.h"

#define LEAST_LARGE (1ull << 20) /* messages of this size still tell the bandwidth */
#define LEAST_ENDPOINTS 2        /* fewer are no mesh */

/* What may give way, as it was before. */
struct former {
    char end[32];
    uint32_t endpoints;
};

/* --- what may give way --- */

static bool sizes_may(const struct bench_options *options, const struct bench_plan *plan)
{
    const struct wf_config *config = options->config;

    if (bench_is_said(config, WF_SET_END) || wf_config_text(config, WF_SET_SIZE)[0] || plan->size_count < 2)
        return false;
    /* The sizes of a ping-pong do not come from these. */
    return !plan->latency || !bench_is_default(config, WF_SET_BEGIN) || !bench_is_default(config, WF_SET_END);
}

static bool endpoints_may(const struct bench_options *options, const struct bench_plan *plan)
{
    return plan->command == BENCH_MESH && !bench_is_said(options->config, WF_SET_ENDPOINTS) &&
           plan->endpoints > LEAST_ENDPOINTS;
}

/* --- giving way --- */

/* What is known of the nodes' memory stays. */
static int plan_again(const struct bench_options *options, struct bench_plan *plan, struct wf_status *status)
{
    struct bench_plan old = *plan;

    bench_plan_fini(plan);
    int result = bench_plan_init(plan, options, status);
    for (int node = 0; node < old.node_count; node++)
        bench_plan_set_memory(plan, node, old.nodes[node].memory, old.nodes[node].gpus);
    return result;
}

static int set(struct bench_options *options, enum wf_setting_id id, const char *text, struct wf_status *status)
{
    return wf_config_set(options->config, id, text, WF_ORIGIN_PRESET, "gave way to memory", status);
}

static int lower_sizes(struct bench_options *options, const struct bench_plan *plan, struct wf_status *status)
{
    char text[32];

    wf_format_size(plan->sizes[plan->size_count - 2], text, sizeof text);
    return set(options, WF_SET_END, text, status);
}

/* By one, or by more of many: each step makes a plan. */
static int lower_endpoints(struct bench_options *options, const struct bench_plan *plan, struct wf_status *status)
{
    char text[16];

    uint32_t fewer = plan->endpoints - (plan->endpoints > 16 ? plan->endpoints / 16 : 1);
    snprintf(text, sizeof text, "%u", fewer * (uint32_t)plan->processes);
    return set(options, WF_SET_ENDPOINTS, text, status);
}

/* 1: the plan is smaller now; 0: it is the smallest. */
static int give_way(struct bench_options *options, struct bench_plan *plan, struct wf_status *status)
{
    bool sizes = sizes_may(options, plan), endpoints = endpoints_may(options, plan);
    int result;

    if (!sizes && !endpoints)
        return 0;
    if (sizes && (!endpoints || plan->sizes[plan->size_count - 2] >= LEAST_LARGE))
        result = lower_sizes(options, plan, status);
    else
        result = lower_endpoints(options, plan, status);
    if (result == 0)
        result = plan_again(options, plan, status);
    return result ? result : 1;
}

/* --- in words --- */

static bool end_gave_way(const struct former *former, const struct bench_options *options)
{
    return strcmp(former->end, wf_config_text(options->config, WF_SET_END)) != 0;
}

static void tell(const struct former *former, struct bench_options *options, const struct bench_plan *plan,
                 const struct bench_lack *lack, bool met, FILE *news)
{
    char sizes[64] = "", endpoints[64] = "", why[200], line[400];
    bool lower = end_gave_way(former, options), fewer = former->endpoints != plan->endpoints;
    size_t used = strlen(options->gave_way);

    if (lower)
        snprintf(sizes, sizeof sizes, "--end %.20s gives way to %.20s", former->end,
                 wf_config_text(options->config, WF_SET_END));
    if (fewer)
        snprintf(endpoints, sizeof endpoints, "--endpoints %u gives way to %u", former->endpoints, plan->endpoints);
    snprintf(line, sizeof line, "%s%s%s: otherwise %s%s", sizes, lower && fewer ? ", " : "", endpoints,
             met ? "" : "the run ", bench_lack_text(lack, met, "", why, sizeof why));
    snprintf(options->gave_way + used, sizeof options->gave_way - used, "%s%s", used ? "\n" : "", line);
    if (news)
        fprintf(news, "%s\n", line);
}

/* What has given way already is not proposed: what is left, the user has said. */
static int refuse(const struct former *former, const struct bench_options *options, const struct bench_plan *plan,
                  const struct bench_lack *lack, bool met, struct wf_status *status)
{
    char end[32] = "", count[32] = "", even[80] = "", sizes[64] = "", text[200], largest[32];
    bool lower = end_gave_way(former, options), fewer = former->endpoints != plan->endpoints;

    if (lower)
        snprintf(end, sizeof end, " --end %.20s", wf_config_text(options->config, WF_SET_END));
    else
        snprintf(sizes, sizeof sizes, "--end or --size (now up to %s), ",
                 wf_format_size(bench_plan_largest(plan), largest, sizeof largest));
    if (fewer)
        snprintf(count, sizeof count, "%s --endpoints %u", lower ? " and" : "", plan->endpoints);
    if (lower || fewer)
        snprintf(even, sizeof even, " even with%s%s", end, count);
    bench_lack_text(lack, met, even, text, sizeof text);
    if (lower && fewer)
        return wf_fail(status, -ENOMEM, "%s: raise that limit, or end other programs", text);
    return wf_fail(status, -ENOMEM, "%s: lower %s%s%s%s", text, sizes, fewer ? "" : "--endpoints or ",
                   plan->background ? "--background"
                   : plan->buffers  ? "--buffers"
                                    : "--inflight",
                   plan->modes[BENCH_LOADED] ? ", or use --mode isolated" : "");
}

int bench_fit(struct bench_options *options, struct bench_plan *plan, const struct bench_parties *parties, FILE *news,
              struct wf_status *status)
{
    struct former former = {.endpoints = plan->endpoints};
    struct bench_lack first, lack;
    int result = 1;

    if (bench_memory_suffices(plan, parties, &first))
        return 0;
    bench_copy_text(former.end, sizeof former.end, wf_config_text(options->config, WF_SET_END));
    while (result > 0 && !bench_memory_suffices(plan, parties, &lack))
        result = give_way(options, plan, status);
    if (result < 0)
        return result;
    if (result == 0)
        return refuse(&former, options, plan, &lack, parties->met, status);
    tell(&former, options, plan, &first, parties->met, news);
    return 0;
}

/* --- the other node --- */

int bench_fit_adopt(struct bench_options *options, struct bench_plan *plan, const json_t *settings,
                    struct wf_status *status)
{
    static const enum wf_setting_id ids[] = {WF_SET_END, WF_SET_ENDPOINTS};
    bool changed = false;
    int result = 0;

    for (int i = 0; result == 0 && i < 2; i++) {
        const json_t *entry = json_object_get(settings, wf_setting(ids[i])->name);
        const char *text = json_string_value(json_object_get(entry, "value"));
        if (!text || bench_is_said(options->config, ids[i]) ||
            strcmp(text, wf_config_text(options->config, ids[i])) == 0)
            continue;
        result = set(options, ids[i], text, status);
        changed = true;
    }
    return result == 0 && changed ? plan_again(options, plan, status) : result;
}

json_t *bench_party_to_json(const struct bench_party *party)
{
    json_t *gpus = json_array();

    for (uint32_t i = 0; i < party->gpus->count; i++)
        json_array_append_new(gpus, json_pack("{s:s, s:i, s:I}", "pci", party->gpus->infos[i].pci, "gpu",
                                              party->gpus->infos[i].index, "memory_bytes",
                                              (json_int_t)party->gpus->infos[i].bytes));
    return json_pack("{s:o, s:I, s:o}", "gpus", gpus, "staging_bytes", (json_int_t)party->gpus->staging_bytes, "limits",
                     bench_limits_to_json(party->limits));
}

void bench_party_from_json(const json_t *about, struct bench_gpus *gpus, struct bench_limits *limits)
{
    const json_t *entry;
    size_t index;

    memset(gpus, 0, sizeof *gpus);
    gpus->staging_bytes = (uint64_t)json_integer_value(json_object_get(about, "staging_bytes"));
    json_array_foreach(json_object_get(about, "gpus"), index, entry)
    {
        const char *pci = json_string_value(json_object_get(entry, "pci"));
        if (gpus->count == BENCH_GPUS_MAX)
            break;
        struct weft_gpu_info *info = &gpus->infos[gpus->count++];
        info->index = (int32_t)json_integer_value(json_object_get(entry, "gpu"));
        info->bytes = (uint64_t)json_integer_value(json_object_get(entry, "memory_bytes"));
        bench_copy_text(info->pci, sizeof info->pci, pci ? pci : "");
    }
    bench_limits_from_json(limits, json_object_get(about, "limits"));
}
