#include "mem/cuda_kernels.h"

#include "mem/kernels_image.h"

/* As kernels.cu counts: a warp a piece along x, slices of long pieces along y. */
#define LANES 32
#define WARPS 8
#define SLICE_BYTES 8192
#define MOST_SLICES 64

#define SUM_THREADS 256
#define SUM_BYTES_PER_THREAD 64
#define MOST_SUM_BLOCKS 4096

static const char *const sum_names[WF_NUMBERS] = {
    [WF_NUMBER_FLOAT32] = "weft_sum_float32",
    [WF_NUMBER_FLOAT16] = "weft_sum_float16",
    [WF_NUMBER_BFLOAT16] = "weft_sum_bfloat16",
    [WF_NUMBER_INT32] = "weft_sum_int32",
};

bool wf_cuda_kernels_built(void)
{
    return wf_kernels_image_bytes() != 0;
}

/* A driver may load a function with its first launch, and wait then for what is under way: also for a stream that waits
 * for this very launch. */
static wf_cu_result get_function(const struct wf_cuda_api *api, wf_cu_module module, const char *name,
                                 wf_cu_function *out)
{
    wf_cu_result result = api->cuModuleGetFunction(out, module, name);

    if (!result && api->cuFuncLoad)
        result = api->cuFuncLoad(*out);
    return result;
}

wf_cu_result wf_cuda_kernels_load(const struct wf_cuda_api *api, struct wf_cuda_kernels *out)
{
    struct wf_cuda_kernels kernels = {0};
    wf_cu_result result;

    if (!wf_cuda_kernels_built() || !api->cuModuleLoadData || !api->cuModuleUnload || !api->cuModuleGetFunction ||
        !api->cuLaunchKernel)
        return WF_CU_NOT_SUPPORTED;
    result = api->cuModuleLoadData(&kernels.module, wf_kernels_image());
    if (result)
        return result;
    result = get_function(api, kernels.module, "weft_gather", &kernels.gather);
    if (!result)
        result = get_function(api, kernels.module, "weft_scatter", &kernels.scatter);
    for (int i = 0; i < WF_NUMBERS && !result; i++)
        result = get_function(api, kernels.module, sum_names[i], &kernels.sum[i]);
    if (result) {
        wf_cuda_kernels_unload(api, &kernels);
        return result;
    }
    *out = kernels;
    return WF_CU_SUCCESS;
}

void wf_cuda_kernels_unload(const struct wf_cuda_api *api, struct wf_cuda_kernels *kernels)
{
    if (kernels->module)
        (void)api->cuModuleUnload(kernels->module);
    *kernels = (struct wf_cuda_kernels){0};
}

static wf_cu_result launch_pieces(const struct wf_cuda_api *api, wf_cu_function function, wf_cu_stream stream,
                                  wf_cu_memory contiguous, wf_cu_memory pieces, unsigned int count, uint64_t longest)
{
    void *parameters[] = {&pieces, &count, &contiguous};
    uint64_t slices = (longest + SLICE_BYTES - 1) / SLICE_BYTES;

    if (count == 0 || slices == 0)
        return WF_CU_SUCCESS;
    if (slices > MOST_SLICES)
        slices = MOST_SLICES;
    return api->cuLaunchKernel(function, (count + WARPS - 1) / WARPS, (unsigned int)slices, 1, LANES, WARPS, 1, 0,
                               stream, parameters, NULL);
}

wf_cu_result wf_cuda_gather(const struct wf_cuda_api *api, const struct wf_cuda_kernels *kernels, wf_cu_stream stream,
                            wf_cu_memory to, wf_cu_memory pieces, unsigned int count, uint64_t longest)
{
    return launch_pieces(api, kernels->gather, stream, to, pieces, count, longest);
}

wf_cu_result wf_cuda_scatter(const struct wf_cuda_api *api, const struct wf_cuda_kernels *kernels, wf_cu_stream stream,
                             wf_cu_memory from, wf_cu_memory pieces, unsigned int count, uint64_t longest)
{
    return launch_pieces(api, kernels->scatter, stream, from, pieces, count, longest);
}

wf_cu_result wf_cuda_sum(const struct wf_cuda_api *api, const struct wf_cuda_kernels *kernels, wf_cu_stream stream,
                         enum wf_number type, wf_cu_memory to, wf_cu_memory from, uint64_t count)
{
    void *parameters[] = {&to, &from, &count};
    uint64_t per_block = SUM_THREADS * SUM_BYTES_PER_THREAD / (uint64_t)wf_number_bytes(type);
    uint64_t blocks = count / per_block + 1;

    if (count == 0)
        return WF_CU_SUCCESS;
    if (blocks > MOST_SUM_BLOCKS)
        blocks = MOST_SUM_BLOCKS;
    return api->cuLaunchKernel(kernels->sum[type], (unsigned int)blocks, 1, 1, SUM_THREADS, 1, 1, 0, stream, parameters,
                               NULL);
}
