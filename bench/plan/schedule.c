#include "schedule.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/words/random.h"
#include "bench/words/words.h"
#include "pairs.h"

#define DEFAULT_ENDPOINTS 8
#define AUTO_LEAST 8        /* iterations of a pair: fewer have no median worth the name */
#define AUTO_LEAST_SMALL 64 /* and of small ones, which share a time: the first of them must not be most of it */
#define AUTO_BYTES (1u << 20)
#define AUTO_MOST (1u << 18) /* of all pairs of a phase together: the times take 16 bytes each */
#define PAIR_INFLIGHT 16
#define PAIR_INFLIGHT_BYTES (1ull << 30) /* the default of a pair keeps its landings below this */
#define LATENCY_ITERS 2000               /* enough for a 99.9th percentile */
#define LATENCY_WARMUP 100
#define PROFILE_REPETITIONS 10

const char *bench_mode_name(enum bench_mode mode)
{
    return mode == BENCH_ISOLATED ? "isolated" : "loaded";
}

/* --- sizes --- */

static int compare_sizes(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return left < right ? -1 : left > right;
}

static int add_size(struct bench_plan *plan, uint64_t size, struct wf_status *status)
{
    if (plan->size_count == BENCH_SIZES_MAX)
        return wf_fail(status, -EINVAL, "more than %d sizes: raise --factor or name fewer in --size", BENCH_SIZES_MAX);
    plan->sizes[plan->size_count++] = size;
    return 0;
}

static int listed_sizes(struct bench_plan *plan, const char *text, struct wf_status *status)
{
    char copy[WF_VALUE_MAX];
    char *rest = copy, *word;
    int kept = 0, result = 0;

    bench_copy_text(copy, sizeof copy, text);
    while (result == 0 && (word = bench_next_word(&rest, ',')) != NULL) {
        uint64_t size;
        while (*word == ' ')
            word++;
        if (wf_parse_size(word, &size) != 0)
            return wf_fail(status, -EINVAL, "--size %.60s: expected sizes such as 0,1,64K,1M", word);
        result = add_size(plan, size, status);
    }
    qsort(plan->sizes, (size_t)plan->size_count, sizeof plan->sizes[0], compare_sizes);
    for (int i = 0; i < plan->size_count; i++)
        if (kept == 0 || plan->sizes[kept - 1] != plan->sizes[i])
            plan->sizes[kept++] = plan->sizes[i];
    plan->size_count = kept;
    return result;
}

static int stepped_sizes(struct bench_plan *plan, uint64_t begin, uint64_t end, uint64_t factor,
                         struct wf_status *status)
{
    char from[32], to[32];
    uint64_t size = begin;
    int result = 0;

    if (begin > end)
        return wf_fail(status, -EINVAL, "--begin %s is larger than --end %s: raise --end",
                       wf_format_size(begin, from, sizeof from), wf_format_size(end, to, sizeof to));
    if (factor < 2 && begin != end)
        return wf_fail(status, -EINVAL, "--factor %llu never gets from --begin to --end: use 2 or more",
                       (unsigned long long)factor);
    while (result == 0) {
        result = add_size(plan, size, status);
        if (size > end / factor || (size == 0 && end == 0) || begin == end)
            break;
        size = size ? size * factor : 1;
    }
    return result;
}

int bench_plan_sizes(struct bench_plan *plan, const struct wf_config *config, struct wf_status *status)
{
    const char *list = wf_config_text(config, WF_SET_SIZE);
    uint64_t begin = (uint64_t)wf_config_number(config, WF_SET_BEGIN);
    uint64_t end = (uint64_t)wf_config_number(config, WF_SET_END);

    if (list[0])
        return listed_sizes(plan, list, status);
    /* Latency is a question about small messages, whatever the defaults for bandwidth are. */
    if (plan->latency && bench_is_default(config, WF_SET_BEGIN) && bench_is_default(config, WF_SET_END)) {
        begin = 8;
        end = 32 << 10;
    } else if (!bench_is_said(config, WF_SET_BEGIN) && begin > end) {
        begin = end;
    }
    return stepped_sizes(plan, begin, end, (uint64_t)wf_config_number(config, WF_SET_FACTOR), status);
}

