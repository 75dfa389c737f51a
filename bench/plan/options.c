#include "options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/words/words.h"
#include "idle.h"
#include "option_table.h"
#include "place.h"

/* The command line as it is read. */
struct cursor {
    int argc, at;
    char **argv;
};

static int unknown_option(const char *option, enum bench_command command, struct wf_status *status)
{
    struct bench_shown *rows = calloc(BENCH_SHOWN_MAX, sizeof *rows);
    const char *words[BENCH_SHOWN_MAX], *nearest = NULL;
    int count = rows ? bench_shown_options(command, rows) : 0;

    if (bench_option_elsewhere(option, command, status) == 0) {
        for (int i = 0; i < count; i++)
            words[i] = rows[i].name;
        if (strncmp(option, "--", 2) == 0)
            nearest = bench_nearest(option + 2, words, count);
        if (nearest)
            wf_fail(status, -EINVAL, "unknown option '%.60s': did you mean '--%s'?", option, nearest);
        else
            wf_fail(status, -EINVAL, "unknown option '%.60s': see 'weft %s --help'", option,
                    bench_command_name(command));
    }
    free(rows);
    return -EINVAL;
}

static int offer_setting(struct bench_options *options, enum wf_setting_id id, const char *text, enum wf_origin origin,
                         struct wf_status *status)
{
    return wf_config_offer(options->config, id, text, origin, origin == WF_ORIGIN_PRESET ? "preset" : "command line",
                           status);
}

/* Each --vary of a command line adds to those before it. */
static int add_vary(struct bench_options *options, const char *text, struct wf_status *status)
{
    char all[WF_VALUE_MAX];

    if ((size_t)snprintf(all, sizeof all, "%s %s", wf_config_text(options->config, WF_SET_VARY), text) >= sizeof all)
        return wf_fail(status, -EINVAL, "--vary: all of it together is longer than %d characters", WF_VALUE_MAX - 1);
    return offer_setting(options, WF_SET_VARY, all, WF_ORIGIN_COMMAND, status);
}

static int set_setting(struct bench_options *options, enum wf_setting_id id, const char *text, struct wf_status *status)
{
    if (id == WF_SET_VARY && options->config->values[id].origin == WF_ORIGIN_COMMAND)
        return add_vary(options, text, status);
    return offer_setting(options, id, text, WF_ORIGIN_COMMAND, status);
}

/* NAME=VALUE of --set or --preset. */
static int set_by_pair(struct bench_options *options, const char *option, const char *pair, enum wf_origin origin,
                       struct wf_status *status)
{
    char name[64];
    const char *equals = strchr(pair, '=');

    if (!equals || equals == pair)
        return wf_fail(status, -EINVAL, "--%s '%.100s': expected NAME=VALUE", option, pair);
    if ((size_t)(equals - pair) >= sizeof name)
        return wf_fail(status, -EINVAL, "unknown setting '%.60s...': see 'weft config'", pair);
    memcpy(name, pair, (size_t)(equals - pair));
    name[equals - pair] = '\0';
    int id = wf_setting_find(name, status);
    if (id < 0)
        return wf_fail(status, -EINVAL, "%s", status->text);
    return offer_setting(options, (enum wf_setting_id)id, equals + 1, origin, status);
}

static int set_queues(struct bench_options *options, const char *text, struct wf_status *status)
{
    char *end;
    long number = strtol(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end || number < 1 || number > BENCH_QUEUES_MAX)
        return wf_fail(status, -EINVAL, "--queues '%.40s': must be a number from 1 to %d", text, BENCH_QUEUES_MAX);
    options->queues = (int)number;
    return 0;
}

