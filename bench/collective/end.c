#include "end.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "bench/words/folder.h"
#include "bench/words/heard.h"
#include "bench/words/host.h"
#include "bench/words/interrupt.h"
#include "bench/words/json.h"
#include "bench/words/words.h"
#include "weft.h"

void coll_end_keep(struct coll_end *end, const struct wf_status *status)
{
    if (end->error[0])
        return;
    bench_copy_text(end->error, sizeof end->error, status->text);
    end->error_code = status->code;
}

int coll_failed(const struct coll_end *end)
{
    return end->error_code == -EINVAL ? BENCH_USAGE : BENCH_FAILED;
}

void coll_end_note_signal(struct coll_end *end)
{
    if (!bench_interrupt_signal())
        return;
    snprintf(end->error, sizeof end->error, "interrupted by %s", bench_signal_name(bench_interrupt_signal()));
    end->error_code = -EINTR;
}

/* --- reasons --- */

void coll_reason_add(json_t *list, const char *why, const char *format, ...)
{
    char what[160];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(list, i), "what")), what) == 0)
            return;
    json_array_append_new(list, json_pack("{s:s, s:o}", "what", what, "reason", bench_heard_string(why)));
}

void coll_reasons_put(FILE *out, const json_t *list, const char *word)
{
    size_t index;
    json_t *entry;

    json_array_foreach(list, index, entry)
        fprintf(out, "# %s: %s: %s\n", word, json_string_value(json_object_get(entry, "what")),
                json_string_value(json_object_get(entry, "reason")));
}

/* --- results --- */

json_t *coll_head_to_json(const char *schema, const struct bench_options *options, const struct coll_end *end)
{
    json_t *root = json_object();

    json_object_set_new(root, "schema", json_string(schema));
    json_object_set_new(root, "command", json_string(bench_command_name(options->command)));
    json_object_set_new(root, "version", json_string(weft_version()));
    json_object_set_new(root, "started", json_string(end->time.started));
    json_object_set_new(root, "interrupted", json_boolean(bench_interrupt_signal() != 0));
    json_object_set_new(root, "error", end->error[0] ? bench_heard_string(end->error) : json_null());
    json_object_set_new(root, "error_code", bench_error_code_to_json(end->error_code));
    json_object_set_new(root, "exit_status", json_integer(end->exit_status));
    json_object_set_new(root, "host", json_pack("[o]", bench_host_to_json("node0")));
    json_object_set_new(root, "config", bench_config_to_json(options->config));
    return root;
}

int coll_write_result(json_t *root, const char *name, const struct bench_options *options, struct wf_status *status)
{
    const char *out = wf_config_text(options->config, WF_SET_OUT), *json = wf_config_text(options->config, WF_SET_JSON);
    char path[WF_VALUE_MAX + 32];
    int result = 0;

    if (out[0]) {
        snprintf(path, sizeof path, "%s/%s", out, name);
        result = bench_make_folder(out, status);
        if (result == 0)
            result = bench_write_json(root, path, status);
    }
    if (json[0] && result == 0)
        result = bench_write_json(root, json, status);
    json_decref(root);
    return result;
}
