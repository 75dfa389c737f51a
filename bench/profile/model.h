/*
 * model.h: what a simulator needs of a link: of each backend and directed pair the time of a message by its size,
 *
 *     time(size) = alpha + size * beta,      so that the sum of ((model - measured) / measured)^2 is least
 *
 * over the medians of each size's repetitions. Residuals are relative, so a kibibyte counts as much as a gibibyte. Half
 * of the time is latency at alpha / beta bytes. Where two such lines, one below some size and one from it on, leave
 * less than half of that sum, they are there as well: what is sent at once and what is asked for first are two regimes.
 */
#ifndef WF_BENCH_PROFILE_MODEL_H
#define WF_BENCH_PROFILE_MODEL_H

#include <stdbool.h>

#include "base/status.h"

#include "row.h"

#define BENCH_MODEL_SCHEMA "weft.model/1"
#define BENCH_MODEL_LEAST 3 /* sizes of a fit: of fewer nothing is left to doubt it by */
#define BENCH_MODEL_PIECE 4 /* sizes of each of two pieces */

/* All messages of a size on a link. */
struct bench_model_point {
    uint64_t size;  /* bytes */
    double time_ns; /* median */
    double cv;      /* of its times */
    uint32_t repetitions;
    unsigned stamps; /* of any of them */
};

struct bench_model_fit {
    uint64_t from, to;                  /* bytes: the sizes that it was made of */
    double alpha_ns, beta_ns;           /* beta: of a byte */
    double alpha_half_ns, beta_half_ns; /* half of the 95 % intervals */
    double squares;                     /* sum of the squared relative residuals */
    double r2;                          /* of the relative ones: how much less that is than of a constant time */
};

struct bench_model_link {
    uint8_t backend;
    uint32_t src, dst;                      /* ranks */
    const struct bench_model_point *points; /* ascending sizes */
    size_t point_count, doubtful;           /* doubtful: points with the stamp of variance or alignment */
    bool fitted;                            /* false: there were too few points */
    struct bench_model_fit fit;
    bool broken; /* `pieces` are there */
    struct bench_model_fit pieces[2];
};

/* Ordered by backend, source, destination. Owner: who made it. */
struct bench_model {
    struct bench_model_point *points; /* link by link */
    struct bench_model_link *links;
    size_t point_count, link_count;
};

/* Fits one line to points of ascending sizes, all with a time; false: there are fewer than BENCH_MODEL_LEAST. */
bool bench_model_line(const struct bench_model_point *points, size_t count, struct bench_model_fit *fit);

/* What the line says of a size. */
double bench_model_time(const struct bench_model_fit *fit, uint64_t size);

/* Of messages in any order. Those that took no time (BENCH_PROFILE_NO_TIME) are left out. -ENOMEM. */
int bench_model_init(struct bench_model *model, const struct bench_profile_row *rows, size_t count,
                     struct wf_status *status);
void bench_model_fini(struct bench_model *model);

/* The median over all points of |measured / model - 1|; negative: there is no fit. */
double bench_model_residual(const struct bench_model *model);

/* As the file has it; `backends` are names. A new reference. */
json_t *bench_model_to_json(const struct bench_model *model, const char *const *backends);

#endif
