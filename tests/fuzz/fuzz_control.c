/*
 * What one node of a measurement hears from the other over the control connection: JSON, one text for each line of an
 * input. The first byte says who hears it, and up to where:
 *
 *     0, 1   node0, node1 of weft mesh        2, 3   of weft pair        p   node1 of weft peers, and its servers
 *     q      node0 of that                    n, m   node0, node1 of the backend nccl
 *
 * Texts are what a peer wants them to be, but for the digest of the plan, which is the same here whatever the plan.
 * Everything else a node needs is played below: nothing is measured, so that all samples are the other node's.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "bench/run/agree.h"
#include "bench/backends/backend.h"
#include "bench/compare/far.h"
#include "bench/words/heard.h"
#include "bench/words/interrupt.h"
#include "bench/measure/bed.h"
#include "bench/backends/nccl/world.h"
#include "peers/question.h"
#include "bench/words/progress.h"
#include "bench/result/report.h"
#include "bench/result/csv.h"
#include "bench/result/json.h"
#include "bench/run/workload.h"

#define ENDPOINTS_MOST 16 /* more of them only take more time */

static const char *rest; /* what has not been heard yet */
static uint64_t texts_heard;

/* --- the other node --- */

static int64_t endpoints_of(const json_t *text)
{
    const json_t *set = json_object_get(json_object_get(text, "settings"), "endpoints");
    const char *value = json_string_value(json_object_get(set, "value"));
    int64_t endpoints = value ? strtoll(value, NULL, 10) : 0;
    return endpoints ? endpoints : json_integer_value(json_object_get(text, "endpoints"));
}

int bench_control_hear(struct bench_control *control, json_t **out, struct wf_status *status)
{
    (void)control;
    size_t length = strcspn(rest, "\n");
    if (!*rest)
        return wf_fail(status, -ECONNRESET, "the other node has gone");
    json_t *text = bench_heard(rest, length);
    rest += length + (rest[length] == '\n');
    if (!text)
        return wf_fail(status, -EPROTO, "this is no JSON of ours");
    texts_heard += 1;
    if (endpoints_of(text) > ENDPOINTS_MOST && endpoints_of(text) <= wf_setting(WF_SET_ENDPOINTS)->max) {
        json_decref(text);
        return wf_fail(status, -EPROTO, "so many take too long here");
    }
    *out = text;
    return 0;
}

int bench_control_say(struct bench_control *control, const json_t *text, struct wf_status *status)
{
    (void)control, (void)status;
    FUZZ_CHECK(json_is_object(text));
    return 0;
}

int bench_control_check(struct bench_control *control, struct wf_status *status)
{
    (void)control, (void)status;
    return 0;
}

int bench_control_create(struct weft_connection *connection, const struct weft_peer *peer, int node,
                         struct bench_control **out, struct wf_status *status)
{
    (void)connection, (void)peer, (void)node, (void)status;
    *out = (struct bench_control *)&rest;
    return 0;
}

void bench_control_abort(struct bench_control *control, const char *reason, int exit_status, int signal)
{
    (void)control, (void)reason, (void)exit_status, (void)signal;
}

void bench_control_expect_within(struct bench_control *control, int timeout_ms)
{
    (void)control, (void)timeout_ms;
}

void bench_control_destroy(struct bench_control *control)
{
    (void)control;
}

uint64_t bench_plan_digest(const struct bench_plan *plan)
{
    (void)plan;
    return 0;
}

/* --- this node --- */

const char *bench_command_name(enum bench_command command)
{
    return command == BENCH_PAIR ? "pair" : "mesh";
}

bool bench_quiet(const struct wf_config *config)
{
    (void)config;
    return true;
}

FILE *bench_people(const struct wf_config *config)
{
    (void)config;
    return stderr;
}

const char *bench_signal_name(int signal)
{
    (void)signal;
    return "a signal";
}

