/*
 * What is done with kernels where a driver takes them: which copies become one launch, with which table of pieces, and
 * that everything is as it would be without. The driver is the emulated one, and the kernels are played here: the
 * emulated driver refuses the real ones, which mem.kernels_on_host tests.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "mem/memory_cuda.h"

#define REGION ((uint64_t)8 << 20)

/* The module and the functions are told apart by their addresses alone. */
static char module, functions[2 + WF_NUMBERS];
static int loaded, launches;
static int refuse_function; /* 1 and up: the lookup of that function fails, or its loading */
static bool refuse_load, ready[2 + WF_NUMBERS];
static wf_cu_result launch_result;
static struct wf_cuda_api real;
static struct wf_memory *memory;

static wf_cu_result load_module(wf_cu_module *out, const void *image)
{
    uint32_t magic;

    memcpy(&magic, image, sizeof(magic));
    assert_int_equal(magic, 0xBA55ED50); /* a fatbin */
    loaded++;
    *out = (wf_cu_module)(void *)&module;
    return WF_CU_SUCCESS;
}

static wf_cu_result unload_module(wf_cu_module which)
{
    assert_ptr_equal(which, &module);
    loaded--;
    return WF_CU_SUCCESS;
}

static wf_cu_result get_function(wf_cu_function *out, wf_cu_module which, const char *name)
{
    static const char *const names[] = {"weft_gather",      "weft_scatter",      "weft_sum_float32",
                                        "weft_sum_float16", "weft_sum_bfloat16", "weft_sum_int32"};

    assert_ptr_equal(which, &module);
    for (int i = 0; i < (int)(sizeof(names) / sizeof(*names)); i++) {
        if (strcmp(name, names[i]) != 0)
            continue;
        *out = (wf_cu_function)(void *)&functions[i];
        ready[i] = !memory->driver.api.cuFuncLoad;
        return refuse_function == i + 1 && !refuse_load ? WF_CU_INVALID_VALUE : WF_CU_SUCCESS;
    }
    fail_msg("no kernel is called %s", name);
    return WF_CU_INVALID_VALUE;
}

/* The rest of what get_function() begins, as drivers do it that are not eager. */
static wf_cu_result load_function(wf_cu_function function)
{
    int index = (int)((char *)(void *)function - functions);

    ready[index] = true;
    return refuse_function == index + 1 && refuse_load ? WF_CU_OUT_OF_MEMORY : WF_CU_SUCCESS;
}

/* In place of the kernel: its table is read when the stream has come to it, and its work put to the same stream. */
static wf_cu_result launch(wf_cu_function function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                           unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                           wf_cu_stream stream, void **parameters, void **extra)
{
    wf_cu_memory table_at = *(wf_cu_memory *)parameters[0], contiguous = *(wf_cu_memory *)parameters[2];
    unsigned int count = *(unsigned int *)parameters[1];
    struct wf_gather_piece *table = calloc(count, sizeof(*table));
    bool gather = (void *)function == &functions[0];

    assert_true(gather || (void *)function == &functions[1]);
    assert_true(ready[gather ? 0 : 1]); /* nothing is left to be loaded, and waited for, here */
    assert_true(grid_z == 1 && block_z == 1 && shared_bytes == 0 && !extra);
    assert_true(block_x == 32 && grid_x * block_y >= count); /* a warp for each piece */
    launches++;
    if (launch_result) {
        free(table);
        return launch_result;
    }
    assert_int_equal(real.cuMemcpyDtoHAsync(table, table_at, count * sizeof(*table), stream), 0);
    assert_int_equal(real.cuStreamSynchronize(stream), 0);
    for (unsigned int i = 0; i < count; i++) {
        wf_cu_memory apart = table[i].address, place = contiguous + table[i].offset;
        assert_true(table[i].offset + table[i].bytes <= WF_CUDA_SCRATCH);
        assert_true(table[i].bytes <= 8192u * grid_y || grid_y == 64); /* slices for the longest */
        assert_int_equal(real.cuMemcpyDtoDAsync(gather ? place : apart, gather ? apart : place, table[i].bytes, stream),
                         0);
    }
    free(table);
    return WF_CU_SUCCESS;
}

/* --- the world --- */

static uint8_t *here, *image, *there;

