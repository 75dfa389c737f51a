#include "nccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/backends/nccl/communicator.h"
#include "bench/backends/nccl/variables.h"
#include "bench/machine/mps.h"
#include "bench/nodes/link.h"
#include "bench/words/heard.h"
#include "gpu.h"

/* Of this process, which is one rank and then ends. */
static struct {
    struct rank_backend under; /* Weft's */
    const struct coll_membership *member;
    const struct bench_options *options;
    struct nccl_communicator *communicator;
    struct nccl_variables variables;
    bool shared; /* another rank has the same GPU */
    uint32_t rank, ranks;
    int timeout_ms;
} own;

/* Rank 0 makes the id, once its variables are set: it names an address of an interface. */
static int join(struct wf_status *status)
{
    unsigned char id[NCCL_COMMUNICATOR_ID_BYTES] = {0};
    struct weft_error err = {0};
    int result = own.rank == 0 ? nccl_communicator_id(own.communicator, id, status) : 0;

    if (result == 0 && weft_group_broadcast(own.member->group, id, id, sizeof id, WEFT_UINT8, 0, own.timeout_ms, &err))
        result = bench_weft_failed(status, &err, NULL);
    return result ? result : nccl_communicator_join(own.communicator, id, own.rank, own.ranks, own.timeout_ms, status);
}

/* NCCL refuses a GPU that two ranks of a host have: such ranks are on hosts of their own, as far as it knows. */
static int nccl_open(const struct rank_asked *asked, uint32_t *rank, uint32_t *ranks, struct wf_status *status)
{
    char host[32];
    int gpu;
    int result = own.under.open(asked, rank, ranks, status);

    if (result)
        return result;
    own.rank = *rank;
    own.ranks = *ranks;
    own.timeout_ms = (int)asked->timeout_s * 1000;
    result = coll_gpu_choose(own.member, own.timeout_ms, &gpu, &own.shared, status);
    snprintf(host, sizeof host, "weft-rank%u", own.rank);
    if (result == 0)
        result = nccl_variables_set(&own.variables, own.member->context, own.shared ? host : NULL, status);
    if (result == 0)
        result = nccl_communicator_open(wf_config_text(own.options->config, WF_SET_NCCL_LIBRARY), gpu,
                                        &own.communicator, status);
    return result ? result : join(status);
}

/* "NCCL_NET": "Socket (set by weft)" and so on. */
static char *variables_in_words(void)
{
    json_t *variables = nccl_variables_to_json(&own.variables), *words = json_object(), *of;
    const char *name;

    json_object_foreach(variables, name, of)
        json_object_set_new(words, name,
                            json_sprintf("%s (set by %s)", json_string_value(json_object_get(of, "value")),
                                         json_string_value(json_object_get(of, "set_by"))));
    char *text = json_dumps(words, JSON_COMPACT);
    json_decref(words);
    json_decref(variables);
    return text;
}

static void nccl_facts(FILE *out)
{
    json_t *path = bench_heard_string(nccl_communicator_path(own.communicator));
    char *variables = variables_in_words(), *file = json_dumps(path, JSON_ENCODE_ANY), folder[256];

    fprintf(out, "\"library\": \"NCCL %s\", \"file\": %s, \"shared_gpus\": \"%s\", \"mps\": \"%s\", \"variables\": %s",
            nccl_communicator_version(own.communicator), file ? file : "\"\"",
            own.shared ? "yes: hosts of their own to NCCL" : "no",
            bench_mps_name(bench_mps_look(folder, sizeof folder)), variables ? variables : "{}");
    free(variables);
    free(file);
    json_decref(path);
}

static int nccl_run(struct rank_call *call, struct wf_status *status)
{
    return nccl_communicator_run(own.communicator, call, own.timeout_ms, status);
}

static const char *const renewals[] = {"communicator", NULL};

static int nccl_renew(const struct rank_asked *asked, int which, uint64_t turn, struct wf_status *status)
{
    (void)asked, (void)which, (void)turn;
    nccl_communicator_leave(own.communicator);
    return join(status);
}

static void nccl_close(void)
{
    nccl_communicator_close(own.communicator);
    own.under.close();
}

void coll_nccl_over(struct rank_backend *backend, const struct coll_membership *member,
                    const struct bench_options *options)
{
    own.under = *backend;
    own.member = member;
    own.options = options;
    backend->name = "nccl";
    backend->open = nccl_open;
    backend->facts = nccl_facts;
    backend->lacks = nccl_communicator_lacks;
    backend->run = nccl_run;
    backend->close = nccl_close;
    backend->renewals = renewals;
    backend->renew = nccl_renew;
    backend->steps = NULL;
}
