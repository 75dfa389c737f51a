#include "sweep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "bench/plan/idle.h"
#include "bench/result/files.h"
#include "bench/result/outputs.h"
#include "bench/words/columns.h"
#include "bench/words/heard.h"
#include "bench/words/interrupt.h"
#include "bench/words/words.h"
#include "far.h"
#include "found.h"
#include "journal.h"

/* Owner: the measuring thread, but for `asking.alone`. */
struct sweep {
    struct bench_options *options;
    struct bench_space space;
    struct bench_search search;
    struct bench_site site;
    struct bench_asking asking; /* of two nodes */
    struct bench_journal journal;
    struct bench_found found;
    FILE *people; /* where people read; NULL: --quiet */
    bool on_terminal, drawn;
    bool made_out;    /* the folder of --out was not there before */
    int64_t start_ns; /* of the first run that was made now; 0: not yet */
    size_t made;      /* runs since then */
    json_t *sets;     /* of the first good run; NULL: there was none yet, or the sweep varies what is measured */
};

static const char *stage_name(enum bench_stage stage)
{
    static const char *const names[] = {"first", "nearer", "again", "confirm"};

    return names[stage];
}

/* --- signals, progress --- */

static int heard(void *context, int signal)
{
    struct sweep *sweep = context;

    (void)signal;
    return atomic_load(&sweep->asking.alone) ? 0 : BENCH_LAST_WORDS_MS;
}

static void waiting(void *context, int signal)
{
    (void)context;
    fprintf(stderr, "weft: ending the run after %s: a second signal ends weft at once\n", bench_signal_name(signal));
}

/* The journal has every run that has ended; what still runs has a keeper. */
static void last_words(void *context, bool again)
{
    (void)context;
    fprintf(stderr, "weft: interrupted by %s%s\n", bench_signal_name(bench_interrupt_signal()),
            again ? ", and ended at once by a second signal" : "");
}

static int stop(void *context, struct wf_status *status)
{
    struct sweep *sweep = context;
    int result = bench_interrupted(status);

    return result ? result : bench_asking_check(&sweep->asking, status);
}

static void draw(struct sweep *sweep, uint32_t point)
{
    int64_t now = wf_clock_now(&wf_clock_monotonic);
    char settings[600], left[48] = "";

    if (!sweep->on_terminal)
        return;
    if (!sweep->start_ns)
        sweep->start_ns = now;
    if (sweep->made) {
        double each = (double)(now - sweep->start_ns) / 1e9 / (double)sweep->made;
        double rest = each * (double)(sweep->search.runs_most - sweep->search.trial_count);
        snprintf(left, sizeof left, "  %.0f %s left", rest < 90 ? rest : rest / 60, rest < 90 ? "s" : "min");
    }
    bench_space_text(&sweep->space, point, settings, sizeof settings);
    fprintf(stderr, "\r\033[K%zu/%u  %.40s%s", sweep->search.trial_count, sweep->search.runs_most, settings, left);
    fflush(stderr);
    sweep->drawn = true;
}

static void wipe(struct sweep *sweep)
{
    if (sweep->drawn)
        fputs("\r\033[K", stderr);
    sweep->drawn = false;
}

/* --- the runs --- */

static json_t *run_to_json(const struct sweep *sweep, uint32_t point, const struct bench_reading *reading)
{
    const json_t *server = sweep->site.server;
    char command[WF_VALUE_MAX];

    return json_pack("{s:o, s:o, s:s, s:I, s:o, s:o, s:o, s:o}", "command",
                     bench_heard_string(peer_command_text(&sweep->site.commands.client, command, sizeof command)),
                     "server_command",
                     json_is_string(server) ? bench_heard_string(json_string_value(server)) : json_null(), "stage",
                     stage_name(sweep->search.stage), "point", (json_int_t)point, "value",
                     reading->value > 0 ? json_real(reading->value) : json_null(), "cpu_s_per_gb",
                     reading->cpu_s_per_gb >= 0 ? json_real(reading->cpu_s_per_gb) : json_null(), "sets",
                     reading->sets ? json_incref(reading->sets) : json_null(), "error",
                     reading->error[0] ? bench_heard_string(reading->error) : json_null());
}

