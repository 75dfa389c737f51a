/* What is watched while messages are timed, and warming up. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "affinity/cpus.h"
#include "base/clock.h"
#include "bench/backends/backend.h"
#include "bench/sense/before.h"
#include "bench/words/columns.h"
#include "mem/gpu_clock.h"
#include "mem/nvml.h"
#include "parts.h"

#define THREADS_MOST 1024
#define HEAT_NS (500 * WF_NS_PER_MS) /* between two looks at the temperature, and for signals */
#define WARM_AGAIN_S 10              /* longest */

/* --- the sampler --- */

static void add_cpus(const struct wf_cpus *cpus, cpu_set_t *set)
{
    for (int cpu = wf_cpus_next(cpus, 0); cpu >= 0 && cpu < CPU_SETSIZE; cpu = wf_cpus_next(cpus, cpu + 1))
        CPU_SET(cpu, set);
}

/* Where threads of the library are bound. */
static void find_bound(const struct bench_link *link, cpu_set_t *bound)
{
    struct weft_thread_info *threads = calloc(THREADS_MOST, sizeof *threads);
    int count = threads ? weft_context_threads(link->context, threads, THREADS_MOST) : 0;

    CPU_ZERO(bound);
    for (int i = 0; i < count && i < THREADS_MOST; i++) {
        struct wf_cpus cpus;
        char why[160];
        if (threads[i].planned[0] && wf_cpus_parse(threads[i].planned, &cpus, why, sizeof why) == 0)
            add_cpus(&cpus, bound);
    }
    free(threads);
}

/* Names of interfaces, each once. */
static int find_interfaces(const struct bench_link *link, struct weft_rail_info *rails, const char **names)
{
    int count = weft_context_rails(link->context, rails, BENCH_RAILS_MAX), found = 0;

    for (int i = 0; i < count && i < BENCH_RAILS_MAX; i++) {
        bool known = !rails[i].interface[0];
        for (int j = 0; j < found; j++)
            known |= strcmp(names[j], rails[i].interface) == 0;
        if (!known)
            names[found++] = rails[i].interface;
    }
    return found;
}

struct asker {
    struct wf_nvml *nvml;
    pid_t companion;
};

/* Processes on a GPU, without this one and its companion; negative: unknown. */
static int count_users(void *context, const char *pci)
{
    const struct asker *asker = context;
    uint32_t pids[64];
    int count = wf_nvml_processes(asker->nvml, pci, pids, 64), others = count;

    for (int i = 0; i < count && i < 64; i++)
        others -= pids[i] == (uint32_t)getpid() || pids[i] == (uint32_t)asker->companion;
    return others;
}

static int look_before(const struct bench_sense_want *want, json_t **findings)
{
    struct asker asker = {.companion = want->companion};
    const struct bench_sense_gpu_users users = {.count = count_users, .context = &asker};
    struct wf_status ignored;
    bool asks = want->gpu_count && wf_nvml_open(&asker.nvml, &ignored) == 0;

    int result = bench_sense_before(want, asks ? &users : NULL, findings);
    wf_nvml_close(asker.nvml);
    return result;
}

int profile_watch(struct profile *profile, struct wf_status *status)
{
    const struct bench_link *link = profile->site->link;
    struct weft_rail_info *rails = calloc(BENCH_RAILS_MAX, sizeof *rails);
    const char *pci[BENCH_GPUS_MAX], *interfaces[BENCH_RAILS_MAX];
    cpu_set_t bound;

    if (!rails)
        return wf_fail(status, -ENOMEM, "no memory for a list of rails");
    find_bound(link, &bound);
    struct bench_sense_want want = {
        .gpu_pci = pci, .interfaces = interfaces, .bound = &bound, .companion = profile->site->companion};
    want.interface_count = find_interfaces(link, rails, interfaces);
    for (uint32_t i = 0; i < link->gpus.count && i < profile->plan->endpoints; i++)
        pci[want.gpu_count++] = link->gpus.infos[i].pci;
    int result = look_before(&want, &profile->before);
    if (result)
        result = wf_fail(status, result, "no memory for what was found before the start");
    else
        result = bench_sense_start(&want, &profile->sense, status);
    free(rails);
    if (result == 0 && profile->site->news)
        bench_sense_put_before(profile->before, profile->site->news, bench_columns(profile->site->news));
    return result;
}

