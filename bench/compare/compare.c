#include "compare.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "bench/result/files.h"
#include "bench/words/columns.h"
#include "bench/words/heard.h"
#include "bench/words/host.h"
#include "bench/words/interrupt.h"
#include "bench/words/json.h"
#include "bench/words/words.h"
#include "far.h"
#include "peers/foresee.h"
#include "peers/report.h"

/* Owner: the measuring thread, but for what the lock guards: the signal thread uses that, too. */
struct comparison {
    struct bench_options *options;
    struct bench_compare_texts texts;
    struct peers_plan plan;
    struct peers_forecast forecast;
    struct peers_result result;
    struct peers_page page; /* where people read; `out` NULL: --quiet */
    struct bench_far far;   /* of two nodes */
    char started[32];       /* ISO 8601, UTC */
    char error[256];        /* why it ended early; "": it did not */
    int error_code;         /* negative errno that goes with it */
    bool wrong_usage;       /* what --connect names is no address */
    bool on_terminal, drawn;
    bool foreseen;    /* `forecast` is filled */
    bool made_out;    /* the folder of --out is ours, and empty as long as nothing is written */
    int64_t start_ns; /* of the first run; 0: not yet */
    pthread_mutex_t lock;
    json_t *so_far; /* the result, should this be the end; NULL: no file is asked for, or they are written */
    bool begun;     /* it has samples */
};

/* --- the result --- */

/* The one that measures. */
static const char *node(const struct comparison *comparison)
{
    return comparison->options->place == BENCH_PLACE_CONNECT ? "node1" : "node0";
}

static json_t *host(const struct comparison *comparison)
{
    json_t *host = bench_host_to_json(node(comparison));

    json_object_set_new(host, "engine", json_string(comparison->texts.engine));
    json_object_set_new(host, "weft", json_string(weft_version()));
    return host;
}

static json_t *fallback(const struct comparison *comparison, const char *line)
{
    char text[sizeof comparison->texts.fallbacks + 16];

    snprintf(text, sizeof text, "%s: %s", node(comparison), line);
    return bench_heard_string(text);
}

static json_t *fallbacks(const struct comparison *comparison)
{
    char lines[sizeof comparison->texts.fallbacks], *rest = lines, *line;
    json_t *array = json_array();

    bench_copy_text(lines, sizeof lines, comparison->texts.fallbacks);
    while ((line = bench_next_word(&rest, '\n')) != NULL)
        if (line[0])
            json_array_append_new(array, fallback(comparison, line));
    return array;
}

/* Where the servers are, and by what the clients go there. */
static json_t *rails(const struct peer_place *place)
{
    json_t *array = json_array();

    for (int i = 0; i < place->rail_count; i++)
        json_array_append_new(array,
                              json_pack("{s:s, s:o, s:o}", "node", "node0", "name", bench_heard_string(place->rails[i]),
                                        "client_interface", bench_heard_string(place->devices[i])));
    return array;
}

/* null: every round of every case was run. */
static json_t *cut_short(const struct comparison *comparison)
{
    if (comparison->result.complete)
        return json_null();
    return json_pack("{s:s, s:s, s:o}", "node", node(comparison), "by",
                     bench_interrupt_signal() ? bench_signal_name(bench_interrupt_signal()) : "failure", "reason",
                     bench_heard_string(comparison->error));
}