/* Whether points differ in what they measure, as they shall then. */
static bool varies_sets(const struct bench_space *space)
{
    static const enum wf_setting_id ids[] = {WF_SET_BEGIN, WF_SET_END, WF_SET_SIZE, WF_SET_FACTOR, WF_SET_MODE};
    bool varies = false;

    for (int i = 0; i < space->axis_count; i++)
        for (size_t at = 0; at < sizeof ids / sizeof ids[0]; at++)
            varies |= space->axes[i].id == ids[at];
    return varies;
}

/* Takes over `run`. */
static void take(struct sweep *sweep, json_t *run)
{
    double value = json_number_value(json_object_get(run, "value"));

    if (value > 0 && !sweep->sets && !varies_sets(&sweep->space))
        sweep->sets = json_incref(json_object_get(run, "sets"));
    bench_search_take(&sweep->search, sweep->options->latency && value > 0 ? 1 / value : value);
    json_array_append_new(sweep->found.runs, run);
}

/* A run of the journal, in the place of the one that would be made now. */
static int take_recorded(struct sweep *sweep, uint32_t point, const json_t *run, struct wf_status *status)
{
    const json_t *recorded = json_object_get(run, "point"), *value = json_object_get(run, "value");

    if (!json_is_integer(recorded) || json_integer_value(recorded) != (json_int_t)point ||
        (!json_is_null(value) && !(json_is_real(value) && json_real_value(value) > 0)))
        return wf_fail(status, -EEXIST,
                       "%.200s:%zu: this is not the run that comes there: name another folder with --out",
                       sweep->journal.path, sweep->journal.next + 1);
    take(sweep, json_deep_copy(run));
    return 0;
}

/* A run whose largest sizes gave way to memory has failed. */
static void check_sets(const struct sweep *sweep, struct bench_reading *reading)
{
    struct wf_status status = {0};

    if (!(reading->value > 0) || bench_reading_check(reading, sweep->sets, &status) == 0)
        return;
    bench_reading_fini(reading);
    *reading = (struct bench_reading){.cpu_s_per_gb = -1};
    bench_copy_text(reading->error, sizeof reading->error, status.text);
}

static int make_run(struct sweep *sweep, uint32_t point, struct wf_status *status)
{
    struct bench_reading reading;

    draw(sweep, point);
    int result = bench_site_run(&sweep->site, point, &reading, status);
    if (result == 0) {
        check_sets(sweep, &reading);
        json_t *run = run_to_json(sweep, point, &reading);
        result = bench_journal_add(&sweep->journal, run, status);
        take(sweep, run);
        sweep->made++;
    }
    bench_reading_fini(&reading);
    return result;
}

static int make_runs(struct sweep *sweep, struct wf_status *status)
{
    uint32_t point;
    int result = 0;

    while (result == 0 && bench_search_next(&sweep->search, &point)) {
        const json_t *recorded = bench_journal_next(&sweep->journal);
        result = recorded ? take_recorded(sweep, point, recorded, status) : make_run(sweep, point, status);
    }
    wipe(sweep);
    return result;
}

/* --- before them --- */