static const struct {
    unsigned trouble, stamp;
} meanings[] = {
    {BENCH_SENSE_GPU_THROTTLED | BENCH_SENSE_CPU_THROTTLED, BENCH_STAMP_THROTTLED},
    {BENCH_SENSE_GPU_CLOCK | BENCH_SENSE_CPU_CLOCK, BENCH_STAMP_CLOCK},
    {BENCH_SENSE_OTHERS, BENCH_STAMP_OTHERS},
    {BENCH_SENSE_NIC_ERRORS, BENCH_STAMP_NIC_ERRORS},
};

/* The library counts what TCP sends again itself, for each message; of other backends only the machine's count is
 * known. */
static unsigned stamps_of(unsigned troubles, const struct bench_backend_ops *ops)
{
    unsigned stamps = troubles & BENCH_SENSE_RETRANSMITS && ops != &bench_backend_weft ? BENCH_STAMP_RETRANSMITS : 0;

    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (troubles & meanings[i].trouble)
            stamps |= meanings[i].stamp;
    return stamps;
}

/* The place of an endpoint's GPU among those that are watched. */
static int gpu_of(const struct profile *profile, int node, int at, uint32_t endpoint)
{
    const struct bench_gpus *gpus = &profile->site->link->gpus;

    return node == at && gpus->count ? (int)(endpoint % gpus->count) : BENCH_SENSE_NO_GPU;
}

void profile_watched(struct profile *profile)
{
    int node = profile->site->bed->node;

    bench_sense_stop(profile->sense);
    for (size_t row = 0; row < profile->row_count; row++) {
        struct profile_mark *mark = &profile->marks[node][row];
        const struct profile_config *config = profile_config_of(profile, row);
        const struct bench_pair *pair = profile_pair(profile, config);
        if (mark->end_ns == 0)
            continue;
        int src = gpu_of(profile, pair->src_node, node, pair->src),
            dst = gpu_of(profile, pair->dst_node, node, pair->dst);
        mark->troubles = stamps_of(bench_sense_between(profile->sense, mark->begin_ns, mark->end_ns, src, dst),
                                   profile->plan->backends[config->backend]) |
                         profile_gpu_stamps(profile, src) | profile_gpu_stamps(profile, dst);
    }
}

/* --- warming up --- */

/* The coldest of this node's GPUs, or its processor; BENCH_SENSE_UNKNOWN: nobody knows. */
static int coldest(const struct profile *profile)
{
    const struct bench_gpus *gpus = &profile->site->link->gpus;
    int least = BENCH_SENSE_UNKNOWN;

    if (gpus->count == 0)
        return bench_sense_cpu_celsius(profile->sense);
    for (uint32_t i = 0; i < gpus->count && i < profile->plan->endpoints; i++) {
        int celsius = bench_sense_gpu_celsius(profile->sense, (int)i);
        if (celsius != BENCH_SENSE_UNKNOWN && (least == BENCH_SENSE_UNKNOWN || celsius < least))
            least = celsius;
    }
    return least;
}

struct heater {
    pthread_t thread;
    const char *pci; /* NULL: a processor */
    int64_t until_ns;
};

/* One that cannot be heated stays cold, and is told as that. */
static void heat_gpu(const char *pci, int64_t for_ns)
{
    struct wf_gpu_clock *clock = NULL;
    struct wf_status ignored;

    if (wf_gpu_clock_open(pci, &clock, &ignored) == 0)
        wf_gpu_heat(clock, for_ns, &ignored);
    wf_gpu_clock_close(clock);
}

static void *heat(void *context)
{
    struct heater *heater = context;
    volatile double sum = 1;

    if (heater->pci) {
        heat_gpu(heater->pci, heater->until_ns - wf_clock_now(&wf_clock_monotonic));
        return NULL;
    }
    while (wf_clock_now(&wf_clock_monotonic) < heater->until_ns)
        for (int i = 0; i < 10000; i++)
            sum = sum * 1.0000001 + 1e-9;
    return NULL;
}

