#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agree.h"
#include "interrupt.h"
#include "local.h"
#include "workload.h"

#define CHILD_PATIENCE_MS 3000 /* for node1 to end by itself after a run that went well */
#define CHILD_HURRY_MS 300     /* after one that did not */

struct run {
    struct bench_options *options;
    struct bench_plan plan;
    struct bench_link link;
    struct bench_control *control;
    struct bench_arena arena;
    struct bench_bed bed;
    struct bench_result result;
    struct bench_progress progress;
    struct bench_child child;
    bool made_out; /* the folder of --out was not there before */
    bool prepared; /* settings are sound: from here on a failure is a failure of the run */
    bool passed;
};

static bool quiet(const struct run *run)
{
    return wf_config_number(run->options->config, WF_SET_QUIET) != 0;
}

/* Text for people: standard output, unless results go there. */
static FILE *people(const struct run *run)
{
    const struct wf_config *config = run->options->config;
    bool taken =
        strcmp(wf_config_text(config, WF_SET_JSON), "-") == 0 || strcmp(wf_config_text(config, WF_SET_CSV), "-") == 0;

    return taken ? stderr : stdout;
}

/* ------------------------------------------------------------------------------------------- failure */

static int exit_of(const struct run *run, int code)
{
    if (code == -EOPNOTSUPP)
        return BENCH_UNAVAILABLE;
    return code == -EINVAL && !run->prepared ? BENCH_USAGE : BENCH_FAILED;
}

/* From the signal thread: the orderly end did not come in time. */
static void last_words(void *context)
{
    struct run *run = context;
    struct wf_status status;

    bench_child_kill(&run->child);
    run->result.interrupted = true;
    if (!run->result.error[0])
        snprintf(run->result.error, sizeof(run->result.error), "interrupted");
    bench_result_write(&run->result, &status);
    fputs("weft: interrupted\n", stderr);
}

/* What broke first is what a person should read: a killed child explains a lost connection. */
static void find_cause(struct run *run, struct wf_status *status)
{
    struct wf_status child;

    if (run->options->place != BENCH_PLACE_LOCAL || status->code == -EINTR || status->code == -ECONNABORTED)
        return;
    for (int i = 0; i < 20 && bench_child_check(&run->child, &child) == 0; i++)
        usleep(10000);
    if (run->child.ended && run->child.wait_status != 0)
        *status = child;
}

/* Tells the other node and the files; node0 keeps what had been measured by then. */
static int give_up(struct run *run, struct wf_status *status)
{
    struct wf_status other;
    bool interrupted = status->code == -EINTR, theirs = false;
    int exit_status;

    find_cause(run, status);
    /* The other node's reason explains whatever broke here because of it. */
    if (run->control && !interrupted && bench_control_check(run->control, &other) == -ECONNABORTED)
        *status = other;
    exit_status = exit_of(run, status->code);
    if (run->control)
        theirs = bench_control_aborted(run->control, &exit_status, &interrupted);
    bench_progress_end(&run->progress);
    pthread_mutex_lock(&run->result.lock);
    run->result.interrupted = interrupted;
    snprintf(run->result.error, sizeof(run->result.error), "%s", status->text);
    pthread_mutex_unlock(&run->result.lock);
    if (run->control)
        bench_control_abort(run->control, status->text, exit_status, interrupted);
    if (run->result.sample_count || (interrupted && run->control))
        bench_result_write(&run->result, &other);
    /* Of two nodes on one terminal, the one where it broke speaks. */
    if (!run->options->child || !theirs)
        fprintf(stderr, "weft%s: %s\n", run->options->child ? " (node1)" : "", status->text);
    return exit_status;
}

/* ------------------------------------------------------------------------------------------- before the run */

static int prepare_files(struct run *run, struct wf_status *status)
{
    const struct wf_config *config = run->options->config;
    bool child = run->options->child;
    const char *out = wf_config_text(config, WF_SET_OUT);
    const enum wf_setting_id files[] = {WF_SET_JSON, WF_SET_CSV};
    int rc;

    run->made_out = out[0] && !child && access(out, F_OK) != 0;
    rc = out[0] && !child ? bench_make_folder(out, status) : 0;
    for (int i = 0; rc == 0 && !child && i < 2; i++) {
        const char *path = wf_config_text(config, files[i]);
        char folder[WF_VALUE_MAX];
        char *slash;
        snprintf(folder, sizeof(folder), "%s", path);
        slash = strrchr(folder, '/');
        if (!path[0] || strcmp(path, "-") == 0)
            continue;
        if (slash == folder)
            slash[1] = '\0';
        else if (slash)
            *slash = '\0';
        if (access(slash ? folder : ".", W_OK) != 0)
            rc = wf_fail(status, -errno, "--%s %.150s: cannot write there: %s", wf_setting(files[i])->name, path,
                         wf_strerror(errno));
    }
    return rc;
}

