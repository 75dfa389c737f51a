#include "bout.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench/nodes/control.h"

#define SLICE_MS 50
#define CLOSE_MS 1000
#define NONE UINT32_MAX

/* Owner: bench_bout_join(). */
struct joining {
    struct bench_link *link;
    const struct bench_plan *plan;
    uint32_t first, count;
    uint32_t *same;                 /* by pair of these: the first one of the same two endpoints */
    struct weft_request **requests; /* by pair of these; NULL: none, or ended */
};

static uint32_t mine_of(const struct joining *joining, uint32_t i)
{
    const struct bench_pair *pair = &joining->plan->pairs[joining->first + i];

    return pair->src_node == joining->link->node ? pair->src : pair->dst;
}

static uint32_t theirs_of(const struct joining *joining, uint32_t i)
{
    const struct bench_pair *pair = &joining->plan->pairs[joining->first + i];

    return pair->src_node == joining->link->node ? pair->dst : pair->src;
}

static int find_same(struct joining *joining, struct wf_status *status)
{
    uint64_t endpoints = joining->plan->endpoints;
    uint32_t *cells = malloc(endpoints * endpoints * sizeof *cells);

    joining->same = calloc(joining->count, sizeof *joining->same);
    joining->requests = calloc(joining->count, sizeof(struct weft_request *));
    if (!cells || !joining->same || !joining->requests) {
        free(cells);
        return wf_fail(status, -ENOMEM, "no memory for %u pairs", joining->count);
    }
    for (uint64_t i = 0; i < endpoints * endpoints; i++)
        cells[i] = NONE;
    for (uint32_t i = 0; i < joining->count; i++) {
        uint32_t *cell = &cells[mine_of(joining, i) * endpoints + theirs_of(joining, i)];
        if (*cell == NONE)
            *cell = i;
        joining->same[i] = *cell;
    }
    free(cells);
    return 0;
}

/* The lower node accepts, and the other opens. */
static int start_one(struct joining *joining, uint32_t i, struct wf_status *status)
{
    struct bench_link *link = joining->link;
    struct weft_options options = {.timeout_ms = link->connect_timeout_ms};
    uint32_t mine = mine_of(joining, i), theirs = theirs_of(joining, i);
    struct weft_endpoint *endpoint;
    struct weft_error err = {0};
    int result = bench_link_endpoint(link, mine, bench_link_numa_node(link, mine), &endpoint, status);

    if (result)
        return result;
    result = link->node < link->other
                 ? weft_connection_accept_start(endpoint, link->peer, theirs, &options, &joining->requests[i], &err)
                 : weft_connection_open_start(endpoint, link->peer, theirs, &options, &joining->requests[i], &err);
    return result ? bench_weft_failed(status, &err, "connecting endpoints") : 0;
}

static int start_all(struct joining *joining, struct wf_status *status)
{
    int result = 0;

    for (uint32_t i = 0; result == 0 && i < joining->count; i++)
        if (joining->same[i] == i)
            result = start_one(joining, i, status);
    return result;
}

static int finish_one(struct joining *joining, uint32_t i, struct weft_connection **out, struct wf_status *status)
{
    struct bench_control *control = joining->link->control;
    struct weft_completion completion;

    while (weft_wait(joining->requests[i], SLICE_MS, &completion) == -ETIMEDOUT) {
        int result = bench_control_check(control, status);
        if (result)
            return result;
    }
    joining->requests[i] = NULL;
    if (completion.status)
        return bench_control_failed(control, completion.status, completion.text, status);
    *out = completion.connection;
    return 0;
}

static int finish_all(struct joining *joining, struct weft_connection **joined, struct wf_status *status)
{
    int result = 0;

    for (uint32_t i = 0; result == 0 && i < joining->count; i++) {
        struct weft_connection **own = &joined[joining->first + i];
        if (joining->same[i] == i)
            result = finish_one(joining, i, own, status);
        else
            *own = joined[joining->first + joining->same[i]];
    }
    return result;
}

/* A connection that comes before it is asked for would be an event, which the group takes: the side that accepts asks
 * first, and says so. */
static int join(struct joining *joining, struct weft_connection **joined, struct wf_status *status)
{
    struct bench_link *link = joining->link;
    const struct bench_news none = {0};
    struct bench_news news;
    int result = find_same(joining, status);

    if (result == 0 && link->node > link->other)
        result = bench_control_learn(link->control, &news, status);
    if (result == 0)
        result = start_all(joining, status);
    if (result == 0 && link->node < link->other)
        result = bench_control_tell(link->control, &none, status);
    return result ? result : finish_all(joining, joined, status);
}

int bench_bout_join(struct bench_link *link, const struct bench_plan *plan, uint32_t first, uint32_t count,
                    struct weft_connection **joined, struct wf_status *status)
{
    struct joining joining = {.link = link, .plan = plan, .first = first, .count = count};
    int result = join(&joining, joined, status);

    free(joining.same);
    free(joining.requests); /* after a failure some are under way; they end with the context */
    return result;
}

void bench_bout_part(const struct bench_plan *plan, uint32_t first, uint32_t count, struct weft_connection **joined)
{
    for (uint32_t i = first; i < first + count && i < plan->pair_count; i++) {
        struct weft_connection *connection = joined[i];
        if (!connection)
            continue;
        for (uint32_t k = i; k < first + count; k++)
            if (joined[k] == connection)
                joined[k] = NULL;
        weft_connection_close(connection, CLOSE_MS, NULL);
    }
}