/* All that decides which runs there are and what they measure. */
static json_t *identity(const struct sweep *sweep)
{
    const struct wf_config *config = sweep->options->config;
    json_t *vary = json_object(), *settings = json_object();
    struct utsname system;

    uname(&system);
    for (int i = 0; i < sweep->space.axis_count; i++) {
        const struct bench_axis *axis = &sweep->space.axes[i];
        json_t *values = json_array();
        for (int value = 0; value < axis->count; value++)
            json_array_append_new(values, bench_heard_string(axis->values[value]));
        json_object_set_new(vary, wf_setting(axis->id)->name, values);
    }
    for (int i = 0; i < WF_SETTING_COUNT; i++)
        if (bench_site_passes(&sweep->site, i) && !bench_is_default(config, i))
            json_object_set_new(settings, wf_setting(i)->name, bench_heard_string(wf_config_text(config, i)));
    return json_pack(
        "{s:o, s:s, s:s, s:b, s:o, s:o, s:I, s:I, s:b, s:I, s:o}", "host", bench_heard_string(system.nodename),
        "version", weft_version(), "measure", bench_command_name(sweep->site.command), "latency",
        sweep->options->latency, "vary", vary, "settings", settings, "rounds", (json_int_t)sweep->search.rounds, "runs",
        (json_int_t)sweep->search.runs_most, "auto", sweep->search.automatic, "seed", (json_int_t)sweep->search.seed,
        "node0", bench_heard_string(sweep->options->place == BENCH_PLACE_CONNECT ? sweep->options->address : "local"));
}

/* What the command that is run does not have would be left out in silence. */
static int check_settings(const struct sweep *sweep, struct wf_status *status)
{
    enum bench_command command = sweep->site.command, other = command == BENCH_MESH ? BENCH_PAIR : BENCH_MESH;

    if (!sweep->options->automatic && sweep->options->config->values[WF_SET_RUNS].origin == WF_ORIGIN_COMMAND)
        return wf_fail(status, -EINVAL, "--runs is for a search: use it with --auto");
    for (int i = 0; i < WF_SETTING_COUNT; i++) {
        unsigned uses = wf_setting(i)->uses;
        if (sweep->options->config->values[i].origin == WF_ORIGIN_COMMAND && (uses & other) && !(uses & command))
            return wf_fail(status, -EINVAL, "--%s is not for a sweep of weft %s: use it with --measure %s",
                           wf_setting(i)->name, bench_command_name(command), bench_command_name(other));
    }
    if (sweep->options->latency && command == BENCH_MESH)
        return wf_fail(status, -EINVAL, "--lat is not for a sweep of weft mesh: use it with --measure pair");
    if (strcmp(wf_config_text(sweep->options->config, WF_SET_BACKEND), "weft") != 0)
        return wf_fail(status, -EINVAL, "--backend %.60s: a sweep measures Weft alone",
                       wf_config_text(sweep->options->config, WF_SET_BACKEND));
    return 0;
}

/* Nothing else is written to the file. */
static int check_save(const struct bench_options *options, struct wf_status *status)
{
    static const enum wf_setting_id files[] = {WF_SET_JSON, WF_SET_CSV};
    const char *save = options->save;

    if (!save)
        return 0;
    if (!save[0] || strcmp(save, "-") == 0)
        return wf_fail(status, -EINVAL, "--save '%s': name a file for the settings", save);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (strcmp(save, wf_config_text(options->config, files[i])) == 0)
            return wf_fail(status, -EINVAL, "--save and --%s are both %.150s: give one of them another file",
                           wf_setting(files[i])->name, save);
    return 0;
}

/* That all files can be written is known before hours of runs. --save may name one in the folder of --out, which is
 * made here. */
static int prepare_files(struct sweep *sweep, struct wf_status *status)
{
    const char *save = sweep->options->save;
    int result = bench_files_prepare(sweep->options, NULL, &sweep->made_out, status);

    return result || !save ? result : bench_output_check("save", save, status);
}

/* node0 runs what it is told. */
static int check_listening(const struct bench_options *options, struct wf_status *status)
{
    if (options->automatic || options->save || options->config->values[WF_SET_VARY].origin == WF_ORIGIN_COMMAND)
        return wf_fail(status, -EINVAL,
                       "--vary, --auto and --save are for the node that connects: leave them out with --listen");
    return 0;
}