/* Options that set one member. A member stands behind `command`, so no place is 0. */
static const size_t flags[OPT_COUNT] = {
    [OPT_KEEP] = offsetof(struct bench_options, keep),
    [OPT_LAT] = offsetof(struct bench_options, latency),
    [OPT_RATE] = offsetof(struct bench_options, rate),
    [OPT_AUTO] = offsetof(struct bench_options, automatic),
    [OPT_UNLOCK_CLOCKS] = offsetof(struct bench_options, unlock_clocks),
    [OPT_DRY_RUN] = offsetof(struct bench_options, dry_run),
    [OPT_MARKDOWN] = offsetof(struct bench_options, markdown),
    [OPT_OPEN] = offsetof(struct bench_options, open),
    [OPT_REPORT] = offsetof(struct bench_options, report),
    [OPT_COLL_BEST] = offsetof(struct bench_options, collective.best),
    [OPT_COLL_SELF_TEST] = offsetof(struct bench_options, collective.self_test),
    [OPT_HELP] = offsetof(struct bench_options, help),
    [OPT_VERSION] = offsetof(struct bench_options, version),
    [OPT_CHILD] = offsetof(struct bench_options, child),
};
static const size_t texts[OPT_COUNT] = {
    [OPT_INVITE] = offsetof(struct bench_options, invite),
    [OPT_RENDEZVOUS] = offsetof(struct bench_options, rendezvous),
    [OPT_SAVE] = offsetof(struct bench_options, save),
    [OPT_ALLOW] = offsetof(struct bench_options, allow),
    [OPT_XML] = offsetof(struct bench_options, xml),
    [OPT_SVG] = offsetof(struct bench_options, svg),
    [OPT_IN_FORCE] = offsetof(struct bench_options, in_force),
    [OPT_HTML] = offsetof(struct bench_options, html),
    [OPT_PLOTS] = offsetof(struct bench_options, plots),
    [OPT_BASELINE] = offsetof(struct bench_options, baseline),
    [OPT_PREDICTED] = offsetof(struct bench_options, predicted),
    [OPT_COLL_BACKEND] = offsetof(struct bench_options, collective.backends),
    [OPT_COLL_OP] = offsetof(struct bench_options, collective.ops),
    [OPT_COLL_TYPE] = offsetof(struct bench_options, collective.type),
    [OPT_COLL_REDOP] = offsetof(struct bench_options, collective.redop),
    [OPT_COLL_PROCESSES] = offsetof(struct bench_options, collective.processes),
    [OPT_COLL_PLACE] = offsetof(struct bench_options, collective.place),
    [OPT_COLL_HOSTS] = offsetof(struct bench_options, collective.hosts),
    [OPT_COLL_RSH] = offsetof(struct bench_options, collective.rsh),
    [OPT_COLL_MEETING] = offsetof(struct bench_options, collective.meeting),
    [OPT_COLL_PROFILE] = offsetof(struct bench_options, collective.profile),
    [OPT_COLL_MEMBER] = offsetof(struct bench_options, collective.member),
    [OPT_OVERLAP_LAYERS] = offsetof(struct bench_options, collective.layers),
    [OPT_OVERLAP_LAYER_MB] = offsetof(struct bench_options, collective.layer_mb),
    [OPT_OVERLAP_BUCKET_MB] = offsetof(struct bench_options, collective.bucket_mb),
    [OPT_OVERLAP_BATCH] = offsetof(struct bench_options, collective.batch),
    [OPT_OVERLAP_STYLE] = offsetof(struct bench_options, collective.style),
    [OPT_BARRIERS] = offsetof(struct bench_options, straggler.barriers),
    [OPT_DELAY_MS] = offsetof(struct bench_options, straggler.delay_ms),
    [OPT_EVERY] = offsetof(struct bench_options, straggler.every),
    [OPT_DELAYED_RANK] = offsetof(struct bench_options, straggler.delayed_rank),
    [OPT_THRESHOLD_MS] = offsetof(struct bench_options, straggler.threshold_ms),
    [OPT_INTERVAL_MS] = offsetof(struct bench_options, straggler.interval_ms),
};

static int apply_extra(struct bench_options *options, enum bench_option_id id, const char *value,
                       struct wf_status *status)
{
    if (flags[id])
        *(bool *)((char *)options + flags[id]) = true;
    if (texts[id])
        *(const char **)((char *)options + texts[id]) = value;
    switch (id) {
    case OPT_LISTEN:
        return bench_place_set(options, BENCH_PLACE_LISTEN, value, status);
    case OPT_CONNECT:
        return bench_place_set(options, BENCH_PLACE_CONNECT, value, status);
    case OPT_LOCAL:
        return bench_place_set(options, BENCH_PLACE_LOCAL, NULL, status);
    case OPT_NODES:
        return bench_place_number("nodes", value, 1, &options->nodes, status);
    case OPT_RANK:
        return bench_place_number("rank", value, 0, &options->rank, status);
    case OPT_SET:
        return set_by_pair(options, "set", value, WF_ORIGIN_COMMAND, status);
    case OPT_PRESET:
        return set_by_pair(options, "preset", value, WF_ORIGIN_PRESET, status);
    case OPT_LATEST:
        if (strlen(value) >= sizeof options->latest)
            return wf_fail(status, -EINVAL, "--latest %.40s...: the name is too long", value);
        bench_copy_text(options->latest, sizeof options->latest, value);
        return 0;
    case OPT_QUEUES:
        return set_queues(options, value, status);
    case OPT_OPEN: /* what is shown is made */
        options->report = true;
        return 0;
    default: /* a member was set; OPT_CONFIG was read before everything else */
        return 0;
    }
}

