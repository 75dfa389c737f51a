/* The table of backends, and how each is started. A further one (NCCLX, say) is a program of rank.h and a row here. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/machine/gpus.h"
#include "bench/words/words.h"
#include "plan.h"

static const struct coll_way weft_ways[] = {{"as installed", false, {NULL}}};

#define OPENMPI_RULES "OMPI_MCA_coll_tuned_use_dynamic_rules=1"
#define OPENMPI_YIELD "OMPI_MCA_mpi_yield_when_idle=1"
#define OPENMPI_ALGORITHM(number) "OMPI_MCA_coll_tuned_allreduce_algorithm=" #number

static const struct coll_way openmpi_ways[] = {
    {"as installed", false, {NULL}},
    {"yielding", false, {OPENMPI_YIELD}},
    {"yielding + recursive doubling", false, {OPENMPI_YIELD, OPENMPI_RULES, OPENMPI_ALGORITHM(3)}},
    {"yielding + ring", false, {OPENMPI_YIELD, OPENMPI_RULES, OPENMPI_ALGORITHM(4)}},
    {"yielding + segmented ring", false, {OPENMPI_YIELD, OPENMPI_RULES, OPENMPI_ALGORITHM(5)}},
    {"yielding + Rabenseifner", false, {OPENMPI_YIELD, OPENMPI_RULES, OPENMPI_ALGORITHM(6)}},
    {"shared memory", true, {OPENMPI_YIELD}},
};

#define MPICH_YIELD "MPIR_CVAR_POLLS_BEFORE_YIELD=1"
#define MPICH_ALGORITHM(name) "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM=" name

static const struct coll_way mpich_ways[] = {
    {"as installed", false, {NULL}},
    {"yielding", false, {MPICH_YIELD}},
    {"yielding + recursive doubling", false, {MPICH_YIELD, MPICH_ALGORITHM("recursive_doubling")}},
    {"yielding + reduce-scatter and all-gather", false, {MPICH_YIELD, MPICH_ALGORITHM("reduce_scatter_allgather")}},
    {"shared memory", true, {MPICH_YIELD}},
};

static const struct coll_way gloo_ways[] = {
    {"ring", false, {"algorithm=ring"}},
    {"bcube", false, {"algorithm=bcube"}},
    {"chunked ring", false, {"algorithm=ring_chunked"}},
    {"halving and doubling", false, {"algorithm=halving_doubling"}},
};

#define WAYS(list) list, (int)(sizeof list / sizeof list[0])

static const struct coll_backend all[COLL_BACKENDS] = {
    {"weft", NULL, NULL, COLL_BY_US, WAYS(weft_ways), NULL},
    {"nccl", NULL, NULL, COLL_BY_US, WAYS(weft_ways), NULL},
    {"openmpi", "weft-coll-openmpi", "libopenmpi-dev", COLL_BY_OPENMPI, WAYS(openmpi_ways), NULL},
    {"mpich", "weft-coll-mpich", "libmpich-dev", COLL_BY_MPICH, WAYS(mpich_ways), NULL},
    {"gloo", "weft-coll-gloo", "libgloo-dev and a C++ compiler", COLL_BY_US, WAYS(gloo_ways),
     "Gloo copies through host memory and few streams: is NCCL or Weft meant?"},
};

const struct coll_backend *coll_backend_find(const char *name)
{
    for (int i = 0; i < COLL_BACKENDS; i++)
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    return NULL;
}

bool coll_is_weft(const struct coll_backend *backend)
{
    return backend == &all[0];
}

static bool is_nccl(const struct coll_backend *backend)
{
    return backend == &all[1];
}

int coll_way_count(const struct coll_plan *plan, const struct coll_backend *backend)
{
    return plan->best ? backend->way_count : 1;
}

/* --- whether it is here --- */

static bool program_path(const struct coll_plan *plan, const struct coll_backend *backend, char path[PATH_MAX])
{
    if (!backend->program)
        bench_copy_text(path, PATH_MAX, plan->self);
    else
        snprintf(path, PATH_MAX, "%s/%s", plan->folder, backend->program);
    return access(path, X_OK) == 0;
}

/* Debian has each MPI's launcher under its own name. */
static const char *launcher(const struct coll_backend *backend)
{
    return backend->starter == COLL_BY_OPENMPI ? "mpirun.openmpi" : "mpiexec.mpich";
}

bool coll_on_gpu(const struct bench_options *options)
{
    bool either = options->command == BENCH_COLLECTIVE || options->command == BENCH_OVERLAP;

    return either && strcmp(wf_config_text(options->config, WF_SET_MEMORY), "cuda") == 0;
}

