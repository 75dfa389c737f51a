#include "space.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/words/words.h"

/* --- which settings may be varied --- */

static bool may_vary(const struct wf_setting *setting, enum wf_setting_id id, enum bench_command command)
{
    if (id == WF_SET_PORT || id == WF_SET_KEY_FILE || id == WF_SET_SEED || id == WF_SET_BACKEND)
        return false;
    return setting->topic != WF_TOPIC_OUTPUT && (setting->uses & command);
}

static int add_axis(struct bench_space *space, const struct wf_config *config, enum bench_command command,
                    const char *name, struct bench_axis **out, struct wf_status *status)
{
    struct wf_status unknown = {0};
    int id = wf_setting_find(name, &unknown);

    if (id < 0)
        return wf_fail(status, -EINVAL, "--vary: %s", unknown.text);
    if (!may_vary(wf_setting(id), id, command))
        return wf_fail(status, -EINVAL,
                       "--vary %s: it makes no difference to what weft %s measures, or must not: vary "
                       "another setting",
                       wf_setting(id)->name, bench_command_name(command));
    for (int i = 0; i < space->axis_count; i++)
        if (space->axes[i].id == (enum wf_setting_id)id)
            return wf_fail(status, -EINVAL, "--vary names %s twice: put all its values into one list",
                           wf_setting(id)->name);
    if (space->axis_count == BENCH_AXES_MAX)
        return wf_fail(status, -EINVAL, "--vary %s: at most %d settings can be varied", wf_setting(id)->name,
                       BENCH_AXES_MAX);
    *out = &space->axes[space->axis_count++];
    **out = (struct bench_axis){.id = id, .usual = wf_config_text(config, id), .usual_at = -1};
    return 0;
}

/* --- their values --- */

bool bench_space_counts_rails(const struct bench_axis *axis, const char *value)
{
    return axis->id == WF_SET_RAILS && value[0] && strlen(value) <= 3 && strspn(value, "0123456789") == strlen(value) &&
           (value[0] != '0' || !value[1]);
}

/* As the setting reads them: 1K and 1024, no and off, auto and 0. */
static bool same_value(struct wf_config *scratch, enum wf_setting_id id, const char *one, const char *other)
{
    struct wf_status ignored;
    enum wf_setting_type type = wf_setting(id)->type;
    bool is_number = type != WF_TYPE_TEXT && type != WF_TYPE_SIZES && !wf_setting(id)->list;

    if (!is_number || wf_config_set(scratch, id, one, WF_ORIGIN_COMMAND, "", &ignored) != 0)
        return strcmp(one, other) == 0;
    int64_t number = wf_config_number(scratch, id);
    return wf_config_set(scratch, id, other, WF_ORIGIN_COMMAND, "", &ignored) == 0 &&
           wf_config_number(scratch, id) == number;
}

static int add_value(struct bench_axis *axis, struct wf_config *scratch, const char *text, struct wf_status *status)
{
    const char *name = wf_setting(axis->id)->name;
    struct wf_status reason = {0};

    if (wf_config_set(scratch, axis->id, text, WF_ORIGIN_COMMAND, "command line", &reason) != 0)
        return wf_fail(status, -EINVAL, "--vary %s", reason.text);
    for (int i = 0; i < axis->count; i++)
        if (same_value(scratch, axis->id, axis->values[i], text))
            return wf_fail(status, -EINVAL, "--vary %s: the value '%.60s' stands there twice", name, text);
    if (axis->count == BENCH_AXIS_VALUES_MAX)
        return wf_fail(status, -EINVAL, "--vary %s: more than %d values", name, BENCH_AXIS_VALUES_MAX);
    axis->values[axis->count] = strdup(text);
    if (!axis->values[axis->count])
        return wf_fail(status, -ENOMEM, "no memory for the values of %s", name);
    if (same_value(scratch, axis->id, text, axis->usual))
        axis->usual_at = axis->count;
    axis->count++;
    return 0;
}

