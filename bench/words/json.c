#include "json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "heard.h"
#include "whole.h"

static json_t *value_to_json(const struct wf_setting *setting, const struct wf_value *value)
{
    if (setting->type == WF_TYPE_INT || setting->type == WF_TYPE_SIZE)
        return json_integer(value->number);
    if (setting->type == WF_TYPE_FLAG)
        return json_boolean(value->number != 0);
    return bench_heard_string(value->text);
}

json_t *bench_config_to_json(const struct wf_config *config)
{
    json_t *object = json_object();

    for (int i = 0; i < WF_SETTING_COUNT; i++) {
        const struct wf_value *value = &config->values[i];
        json_object_set_new(object, wf_setting(i)->name,
                            json_pack("{s:o, s:o}", "value", value_to_json(wf_setting(i), value), "origin",
                                      bench_heard_string(value->source)));
    }
    return object;
}

json_t *bench_error_code_to_json(int code)
{
    const char *name = code ? strerrorname_np(-code) : NULL;

    return name ? json_string(name) : json_null();
}

json_t *bench_number_or_null(double value)
{
    return value < 0 ? json_null() : json_real(value);
}

static int put_json(const void *root, FILE *file)
{
    if (json_dumpf(root, file, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) != 0 || fputc('\n', file) == EOF)
        return errno ? -errno : -EIO;
    return 0;
}

int bench_write_json(const json_t *root, const char *path, struct wf_status *status)
{
    return bench_write_whole(path, put_json, root, status);
}
