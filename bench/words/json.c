#include "json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "words.h"

static json_t *value_to_json(const struct wf_setting *setting, const struct wf_value *value)
{
    if (setting->type == WF_TYPE_INT || setting->type == WF_TYPE_SIZE)
        return json_integer(value->number);
    if (setting->type == WF_TYPE_FLAG)
        return json_boolean(value->number != 0);
    return json_string(value->text);
}

json_t *bench_config_to_json(const struct wf_config *config)
{
    json_t *object = json_object();

    for (int i = 0; i < WF_SETTING_COUNT; i++) {
        const struct wf_value *value = &config->values[i];
        json_object_set_new(
            object, wf_setting(i)->name,
            json_pack("{s:o, s:s}", "value", value_to_json(wf_setting(i), value), "origin", value->source));
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

static int write_stream(const json_t *root, FILE *file)
{
    errno = 0;
    if (json_dumpf(root, file, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) != 0 || fputc('\n', file) == EOF ||
        fflush(file) != 0)
        return errno ? -errno : -EIO;
    return 0;
}

static int write_path(const json_t *root, const char *path)
{
    FILE *file = fopen(path, "we");
    if (!file)
        return -errno;
    int result = write_stream(root, file);
    if (fclose(file) != 0 && result == 0)
        result = -errno;
    return result;
}

/* A reader never sees half a file: it is written beside its place and moved there. A device or a pipe is written to,
 * and so is what a link leads to, which may be standard output. */
static int write_file(const json_t *root, const char *path)
{
    struct stat there;
    if (lstat(path, &there) == 0 && !S_ISREG(there.st_mode))
        return write_path(root, path);
    char temporary[WF_VALUE_MAX + 48];
    snprintf(temporary, sizeof temporary, "%s.part", path);
    int result = write_path(root, temporary);
    if (result == 0 && rename(temporary, path) != 0)
        result = -errno;
    if (result < 0)
        unlink(temporary);
    return result;
}

int bench_write_json(const json_t *root, const char *path, struct wf_status *status)
{
    bool standard = strcmp(path, "-") == 0;
    int result = standard ? write_stream(root, stdout) : write_file(root, path);

    return result < 0 ? bench_cannot_write(path, result, status) : 0;
}
