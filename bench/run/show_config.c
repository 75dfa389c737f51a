#include "show_config.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench/words/json.h"
#include "weft.h"

static const char *group_name(enum wf_setting_group group)
{
    return group == WF_GROUP_LIBRARY ? "library" : "benchmark";
}

/* What a setting takes: "4K..64M", "auto|epoll", "0|1", "text". */
static void allowed(const struct wf_setting *setting, char *text, size_t room)
{
    char least[32], most[32];

    switch (setting->type) {
    case WF_TYPE_INT:
        snprintf(text, room, "%" PRId64 "..%" PRId64, setting->min, setting->max);
        break;
    case WF_TYPE_SIZE:
    case WF_TYPE_SIZES:
        snprintf(text, room, "%s..%s%s", wf_format_size((uint64_t)setting->min, least, sizeof least),
                 wf_format_size((uint64_t)setting->max, most, sizeof most),
                 setting->type == WF_TYPE_SIZES ? ", …" : "");
        break;
    case WF_TYPE_CHOICE:
        snprintf(text, room, "%s%s", setting->choices, setting->list ? ", …" : "");
        break;
    case WF_TYPE_FLAG:
        snprintf(text, room, "0|1");
        break;
    default:
        snprintf(text, room, "text");
    }
}

static void show_text(const struct wf_config *config)
{
    for (int group = WF_GROUP_LIBRARY; group <= WF_GROUP_BENCH; group++) {
        printf("%s%s settings\n%-16s %-14s %-28s %-14s %s\n", group ? "\n" : "", group_name(group), "name", "value",
               "origin", "default", "meaning");
        for (int i = 0; i < WF_SETTING_COUNT; i++) {
            const struct wf_setting *setting = wf_setting(i);
            const char *value = wf_config_text(config, i);
            if (setting->group != (enum wf_setting_group)group)
                continue;
            printf("%-16s %-14s %-28s %-14s %s%s%s%s\n", setting->name, value[0] ? value : "none",
                   config->values[i].source, setting->fallback[0] ? setting->fallback : "none", setting->help,
                   setting->unit[0] ? " (" : "", setting->unit, setting->unit[0] ? ")" : "");
        }
    }
}

/* Text within a table cell. */
static void put_cell(const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            putchar('\\');
        putchar(*text);
    }
}

static void show_markdown(void)
{
    for (int group = WF_GROUP_LIBRARY; group <= WF_GROUP_BENCH; group++) {
        printf("%s## %s settings\n\n| name | environment | default | allowed | unit | meaning "
               "|\n|---|---|---|---|---|---|\n",
               group ? "\n" : "", group ? "Benchmark" : "Library");
        for (int i = 0; i < WF_SETTING_COUNT; i++) {
            const struct wf_setting *setting = wf_setting(i);
            char text[256];
            if (setting->group != (enum wf_setting_group)group)
                continue;
            printf("| `%s` | `WEFT_", setting->name);
            for (const char *at = setting->name; *at; at++)
                putchar(toupper((unsigned char)*at));
            printf("` | %s%s%s | ", setting->fallback[0] ? "`" : "none", setting->fallback,
                   setting->fallback[0] ? "`" : "");
            allowed(setting, text, sizeof text);
            put_cell(text);
            printf(" | %s | ", setting->unit);
            put_cell(setting->help);
            printf(" |\n");
        }
    }
    printf("\n## Names of other systems\n\n| variable | acts on |\n|---|---|\n");
    for (const struct wf_alias *alias = wf_config_aliases(); alias->variable; alias++)
        printf("| `%s` | `%s` |\n", alias->variable, wf_setting(alias->id)->name);
}

static int show_json(const struct wf_config *config, const char *path)
{
    json_t *root = json_object();
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");

    json_object_set_new(root, "schema", json_string("weft.config/1"));
    json_object_set_new(root, "version", json_string(weft_version()));
    json_object_set_new(root, "config", bench_config_to_json(config));
    for (int i = 0; i < WF_SETTING_COUNT; i++) {
        const struct wf_setting *setting = wf_setting(i);
        json_t *entry = json_object_get(json_object_get(root, "config"), setting->name);
        char text[256];
        allowed(setting, text, sizeof text);
        json_object_set_new(entry, "default", json_string(setting->fallback));
        json_object_set_new(entry, "allowed", json_string(text));
        json_object_set_new(entry, "unit", json_string(setting->unit));
        json_object_set_new(entry, "group", json_string(group_name(setting->group)));
        json_object_set_new(entry, "meaning", json_string(setting->help));
    }
    int result = file ? json_dumpf(root, file, JSON_INDENT(1)) : -1;
    if (file && (fputc('\n', file) == EOF || (file == stdout ? fflush(file) : fclose(file)) != 0))
        result = -1;
    json_decref(root);
    if (result == 0)
        return BENCH_PASSED;
    fprintf(stderr, "weft: cannot write %s\n", path);
    return BENCH_FAILED;
}

int bench_show_config(const struct bench_options *options)
{
    const char *json = wf_config_text(options->config, WF_SET_JSON);

    if (options->markdown)
        show_markdown();
    else if (json[0])
        return show_json(options->config, json);
    else
        show_text(options->config);
    return BENCH_PASSED; /* main() looks at what became of standard output */
}
