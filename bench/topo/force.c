/*
 * weft topo --in-force: what the kernel says of a process, or what it said at the end of a run. Both become the same
 * JSON, an entry for each node, and text is made of that.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "affinity/machine.h"
#include "affinity/pin.h"
#include "topo.h"

#define THREADS_MAX 1024

/* --- a process --- */

static json_t *number_or_null(int number)
{
    return number >= 0 ? json_integer(number) : json_null();
}

static json_t *thread_to_json(const struct wf_thread_place *place)
{
    char allowed[256];

    return json_pack("{s:s, s:i, s:s, s:o, s:o}", "name", place->name, "tid", (int)place->tid, "allowed_cpus",
                     wf_cpus_text(&place->allowed, allowed, sizeof allowed), "last_cpu",
                     number_or_null(place->last_cpu), "numa_node", number_or_null(place->node));
}

static json_t *memory_to_json(pid_t process)
{
    uint64_t bytes[WF_NODES_MAX];
    json_t *all = json_array();

    if (wf_place_of(process, bytes, WF_NODES_MAX) != 0)
        return all;
    for (int node = 0; node < WF_NODES_MAX; node++)
        if (bytes[node])
            json_array_append_new(all, json_pack("{s:i, s:I}", "numa_node", node, "bytes", (json_int_t)bytes[node]));
    return all;
}

static json_t *of_process(pid_t process, struct wf_status *status)
{
    struct wf_thread_place *places = calloc(THREADS_MAX, sizeof *places);
    json_t *threads = json_array();
    int count = places ? wf_pin_threads_of(process, places, THREADS_MAX) : -ENOMEM;

    for (int i = 0; i < count && i < THREADS_MAX; i++)
        json_array_append_new(threads, thread_to_json(&places[i]));
    free(places);
    if (count <= 0) {
        json_decref(threads);
        wf_fail(status, -ENOENT, "--in-force %d: %s", (int)process,
                count == -ENOENT || count == 0 ? "there is no such process" : wf_strerror(count));
        return NULL;
    }
    return json_pack("[{s:o, s:o, s:o}]", "process", json_integer(process), "threads", threads, "memory",
                     memory_to_json(process));
}

/* --- a result --- */

static json_t *of_result(const char *path, struct wf_status *status)
{
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error), *nodes = json_array(), *host;
    size_t i;

    if (!root)
        wf_fail(status, -EINVAL, "--in-force %.80s: neither the number of a process nor a result: %.120s", path,
                error.text);
    json_array_foreach(json_object_get(root, "host"), i, host)
    {
        json_t *affinity = json_deep_copy(json_object_get(host, "affinity"));
        if (!json_is_object(affinity)) {
            json_decref(affinity);
            continue;
        }
        json_object_set(affinity, "node", json_object_get(host, "node"));
        json_object_set(affinity, "host", json_object_get(host, "name"));
        json_array_append_new(nodes, affinity);
    }
    if (root && json_array_size(nodes) == 0)
        wf_fail(status, -EINVAL,
                "--in-force %.80s: there is no affinity in it: not the JSON of a run, or of one that "
                "did not get so far",
                path);
    json_decref(root);
    if (json_array_size(nodes) > 0)
        return nodes;
    json_decref(nodes);
    return NULL;
}

/* --- text --- */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "-";
}

static const char *number_of(const json_t *object, const char *key, char room[24])
{
    const json_t *number = json_object_get(object, key);

    snprintf(room, 24, "%" JSON_INTEGER_FORMAT, json_integer_value(number));
    return json_is_integer(number) ? room : "-";
}

static void print_threads(FILE *out, const json_t *node)
{
    size_t i;
    json_t *thread;
    char cpu[24], numa[24];

    fprintf(out, "  %-16s %-7s %-16s %-20s %-20s %4s %4s\n", "thread", "role", "rail", "planned", "allowed", "last",
            "node");
    json_array_foreach(json_object_get(node, "threads"), i, thread) fprintf(
        out, "  %-16.16s %-7.7s %-16.16s %-20.40s %-20.40s %4s %4s\n", text_of(thread, "name"), text_of(thread, "role"),
        text_of(thread, "rail"), text_of(thread, "planned_cpus"), text_of(thread, "allowed_cpus"),
        number_of(thread, "last_cpu", cpu), number_of(thread, "numa_node", numa));
}

static void print_memory(FILE *out, const json_t *node)
{
    size_t i;
    json_t *part;
    char numa[24], seen[24], there[24];

    json_array_foreach(json_object_get(node, "memory"), i, part)
        fprintf(out, "  memory on node %s: %.1f MiB\n", number_of(part, "numa_node", numa),
                (double)json_integer_value(json_object_get(part, "bytes")) / (1024 * 1024));
    json_array_foreach(json_object_get(node, "endpoints"), i, part)
    {
        fprintf(out, "  landings of %s: %s of %s pages seen on node %s", text_of(part, "endpoint"),
                number_of(part, "pages_there", there), number_of(part, "pages_seen", seen),
                number_of(part, "numa_node", numa));
        if (json_is_string(json_object_get(part, "refusal")))
            fprintf(out, "; putting them there: %s", text_of(part, "refusal"));
        fputc('\n', out);
    }
}

static void print(FILE *out, const json_t *nodes)
{
    size_t i;
    json_t *node;
    char process[24];

    json_array_foreach(nodes, i, node)
    {
        if (json_is_integer(json_object_get(node, "process")))
            fprintf(out, "in force in process %s\n", number_of(node, "process", process));
        else
            fprintf(out, "in force at %s (%s): pin %s, rail_policy %s\n", text_of(node, "node"), text_of(node, "host"),
                    text_of(node, "pin"), text_of(node, "rail_policy"));
        print_threads(out, node);
        print_memory(out, node);
    }
}

/* --- the option --- */

/* A number of a process, or -1. */
static pid_t process_of(const char *text)
{
    char *end;

    errno = 0;
    long number = isdigit((unsigned char)text[0]) ? strtol(text, &end, 10) : -1;
    return number > 0 && number <= INT_MAX && !errno && *end == '\0' ? (pid_t)number : -1;
}

int bench_topo_in_force(const struct bench_options *options)
{
    struct wf_status status = {0};
    pid_t process = process_of(options->in_force);
    json_t *nodes = process > 0 ? of_process(process, &status) : of_result(options->in_force, &status);

    if (!nodes)
        return bench_topo_refused(options, &status);
    int exit_status = bench_topo_leave(options, json_pack("{s:s, s:O}", "schema", "weft.topo/1", "in_force", nodes),
                                       &status, BENCH_PASSED);
    if (strcmp(wf_config_text(options->config, WF_SET_JSON), "-") != 0)
        print(stdout, nodes);
    json_decref(nodes);
    return exit_status;
}
