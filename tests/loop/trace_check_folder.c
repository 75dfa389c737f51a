/* The folder: its log, and its files in turn. */
#include "trace_check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int check_refuse(struct check *check, const char *format, ...)
{
    va_list arguments;
    char text[400];

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(check->why, sizeof check->why, "%.150s: %s", check->file, text);
    return -1;
}

static const char *type_name(json_type type)
{
    static const char *const names[] = {"an object", "an array", "a text", "an integer",
                                        "a real",    "true",     "false",  "null"};

    return names[type];
}

json_t *check_member(struct check *check, const json_t *object, const char *place, const char *name, json_type type)
{
    json_t *member = json_object_get(object, name);

    if (member && json_typeof(member) == type)
        return member;
    check_refuse(check, "%.80s: '%s' is %s, and has to be %s", place, name,
                 member ? type_name(json_typeof(member)) : "not there", type_name(type));
    return NULL;
}

/* --- the log --- */

#define HEADER "config_id,src,dst,size,repetition,timestamp_start_ns,timestamp_end_ns,duration_ns\n"

static int take_row(struct check *check, const char *line)
{
    struct check_row row = {0};
    int64_t duration;
    int end = -1;

    if (sscanf(line, "%u,%u,%u,%llu,%u,%" SCNd64 ",%" SCNd64 ",%" SCNd64 "%n", &row.config, &row.src, &row.dst,
               &row.size, &row.repetition, &row.start_ns, &row.end_ns, &duration, &end) != 8 ||
        strcmp(line + end, "\n") != 0)
        return check_refuse(check, "line %zu is no row: %.100s", check->count + 2, line);
    if (duration < 0 || duration != row.end_ns - row.start_ns)
        return check_refuse(check, "line %zu: the duration is %" PRId64 ", and end - start is %" PRId64,
                            check->count + 2, duration, row.end_ns - row.start_ns);
    if (check->count && check->rows[check->count - 1].start_ns > row.start_ns)
        return check_refuse(check, "line %zu begins before the one above it", check->count + 2);
    struct check_row *rows = realloc(check->rows, (check->count + 1) * sizeof *rows);
    if (!rows)
        return check_refuse(check, "no memory");
    check->rows = rows;
    rows[check->count++] = row;
    return 0;
}

int check_read_log(struct check *check, const char *folder)
{
    char line[300];
    int result = 0;

    snprintf(check->file, sizeof check->file, "%s/execution_log.csv", folder);
    FILE *file = fopen(check->file, "r");
    if (!file)
        return check_refuse(check, "cannot be read");
    if (!fgets(line, sizeof line, file) || strcmp(line, HEADER) != 0)
        result = check_refuse(check, "its first line has to be %s", HEADER);
    while (result == 0 && fgets(line, sizeof line, file))
        result = take_row(check, line);
    fclose(file);
    if (result == 0 && check->count == 0)
        result = check_refuse(check, "there are no messages in it");
    return result;
}

static bool is_message(const struct check_row *row, const struct check_row *wanted)
{
    return row->config == wanted->config && row->src == wanted->src && row->dst == wanted->dst &&
           row->size == wanted->size && row->repetition == wanted->repetition;
}

struct check_row *check_find(struct check *check, const char *name, int *side)
{
    struct check_row wanted;
    int end = -1;

    if (sscanf(name, "p2p_cfg%u_s%ud%u_sz%llu_r%u%n", &wanted.config, &wanted.src, &wanted.dst, &wanted.size,
               &wanted.repetition, &end) != 5 ||
        name[end] != '\0' || strspn(name + strlen("p2p_cfg"), "0123456789") < 4) {
        check_refuse(check, "'%.100s' is no name of a message", name);
        return NULL;
    }
    if (wanted.src != check->rank && wanted.dst != check->rank) {
        check_refuse(check, "%.100s is no message of rank %u", name, check->rank);
        return NULL;
    }
    *side = wanted.src == check->rank ? 0 : 1;
    for (size_t i = 0; i < check->count; i++) {
        struct check_row *row = &check->rows[(check->cursor + i) % check->count];
        if (!is_message(row, &wanted))
            continue;
        check->cursor = (size_t)(row - check->rows) + 1;
        return row;
    }
    check_refuse(check, "%.100s is not in the log", name);
    return NULL;
}

/* --- the folder --- */

static int check_file(struct check *check, const char *folder, const char *ending,
                      int (*look)(struct check *check, const json_t *root))
{
    json_error_t error;

    snprintf(check->file, sizeof check->file, "%s/rank_%u%s", folder, check->rank, ending);
    json_t *root = json_load_file(check->file, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return check_refuse(check, "line %d: %.100s", error.line, error.text);
    check->cursor = 0;
    int result = look(check, root);
    json_decref(root);
    return result;
}

static int check_found(struct check *check, const char *folder)
{
    snprintf(check->file, sizeof check->file, "%s/execution_log.csv", folder);
    for (size_t i = 0; i < check->count; i++)
        for (int side = 0; side < 2; side++) {
            const struct check_row *row = &check->rows[i];
            unsigned rank = side ? row->dst : row->src;
            if (!row->traced[side])
                return check_refuse(check, "line %zu is not in the trace of rank %u", i + 2, rank);
            if (!row->graphed[side])
                return check_refuse(check, "line %zu is not in the graph of rank %u", i + 2, rank);
            if (check->pieces && row->weft && row->size && !row->pieces)
                return check_refuse(check, "line %zu has no chunk in the trace of either rank", i + 2);
        }
    return 0;
}

int check_folder(struct check *check, const char *folder, bool pieces)
{
    *check = (struct check){.world = 1, .pieces = pieces};
    int result = check_read_log(check, folder);

    for (; result == 0 && check->rank < check->world; check->rank++) {
        result = check_file(check, folder, ".pt.trace.json", check_trace);
        if (result == 0)
            result = check_file(check, folder, "_CPU_trace.json", check_graph);
    }
    return result == 0 ? check_found(check, folder) : result;
}

void check_end(struct check *check)
{
    free(check->rows);
    *check = (struct check){0};
}