/* The value of an option: after '=', or the next word. */
static int take_value(struct cursor *cursor, const char *option, char *attached, const char **value,
                      struct wf_status *status)
{
    if (!attached && cursor->at < cursor->argc && strncmp(cursor->argv[cursor->at], "--", 2) != 0)
        attached = cursor->argv[cursor->at++];
    if (!attached)
        return wf_fail(status, -EINVAL, "%s needs a value", option);
    *value = attached;
    return 0;
}

/* A word that is no option: the name of a setting, or of a shell. */
static int take_word(struct bench_options *options, const char *word, struct wf_status *status)
{
    if (!bench_about(options->command)->words)
        return wf_fail(status, -EINVAL, "unexpected word '%.60s': options start with '--'", word);
    options->words[options->word_count++] = word;
    return 0;
}

static int read_setting(struct bench_options *options, struct cursor *cursor, enum wf_setting_id id, const char *option,
                        char *attached, struct wf_status *status)
{
    const char *value = attached, *next = cursor->at < cursor->argc ? cursor->argv[cursor->at] : NULL;
    bool is_switch = wf_setting_is_switch(wf_setting(id)), config = options->command == BENCH_CONFIG;

    /* What is asked for may be named by its option. */
    if (config && !attached && (!next || strncmp(next, "--", 2) == 0 || (is_switch && !wf_setting_takes(id, next)))) {
        int result = take_word(options, wf_setting(id)->name, status);
        return result || !is_switch ? result : set_setting(options, id, "on", status);
    }
    /* A switch without a value is on. */
    if (is_switch && !attached) {
        bool given = next && wf_setting_takes(id, next);
        return set_setting(options, id, given ? cursor->argv[cursor->at++] : "on", status);
    }
    int result = take_value(cursor, option, attached, &value, status);
    return result ? result : set_setting(options, id, value, status);
}

static int read_extra(struct bench_options *options, struct cursor *cursor, enum bench_option_id id, const char *option,
                      char *attached, struct wf_status *status)
{
    const char *value = attached;

    if (bench_extra_options[id].value == VALUE_NONE && attached)
        return wf_fail(status, -EINVAL, "%s takes no value", option);
    if (bench_extra_options[id].value == VALUE_OPTIONAL && !attached && cursor->at < cursor->argc &&
        cursor->argv[cursor->at][0] != '-')
        value = cursor->argv[cursor->at++];
    if (bench_extra_options[id].value == VALUE_NEEDED) {
        int result = take_value(cursor, option, attached, &value, status);
        if (result)
            return result;
    }
    return apply_extra(options, id, value, status);
}

static int read_long(struct bench_options *options, struct cursor *cursor, char *word, struct wf_status *status)
{
    char name[64], dashed[40], option[72];
    char *attached = strchr(word, '=');
    size_t length = attached ? (size_t)(attached - word) : strlen(word);

    snprintf(name, sizeof name, "%.*s", (int)length, word);
    snprintf(option, sizeof option, "--%s", name);
    if (attached)
        attached++;
    for (int i = 0; i < OPT_COUNT; i++)
        if ((bench_extra_options[i].commands & options->command) && strcmp(bench_extra_options[i].name, name) == 0)
            return read_extra(options, cursor, i, option, attached, status);
    for (int i = 0; i < WF_SETTING_COUNT; i++) {
        bench_option_name(wf_setting(i), dashed, sizeof dashed);
        if ((wf_setting(i)->uses & options->command) &&
            (strcmp(dashed, name) == 0 || strcmp(wf_setting(i)->name, name) == 0))
            return read_setting(options, cursor, i, option, attached, status);
    }
    return unknown_option(option, options->command, status);
}

