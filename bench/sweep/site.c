#include "site.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/plan/idle.h"
#include "bench/words/heard.h"
#include "bench/words/words.h"
#include "far.h"

#define PATIENCE_S 60 /* of a run, besides its deadlines and what it measures */
#define PORT_TRIES 8
#define WARMUP_USUAL 10000 /* messages that take no time to speak of */

/* --- the rails --- */

/* By the interface, which is another node's, too; by the address where several rails share one. */
static void name_rail(struct bench_site *site, const struct weft_rail_info *rails, int at)
{
    int sharing = 0;

    for (int i = 0; i < site->rail_count; i++)
        sharing += strcmp(rails[i].interface, rails[at].interface) == 0;
    bench_copy_text(site->rails[at], sizeof site->rails[at],
                    sharing == 1 && rails[at].interface[0] ? rails[at].interface : rails[at].address);
}

/* What the library would take here, in its order. */
static int find_rails(struct bench_site *site, struct wf_status *status)
{
    const struct wf_config *config = site->options->config;
    struct weft_rail_info rails[BENCH_RAILS_MAX];
    struct weft_config *settings = NULL;
    struct weft_context *context = NULL;
    int result = bench_library_settings(config, &settings, status);

    if (result == 0)
        result = bench_context_create(config, settings, &context, status);
    weft_config_destroy(settings);
    if (result)
        return result;
    site->rail_count = weft_context_rails(context, rails, BENCH_RAILS_MAX);
    if (site->rail_count > BENCH_RAILS_MAX)
        site->rail_count = BENCH_RAILS_MAX;
    for (int i = 0; i < site->rail_count; i++)
        name_rail(site, rails, i);
    weft_context_destroy(context);
    return 0;
}

/* Every 127.x address is this machine. */
static void make_local_rails(struct bench_site *site)
{
    for (int i = 0; i < BENCH_RAILS_MAX; i++)
        snprintf(site->rails[i], sizeof site->rails[i], "127.0.%d.1", i + 1);
    site->rail_count = BENCH_RAILS_MAX;
}

