#include "show_config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/plan/help.h"
#include "bench/words/columns.h"
#include "bench/words/json.h"
#include "bench/words/words.h"
#include "weft.h"

#define NARROW BENCH_HELP_WIDTH /* columns where nobody says how many there are */
#define WIDE 120                /* from so many on, the meaning has a column of its own */

/* Columns of the table. */
enum { VALUE_AT = 20, ORIGIN_AT = 35, DEFAULT_AT = 56, MEANING_AT = 72, MEANING_BELOW_AT = 4 };

#define DETAIL_AT 15

/* The settings that are shown, each once. */
struct chosen {
    enum wf_setting_id ids[WF_SETTING_COUNT];
    int count;
    bool all; /* none was named */
};

static const char *group_name(enum wf_setting_group group)
{
    return group == WF_GROUP_LIBRARY ? "library" : "benchmark";
}

static const char *or_none(const char *text)
{
    return text[0] ? text : "none";
}

static void variable_of(const struct wf_setting *setting, char *text, size_t room)
{
    int used = snprintf(text, room, "WEFT_%s", setting->name);

    for (int i = 0; i < used; i++)
        text[i] = (char)toupper((unsigned char)text[i]);
}

/* --- which of them --- */

static int unknown_name(const char *name, struct wf_status *status)
{
    const char *words[WF_SETTING_COUNT + 32];
    int count = 0;

    for (int i = 0; i < WF_SETTING_COUNT; i++)
        words[count++] = wf_setting(i)->name;
    for (const struct wf_alias *alias = wf_config_aliases(); alias->variable && count < WF_SETTING_COUNT + 32; alias++)
        words[count++] = alias->variable;
    const char *nearest = bench_nearest(name, words, count);
    if (nearest)
        return wf_fail(status, -EINVAL, "unknown setting '%.60s': did you mean '%s'?", name, nearest);
    return wf_fail(status, -EINVAL, "unknown setting '%.60s': 'weft config' lists them", name);
}

static int choose(const struct bench_options *options, struct chosen *chosen, struct wf_status *status)
{
    bool taken[WF_SETTING_COUNT] = {false};

    *chosen = (struct chosen){.all = options->word_count == 0};
    for (int i = 0; i < options->word_count; i++) {
        int id = wf_setting_find_any(options->words[i]);
        if (id < 0)
            return unknown_name(options->words[i], status);
        if (!taken[id])
            chosen->ids[chosen->count++] = (enum wf_setting_id)id;
        taken[id] = true;
    }
    for (int i = 0; chosen->all && i < WF_SETTING_COUNT; i++)
        chosen->ids[chosen->count++] = (enum wf_setting_id)i;
    return 0;
}

/* --- the table --- */

/* A cell that does not fit behind the ones before it goes to the next line. */
static void put_table_cell(const char *text, int at, int *column, int width)
{
    int start = *column >= at && *column > 0 ? *column + 1 : at;

    if (start > VALUE_AT && start + (int)strlen(text) > width) {
        putchar('\n');
        *column = 0;
        start = VALUE_AT;
    }
    *column += printf("%*s", start - *column, "");
    bench_put_wrapped(stdout, text, column, VALUE_AT, width);
}

static void put_row(const char *name, const char *value, const char *origin, const char *fallback, const char *meaning,
                    int width)
{
    int column = 0, meaning_at = width >= WIDE ? MEANING_AT : MEANING_BELOW_AT;

    put_table_cell(name, 0, &column, width);
    put_table_cell(value, VALUE_AT, &column, width);
    put_table_cell(origin, ORIGIN_AT, &column, width);
    put_table_cell(fallback, DEFAULT_AT, &column, width);
    if (column >= meaning_at)
        column = printf("\n") - 1;
    column += printf("%*s", meaning_at - column, "");
    bench_put_wrapped(stdout, meaning, &column, meaning_at, width);
    putchar('\n');
}

static void show_table(const struct wf_config *config)
{
    int width = bench_columns(stdout);

    for (int group = WF_GROUP_LIBRARY; group <= WF_GROUP_BENCH; group++) {
        printf("%s%s settings\n", group ? "\n" : "", group_name(group));
        put_row("name", "value", "origin", "default", "meaning", width);
        for (int i = 0; i < WF_SETTING_COUNT; i++)
            if (wf_setting(i)->group == (enum wf_setting_group)group)
                put_row(wf_setting(i)->name, or_none(wf_config_text(config, i)), config->values[i].source,
                        or_none(wf_setting(i)->fallback), wf_setting(i)->help, width);
    }
}

/* --- all of one --- */

static void put_detail(const char *what, const char *text, int width)
{
    int column = printf("  %-*s", DETAIL_AT - 2, what);

    bench_put_wrapped(stdout, text, &column, DETAIL_AT, width);
    putchar('\n');
}

static void allowed_in_full(const struct wf_setting *setting, char *text, size_t room)
{
    char plain[256];

    snprintf(text, room, "%s%s%s%s", wf_setting_allowed(setting, plain, sizeof plain), setting->unit[0] ? " " : "",
             setting->unit,
             !wf_setting_is_switch(setting)  ? ""
             : setting->type == WF_TYPE_FLAG ? "; also off|on, no|yes, false|true"
                                             : "; also 0|1, no|yes, false|true");
}

