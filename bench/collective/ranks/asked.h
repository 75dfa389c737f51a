/*
 * asked.h: what ranks are to measure, and what its parts are called.
 */
#ifndef WF_BENCH_RANK_ASKED_H
#define WF_BENCH_RANK_ASKED_H

#include <stdbool.h>
#include <stdint.h>

#include "bandwidth.h"
#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RANK_OPS 6
#define RANK_SIZES_MAX 64
#define RANK_WITH_MAX 16
#define RANK_STYLES 2

/* The numbers are those of enum weft_type and enum weft_op. */
enum rank_type { RANK_FLOAT64, RANK_FLOAT32, RANK_FLOAT16, RANK_BFLOAT16, RANK_INT32, RANK_INT64, RANK_UINT8 };
enum rank_redop { RANK_SUM, RANK_MIN, RANK_MAX, RANK_AVG };

#define RANK_TYPES 7
#define RANK_REDOPS 4

/* Names as the program prints them; those of nccl-tests ("float", "half") are understood, too. -1: none. */
const char *rank_op_name(enum bench_collective op);
const char *rank_type_name(enum rank_type type);
const char *rank_redop_name(enum rank_redop redop);
int rank_op_find(const char *name);
int rank_type_find(const char *name);
int rank_redop_find(const char *name);
uint64_t rank_type_bytes(enum rank_type type);
bool rank_op_reduces(enum bench_collective op);

/* How gradients become the same everywhere: all are equal, or rank 0 gathers, adds and sends the sums. */
enum rank_style { RANK_STYLE_ALL_REDUCE, RANK_STYLE_SERVER };

const char *rank_style_name(enum rank_style style);
int rank_style_find(const char *name); /* -1: none */

/* Layers that are computed one after the other, each with a gradient, and synchronised in buckets: `sizes` of struct
 * rank_asked. */
struct rank_overlap {
    uint32_t layers; /* 0: collectives are measured instead */
    uint64_t layer_bytes;
    uint32_t batch; /* rows of the data that a layer is multiplied with; 0: so many that computation takes half as long
                     * again as communication */
    enum rank_style styles[RANK_STYLES];
    int style_count;
};

/* What is measured. */
struct rank_asked {
    enum bench_collective ops[RANK_OPS];
    int op_count;
    enum rank_type type;
    enum rank_redop redop;
    uint64_t sizes[RANK_SIZES_MAX];
    int size_count;
    uint64_t iters;  /* 0: as many as fit into `share_ms` */
    uint64_t warmup; /* before them */
    uint64_t share_ms;
    bool check, out_of_place, in_place;
    uint64_t renew;     /* instead of measuring operations: set-up anew so many times, and what it costs; 0: no */
    uint64_t timeout_s; /* for one operation */
    struct rank_overlap overlap;
    const char *with[RANK_WITH_MAX]; /* "NAME=VALUE" for the backend; ends with NULL */
};

/* Takes the value of --layers, --layer-mb, --bucket-mb, --batch or --style, without the dashes. -EINVAL: it is wrong,
 * and `status` says why; -ENOENT: it is none of these options. */
int rank_overlap_take(struct rank_asked *asked, const char *option, const char *value, struct wf_status *status);

/* The value of NAME in `asked->with`; NULL: it is not there. */
const char *rank_with(const struct rank_asked *asked, const char *name);

#ifdef __cplusplus
}
#endif
#endif