int bench_site_value(const struct bench_site *site, const struct bench_axis *axis, const char *value, char *text,
                     size_t room, struct wf_status *status)
{
    size_t used = 0;

    if (!bench_space_counts_rails(axis, value)) {
        bench_copy_text(text, room, value);
        return 0;
    }
    int count = atoi(value);
    if (count < 1 || count > site->rail_count)
        return wf_fail(status, -EINVAL, "%s rails are wanted, and this node has %d", value, site->rail_count);
    for (int i = 0; i < count && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%s", i ? "," : "", site->rails[i]);
    return used < room ? 0 : wf_fail(status, -EINVAL, "%s rails: their names are too long", value);
}

/* --- command lines --- */

static bool is_varied(const struct bench_space *space, enum wf_setting_id id)
{
    bool varied = false;

    for (int i = 0; i < space->axis_count; i++)
        varied |= space->axes[i].id == id;
    return varied;
}

/* What a sweep has as defaults of its own: many short runs instead of one long. */
static const char *own_default(const struct bench_site *site, enum wf_setting_id id)
{
    if (id == WF_SET_DURATION)
        return "1";
    if (id == WF_SET_CHECK_TIME_MS)
        return "500";
    return id == WF_SET_MODE && site->command == BENCH_MESH ? "loaded" : NULL;
}

/* A run writes no files and prints one JSON: whatever was said of that is for the sweep itself. */
static int put_outputs(struct peer_command *command)
{
    static const enum wf_setting_id none[] = {WF_SET_OUT, WF_SET_CSV, WF_SET_JSON_STREAM, WF_SET_LOG_DIR,
                                              WF_SET_EXPECT};

    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        peer_word(command, "--set=%s=", wf_setting(none[i])->name);
    peer_word(command, "--json=-");
    return peer_word(command, "--quiet");
}

bool bench_site_passes(const struct bench_site *site, enum wf_setting_id id)
{
    const struct wf_setting *setting = wf_setting(id);

    return (setting->uses & site->command) && id != WF_SET_PORT && id != WF_SET_IDLE_TIMEOUT &&
           (setting->topic != WF_TOPIC_OUTPUT || id == WF_SET_LOG);
}

/* The settings of the sweep that act on its runs, but for those that are varied. */
static void put_settings(const struct bench_site *site, struct peer_command *command, bool library_only)
{
    const struct wf_config *config = site->options->config;

    for (int i = 0; i < WF_SETTING_COUNT; i++) {
        const struct wf_setting *setting = wf_setting(i);
        const char *own = own_default(site, i);
        if (!bench_site_passes(site, i) || is_varied(site->space, i) || bench_is_idle(site->options, i) ||
            (library_only && setting->group != WF_GROUP_LIBRARY))
            continue;
        if (!bench_is_default(config, i))
            peer_word(command, "--%s=%s=%s", bench_is_said(config, i) ? "set" : "preset", setting->name,
                      wf_config_text(config, i));
        else if (own)
            peer_word(command, "--preset=%s=%s", setting->name, own);
    }
}

static int too_long(struct wf_status *status)
{
    return wf_fail(status, -EINVAL, "the command line of a run is too long: give fewer settings, or name fewer rails");
}

/* The settings of a point; of the baseline where it is none of the grid, what is in force anyway. */
static int put_point(struct bench_site *site, uint32_t point, struct peer_command *command, struct wf_status *status)
{
    const struct bench_space *space = site->space;
    char text[WF_VALUE_MAX];

    for (int i = 0; i < space->axis_count; i++) {
        const struct bench_axis *axis = &space->axes[i];
        bool is_default = point >= space->grid && bench_is_default(site->options->config, axis->id);
        int result = bench_site_value(site, axis, bench_space_value(space, point, i), text, sizeof text, status);
        if (result)
            return result;
        if (!is_default && peer_word(command, "--set=%s=%s", wf_setting(axis->id)->name, text) != 0)
            return too_long(status);
    }
    return 0;
}

/* "ADDR" of "ADDR:PORT", "[ADDR]:PORT" or an address alone, with brackets where it has colons. */
static void host_of(const char *address, char *host, size_t room)
{
    const char *colon = strchr(address, ':');
    bool six = colon && strchr(colon + 1, ':');

    bench_copy_text(host, room, address);
    if (address[0] == '[')
        host[strcspn(host, "]") + 1] = '\0';
    else if (six)
        snprintf(host, room, "[%s]", address);
    else
        host[strcspn(host, ":")] = '\0';
}

static int client_command(struct bench_site *site, uint32_t point, int port, struct wf_status *status)
{
    struct peer_command *command = &site->commands.client;
    char host[280];

    peer_word(command, "%s", site->program);
    peer_word(command, "%s", bench_command_name(site->command));
    host_of(site->options->address, host, sizeof host);
    if (site->asking)
        peer_word(command, "--connect=%s:%d", host, port);
    else
        peer_word(command, "--local");
    if (site->options->latency)
        peer_word(command, "--lat");
    int result = put_point(site, point, command, status);
    if (result)
        return result;
    put_settings(site, command, false);
    return put_outputs(command) ? too_long(status) : 0;
}

/* Only what the library knows, and no file: the rest is not for another node to say. */
static int put_asked(struct bench_site *site, const json_t *asked, struct peer_command *command,
                     struct wf_status *status)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)asked, name, value)
    {
        char text[WF_VALUE_MAX];
        int id = wf_setting_find(name, status);
        const char *said = json_string_value(value);
        if (id < 0 || !said || wf_setting(id)->group != WF_GROUP_LIBRARY || id == WF_SET_KEY_FILE ||
            id == WF_SET_ENCRYPT || wf_setting(id)->topic == WF_TOPIC_OUTPUT || !wf_setting_takes(id, said))
            return wf_fail(status, -EINVAL,
                           "a setting that the other node may not choose here, or a value that it "
                           "does not take: '%.60s'",
                           name);
        const struct bench_axis axis = {.id = id};
        int result = bench_site_value(site, &axis, said, text, sizeof text, status);
        if (result)
            return result;
        if (peer_word(command, "--set=%s=%s", wf_setting(id)->name, text) != 0)
            return too_long(status);
    }
    return 0;
}

int bench_site_server(struct bench_site *site, const json_t *asked, int port, struct peer_command *command,
                      struct wf_status *status)
{
    char host[280] = "";

    memset(command, 0, sizeof *command);
    if (strchr(site->options->address, ':'))
        host_of(site->options->address, host, sizeof host);
    peer_word(command, "%s", site->program);
    peer_word(command, "%s", bench_command_name(site->command));
    peer_word(command, "--listen=%s%s%d", host, host[0] ? ":" : "", port);
    peer_word(command, "--set=idle_timeout=%d", PATIENCE_S);
    put_settings(site, command, true);
    int result = put_asked(site, asked, command, status);
    if (result)
        return result;
    return put_outputs(command) ? too_long(status) : 0;
}