static json_t *everything(const struct comparison *comparison)
{
    const struct peers_plan *plan = &comparison->plan;
    json_t *root = json_object(), *samples = peers_samples(&comparison->result);
    json_int_t count = (json_int_t)json_array_size(samples);

    json_object_set_new(root, "schema", json_string("weft.result/1"));
    json_object_set_new(root, "command", json_string(bench_command_name(comparison->options->command)));
    json_object_set_new(root, "version", json_string(weft_version()));
    json_object_set_new(root, "started", json_string(comparison->started));
    json_object_set_new(root, "interrupted", json_boolean(bench_interrupt_signal() != 0));
    json_object_set_new(root, "cut_short", cut_short(comparison));
    json_object_set_new(root, "error", comparison->error[0] ? bench_heard_string(comparison->error) : json_null());
    json_object_set_new(root, "error_code", bench_error_code_to_json(comparison->error_code));
    json_object_set_new(root, "exit_status",
                        json_integer(peers_passed(&comparison->result) ? BENCH_PASSED
                                     : comparison->wrong_usage         ? BENCH_USAGE
                                                                       : BENCH_FAILED));
    json_object_set_new(root, "host", json_pack("[o]", host(comparison)));
    json_object_set_new(root, "config", bench_config_to_json(comparison->options->config));
    json_object_set_new(root, "rails", rails(&plan->place));
    json_object_set_new(root, "fallbacks", fallbacks(comparison));
    json_object_set_new(root, "memory", json_string(plan->place.memory ? plan->place.memory : "host"));
    json_object_set_new(root, "rounds", json_integer(plan->rounds));
    json_object_set_new(root, "expected",
                        comparison->foreseen ? peers_forecast_to_json(plan, &comparison->forecast) : json_null());
    json_object_set_new(root, "samples", samples);
    json_object_set_new(root, "summary",
                        json_pack("{s:b, s:b, s:I, s:I}", "passed", peers_passed(&comparison->result), "compared",
                                  peers_compared(&comparison->result), "samples", count, "samples_planned",
                                  (json_int_t)plan->case_count * plan->tool_count));
    return root;
}

/* Every file that was asked for, but no folder where nothing has begun; the first error is told. */
static int write_files(const struct comparison *comparison, const json_t *root, bool begun, struct wf_status *status)
{
    const struct wf_config *config = comparison->options->config;
    const char *out = begun ? wf_config_text(config, WF_SET_OUT) : "", *file = wf_config_text(config, WF_SET_JSON);
    char path[WF_VALUE_MAX + 32];
    int result = 0;

    snprintf(path, sizeof path, "%s/peers.json", out);
    if (out[0])
        result = bench_write_json(root, path, status);
    if (file[0]) {
        struct wf_status later = {0};
        int other = bench_write_json(root, file, &later);
        if (result == 0 && other) {
            *status = later;
            result = other;
        }
    }
    return result;
}

/* What the files shall say if this is the end. */
static void keep_so_far(struct comparison *comparison)
{
    const struct wf_config *config = comparison->options->config;
    json_t *root = NULL;

    if (wf_config_text(config, WF_SET_OUT)[0] || wf_config_text(config, WF_SET_JSON)[0])
        root = everything(comparison);
    pthread_mutex_lock(&comparison->lock);
    json_t *old = comparison->so_far;
    comparison->so_far = root;
    comparison->begun = comparison->result.block_count > 0;
    pthread_mutex_unlock(&comparison->lock);
    json_decref(old);
}

/* Once, whoever of the two threads comes first. */
static int leave(struct comparison *comparison, struct wf_status *status)
{
    int result = 0;

    pthread_mutex_lock(&comparison->lock);
    if (comparison->so_far)
        result = write_files(comparison, comparison->so_far, comparison->begun, status);
    if (comparison->made_out)
        rmdir(wf_config_text(comparison->options->config, WF_SET_OUT)); /* where nothing was written into it */
    json_decref(comparison->so_far);
    comparison->so_far = NULL;
    pthread_mutex_unlock(&comparison->lock);
    return result;
}

/* --- signals, progress --- */

static int heard(void *context, int signal)
{
    struct comparison *comparison = context;

    (void)signal;
    return atomic_load(&comparison->far.asking.alone) ? 0 : BENCH_LAST_WORDS_MS;
}

static void waiting(void *context, int signal)
{
    (void)context;
    fprintf(stderr, "weft: ending the tools after %s: a second signal ends weft at once\n", bench_signal_name(signal));
}

