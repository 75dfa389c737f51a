/*
 * rank.h: one process of a collective that is measured, and the seam behind which a backend is. The code on this side
 * of the seam is the same for all backends: it fills the memory, times the operation, and proves the result. So the
 * figures of two backends differ by the backends alone.
 *
 * A program is rank_main() and one struct rank_backend. Rank 0 writes JSON lines: what the backend says of itself
 * ("facts"), then for each operation, size and place a sample or why there is none, and at last RANK_DONE. A sample
 * that takes long has an empty line before it about every `timeout_s`.
 */
#ifndef WF_BENCH_RANK_H
#define WF_BENCH_RANK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "asked.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RANK_DONE "{\"done\": true}\n" /* all is measured, and the backend is about to be closed */

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

/* A product of float32 matrices that lie by rows: `out` (rows x columns) becomes the transposed `left` (batch x rows)
 * times `right` (batch x columns), so many times, one after the other. */
struct rank_product {
    float *out;
    const float *left, *right;
    uint32_t rows, columns, batch, times;
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
    /* A product in such memory, until it is done: another thread may be in run(). `multiplier`: what computes it, from
     * open() on. NULL: products are not made there. */
    int (*multiply)(const struct rank_product *product, struct wf_status *status);
    const char *multiplier;
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

/* Of CLOCK_MONOTONIC. */
double rank_now_us(void);

#ifdef __cplusplus
}
#endif
#endif
