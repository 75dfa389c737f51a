/* Weft as a backend of ranks/rank.h: libweft_coll. Also what a process is that was started as one of its ranks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/nodes/link.h"
#include "collective/weft_coll.h"
#include "plan.h"

#define MEET_MS 60000
#define GB_PER_MBIT (1e6 / 8 / 1e9)

/* Of this process, which is one rank and then ends. */
static struct {
    const struct bench_options *options;
    struct weft_config *settings;
    struct weft_context *context;
    struct weft_group *group;
    int timeout_ms;
    double line; /* GB/s that the rails of this host allow each of its ranks; negative: not known */
} own;

/* "RANK/SIZE/FILE"; or "found", or "found/FILE" */
static int read_member(const char *text, struct weft_group_options *options, char rendezvous[PATH_MAX],
                       struct wf_status *status)
{
    int used = 0;

    if (strcmp(text, "found") == 0)
        return 0;
    if (strncmp(text, "found/", 6) == 0)
        used = 6;
    else if (sscanf(text, "%u/%u/%n", &options->rank, &options->size, &used) != 2 || used == 0 || !text[used])
        return wf_fail(status, -EINVAL, "--member '%.60s': expected RANK/SIZE/FILE", text);
    snprintf(rendezvous, PATH_MAX, "file:%s", text + used);
    options->rendezvous = rendezvous;
    return 0;
}

static int weft_gather(const double *numbers, int count, double *all, struct wf_status *status)
{
    struct weft_error err = {0};
    int result = weft_group_all_gather(own.group, numbers, all, (uint64_t)count, WEFT_FLOAT64, own.timeout_ms, &err);

    return result ? bench_weft_failed(status, &err, NULL) : 0;
}

/* Of all rails; negative: of one it is not known. */
static double rails_allow(void)
{
    struct weft_rail_info rails[BENCH_RAILS_MAX];
    int count = weft_context_rails(own.context, rails, BENCH_RAILS_MAX);
    double sum = 0;

    for (int i = 0; i < count && i < BENCH_RAILS_MAX; i++) {
        if (rails[i].speed_mbit <= 0)
            return -1;
        sum += rails[i].speed_mbit * GB_PER_MBIT;
    }
    return sum > 0 ? sum : -1;
}

/* Ranks of one host share its rails; where there is one host, nothing crosses them. */
static int note_line(uint32_t ranks, struct wf_status *status)
{
    double local = weft_group_local_rank(own.group), most = 0;
    double *all = calloc(ranks, sizeof *all);
    uint32_t hosts = 0;

    if (!all)
        return wf_fail(status, -ENOMEM, "no memory for %u ranks", ranks);
    int result = weft_gather(&local, 1, all, status);
    for (uint32_t i = 0; result == 0 && i < ranks; i++) {
        most = all[i] > most ? all[i] : most;
        hosts += all[i] == 0;
    }
    free(all);
    own.line = hosts > 1 ? rails_allow() / (most + 1) : -1;
    return result;
}

static int weft_open(const struct rank_asked *asked, uint32_t *rank, uint32_t *ranks, struct wf_status *status)
{
    struct weft_group_options options = {0};
    struct weft_error err = {0};
    char rendezvous[PATH_MAX];
    int result = read_member(own.options->collective.member, &options, rendezvous, status);

    own.timeout_ms = (int)asked->timeout_s * 1000;
    if (result == 0)
        result = bench_library_settings(own.options->config, &own.settings, status);
    if (result == 0)
        result = bench_context_create(own.options->config, own.settings, &own.context, status);
    if (result)
        return result;
    if (weft_group_create(own.context, &options, MEET_MS, &own.group, &err) != 0)
        return bench_weft_failed(status, &err, NULL);
    *rank = weft_group_rank(own.group);
    *ranks = weft_group_size(own.group);
    return note_line(*ranks, status);
}

/* What is quoted in JSON without escapes. */
static void put_plain(FILE *out, const char *text)
{
    for (; *text; text++)
        fputc(*text == '"' || *text == '\\' || (unsigned char)*text < ' ' ? ' ' : *text, out);
}

