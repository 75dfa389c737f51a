/*
 * space.h: the points of a sweep: every combination of the values that --vary names, and the baseline, which has what
 * would be in force without --vary.
 *
 *     --vary "chunk=256K,1M window=16..128x2"     2 x 4 points, and the baseline where it is none of these
 *
 *     LIST    VALUE,VALUE,...     or, for values with commas in them, VALUE|VALUE|...
 *     VALUE   what the setting takes; FIRST..LAST, FIRST..LASTxFACTOR, FIRST..LAST+STEP: several numbers or sizes
 *
 * A number for `rails` means so many of the rails that this machine has.
 */
#ifndef WF_BENCH_SPACE_H
#define WF_BENCH_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "base/status.h"
#include "bench/plan/options.h"

#define BENCH_AXES_MAX 8
#define BENCH_AXIS_VALUES_MAX 64
#define BENCH_POINTS_MAX 100000

/* One setting and its values, in the order in which they were named. */
struct bench_axis {
    enum wf_setting_id id;
    char *values[BENCH_AXIS_VALUES_MAX]; /* owned */
    int count;
    const char *usual; /* the baseline's value; into the settings that the space was made of */
    int usual_at;      /* where it stands among the values; -1: nowhere */
};

struct bench_space {
    struct bench_axis axes[BENCH_AXES_MAX];
    int axis_count;
    uint32_t grid;     /* points of the combinations; the last axis changes fastest */
    uint32_t points;   /* and one more where the baseline is none of them */
    uint32_t baseline; /* its index */
};

/* Reads the setting `vary` of `config`, for runs of `command` (mesh or pair). -EINVAL: wrong usage. Can be given to
 * fini whatever the result. `config` outlives the space. */
int bench_space_init(struct bench_space *space, const struct wf_config *config, enum bench_command command,
                     struct wf_status *status);
void bench_space_fini(struct bench_space *space);

/* A number for `rails` is so many of the `most` that there are; the baseline has the first `usual` of them. Numbers
 * above that are left out; returns how many, or -EINVAL where nothing is left to compare. */
int bench_space_set_rails(struct bench_space *space, int most, int usual, struct wf_status *status);

/* Whether the value of an axis is such a number. */
bool bench_space_counts_rails(const struct bench_axis *axis, const char *value);

/* Where a point stands on each axis; of the baseline outside the grid, which has no place, false. */
bool bench_space_place(const struct bench_space *space, uint32_t point, int *at);
uint32_t bench_space_point(const struct bench_space *space, const int *at);

/* The value of an axis at a point. */
const char *bench_space_value(const struct bench_space *space, uint32_t point, int axis);

/* "chunk=1M window=32". Returns `text`. */
char *bench_space_text(const struct bench_space *space, uint32_t point, char *text, size_t room);

#endif