int bench_gpus_choose(struct bench_gpus *gpus, const struct bench_options *options, int node, struct wf_status *status)
{
    (void)options, (void)node, (void)status;
    memset(gpus, 0, sizeof *gpus);
    return 0;
}

json_t *bench_gpus_to_json(const struct bench_gpus *gpus, uint32_t endpoints)
{
    (void)gpus, (void)endpoints;
    return json_array();
}

char *bench_gpus_sharing(const struct bench_gpus *gpus, uint32_t endpoints, char *buffer, size_t room)
{
    (void)gpus, (void)endpoints, (void)room;
    buffer[0] = '\0';
    return buffer;
}

json_t *bench_placement_to_json(const struct bench_placement *placement, const struct weft_context *context)
{
    (void)placement, (void)context;
    return json_null();
}

int bench_link_open(struct bench_link *link, int node, const struct wf_config *config, const struct bench_gpus *gpus,
                    struct wf_status *status)
{
    (void)config, (void)gpus, (void)status;
    memset(link, 0, sizeof *link);
    link->node = node;
    return 0;
}

int bench_link_connect(struct bench_link *link, const char *address, struct wf_status *status)
{
    (void)link, (void)address, (void)status;
    return 0;
}

int bench_link_rails(const struct bench_link *link, struct weft_rail_stats *stats)
{
    (void)link, (void)stats;
    return 0;
}

void bench_link_close(struct bench_link *link)
{
    (void)link;
}

int bench_measure(struct bench_bed *bed, enum bench_mode mode, uint64_t size, uint32_t first, uint32_t count,
                  struct bench_result *result, struct bench_phase_sum *sum, struct wf_status *status)
{
    (void)bed, (void)mode, (void)size, (void)first, (void)count, (void)result, (void)sum, (void)status;
    return 0;
}

int bench_measure_latency(struct bench_bed *bed, uint64_t size, uint32_t pair, struct bench_result *result,
                          struct wf_status *status)
{
    (void)bed, (void)size, (void)pair, (void)result, (void)status;
    return 0;
}

static int open_nothing(struct bench_link *link, const struct bench_plan *plan, struct bench_backend **out,
                        struct wf_status *status)
{
    (void)link, (void)plan, (void)status;
    *out = (struct bench_backend *)&rest;
    return 0;
}

static void close_nothing(struct bench_backend *backend)
{
    (void)backend;
}

static const struct bench_backend_ops played[] = {
    {.name = "weft", .moves_data = true, .open = open_nothing, .close = close_nothing},
    {.name = "null", .open = open_nothing, .close = close_nothing}};
static const struct bench_backend_choice backends[] = {{"weft", &played[0]}, {"null", &played[1]}, {NULL, NULL}};

/* --- the library --- */

const char *weft_version(void)
{
    return "0";
}

const char *weft_context_engine(const struct weft_context *context)
{
    (void)context;
    return "epoll";
}

const char *weft_context_fallbacks(const struct weft_context *context)
{
    (void)context;
    return "";
}

int weft_context_rails(const struct weft_context *context, struct weft_rail_info *rails, int max)
{
    (void)context, (void)rails, (void)max;
    return 0;
}

int weft_context_faults(const struct weft_context *context, struct weft_fault_stats *stats)
{
    (void)context, (void)stats;
    return -ENOENT;
}

int weft_context_gpu_stats(const struct weft_context *context, struct weft_gpu_stats *stats, int max)
{
    (void)context, (void)stats, (void)max;
    return 0;
}

int weft_context_devmem_stats(const struct weft_context *context, struct weft_devmem_stats *stats, int max)
{
    (void)context, (void)stats, (void)max;
    return 0;
}

int weft_peer_rails(const struct weft_peer *peer, struct weft_rail_stats *stats, int max)
{
    (void)peer, (void)stats, (void)max;
    return 0;
}

static nccl_result make_id(nccl_id *id)
{
    memset(id, 7, sizeof *id);
    return NCCL_SUCCESS;
}