/* All GPUs of this node at once, or all processors that this process may use, for a moment. */
static void heat_all(const struct profile *profile)
{
    const struct bench_gpus *gpus = &profile->site->link->gpus;
    struct heater heaters[THREADS_MOST];
    cpu_set_t ours;
    int most = 1, count = 0;

    if (gpus->count)
        most = (int)(gpus->count < profile->plan->endpoints ? gpus->count : profile->plan->endpoints);
    else if (sched_getaffinity(0, sizeof ours, &ours) == 0)
        most = CPU_COUNT(&ours);
    for (; count < most && count < THREADS_MOST; count++) {
        heaters[count] = (struct heater){.pci = gpus->count ? gpus->infos[count].pci : NULL,
                                         .until_ns = wf_clock_now(&wf_clock_monotonic) + HEAT_NS};
        if (pthread_create(&heaters[count].thread, NULL, heat, &heaters[count]))
            break;
    }
    for (int i = 0; i < count; i++)
        pthread_join(heaters[i].thread, NULL);
}

/* Whether one of the nodes is too cold. node1 speaks first. */
static int either(const struct profile *profile, bool mine, bool *any, struct wf_status *status)
{
    struct bench_control *control = profile->site->bed->control;
    json_t *said = json_pack("{s:b}", "cold", (int)mine), *heard = NULL;
    int result = profile->site->bed->node == 1 ? bench_control_say(control, said, status) : 0;

    if (result == 0)
        result = bench_control_hear(control, &heard, status);
    if (result == 0 && profile->site->bed->node == 0)
        result = bench_control_say(control, said, status);
    *any = mine || json_is_true(json_object_get(heard, "cold"));
    json_decref(said);
    json_decref(heard);
    return result;
}

int profile_warm(struct profile *profile, int to_celsius, int seconds, struct wf_status *status)
{
    int64_t start = wf_clock_now(&wf_clock_monotonic), end = start + seconds * WF_NS_PER_S;
    int result = 0, now = coldest(profile), first = now;
    bool any = true;

    if (!profile->warmed[0]) /* before the first message: later there is a line already */
        bench_progress_begin(profile->site->progress, "warming up", seconds * WF_NS_PER_S);
    while (result == 0 && any) {
        bool cold = now != BENCH_SENSE_UNKNOWN && now < to_celsius && wf_clock_now(&wf_clock_monotonic) < end;
        if (cold)
            heat_all(profile);
        bench_sense_poke(profile->sense);
        result = bench_control_check(profile->site->bed->control, status);
        if (result == 0)
            result = either(profile, cold, &any, status);
        now = coldest(profile);
    }
    if (profile->warmed[0])
        return result;
    if (now == BENCH_SENSE_UNKNOWN)
        snprintf(profile->warmed, sizeof profile->warmed, "not warmed up: no temperature can be read here");
    else
        snprintf(profile->warmed, sizeof profile->warmed, "%s %d degrees Celsius after %.0f s, from %d",
                 now < to_celsius ? "only" : "warmed up to", now,
                 (double)(wf_clock_now(&wf_clock_monotonic) - start) / WF_NS_PER_S, first);
    return result;
}

int profile_warm_again(struct profile *profile, size_t messages, struct wf_status *status)
{
    const struct wf_config *config = profile->site->options->config;
    int64_t every = wf_config_number(config, WF_SET_REWARM_EVERY);
    int below = (int)wf_config_number(config, WF_SET_REWARM_BELOW);
    bool any;

    if (every == 0 || messages % (size_t)every)
        return 0;
    int now = coldest(profile);
    int result = either(profile, now != BENCH_SENSE_UNKNOWN && now < below, &any, status);
    profile->rewarmed += any;
    if (result == 0 && any)
        result = profile_warm(profile, below + 3, WARM_AGAIN_S, status);
    return result ? result : any ? profile_fix(profile, status) : 0;
}