/* FIRST..LAST with what stands behind it: how the next number follows. */
struct range {
    uint64_t first, last, factor, step; /* one of the last two is 0 */
};

/* Whether `text` is one; -EINVAL: it should be, and is wrong. */
static int read_range(const struct bench_axis *axis, char *text, struct range *range, struct wf_status *status)
{
    char *dots = strstr(text, ".."), whole[64];
    enum wf_setting_type type = wf_setting(axis->id)->type;

    if (!dots || (type != WF_TYPE_INT && type != WF_TYPE_SIZE && type != WF_TYPE_SIZES && axis->id != WF_SET_RAILS))
        return 0;
    bench_copy_text(whole, sizeof whole, text);
    *dots = '\0';
    char *last = dots + 2, *how = last + strcspn(last, "x+");
    char mark = *how;
    uint64_t by = 1;
    *how = '\0';
    int result = wf_parse_size(text, &range->first) | wf_parse_size(last, &range->last);
    if (mark)
        result |= wf_parse_size(how + 1, &by);
    if (result || range->first > range->last || by == 0 || (mark == 'x' && (by < 2 || range->first == 0)))
        return wf_fail(status, -EINVAL,
                       "--vary %s: '%.60s' is no range: write FIRST..LAST, FIRST..LASTxFACTOR or FIRST..LAST+STEP, as "
                       "in 16..128x2",
                       wf_setting(axis->id)->name, whole);
    range->factor = mark == 'x' ? by : 0;
    range->step = mark == 'x' ? 0 : by;
    return 1;
}

static int add_range(struct bench_axis *axis, struct wf_config *scratch, const struct range *range,
                     struct wf_status *status)
{
    uint64_t value = range->first;
    int result = 0;

    while (result == 0) {
        char text[32];
        snprintf(text, sizeof text, "%llu", (unsigned long long)value);
        if (wf_setting(axis->id)->type == WF_TYPE_SIZE || wf_setting(axis->id)->type == WF_TYPE_SIZES)
            wf_format_size(value, text, sizeof text);
        result = add_value(axis, scratch, text, status);
        if (range->factor ? value > range->last / range->factor : range->last - value < range->step)
            break;
        value = range->factor ? value * range->factor : value + range->step;
    }
    return result;
}

static int read_values(struct bench_axis *axis, struct wf_config *scratch, char *list, struct wf_status *status)
{
    char mark = strchr(list, '|') ? '|' : ',', *rest = list, *item;
    int result = 0;

    while (result == 0 && (item = bench_next_word(&rest, mark)) != NULL) {
        struct range range;
        result = read_range(axis, item, &range, status);
        if (result == 0)
            result = add_value(axis, scratch, item, status);
        else if (result > 0)
            result = add_range(axis, scratch, &range, status);
    }
    return result;
}

/* --- the whole --- */

static int count_points(struct bench_space *space, struct wf_status *status)
{
    int at[BENCH_AXES_MAX];
    uint64_t grid = 1;
    bool inside = true;

    for (int i = 0; i < space->axis_count; i++) {
        const struct bench_axis *axis = &space->axes[i];
        grid *= (uint64_t)axis->count;
        if (grid > BENCH_POINTS_MAX)
            return wf_fail(status, -EINVAL, "--vary: more than %d points: name fewer settings or values",
                           BENCH_POINTS_MAX);
        at[i] = axis->usual_at;
        inside &= axis->usual_at >= 0;
    }
    space->grid = (uint32_t)grid;
    space->points = space->grid + (inside ? 0 : 1);
    space->baseline = inside ? bench_space_point(space, at) : space->grid;
    if (space->points < 2)
        return wf_fail(status, -EINVAL, "--vary: there is nothing but the value that is in force anyway: name another");
    return 0;
}