static int set_up(void **state)
{
    void *base = NULL;

    (void)state;
    assert_non_null(dlopen(EMULATED_CUDA, RTLD_NOW | RTLD_LOCAL));
    loaded = launches = refuse_function = 0;
    refuse_load = false;
    memset(ready, 0, sizeof(ready));
    launch_result = WF_CU_SUCCESS;
    assert_int_equal(wf_memory_cuda.open(NULL, &memory, NULL), 0);
    real = memory->driver.api;
    memory->driver.api.cuModuleLoadData = load_module;
    memory->driver.api.cuModuleUnload = unload_module;
    memory->driver.api.cuModuleGetFunction = get_function;
    memory->driver.api.cuFuncLoad = load_function;
    memory->driver.api.cuLaunchKernel = launch;
    here = malloc(REGION);
    image = malloc(REGION);
    assert_int_equal(wf_memory_cuda.use(memory, 0, NULL), 0);
    assert_int_equal(wf_memory_cuda.alloc(memory, 0, REGION, &base, NULL), 0);
    there = base;
    for (uint64_t i = 0; i < REGION; i++)
        image[i] = (uint8_t)(i * 31 + i / 997);
    assert_int_equal(wf_memory_cuda.copy_now(memory, there, image, REGION, NULL), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wf_memory_cuda.free(memory, 0, there);
    wf_memory_cuda.close(memory);
    assert_int_equal(loaded, 0);
    free(here);
    free(image);
    return 0;
}

static int run(enum wf_copy_way way, const struct wf_copy_piece *pieces, int count)
{
    struct wf_copy copy = {.device = 0, .way = way};
    int result = wf_memory_cuda.copy_start(memory, &copy, pieces, count, false);

    while (result == 0 && (result = wf_memory_cuda.copy_done(memory, &copy)) == 0)
        sched_yield();
    return result;
}

/* `count` pieces of `bytes`, in a row on the host and `step` apart on the device, the last one first. */
static void lay_out(struct wf_copy_piece *pieces, int count, uint64_t bytes, uint64_t step, enum wf_copy_way way)
{
    for (int i = 0; i < count; i++) {
        uint8_t *near = here + (uint64_t)i * bytes, *far = there + (uint64_t)(count - 1 - i) * step;
        pieces[i] = (struct wf_copy_piece){
            .to = way == WF_COPY_IN ? far : near, .from = way == WF_COPY_IN ? near : far, .bytes = bytes};
    }
}

static void expect_copied(const struct wf_copy_piece *pieces, int count, enum wf_copy_way way)
{
    if (way == WF_COPY_IN)
        for (int i = 0; i < count; i++)
            memcpy(image + ((uint8_t *)pieces[i].to - there), pieces[i].from, pieces[i].bytes);
    else
        for (int i = 0; i < count; i++)
            assert_memory_equal(pieces[i].to, image + ((const uint8_t *)pieces[i].from - there), pieces[i].bytes);
    uint8_t *all = malloc(REGION);
    assert_int_equal(wf_memory_cuda.copy_now(memory, all, there, REGION, NULL), 0);
    assert_memory_equal(all, image, REGION); /* and nothing else */
    free(all);
}

static void gathers_small_pieces(void **state)
{
    static const struct {
        int count;
        uint64_t bytes, step;
        int launches;
    } cases[] = {
        {7, 100, 300, 0}, /* too few */
        {8, 100, 300, 1},       {64, 4096, 8192, 1},
        {512, 4096, 8192, 1},   {513, 4096, 8192, 1}, /* a launch, and a copy */
        {1300, 1000, 3001, 3},                        /* as many as a table takes at a time */
        {9, 32768, 40000, 1},                         /* the longest on average */
        {9, 32769, 40000, 0},                         /* copies as fast by itself */
        {200, 30000, 40000, 0},                       /* more than there is room for */
        {139, 30001, 40000, 1}, {300, 1, 3, 1},
    };
    static struct wf_copy_piece pieces[1300];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        for (int way = WF_COPY_OUT; way <= WF_COPY_IN; way++) {
            memset(here, (int)i + 1, REGION);
            lay_out(pieces, cases[i].count, cases[i].bytes, cases[i].step, (enum wf_copy_way)way);
            launches = 0;
            assert_int_equal(run((enum wf_copy_way)way, pieces, cases[i].count), 1);
            assert_int_equal(launches, cases[i].launches);
            expect_copied(pieces, cases[i].count, (enum wf_copy_way)way);
        }
    }
}

/* What is not in a row on the host stays as many copies. */
static void leaves_others_alone(void **state)
{
    struct wf_copy_piece pieces[20];

    (void)state;
    lay_out(pieces, 20, 1000, 2000, WF_COPY_OUT);
    pieces[10].to = here + REGION / 2;
    assert_int_equal(run(WF_COPY_OUT, pieces, 20), 1);
    assert_int_equal(launches, 0);
    expect_copied(pieces, 20, WF_COPY_OUT);
}

/* Many under way in the same streams: what one gathers is not what another copies. */
static void keeps_gathers_apart(void **state)
{
    enum { COPIES = 24, PIECES = 16, BYTES = 500 };
    struct wf_copy copies[COPIES] = {0};
    struct wf_copy_piece pieces[COPIES][PIECES];

    (void)state;
    for (int i = 0; i < COPIES; i++) {
        for (int k = 0; k < PIECES; k++)
            pieces[i][k] = (struct wf_copy_piece){
                .to = here + (i * PIECES + k) * BYTES, .from = there + (k * COPIES + i) * 2 * BYTES, .bytes = BYTES};
        copies[i] = (struct wf_copy){.device = 0, .way = WF_COPY_OUT};
        assert_int_equal(wf_memory_cuda.copy_start(memory, &copies[i], pieces[i], PIECES, false), 0);
    }
    for (int i = COPIES - 1; i >= 0; i--) {
        int result;
        while ((result = wf_memory_cuda.copy_done(memory, &copies[i])) == 0)
            sched_yield();
        assert_int_equal(result, 1);
        expect_copied(pieces[i], PIECES, WF_COPY_OUT);
    }
    assert_int_equal(launches, COPIES);
}

