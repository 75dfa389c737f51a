/* Weft as a backend of ranks/rank.h: libweft_coll. Also what a process is that was started as one of its ranks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/nodes/link.h"
#include "bench/words/heard.h"
#include "gpu.h"
#include "member.h"
#include "multiply.h"
#include "nccl.h"
#include "plan.h"
#include "work.h"

#define GB_PER_MBIT (1e6 / 8 / 1e9)

enum weft_step { CLOSE, CONTEXT, LISTEN, NAMES, CONNECT, MEMBERS, TREE };

/* Of this process, which is one rank and then ends. */
static struct {
    const struct bench_options *options;
    struct coll_membership member;
    int timeout_ms;
    struct rank_backend *backend;
    bool on_gpu;
    double line; /* GB/s that the rails of this host allow each of its ranks; negative: not known */
    struct rank_step steps[TREE + 2];
} own = {.steps = {{"close", 0},
                   {"context", 0}, /* memory, rails, threads */
                   {"listen", 0},  /* the group's own memory, and a port */
                   {"names", 0},   /* where rank 0 is */
                   {"connect", 0}, /* a session with it: TCP and the handshake */
                   {"members", 0}, /* until all have come, and all are known */
                   {"tree", 0},    /* the sessions of the tree, and a first barrier */
                   {NULL, 0}}};

static void note_group(void)
{
    struct weft_group_times times;

    weft_group_times(own.member.group, &times);
    own.steps[LISTEN].us = (double)times.opened_ns / 1e3;
    own.steps[NAMES].us = (double)(times.found_ns - times.opened_ns) / 1e3;
    own.steps[CONNECT].us = (double)(times.connected_ns - times.found_ns) / 1e3;
    own.steps[MEMBERS].us = (double)(times.met_ns - times.connected_ns) / 1e3;
    own.steps[TREE].us = (double)(times.made_ns - times.met_ns) / 1e3;
}

/* A context, where there is none, and a group in it. */
static int make(uint64_t turn, struct wf_status *status)
{
    double begun_us = rank_now_us();
    int result = own.member.context ? 0 : coll_open_context(own.options, &own.member, status);

    own.steps[CONTEXT].us = rank_now_us() - begun_us;
    if (result == 0)
        result = coll_make_group(own.options, &own.member, turn, status);
    if (result == 0)
        note_group();
    return result;
}

static int weft_gather(const double *numbers, int count, double *all, struct wf_status *status)
{
    struct weft_error err = {0};
    int result =
        weft_group_all_gather(own.member.group, numbers, all, (uint64_t)count, WEFT_FLOAT64, own.timeout_ms, &err);

    return result ? bench_weft_failed(status, &err, NULL) : 0;
}

/* Of all rails; negative: of one it is not known. */
static double rails_allow(void)
{
    struct weft_rail_info rails[BENCH_RAILS_MAX];
    int count = weft_context_rails(own.member.context, rails, BENCH_RAILS_MAX);
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
    double local = weft_group_local_rank(own.member.group), most = 0;
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

static int choose_gpu(const struct rank_asked *asked, struct wf_status *status)
{
    int gpu;
    bool shared;
    int result = coll_gpu_choose(&own.member, own.timeout_ms, &gpu, &shared, status);

    own.backend->memory = coll_gpu_memory();
    if (result || !asked->overlap.layers)
        return result;
    own.backend->multiply = coll_multiply;
    result = coll_multiply_open(gpu, status);
    own.backend->multiplier = coll_multiply_how();
    return result;
}

static int weft_open(const struct rank_asked *asked, uint32_t *rank, uint32_t *ranks, struct wf_status *status)
{
    own.timeout_ms = (int)asked->timeout_s * 1000;
    int result = own.on_gpu ? coll_gpu_find(own.options, status) : 0;
    if (result == 0)
        result = make(0, status);
    if (result)
        return result;
    *rank = weft_group_rank(own.member.group);
    *ranks = weft_group_size(own.member.group);
    if (own.on_gpu)
        result = choose_gpu(asked, status);
    return result ? result : note_line(*ranks, status);
}

static const char *const renewals[] = {"group", "context and group", NULL};

static int weft_renew(const struct rank_asked *asked, int which, uint64_t turn, struct wf_status *status)
{
    double begun_us = rank_now_us();

    (void)asked;
    if (which == 0)
        coll_drop_group(&own.member);
    else
        coll_leave(&own.member);
    own.steps[CLOSE].us = rank_now_us() - begun_us;
    return make(turn, status);
}

static const struct rank_step *weft_steps(void)
{
    return own.steps;
}

static void put_text(FILE *out, const char *text)
{
    json_t *string = bench_heard_string(text);

    json_dumpf(string, out, JSON_ENCODE_ANY);
    json_decref(string);
}

static void weft_facts(FILE *out)
{
    char table[2048] = "";

    weft_group_algorithms(table, sizeof table);
    fprintf(out, "\"library\": \"Weft %s\", \"ranks_by\": ", weft_version());
    put_text(out, weft_group_source(own.member.group));
    fprintf(out, ", \"rails\": ");
    put_text(out, weft_config_get(own.member.settings, "rails"));
    fprintf(out, ", \"algorithms\": ");
    for (char *at = table; *at; at++)
        *at = *at == '\n' ? ';' : *at;
    put_text(out, table);
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
    struct weft_group *group = own.member.group;
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
    int result = weft_group_barrier(own.member.group, own.timeout_ms, &err);

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

    if (weft_group_connection(own.member.group, with, own.timeout_ms, &connection, &err) != 0)
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
    coll_leave(&own.member);
}

static void on_gpu(struct rank_backend *backend)
{
    own.on_gpu = true;
    own.backend = backend;
    backend->take = coll_gpu_take;
    backend->give = coll_gpu_give;
    backend->copy = coll_gpu_copy;
}

int coll_member(const struct bench_options *options, const struct rank_asked *asked)
{
    static struct rank_backend backend = {
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
        .renewals = renewals,
        .renew = weft_renew,
        .steps = weft_steps,
    };

    struct rank_asked read;
    struct wf_status status = {0};

    own.options = options;
    if (!asked && coll_plan_asked(&read, options, &status) != 0)
        return coll_refused(&status);
    bool nccl = options->collective.backends && strcmp(options->collective.backends, "nccl") == 0;
    if (nccl && coll_own_default(options, WF_SET_MEMORY, "cuda", &status) != 0)
        return coll_refused(&status);
    if (nccl || coll_on_gpu(options))
        on_gpu(&backend);
    if (nccl)
        coll_nccl_over(&backend, &own.member, options);
    return rank_run(&backend, asked ? asked : &read);
}

_Static_assert((int)WEFT_FLOAT64 == (int)RANK_FLOAT64 && (int)WEFT_FLOAT32 == (int)RANK_FLOAT32 &&
                   (int)WEFT_FLOAT16 == (int)RANK_FLOAT16 && (int)WEFT_BFLOAT16 == (int)RANK_BFLOAT16 &&
                   (int)WEFT_INT32 == (int)RANK_INT32 && (int)WEFT_INT64 == (int)RANK_INT64 &&
                   (int)WEFT_UINT8 == (int)RANK_UINT8,
               "the types have the library's numbers");
_Static_assert((int)WEFT_SUM == (int)RANK_SUM && (int)WEFT_MIN == (int)RANK_MIN && (int)WEFT_MAX == (int)RANK_MAX &&
                   (int)WEFT_AVG == (int)RANK_AVG,
               "and the reductions, too");