/* Why this machine has no GPU memory; "": it has. Loading the driver takes time: it is asked once. */
static const char *no_gpu(void)
{
    static struct weft_gpu_info gpus[BENCH_GPUS_MAX];
    static char why[200];
    static bool asked;
    struct wf_status status = {0};
    enum bench_memory kind;

    if (!asked && bench_gpus_find(gpus, BENCH_GPUS_MAX, &kind, &status) <= 0)
        snprintf(why, sizeof why, "no GPU memory here: %.160s", status.text);
    asked = true;
    return why;
}

/* The kind of memory. Whether other hosts have a GPU, their ranks say. */
static void lacks_memory(const struct coll_plan *plan, const struct coll_backend *backend, char why[200])
{
    const struct bench_options *options = plan->options;
    bool on_gpu = is_nccl(backend) || coll_on_gpu(options);

    if (is_nccl(backend) && options->command == BENCH_OVERLAP && !coll_on_gpu(options))
        snprintf(why, 200, "it works on GPU memory: add --memory cuda");
    else if (is_nccl(backend) && strcmp(wf_config_text(options->config, WF_SET_MEMORY), "host") == 0)
        snprintf(why, 200, "it works on GPU memory: leave out --memory host");
    else if (on_gpu && backend->program)
        snprintf(why, 200, "it is measured in host memory only: leave out --memory cuda");
    else if (on_gpu && plan->host_count == 0)
        bench_copy_text(why, 200, no_gpu());
}

void coll_lacks(const struct coll_plan *plan, const struct coll_backend *backend, uint32_t ranks, char why[200])
{
    char path[PATH_MAX];

    why[0] = '\0';
    lacks_memory(plan, backend, why);
    if (why[0])
        return;
    if (!program_path(plan, backend, path))
        snprintf(why, 200, "%s was not built: it needs %s", backend->program, backend->package);
    else if (plan->found && backend->starter != COLL_BY_US)
        snprintf(why, 200, "with found ranks, an MPI would need its own launcher: use --processes N or --hosts");
    else if (plan->found && backend->program && !plan->options->collective.meeting)
        snprintf(why, 200, "with found ranks it meets in a folder that all share: name one by --meeting");
    else if (backend->program && !plan->interfaces[0])
        snprintf(why, 200, "it has to know the interfaces: name them by --rails");
    else if (ranks > COLL_RANKS_MAX)
        snprintf(why, 200, "more than %d ranks", COLL_RANKS_MAX);
}

/* --- commands --- */

static void put_overlap(const struct rank_asked *asked, struct peer_command *out)
{
    const struct rank_overlap *overlap = &asked->overlap;
    char list[RANK_SIZES_MAX * 8] = "";

    peer_word(out, "--layers");
    peer_word(out, "%u", overlap->layers);
    peer_word(out, "--layer-mb");
    peer_word(out, "%llu", (unsigned long long)overlap->layer_bytes >> 20);
    if (overlap->batch) {
        peer_word(out, "--batch");
        peer_word(out, "%u", overlap->batch);
    }
    for (int i = 0; i < asked->size_count; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%llu", i ? "," : "",
                 (unsigned long long)asked->sizes[i] >> 20);
    peer_word(out, "--bucket-mb");
    peer_word(out, "%s", list);
    list[0] = '\0';
    for (int i = 0; i < overlap->style_count; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? "," : "",
                 rank_style_name(overlap->styles[i]));
    peer_word(out, "--style");
    peer_word(out, "%s", list);
}

static void put_collectives(const struct rank_asked *asked, struct peer_command *out)
{
    char list[RANK_SIZES_MAX * 16] = "";

    peer_word(out, "--op");
    for (int i = 0; i < asked->op_count; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? "," : "", rank_op_name(asked->ops[i]));
    peer_word(out, "%s", list);
    list[0] = '\0';
    for (int i = 0; i < asked->size_count; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%llu", i ? "," : "",
                 (unsigned long long)asked->sizes[i]);
    peer_word(out, "--size");
    peer_word(out, "%s", list);
    peer_word(out, "-d");
    peer_word(out, "%s", rank_type_name(asked->type));
    peer_word(out, "-o");
    peer_word(out, "%s", rank_redop_name(asked->redop));
    if (asked->renew) {
        peer_word(out, "--renew");
        peer_word(out, "%llu", (unsigned long long)asked->renew);
    }
    peer_word(out, "--place");
    peer_word(out, "%s", asked->in_place && asked->out_of_place ? "both" : asked->in_place ? "in" : "out");
}