/* --- the plan --- */

const struct bench_backend_choice *bench_backend_find(const struct bench_backend_choice *choices, const char *name)
{
    for (; choices->name; choices++)
        if (strcmp(choices->name, name) == 0)
            return choices;
    return NULL;
}

static int plan_backends(struct bench_plan *plan, const struct bench_backend_choice *choices, const char *list,
                         struct wf_status *status)
{
    char copy[WF_VALUE_MAX];
    char *rest = copy, *word;

    bench_copy_text(copy, sizeof copy, list);
    while ((word = bench_next_word(&rest, ',')) != NULL) {
        const struct bench_backend_choice *choice = bench_backend_find(choices, word);
        if (!choice)
            return wf_fail(status, -EOPNOTSUPP, "--backend %.40s is not in this build: use weft, nccl, plugin or null",
                           word);
        for (int i = 0; i < plan->backend_count; i++)
            if (plan->backends[i] == choice->ops)
                return wf_fail(status, -EINVAL, "--backend names %s twice", choice->name);
        plan->backends[plan->backend_count] = choice->ops;
        plan->backend_names[plan->backend_count++] = choice->name;
    }
    return 0;
}

/* More requests than the library keeps would end in -EAGAIN in the middle of a run. */
static int check_requests(const struct bench_plan *plan, const struct wf_config *config, struct wf_status *status)
{
    uint64_t most = 0, limit = (uint64_t)wf_config_number(config, WF_SET_REQUESTS);

    for (int i = 0; i < plan->size_count; i++)
        if (bench_plan_slots(plan, plan->sizes[i]) > most)
            most = bench_plan_slots(plan, plan->sizes[i]);
    if (plan->modes[BENCH_LOADED])
        most *= bench_plan_span(plan, BENCH_LOADED);
    if (plan->background)
        most += 2ull * plan->background_inflight;
    if (most + 16 > limit)
        return wf_fail(status, -EINVAL,
                       "%llu messages at once are more than the setting requests (%llu): use --set requests=%llu",
                       (unsigned long long)most, (unsigned long long)limit, (unsigned long long)most + 16);
    return 0;
}

/* A message that lands where another one is landing cannot be told from it. */
static int check_buffers(const struct bench_plan *plan, struct wf_status *status)
{
    for (int i = 0; plan->buffers && plan->check && i < plan->size_count; i++) {
        uint32_t slots = bench_plan_slots(plan, plan->sizes[i]);
        char size[32];
        if (plan->buffers < slots)
            return wf_fail(status, -EINVAL,
                           "--buffers %u for %u messages of %s in flight: what shares a buffer cannot be verified: use "
                           "--check 0, --buffers %u or --inflight %u",
                           plan->buffers, slots, wf_format_size(plan->sizes[i], size, sizeof size), slots,
                           plan->buffers);
    }
    return 0;
}

static int check_background(const struct bench_plan *plan, struct wf_status *status)
{
    char size[32];

    if (plan->background && !plan->latency)
        return wf_fail(status, -EINVAL,
                       "--background %s runs beside a ping-pong: use it with 'weft pair --lat', or set it to 0",
                       wf_format_size(plan->background, size, sizeof size));
    return 0;
}

/* Every message of a profile travels alone. */
static void plan_repetitions(struct bench_plan *plan)
{
    plan->inflight = 1;
    plan->buffers = 0;
    if (plan->iters == 0)
        plan->iters = PROFILE_REPETITIONS;
}

