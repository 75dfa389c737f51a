#include "plan.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/nodes/link.h"
#include "bench/plan/schedule.h"
#include "bench/result/files.h"
#include "bench/words/folder.h"
#include "bench/words/words.h"

#define LOCAL_RAILS "127.0.0.1"
#define SELF_TEST_MS 5
#define SELF_TEST_SIZES "1K,256K"
#define SET_UP_SIZE "64K"
#define SET_UP_ITERS "20"
#define TIMEOUT_LEAST_S 60 /* for one operation: an MPI that does not yield takes its time */

/* --- what is asked of a rank --- */

/* Calls `add` for each word of a list. */
static int each_word(const char *option, const char *list, struct wf_status *status, void *context,
                     int (*add)(void *context, const char *option, const char *word, struct wf_status *status))
{
    char copy[1024], *rest = copy, *word;
    int result = 0, count = 0;

    if (strlen(list) >= sizeof copy)
        return wf_fail(status, -EINVAL, "--%s %.40s...: the list is too long", option, list);
    bench_copy_text(copy, sizeof copy, list);
    for (; result == 0 && (word = bench_next_word(&rest, ',')) != NULL; count++)
        result = add(context, option, word, status);
    return result || count ? result : wf_fail(status, -EINVAL, "--%s needs a value", option);
}

static int add_op(void *context, const char *option, const char *word, struct wf_status *status)
{
    struct rank_asked *asked = context;
    int op = rank_op_find(word);

    if (op < 0)
        return wf_fail(status, -EINVAL,
                       "--%s '%.40s' is none of all_reduce, all_gather, reduce_scatter, broadcast, alltoall, sendrecv "
                       "and all",
                       option, word);
    for (int i = 0; i < asked->op_count; i++)
        if ((int)asked->ops[i] == op)
            return wf_fail(status, -EINVAL, "--%s names %s twice", option, word);
    asked->ops[asked->op_count++] = (enum bench_collective)op;
    return 0;
}

static int read_ops(struct rank_asked *asked, const char *list, struct wf_status *status)
{
    static const enum bench_collective all[RANK_OPS] = {BENCH_ALL_REDUCE, BENCH_ALL_GATHER, BENCH_REDUCE_SCATTER,
                                                        BENCH_BROADCAST,  BENCH_ALL_TO_ALL, BENCH_SEND_RECEIVE};

    if (strcmp(list, "all") != 0)
        return each_word("op", list, status, asked, add_op);
    memcpy(asked->ops, all, sizeof all);
    asked->op_count = RANK_OPS;
    return 0;
}

static int read_type(struct rank_asked *asked, const char *type, const char *redop, struct wf_status *status)
{
    int found = rank_type_find(type), reduced = rank_redop_find(redop);

    if (found < 0)
        return wf_fail(status, -EINVAL,
                       "--datatype '%.40s' is none of float64, float32, float16, bfloat16, int32, int64, uint8", type);
    if (reduced < 0)
        return wf_fail(status, -EINVAL, "--redop '%.40s' is none of sum, min, max, avg", redop);
    asked->type = (enum rank_type)found;
    asked->redop = (enum rank_redop)reduced;
    return 0;
}

static int read_place(struct rank_asked *asked, const char *place, struct wf_status *status)
{
    asked->in_place = strcmp(place, "out") != 0;
    asked->out_of_place = strcmp(place, "in") != 0;
    if (strcmp(place, "in") != 0 && strcmp(place, "out") != 0 && strcmp(place, "both") != 0)
        return wf_fail(status, -EINVAL, "--place '%.40s' is none of both, out, in", place);
    return 0;
}

static int read_sizes(struct rank_asked *asked, const struct wf_config *config, struct wf_status *status)
{
    struct bench_plan *plan = calloc(1, sizeof *plan);
    int result = plan ? bench_plan_sizes(plan, config, status) : wf_fail(status, -ENOMEM, "no memory for a plan");

    if (result == 0 && plan->size_count > RANK_SIZES_MAX)
        result = wf_fail(status, -EINVAL, "more than %d sizes: raise --factor", RANK_SIZES_MAX);
    for (int i = 0; result == 0 && i < plan->size_count; i++)
        asked->sizes[asked->size_count++] = plan->sizes[i];
    free(plan);
    return result;
}