/* Everything that can be refused before anything is started. */
static int prepare(struct run *run, struct wf_status *status)
{
    struct bench_options *options = run->options;
    bool local = options->place == BENCH_PLACE_LOCAL;
    int node = options->place == BENCH_PLACE_CONNECT ? 1 : 0;
    uint64_t need;
    int rc = local ? bench_local_defaults(options, status) : 0;

    if (rc == 0)
        rc = bench_plan_init(&run->plan, options, status);
    if (rc)
        return rc;
    run->result.plan = &run->plan;
    need = bench_memory_need(&run->plan, node);
    if (local && __builtin_add_overflow(need, bench_memory_need(&run->plan, 1), &need))
        need = UINT64_MAX;
    /* A server's plan is only its own idea until the client has said what it wants. */
    if (options->place != BENCH_PLACE_LISTEN)
        rc = bench_memory_check(&run->plan, need, status);
    if (rc == 0)
        rc = prepare_files(run, status);
    return rc;
}

/* ------------------------------------------------------------------------------------------- connecting */

static int look_after_child(void *context, struct wf_status *status)
{
    struct run *run = context;

    return bench_child_check(&run->child, status);
}

/* "[ADDR:]PORT" of --listen; the setting `port` where it names none. For --local the kernel chooses. */
static void listen_address(const struct run *run, char *address, size_t room)
{
    const struct bench_options *options = run->options;
    bool local = options->place == BENCH_PLACE_LOCAL;

    if (local)
        snprintf(address, room, "127.0.0.1:%d",
                 bench_is_default(options->config, WF_SET_PORT) ? 0
                                                                : (int)wf_config_number(options->config, WF_SET_PORT));
    else if (options->address[0])
        snprintf(address, room, "%s", options->address);
    else
        snprintf(address, room, "%d", (int)wf_config_number(options->config, WF_SET_PORT));
}

/* What the client says is measured, so the command for it has all of that. */
static void invite(const struct run *run, int port)
{
    FILE *out = people(run);

    fprintf(out, "node0 waits on port %d", port);
    if (!run->options->hinted) {
        fprintf(out, "; on the other node: weft %s --connect ADDRESS:%d%s", bench_command_name(run->options->command),
                port, run->options->latency ? " --lat" : "");
        bench_print_shared(run->options->config, out);
    }
    fputc('\n', out);
    fflush(out);
}

static int be_server(struct run *run, struct wf_status *status)
{
    bool local = run->options->place == BENCH_PLACE_LOCAL;
    char address[280];
    int port, rc;

    listen_address(run, address, sizeof(address));
    rc = bench_link_listen(&run->link, address, &port, status);
    if (rc)
        return rc;
    run->prepared = true;
    if (local)
        rc = bench_child_start(&run->child, run->options, port, status);
    else if (!quiet(run)) {
        invite(run, port);
    }
    return rc ? rc : bench_link_accept(&run->link, !local, local ? look_after_child : NULL, run, status);
}

static int connect_nodes(struct run *run, struct wf_status *status)
{
    int node = run->options->place == BENCH_PLACE_CONNECT ? 1 : 0;
    int rc = bench_link_open(&run->link, node, run->options->config, status);

    if (rc)
        return rc;
    if (node == 0)
        return be_server(run, status);
    rc = bench_link_connect(&run->link, run->options->address, status);
    if (rc == 0)
        run->prepared = true;
    return rc;
}

static int agree(struct run *run, struct wf_status *status)
{
    struct bench_agreement agreement = {
        .options = run->options,
        .plan = &run->plan,
        .link = &run->link,
        .result = &run->result,
        .news = quiet(run) ? NULL : people(run),
    };
    int rc = bench_control_create(run->link.connection, run->link.peer, run->link.node, &run->control, status);

    if (rc)
        return rc;
    agreement.control = run->control;
    rc = bench_agree(&agreement, status);
    run->bed.copied_up_to = agreement.eager;
    return rc;
}

