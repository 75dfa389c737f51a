/*
 * layers.h: the computation of a backward pass: a matrix product for each layer, whose result is the gradient, on the
 * processor or in the memory of a backend that multiplies there.
 *
 *     gradient of a layer = (rows x batch) times (batch x 1024), float32; element (i, j) = batch * u(i) * v(j)
 *
 * Of a product that is made again, batch is the rows of one. u and v are small whole numbers that differ between ranks
 * and layers, so a gradient and the sum of those of all ranks are exact, and known without computing them twice: a
 * bucket that is sent before its layers are done shows.
 */
#ifndef WF_BENCH_RANK_LAYERS_H
#define WF_BENCH_RANK_LAYERS_H

#include "rank.h"

#define LAYERS_COLUMNS 1024
#define LAYERS_BATCH_MOST 8192 /* so that sums of 64 ranks stay below 2^24 */
/* On a GPU so many rows are one product, and of a larger batch it is made again: a GPU has to compute for as long as a
 * network takes, and what is multiplied has to fit beside the gradients. */
#define LAYERS_GPU_BATCH 256
#define LAYERS_GPU_TIMES (1 << 20)

typedef void (*layers_multiply)(int order, int transpose, int transpose_other, int rows, int columns, int batch,
                                float alpha, const float *left, int left_step, const float *right, int right_step,
                                float beta, float *out, int out_step);

/* Owner: one rank. */
struct layers {
    float *gradients; /* of all layers, one behind the other; the caller's */
    uint32_t count, rows, rank, ranks;
    uint32_t batch, batch_most;
    float *left, *right;              /* batch x rows, batch x 1024: of one layer */
    layers_multiply multiply;         /* of BLAS; NULL: a loop of ours */
    const struct rank_backend *place; /* where `gradients` and `factors` are, and who multiplies; NULL: here */
    float *factors;                   /* of all layers, left and right of each */
    char how[160];                    /* what multiplies, and why no better one does */
};

/* One thread multiplies: a rank is one process of several, and each has its processor. Before this process has threads,
 * which might read its environment. */
void layers_limit_threads(void);

/* `place` multiplies; NULL: the processor does. `layers` can be given to fini() whatever the result. */
int layers_init(struct layers *layers, const struct rank_overlap *asked, const struct rank_backend *place,
                float *gradients, uint32_t rank, uint32_t ranks, struct wf_status *status);
void layers_fini(struct layers *layers);

/* From now on so many rows, as far as there is memory for them. */
void layers_set_batch(struct layers *layers, uint32_t batch);

/* Writes the gradient of one layer. Fails only where a backend multiplies. */
int layers_compute(struct layers *layers, uint32_t layer, struct wf_status *status);

/* How many elements of all gradients are not the sum over all ranks. `found`: the gradients, or a copy of them here. */
uint64_t layers_wrong(const struct layers *layers, const float *found);

/* Rows by which to find out how long a layer takes: more than it takes to begin. */
static inline uint32_t layers_tried(const struct layers *layers)
{
    return layers->place ? 16 * LAYERS_GPU_BATCH : 64;
}

static inline uint64_t layers_elements(const struct layers *layers)
{
    return (uint64_t)layers->rows * LAYERS_COLUMNS;
}

#endif
