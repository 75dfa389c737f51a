/* What settings and their values are called: the words for on and off, other names, and what stands in a help text. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/config_parts.h"

/* Each pair is the same answer in other words: no, then yes. */
static const char *const booleans[][2] = {{"0", "1"}, {"off", "on"}, {"no", "yes"}, {"false", "true"}};

#define BOOLEANS (sizeof booleans / sizeof booleans[0])

int wf_setting_boolean(const char *text)
{
    for (size_t i = 0; i < BOOLEANS; i++)
        for (int on = 0; on < 2; on++)
            if (strcasecmp(text, booleans[i][on]) == 0)
                return on;
    return -EINVAL;
}

int wf_choice_index(const char *choices, const char *word)
{
    size_t length = strlen(word);

    for (int index = 0;; index++) {
        size_t here = strcspn(choices, "|");
        if (here == length && memcmp(choices, word, length) == 0)
            return index;
        if (choices[here] == '\0')
            return -1;
        choices += here + 1;
    }
}

const char *wf_setting_word(const struct wf_setting *setting, const char *text)
{
    int on = wf_setting_boolean(text);

    if (!setting || on < 0)
        return text;
    if (setting->type == WF_TYPE_FLAG)
        return booleans[0][on];
    if (setting->type != WF_TYPE_CHOICE || setting->list || wf_choice_index(setting->choices, text) >= 0)
        return text;
    for (size_t i = 0; i < BOOLEANS; i++)
        if (wf_choice_index(setting->choices, booleans[i][on]) >= 0)
            return booleans[i][on];
    return text;
}

bool wf_setting_is_switch(const struct wf_setting *setting)
{
    return setting->type == WF_TYPE_FLAG ||
           (setting->type == WF_TYPE_CHOICE && !setting->list && wf_choice_index(setting->choices, "off") >= 0 &&
            wf_choice_index(setting->choices, "on") >= 0);
}

const char *wf_setting_value_name(const struct wf_setting *setting)
{
    if (setting->value)
        return setting->value;
    switch (setting->type) {
    case WF_TYPE_SIZE:
        return "SIZE";
    case WF_TYPE_SIZES:
        return "SIZE[,SIZE...]";
    case WF_TYPE_CHOICE:
        return setting->choices;
    case WF_TYPE_TEXT:
        return "TEXT";
    case WF_TYPE_FLAG:
        return NULL;
    default:
        return "N";
    }
}

char *wf_setting_allowed(const struct wf_setting *setting, char *text, size_t room)
{
    char least[32], most[32];

    switch (setting->type) {
    case WF_TYPE_INT:
        (void)snprintf(text, room, "%s%s%" PRId64 "..%" PRId64, setting->zero ? setting->zero : "",
                       setting->zero ? "|" : "", setting->min, setting->max);
        break;
    case WF_TYPE_SIZE:
    case WF_TYPE_SIZES:
        (void)snprintf(text, room, "%s..%s%s", wf_format_size((uint64_t)setting->min, least, sizeof least),
                       wf_format_size((uint64_t)setting->max, most, sizeof most),
                       setting->type == WF_TYPE_SIZES ? ", ..." : "");
        break;
    case WF_TYPE_CHOICE:
        (void)snprintf(text, room, "%s%s", setting->choices, setting->list ? ", ..." : "");
        break;
    case WF_TYPE_FLAG:
        (void)snprintf(text, room, "0|1");
        break;
    default:
        (void)snprintf(text, room, "text");
    }
    return text;
}

static char plain(char c)
{
    return c == '-' ? '_' : wf_lower(c);
}

int wf_setting_find_any(const char *name)
{
    static const char prefix[] = "WEFT_";
    char wanted[WF_NAME_ROOM + 1];

    for (const struct wf_alias *alias = wf_config_aliases(); alias->variable; alias++)
        if (strcmp(alias->variable, name) == 0)
            return (int)alias->id;
    if (strncmp(name, "--", 2) == 0)
        name += 2;
    else if (strncmp(name, prefix, sizeof prefix - 1) == 0)
        name += sizeof prefix - 1;
    wf_text_changed(wanted, sizeof wanted, name, plain);
    for (int id = 0; id < WF_SETTING_COUNT; id++)
        if (strcmp(wanted, wf_setting((enum wf_setting_id)id)->name) == 0)
            return id;
    return -ENOENT;
}
