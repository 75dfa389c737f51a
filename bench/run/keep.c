#include "keep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/nodes/key_check.h"
#include "bench/words/interrupt.h"
#include "invite.h"
#include "meet.h"
#include "visit.h"

#define PEERS "64" /* clients at a time, where the setting `peers` says nothing */

struct keep {
    struct bench_options *options; /* as the user gave them: no client changes them */
    struct bench_link house;
    struct bench_lobby *lobby;
    int port;
    int served;    /* runs that were measured */
    bool at_fault; /* one of them failed for a reason of its own */
};

/* --- between the runs --- */

static FILE *news(const struct keep *keep)
{
    return bench_quiet(keep->options->config) ? NULL : bench_people(keep->options->config);
}

static int exit_status(const struct keep *keep)
{
    return keep->at_fault ? BENCH_FAILED : BENCH_PASSED;
}

static int heard(void *context, int signal)
{
    (void)context;
    (void)signal;
    return BENCH_LAST_WORDS_MS;
}

static void waiting(void *context, int signal)
{
    (void)context;
    (void)signal;
}

/* A client that does not answer holds up the end. */
static void last_words(void *context, bool again)
{
    (void)again;
    _exit(exit_status(context));
}

static int watch(struct keep *keep, struct wf_status *status)
{
    static const struct bench_interrupt_ops ops = {heard, waiting, last_words};

    return bench_interrupt_start(&ops, keep, status);
}

/* --- the options of one run --- */

static int rename_setting(struct wf_config *config, enum wf_setting_id id, const char *text, struct wf_status *status)
{
    char source[sizeof config->values[id].source];

    snprintf(source, sizeof source, "%s", config->values[id].source);
    return wf_config_set(config, id, text, config->values[id].origin, source, status);
}

/* DIR-1, DIR-2, ... */
static int number_folder(struct wf_config *config, int number, struct wf_status *status)
{
    char text[WF_VALUE_MAX];
    size_t length = strlen(wf_config_text(config, WF_SET_OUT));

    if (length == 0)
        return 0;
    while (length > 1 && wf_config_text(config, WF_SET_OUT)[length - 1] == '/')
        length--;
    if ((size_t)snprintf(text, sizeof text, "%.*s-%d", (int)length, wf_config_text(config, WF_SET_OUT), number) >=
        sizeof text)
        return wf_fail(status, -EINVAL, "--out: the name of the folder is too long");
    return rename_setting(config, WF_SET_OUT, text, status);
}

/* mesh-1.json, mesh-2.json, ... A device, a pipe and standard output have no number. */
static int number_file(struct wf_config *config, enum wf_setting_id id, int number, struct wf_status *status)
{
    const char *path = wf_config_text(config, id), *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    char text[WF_VALUE_MAX];
    struct stat there;

    if (!path[0] || strcmp(path, "-") == 0 || (stat(path, &there) == 0 && !S_ISREG(there.st_mode)))
        return 0;
    if (!dot || dot == path || (slash && dot <= slash + 1))
        dot = path + strlen(path);
    if ((size_t)snprintf(text, sizeof text, "%.*s-%d%s", (int)(dot - path), path, number, dot) >= sizeof text)
        return wf_fail(status, -EINVAL, "--%s: the name of the file is too long", wf_setting(id)->name);
    return rename_setting(config, id, text, status);
}

/* A copy, with the names of the run's files. The caller frees it by bench_options_fini(). */
static int copy_options(const struct bench_options *options, int number, struct bench_options *out,
                        struct wf_status *status)
{
    static const enum wf_setting_id files[] = {WF_SET_JSON, WF_SET_CSV, WF_SET_JSON_STREAM};
    int result = 0;

    *out = *options;
    out->words = NULL; /* a run has none */
    out->config = malloc(sizeof *out->config);
    if (!out->config)
        return wf_fail(status, -ENOMEM, "no memory for the settings of a run");
    *out->config = *options->config;
    result = number_folder(out->config, number, status);
    for (size_t i = 0; result == 0 && i < sizeof files / sizeof files[0]; i++)
        result = number_file(out->config, files[i], number, status);
    return result;
}

/* --- the house --- */