/* --- a run --- */

/* A number that all runs have, or the largest that is tried. */
static int64_t largest(const struct bench_site *site, enum wf_setting_id id)
{
    const struct bench_space *space = site->space;
    int64_t most = wf_config_number(site->options->config, id);

    for (int i = 0; i < space->axis_count; i++)
        for (int at = 0; space->axes[i].id == id && at < space->axes[i].count; at++) {
            uint64_t value;
            if (wf_parse_size(space->axes[i].values[at], &value) == 0 && (int64_t)value > most)
                most = (int64_t)value;
        }
    return most;
}

static int timeout_ms(const struct bench_site *site)
{
    int64_t seconds = PATIENCE_S + largest(site, WF_SET_CONNECT_TIMEOUT) + largest(site, WF_SET_TIMEOUT) +
                      4 * largest(site, WF_SET_DURATION) + largest(site, WF_SET_CHECK_TIME_MS) / 100;

    /* So many messages may take any time: the run's own deadlines are all there is. A mesh has some of every pair and
     * size, whatever its duration. */
    if (site->command == BENCH_MESH || largest(site, WF_SET_ITERS) > 0 || largest(site, WF_SET_WARMUP) > WARMUP_USUAL ||
        seconds > INT32_MAX / 1000)
        seconds = INT32_MAX / 1000;
    return (int)seconds * 1000;
}

static int begin_far(struct bench_site *site, uint32_t point, int *port, struct wf_status *status)
{
    int result = -EADDRINUSE;

    for (int tries = 0; result == -EADDRINUSE && tries < PORT_TRIES; tries++)
        result = bench_sweep_begin(site, point, port, status);
    return result;
}

static int run(struct bench_site *site, uint32_t point, struct bench_reading *reading, struct wf_status *status)
{
    static struct peer_outcome outcome; /* large */
    int port = 0, result = 0;

    /* A run that does not come so far has no command. */
    memset(&site->commands, 0, sizeof site->commands);
    json_decref(site->server);
    site->server = NULL;
    if (site->asking)
        result = begin_far(site, point, &port, status);
    if (result)
        return result;
    result = client_command(site, point, port, status);
    if (result)
        return result;
    const struct peer_run one = {.commands = &site->commands,
                                 .timeout_ms = timeout_ms(site),
                                 .stop = site->stop,
                                 .context = site->context,
                                 .client_only = true};
    memset(&outcome, 0, sizeof outcome);
    result = peer_run(&one, &outcome, status);
    bool worked = result == 0;
    if (worked)
        result = bench_reading_from_json(outcome.client.text, site->options->latency, reading, status);
    peer_outcome_fini(&outcome);
    if (site->asking) {
        struct wf_status theirs = {0};
        int other = bench_sweep_collect(site, worked, &theirs);
        if (other && (worked || other == -ECHILD)) {
            *status = theirs;
            result = other;
        }
    }
    return result;
}

int bench_site_run(struct bench_site *site, uint32_t point, struct bench_reading *reading, struct wf_status *status)
{
    *reading = (struct bench_reading){.cpu_s_per_gb = -1};
    int result = run(site, point, reading, status);
    if (result == 0)
        return 0;
    bench_reading_fini(reading);
    *reading = (struct bench_reading){.cpu_s_per_gb = -1};
    bench_copy_text(reading->error, sizeof reading->error, status->text);
    /* A run may fail; the sweep goes on unless it was told to end, or cannot. */
    struct wf_status stopped = {0};
    result = site->stop ? site->stop(site->context, &stopped) : 0;
    if (result)
        *status = stopped;
    return result;
}

/* --- life --- */

int bench_site_init(struct bench_site *site, struct bench_options *options, struct wf_status *status)
{
    ssize_t length = readlink("/proc/self/exe", site->program, sizeof site->program - 1);

    site->options = options;
    site->command = wf_config_number(options->config, WF_SET_MEASURE) == 0 ? BENCH_MESH : BENCH_PAIR;
    if (length <= 0)
        return wf_fail(status, -errno, "cannot find this program: %s", wf_strerror(errno));
    site->program[length] = '\0';
    if (options->place == BENCH_PLACE_LOCAL && !wf_config_text(options->config, WF_SET_RAILS)[0]) {
        make_local_rails(site);
        return 0;
    }
    return find_rails(site, status);
}

void bench_site_fini(struct bench_site *site)
{
    json_decref(site->answer);
    json_decref(site->server);
    site->answer = site->server = NULL;
}
