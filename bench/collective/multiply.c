#include "multiply.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "mem/cuda_driver.h"

/* Between two looks whether the GPU is done: the driver's own wait spins, on a processor that the network needs. */
#define LOOK_NS 20000

/* Of cublas_v2.h, which need not be here. */
#define AS_IT_IS 0
#define TRANSPOSED 1

typedef void *blas_handle;

/* X(name, parameters) */
#define BLAS_FUNCTIONS(X)                                                                                              \
    X(cublasCreate_v2, (blas_handle *))                                                                                \
    X(cublasGetVersion_v2, (blas_handle, int *))                                                                       \
    X(cublasSetStream_v2, (blas_handle, wf_cu_stream))                                                                 \
    X(cublasSgemm_v2, (blas_handle, int, int, int, int, int, const float *, const float *, int, const float *, int,    \
                       const float *, float *, int))

/* Of this process, which is one rank and then ends. */
static struct {
    struct wf_cuda_driver cuda;
    wf_cu_context context;
    wf_cu_stream stream;
    wf_cu_event done;
    blas_handle blas;
#define MEMBER(name, parameters) int(*name) parameters;
    BLAS_FUNCTIONS(MEMBER)
#undef MEMBER
    char how[64];
} own;

/* --- open --- */

static const char *load(void **library)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};

    for (size_t i = 0; i < sizeof names / sizeof names[0] && !*library; i++)
        *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!*library)
        return "there is no libcublas.so.13, .12 or .11";
#define LOOK_UP(name, parameters)                                                                                      \
    *(void **)&own.name = dlsym(*library, #name);                                                                      \
    if (!own.name)                                                                                                     \
        return "libcublas has no " #name;
    BLAS_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    return NULL;
}

static wf_cu_result make_stream(int gpu)
{
    const struct wf_cuda_api *cuda = &own.cuda.api;
    wf_cu_device device;
    wf_cu_result result = wf_cuda_context_enter(cuda, gpu, &device, &own.context);

    if (result == WF_CU_SUCCESS)
        result = cuda->cuStreamCreate(&own.stream, WF_CU_STREAM_NON_BLOCKING);
    if (result == WF_CU_SUCCESS)
        result = cuda->cuEventCreate(&own.done, WF_CU_EVENT_DISABLE_TIMING);
    return result;
}

/* The context of the GPU is current. */
static int start_blas(bool stand_in, struct wf_status *status)
{
    int version = 0, result = own.cublasCreate_v2(&own.blas);

    if (result == 0)
        result = own.cublasSetStream_v2(own.blas, own.stream);
    if (result == 0)
        result = own.cublasGetVersion_v2(own.blas, &version);
    if (result)
        return wf_fail(status, -EIO, "cuBLAS does not start: its error %d", result);
    snprintf(own.how, sizeof own.how, "cuBLAS %d.%d.%d%s", version / 10000, version / 100 % 100, version % 100,
             stand_in ? " (a stand-in)" : "");
    return 0;
}

static int cuda_failed(const char *what, wf_cu_result result, struct wf_status *status)
{
    char why[WF_CUDA_ERROR_TEXT];

    return wf_fail(status, -EIO, "%s: %s", what, wf_cuda_error(&own.cuda.api, result, why));
}

int coll_multiply_open(int gpu, struct wf_status *status)
{
    void *library = NULL;
    wf_cu_context ignored;
    int result = wf_cuda_driver_open(&own.cuda, status);
    const char *lacking = result ? NULL : load(&library);
    bool stand_in = library && dlsym(library, "weft_emulated_driver");

    if (result)
        return result;
    if (lacking)
        return wf_fail(status, -EOPNOTSUPP,
                       "layers cannot be computed on a GPU: %s (CUDA's toolkit and the Python package nvidia-cublas "
                       "have one: name its folder in LD_LIBRARY_PATH)",
                       lacking);
    if (stand_in != own.cuda.emulated)
        return wf_fail(status, -EOPNOTSUPP, "the driver is %s, and libcublas is %s",
                       own.cuda.emulated ? "emulated" : "CUDA's", stand_in ? "a stand-in" : "cuBLAS itself");
    wf_cu_result made = make_stream(gpu);
    if (made)
        return cuda_failed("a stream to compute in", made, status);
    result = start_blas(stand_in, status);
    own.cuda.api.cuCtxPopCurrent(&ignored);
    return result;
}

const char *coll_multiply_how(void)
{
    return own.how;
}

/* --- multiply --- */

/* cuBLAS has matrices by columns: there the left one of ours is the right one, and nothing else is transposed. */
static int launch(const struct rank_product *product)
{
    const int columns = (int)product->columns, rows = (int)product->rows, batch = (int)product->batch;
    const float one = 1, zero = 0;
    int result = 0;

    for (uint32_t i = 0; i < product->times && result == 0; i++)
        result = own.cublasSgemm_v2(own.blas, AS_IT_IS, TRANSPOSED, columns, rows, batch, &one, product->right, columns,
                                    product->left, rows, &zero, product->out, columns);
    return result;
}

static wf_cu_result await(void)
{
    const struct wf_cuda_api *cuda = &own.cuda.api;
    wf_cu_result result = cuda->cuEventRecord(own.done, own.stream);

    if (result)
        return result;
    while ((result = cuda->cuEventQuery(own.done)) == WF_CU_NOT_READY)
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    return result;
}

int coll_multiply(const struct rank_product *product, struct wf_status *status)
{
    wf_cu_context ignored;
    wf_cu_result current = own.cuda.api.cuCtxPushCurrent(own.context);

    if (current)
        return cuda_failed("a product on a GPU", current, status);
    int failed = launch(product);
    wf_cu_result ended = await();
    own.cuda.api.cuCtxPopCurrent(&ignored);
    if (failed)
        return wf_fail(status, -EIO, "a product on a GPU: error %d of cuBLAS", failed);
    return ended ? cuda_failed("a product on a GPU", ended, status) : 0;
}