/* What is asked of a rank, as its options. */
static void put_asked(const struct rank_asked *asked, struct peer_command *out)
{
    if (asked->overlap.layers)
        put_overlap(asked, out);
    else
        put_collectives(asked, out);
    peer_word(out, "-n");
    peer_word(out, "%llu", (unsigned long long)asked->iters);
    peer_word(out, "-w");
    peer_word(out, "%llu", (unsigned long long)asked->warmup);
    peer_word(out, "-c");
    peer_word(out, "%d", asked->check);
}

static void put_share(const struct rank_asked *asked, struct peer_command *out)
{
    peer_word(out, "--share-ms");
    peer_word(out, "%llu", (unsigned long long)asked->share_ms);
    peer_word(out, "--timeout");
    peer_word(out, "%llu", (unsigned long long)asked->timeout_s);
}

/* Settings that are not the library's default, as they are in force here. */
static void put_settings(const struct coll_plan *plan, struct peer_command *out)
{
    const struct wf_config *config = plan->options->config;

    for (int i = 0; i < WF_SETTING_COUNT; i++)
        if (wf_setting(i)->group == WF_GROUP_LIBRARY && i != WF_SET_RAILS && !bench_is_default(config, i)) {
            peer_word(out, bench_is_said(config, i) ? "--set" : "--preset");
            peer_word(out, "%s=%s", wf_setting(i)->name, wf_config_text(config, i));
        }
    if (plan->rails[0]) {
        peer_word(out, "--rails");
        peer_word(out, "%s", plan->rails);
    }
}

/* What of the benchmark's settings a rank of ours has to know: where its memory is. */
static void put_memory(const struct coll_plan *plan, const struct coll_run *run, struct peer_command *out)
{
    const struct wf_config *config = plan->options->config;

    if (is_nccl(run->backend)) {
        peer_word(out, "--backend");
        peer_word(out, "nccl");
    }
    if (coll_on_gpu(plan->options)) {
        peer_word(out, "--memory");
        peer_word(out, "cuda");
    }
    if (is_nccl(run->backend) && !bench_is_default(config, WF_SET_NCCL_LIBRARY)) {
        peer_word(out, "--nccl-library");
        peer_word(out, "%s", wf_config_text(config, WF_SET_NCCL_LIBRARY));
    }
}

static void put_weft(const struct coll_plan *plan, const struct coll_run *run, uint32_t rank, struct peer_command *out)
{
    peer_word(out, "%s", plan->self);
    peer_word(out, "%s", bench_command_name(plan->options->command));
    peer_word(out, "--member");
    if (plan->found && plan->meeting[0])
        peer_word(out, "found/%s/weft", plan->meeting);
    else if (plan->found)
        peer_word(out, "found");
    else
        peer_word(out, "%u/%u/%s/weft.%u", rank, run->ranks, plan->meeting, run->number);
    for (int i = 0; run->words && run->words[i]; i++)
        peer_word(out, "%s", run->words[i]);
    if (!run->words)
        put_asked(run->asked, out);
    put_memory(plan, run, out);
    if (!run->words && plan->options->command != BENCH_OVERLAP) {
        peer_word(out, "--duration");
        peer_word(out, "%s", wf_config_text(plan->options->config, WF_SET_DURATION));
    }
    put_settings(plan, out);
}

static void put_gloo(const struct coll_plan *plan, const struct coll_run *run, uint32_t rank, struct peer_command *out)
{
    if (!plan->found) {
        peer_setting(out, "RANK=%u", rank);
        peer_setting(out, "WORLD_SIZE=%u", run->ranks);
    }
    peer_word(out, "%s/%s", plan->folder, run->backend->program);
    put_asked(run->asked, out);
    put_share(run->asked, out);
    peer_word(out, "--with");
    peer_word(out, "store=%s/gloo.%u", plan->meeting, run->number);
    peer_word(out, "--with");
    peer_word(out, "devices=%s", plan->rails[0] ? plan->rails : plan->interfaces);
    for (int i = 0; i < COLL_WAY_SETTINGS && run->way->settings[i]; i++) {
        peer_word(out, "--with");
        peer_word(out, "%s", run->way->settings[i]);
    }
}

/* So many ranks are at a host: the first ones at the first host, as an MPI places them. */
static uint32_t ranks_at(const struct coll_plan *plan, uint32_t ranks, uint32_t host)
{
    return (ranks - host + plan->host_count - 1) / plan->host_count;
}

/* "n0:1,n1:1" */
static void host_list(const struct coll_plan *plan, uint32_t ranks, char *list, size_t room)
{
    const char *host = plan->hosts;

    list[0] = '\0';
    for (uint32_t i = 0; i < plan->host_count && i < ranks; i++, host += strlen(host) + 1)
        snprintf(list + strlen(list), room - strlen(list), "%s%s:%u", i ? "," : "", host, ranks_at(plan, ranks, i));
}