/* The measuring thread has the rest. */
static void say_interrupted(struct comparison *comparison)
{
    const char *name = bench_signal_name(bench_interrupt_signal());
    json_t *reason = json_sprintf("interrupted by %s", name);

    pthread_mutex_lock(&comparison->lock);
    json_t *root = comparison->so_far;
    json_object_set_new(root, "interrupted", json_true());
    json_object_set_new(root, "cut_short",
                        json_pack("{s:s, s:s, s:O}", "node", node(comparison), "by", name, "reason", reason));
    json_object_set_new(root, "error", json_incref(reason));
    json_object_set_new(root, "error_code", bench_error_code_to_json(-EINTR));
    pthread_mutex_unlock(&comparison->lock);
    json_decref(reason);
}

/* What still runs has a keeper, which notices that this process has gone. */
static void last_words(void *context, bool again)
{
    struct comparison *comparison = context;
    struct wf_status status = {0};

    say_interrupted(comparison);
    if (leave(comparison, &status) != 0)
        fprintf(stderr, "weft: %s\n", status.text);
    fprintf(stderr, "weft: interrupted by %s%s\n", bench_signal_name(bench_interrupt_signal()),
            again ? ", and ended at once by a second signal" : "");
}

/* What nobody can read needs not be measured. */
static int check_output(const struct comparison *comparison, struct wf_status *status)
{
    FILE *out = bench_people(comparison->options->config);

    if (bench_quiet(comparison->options->config) || !ferror(out))
        return 0;
    errno = 0;
    fputc('\n', out); /* fails again, and says why */
    fflush(out);
    return bench_cannot_write("-", errno ? -errno : -EIO, status);
}

static int stop(void *context, struct wf_status *status)
{
    struct comparison *comparison = context;
    int result = bench_interrupted(status);

    if (result == 0)
        result = check_output(comparison, status);
    return result ? result : bench_asking_check(&comparison->far.asking, status);
}

static void progress(void *context, int done, int total, const char *doing)
{
    struct comparison *comparison = context;
    int64_t now = wf_clock_now(&wf_clock_monotonic);
    char time[48];

    keep_so_far(comparison);
    if (!comparison->on_terminal)
        return;
    if (!comparison->start_ns)
        comparison->start_ns = now;
    comparison->drawn = true;
    fprintf(stderr, "\r\033[K%d/%d  %s", done, total, doing);
    double left =
        done > 0 ? (double)(now - comparison->start_ns) / 1e9 * (total - done) / done : comparison->forecast.seconds;
    fprintf(stderr, "  %s left", peers_duration(left, time, sizeof time));
    fflush(stderr);
}

static void wipe(struct comparison *comparison)
{
    if (comparison->drawn)
        fputs("\r\033[K", stderr);
    comparison->drawn = false;
}

/* --- what people read --- */

/* Looks at the tools, and says what is to come. */
static int foresee(struct comparison *comparison, struct wf_status *status)
{
    int result = peers_foresee(&comparison->plan, &comparison->forecast, status);

    comparison->foreseen = result == 0;
    if (result == 0 && comparison->page.out)
        peers_report_head(&comparison->plan, &comparison->forecast, &comparison->page);
    return result;
}

static void measured(void *context, const struct peers_result *result, int index)
{
    struct comparison *comparison = context;

    wipe(comparison);
    if (comparison->page.out)
        peers_report_case(result, index, &comparison->page);
}

/* --- the run --- */

static int fail(struct wf_status *status, int otherwise)
{
    wf_blame_memory_limit(status);
    fprintf(stderr, "weft: %s\n", status->text);
    return status->code == -EINVAL ? BENCH_USAGE : status->code == -EOPNOTSUPP ? BENCH_UNAVAILABLE : otherwise;
}

static void keep_error(struct comparison *comparison, const struct wf_status *status)
{
    snprintf(comparison->error, sizeof comparison->error, "%s", status->text);
    comparison->error_code = status->code;
}