static int read_short(struct bench_options *options, struct cursor *cursor, char *word, struct wf_status *status)
{
    char option[3] = {'-', word[0], '\0'};

    for (int i = 0; i < OPT_COUNT; i++)
        if (bench_extra_options[i].letter == word[0] && !word[1] &&
            (bench_extra_options[i].commands & options->command))
            return read_extra(options, cursor, i, option, NULL, status);
    int id = bench_option_by_letter(word[0]);
    if (id >= 0 && (wf_setting(id)->uses & options->command))
        return read_setting(options, cursor, id, option, word[1] ? word + 1 : NULL, status);
    return unknown_option(word - 1, options->command, status);
}

static int read_command_line(struct bench_options *options, int argc, char **argv, struct wf_status *status)
{
    struct cursor cursor = {argc, 1, argv};
    int result = 0;

    while (result == 0 && cursor.at < argc) {
        char *word = argv[cursor.at++];
        if (strncmp(word, "--", 2) == 0 && word[2])
            result = read_long(options, &cursor, word + 2, status);
        else if (word[0] == '-' && word[1])
            result = read_short(options, &cursor, word + 1, status);
        else
            result = take_word(options, word, status);
    }
    return result;
}

/* How many results go to standard output. */
static int standard_outputs(const struct wf_config *config)
{
    static const enum wf_setting_id files[] = {WF_SET_JSON, WF_SET_CSV, WF_SET_JSON_STREAM};
    int count = 0;

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        count += strcmp(wf_config_text(config, files[i]), "-") == 0;
    return count;
}

/* Two results of one name: the later would take the place of the earlier. */
static int check_outputs_differ(const struct wf_config *config, struct wf_status *status)
{
    static const enum wf_setting_id files[] = {WF_SET_JSON, WF_SET_CSV, WF_SET_JSON_STREAM};

    if (standard_outputs(config) > 1)
        return wf_fail(status, -EINVAL,
                       "only one of --json, --csv and --json-stream can be '-', standard output: give the others a "
                       "file");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        for (size_t j = i + 1; j < sizeof files / sizeof files[0]; j++) {
            const char *one = wf_config_text(config, files[i]), *other = wf_config_text(config, files[j]);
            if (one[0] && strcmp(one, other) == 0 && strncmp(one, "/dev/", 5) != 0 && strcmp(one, "-") != 0)
                return wf_fail(status, -EINVAL, "--%s and --%s are both %.150s: give one of them another file",
                               wf_setting(files[i])->name, wf_setting(files[j])->name, one);
        }
    return 0;
}

/* The last value of an option, wherever it stands; NULL: there is none. */
static const char *last_value(int argc, char **argv, const char *option)
{
    size_t length = strlen(option);
    const char *value = NULL;

    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], option, length) != 0)
            continue;
        if (argv[i][length] == '=')
            value = argv[i] + length + 1;
        else if (argv[i][length] == '\0' && i + 1 < argc && strncmp(argv[i + 1], "--", 2) != 0)
            value = argv[++i];
    }
    return value;
}

/* What is wrong may stand before the names of the files that are to tell of it. */
static void find_files(struct bench_options *options, int argc, char **argv)
{
    const char *json = last_value(argc, argv, "--json"), *csv = last_value(argc, argv, "--csv");
    struct wf_status ignored;

    if (json)
        set_setting(options, WF_SET_JSON, json, &ignored);
    if (csv)
        set_setting(options, WF_SET_CSV, csv, &ignored);
    if (standard_outputs(options->config) > 1)
        set_setting(options, WF_SET_CSV, "", &ignored);
}

static bool needs_other_node(enum bench_command command)
{
    return command & (BENCH_MESH | BENCH_PAIR | BENCH_PEERS | BENCH_SWEEP | BENCH_PROFILE);
}

/* --config takes the place of WEFT_CONFIG, also for the library, which reads the environment by itself. */
static int load_lower_layers(struct bench_options *options, const char *file, struct wf_status *status)
{
    struct wf_log log;

    if (file && !file[0])
        return wf_fail(status, -EINVAL, "--config is empty: name a file of NAME = VALUE lines");
    if (file && wf_environment_set("WEFT_CONFIG", file) != 0)
        return wf_fail(status, -ENOMEM, "no memory for the name of the settings file");
    /* Unknown names are warned of once: by the context's own settings where there will be a context. */
    wf_log_init(&log, needs_other_node(options->command) ? WF_LOG_ERROR : WF_LOG_WARN);
    int result = wf_config_load_environment(options->config, NULL, &log, status);
    /* Whatever is wrong with a setting is wrong usage. */
    return result ? wf_fail(status, -EINVAL, "%s", status->text) : 0;
}

