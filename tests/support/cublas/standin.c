/*
 * standin.c: a libcublas.so.13 without cuBLAS, for tests of those who call it: build/emulated/libcublas.so.13, beside
 * the CUDA driver without a GPU that it works on. It has the symbol weft_emulated_driver, so that no result of it can
 * pass for cuBLAS's. It multiplies by plain loops, in the order of its stream, and waits for that.
 *
 * CUBLAS_STANDIN makes it fail: "flip" has one element of every product wrong, "fail" refuses every product.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cuda/driver.h"

#define VERSION 130099 /* of no release */

enum { OK = 0, NO_MEMORY = 3, WRONG_VALUE = 7, FAILED = 13 };
enum { AS_IT_IS = 0, TRANSPOSED = 1 };

EMU_API extern const int weft_emulated_driver;
const int weft_emulated_driver = 1;

struct handle {
    struct CUstream_st *stream;
};

EMU_API int cublasCreate_v2(struct handle **out);
EMU_API int cublasSetStream_v2(struct handle *handle, struct CUstream_st *stream);
EMU_API int cublasGetVersion_v2(struct handle *handle, int *version);
EMU_API int cublasSgemm_v2(struct handle *handle, int how_a, int how_b, int m, int n, int k, const float *alpha,
                           const float *a, int step_a, const float *b, int step_b, const float *beta, float *c,
                           int step_c);

int cublasCreate_v2(struct handle **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? OK : NO_MEMORY;
}

int cublasSetStream_v2(struct handle *handle, struct CUstream_st *stream)
{
    handle->stream = stream;
    return OK;
}

int cublasGetVersion_v2(struct handle *handle, int *version)
{
    (void)handle;
    *version = VERSION;
    return OK;
}

static float *fetch(const struct handle *handle, const float *from, size_t count)
{
    float *copy = malloc(count * sizeof *copy);

    if (copy &&
        cuMemcpyDtoHAsync_v2(copy, (emu_pointer)(uintptr_t)from, count * sizeof *copy, handle->stream) == EMU_OK &&
        cuStreamSynchronize(handle->stream) == EMU_OK)
        return copy;
    free(copy);
    return NULL;
}

/* Element (row, column) of a matrix that lies by columns, or of its transpose. */
static float element(const float *matrix, int how, int step, int row, int column)
{
    return how == TRANSPOSED ? matrix[(size_t)row * step + column] : matrix[(size_t)column * step + row];
}

static bool asked_to(const char *what)
{
    const char *asked = getenv("CUBLAS_STANDIN");

    return asked && strcmp(asked, what) == 0;
}

int cublasSgemm_v2(struct handle *handle, int how_a, int how_b, int m, int n, int k, const float *alpha, const float *a,
                   int step_a, const float *b, int step_b, const float *beta, float *c, int step_c)
{
    if (m < 1 || n < 1 || k < 1 || step_c < m || step_a < (how_a == TRANSPOSED ? k : m) ||
        step_b < (how_b == TRANSPOSED ? n : k) || *beta != 0)
        return WRONG_VALUE;
    if (asked_to("fail"))
        return FAILED;
    float *left = fetch(handle, a, (size_t)step_a * (how_a == TRANSPOSED ? m : k));
    float *right = fetch(handle, b, (size_t)step_b * (how_b == TRANSPOSED ? k : n));
    float *result = calloc((size_t)step_c * n, sizeof *result);
    int status = left && right && result ? OK : NO_MEMORY;
    for (int column = 0; column < n && status == OK; column++)
        for (int i = 0; i < k; i++) {
            float by = *alpha * element(right, how_b, step_b, i, column);
            for (int row = 0; row < m; row++)
                result[(size_t)column * step_c + row] += element(left, how_a, step_a, row, i) * by;
        }
    if (status == OK && asked_to("flip"))
        result[0] += 1;
    if (status == OK && (cuMemcpyHtoDAsync_v2((emu_pointer)(uintptr_t)c, result, (size_t)step_c * n * sizeof *result,
                                              handle->stream) != EMU_OK ||
                         cuStreamSynchronize(handle->stream) != EMU_OK))
        status = FAILED;
    free(left);
    free(right);
    free(result);
    return status;
}
