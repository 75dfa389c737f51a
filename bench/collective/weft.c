/* Weft as a backend of ranks/rank.h: libweft_coll. Also what a process is that was started as one of its ranks. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/nodes/link.h"
#include "collective/weft_coll.h"
#include "plan.h"

#define MEET_MS 60000

/* Of this process, which is one rank and then ends. */
static struct {
    const struct bench_options *options;
    struct weft_config *settings;
    struct weft_context *context;
    struct weft_group *group;
    int timeout_ms;
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
    return 0;
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

static int weft_gather(const double *numbers, int count, double *all, struct wf_status *status)
{
    struct weft_error err = {0};
    int result = weft_group_all_gather(own.group, numbers, all, (uint64_t)count, WEFT_FLOAT64, own.timeout_ms, &err);

    return result ? bench_weft_failed(status, &err, NULL) : 0;
}

/* One message to or from a rank: `out` is sent, or else `in` is received. */
static int exchange(uint32_t with, const void *out, void *in, uint64_t bytes, struct wf_status *status)
{
    const struct weft_options options = {.timeout_ms = own.timeout_ms};
    struct weft_connection *connection = NULL;
    struct weft_completion completion = {0};
    struct weft_request *request = NULL;
    struct weft_error err = {0};

    if (weft_group_connection(own.group, with, own.timeout_ms, &connection, &err) != 0)
        return bench_weft_failed(status, &err, NULL);
    int result = out ? weft_send(connection, out, bytes, 0, &options, &request)
                     : weft_recv(connection, in, bytes, 0, &options, &request);
    if (result == 0 && (result = weft_wait(request, -1, &completion)) == 0)
        result = completion.status;
    return result ? wf_fail(status, result, "a message %s rank %u: %s", out ? "to" : "from", with, wf_strerror(result))
                  : 0;
}

static int weft_send_to(uint32_t to, const void *memory, uint64_t bytes, struct wf_status *status)
{
    return exchange(to, memory, NULL, bytes, status);
}

static int weft_receive_from(uint32_t from, void *memory, uint64_t bytes, struct wf_status *status)
{
    return exchange(from, NULL, memory, bytes, status);
}

static void weft_close(void)
{
    struct wf_status ignored;

    weft_barrier(&ignored); /* who is done must not leave those that are not */
    weft_group_destroy(own.group);
    weft_context_destroy(own.context);
    weft_config_destroy(own.settings);
}

int coll_member(const struct bench_options *options, const struct rank_asked *asked)
{
    static const struct rank_backend backend = {
        .name = "weft",
        .open = weft_open,
        .facts = weft_facts,
        .lacks = weft_lacks,
        .run = weft_run,
        .barrier = weft_barrier,
        .gather = weft_gather,
        .send = weft_send_to,
        .receive = weft_receive_from,
        .close = weft_close,
    };

    own.options = options;
    return rank_run(&backend, asked);
}

_Static_assert((int)WEFT_FLOAT64 == (int)RANK_FLOAT64 && (int)WEFT_FLOAT32 == (int)RANK_FLOAT32 &&
                   (int)WEFT_FLOAT16 == (int)RANK_FLOAT16 && (int)WEFT_BFLOAT16 == (int)RANK_BFLOAT16 &&
                   (int)WEFT_INT32 == (int)RANK_INT32 && (int)WEFT_INT64 == (int)RANK_INT64 &&
                   (int)WEFT_UINT8 == (int)RANK_UINT8,
               "the types have the library's numbers");
_Static_assert((int)WEFT_SUM == (int)RANK_SUM && (int)WEFT_MIN == (int)RANK_MIN && (int)WEFT_MAX == (int)RANK_MAX &&
                   (int)WEFT_AVG == (int)RANK_AVG,
               "and the reductions, too");