static int read_numbers(struct rank_asked *asked, const struct bench_options *options, struct wf_status *status)
{
    const struct wf_config *config = options->config;
    const char *check = wf_config_text(config, WF_SET_CHECK);
    int64_t duration_ms = wf_config_number(config, WF_SET_DURATION) * 1000;
    int samples = asked->op_count * asked->size_count * (asked->in_place + asked->out_of_place);

    if (strcmp(check, "all") == 0)
        return wf_fail(status, -EINVAL,
                       "--check all: a result in place is what the next iteration begins with: use 0 or 1");
    asked->check = strcmp(check, "0") != 0;
    asked->iters = (uint64_t)wf_config_number(config, WF_SET_ITERS);
    asked->warmup = (uint64_t)wf_config_number(config, WF_SET_WARMUP);
    asked->share_ms = (uint64_t)(duration_ms / samples) + 1;
    if (options->collective.self_test && !bench_is_said(config, WF_SET_DURATION))
        asked->share_ms = SELF_TEST_MS;
    asked->timeout_s = coll_timeout_s(config);
    return 0;
}

uint64_t coll_timeout_s(const struct wf_config *config)
{
    uint64_t said = (uint64_t)wf_config_number(config, WF_SET_TIMEOUT);

    return said < TIMEOUT_LEAST_S && bench_is_default(config, WF_SET_TIMEOUT) ? TIMEOUT_LEAST_S : said;
}

int coll_own_default(const struct bench_options *options, enum wf_setting_id id, const char *text,
                     struct wf_status *status)
{
    char origin[64];

    if (!bench_is_default(options->config, id))
        return 0;
    snprintf(origin, sizeof origin, "default of weft %s", bench_command_name(options->command));
    return wf_config_set(options->config, id, text, WF_ORIGIN_DEFAULT, origin, status);
}

/* What weft setup-cost asks of its ranks: one operation of one size, again and again. */
static int ask_set_up(struct rank_asked *asked, const struct bench_options *options, struct wf_status *status)
{
    *asked = (struct rank_asked){.op_count = 1,
                                 .ops = {BENCH_ALL_REDUCE},
                                 .type = RANK_FLOAT32,
                                 .redop = RANK_SUM,
                                 .in_place = true,
                                 .timeout_s = coll_timeout_s(options->config)};
    int result = coll_own_default(options, WF_SET_ROUNDS, "1", status);
    if (result == 0)
        result = coll_own_default(options, WF_SET_SIZE, SET_UP_SIZE, status);
    if (result == 0)
        result = coll_own_default(options, WF_SET_ITERS, SET_UP_ITERS, status);
    if (result == 0)
        result = read_sizes(asked, options->config, status);
    if (result == 0 && asked->size_count > 1)
        result = wf_fail(status, -EINVAL, "--size: weft setup-cost takes one");
    if (result == 0 && (asked->sizes[0] == 0 || asked->sizes[0] % sizeof(float)))
        result =
            wf_fail(status, -EINVAL, "--size %llu: the elements are float32: use a multiple of 4 bytes, at least 4",
                    (unsigned long long)asked->sizes[0]);
    asked->renew = (uint64_t)wf_config_number(options->config, WF_SET_ITERS);
    return result == 0 && asked->renew == 0 ? wf_fail(status, -EINVAL, "--iters: a number from 1 up") : result;
}

int coll_plan_asked(struct rank_asked *asked, const struct bench_options *options, struct wf_status *status)
{
    const struct bench_collective_words *words = &options->collective;
    bool test = words->self_test;

    if (options->command == BENCH_SETUP_COST)
        return ask_set_up(asked, options, status);
    memset(asked, 0, sizeof *asked);
    int result = coll_own_default(options, WF_SET_WARMUP, "1", status);
    if (result == 0)
        result = coll_own_default(options, WF_SET_ROUNDS, "1", status);
    if (result == 0)
        result = read_ops(asked, words->ops ? words->ops : test ? "all" : "all_reduce", status);
    if (result == 0)
        result = read_type(asked, words->type ? words->type : "float32", words->redop ? words->redop : "sum", status);
    if (result == 0)
        result = read_place(asked, words->place ? words->place : test ? "in" : "both", status);
    if (result == 0 && test)
        result = coll_own_default(options, WF_SET_SIZE, SELF_TEST_SIZES, status);
    if (result == 0)
        result = read_sizes(asked, options->config, status);
    return result ? result : read_numbers(asked, options, status);
}

/* --- the rest of the plan --- */

