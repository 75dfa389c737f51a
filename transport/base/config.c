#include "base/config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/config_parts.h"
#include "base/fault_spec.h"
#include "base/guess.h"
#include "base/key_file.h"

#define QUOTE_ROOM 64 /* of a value at fault in a message, which has to leave room for what is allowed */

/* ------------------------------------------------------------------------------------------- names */

const char *wf_config_nearest(const char *name, size_t count)
{
    struct wf_guess guess;

    wf_guess_init(&guess, name);
    for (size_t i = 0; i < count; i++)
        wf_guess_offer(&guess, wf_config_name(i));
    return guess.best;
}

/* Copies with every byte passed through `change`; a longer text is cut. */
void wf_text_changed(char *out, size_t room, const char *text, char (*change)(char))
{
    size_t i = 0;

    for (; text[i] && i + 1 < room; i++)
        out[i] = change(text[i]);
    out[i] = '\0';
}

static char underscored(char c)
{
    return c == '-' ? '_' : c;
}

/* Not tolower(): the names are ASCII whatever the locale. */
char wf_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

char wf_upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* "chunk" for what elsewhere is "CHUNK", "WEFT_CHUNK", "export WEFT_CHUNK" or "--chunk", so that a guess finds it. */
static void plain_name(const char *name, char *out, size_t room)
{
    static const char *const before[] = {"export ", "--", "WEFT_", "weft_"};

    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
        if (strncmp(name, before[i], strlen(before[i])) == 0)
            name += strlen(before[i]);
    wf_text_changed(out, room, name, wf_lower);
    wf_text_changed(out, room, out, underscored);
}

/* The setting that a variable of another program stands for, or NULL. */
static const char *alias_of(const char *variable)
{
    for (const struct wf_alias *alias = wf_config_aliases(); alias->variable; alias++)
        if (strcmp(alias->variable, variable) == 0)
            return wf_setting(alias->id)->name;
    return NULL;
}

int wf_setting_find(const char *name, struct wf_status *status)
{
    char plain[WF_NAME_ROOM + 1]; /* a cut name is still too long for a suggestion */
    const char *near = alias_of(name);

    wf_text_changed(plain, sizeof(plain), name, underscored);
    for (int id = 0; id < WF_SETTING_COUNT; id++)
        if (strcmp(plain, wf_setting((enum wf_setting_id)id)->name) == 0)
            return id;
    plain_name(name, plain, sizeof(plain));
    near = near ? near : wf_config_nearest(plain, WF_SETTING_COUNT);
    if (near)
        return wf_fail(status, -ENOENT, "unknown setting '%.60s': did you mean '%s'?", name, near);
    return wf_fail(status, -ENOENT, "unknown setting '%.60s': see 'weft config'", name);
}

/* ------------------------------------------------------------------------------------------- values */

/* What the range of the table cannot say. Payload starts on a cache line. */
static int64_t step_of(const struct wf_setting *setting)
{
    if (setting == wf_setting(WF_SET_SOCKET_BUFFER))
        return 4096; /* less than a segment makes every byte wait for a timer of TCP's */
    return setting == wf_setting(WF_SET_HEADER_PAD) ? 64 : 1;
}

static int check_range(const struct wf_setting *setting, int64_t number)
{
    return number >= setting->min && number <= setting->max && number % step_of(setting) == 0 ? 0 : -EINVAL;
}

static int parse_int(const struct wf_setting *setting, const char *text, int64_t *number)
{
    char *end;
    long long value;

    /* Also where the least number is larger. */
    if (setting->zero && (strcmp(text, setting->zero) == 0 || strcmp(text, "0") == 0)) {
        *number = 0;
        return 0;
    }
    /* strtoll() alone would take blanks and a plus sign. */
    if (*text != '-' && (*text < '0' || *text > '9'))
        return -EINVAL;
    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno || end == text || *end)
        return -EINVAL;
    *number = value;
    return check_range(setting, value);
}

static int parse_size(const struct wf_setting *setting, const char *text, int64_t *number)
{
    uint64_t bytes;
    int rc = wf_parse_size(text, &bytes);

    if (rc)
        return rc;
    *number = (int64_t)bytes;
    return check_range(setting, *number);
}

/* Cuts the next item of a comma separated list out of `*list`; false when the list is used up. A list has one item
 * more than commas: items may be empty. `*list` is NULL after the last one. */
