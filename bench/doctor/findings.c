/* What was found: a line each for people, and JSON. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bench/words/heard.h"
#include "bench/words/json.h"
#include "parts.h"

/* The remedy ends the line of a fault: a script finds all of it with one grep. */
static void show(const struct doctor *doctor, const json_t *finding)
{
    const json_t *node = json_object_get(finding, "node");
    bool ok = json_is_true(json_object_get(finding, "ok"));
    char who[16] = "";

    if (!doctor->people)
        return;
    if (json_is_integer(node))
        snprintf(who, sizeof who, "node%d ", (int)json_integer_value(node));
    fprintf(doctor->people, "%s  %s%s: %s", ok ? "ok   " : "FAULT", who, bench_heard_text(finding, "check"),
            bench_heard_text(finding, "text"));
    if (!ok)
        fprintf(doctor->people, ": %s", bench_heard_text(finding, "remedy"));
    fputc('\n', doctor->people);
    fflush(doctor->people);
}

static void add(struct doctor *doctor, json_t *finding)
{
    doctor->faults += !json_is_true(json_object_get(finding, "ok"));
    show(doctor, finding);
    json_array_append_new(doctor->findings, finding);
}

static json_t *make(const struct doctor *doctor, const char *check, bool ok, const char *text, const char *remedy)
{
    return json_pack("{s:o, s:s, s:b, s:o, s:o}", "node", doctor->node < 0 ? json_null() : json_integer(doctor->node),
                     "check", check, "ok", (int)ok, "text", bench_heard_string(text), "remedy",
                     remedy ? bench_heard_string(remedy) : json_null());
}

void doctor_good(struct doctor *doctor, const char *check, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    add(doctor, make(doctor, check, true, text, NULL));
}

void doctor_fault(struct doctor *doctor, const char *check, const char *remedy, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    add(doctor, make(doctor, check, false, text, remedy));
}

void doctor_heard(struct doctor *doctor, const json_t *finding)
{
    add(doctor, json_deep_copy(finding));
}

int doctor_conclude(struct doctor *doctor)
{
    const char *path = wf_config_text(doctor->options->config, WF_SET_JSON);
    struct wf_status status = {0};
    int exit_status = doctor->faults ? BENCH_FAILED : BENCH_PASSED;

    if (doctor->people && doctor->faults)
        fprintf(doctor->people, "%d %s found\n", doctor->faults, doctor->faults == 1 ? "fault was" : "faults were");
    else if (doctor->people)
        fprintf(doctor->people, "no fault was found\n");
    json_t *root = json_pack("{s:s, s:s, s:O, s:i, s:i}", "schema", "weft.doctor/1", "version", weft_version(),
                             "findings", doctor->findings, "faults", doctor->faults, "exit_status", exit_status);
    if (path[0] && bench_write_json(root, path, &status) != 0) {
        fprintf(stderr, "weft: %s\n", status.text);
        exit_status = BENCH_FAILED;
    }
    json_decref(root);
    return exit_status;
}