static void plan_numbers(struct bench_plan *plan, const struct wf_config *config, uint32_t default_endpoints)
{
    const char *mode = wf_config_text(config, WF_SET_MODE);

    plan->endpoints = (uint32_t)wf_config_number(config, WF_SET_ENDPOINTS);
    plan->by_gpus = plan->endpoints == 0 && default_endpoints > 0;
    if (plan->endpoints == 0)
        plan->endpoints = default_endpoints ? default_endpoints : DEFAULT_ENDPOINTS;
    plan->iters = (uint32_t)wf_config_number(config, WF_SET_ITERS);
    plan->warmup = (uint32_t)wf_config_number(config, WF_SET_WARMUP);
    plan->auto_ns = wf_config_number(config, WF_SET_DURATION) * WF_NS_PER_S;
    if (plan->latency && plan->iters == 0)
        plan->iters = LATENCY_ITERS;
    if (plan->latency && bench_is_default(config, WF_SET_WARMUP))
        plan->warmup = LATENCY_WARMUP;
    plan->inflight =
        bench_is_default(config, WF_SET_INFLIGHT) ? 0 : (uint32_t)wf_config_number(config, WF_SET_INFLIGHT);
    plan->buffers = (uint32_t)wf_config_number(config, WF_SET_BUFFERS);
    if (plan->command == BENCH_PROFILE)
        plan_repetitions(plan);
    plan->background = (uint64_t)wf_config_number(config, WF_SET_BACKGROUND);
    plan->background_inflight = (uint32_t)wf_config_number(config, WF_SET_BACKGROUND_INFLIGHT);
    plan->check = (enum bench_check)wf_config_number(config, WF_SET_CHECK);
    plan->check_time_ns = wf_config_number(config, WF_SET_CHECK_TIME_MS) * WF_NS_PER_MS;
    plan->seed = (uint64_t)wf_config_number(config, WF_SET_SEED);
    plan->chunk = (uint64_t)wf_config_number(config, WF_SET_CHUNK);
    plan->modes[BENCH_ISOLATED] = plan->command != BENCH_MESH || strcmp(mode, "loaded") != 0;
    plan->modes[BENCH_LOADED] = plan->command == BENCH_MESH && strcmp(mode, "isolated") != 0;
}

static int share_endpoints(struct bench_plan *plan, const struct wf_config *config, struct wf_status *status)
{
    uint32_t processes = (uint32_t)plan->processes;

    if (processes > 1 && strcmp(wf_config_text(config, WF_SET_SCOPE), "inter") != 0)
        return wf_fail(status, -EINVAL, "--processes %u measures between nodes: leave out --scope %s", processes,
                       wf_config_text(config, WF_SET_SCOPE));
    if (processes > 1 && strcmp(wf_config_text(config, WF_SET_PATTERN), "alltoall") == 0)
        return wf_fail(status, -EINVAL, "--processes %u measures between nodes: use --pattern mesh", processes);
    if (plan->endpoints % processes)
        return wf_fail(status, -EINVAL, "--processes %u cannot share %u endpoints evenly: make these a multiple of it",
                       processes, plan->endpoints);
    plan->endpoints /= processes;
    return 0;
}

struct bench_pair bench_plan_outer(const struct bench_plan *plan, const struct bench_pair *pair)
{
    uint32_t processes = (uint32_t)plan->processes;
    struct bench_pair outer = *pair;

    outer.src_node = (uint16_t)(pair->src_node / processes);
    outer.dst_node = (uint16_t)(pair->dst_node / processes);
    outer.src = pair->src_node % processes * plan->endpoints + pair->src;
    outer.dst = pair->dst_node % processes * plan->endpoints + pair->dst;
    return outer;
}

