#include "link.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/words/interrupt.h"
#include "key_check.h"
#include "team.h"

#define CLOSE_MS 1000     /* for a session to end in an orderly way */
#define MANY_PEERS "8192" /* all nodes at node0 while they meet, and those whose sessions end while others begin */
#define SLICE_MS 100      /* how long a wait goes on before it looks at interruptions */

int bench_weft_failed(struct wf_status *status, const struct weft_error *err, const char *what)
{
    int code = err->code ? err->code : -EIO;

    if (what && what[0])
        return wf_fail(status, code, "%s: %s", what, err->text);
    return wf_fail(status, code, "%s", err->text);
}

int bench_library_settings(const struct wf_config *config, struct weft_config **out, struct wf_status *status)
{
    struct weft_config *settings;
    struct weft_error err = {0};
    int result = bench_key_check(config, status);

    if (result)
        return result;
    if (weft_config_create(&settings, &err) != 0)
        return bench_weft_failed(status, &err, NULL);
    for (int i = 0; i < WF_SETTING_COUNT; i++) {
        const struct wf_setting *setting = wf_setting(i);
        const char *text = wf_config_text(config, i), *there = weft_config_get(settings, setting->name);
        bool given = config->values[i].origin != WF_ORIGIN_DEFAULT;
        if (setting->group != WF_GROUP_LIBRARY)
            continue;
        /* What the library has read by itself keeps its origin: it is lenient with variables of other programs. */
        if (there && strcmp(there, text) == 0 && (!given || weft_config_is_set(settings, setting->name) == 1))
            continue;
        if (weft_config_set(settings, setting->name, text, &err) != 0) {
            weft_config_destroy(settings);
            return bench_weft_failed(status, &err, NULL);
        }
    }
    *out = settings;
    return 0;
}

int bench_context_create(const struct wf_config *config, const struct weft_config *settings, struct weft_context **out,
                         struct wf_status *status)
{
    const struct wf_value *rails = &config->values[WF_SET_RAILS];
    struct weft_error err = {0};
    int result = weft_context_create(settings, out, &err);

    if (result == 0)
        return 0;
    /* The name of what is not here is a wrong value; what is down now is not. */
    if ((result == -ENODEV || result == -ENETDOWN) &&
        (rails->origin == WF_ORIGIN_FILE || rails->origin == WF_ORIGIN_ENVIRONMENT))
        bench_weft_failed(status, &err, rails->source);
    else
        bench_weft_failed(status, &err, NULL);
    if (result == -ENODEV)
        status->code = -EINVAL;
    return status->code;
}

int bench_link_numa_node(const struct bench_link *link, uint32_t endpoint)
{
    const struct weft_gpu_info *gpu = bench_gpu_of(&link->gpus, endpoint);

    return gpu ? gpu->numa_node : bench_placement_node(&link->placement, endpoint);
}

/* The context makes those ready that have buffers, once these are allocated. Whether there have to be any is decided.
 */
static int set_gpus(struct weft_config *settings, const struct bench_gpus *gpus, struct wf_status *status)
{
    bool required = strcmp(weft_config_get(settings, "cuda"), "require") == 0;
    struct weft_error err = {0};

    if (weft_config_set(settings, "gpus", "", &err) != 0 ||
        (required && gpus->count == 0 && weft_config_set(settings, "cuda", "auto", &err) != 0))
        return bench_weft_failed(status, &err, NULL);
    return 0;
}

int bench_link_open(struct bench_link *link, int node, const struct wf_config *config, const struct bench_gpus *gpus,
                    struct wf_status *status)
{
    struct weft_error err = {0};

    memset(link, 0, sizeof *link);
    link->node = node;
    link->other = 1 - node;
    link->connect_timeout_ms = (int)wf_config_number(config, WF_SET_CONNECT_TIMEOUT) * 1000;
    int idle = (int)wf_config_number(config, WF_SET_IDLE_TIMEOUT);
    link->idle_timeout_ms = idle == 0 ? -1 : idle < INT_MAX / 1000 ? idle * 1000 : INT_MAX;
    int result = bench_library_settings(config, &link->settings, status);
    if (result)
        return result;
    /* A measurement has one other node: a second client is told so at once instead of disturbing it. */
    if (bench_is_default(config, WF_SET_PEERS) &&
        weft_config_set(link->settings, "peers", node == BENCH_OF_MANY ? MANY_PEERS : "1", &err) != 0)
        return bench_weft_failed(status, &err, NULL);
    if (gpus)
        link->gpus = *gpus;
    result = set_gpus(link->settings, &link->gpus, status);
    if (result)
        return result;
    result = bench_context_create(config, link->settings, &link->context, status);
    if (result)
        return result;
    if (node != BENCH_OF_MANY &&
        weft_endpoint_create(link->context, BENCH_CONTROL_ENDPOINT, &link->endpoint, &err) != 0)
        return bench_weft_failed(status, &err, "control endpoint");
    return 0;
}

int bench_link_rails(const struct bench_link *link, struct weft_rail_stats *stats)
{
    if (link->team)
        return bench_team_rails(link->team, stats);
    int count = link->peer ? weft_peer_rails(link->peer, stats, BENCH_RAILS_MAX) : 0;
    return count > BENCH_RAILS_MAX ? BENCH_RAILS_MAX : count < 0 ? 0 : count;
}

int bench_link_listen(struct bench_link *link, const char *address, int *port, struct wf_status *status)
{
    struct weft_error err = {0};

    if (weft_listen(link->context, address, &err) != 0)
        return bench_weft_failed(status, &err, NULL);
    *port = weft_listen_port(link->context);
    return 0;
}

