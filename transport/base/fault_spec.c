#include "base/fault_spec.h"

#include <errno.h>
#include <string.h>

#include "base/config.h"

#define ITEM_ROOM 128

/* --- values: 0, or -EINVAL --- */

static int parse_number(const char *text, uint64_t *out)
{
    uint64_t value = 0;

    for (const char *at = text; *at; at++)
        if (*at < '0' || *at > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (unsigned)(*at - '0'), &value))
            return -EINVAL;
    *out = value;
    return *text ? 0 : -EINVAL;
}

static int parse_ms(const char *text, int64_t least, int64_t *out)
{
    uint64_t value;

    if (parse_number(text, &value) != 0 || value > WF_FAULT_MS_MAX || (int64_t)value < least)
        return -EINVAL;
    *out = (int64_t)value;
    return 0;
}

static int set_seed(struct wf_fault_spec *spec, char *value)
{
    return parse_number(value, &spec->seed);
}

static int set_reset_every(struct wf_fault_spec *spec, char *value)
{
    return wf_parse_size(value, &spec->reset_every) == 0 && spec->reset_every > 0 ? 0 : -EINVAL;
}

static int set_flip_every(struct wf_fault_spec *spec, char *value)
{
    return wf_parse_size(value, &spec->flip_every) == 0 && spec->flip_every > 0 ? 0 : -EINVAL;
}

static int set_short(struct wf_fault_spec *spec, char *value)
{
    spec->shorten = strcmp(value, "1") == 0;
    return spec->shorten || strcmp(value, "0") == 0 ? 0 : -EINVAL;
}

/* RAIL@MS+MS; the last '@' counts. */
static int add_window(struct wf_fault_spec *spec, char *value, bool drop)
{
    char *at = strrchr(value, '@');
    char *plus = at ? strchr(at, '+') : NULL;

    if (!plus || at == value || at - value >= WF_FAULT_RAIL)
        return -EINVAL;
    if (spec->window_count == WF_FAULT_WINDOWS)
        return -E2BIG;
    *at++ = *plus++ = '\0';
    struct wf_fault_window *window = &spec->windows[spec->window_count++];
    window->drop = drop;
    memcpy(window->rail, value, strlen(value) + 1);
    return parse_ms(at, 0, &window->start_ms) || parse_ms(plus, 1, &window->length_ms) ? -EINVAL : 0;
}

static int add_stall(struct wf_fault_spec *spec, char *value)
{
    return add_window(spec, value, false);
}

static int add_drop(struct wf_fault_spec *spec, char *value)
{
    return add_window(spec, value, true);
}

/* --- items --- */

static const struct item {
    const char *name;
    bool often;
    int (*set)(struct wf_fault_spec *spec, char *value); /* may change the text */
    const char *expected;
} items[] = {
    {"seed", false, set_seed, "seed=N with a whole number"},
    {"reset_every", false, set_reset_every, "reset_every=SIZE with a size of at least 1, such as 64M"},
    {"flip_every", false, set_flip_every, "flip_every=SIZE with a size of at least 1, such as 64M"},
    {"short", false, set_short, "short=1 or short=0"},
    {"stall", true, add_stall, "stall=RAIL@MS+MS, such as stall=eth1@2000+500"},
    {"drop", true, add_drop, "drop=RAIL@MS+MS, such as drop=eth1@2000+500"},
};

enum { ITEMS = sizeof(items) / sizeof(items[0]) };

static int find_item(const char *text, size_t length)
{
    for (int i = 0; i < ITEMS; i++)
        if (strlen(items[i].name) == length && memcmp(items[i].name, text, length) == 0)
            return i;
    return -1;
}

static int take_item(struct wf_fault_spec *spec, const char *text, size_t length, unsigned *seen,
                     struct wf_status *status)
{
    char value[ITEM_ROOM];
    size_t name = strcspn(text, "=,");
    int shown = length < 60 ? (int)length : 60;
    int id = find_item(text, name);
    int rc;

    if (length == 0)
        return wf_fail(status, -EINVAL, "fault: an item between commas is empty");
    if (id < 0)
        return wf_fail(status, -EINVAL,
                       "fault: '%.*s' is none of seed=N, reset_every=SIZE, flip_every=SIZE, short=1, "
                       "stall=RAIL@MS+MS, drop=RAIL@MS+MS",
                       shown, text);
    if ((*seen & 1u << id) && !items[id].often)
        return wf_fail(status, -EINVAL, "fault: '%.*s': %s is given twice", shown, text, items[id].name);
    *seen |= 1u << id;
    length -= name;
    if (length == 0 || length > sizeof(value))
        return wf_fail(status, -EINVAL, "fault: '%.*s': expected %s", shown, text, items[id].expected);
    memcpy(value, text + name + 1, length - 1);
    value[length - 1] = '\0';
    rc = items[id].set(spec, value);
    if (rc == -E2BIG)
        return wf_fail(status, -EINVAL, "fault: '%.*s': more than %d stalls and drops", shown, text, WF_FAULT_WINDOWS);
    return rc ? wf_fail(status, -EINVAL, "fault: '%.*s': expected %s", shown, text, items[id].expected) : 0;
}

int wf_fault_parse(const char *text, struct wf_fault_spec *out, struct wf_status *status)
{
    struct wf_fault_spec spec = {.seed = 1};
    unsigned seen = 0;
    bool more = *text != '\0';

    while (more) {
        size_t length = strcspn(text, ",");
        int rc = take_item(&spec, text, length, &seen, status);
        if (rc)
            return rc;
        more = text[length] != '\0';
        text += length + more;
    }
    *out = spec;
    return 0;
}
