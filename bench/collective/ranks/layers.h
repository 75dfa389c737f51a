/*
 * layers.h: the computation of a backward pass: one matrix product for each layer, whose result is the gradient.
 *
 *     gradient of a layer = (rows x batch) times (batch x 1024), float32; element (i, j) = batch * u(i) * v(j)
 *
 * u and v are small whole numbers that differ between ranks and layers, so a gradient and the sum of those of all ranks
 * are exact, and known without computing them twice: a bucket that is sent before its layers are done shows.
 */
#ifndef WF_BENCH_RANK_LAYERS_H
#define WF_BENCH_RANK_LAYERS_H

#include "rank.h"

#define LAYERS_COLUMNS 1024
#define LAYERS_BATCH_MOST 8192 /* so that sums of 64 ranks stay below 2^24 */

typedef void (*layers_multiply)(int order, int transpose, int transpose_other, int rows, int columns, int batch,
                                float alpha, const float *left, int left_step, const float *right, int right_step,
                                float beta, float *out, int out_step);

/* Owner: one rank. */
struct layers {
    float *gradients; /* of all layers, one behind the other; the caller's */
    uint32_t count, rows, rank, ranks;
    uint32_t batch, batch_most;
    float *left, *right;      /* batch x rows, batch x 1024 */
    layers_multiply multiply; /* of BLAS; NULL: a loop of ours */
    char how[160];            /* what multiplies, and why no better one does */
};

/* `layers` can be given to fini() whatever the result. */
int layers_init(struct layers *layers, const struct rank_overlap *asked, float *gradients, uint32_t rank,
                uint32_t ranks, struct wf_status *status);
void layers_fini(struct layers *layers);

/* From now on so many rows, as far as there is memory for them. */
void layers_set_batch(struct layers *layers, uint32_t batch);

/* Writes the gradient of one layer. */
void layers_compute(struct layers *layers, uint32_t layer);

/* How many elements of all gradients are not the sum over all ranks. */
uint64_t layers_wrong(const struct layers *layers);

static inline uint64_t layers_elements(const struct layers *layers)
{
    return (uint64_t)layers->rows * LAYERS_COLUMNS;
}

#endif