int bench_link_take(const struct bench_link *link, struct weft_endpoint *endpoint, uint32_t remote, int timeout_ms,
                    const char *what, struct weft_connection **out, struct wf_status *status)
{
    int64_t deadline = wf_deadline_after_ms(wf_clock_now(&wf_clock_monotonic), timeout_ms);
    struct weft_error err = {0};
    int result;

    /* A session that has ended may say -ETIMEDOUT, too. */
    while ((result = weft_connection_accept(endpoint, link->peer, remote, SLICE_MS, out, &err)) == -ETIMEDOUT &&
           weft_peer_status(link->peer, NULL) == 0) {
        result = bench_interrupted(status);
        if (result)
            return result;
        if (wf_clock_now(&wf_clock_monotonic) >= deadline)
            return wf_fail(status, -ETIMEDOUT, "%s: %s did not open it within %d s", what, weft_peer_name(link->peer),
                           timeout_ms / 1000);
    }
    return result ? bench_weft_failed(status, &err, what) : 0;
}

int bench_link_accept(struct bench_link *link, bool patient, bench_waiting *waiting, void *context,
                      struct wf_status *status)
{
    int limit_ms = patient ? link->idle_timeout_ms : link->connect_timeout_ms;
    int64_t deadline = wf_deadline_after_ms(wf_clock_now(&wf_clock_monotonic), limit_ms);
    struct weft_error err = {0};
    int result;

    while ((result = weft_accept(link->context, SLICE_MS, &link->peer, &err)) == -ETIMEDOUT) {
        result = bench_interrupted(status);
        if (result == 0 && waiting)
            result = waiting(context, status);
        if (result)
            return result;
        if (wf_clock_now(&wf_clock_monotonic) >= deadline)
            return wf_fail(status, -ETIMEDOUT, "no other node came within %d s: raise --%s", limit_ms / 1000,
                           patient ? "idle-timeout" : "connect-timeout");
    }
    if (result)
        return bench_weft_failed(status, &err, NULL);
    return bench_link_take(link, link->endpoint, BENCH_CONTROL_ENDPOINT, link->connect_timeout_ms, "control connection",
                           &link->connection, status);
}

/* The library tells what a stranger began with. The word of weft raw is no stranger to a person who mixed the commands.
 */
static int cannot_connect(const struct weft_error *err, struct wf_status *status)
{
    bench_weft_failed(status, err, NULL);
    if (strstr(status->text, "'weftraw1'"))
        wf_fail(status, status->code, "%s: that is 'weft raw --listen': start the same command on both nodes",
                status->text);
    return status->code;
}

int bench_link_connect(struct bench_link *link, const char *address, struct wf_status *status)
{
    int64_t start = wf_clock_now(&wf_clock_monotonic);
    struct weft_error err = {0};
    int result = weft_connect(link->context, address, link->connect_timeout_ms, &link->peer, &err);
    if (result)
        return cannot_connect(&err, status);
    result = weft_connection_open(link->endpoint, link->peer, BENCH_CONTROL_ENDPOINT, link->connect_timeout_ms,
                                  &link->connection, &err);
    link->footprint.session_ns = wf_clock_now(&wf_clock_monotonic) - start;
    return result ? bench_weft_failed(status, &err, "control connection") : 0;
}

int bench_link_endpoint(struct bench_link *link, uint32_t id, int numa_node, struct weft_endpoint **out,
                        struct wf_status *status)
{
    struct bench_link *owner = link->house ? link->house : link;
    struct weft_error err = {0};

    if (id >= owner->endpoint_count) {
        struct weft_endpoint **grown = realloc(owner->endpoints, (id + 1) * sizeof(struct weft_endpoint *));
        if (!grown)
            return wf_fail(status, -ENOMEM, "no memory for %u endpoints", id + 1);
        memset(grown + owner->endpoint_count, 0, (id + 1 - owner->endpoint_count) * sizeof(struct weft_endpoint *));
        owner->endpoints = grown;
        owner->endpoint_count = id + 1;
    }
    struct weft_endpoint **slot = &owner->endpoints[id];
    if (!*slot && weft_endpoint_create(owner->context, id, slot, &err) != 0)
        return bench_weft_failed(status, &err, "endpoint");
    (void)weft_endpoint_set_node(*slot, numa_node);
    *out = *slot;
    return 0;
}

void bench_link_visit(struct bench_link *link, struct bench_link *house, struct weft_peer *peer,
                      struct weft_connection *connection)
{
    memset(link, 0, sizeof *link);
    link->house = house;
    link->node = house->node;
    link->other = 1 - house->node;
    link->settings = house->settings;
    link->context = house->context;
    link->endpoint = house->endpoint;
    link->connect_timeout_ms = house->connect_timeout_ms;
    link->peer = peer;
    link->connection = connection;
    (void)weft_context_faults(link->context, &link->faults_before);
    int count = weft_context_gpu_stats(link->context, link->gpus_before, BENCH_GPUS_MAX);
    link->gpus_before_count = count < BENCH_GPUS_MAX ? count : BENCH_GPUS_MAX;
}

void bench_link_end(struct bench_link *link)
{
    if (!link->house || !link->peer)
        return;
    weft_peer_close(link->peer, CLOSE_MS, NULL);
    link->peer = NULL;
    link->connection = NULL;
    link->over = true;
}

void bench_link_close(struct bench_link *link)
{
    bench_link_end(link);
    /* The context takes peers, connections and endpoints with it; after it, no buffer of ours is touched. */
    if (link->context && !link->house)
        weft_context_destroy(link->context);
    if (link->settings && !link->house)
        weft_config_destroy(link->settings);
    free(link->endpoints);
    json_decref(link->backends);
    json_decref(link->gpu_states);
    json_decref(link->memory_watch);
    memset(link, 0, sizeof *link);
}