static void put_mpi_settings(const struct coll_plan *plan, const struct coll_run *run, struct peer_command *out)
{
    bool openmpi = run->backend->starter == COLL_BY_OPENMPI;

    for (int i = 0; i < COLL_WAY_SETTINGS && run->way->settings[i]; i++)
        peer_setting(out, "%s", run->way->settings[i]);
    if (run->way->aside)
        return;
    if (openmpi) {
        peer_setting(out, "OMPI_MCA_pml=ob1");
        peer_setting(out, "OMPI_MCA_btl=tcp,self");
        peer_setting(out, "OMPI_MCA_btl_tcp_if_include=%s", plan->interfaces);
    } else {
        peer_setting(out, "UCX_TLS=tcp,self");
        peer_setting(out, "UCX_NET_DEVICES=%s", plan->interfaces);
        peer_setting(out, "MPIR_CVAR_NOLOCAL=1");
    }
}

static void put_openmpi(const struct coll_plan *plan, const struct coll_run *run, struct peer_command *out)
{
    char hosts[COLL_NAMES + 512];

    peer_setting(out, "OMPI_ALLOW_RUN_AS_ROOT=1");
    peer_setting(out, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
    if (plan->host_count)
        peer_setting(out, "OMPI_MCA_plm_rsh_agent=%s", plan->rsh);
    else
        peer_setting(out, "OMPI_MCA_plm=isolated");
    peer_word(out, "%s", launcher(run->backend));
    peer_word(out, "-n");
    peer_word(out, "%u", run->ranks);
    peer_word(out, "--bind-to");
    peer_word(out, "none");
    host_list(plan, run->ranks, hosts, sizeof hosts);
    peer_word(out, plan->host_count ? "--host" : "--oversubscribe");
    if (plan->host_count)
        peer_word(out, "%s", hosts);
}

static void put_mpich(const struct coll_plan *plan, const struct coll_run *run, struct peer_command *out)
{
    char hosts[COLL_NAMES + 512];

    peer_word(out, "%s", launcher(run->backend));
    if (plan->host_count) {
        host_list(plan, run->ranks, hosts, sizeof hosts);
        peer_word(out, "-launcher");
        peer_word(out, "ssh");
        peer_word(out, "-launcher-exec");
        peer_word(out, "%s", plan->rsh);
        peer_word(out, "-hosts");
        peer_word(out, "%s", hosts);
    }
    peer_word(out, "-n");
    peer_word(out, "%u", run->ranks);
}

/* The settings stand in the environment of the launcher, which passes them on: Open MPI those of its own. */
static int put_mpi(const struct coll_plan *plan, const struct coll_run *run, struct peer_command *out)
{
    put_mpi_settings(plan, run, out);
    if (run->backend->starter == COLL_BY_OPENMPI)
        put_openmpi(plan, run, out);
    else
        put_mpich(plan, run, out);
    peer_word(out, "%s/%s", plan->folder, run->backend->program);
    put_asked(run->asked, out);
    put_share(run->asked, out);
    return out->used >= sizeof out->text ? -ENOBUFS : 0;
}

/* As ssh wants it: one word for a shell at the host. */
static int put_remote(const struct coll_plan *plan, uint32_t ranks, uint32_t rank, struct peer_command *out)
{
    char text[sizeof out->text];
    const char *host = plan->hosts;

    peer_command_text(out, text, sizeof text);
    for (uint32_t i = 0; rank >= ranks_at(plan, ranks, i); i++, host += strlen(host) + 1)
        rank -= ranks_at(plan, ranks, i);
    memset(out, 0, sizeof *out);
    peer_word(out, "%s", plan->rsh);
    peer_word(out, "%s", host);
    peer_word(out, "env %s", text);
    return out->used >= sizeof out->text ? -ENOBUFS : 0;
}

uint32_t coll_program_count(const struct coll_plan *plan, const struct coll_run *run)
{
    return run->backend->starter == COLL_BY_US && !plan->found ? run->ranks : 1;
}

int coll_command(const struct coll_plan *plan, const struct coll_run *run, uint32_t index, struct peer_command *out)
{
    if (run->backend->starter != COLL_BY_US)
        return put_mpi(plan, run, out);
    if (run->backend->program)
        put_gloo(plan, run, index, out);
    else
        put_weft(plan, run, index, out);
    if (plan->host_count && out->used < sizeof out->text)
        return put_remote(plan, run->ranks, index, out);
    return out->used >= sizeof out->text ? -ENOBUFS : 0;
}