static bool next_item(const char **list, char *item, size_t room, bool *fits)
{
    size_t length;

    if (!*list)
        return false;
    length = strcspn(*list, ",");
    *fits = length < room;
    if (*fits) {
        memcpy(item, *list, length);
        item[length] = '\0';
    }
    *list = (*list)[length] ? *list + length + 1 : NULL;
    return true;
}

static int parse_sizes(const struct wf_setting *setting, const char *text, int64_t *number)
{
    char item[WF_NAME_ROOM];
    int64_t ignored;
    bool fits;

    *number = 0;
    if (*text == '\0')
        return 0;
    while (next_item(&text, item, sizeof(item), &fits))
        if (!fits || parse_size(setting, item, &ignored) != 0)
            return -EINVAL;
    return 0;
}

static int parse_choice(const struct wf_setting *setting, const char *text, int64_t *number)
{
    char item[WF_NAME_ROOM];
    bool fits;

    *number = 0;
    if (!setting->list) {
        *number = wf_choice_index(setting->choices, text);
        return *number < 0 ? -EINVAL : 0;
    }
    while (next_item(&text, item, sizeof(item), &fits))
        if (!fits || wf_choice_index(setting->choices, item) < 0)
            return -EINVAL;
    return 0;
}

/* Control characters would break the lines of logs, files and results. */
static int parse_text(const struct wf_setting *setting, const char *text, int64_t *number)
{
    (void)setting;
    *number = 0;
    for (; *text; text++)
        if (wf_text_control(text))
            return -EINVAL;
    return 0;
}

static int parse_flag(const struct wf_setting *setting, const char *text, int64_t *number)
{
    int on = wf_setting_boolean(text);

    (void)setting;
    if (on < 0)
        return on;
    *number = on;
    return 0;
}

static int (*const parsers[])(const struct wf_setting *setting, const char *text, int64_t *number) = {
    [WF_TYPE_INT] = parse_int,   [WF_TYPE_SIZE] = parse_size, [WF_TYPE_CHOICE] = parse_choice,
    [WF_TYPE_TEXT] = parse_text, [WF_TYPE_FLAG] = parse_flag, [WF_TYPE_SIZES] = parse_sizes,
};

/* "a size from 64 to 64M": the end of the sentence "chunk = '1': expected …". */
static void describe_allowed(const struct wf_setting *setting, char *out, size_t room)
{
    char least[32], most[32];

    wf_format_size((uint64_t)setting->min, least, sizeof(least));
    wf_format_size((uint64_t)setting->max, most, sizeof(most));
    if (setting->type == WF_TYPE_INT)
        (void)snprintf(out, room, "a whole number from %" PRId64 " to %" PRId64, setting->min, setting->max);
    else if (setting->type == WF_TYPE_SIZE)
        (void)snprintf(out, room, "a size from %s to %s, such as 64K or 1M", least, most);
    else if (setting->type == WF_TYPE_SIZES)
        (void)snprintf(out, room, "sizes from %s to %s, such as 64K,1M", least, most);
    else if (setting->type == WF_TYPE_CHOICE)
        (void)snprintf(out, room, "%s %s", setting->list ? "a comma separated list of" : "one of", setting->choices);
    else if (setting->type == WF_TYPE_FLAG)
        (void)snprintf(out, room, "0 or 1 (off or on, no or yes, false or true)");
    else
        (void)snprintf(out, room, "a line of text without control characters");
}

/* What to write for the first item of `text` that is no size as it stands, but seems to mean one; or false. */
static bool find_meant(const struct wf_setting *setting, const char *text, char *item, char meant[32])
{
    uint64_t ignored;
    bool fits;

    if (setting->type != WF_TYPE_SIZE && setting->type != WF_TYPE_SIZES)
        return false;
    while (next_item(&text, item, WF_NAME_ROOM, &fits))
        if (!fits || wf_parse_size(item, &ignored) != 0)
            return fits && wf_size_meant(item, meant, 32);
    return false;
}

static int refuse(const struct wf_setting *setting, const char *text, struct wf_status *status)
{
    char allowed[128], step[32] = "", item[WF_NAME_ROOM], meant[32];
    bool cut = strlen(text) > QUOTE_ROOM;

    if (find_meant(setting, text, item, meant)) {
        bool whole = strcmp(item, text) == 0;
        return wf_fail(status, -EINVAL, "%s = '%.*s%s': write %s%s%s%s (K, M, G and T are powers of 1024)",
                       setting->name, QUOTE_ROOM, text, cut ? "..." : "", meant, whole ? "" : " for '",
                       whole ? "" : item, whole ? "" : "'");
    }
    describe_allowed(setting, allowed, sizeof(allowed));
    if (step_of(setting) != 1)
        (void)snprintf(step, sizeof(step), ", a multiple of %" PRId64, step_of(setting));
    return wf_fail(status, -EINVAL, "%s = '%.*s%s': expected %s%s", setting->name, QUOTE_ROOM, text, cut ? "..." : "",
                   allowed, step);
}

