#include "layers.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLAS "libopenblas.so.0"

/* Of cblas.h, which need not be here. */
#define ROW_MAJOR 101
#define NOT_TRANSPOSED 111
#define TRANSPOSED 112

#define ROWS_PERIOD 11
#define LEFT_BYTES (UINT64_C(64) << 20) /* where the batch is not said */

/* 1 to 4. */
static float of_row(uint32_t row, uint32_t layer, uint32_t rank)
{
    return (float)(1 + (row * 7 + layer * 3 + rank) % ROWS_PERIOD % 4);
}

static float of_column(uint32_t column, uint32_t layer, uint32_t rank)
{
    return (float)(1 + (column * 5 + layer + rank * 3) % 13 % 4);
}

/* OpenBLAS starts its threads when it is loaded, and hangs where there is no memory for them; those of a build with
 * OpenMP have a variable of their own. */
void layers_limit_threads(void)
{
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    setenv("OMP_NUM_THREADS", "1", 1);
}

static void load_blas(struct layers *layers)
{
    void *library = dlopen(BLAS, RTLD_NOW | RTLD_LOCAL); /* stays */
    void *multiply = library ? dlsym(library, "cblas_sgemm") : NULL;

    if (!multiply) {
        snprintf(layers->how, sizeof layers->how, "a plain loop, as there is no %s", BLAS);
        return;
    }
    memcpy(&layers->multiply, &multiply, sizeof multiply);
    snprintf(layers->how, sizeof layers->how, "OpenBLAS, one thread");
}

/* Rows of the product that is made; of a larger batch it is made again. */
static uint32_t rows_at_once(const struct layers *layers)
{
    return layers->place && layers->batch > LAYERS_GPU_BATCH ? LAYERS_GPU_BATCH : layers->batch;
}

/* What a layer is multiplied with: little beside the product itself. */
static void fill(struct layers *layers, uint32_t layer, uint32_t batch)
{
    for (uint32_t i = 0; i < layers->rows; i++)
        layers->left[i] = of_row(i, layer, layers->rank);
    for (uint32_t j = 0; j < LAYERS_COLUMNS; j++)
        layers->right[j] = of_column(j, layer, layers->rank);
    for (uint32_t k = 1; k < batch; k++) {
        memcpy(layers->left + (size_t)k * layers->rows, layers->left, layers->rows * sizeof(float));
        memcpy(layers->right + (size_t)k * LAYERS_COLUMNS, layers->right, LAYERS_COLUMNS * sizeof(float));
    }
}

/* --- in the memory of a backend --- */

static float *left_of(const struct layers *layers, uint32_t layer)
{
    return layers->factors + (size_t)layer * LAYERS_GPU_BATCH * (layers->rows + LAYERS_COLUMNS);
}

static float *right_of(const struct layers *layers, uint32_t layer)
{
    return left_of(layers, layer) + (size_t)LAYERS_GPU_BATCH * layers->rows;
}

/* All layers at once: copying to a GPU would take longer than the product. */
static int place_factors(struct layers *layers, struct wf_status *status)
{
    const uint64_t row = LAYERS_GPU_BATCH * sizeof(float);
    void *memory;
    int result = layers->place->take(layers->count * row * (layers->rows + LAYERS_COLUMNS), &memory, status);

    if (result)
        return result;
    layers->factors = memory;
    for (uint32_t layer = 0; layer < layers->count && result == 0; layer++) {
        fill(layers, layer, LAYERS_GPU_BATCH);
        result = layers->place->copy(left_of(layers, layer), layers->left, row * layers->rows, status);
        if (result == 0)
            result = layers->place->copy(right_of(layers, layer), layers->right, row * LAYERS_COLUMNS, status);
    }
    return result;
}

static int multiply_in_place(const struct layers *layers, uint32_t layer, struct wf_status *status)
{
    const uint32_t batch = rows_at_once(layers);
    const struct rank_product product = {.out = layers->gradients + layer * layers_elements(layers),
                                         .left = left_of(layers, layer),
                                         .right = right_of(layers, layer),
                                         .rows = layers->rows,
                                         .columns = LAYERS_COLUMNS,
                                         .batch = batch,
                                         .times = layers->batch / batch};

    return layers->place->multiply(&product, status);
}

/* --- either way --- */

static uint32_t most_rows(const struct layers *layers, const struct rank_overlap *asked)
{
    uint64_t fitting = LEFT_BYTES / (layers->rows * sizeof(float));

    if (asked->batch)
        return asked->batch;
    if (layers->place)
        return LAYERS_GPU_BATCH * LAYERS_GPU_TIMES;
    return (uint32_t)(fitting < 1 ? 1 : fitting < LAYERS_BATCH_MOST ? fitting : LAYERS_BATCH_MOST);
}