int bench_plan_init(struct bench_plan *plan, const struct bench_options *options, struct wf_status *status)
{
    const struct wf_config *config = options->config;

    memset(plan, 0, sizeof *plan);
    plan->command = options->command;
    plan->latency = options->latency;
    plan->group = 1;
    plan->node_count = options->nodes ? options->nodes : 2;
    plan->processes = options->nodes && !options->whole ? (int)wf_config_number(config, WF_SET_PROCESSES) : 1;
    plan->nccl_library = wf_config_text(config, WF_SET_NCCL_LIBRARY);
    plan->plugin_library = wf_config_text(config, WF_SET_PLUGIN_LIBRARY);
    plan_numbers(plan, config, options->default_endpoints);
    int result = plan_backends(plan, options->backends, wf_config_text(config, WF_SET_BACKEND), status);
    if (result == 0)
        result = share_endpoints(plan, config, status);
    if (result == 0)
        result = bench_plan_sizes(plan, config, status);
    if (result == 0)
        result = bench_plan_pairs(plan, options, status);
    if (result == 0)
        result = check_requests(plan, config, status);
    if (result == 0)
        result = check_buffers(plan, status);
    if (result == 0)
        result = check_background(plan, status);
    return result;
}

void bench_plan_set_memory(struct bench_plan *plan, int node, enum bench_memory memory, uint32_t gpus)
{
    plan->nodes[node].memory = memory;
    plan->nodes[node].gpus = gpus;
    for (uint32_t i = 0; i < plan->pair_count; i++) {
        struct bench_pair *pair = &plan->pairs[i];
        if (pair->src_node == node)
            pair->src_memory = (uint8_t)memory;
        if (pair->dst_node == node)
            pair->dst_memory = (uint8_t)memory;
    }
}

void bench_plan_fini(struct bench_plan *plan)
{
    free(plan->pairs);
    free(plan->bouts);
    plan->pairs = NULL;
    plan->bouts = NULL;
}

uint32_t bench_plan_span(const struct bench_plan *plan, enum bench_mode mode)
{
    return mode == BENCH_ISOLATED ? plan->group : plan->bouts ? plan->busiest : plan->pair_count;
}

uint32_t bench_plan_iters(const struct bench_plan *plan, uint64_t size)
{
    if (plan->iters)
        return plan->iters;
    uint64_t least = AUTO_BYTES / (size ? size : 1);
    least = least < AUTO_LEAST ? AUTO_LEAST : least > AUTO_LEAST_SMALL ? AUTO_LEAST_SMALL : least;
    uint32_t slots = bench_plan_slots(plan, size);
    return slots > least ? slots : (uint32_t)least;
}

uint32_t bench_plan_most_iters(const struct bench_plan *plan, uint64_t size, uint32_t pairs)
{
    uint32_t least = bench_plan_iters(plan, size), most = AUTO_MOST / (pairs ? pairs : 1);

    return plan->iters || most < least ? least : most;
}

uint32_t bench_plan_slots(const struct bench_plan *plan, uint64_t size)
{
    uint32_t slots = plan->inflight;

    if (plan->latency)
        return 1;
    if (slots == 0 && plan->command == BENCH_PAIR) {
        slots = PAIR_INFLIGHT;
        while (slots > 1 && size > PAIR_INFLIGHT_BYTES / slots)
            slots--;
    }
    if (slots == 0)
        slots = 1;
    return plan->iters && slots > plan->iters ? plan->iters : slots;
}

uint32_t bench_plan_areas(const struct bench_plan *plan, uint64_t size)
{
    uint64_t messages = (uint64_t)plan->iters + plan->warmup;

    if (plan->buffers == 0)
        return bench_plan_slots(plan, size);
    return plan->iters && plan->buffers > messages ? (uint32_t)messages : plan->buffers;
}

uint64_t bench_plan_largest(const struct bench_plan *plan)
{
    return plan->size_count ? plan->sizes[plan->size_count - 1] : 0;
}

/* Whether one end of a pair, or with `both` any, is an endpoint of `node` in this place. */
static bool is_at(const struct bench_pair *pair, bool src, bool both, int node, uint32_t places, uint32_t place)
{
    if ((src || both) && pair->src_node == node && pair->src % places == place)
        return true;
    return (!src || both) && pair->dst_node == node && pair->dst % places == place;
}

