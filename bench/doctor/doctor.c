#include "doctor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/words/interrupt.h"
#include "bench/words/words.h"
#include "parts.h"

/* --- signals --- */

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

static void last_words(void *context, bool again)
{
    (void)context;
    (void)again;
    _exit(BENCH_FAILED);
}

/* --- the command --- */

/* "ADDR", "ADDR:PORT", "[ADDR]:PORT" and, where it is listened, "PORT": the port, or the setting's. */
static int port_of(const struct bench_options *options)
{
    const char *address = options->address, *colon = strrchr(address, ':');
    bool bare = strspn(address, "0123456789") == strlen(address) && address[0];

    if (bare && options->place == BENCH_PLACE_LISTEN)
        return atoi(address);
    if (colon && (strchr(address, ':') == colon || colon[-1] == ']'))
        return atoi(colon + 1);
    return (int)wf_config_number(options->config, WF_SET_PORT);
}

/* `weft doctor ADDR` is `weft doctor --connect ADDR`. */
static int take_address(struct bench_options *options, struct wf_status *status)
{
    if (options->word_count == 0)
        return 0;
    if (options->word_count > 1 || options->place != BENCH_PLACE_NONE)
        return wf_fail(status, -EINVAL, "weft doctor takes one address, and '%.60s' is one word too many",
                       options->words[options->word_count - 1]);
    if (strlen(options->words[0]) >= sizeof options->address)
        return wf_fail(status, -EINVAL, "the address '%.40s...' is too long", options->words[0]);
    bench_copy_text(options->address, sizeof options->address, options->words[0]);
    options->place = BENCH_PLACE_CONNECT;
    return 0;
}

/* Node1 needs its own port where it is another machine than node0: for the way back (path.c). */
static void check_machine(struct doctor *doctor)
{
    doctor_check_limits(doctor);
    doctor_check_disk(doctor);
    doctor_check_interfaces(doctor);
    if (doctor->options->place != BENCH_PLACE_CONNECT)
        doctor_check_port(doctor);
}

static int refuse(const struct wf_status *status)
{
    fprintf(stderr, "weft: %s\n", status->text);
    return status->code == -EINVAL ? BENCH_USAGE : status->code == -EOPNOTSUPP ? BENCH_UNAVAILABLE : BENCH_FAILED;
}

/* Somebody looks at what is printed here: nobody waits as long as a job would, and strangers' packets are our own. */
static int set_defaults(const struct bench_options *options, struct wf_status *status)
{
    static const char name[] = "default of weft doctor";
    int result = 0;

    if (bench_is_default(options->config, WF_SET_CONNECT_TIMEOUT))
        result = wf_config_set(options->config, WF_SET_CONNECT_TIMEOUT, "10", WF_ORIGIN_DEFAULT, name, status);
    if (result == 0 && bench_is_default(options->config, WF_SET_LOG))
        result = wf_config_set(options->config, WF_SET_LOG, "error", WF_ORIGIN_DEFAULT, name, status);
    return result;
}

static const char *remedy_for(int code)
{
    bool other = code == -ETIMEDOUT || code == -ECONNRESET || code == -ECONNREFUSED;
    return other            ? "start weft doctor on the other node, and see what it says"
           : code == -EINTR ? "start it again"
                            : "mend that, and start it again";
}

static int examine(struct doctor *doctor)
{
    enum bench_place place = doctor->options->place;
    struct wf_status status = {0};
    int result = 0;

    doctor->node = place == BENCH_PLACE_LISTEN ? 0 : place == BENCH_PLACE_CONNECT ? 1 : -1;
    doctor->port = port_of(doctor->options);
    doctor->people = bench_quiet(doctor->options->config) ? NULL : bench_people(doctor->options->config);
    check_machine(doctor);
    if (place == BENCH_PLACE_LISTEN && !doctor->unusable && !doctor->port_taken)
        result = doctor_serve(doctor, &status);
    if (place == BENCH_PLACE_CONNECT && !doctor->unusable)
        result = doctor_check_path(doctor, &status);
    if (result == -EINVAL || result == -EOPNOTSUPP)
        return refuse(&status);
    if (result) /* what was found before counts all the same */
        doctor_fault(doctor, "session", remedy_for(result), "%s", status.text);
    return doctor_conclude(doctor);
}

int bench_doctor(struct bench_options *options)
{
    static const struct bench_interrupt_ops ops = {heard, waiting, last_words};
    struct wf_status status = {0};
    int result = take_address(options, &status);

    if (result == 0)
        result = set_defaults(options, &status);

    if (result)
        return refuse(&status);
    struct doctor *doctor = calloc(1, sizeof *doctor);
    if (!doctor || bench_interrupt_start(&ops, NULL, &status) != 0) {
        fprintf(stderr, "weft: %s\n", doctor ? status.text : "no memory for weft doctor");
        free(doctor);
        return BENCH_FAILED;
    }
    doctor->options = options;
    doctor->findings = json_array();
    int exit_status = examine(doctor);
    json_decref(doctor->findings);
    free(doctor);
    bench_interrupt_stop();
    return exit_status;
}
