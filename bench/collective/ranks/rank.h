/*
 * rank.h: one process of a collective that is measured, and the seam behind which a backend is. The code on this side
 * of the seam is the same for all backends: it fills the memory, times the operation, and proves the result. So the
 * figures of two backends differ by the backends alone.
 *
 * A program is rank_main() and one struct rank_backend. Rank 0 writes JSON lines: what the backend says of itself
 * ("facts"), then for each operation, size and place a sample or why there is none, and at last RANK_DONE.
 */
#ifndef WF_BENCH_RANK_H
#define WF_BENCH_RANK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "bandwidth.h"
#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RANK_OPS 6
#define RANK_DONE "{\"done\": true}\n" /* all is measured, and the backend is about to be closed */
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

/* One call of a collective. `count` is NCCL's: of what a rank hands in to an all-gather, of what it gets of a
 * reduce-scatter, of what goes to each rank in an all-to-all. In place, `send` is the part of `recv` that NCCL says. */
struct rank_call {
    enum bench_collective op;
    enum rank_type type;
    enum rank_redop redop;
    uint64_t count;
    bool in_place;
    const void *send;
    void *recv;
    const void *result; /* where it is: `recv`, unless run() sets another place within the buffers */
};

/* One step of the last open() or renew(), and how long it took. */
struct rank_step {
    const char *name; /* "connect" */
    double us;
};

/* All functions fail with a negative errno and the reason in `status`. One thread calls at a time, and not always the
 * same. */
struct rank_backend {
    const char *name;
    const char *memory; /* what run() works on, from open() on: "cuda"; NULL: "host" */
    /* Finds who this process is, and joins the others. */
    int (*open)(const struct rank_asked *asked, uint32_t *rank, uint32_t *ranks, struct wf_status *status);
    /* Members of a JSON object: `"library": "..."`, what was in force. */
    void (*facts)(FILE *out);
    /* Why the backend does not have this, in a few words; NULL: it has it. The same at every rank. */
    const char *(*lacks)(const struct rank_call *call);
    int (*run)(struct rank_call *call, struct wf_status *status); /* until it is complete at this rank */
    int (*barrier)(struct wf_status *status);
    /* `all` gets `count` numbers of every rank, in the order of ranks. */
    int (*gather)(const double *own, int count, double *all, struct wf_status *status);
    /* A message from one rank to another: both call, and others do not. */
    int (*send)(uint32_t to, const void *memory, uint64_t bytes, struct wf_status *status);
    int (*receive)(uint32_t from, void *memory, uint64_t bytes, struct wf_status *status);
    void (*close)(void);
    /* Memory for run() that is not the process's; all three or none; between open() and close(). */
    int (*take)(uint64_t bytes, void **out, struct wf_status *status);
    void (*give)(void *memory);
    int (*copy)(void *to, const void *from, uint64_t bytes, struct wf_status *status);
    /* What can be made anew within a process, in few words, ends with NULL; NULL: nothing. */
    const char *const *renewals;
    /* Ends number `which` of them, and makes it anew. `turn` grows from 1 on, and is the same at every rank. */
    int (*renew)(const struct rank_asked *asked, int which, uint64_t turn, struct wf_status *status);
    /* Where the time of the last open() or renew() went, ends with a name NULL; NULL: only the whole is known. */
    const struct rank_step *(*steps)(void);
};

/* Exit status: 0; 1 something failed, and standard error says what; 2 wrong usage; 77 not available here. */
int rank_main(const struct rank_backend *backend, int argc, char **argv);

/* As rank_main(), from what was read already. */
int rank_run(const struct rank_backend *backend, const struct rank_asked *asked);

/* Takes the value of --layers, --layer-mb, --bucket-mb, --batch or --style, without the dashes. -EINVAL: it is wrong,
 * and `status` says why; -ENOENT: it is none of these options. */
int rank_overlap_take(struct rank_asked *asked, const char *option, const char *value, struct wf_status *status);

/* Of CLOCK_MONOTONIC. */
double rank_now_us(void);

/* The value of NAME in `asked->with`; NULL: it is not there. */
const char *rank_with(const struct rank_asked *asked, const char *name);

#ifdef __cplusplus
}
#endif
#endif