/* Most pairs of a phase that have `node` at one end; a ping-pong has both its ends at either. */
static uint32_t most_of_node(const struct bench_plan *plan, enum bench_mode mode, int node, bool src, uint32_t places,
                             uint32_t place)
{
    uint32_t span = mode == BENCH_LOADED ? plan->pair_count : plan->group;
    uint32_t most = 0;

    for (uint32_t first = 0; first < plan->pair_count; first += span) {
        uint32_t here = 0;
        for (uint32_t i = first; i < first + span && i < plan->pair_count; i++)
            here += is_at(&plan->pairs[i], src, plan->latency, node, places, place);
        if (here > most)
            most = here;
    }
    return most;
}

uint32_t bench_plan_receivers_at(const struct bench_plan *plan, enum bench_mode mode, int node, uint32_t places,
                                 uint32_t place)
{
    return most_of_node(plan, mode, node, false, places, place);
}

uint32_t bench_plan_senders_at(const struct bench_plan *plan, enum bench_mode mode, int node, uint32_t places,
                               uint32_t place)
{
    return most_of_node(plan, mode, node, true, places, place);
}

uint32_t bench_plan_senders(const struct bench_plan *plan, enum bench_mode mode, int node)
{
    return most_of_node(plan, mode, node, true, 1, 0);
}

static uint64_t modes_of(const struct bench_plan *plan)
{
    return (uint64_t)plan->modes[BENCH_ISOLATED] + plan->modes[BENCH_LOADED];
}

int64_t bench_plan_share_ns(const struct bench_plan *plan)
{
    int64_t sets = (int64_t)modes_of(plan) * plan->size_count * plan->backend_count;

    return sets ? plan->auto_ns / sets : plan->auto_ns;
}

uint64_t bench_plan_samples(const struct bench_plan *plan)
{
    uint64_t modes = modes_of(plan);

    return modes * plan->pair_count * (uint64_t)plan->size_count * (uint64_t)plan->backend_count;
}

/* The first word: whether a backend is a stand-in is compared when it is opened. */
static uint64_t mix_word(uint64_t digest, const char *text)
{
    for (; *text && *text != ' '; text++)
        digest = bench_random_mix(digest ^ (uint8_t)*text);
    return digest;
}

uint64_t bench_plan_digest(const struct bench_plan *plan)
{
    uint64_t digest = bench_random_mix(plan->seed ^ plan->command);

    digest = bench_random_mix(digest ^ plan->warmup) ^ (plan->latency ? 2u : 0u);
    digest = bench_random_mix(digest ^ plan->check) ^ (uint64_t)plan->check_time_ns;
    digest = bench_random_mix(digest ^ (uint64_t)plan->auto_ns) ^ (plan->iters ? 16u : 0u);
    digest = bench_random_mix(digest ^ plan->background) ^ plan->background_inflight;
    digest ^= (plan->modes[BENCH_ISOLATED] ? 4u : 0u) ^ (plan->modes[BENCH_LOADED] ? 8u : 0u);
    for (int i = 0; i < plan->backend_count; i++)
        digest = mix_word(digest, plan->backend_names[i]);
    for (int i = 0; i < plan->size_count; i++) {
        digest = bench_random_mix(digest ^ plan->sizes[i]);
        digest = bench_random_mix(digest ^ bench_plan_iters(plan, plan->sizes[i]));
        digest = bench_random_mix(digest ^ bench_plan_slots(plan, plan->sizes[i]));
        digest = bench_random_mix(digest ^ bench_plan_areas(plan, plan->sizes[i]));
    }
    for (uint32_t i = 0; i < plan->pair_count; i++) {
        const struct bench_pair *pair = &plan->pairs[i];
        digest = bench_random_mix(digest ^ ((uint64_t)pair->src << 32 | pair->dst));
        digest = bench_random_mix(digest ^ ((uint64_t)pair->src_node * (uint64_t)plan->node_count + pair->dst_node));
    }
    return digest;
}