/* Text with a form of its own. */
static int check_faults(const char *text, struct wf_status *status)
{
    struct wf_fault_spec ignored;

    return wf_fault_parse(text, &ignored, status);
}

/* The key itself, where the name of its file belongs, is not repeated: what has been set is shown in many places. */
static int check_key_file(const char *text, struct wf_status *status)
{
    if (!wf_key_file_is_key(text))
        return 0;
    return wf_fail(status, -EINVAL,
                   "key_file: this is a key itself, and is to be kept secret: write it into a file "
                   "(chmod 600) and give the name of that");
}

/* A list as in 0,2,5-7, or all. Which GPUs there are is not known here. */
static int check_gpus(const char *text, struct wf_status *status)
{
    const char *at = text;

    while (*at >= '0' && *at <= '9') {
        at += strspn(at, "0123456789");
        if (*at == '-' && at[1] >= '0' && at[1] <= '9')
            at += 1 + strspn(at + 1, "0123456789");
        if (*at == ',' && at[1])
            at++;
    }
    if (*at == '\0' || strcmp(text, "all") == 0)
        return 0;
    return wf_fail(status, -EINVAL, "gpus = '%.60s': expected GPUs by number, as in 0,2,5-7, or all", text);
}

/* Checks `text` for the setting. */
static int parse_value(enum wf_setting_id id, const char *text, int64_t *number, struct wf_status *status)
{
    const struct wf_setting *setting = wf_setting(id);

    if (!setting)
        return wf_fail(status, -EINVAL, "there is no setting with the number %d", (int)id);
    if (strlen(text) >= WF_VALUE_MAX)
        return wf_fail(status, -EINVAL, "%s: the value has %zu characters, at most %d fit", setting->name, strlen(text),
                       WF_VALUE_MAX - 1);
    if (parsers[setting->type](setting, text, number) != 0)
        return refuse(setting, text, status);
    if (id == WF_SET_KEY_FILE)
        return check_key_file(text, status);
    if (id == WF_SET_GPUS)
        return check_gpus(text, status);
    return id == WF_SET_FAULT ? check_faults(text, status) : 0;
}

/* memmove: a caller may set a value to itself. */
static void copy_text(char *out, size_t room, const char *text)
{
    size_t length = strlen(text);

    if (length >= room)
        length = room - 1;
    memmove(out, text, length);
    out[length] = '\0';
}

int wf_config_set(struct wf_config *config, enum wf_setting_id id, const char *text, enum wf_origin origin,
                  const char *source, struct wf_status *status)
{
    int64_t number = 0;
    int rc;

    text = wf_setting_word(wf_setting(id), text);
    rc = parse_value(id, text, &number, status);
    if (rc)
        return rc;
    copy_text(config->values[id].text, WF_VALUE_MAX, text);
    copy_text(config->values[id].source, sizeof(config->values[id].source), source);
    config->values[id].number = number;
    config->values[id].origin = origin;
    return 0;
}

void wf_config_init(struct wf_config *config)
{
    /* A default cannot be refused: a unit test sets each of them. */
    for (int id = 0; id < WF_SETTING_COUNT; id++)
        (void)wf_config_set(config, (enum wf_setting_id)id, wf_setting((enum wf_setting_id)id)->fallback,
                            WF_ORIGIN_DEFAULT, "default", NULL);
}

int wf_config_offer(struct wf_config *config, enum wf_setting_id id, const char *text, enum wf_origin origin,
                    const char *source, struct wf_status *status)
{
    int64_t ignored;

    if (config->values[id].origin > origin)
        return parse_value(id, wf_setting_word(wf_setting(id), text), &ignored, status);
    return wf_config_set(config, id, text, origin, source, status);
}

bool wf_setting_takes(enum wf_setting_id id, const char *text)
{
    int64_t ignored;

    return parse_value(id, wf_setting_word(wf_setting(id), text), &ignored, NULL) == 0;
}