/* node1, or both nodes in one: connects where there is somebody to connect to, measures, and says what was found. */
static int measure(struct comparison *comparison)
{
    struct wf_status status = {0};
    int result = 0, exit_status = BENCH_PASSED;

    if (comparison->options->place == BENCH_PLACE_CONNECT)
        result = bench_far_connect(&comparison->far, comparison->options, &comparison->plan, &status);
    comparison->wrong_usage = result == -EINVAL;
    if (result == 0)
        result = foresee(comparison, &status);
    if (result == 0)
        result = peers_measure(&comparison->plan, &comparison->result, &status);
    wipe(comparison);
    bench_far_close(&comparison->far, result ? status.text : NULL);
    wf_blame_memory_limit(&status);
    if (result) {
        fprintf(stderr, "weft: %s\n", status.text);
        keep_error(comparison, &status);
    }
    if (comparison->page.out && comparison->result.block_count)
        peers_report_end(&comparison->result, &comparison->page);
    if (!peers_passed(&comparison->result))
        exit_status = comparison->wrong_usage ? BENCH_USAGE : BENCH_FAILED;
    keep_so_far(comparison);
    if (leave(comparison, &status) != 0)
        exit_status = fail(&status, BENCH_FAILED);
    return exit_status;
}

/* node0: has no result of its own. */
static int serve(struct comparison *comparison)
{
    struct wf_status status = {0};
    int result = bench_far_serve(&comparison->far, comparison->options, &comparison->plan, &status);

    bench_far_close(&comparison->far, result ? status.text : NULL);
    return result ? fail(&status, BENCH_FAILED) : BENCH_PASSED;
}

static int perform(struct comparison *comparison)
{
    static const struct bench_interrupt_ops ops = {heard, waiting, last_words};
    struct wf_status status = {0};
    int result = bench_interrupt_start(&ops, comparison, &status), exit_status;

    if (result) {
        exit_status = fail(&status, BENCH_FAILED);
        keep_error(comparison, &status);
        keep_so_far(comparison);
        leave(comparison, &status);
        return exit_status;
    }
    exit_status = comparison->options->place == BENCH_PLACE_LISTEN ? serve(comparison) : measure(comparison);
    bench_interrupt_stop();
    return exit_status;
}

static int check_usage(const struct bench_options *options, struct wf_status *status)
{
    if (options->place == BENCH_PLACE_LISTEN &&
        (wf_config_text(options->config, WF_SET_JSON)[0] || wf_config_text(options->config, WF_SET_OUT)[0]))
        return wf_fail(status, -EINVAL, "--json and --out are for the node that connects: it has the result");
    if (options->latency && options->rate)
        return wf_fail(status, -EINVAL, "--lat and --rate exclude each other: name one");
    return 0;
}

int bench_compare(struct bench_options *options)
{
    static struct comparison comparison; /* large */
    struct wf_status status = {0};
    time_t now = time(NULL);
    struct tm utc;
    int result = check_usage(options, &status), exit_status;

    gmtime_r(&now, &utc);
    strftime(comparison.started, sizeof comparison.started, "%Y-%m-%dT%H:%M:%SZ", &utc);
    comparison.options = options;
    comparison.on_terminal = isatty(STDERR_FILENO) && !bench_quiet(options->config);
    if (result == 0)
        result = bench_compare_plan(options, &comparison.texts, &comparison.plan, &status);
    if (result == 0)
        result = bench_files_prepare(options, NULL, &comparison.made_out, &status);
    if (result) {
        exit_status = fail(&status, BENCH_FAILED);
        bench_result_refused(options, &status, exit_status);
        if (comparison.made_out)
            rmdir(wf_config_text(options->config, WF_SET_OUT));
        return exit_status;
    }
    comparison.plan.stop = stop;
    comparison.plan.progress = progress;
    comparison.plan.measured = measured;
    if (!bench_quiet(options->config)) {
        FILE *out = bench_people(options->config);
        comparison.page = (struct peers_page){out, bench_columns(out)};
    }
    comparison.plan.context = &comparison;
    pthread_mutex_init(&comparison.lock, NULL);
    keep_so_far(&comparison);
    exit_status = perform(&comparison);
    peers_result_fini(&comparison.result);
    pthread_mutex_destroy(&comparison.lock);
    return exit_status;
}
