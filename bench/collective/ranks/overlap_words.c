/* The options of `weft overlap` that its ranks take, too. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "layers.h"

#define MIB (UINT64_C(1) << 20)
#define LAYERS_MOST 4096
#define MB_MOST 16384

static const char *const styles[RANK_STYLES] = {"all_reduce", "server"};

const char *rank_style_name(enum rank_style style)
{
    return styles[style];
}

int rank_style_find(const char *name)
{
    for (int i = 0; i < RANK_STYLES; i++)
        if (strcmp(styles[i], name) == 0)
            return i;
    return -1;
}

static int take_number(const char *option, const char *value, unsigned long most, unsigned long *number,
                       struct wf_status *status)
{
    char *end;

    *number = strtoul(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end || *number < 1 || *number > most)
        return wf_fail(status, -EINVAL, "--%s '%.40s': must be a number from 1 to %lu", option, value, most);
    return 0;
}

static int add_bucket(struct rank_asked *asked, const char *word, struct wf_status *status)
{
    unsigned long number;
    int result = take_number("bucket-mb", word, MB_MOST, &number, status);

    if (result == 0 && asked->size_count == RANK_SIZES_MAX)
        result = wf_fail(status, -EINVAL, "--bucket-mb: more than %d sizes", RANK_SIZES_MAX);
    for (int i = 0; i < asked->size_count && result == 0; i++)
        if (asked->sizes[i] == number * MIB)
            result = wf_fail(status, -EINVAL, "--bucket-mb names %lu twice", number);
    if (result == 0)
        asked->sizes[asked->size_count++] = number * MIB;
    return result;
}

static int add_style(struct rank_asked *asked, const char *word, struct wf_status *status)
{
    int style = rank_style_find(word);

    if (style < 0)
        return wf_fail(status, -EINVAL, "--style '%.40s' is none of all_reduce, server", word);
    for (int i = 0; i < asked->overlap.style_count; i++)
        if ((int)asked->overlap.styles[i] == style)
            return wf_fail(status, -EINVAL, "--style names %s twice", word);
    asked->overlap.styles[asked->overlap.style_count++] = (enum rank_style)style;
    return 0;
}

static int each_word(struct rank_asked *asked, const char *option, const char *list, struct wf_status *status,
                     int (*add)(struct rank_asked *asked, const char *word, struct wf_status *status))
{
    char copy[512], *rest = NULL;
    int result = 0, count = 0;

    if (strlen(list) >= sizeof copy)
        return wf_fail(status, -EINVAL, "--%s %.40s...: the list is too long", option, list);
    strcpy(copy, list);
    for (char *word = strtok_r(copy, ",", &rest); word && result == 0; word = strtok_r(NULL, ",", &rest), count++)
        result = add(asked, word, status);
    return result || count ? result : wf_fail(status, -EINVAL, "--%s needs a value", option);
}

int rank_overlap_take(struct rank_asked *asked, const char *option, const char *value, struct wf_status *status)
{
    unsigned long number = 0;
    int result = -ENOENT;

    if (strcmp(option, "bucket-mb") == 0)
        return each_word(asked, option, value, status, add_bucket);
    if (strcmp(option, "style") == 0)
        return each_word(asked, option, value, status, add_style);
    if (strcmp(option, "layers") == 0) {
        result = take_number(option, value, LAYERS_MOST, &number, status);
        asked->overlap.layers = (uint32_t)number;
    } else if (strcmp(option, "layer-mb") == 0) {
        result = take_number(option, value, MB_MOST, &number, status);
        asked->overlap.layer_bytes = number * MIB;
    } else if (strcmp(option, "batch") == 0) {
        result = take_number(option, value, LAYERS_BATCH_MOST, &number, status);
        asked->overlap.batch = (uint32_t)number;
    }
    return result;
}