/* ------------------------------------------------------------------------------------------- the run */

static int measure(struct run *run, struct wf_status *status)
{
    int rc = bench_arena_init(&run->arena, &run->plan, run->link.node, status);

    if (rc)
        return rc;
    run->bed.plan = &run->plan;
    run->bed.node = run->link.node;
    run->bed.control = run->control;
    run->bed.arena = &run->arena;
    run->bed.flip_every = run->options->flip_every;
    bench_progress_start(&run->progress, !quiet(run), bench_plan_samples(&run->plan), bench_workload_bytes(&run->plan));
    rc = bench_workload(&run->bed, &run->link, &run->result, &run->progress, status);
    if (rc == 0)
        rc = bench_workload_finish(&run->bed, &run->link, &run->result, &run->passed, status);
    return rc;
}

/* The first sample with wrong bytes, in a sentence. */
static void tell_wrong(const struct run *run)
{
    for (size_t i = 0; i < run->result.sample_count; i++) {
        const struct bench_sample *sample = &run->result.samples[i];
        char src[32], dst[32], size[32], text[256];
        if (sample->wrong.bytes == 0)
            continue;
        fprintf(stderr, "weft: %s -> %s, %s, %s: %s\n",
                bench_endpoint_name(sample->pair.src_node, sample->pair.src, src, sizeof(src)),
                bench_endpoint_name(sample->pair.dst_node, sample->pair.dst, dst, sizeof(dst)),
                wf_format_size(sample->size, size, sizeof(size)), bench_mode_name(sample->mode),
                bench_wrong_text(&sample->wrong, sample->size, text, sizeof(text)));
        return;
    }
}

/* All ran; whether it was right is the verdict of node0. */
static int conclude(struct run *run, struct wf_status *status)
{
    int rc;

    bench_progress_end(&run->progress);
    pthread_mutex_lock(&run->result.lock);
    run->result.complete = true;
    if (!run->passed && bench_result_wrong_bytes(&run->result) == 0)
        snprintf(run->result.error, sizeof(run->result.error), "the other node found wrong bytes or missing samples");
    pthread_mutex_unlock(&run->result.lock);
    rc = bench_result_write(&run->result, status);
    if (rc)
        return rc;
    if (!quiet(run))
        bench_report(&run->result, people(run));
    if (!run->options->child && !run->passed)
        tell_wrong(run);
    return 0;
}

/* Order: first the link, so that nobody touches the buffers any more. */
static void tear_down(struct run *run)
{
    bench_progress_end(&run->progress);
    if (run->bed.backend)
        run->bed.ops->close(run->bed.backend);
    bench_link_close(&run->link);
    bench_control_destroy(run->control);
    run->control = NULL;
    bench_arena_fini(&run->arena);
}

static int finish_child(struct run *run, int exit_status, bool went_well)
{
    int child = bench_child_end(&run->child, went_well ? CHILD_PATIENCE_MS : CHILD_HURRY_MS);

    if (!went_well || child == 0 || exit_status != BENCH_PASSED)
        return exit_status;
    fprintf(stderr, "weft: node1 ended with status %d after the measurement\n", child);
    return BENCH_FAILED;
}

static int perform(struct run *run)
{
    struct wf_status status = {0};
    int rc = prepare(run, &status), exit_status;

    if (rc == 0)
        rc = bench_interrupt_start(last_words, run, &status);
    if (rc == 0)
        rc = connect_nodes(run, &status);
    if (rc == 0)
        rc = agree(run, &status);
    if (rc == 0)
        rc = measure(run, &status);
    if (rc == 0)
        rc = conclude(run, &status);
    exit_status = rc ? give_up(run, &status) : run->passed ? BENCH_PASSED : BENCH_FAILED;
    tear_down(run);
    exit_status = finish_child(run, exit_status, rc == 0);
    bench_interrupt_stop();
    if (run->made_out)
        rmdir(wf_config_text(run->options->config, WF_SET_OUT)); /* succeeds only where nothing was written into it */
    return exit_status;
}

int bench_run(struct bench_options *options)
{
    static struct run run; /* large, and the signal thread refers to it until the end */
    int exit_status;

    run.options = options;
    bench_result_init(&run.result, options, options->place == BENCH_PLACE_CONNECT ? 1 : 0);
    exit_status = perform(&run);
    bench_plan_fini(&run.plan);
    bench_result_fini(&run.result);
    return exit_status;
}
