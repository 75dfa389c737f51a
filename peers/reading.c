#include "reading.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

int peer_number(const char *text, double *out)
{
    size_t length = strspn(text, "0123456789.eE+-");
    char *end;

    if (length == 0 || text[0] < '0' || text[0] > '9' || text[length + strspn(text + length, " \t\r")] != '\0')
        return -EINVAL;
    double number = strtod(text, &end);
    if (end != text + length || !isfinite(number))
        return -EINVAL;
    *out = number;
    return 0;
}

const char *peer_columns(const char *text, const char *marks, struct peer_columns *out)
{
    char *rest;

    text += strspn(text, "\r\n \t");
    size_t length = strcspn(text, "\n");
    if (length == 0 || length >= sizeof out->text || text[length] != '\n')
        return NULL;
    memcpy(out->text, text, length);
    out->text[length] = '\0';
    out->count = 0;
    for (char *word = strtok_r(out->text, marks, &rest); word; word = strtok_r(NULL, marks, &rest)) {
        if (out->count == PEER_COLUMNS_MAX)
            return NULL;
        out->words[out->count++] = word;
    }
    return text + length;
}

int peer_column(const struct peer_columns *columns, const char *name)
{
    for (int i = 0; i < columns->count; i++)
        if (strcmp(columns->words[i], name) == 0)
            return i;
    return -1;
}

int peer_not_understood(const char *program, const char *text, struct wf_status *status)
{
    text += strspn(text, "\r\n \t-");
    if (!text[0])
        return wf_fail(status, -EPROTO, "%s printed nothing", program);
    size_t length = strcspn(text, "\r\n");
    return wf_fail(status, -EPROTO, "%s printed no result: '%.*s'", program, (int)(length < 120 ? length : 120), text);
}

double peer_cpu_per_gb(const struct peer_case *asked, const struct peer_output *server,
                       const struct peer_output *client, int ways)
{
    double bytes = (double)asked->size * (double)(asked->messages + asked->warmup) * ways;
    double server_s = server ? server->cpu_s : 0;

    return server_s < 0 || client->cpu_s < 0 || bytes <= 0 ? -1 : (server_s + client->cpu_s) / (bytes / 1e9);
}

/* --- our own programs --- */

/* The line of JSON. A program that starts Weft's (mpirun) may print other lines before it. */
static const char *json_line(const char *text)
{
    while (text && *text != '{') {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return text;
}

double peer_json_number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return json_is_number(value) && json_number_value(value) >= 0 ? json_number_value(value) : -1;
}

static int take_reading(const struct peer_case *asked, const char *program, const json_t *root,
                        struct peer_reading *out, struct wf_status *status)
{
    struct peer_reading read = {
        .gb_per_s = peer_json_number(root, "gb_per_s"),
        .messages_per_s = peer_json_number(root, "messages_per_s"),
        .p50_us = peer_json_number(root, "p50_us"),
        .p99_us = peer_json_number(root, "p99_us"),
        .mean_us = peer_json_number(root, "mean_us"),
        .cpu_s_per_gb = peer_json_number(root, "cpu_s_per_gb"),
    };
    bool latency = asked->metric == PEER_LATENCY;

    if (latency && (read.p50_us <= 0 || read.p99_us <= 0 || read.mean_us <= 0))
        return wf_fail(status, -EPROTO, "%s told no p50_us, p99_us and mean_us above 0", program);
    if (!latency && (read.gb_per_s <= 0 || read.messages_per_s <= 0))
        return wf_fail(status, -EPROTO, "%s told no gb_per_s and messages_per_s above 0", program);
    *out = read;
    return 0;
}

int peer_read_json(const struct peer_case *asked, const char *program, const char *schema, const char *text,
                   struct peer_reading *out, struct wf_status *status)
{
    const char *line = json_line(text);
    json_t *root = line ? json_loads(line, JSON_DISABLE_EOF_CHECK, NULL) : NULL;

    if (!root)
        return peer_not_understood(program, text, status);
    const char *told = json_string_value(json_object_get(root, "schema"));
    int result = told && strcmp(told, schema) == 0
                     ? take_reading(asked, program, root, out, status)
                     : wf_fail(status, -EPROTO, "%s printed the schema '%.40s', expected '%s'", program,
                               told ? told : "", schema);
    json_decref(root);
    return result;
}

/* --- the machine --- */

static bool named_before(const struct peer_place *place, int index)
{
    for (int i = 0; i < index; i++)
        if (strcmp(place->devices[i], place->devices[index]) == 0)
            return true;
    return false;
}

int peer_devices(const struct peer_place *place, char *list, size_t room)
{
    size_t used = 0;
    int count = 0;

    for (int i = 0; i < place->rail_count; i++) {
        const char *device = place->devices[i];
        if (!device || !device[0])
            return 0;
        if (named_before(place, i))
            continue;
        size_t length = strlen(device) + (count > 0);
        if (used + length >= room)
            return -ENOBUFS;
        if (count++)
            list[used++] = ',';
        memcpy(list + used, device, strlen(device) + 1);
        used += strlen(device);
    }
    return count;
}

int peer_processors(void)
{
    cpu_set_t allowed;

    return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
}

char *peer_make_utf8(char *text)
{
    wf_text_utf8(text);
    return text;
}