/* How many of this node's rails the baseline has. */
static int usual_rails(const struct sweep *sweep)
{
    bool said = wf_config_text(sweep->options->config, WF_SET_RAILS)[0];

    return sweep->options->place == BENCH_PLACE_LOCAL && !said ? 2 : sweep->site.rail_count;
}

static int plan_sweep(struct sweep *sweep, struct wf_status *status)
{
    const struct wf_config *config = sweep->options->config;
    int usual = usual_rails(sweep), result = 0;

    if (sweep->options->place == BENCH_PLACE_CONNECT)
        result = bench_sweep_connect(&sweep->site, status);
    if (result == 0)
        result = bench_space_set_rails(&sweep->space, sweep->site.rail_count, usual, status);
    if (result > 0 && sweep->people)
        fprintf(sweep->people, "left out of rails: %d value%s, as both nodes have %d\n", result, result == 1 ? "" : "s",
                sweep->site.rail_count);
    if (result < 0)
        return result;
    return bench_search_init(
        &sweep->search, &sweep->space, sweep->options->automatic, (uint32_t)wf_config_number(config, WF_SET_ROUNDS),
        (uint32_t)wf_config_number(config, WF_SET_RUNS), (uint64_t)wf_config_number(config, WF_SET_SEED), status);
}

static int open_journal(struct sweep *sweep, struct wf_status *status)
{
    json_t *what = identity(sweep);
    int result = bench_journal_open(&sweep->journal, wf_config_text(sweep->options->config, WF_SET_OUT), what, status);

    json_decref(what);
    return result;
}

static void tell_plan(const struct sweep *sweep)
{
    const struct bench_search *search = &sweep->search;
    size_t recorded = json_array_size(sweep->journal.runs);
    char text[400], already[80] = "";

    if (!sweep->people)
        return;
    if (recorded)
        snprintf(already, sizeof already, "; %zu of them were made before, and are taken from the journal", recorded);
    snprintf(text, sizeof text, "weft sweep of weft %s%s: %u points%s, at most %u runs%s%s",
             bench_command_name(sweep->site.command), sweep->options->latency ? " --lat" : "", sweep->space.points,
             sweep->space.baseline >= sweep->space.grid ? " with the default" : "", search->runs_most,
             sweep->options->automatic && !search->automatic ? " (so few points are all run)" : "", already);
    bench_wrapped(sweep->people, bench_columns(sweep->people), 2, "%s", text);
    if (sweep->options->place == BENCH_PLACE_LOCAL)
        fprintf(sweep->people, "loopback: says nothing about a network\n");
    fflush(sweep->people);
}

/* --- the whole --- */

static int complain(struct wf_status *status)
{
    wf_blame_memory_limit(status);
    fprintf(stderr, "weft: %s\n", status->text);
    return status->code == -EINVAL || status->code == -EEXIST ? BENCH_USAGE
           : status->code == -EOPNOTSUPP                      ? BENCH_UNAVAILABLE
                                                              : BENCH_FAILED;
}

/* node0: has no result of its own. */
static int serve(struct sweep *sweep)
{
    struct wf_status status = {0};
    int result = bench_sweep_serve(&sweep->site, &status);

    bench_asking_close(&sweep->asking, result ? status.text : NULL);
    return result ? complain(&status) : BENCH_PASSED;
}

/* Whether there is something to compare: the default was measured, and another point. */
static bool has_passed(const struct sweep *sweep)
{
    return bench_search_score(&sweep->search, sweep->space.baseline) > 0 && bench_found_others(&sweep->found);
}

static int conclude(struct sweep *sweep, int result, struct wf_status *status)
{
    struct wf_status unwritten = {0};
    int exit_status = BENCH_PASSED;

    if (result) {
        exit_status = complain(status);
        bench_copy_text(sweep->found.error, sizeof sweep->found.error, status->text);
        sweep->found.error_code = status->code;
    }
    if (sweep->people)
        bench_found_print(&sweep->found, sweep->people);
    if (sweep->people && result && sweep->journal.fd >= 0)
        bench_wrapped(sweep->people, bench_columns(sweep->people), 2,
                      "The same command goes on with run %zu: %s has those before.", sweep->search.trial_count + 1,
                      sweep->journal.path);
    if (bench_found_write(&sweep->found, &unwritten) != 0)
        exit_status = complain(&unwritten);
    return exit_status == BENCH_PASSED && !has_passed(sweep) ? BENCH_FAILED : exit_status;
}