static int add_backend(void *context, const char *option, const char *word, struct wf_status *status)
{
    struct coll_plan *plan = context;
    const struct coll_backend *backend = coll_backend_find(word);

    if (strcmp(word, "mpi") == 0) {
        int result = add_backend(plan, option, "openmpi", status);
        return result ? result : add_backend(plan, option, "mpich", status);
    }
    if (!backend)
        return wf_fail(status, -EINVAL, "--%s '%.40s' is none of weft, nccl, openmpi, mpich, gloo and mpi", option,
                       word);
    for (int i = 0; i < plan->backend_count; i++)
        if (plan->backends[i] == backend)
            return wf_fail(status, -EINVAL, "--%s names %s twice", option, word);
    plan->backends[plan->backend_count++] = backend;
    return 0;
}

static int add_count(void *context, const char *option, const char *word, struct wf_status *status)
{
    struct coll_plan *plan = context;
    char *end;
    long number = strtol(word, &end, 10);

    if (word[0] < '0' || word[0] > '9' || *end || number < 2 || number > COLL_RANKS_MAX)
        return wf_fail(status, -EINVAL, "--%s '%.40s': expected numbers from 2 to %d, or found", option, word,
                       COLL_RANKS_MAX);
    if (plan->count_count == COLL_COUNTS_MAX)
        return wf_fail(status, -EINVAL, "--%s: more than %d numbers", option, COLL_COUNTS_MAX);
    plan->counts[plan->count_count++] = (uint32_t)number;
    return 0;
}

static int read_counts(struct coll_plan *plan, const char *list, struct wf_status *status)
{
    if (strcmp(list, "found") != 0)
        return each_word("processes", list, status, plan, add_count);
    if (plan->host_count)
        return wf_fail(status, -EINVAL, "--processes found and --hosts exclude each other: name one");
    plan->found = true;
    plan->counts[plan->count_count++] = 0; /* how many there are, they know */
    return 0;
}

static int add_host(void *context, const char *option, const char *word, struct wf_status *status)
{
    struct coll_plan *plan = context;
    size_t used = 0;

    for (uint32_t i = 0; i < plan->host_count; i++)
        used += strlen(plan->hosts + used) + 1;
    if (word[0] == '-' || !word[0] || used + strlen(word) + 2 > sizeof plan->hosts)
        return wf_fail(status, -EINVAL, "--%s '%.40s': no name of a host, or too many", option, word);
    bench_copy_text(plan->hosts + used, sizeof plan->hosts - used, word);
    plan->host_count++;
    return 0;
}

static int read_words(struct coll_plan *plan, struct wf_status *status)
{
    const struct bench_collective_words *words = &plan->options->collective;
    const char *backends = words->backends ? words->backends : words->self_test ? "weft,nccl,mpi,gloo" : "weft";
    uint32_t usual = plan->options->command == BENCH_STRAGGLER ? 4 : 2;
    char some[32];
    int result = each_word("backend", backends, status, plan, add_backend);

    if (result == 0 && words->hosts)
        result = each_word("hosts", words->hosts, status, plan, add_host);
    snprintf(some, sizeof some, "%u", plan->host_count > usual ? plan->host_count : usual);
    if (result == 0)
        result = read_counts(plan, words->processes ? words->processes : some, status);
    if (result == 0 && words->rsh && !words->hosts)
        result = wf_fail(status, -EINVAL, "--rsh starts ranks on --hosts: name some");
    plan->rsh = words->rsh ? words->rsh : "ssh";
    return result;
}

static int find_self(struct coll_plan *plan, struct wf_status *status)
{
    ssize_t length = readlink("/proc/self/exe", plan->self, sizeof plan->self - 1);

    if (length <= 0)
        return wf_fail(status, -errno, "/proc/self/exe: %s", wf_strerror(errno));
    plan->self[length] = '\0';
    bench_copy_text(plan->folder, sizeof plan->folder, plan->self);
    char *slash = strrchr(plan->folder, '/');
    if (slash)
        *slash = '\0';
    return 0;
}

/* One that nobody else has. */
static int make_meeting(struct coll_plan *plan, struct wf_status *status)
{
    const char *folder = wf_environment_value("TMPDIR");
    int length = snprintf(plan->meeting, sizeof plan->meeting, "%s/weft-collective.XXXXXX", folder ? folder : "/tmp");

    if (length >= (int)sizeof plan->meeting)
        return wf_fail(status, -ENAMETOOLONG, "TMPDIR %.40s...: the name is too long", folder);
    if (!mkdtemp(plan->meeting))
        return wf_fail(status, -errno, "%s: %s: name a folder by --meeting, or another by TMPDIR", plan->meeting,
                       wf_strerror(errno));
    plan->made_meeting = true;
    return 0;
}