static int open_house(struct keep *keep, struct wf_status *status)
{
    struct bench_options first = {0};
    struct bench_gpus *gpus = calloc(1, sizeof *gpus);
    char address[280];
    int result = gpus ? copy_options(keep->options, 1, &first, status) : wf_fail(status, -ENOMEM, "no memory for GPUs");

    if (result == 0)
        result = bench_visit_prepare(&first, gpus, status);
    bench_options_fini(&first);
    if (result == 0 && bench_is_default(keep->options->config, WF_SET_PEERS))
        result =
            wf_config_set(keep->options->config, WF_SET_PEERS, PEERS, WF_ORIGIN_PRESET, "default of --keep", status);
    if (result == 0)
        result = bench_link_open(&keep->house, 0, keep->options->config, gpus, status);
    free(gpus);
    bench_listen_address(keep->options, address, sizeof address);
    if (result == 0)
        result = bench_link_listen(&keep->house, address, &keep->port, status);
    if (result == 0)
        result = bench_lobby_open(&keep->house, news(keep), &keep->lobby, status);
    if (result)
        return result;
    bench_key_warn(keep->house.context, keep->options, address, keep->port);
    if (news(keep))
        bench_invite(&keep->house, keep->options, address, keep->port, news(keep));
    return 0;
}

/* Those who wait are told that there will be no turn for them. */
static void close_house(struct keep *keep)
{
    struct wf_status status = {0};
    const char *reason = bench_interrupted(&status) ? status.text : "it serves nobody any more";

    bench_lobby_close(keep->lobby, reason, bench_interrupt_signal());
    bench_link_close(&keep->house);
}

/* --- one run after the other --- */

static void tell_outcome(const struct keep *keep, const struct bench_visit *visit, int status)
{
    FILE *out = news(keep);

    if (!out)
        return;
    if (!visit->measured)
        fprintf(out, "nothing was measured with this client");
    else
        fprintf(out, "run %d %s", visit->number, status == BENCH_PASSED ? "has passed" : "has failed");
    if (bench_interrupt_signal())
        fputc('\n', out);
    else
        fprintf(out, "; port %d is open for the next client\n", keep->port);
    fflush(out);
}

static int serve(struct keep *keep, const struct bench_guest *guest, struct wf_status *status)
{
    struct bench_visit visit = {.house = &keep->house, .guest = *guest, .number = keep->served + 1};
    struct bench_options options;
    int result = copy_options(keep->options, visit.number, &options, status);

    if (result) {
        bench_options_fini(&options);
        return result;
    }
    bench_interrupt_stop();
    int outcome = bench_visit_run(&options, &visit);
    result = watch(keep, status);
    bench_options_fini(&options);
    keep->served += visit.measured;
    keep->at_fault |= visit.at_fault;
    bench_lobby_done(keep->lobby);
    tell_outcome(keep, &visit, outcome);
    return result;
}

/* Until there is a reason to end. */
static int serve_all(struct keep *keep, struct wf_status *status)
{
    int result = 0;

    while (result == 0) {
        struct bench_guest guest;
        result = bench_lobby_next(keep->lobby, keep->house.idle_timeout_ms, &guest, status);
        if (result == 0)
            result = serve(keep, &guest, status);
    }
    return result;
}

int bench_keep(struct bench_options *options)
{
    struct keep *keep = calloc(1, sizeof *keep);
    struct wf_status status = {0};
    bool open = false;

    if (!keep) {
        fprintf(stderr, "weft: no memory for a server\n");
        return BENCH_FAILED;
    }
    keep->options = options;
    int result = watch(keep, &status);
    if (result == 0)
        result = open_house(keep, &status);
    open = result == 0;
    if (open)
        result = serve_all(keep, &status);
    bool told_to = open && (result == -EINTR || result == -ETIMEDOUT);
    int ended = exit_status(keep);
    if (told_to && news(keep))
        fprintf(news(keep), "the server ends: %s; runs: %d\n", status.text, keep->served);
    if (!told_to) {
        fprintf(stderr, "weft: %s\n", status.text);
        ended = result == -EOPNOTSUPP ? BENCH_UNAVAILABLE : result == -EINVAL && !open ? BENCH_USAGE : BENCH_FAILED;
    }
    close_house(keep);
    bench_interrupt_stop();
    free(keep);
    return ended;
}