/* Where nothing is done with the settings, a mistake in a file or a variable is none of this command's. */
static bool wants_defaults_only(enum bench_command command, int argc, char **argv)
{
    static const char *const words[] = {"--markdown", "--help", "-h", "--version", "-V"};

    for (int i = 1; i < argc; i++)
        for (size_t j = 0; j < sizeof words / sizeof words[0]; j++)
            if (strcmp(argv[i], words[j]) == 0)
                return true;
    return command & (BENCH_KEY | BENCH_NIC | BENCH_COMPLETION | BENCH_REPORT);
}

/* Where nobody has said anything else. */
static int profile_defaults(struct bench_options *options, struct wf_status *status)
{
    static const struct {
        enum wf_setting_id id;
        const char *text;
    } own[] = {{WF_SET_BEGIN, "1"}, {WF_SET_END, "1G"}, {WF_SET_FACTOR, "2"}, {WF_SET_ITERS, "10"}};
    int result = 0;

    for (size_t i = 0; result == 0 && i < sizeof own / sizeof own[0]; i++)
        if (bench_is_default(options->config, own[i].id))
            result = wf_config_set(options->config, own[i].id, own[i].text, WF_ORIGIN_DEFAULT,
                                   "default of weft profile", status);
    return result;
}

int bench_options_init(struct bench_options *options, enum bench_command command, int argc, char **argv, bool launched,
                       struct wf_status *status)
{
    int result = 0;

    memset(options, 0, sizeof *options);
    options->command = command;
    options->rank = -1;
    options->config = malloc(sizeof *options->config);
    options->words = calloc((size_t)argc + 1, sizeof *options->words);
    if (!options->config || !options->words) {
        bench_options_fini(options);
        return wf_fail(status, -ENOMEM, "no memory for the settings");
    }
    wf_config_init(options->config);
    if (!wants_defaults_only(command, argc, argv))
        result = load_lower_layers(options, last_value(argc, argv, "--config"), status);
    if (result == 0)
        result = read_command_line(options, argc, argv, status);
    if (((command & (BENCH_PEERS | BENCH_SWEEP)) || options->unlock_clocks) && options->place == BENCH_PLACE_NONE)
        options->place = BENCH_PLACE_LOCAL;
    if (result == 0 && command == BENCH_PROFILE)
        result = profile_defaults(options, status);
    if (result == 0 && !options->help && !options->version)
        result = bench_place_check(options, launched, status);
    if (result == 0 && !options->help && !options->version)
        bench_tell_idle(options);
    if (result == 0 && !options->help && !options->version && needs_other_node(command) &&
        options->place == BENCH_PLACE_NONE)
        result = wf_fail(status, -EINVAL,
                         "where is the other node? Give --local, --listen [ADDR:]PORT or --connect ADDR:PORT");
    if (result == 0 && !options->help && !options->version && options->keep && options->place != BENCH_PLACE_LISTEN)
        result = wf_fail(status, -EINVAL, "--keep is for the node that waits: use it with --listen");
    if (result == 0 && !options->help && !options->version && needs_other_node(command) && options->report &&
        !wf_config_text(options->config, WF_SET_OUT)[0])
        result = wf_fail(status, -EINVAL, "%s: a page is written into the folder of --out: name one",
                         options->open ? "--open" : "--report");
    if (result == 0 && !options->help && !options->version &&
        (needs_other_node(command) || command == BENCH_COLLECTIVE))
        result = check_outputs_differ(options->config, status);
    if (result)
        find_files(options, argc, argv);
    return result;
}

void bench_options_fini(struct bench_options *options)
{
    free(options->config);
    free(options->words);
    options->config = NULL;
    options->words = NULL;
}

bool bench_quiet(const struct wf_config *config)
{
    return wf_config_number(config, WF_SET_QUIET) != 0;
}

FILE *bench_people(const struct wf_config *config)
{
    return standard_outputs(config) ? stderr : stdout;
}