static int perform(struct sweep *sweep)
{
    struct wf_status status = {0};
    int result = plan_sweep(sweep, &status);

    if (result == 0)
        result = prepare_files(sweep, &status);
    if (result == 0)
        result = open_journal(sweep, &status);
    bool planned = result == 0;
    if (planned) {
        tell_plan(sweep);
        result = make_runs(sweep, &status);
    }
    bench_asking_close(&sweep->asking, result ? status.text : NULL);
    if (planned && result != -EEXIST) /* of a journal that does not fit nothing is used */
        return conclude(sweep, result, &status);
    int exit_status = complain(&status);
    if (sweep->made_out)
        rmdir(wf_config_text(sweep->options->config, WF_SET_OUT)); /* where nothing was written into it */
    return exit_status;
}

static int prepare(struct sweep *sweep, struct wf_status *status)
{
    struct bench_options *options = sweep->options;
    int result = bench_site_init(&sweep->site, options, status);

    if (result)
        return result;
    if (options->place == BENCH_PLACE_LISTEN)
        return check_listening(options, status);
    result = check_settings(sweep, status);
    if (result == 0)
        result = check_save(options, status);
    if (result == 0)
        result = bench_space_init(&sweep->space, options->config, sweep->site.command, status);
    for (int i = 0; result == 0 && i < sweep->space.axis_count; i++)
        if (bench_is_idle(options, sweep->space.axes[i].id))
            result = wf_fail(status, -EINVAL, "--vary %s does nothing for latency: all points would be the same",
                             wf_setting(sweep->space.axes[i].id)->name);
    return result;
}

static void sweep_init(struct sweep *sweep, struct bench_options *options)
{
    time_t now = time(NULL);
    struct tm utc;

    gmtime_r(&now, &utc);
    strftime(sweep->found.started, sizeof sweep->found.started, "%Y-%m-%dT%H:%M:%SZ", &utc);
    sweep->options = options;
    sweep->found.options = options;
    sweep->found.space = sweep->site.space = &sweep->space;
    sweep->found.search = &sweep->search;
    sweep->found.site = &sweep->site;
    sweep->found.runs = json_array();
    sweep->site.stop = stop;
    sweep->site.context = sweep;
    sweep->site.asking = options->place == BENCH_PLACE_LOCAL ? NULL : &sweep->asking;
    sweep->journal.fd = -1;
    sweep->on_terminal = isatty(STDERR_FILENO) && !bench_quiet(options->config);
    if (!bench_quiet(options->config))
        sweep->people = bench_people(options->config);
}

static void sweep_fini(struct sweep *sweep)
{
    bench_journal_close(&sweep->journal);
    bench_site_fini(&sweep->site);
    bench_search_fini(&sweep->search);
    bench_space_fini(&sweep->space);
    json_decref(sweep->found.runs);
    json_decref(sweep->sets);
}

int bench_sweep(struct bench_options *options)
{
    static const struct bench_interrupt_ops ops = {heard, waiting, last_words};
    static struct sweep sweep; /* large */
    struct wf_status status = {0};

    sweep_init(&sweep, options);
    int result = bench_interrupt_start(&ops, &sweep, &status);
    if (result == 0)
        result = prepare(&sweep, &status);
    int exit_status = result                                 ? complain(&status)
                      : options->place == BENCH_PLACE_LISTEN ? serve(&sweep)
                                                             : perform(&sweep);
    sweep_fini(&sweep);
    bench_interrupt_stop();
    return exit_status;
}
