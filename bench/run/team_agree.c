#include "team_agree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agreeing.h"
#include "base/clock.h"
#include "bench/machine/memory_limits.h"
#include "bench/plan/names.h"
#include "bench/words/heard.h"
#include "bench/words/random.h"
#include "bench/words/words.h"
#include "fit.h"
#include "line.h"

/* What node0 has heard. Owner: bench_team_agree(). */
struct hearing {
    struct bench_agreement *agreement;
    uint64_t *machines, *networks; /* by node: of which machine, and network of it; node0 */
    bool told;                     /* this node has */
};

static uint64_t mix(const char *text)
{
    uint64_t digest = 1;

    for (; text && *text; text++)
        digest = bench_random_mix(digest ^ (uint8_t)*text);
    return digest;
}

static void note_machine(struct hearing *hearing, int node, const json_t *about)
{
    const char *boot = json_string_value(json_object_get(about, "boot_id"));

    /* Of a system that does not say, every node is a machine. */
    hearing->machines[node] = boot && boot[0] ? mix(boot) : (uint64_t)node;
    hearing->networks[node] =
        bench_random_mix(hearing->machines[node] ^ mix(json_string_value(json_object_get(about, "network"))));
}

static void note_node(struct hearing *hearing, int node, const json_t *about)
{
    struct bench_agreement *agreement = hearing->agreement;
    uint64_t eager = (uint64_t)json_integer_value(json_object_get(about, "eager"));

    if (eager > agreement->eager)
        agreement->eager = eager;
    bench_adopt_memory(agreement->plan, node, about);
    if (node % agreement->plan->processes == 0)
        bench_remember(agreement->result, node / agreement->plan->processes, about);
    note_machine(hearing, node, about);
}

static json_t *tell(void *context)
{
    struct hearing *hearing = context;

    if (hearing->told)
        return NULL;
    hearing->told = true;
    json_t *about = bench_introduction(hearing->agreement);
    json_object_set_new(about, "rank", json_integer(hearing->agreement->link->node));
    return about;
}

static int take(void *context, const json_t *about, struct wf_status *status)
{
    struct hearing *hearing = context;
    const struct bench_plan *plan = hearing->agreement->plan;
    json_int_t node = json_integer_value(json_object_get(about, "rank"));

    if (node < 1 || node >= plan->node_count)
        return wf_fail(status, -EPROTO, "a node that says it is node%" JSON_INTEGER_FORMAT " is none of %d", node,
                       plan->node_count);
    if (bench_check_digest(plan, about, &(struct wf_status){0}))
        return wf_fail(status, -EPROTO,
                       "node%d and node0 plan different measurements: use the same build of weft on all nodes",
                       (int)node);
    note_node(hearing, (int)node, about);
    return 0;
}

/* --- what follows for all --- */

/* Processes on the machine that has most. */
static uint32_t most_of_a_machine(const struct hearing *hearing, int nodes)
{
    uint32_t most = 1;

    for (int i = 0; i < nodes; i++) {
        uint32_t here = 0;
        for (int k = 0; k < nodes; k++)
            here += hearing->machines[k] == hearing->machines[i];
        if (here > most)
            most = here;
    }
    return most;
}

static enum bench_nearness nearness_of(const struct hearing *hearing, int nodes)
{
    enum bench_nearness nearness = BENCH_LOOPBACK;

    for (int i = 1; i < nodes; i++) {
        if (hearing->machines[i] != hearing->machines[0])
            return BENCH_APART;
        if (hearing->networks[i] != hearing->networks[0])
            nearness = BENCH_ONE_MACHINE;
    }
    return nearness;
}

/* Nodes of one machine share what is free there. */
static void share_limits(struct bench_limits *limits, uint32_t sharers)
{
    bench_limits_read(limits, "");
    for (int i = 0; i < limits->count; i++)
        limits->all[i].free_bytes /= sharers;
}

/* node0: the settings that fit here, and what else all have to know. A new reference; NULL: an error. */
static json_t *decide(struct hearing *hearing, uint32_t *sharers, struct wf_status *status)
{
    struct bench_agreement *agreement = hearing->agreement;
    struct bench_plan *plan = agreement->plan;
    struct bench_limits limits;
    struct bench_parties parties = {.all = {{0, &agreement->link->gpus, &limits}}, .count = 1, .met = true};

    *sharers = most_of_a_machine(hearing, plan->node_count);
    share_limits(&limits, *sharers);
    pthread_mutex_lock(&agreement->result->lock);
    int result = bench_fit(agreement->options, plan, &parties, agreement->news, status);
    agreement->result->nearness = nearness_of(hearing, plan->node_count);
    pthread_mutex_unlock(&agreement->result->lock);
    if (result)
        return NULL;
    json_t *terms = bench_introduction(agreement), *memories = json_array();
    for (int node = 0; node < plan->node_count; node++)
        json_array_append_new(memories,
                              json_pack("[i, i]", (int)plan->nodes[node].memory, (int)plan->nodes[node].gpus));
    json_object_set_new(terms, "memories", memories);
    json_object_set_new(terms, "most_eager", json_integer((json_int_t)agreement->eager));
    json_object_set_new(terms, "sharers", json_integer(*sharers));
    json_object_set_new(terms, "nearness", json_integer(agreement->result->nearness));
    return terms;
}