static int read_axis(struct bench_space *space, const struct wf_config *config, struct wf_config *scratch,
                     enum bench_command command, char *word, struct wf_status *status)
{
    char *equals = strchr(word, '=');
    struct bench_axis *axis;

    if (!equals || equals == word || !equals[1])
        return wf_fail(status, -EINVAL, "--vary '%.60s': expected NAME=VALUE,VALUE,... as in chunk=256K,512K,1M", word);
    *equals = '\0';
    int result = add_axis(space, config, command, word, &axis, status);
    return result ? result : read_values(axis, scratch, equals + 1, status);
}

int bench_space_init(struct bench_space *space, const struct wf_config *config, enum bench_command command,
                     struct wf_status *status)
{
    struct wf_config *scratch = malloc(sizeof *scratch);
    char *text = strdup(wf_config_text(config, WF_SET_VARY)), *rest = text, *word;
    int result = 0;

    memset(space, 0, sizeof *space);
    if (!scratch || !text)
        result = wf_fail(status, -ENOMEM, "no memory for the values to try");
    else
        wf_config_init(scratch);
    while (result == 0 && (word = bench_next_word(&rest, ' ')) != NULL)
        if (word[0])
            result = read_axis(space, config, scratch, command, word, status);
    free(scratch);
    free(text);
    if (result == 0 && space->axis_count == 0)
        result = wf_fail(status, -EINVAL,
                         "what is to be varied? Give --vary NAME=VALUE,VALUE,... as in --vary "
                         "chunk=256K,512K,1M");
    return result ? result : count_points(space, status);
}

void bench_space_fini(struct bench_space *space)
{
    for (int i = 0; i < space->axis_count; i++)
        for (int value = 0; value < space->axes[i].count; value++)
            free(space->axes[i].values[value]);
    memset(space, 0, sizeof *space);
}

int bench_space_set_rails(struct bench_space *space, int most, int usual, struct wf_status *status)
{
    int gone = 0;

    for (int i = 0; i < space->axis_count; i++) {
        struct bench_axis *axis = &space->axes[i];
        int kept = 0, usual_at = -1;
        for (int at = 0; at < axis->count; at++) {
            char *value = axis->values[at];
            if (!bench_space_counts_rails(axis, value)) {
                if (at == axis->usual_at)
                    usual_at = kept;
                axis->values[kept++] = value;
                continue;
            }
            int count = atoi(value);
            if (count < 1 || count > most) {
                free(value);
                gone++;
                continue;
            }
            if (count == usual && usual_at < 0)
                usual_at = kept;
            axis->values[kept++] = value;
        }
        axis->count = kept;
        axis->usual_at = usual_at;
        if (kept == 0)
            return wf_fail(status, -EINVAL, "--vary rails: a number from 1 to %d is wanted, as there are so many",
                           most);
    }
    int result = count_points(space, status);
    return result ? result : gone;
}

bool bench_space_place(const struct bench_space *space, uint32_t point, int *at)
{
    if (point >= space->grid)
        return false;
    for (int i = space->axis_count - 1; i >= 0; i--) {
        at[i] = (int)(point % (uint32_t)space->axes[i].count);
        point /= (uint32_t)space->axes[i].count;
    }
    return true;
}

uint32_t bench_space_point(const struct bench_space *space, const int *at)
{
    uint32_t point = 0;

    for (int i = 0; i < space->axis_count; i++)
        point = point * (uint32_t)space->axes[i].count + (uint32_t)at[i];
    return point;
}

const char *bench_space_value(const struct bench_space *space, uint32_t point, int axis)
{
    int at[BENCH_AXES_MAX];

    return bench_space_place(space, point, at) ? space->axes[axis].values[at[axis]] : space->axes[axis].usual;
}

char *bench_space_text(const struct bench_space *space, uint32_t point, char *text, size_t room)
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < space->axis_count && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%s=%s", i ? " " : "", wf_setting(space->axes[i].id)->name,
                                 bench_space_value(space, point, i));
    return text;
}