static int find_meeting(struct coll_plan *plan, struct wf_status *status)
{
    const char *said = plan->options->collective.meeting;

    if (plan->found && !said)
        return 0; /* the launcher has one */
    if (said && strlen(said) >= sizeof plan->meeting)
        return wf_fail(status, -EINVAL, "--meeting %.40s...: the name is too long", said);
    if (said) {
        bench_copy_text(plan->meeting, sizeof plan->meeting, said);
        return bench_make_folder(said, status);
    }
    return make_meeting(plan, status);
}

/* Which rank of a launcher's writes them is not known before they have met. */
static int prepare_files(const struct coll_plan *plan, struct wf_status *status)
{
    const char *profile = plan->options->collective.profile;
    bool made = false;
    int result = plan->found ? 0 : bench_files_prepare(plan->options, NULL, &made, status);

    return result == 0 && profile && !plan->found ? bench_make_folder(profile, status) : result;
}

int coll_plan_init(struct coll_plan *plan, const struct bench_options *options, const struct rank_asked *asked,
                   struct wf_status *status)
{
    memset(plan, 0, sizeof *plan);
    plan->options = options;
    plan->asked = *asked;
    plan->best = options->collective.best;
    plan->rounds = options->command == BENCH_COLLECTIVE ? (int)wf_config_number(options->config, WF_SET_ROUNDS) : 1;
    plan->limit_s = options->collective.self_test ? asked->timeout_s : 0; /* all of it, as long as one operation */
    int result = read_words(plan, status);
    if (result == 0 && plan->found && (plan->rounds > 1 || plan->best))
        result = wf_fail(status, -EINVAL, "--processes found meets once: no --best, and one of --rounds");
    if (result == 0)
        result = find_self(plan, status);
    if (result == 0)
        result = coll_plan_rails(plan, status);
    if (result == 0)
        result = prepare_files(plan, status);
    return result ? result : find_meeting(plan, status);
}

/* --- rails --- */

static bool listed(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = list; (at = strstr(at, name)) != NULL; at++)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

static void add_name(char *list, size_t room, const char *name)
{
    if (name[0] && !listed(list, name))
        snprintf(list + strlen(list), room - strlen(list), "%s%s", list[0] ? "," : "", name);
}

/* A context knows which interface an address is of. */
static int ask_library(struct coll_plan *plan, struct wf_status *status)
{
    struct weft_config *settings = NULL;
    struct weft_context *context = NULL;
    struct weft_rail_info rails[BENCH_RAILS_MAX];
    int result = bench_library_settings(plan->options->config, &settings, status);

    if (result == 0)
        result = bench_context_create(plan->options->config, settings, &context, status);
    int count = result == 0 ? weft_context_rails(context, rails, BENCH_RAILS_MAX) : 0;
    for (int i = 0; i < count && i < BENCH_RAILS_MAX; i++)
        add_name(plan->interfaces, sizeof plan->interfaces, rails[i].interface);
    weft_context_destroy(context);
    weft_config_destroy(settings);
    return result;
}

int coll_plan_rails(struct coll_plan *plan, struct wf_status *status)
{
    struct wf_config *config = plan->options->config;
    const char *said = wf_config_text(config, WF_SET_RAILS);
    bool here = !plan->found && !plan->host_count;

    if (strlen(said) >= sizeof plan->rails)
        return wf_fail(status, -EINVAL, "--rails %.40s...: the list is too long", said);
    if (!said[0] && here) {
        int result = coll_own_default(plan->options, WF_SET_RAILS, LOCAL_RAILS, status);
        if (result)
            return result;
        said = LOCAL_RAILS;
    }
    bench_copy_text(plan->rails, sizeof plan->rails, said);
    if (plan->host_count) { /* names of interfaces, which are the same at all hosts */
        bench_copy_text(plan->interfaces, sizeof plan->interfaces, said);
        return 0;
    }
    return ask_library(plan, status);
}

/* --- the end --- */

static int remove_one(const char *path, const struct stat *what, int kind, struct FTW *place)
{
    (void)what;
    (void)kind;
    (void)place;
    return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

void coll_remove_folder(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void coll_plan_fini(struct coll_plan *plan)
{
    if (plan->made_meeting)
        coll_remove_folder(plan->meeting);
    plan->made_meeting = false;
}