static void weft_facts(FILE *out)
{
    char table[2048] = "";

    weft_group_algorithms(table, sizeof table);
    fprintf(out, "\"library\": \"Weft %s\", \"ranks_by\": \"", weft_version());
    put_plain(out, weft_group_source(own.group));
    fprintf(out, "\", \"rails\": \"");
    put_plain(out, weft_config_get(own.settings, "rails"));
    fprintf(out, "\", \"algorithms\": \"");
    for (char *at = table; *at; at++)
        *at = *at == '\n' ? ';' : *at;
    put_plain(out, table);
    fprintf(out, "\"");
    if (own.line > 0)
        fprintf(out, ", \"line_gb_per_s\": %.6f", own.line);
}

static const char *weft_lacks(const struct rank_call *call)
{
    (void)call;
    return NULL;
}

static int weft_run(struct rank_call *call, struct wf_status *status)
{
    enum weft_type type = (enum weft_type)call->type;
    enum weft_op op = (enum weft_op)call->redop;
    struct weft_group *group = own.group;
    struct weft_error err = {0};
    int result = -EINVAL, ms = own.timeout_ms;

    switch (call->op) {
    case BENCH_ALL_REDUCE:
        result = weft_group_all_reduce(group, call->send, call->recv, call->count, type, op, ms, &err);
        break;
    case BENCH_ALL_GATHER:
        result = weft_group_all_gather(group, call->send, call->recv, call->count, type, ms, &err);
        break;
    case BENCH_REDUCE_SCATTER:
        result = weft_group_reduce_scatter(group, call->send, call->recv, call->count, type, op, ms, &err);
        break;
    case BENCH_BROADCAST:
        result = weft_group_broadcast(group, call->send, call->recv, call->count, type, 0, ms, &err);
        break;
    case BENCH_ALL_TO_ALL:
        result = weft_group_all_to_all(group, call->send, call->recv, call->count, type, ms, &err);
        break;
    case BENCH_SEND_RECEIVE:
        result = weft_group_shift(group, call->send, call->recv, call->count, type, 1, ms, &err);
        break;
    }
    return result ? bench_weft_failed(status, &err, NULL) : 0;
}

static int weft_barrier(struct wf_status *status)
{
    struct weft_error err = {0};
    int result = weft_group_barrier(own.group, own.timeout_ms, &err);

    return result ? bench_weft_failed(status, &err, NULL) : 0;
}

static void weft_close(void)
{
    struct wf_status ignored;

    weft_barrier(&ignored); /* who is done must not leave those that are not */
    weft_group_destroy(own.group);
    weft_context_destroy(own.context);
    weft_config_destroy(own.settings);
}

int coll_member(const struct bench_options *options)
{
    static const struct rank_backend backend = {
        .name = "weft",
        .open = weft_open,
        .facts = weft_facts,
        .lacks = weft_lacks,
        .run = weft_run,
        .barrier = weft_barrier,
        .gather = weft_gather,
        .close = weft_close,
    };
    struct rank_asked asked;
    struct wf_status status = {0};

    own.options = options;
    if (coll_plan_asked(&asked, options, &status) != 0) {
        fprintf(stderr, "weft: %s\n", status.text);
        return BENCH_USAGE;
    }
    return rank_run(&backend, &asked);
}

_Static_assert((int)WEFT_FLOAT64 == (int)RANK_FLOAT64 && (int)WEFT_FLOAT32 == (int)RANK_FLOAT32 &&
                   (int)WEFT_FLOAT16 == (int)RANK_FLOAT16 && (int)WEFT_BFLOAT16 == (int)RANK_BFLOAT16 &&
                   (int)WEFT_INT32 == (int)RANK_INT32 && (int)WEFT_INT64 == (int)RANK_INT64 &&
                   (int)WEFT_UINT8 == (int)RANK_UINT8,
               "the types have the library's numbers");
_Static_assert((int)WEFT_SUM == (int)RANK_SUM && (int)WEFT_MIN == (int)RANK_MIN && (int)WEFT_MAX == (int)RANK_MAX &&
                   (int)WEFT_AVG == (int)RANK_AVG,
               "and the reductions, too");