/* "--chunk SIZE (mesh, pair, peers)" */
static void option_in_full(enum wf_setting_id id, char *text, size_t room)
{
    const struct wf_setting *setting = wf_setting(id);
    const char *value = wf_setting_value_name(setting), *before = " (weft ";
    char name[40], letter[8] = "";

    bench_option_name(setting, name, sizeof name);
    if (bench_option_letter(id))
        snprintf(letter, sizeof letter, "-%c, ", bench_option_letter(id));
    size_t used = (size_t)snprintf(text, room, "%s--%s%s%s", letter, name, value ? " " : "", value ? value : "");
    for (const struct bench_about *about = bench_commands(); about->name && used < room; about++) {
        if (!(setting->uses & about->command))
            continue;
        used += (size_t)snprintf(text + used, room - used, "%s%s", before, about->name);
        before = ", ";
    }
    if (used < room)
        snprintf(text + used, room - used, ")");
}

static void aliases_of(enum wf_setting_id id, char *text, size_t room)
{
    size_t used = 0;

    text[0] = '\0';
    for (const struct wf_alias *alias = wf_config_aliases(); alias->variable && used < room; alias++)
        if (alias->id == id)
            used += (size_t)snprintf(text + used, room - used, "%s%s", used ? ", " : "", alias->variable);
}

/* The whole meaning: the caller frees it. */
static char *meaning_of(const struct wf_setting *setting)
{
    char *text;

    if (asprintf(&text, "%s%s%s", setting->help, setting->more ? " " : "", setting->more ? setting->more : "") < 0)
        return NULL;
    return text;
}

static void show_one(const struct wf_config *config, enum wf_setting_id id, int width)
{
    const struct wf_setting *setting = wf_setting(id);
    char text[512], *meaning = meaning_of(setting);

    printf("%s\n", setting->name);
    put_detail("value", or_none(wf_config_text(config, id)), width);
    put_detail("origin", config->values[id].source, width);
    put_detail("default", or_none(setting->fallback), width);
    allowed_in_full(setting, text, sizeof text);
    put_detail("allowed", text, width);
    put_detail("meaning", meaning ? meaning : setting->help, width);
    option_in_full(id, text, sizeof text);
    put_detail("option", text, width);
    variable_of(setting, text, sizeof text);
    put_detail("environment", text, width);
    aliases_of(id, text, sizeof text);
    if (text[0])
        put_detail("aliases", text, width);
    free(meaning);
}

static void show_each(const struct wf_config *config, const struct chosen *chosen)
{
    for (int i = 0; i < chosen->count; i++) {
        if (i > 0)
            putchar('\n');
        show_one(config, chosen->ids[i], bench_columns(stdout));
    }
}

/* --- the page of the documentation --- */

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
            variable_of(setting, text, sizeof text);
            printf("| `%s` | `%s` | %s%s%s | ", setting->name, text, setting->fallback[0] ? "`" : "none",
                   setting->fallback, setting->fallback[0] ? "`" : "");
            put_cell(wf_setting_allowed(setting, text, sizeof text));
            printf(" | %s | ", setting->unit);
            put_cell(setting->help);
            if (setting->more) {
                putchar(' ');
                put_cell(setting->more);
            }
            printf(" |\n");
        }
    }
    printf("\n## Names of other systems\n\n| variable | acts on |\n|---|---|\n");
    for (const struct wf_alias *alias = wf_config_aliases(); alias->variable; alias++)
        printf("| `%s` | `%s` |\n", alias->variable, wf_setting(alias->id)->name);
}

/* --- JSON --- */

static json_t *setting_to_json(const struct wf_setting *setting, json_t *entry)
{
    char text[256], *meaning = meaning_of(setting);

    json_object_set_new(entry, "default", json_string(setting->fallback));
    json_object_set_new(entry, "allowed", json_string(wf_setting_allowed(setting, text, sizeof text)));
    json_object_set_new(entry, "unit", json_string(setting->unit));
    json_object_set_new(entry, "group", json_string(group_name(setting->group)));
    json_object_set_new(entry, "meaning", json_string(meaning ? meaning : setting->help));
    free(meaning);
    return entry;
}

static int show_json(const struct wf_config *config, const struct chosen *chosen, const char *path)
{
    json_t *root = json_object(), *all = bench_config_to_json(config), *shown = json_object();
    struct wf_status status = {0};

    for (int i = 0; i < chosen->count; i++) {
        const struct wf_setting *setting = wf_setting(chosen->ids[i]);
        json_object_set(shown, setting->name, setting_to_json(setting, json_object_get(all, setting->name)));
    }
    json_object_set_new(root, "schema", json_string("weft.config/1"));
    json_object_set_new(root, "version", json_string(weft_version()));
    json_object_set_new(root, "config", shown);
    int result = bench_write_json(root, path, &status);
    json_decref(root);
    json_decref(all);
    if (result == 0)
        return BENCH_PASSED;
    fprintf(stderr, "weft: %s\n", status.text);
    return BENCH_FAILED;
}

int bench_show_config(const struct bench_options *options)
{
    const char *json = wf_config_text(options->config, WF_SET_JSON);
    struct wf_status status = {0};
    struct chosen chosen;
    int result = choose(options, &chosen, &status);

    if (result == 0 && options->markdown && !chosen.all)
        result = wf_fail(&status, -EINVAL, "--markdown prints all settings: leave out the names");
    if (result) {
        fprintf(stderr, "weft: %s\n", status.text);
        return BENCH_USAGE;
    }
    if (options->markdown)
        show_markdown();
    else if (json[0])
        return show_json(options->config, &chosen, json);
    else if (chosen.all)
        show_table(options->config);
    else
        show_each(options->config, &chosen);
    return BENCH_PASSED; /* main() looks at what became of standard output */
}