char *nccl_library_error(const struct nccl_library *library, nccl_result result, char *buffer, size_t room)
{
    (void)library, (void)result;
    snprintf(buffer, room, "?");
    return buffer;
}

/* --- what has to hold --- */

/* Nothing of it speaks to a terminal, and no line is anybody else's. */
static void check_text(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        FUZZ_CHECK((unsigned char)text[i] >= ' ' && text[i] != 0x7f);
    FUZZ_CHECK(!memmem(text, length, "\xc2\x9b", 2));
}

static void check(int rc, const struct wf_status *status)
{
    if (rc == 0)
        return;
    FUZZ_CHECK(rc == status->code && status->text[0]);
    check_text(status->text, strlen(status->text));
}

static void check_lines(char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\n')
            text[i] = ' ';
    check_text(text, length);
}

static void check_report(struct bench_result *result)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    FUZZ_CHECK(out);
    bench_report(result, out);
    fclose(out);
    check_lines(text, length);
    free(text);
}

/* A line for the names of columns, for each sample, and for the way it ended. */
static void check_table(const struct bench_result *result)
{
    struct wf_status status = {0};
    char path[64];
    int fd = memfd_create("csv", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    FUZZ_CHECK(bench_result_csv(result, path, &status) == 0);
    size_t length = (size_t)lseek(fd, 0, SEEK_END), lines = 0, commas = 0, columns = 0;
    char *text = malloc(length + 1);
    FUZZ_CHECK(text && pread(fd, text, length, 0) == (ssize_t)length);
    for (size_t i = 0; i < length; i++) {
        lines += text[i] == '\n';
        commas += text[i] == ',' && lines <= result->sample_count;
        columns += text[i] == ',' && lines == 0;
    }
    FUZZ_CHECK(commas == columns * (1 + result->sample_count));
    FUZZ_CHECK(lines == 1 + result->sample_count + (result->cut.by != BENCH_CUT_NOT));
    check_lines(text, length);
    free(text);
    close(fd);
}

/* --- who hears it --- */

struct run {
    struct wf_config config;
    struct bench_options options;
    struct bench_plan plan;
    struct bench_link link;
    struct bench_result result;
    struct bench_bed bed;
};

static void measure(struct run *run, int node)
{
    struct bench_cut cut = {.by = BENCH_CUT_FAILURE, .node = node};
    struct wf_status status = {0};
    bool passed = false;
    char *news = NULL;
    size_t length = 0;
    struct bench_agreement agreement = {.options = &run->options,
                                        .plan = &run->plan,
                                        .link = &run->link,
                                        .control = (struct bench_control *)&rest,
                                        .result = &run->result,
                                        .news = open_memstream(&news, &length)};
    FUZZ_CHECK(agreement.news && bench_plan_init(&run->plan, &run->options, &status) == 0);
    run->result.plan = &run->plan;
    int rc = bench_agree(&agreement, &status);
    fclose(agreement.news);
    check_lines(news, length);
    free(news);
    run->bed = (struct bench_bed){.plan = &run->plan, .node = node, .control = agreement.control};
    if (rc == 0)
        rc = bench_workload(&run->bed, &run->link, &run->result, &(struct bench_progress){0}, &status);
    if (rc == 0)
        rc = bench_workload_finish(&run->bed, &run->link, &run->result, &passed, &status);
    check(rc, &status);
    if (rc == 0)
        run->result.complete = true;
    else
        bench_result_cut(&run->result, &cut, status.text);
    FUZZ_CHECK(bench_is_stamp(run->result.stamp)); /* it is in the names of files */
    FUZZ_CHECK(run->plan.endpoints <= (uint32_t)wf_setting(WF_SET_ENDPOINTS)->max);
    FUZZ_CHECK(run->result.sample_count <= bench_plan_samples(&run->plan));
    FUZZ_CHECK(texts_heard <= 2 + 2 * bench_plan_samples(&run->plan)); /* some set of samples has always come nearer */
    check_report(&run->result);
    check_table(&run->result);
    FUZZ_CHECK(bench_result_json(&run->result, "/dev/null", &(struct wf_status){0}) == 0);
}

static void hear_node(int node, enum bench_command command)
{
    static struct run run; /* large */
    memset(&run, 0, sizeof run);
    wf_config_init(&run.config);
    run.options = (struct bench_options){.command = command, .config = &run.config, .backends = backends};
    run.link.node = node;
    bench_result_init(&run.result, &run.options, node);
    measure(&run, node);
    bench_workload_close(&run.bed);
    json_decref(run.link.gpu_states);
    json_decref(run.link.backends);
    bench_plan_fini(&run.plan);
    bench_result_fini(&run.result);
}

static void hear_servers(void)
{
    static struct peers_plan plan;
    static struct peer_command server;
    struct bench_far far = {.asking = {.alone = false}};
    struct bench_options options = {.command = BENCH_PEERS};
    struct peer_case asked = {.metric = PEER_BANDWIDTH, .size = 65536, .messages = 100, .inflight = 1, .buffers = 1};
    struct wf_status status = {0};
    memset(&plan, 0, sizeof plan);
    plan.place.rail_count = 2;
    int rc = bench_far_connect(&far, &options, &plan, &status), port = 0;
    check(rc, &status);
    while (rc == 0 && *rest) {
        struct peer_output output = {.cpu_s = -1};
        char text[1024];
        memset(&server, 0, sizeof server);
        rc = bench_far_ops.begin(&far, &peer_iperf3, &asked, 0, &port, &status);
        FUZZ_CHECK(rc < 0 || (port > 0 && port < 65536));
        check(rc, &status);
        bench_far_ops.tell_command(&far, &server);
        peer_command_text(&server, text, sizeof text);
        check_text(text, strlen(text));
        rc = bench_far_ops.end(&far, true, &output, &status);
        check(rc, &status);
    }
    bench_far_close(&far, NULL);
}

static void hear_questions(void)
{
    static struct peers_plan plan;
    struct peers_question question;
    struct wf_status status = {0};
    memset(&plan, 0, sizeof plan);
    plan.place =
        (struct peer_place){.folder = "/", .rails = {"127.0.0.1"}, .devices = {"lo"}, .rail_count = 1, .port = 1};
    FUZZ_CHECK(peers_choose_tools("", &plan, &status) == 0);
    while (*rest) {
        json_t *text = NULL;
        int rc = bench_control_hear(NULL, &text, &status);
        check(rc, &status);
        if (rc < 0)
            continue;
        rc = peers_question_from_json(text, &plan, &plan.place, &question, &status);
        check(rc, &status);
        FUZZ_CHECK(rc < 0 || (question.tool && question.asked.messages > 0 && question.asked.inflight > 0));
        json_decref(text);
    }
}

static void hear_nccl(int node)
{
    struct nccl_library library = {.version = "2.21.5", .GetUniqueId = make_id};
    struct bench_link link = {.node = node};
    struct nccl_ranks ranks = {0};
    struct nccl_world world;
    struct wf_status status = {0};
    check(nccl_world_join(&world, &library, &link, &ranks, NULL, &status), &status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    rest = text[0] ? text + 1 : text;
    texts_heard = 0;
    switch (text[0]) {
    case '0':
    case '1':
        hear_node(text[0] - '0', BENCH_MESH);
        break;
    case '2':
    case '3':
        hear_node(text[0] - '2', BENCH_PAIR);
        break;
    case 'p':
        hear_servers();
        break;
    case 'q':
        hear_questions();
        break;
    case 'n':
    case 'm':
        hear_nccl(text[0] == 'm');
        break;
    default:
        break;
    }
    free(text);
    return 0;
}