int layers_init(struct layers *layers, const struct rank_overlap *asked, const struct rank_backend *place,
                float *gradients, uint32_t rank, uint32_t ranks, struct wf_status *status)
{
    *layers = (struct layers){.gradients = gradients,
                              .count = asked->layers,
                              .rows = (uint32_t)(asked->layer_bytes / (LAYERS_COLUMNS * sizeof(float))),
                              .rank = rank,
                              .ranks = ranks,
                              .place = place};
    layers->batch_most = most_rows(layers, asked);
    size_t room = place ? LAYERS_GPU_BATCH : layers->batch_most;
    layers->left = malloc(room * layers->rows * sizeof(float));
    layers->right = malloc(room * LAYERS_COLUMNS * sizeof(float));
    if (!layers->left || !layers->right)
        return wf_fail(status, -ENOMEM, "no memory for a batch of %zu rows", room);
    if (place)
        snprintf(layers->how, sizeof layers->how, "%s", place->multiplier);
    else
        load_blas(layers);
    layers_set_batch(layers, layers->batch_most);
    return place ? place_factors(layers, status) : 0;
}

void layers_fini(struct layers *layers)
{
    if (layers->factors)
        layers->place->give(layers->factors);
    free(layers->left);
    free(layers->right);
    layers->factors = layers->left = layers->right = NULL;
}

void layers_set_batch(struct layers *layers, uint32_t batch)
{
    layers->batch = batch < 1 ? 1 : batch < layers->batch_most ? batch : layers->batch_most;
    if (layers->place && layers->batch > LAYERS_GPU_BATCH)
        layers->batch -= layers->batch % LAYERS_GPU_BATCH;
}

/* A row of the result stays in the cache; compilers make vectors of the inner loop. */
static void multiply_plainly(const struct layers *layers, float *out)
{
    for (uint32_t i = 0; i < layers->rows; i++, out += LAYERS_COLUMNS) {
        memset(out, 0, LAYERS_COLUMNS * sizeof *out);
        for (uint32_t k = 0; k < layers->batch; k++) {
            float left = layers->left[(size_t)k * layers->rows + i];
            const float *right = layers->right + (size_t)k * LAYERS_COLUMNS;
            for (uint32_t j = 0; j < LAYERS_COLUMNS; j++)
                out[j] += left * right[j];
        }
    }
}

int layers_compute(struct layers *layers, uint32_t layer, struct wf_status *status)
{
    float *out = layers->gradients + layer * layers_elements(layers);
    int rows = (int)layers->rows, batch = (int)layers->batch;

    if (layers->place)
        return multiply_in_place(layers, layer, status);
    fill(layers, layer, layers->batch);
    if (layers->multiply)
        layers->multiply(ROW_MAJOR, TRANSPOSED, NOT_TRANSPOSED, rows, LAYERS_COLUMNS, batch, 1, layers->left, rows,
                         layers->right, LAYERS_COLUMNS, 0, out, LAYERS_COLUMNS);
    else
        multiply_plainly(layers, out);
    return 0;
}

/* --- proof --- */

/* What all ranks have in the rows of a layer, which repeat. */
static void sum_rows(const struct layers *layers, uint32_t layer, float sums[ROWS_PERIOD][LAYERS_COLUMNS])
{
    memset(sums, 0, ROWS_PERIOD * sizeof *sums);
    for (uint32_t rank = 0; rank < layers->ranks; rank++)
        for (uint32_t row = 0; row < ROWS_PERIOD; row++) {
            float left = (float)rows_at_once(layers) * of_row(row, layer, rank);
            for (uint32_t j = 0; j < LAYERS_COLUMNS; j++)
                sums[row][j] += left * of_column(j, layer, rank);
        }
}

static uint64_t count_wrong(const float *found, const float *sums)
{
    uint64_t wrong = 0;

    if (memcmp(found, sums, LAYERS_COLUMNS * sizeof *sums) == 0)
        return 0;
    for (uint32_t j = 0; j < LAYERS_COLUMNS; j++)
        wrong += !(found[j] == sums[j]); /* also where it is no number */
    return wrong;
}

uint64_t layers_wrong(const struct layers *layers, const float *found)
{
    static float sums[ROWS_PERIOD][LAYERS_COLUMNS]; /* large for a stack */
    uint64_t wrong = 0;

    for (uint32_t layer = 0; layer < layers->count; layer++) {
        sum_rows(layers, layer, sums);
        for (uint32_t row = 0; row < layers->rows; row++, found += LAYERS_COLUMNS)
            wrong += count_wrong(found, sums[row % ROWS_PERIOD]);
    }
    return wrong;
}