/* The tables of the launches before are not read yet: then pieces are copied one by one, and nobody waits. */
static wf_cu_result never_read(wf_cu_event event)
{
    for (int way = WF_COPY_OUT; way <= WF_COPY_IN; way++)
        for (int lane = 0; lane < WF_CUDA_LANES; lane++)
            for (int i = 0; i < WF_CUDA_TABLES; i++)
                if (event == memory->devices[0].lanes[way][lane].read[i])
                    return WF_CU_NOT_READY;
    return real.cuEventQuery(event);
}

static void needs_a_table_for_each_launch(void **state)
{
    struct wf_copy_piece pieces[20];

    (void)state;
    memory->driver.api.cuEventQuery = never_read;
    for (int way = WF_COPY_OUT; way <= WF_COPY_IN; way++) {
        lay_out(pieces, 20, 1000, 2000, (enum wf_copy_way)way);
        assert_int_equal(run((enum wf_copy_way)way, pieces, 20), 1);
        expect_copied(pieces, 20, (enum wf_copy_way)way);
    }
    assert_int_equal(launches, 0);
}

static void reports_a_launch_that_fails(void **state)
{
    struct wf_copy_piece pieces[20];

    (void)state;
    lay_out(pieces, 20, 1000, 2000, WF_COPY_OUT);
    launch_result = 701; /* too many resources: not for good */
    assert_int_equal(run(WF_COPY_OUT, pieces, 20), -EIO);
    assert_non_null(strstr(wf_memory_cuda.why(memory, 0), "(701)"));
    launch_result = WF_CU_SUCCESS;
    assert_int_equal(run(WF_COPY_OUT, pieces, 20), 1);
    expect_copied(pieces, 20, WF_COPY_OUT);
}

static void takes_all_kernels_or_none(void **state)
{
    struct wf_cuda_kernels kernels = {0};
    const struct wf_cuda_api *api = &memory->driver.api;
    int before = loaded;

    (void)state;
    for (int i = 0; i < 2 * (2 + WF_NUMBERS); i++) {
        refuse_function = i / 2 + 1;
        refuse_load = i % 2;
        assert_int_equal(wf_cuda_kernels_load(api, &kernels), refuse_load ? WF_CU_OUT_OF_MEMORY : WF_CU_INVALID_VALUE);
        assert_null(kernels.module);
        assert_int_equal(loaded, before);
    }
    refuse_function = 0;
    refuse_load = false;
    assert_int_equal(wf_cuda_kernels_load(api, &kernels), 0);
    /* A driver from before there was that call has loaded them already. */
    wf_cuda_kernels_unload(api, &kernels);
    memory->driver.api.cuFuncLoad = NULL;
    assert_int_equal(wf_cuda_kernels_load(api, &kernels), 0);
    for (int i = 0; i < WF_NUMBERS; i++)
        assert_ptr_equal(kernels.sum[i], &functions[2 + i]);
    wf_cuda_kernels_unload(api, &kernels);
    wf_cuda_kernels_unload(api, &kernels);
    assert_int_equal(loaded, before);
}

/* The emulated driver's own answer: there is no code for such a GPU. */
static void copes_without(void **state)
{
    struct wf_cuda_kernels kernels = {0};
    struct wf_cuda_api none = real;
    struct wf_cuda_device *device = &memory->devices[0];
    struct wf_cuda_visit visit;

    (void)state;
    none.cuLaunchKernel = NULL;
    assert_int_equal(wf_cuda_kernels_load(&none, &kernels), WF_CU_NOT_SUPPORTED);
    assert_int_equal(wf_cuda_enter(memory, device, &visit), 0);
    assert_int_equal(wf_cuda_kernels_load(&real, &kernels), 209);
    wf_cuda_leave(memory, &visit);
    assert_null(kernels.module);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gathers_small_pieces, set_up, tear_down),
        cmocka_unit_test_setup_teardown(leaves_others_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keeps_gathers_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(needs_a_table_for_each_launch, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reports_a_launch_that_fails, set_up, tear_down),
        cmocka_unit_test_setup_teardown(takes_all_kernels_or_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(copes_without, set_up, tear_down),
    };

    if (!wf_cuda_kernels_built()) {
        print_message("skipped: built without nvcc, so there are no kernels\n");
        return 77;
    }
    return cmocka_run_group_tests_name("pieces by one launch", tests, NULL, NULL);
}