static void adopt_memories(struct bench_plan *plan, const json_t *memories)
{
    for (int node = 0; node < plan->node_count; node++) {
        const json_t *entry = json_array_get(memories, (size_t)node);
        json_int_t memory = json_integer_value(json_array_get(entry, 0));
        bench_plan_set_memory(plan, node,
                              memory >= 0 && memory < BENCH_MEMORIES ? (enum bench_memory)memory : BENCH_HOST,
                              (uint32_t)json_integer_value(json_array_get(entry, 1)));
    }
}

/* A plan that fits node0 may be too large for another node. */
static int check_fit(const struct bench_agreement *agreement, uint32_t sharers, struct wf_status *status)
{
    struct bench_limits limits;
    struct bench_parties parties = {.all = {{agreement->link->node, &agreement->link->gpus, &limits}}, .count = 1};
    struct bench_lack lack;
    char text[200];

    share_limits(&limits, sharers);
    if (bench_memory_suffices(agreement->plan, &parties, &lack))
        return 0;
    return wf_fail(status, -ENOMEM, "%s: lower --end, --size or --endpoints",
                   bench_lack_text(&lack, false, "", text, sizeof text));
}

static int adopt_terms(struct bench_agreement *agreement, const json_t *terms, uint32_t *sharers,
                       struct wf_status *status)
{
    json_int_t nearness = json_integer_value(json_object_get(terms, "nearness"));
    json_int_t sharing = json_integer_value(json_object_get(terms, "sharers"));
    int result = bench_adopt_fit(agreement, terms, status);

    if (result == 0)
        result = bench_check_digest(agreement->plan, terms, status);
    if (result)
        return result;
    *sharers = sharing > 0 && sharing <= BENCH_NODES_MOST ? (uint32_t)sharing : 1;
    agreement->eager = (uint64_t)json_integer_value(json_object_get(terms, "most_eager"));
    pthread_mutex_lock(&agreement->result->lock);
    adopt_memories(agreement->plan, json_object_get(terms, "memories"));
    if (nearness >= BENCH_APART && nearness <= BENCH_LOOPBACK)
        agreement->result->nearness = (enum bench_nearness)nearness;
    pthread_mutex_unlock(&agreement->result->lock);
    return check_fit(agreement, *sharers, status);
}

/* --- the conversation --- */

static int adopt_settings(struct bench_agreement *agreement, const json_t *first, struct wf_status *status)
{
    int result = bench_check_hello(first, bench_command_name(agreement->options->command), 1, status);

    if (result == 0)
        result = bench_adopt(agreement, first, status);
    if (result == 0)
        result = bench_check_digest(agreement->plan, first, status);
    return result ? result : bench_adopt_stamp(agreement->result, first, status);
}

static int hear_settings(struct hearing *hearing, struct bench_team *team, struct wf_status *status)
{
    struct bench_agreement *agreement = hearing->agreement;
    bool decides = agreement->link->node == 0;
    json_t *first = decides ? bench_introduction(agreement) : NULL;
    int result = bench_team_spread(team, &first, status);

    if (result == 0 && !decides)
        result = adopt_settings(agreement, first, status);
    if (result == 0 && decides)
        note_node(hearing, 0, first);
    json_decref(first);
    return result;
}

static int hear_terms(struct hearing *hearing, struct bench_team *team, uint32_t *sharers, struct wf_status *status)
{
    struct bench_agreement *agreement = hearing->agreement;
    bool decides = agreement->link->node == 0;
    json_t *terms = decides ? decide(hearing, sharers, status) : NULL;
    int result = decides && !terms ? status->code : bench_team_spread(team, &terms, status);

    if (result == 0 && !decides)
        result = adopt_terms(agreement, terms, sharers, status);
    json_decref(terms);
    return result;
}

static int agree(struct hearing *hearing, struct bench_team *team, uint32_t *sharers, struct wf_status *status)
{
    const struct bench_gathering gathering = {tell, take, hearing};
    int result = hear_settings(hearing, team, status);

    if (result == 0)
        result = bench_team_gather(team, &gathering, status);
    return result ? result : hear_terms(hearing, team, sharers, status);
}

int bench_team_agree(struct bench_agreement *agreement, struct bench_team *team, uint32_t *at_once,
                     struct wf_status *status)
{
    size_t nodes = (size_t)agreement->plan->node_count;
    struct hearing hearing = {.agreement = agreement,
                              .machines = calloc(nodes, sizeof(uint64_t)),
                              .networks = calloc(nodes, sizeof(uint64_t))};
    uint32_t sharers = 1;
    int result = hearing.machines && hearing.networks ? agree(&hearing, team, &sharers, status)
                                                      : wf_fail(status, -ENOMEM, "no memory for %zu nodes", nodes);

    free(hearing.machines);
    free(hearing.networks);
    if (result)
        return result;
    *at_once = (uint32_t)wf_config_number(agreement->options->config, WF_SET_NODE_PAIRS);
    if (*at_once == 0 && sharers > (uint32_t)agreement->plan->processes)
        *at_once = 1;
    pthread_mutex_lock(&agreement->result->lock);
    agreement->result->begun_ns = wf_clock_now(&wf_clock_monotonic);
    pthread_mutex_unlock(&agreement->result->lock);
    return 0;
}
