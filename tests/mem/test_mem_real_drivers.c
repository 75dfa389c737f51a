/*
 * What real drivers do and the emulated one does not: mappings of virtual memory side by side, pools, managed memory,
 * attributes refused, pinned memory at another address for the device, batches refused, dma-bufs. Single functions of
 * the table are played here, the rest is the emulated driver.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "mem/memory_cuda.h"

#define MAPPED UINT64_C(0x7f0000000000) /* where the played allocations are */
#define MEBI (UINT64_C(1) << 20)

static struct wf_memory *memory;
static struct wf_cuda_api real;

static int set_up(void **state)
{
    (void)state;
    assert_non_null(dlopen(EMULATED_CUDA, RTLD_NOW | RTLD_LOCAL));
    assert_int_equal(wf_memory_cuda.open(NULL, &memory, NULL), 0);
    assert_int_equal(wf_memory_cuda.use(memory, 0, NULL), 0);
    real = memory->driver.api;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    memory->driver.api = real;
    wf_memory_cuda.close(memory);
    return 0;
}

/* --- where memory is --- */

/* Played memory: none of it belongs to a context, as that of pools and mappings does not. */
static const struct played {
    uint64_t base, bytes;
    unsigned int type, managed;
    int ordinal;
} played[] = {
    {MAPPED, 2 * MEBI, WF_CU_MEMORY_DEVICE, 0, 0},            /* two mappings of one reservation, */
    {MAPPED + 2 * MEBI, 2 * MEBI, WF_CU_MEMORY_DEVICE, 0, 1}, /* of two GPUs */
    {MAPPED + 8 * MEBI, 1000, WF_CU_MEMORY_DEVICE, 0, 1},     /* alone, of a GPU that is not in use */
    {MAPPED + 16 * MEBI, MEBI, WF_CU_MEMORY_DEVICE, 1, 0},    /* managed */
    {MAPPED + 24 * MEBI, MEBI, WF_CU_MEMORY_HOST, 0, 0},      /* pinned, */
    {MAPPED + 25 * MEBI, MEBI, WF_CU_MEMORY_DEVICE, 0, 0},    /* and a GPU's right behind */
    {MAPPED + 32 * MEBI, MEBI, WF_CU_MEMORY_DEVICE, 0, 99},   /* of a GPU that was not there when we opened */
};
static wf_cu_result asking_fails, ranging_fails;
static uint64_t buffer_id, block_id; /* of all of them; 0: not told */

static const struct played *at(uint64_t address)
{
    for (size_t i = 0; i < sizeof(played) / sizeof(*played); i++)
        if (address >= played[i].base && address - played[i].base < played[i].bytes)
            return &played[i];
    return NULL;
}

static wf_cu_result get_attributes(unsigned int count, unsigned int *questions, void **answers, wf_cu_memory address)
{
    const struct played *where = at(address);

    if (asking_fails)
        return asking_fails;
    for (unsigned int i = 0; i < count; i++) {
        if (questions[i] == WF_CU_POINTER_MEMORY_TYPE)
            *(unsigned int *)answers[i] = where ? where->type : 0;
        else if (questions[i] == WF_CU_POINTER_IS_MANAGED)
            *(unsigned int *)answers[i] = where ? where->managed : 0;
        else if (questions[i] == WF_CU_POINTER_DEVICE_ORDINAL)
            *(int *)answers[i] = where ? where->ordinal : -2;
        else if (questions[i] == WF_CU_POINTER_CONTEXT)
            *(void **)answers[i] = NULL;
        else if (questions[i] == WF_CU_POINTER_RANGE_START)
            *(wf_cu_memory *)answers[i] = where ? where->base : 0;
        else if (questions[i] == WF_CU_POINTER_RANGE_SIZE)
            *(size_t *)answers[i] = where ? where->bytes : 0;
        else if (questions[i] == WF_CU_POINTER_BUFFER_ID)
            *(uint64_t *)answers[i] = where ? buffer_id : 0;
        else if (questions[i] == WF_CU_POINTER_BLOCK_ID)
            *(uint64_t *)answers[i] = where ? block_id : 0;
        else
            fail_msg("attribute %u", questions[i]);
    }
    return WF_CU_SUCCESS;
}

static wf_cu_result get_range(wf_cu_memory *base, size_t *bytes, wf_cu_memory address)
{
    const struct played *where = at(address);

    if (ranging_fails || !where)
        return ranging_fails ? ranging_fails : 500;
    *base = where->base;
    *bytes = where->bytes;
    return WF_CU_SUCCESS;
}

static void expect_place(uint64_t base, uint64_t bytes, int device, bool pinned)
{
    struct wf_memory_place place = {.device = -9};
    struct wf_status status = {0};

    if (wf_memory_cuda.locate(memory, (void *)(uintptr_t)base, bytes, &place, &status))
        fail_msg("%s", status.text);
    assert_int_equal(place.device, device);
    assert_int_equal(place.pinned, pinned);
}

static void expect_refusal(uint64_t base, uint64_t bytes, int code, const char *text)
{
    struct wf_memory_place place;
    struct wf_status status = {0};

    assert_int_equal(wf_memory_cuda.locate(memory, (void *)(uintptr_t)base, bytes, &place, &status), code);
    assert_string_equal(status.text, text);
}

static void locates_what_real_drivers_have(void **state)
{
    (void)state;
    memory->driver.api.cuPointerGetAttributes = get_attributes;
    memory->driver.api.cuMemGetAddressRange = get_range;
    /* The second time the driver wants a context for ranges: the attributes do instead. */
    for (ranging_fails = 0; ranging_fails <= 201; ranging_fails += 201) {
        expect_place(MAPPED, 2 * MEBI, 0, false);
        expect_place(MAPPED + 2 * MEBI, 2 * MEBI, 1, false);
        expect_place(MAPPED + 8 * MEBI + 1, 999, 1, false);
        expect_place(MAPPED + 16 * MEBI, MEBI, WF_NO_DEVICE, false);
        expect_place(MAPPED + 24 * MEBI, MEBI, WF_NO_DEVICE, true);
        expect_place(MAPPED + 40 * MEBI, MEBI, WF_NO_DEVICE, false);
        expect_refusal(MAPPED + MEBI, 2 * MEBI, -EINVAL,
                       "2097152 bytes at 0x7f0000100000 span two allocations: 2097152 bytes at 0x7f0000000000 of GPU 0 "
                       "and 2097152 bytes at 0x7f0000200000 of GPU 1; register each on its own");
        expect_refusal(MAPPED + 8 * MEBI, 1001, -EINVAL,
                       "1001 bytes at 0x7f0000800000 leave their allocation, 1000 bytes at 0x7f0000800000 of GPU 1, "
                       "and end in none");
        expect_refusal(MAPPED + 25 * MEBI - 1, 2, -EINVAL,
                       "2 bytes at 0x7f00018fffff start in host memory and end on GPU 0");
        expect_refusal(MAPPED + 32 * MEBI, 1, -EINVAL, "0x7f0002000000 is memory of GPU 99; GPUs are 0 to 1 here");
        expect_refusal(MAPPED, UINT64_MAX - 5, -EINVAL,
                       "18446744073709551610 bytes at 0x7f0000000000 pass the end of memory");
    }
    ranging_fails = 0;
    /* So drivers may say that they do not know an address. Any other error is no reason to touch the memory. */
    asking_fails = WF_CU_INVALID_VALUE;
    expect_place(MAPPED + 40 * MEBI, 1, WF_NO_DEVICE, false);
    asking_fails = WF_CU_INVALID_CONTEXT;
    expect_place(MAPPED + 40 * MEBI, 1, WF_NO_DEVICE, false);
    asking_fails = 999;
    expect_refusal(MAPPED, 1, -EIO, "the driver does not tell where 0x7f0000000000 is: CUDA_ERROR_UNKNOWN (999)");
    asking_fails = 0;
}

/* --- pinned memory --- */

static wf_cu_result refuse_register(void *base, size_t bytes, unsigned int flags)
{
    (void)base, (void)bytes;
    assert_int_equal(flags, WF_CU_REGISTER_PORTABLE | WF_CU_REGISTER_MAPPED);
    return WF_CU_OUT_OF_MEMORY;
}

static void names_the_limit_of_locked_memory(void **state)
{
    struct rlimit before, low;
    struct wf_status status = {0};
    void *page = aligned_alloc(4096, 4096);

    (void)state;
    memory->driver.api.cuMemHostRegister = refuse_register;
    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &before), 0);
    low = before;
    low.rlim_cur = 65536;
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &low), 0);
    assert_int_equal(wf_memory_cuda.pin(memory, 0, page, 4096, &status), -ENOMEM);
    assert_string_equal(status.text, "4096 bytes of host memory cannot be pinned: CUDA_ERROR_OUT_OF_MEMORY (2); the "
                                     "locked-memory limit is 65536 bytes (ulimit -l)");
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &before), 0);
    free(page);
}

static uint64_t device_address; /* 0: the device has none for it */
static uint64_t waited_at;

static wf_cu_result tell_device_address(wf_cu_memory *address, void *base, unsigned int flags)
{
    assert_non_null(base);
    assert_int_equal(flags, 0);
    if (device_address)
        *address = device_address;
    return device_address ? WF_CU_SUCCESS : WF_CU_INVALID_VALUE;
}

static wf_cu_result note_wait(wf_cu_stream stream, wf_cu_memory address, uint32_t value, unsigned int flags)
{
    assert_null(stream);
    assert_int_equal(value, 7);
    assert_int_equal(flags, WF_CU_WAIT_VALUE_GEQ);
    waited_at = address;
    return address == 0x5000 ? WF_CU_NOT_SUPPORTED : WF_CU_SUCCESS;
}

static void holds_by_the_devices_address(void **state)
{
    uint32_t flag = 0;

    (void)state;
    memory->driver.api.cuMemHostGetDevicePointer = tell_device_address;
    memory->driver.api.cuStreamWaitValue32 = note_wait;
    device_address = 0x4000;
    assert_int_equal(wf_memory_cuda.hold(memory, 0, NULL, &flag, 7), 0);
    assert_int_equal(waited_at, 0x4000);
    waited_at = device_address = 0;
    assert_int_equal(wf_memory_cuda.hold(memory, 0, NULL, &flag, 7), -ENOTSUP);
    assert_int_equal(waited_at, 0);
    device_address = 0x5000;
    assert_int_equal(wf_memory_cuda.hold(memory, 0, NULL, &flag, 7), -ENOTSUP);
    memory->driver.api.cuStreamWaitValue32 = NULL;
    assert_int_equal(wf_memory_cuda.hold(memory, 0, NULL, &flag, 7), -ENOTSUP);
    assert_int_equal(wf_memory_cuda.hold(memory, 1, NULL, &flag, 7), -EINVAL); /* not in use */
}

/* As a driver does it that has an address for registered memory only where it was told to map it. */
static void holds_by_a_word_that_we_have_pinned(void **state)
{
    uint32_t *flag = aligned_alloc(4096, 4096);
    struct wf_copy mark = {.device = 0, .way = WF_COPY_MARK};
    int result;

    (void)state;
    *flag = 1;
    assert_int_equal(wf_memory_cuda.pin(memory, 0, flag, 4096, NULL), 0);
    result = wf_memory_cuda.hold(memory, 0, NULL, flag, 1);
    if (result == 0)
        result = wf_memory_cuda.copy_start(memory, &mark, NULL, 0, false);
    while (result == 0 && (result = wf_memory_cuda.copy_done(memory, &mark)) == 0)
        sched_yield();
    assert_int_equal(result, 1);
    wf_memory_cuda.unpin(memory, 0, flag);
    free(flag);
}

/* --- copies --- */

static wf_cu_result batch_answer;
static int batches;

static wf_cu_result refuse_batch(wf_cu_memory *to, wf_cu_memory *from, size_t *bytes, size_t count,
                                 struct CUmemcpyAttributes_st *attributes, size_t *firsts, size_t attribute_count,
                                 size_t *failed, wf_cu_stream stream)
{
    (void)to, (void)from, (void)bytes, (void)count, (void)attributes, (void)firsts, (void)attribute_count, (void)failed;
    assert_non_null(stream);
    batches++;
    return batch_answer;
}

static void copies_piece_by_piece_where_batches_are_refused(void **state)
{
    static const struct {
        wf_cu_result answer;
        int result, batches; /* of three copies */
    } cases[] = {{WF_CU_INVALID_VALUE, 1, 3}, {999, -EIO, 3}, {WF_CU_NOT_SUPPORTED, 1, 1}};
    enum { PIECES = 5, SIZE = 700 };
    uint8_t here[PIECES * SIZE], image[PIECES * SIZE];
    void *there = NULL;

    (void)state;
    memset(image, 0x3D, sizeof(image));
    assert_int_equal(wf_memory_cuda.alloc(memory, 0, sizeof(image), &there, NULL), 0);
    assert_int_equal(wf_memory_cuda.copy_now(memory, there, image, sizeof(image), NULL), 0);
    memory->driver.api.cuMemcpyBatchAsync = refuse_batch;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        batch_answer = cases[i].answer;
        batches = 0;
        for (int round = 0; round < 3; round++) {
            struct wf_copy copy = {.device = 0, .way = WF_COPY_OUT};
            struct wf_copy_piece pieces[PIECES];
            memset(here, 0, sizeof(here));
            for (int k = 0; k < PIECES; k++)
                pieces[k] =
                    (struct wf_copy_piece){.to = here + k * SIZE, .from = (uint8_t *)there + k * SIZE, .bytes = SIZE};
            int result = wf_memory_cuda.copy_start(memory, &copy, pieces, PIECES, false);
            while (result == 0 && (result = wf_memory_cuda.copy_done(memory, &copy)) == 0)
                sched_yield();
            assert_int_equal(result, cases[i].result);
            if (result == 1)
                assert_memory_equal(here, image, sizeof(image));
        }
        assert_int_equal(batches, cases[i].batches);
    }
    wf_memory_cuda.free(memory, 0, there);
}

/* An event that cannot be recorded: then the error comes when nothing is under way any more. */
static int synchronized;

static wf_cu_result refuse_record(wf_cu_event event, wf_cu_stream stream)
{
    (void)event, (void)stream;
    return 999;
}

static wf_cu_result note_synchronize(wf_cu_stream stream)
{
    synchronized++;
    return real.cuStreamSynchronize(stream);
}

static void waits_only_where_no_event_can(void **state)
{
    uint8_t here[1000] = {0};
    void *there = NULL;
    struct wf_copy copy = {.device = 0, .way = WF_COPY_IN}, mark = {.device = 0, .way = WF_COPY_MARK};
    struct wf_copy_piece piece = {.from = here, .bytes = sizeof(here)};

    (void)state;
    assert_int_equal(wf_memory_cuda.alloc(memory, 0, sizeof(here), &there, NULL), 0);
    piece.to = there;
    memory->driver.api.cuEventRecord = refuse_record;
    memory->driver.api.cuStreamSynchronize = note_synchronize;
    assert_int_equal(wf_memory_cuda.copy_start(memory, &mark, NULL, 0, false), -EIO);
    assert_int_equal(synchronized, 0); /* nothing was put to any stream */
    assert_int_equal(wf_memory_cuda.copy_start(memory, &copy, &piece, 1, false), -EIO);
    assert_int_equal(synchronized, 1);
    assert_true(copy.token == 0 && !copy.event && mark.token == 0 && !mark.event);
    assert_string_equal(wf_memory_cuda.why(memory, 0), "CUDA_ERROR_UNKNOWN (999)");
    wf_memory_cuda.free(memory, 0, there);
}

/* --- allocations --- */

static struct wf_memory_extent extent_of(uint64_t address)
{
    struct wf_memory_extent extent = {.device = -9};
    struct wf_status status = {0};

    if (wf_memory_cuda.extent(memory, (const void *)(uintptr_t)address, &extent, &status))
        fail_msg("%s", status.text);
    return extent;
}

/* Of mappings some drivers tell the block that is mapped, and no number of a buffer. */
static void tells_a_mapping_and_its_block(void **state)
{
    struct wf_memory_extent extent;

    (void)state;
    memory->driver.api.cuPointerGetAttributes = get_attributes;
    memory->driver.api.cuMemGetAddressRange = get_range;
    buffer_id = 7, block_id = 7;
    extent = extent_of(MAPPED + 3 * MEBI);
    assert_int_equal(extent.device, 1);
    assert_true((uintptr_t)extent.base == MAPPED + 2 * MEBI && extent.bytes == 2 * MEBI);
    assert_true(extent.id == 7);
    buffer_id = 0;
    assert_true(extent_of(MAPPED).id != 0 && extent_of(MAPPED).id != 7); /* another kind of number */
    block_id = 0;
    assert_true(extent_of(MAPPED).id == 0);
    assert_int_equal(wf_memory_cuda.extent(memory, (void *)(uintptr_t)(MAPPED + 16 * MEBI), &extent, NULL), -EINVAL);
    assert_int_equal(wf_memory_cuda.extent(memory, (void *)(uintptr_t)(MAPPED + 32 * MEBI), &extent, NULL), -EINVAL);
    asking_fails = 999;
    assert_int_equal(wf_memory_cuda.extent(memory, (void *)(uintptr_t)MAPPED, &extent, NULL), -EIO);
    asking_fails = 0;
}

/* --- dma-bufs --- */

static uint64_t exported_base, exported_bytes;
static wf_cu_result pcie_answer;
static int dmabuf_able, exports, by_pcie;

static wf_cu_result get_device_attribute(int *value, unsigned int attribute, wf_cu_device device)
{
    (void)device;
    assert_int_equal(attribute, WF_CU_DEVICE_DMA_BUF_SUPPORTED);
    *value = dmabuf_able;
    return WF_CU_SUCCESS;
}

static wf_cu_result export_range(void *handle, wf_cu_memory base, size_t bytes, unsigned int type,
                                 unsigned long long flags)
{
    assert_int_equal(type, WF_CU_HANDLE_DMA_BUF_FD);
    exports++;
    if (flags != 0) {
        assert_int_equal(flags, WF_CU_RANGE_OVER_PCIE);
        if (pcie_answer)
            return pcie_answer;
        by_pcie++;
    }
    exported_base = base;
    exported_bytes = bytes;
    *(int *)handle = 1234;
    return WF_CU_SUCCESS;
}

static void exports_whole_pages(void **state)
{
    struct wf_status status = {0};
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), offset = 0;
    int fd = -1;

    (void)state;
    memory->driver.api.cuDeviceGetAttribute = get_device_attribute;
    memory->driver.api.cuMemGetHandleForAddressRange = export_range;
    assert_int_equal(
        wf_memory_cuda.export_dmabuf(memory, 0, (void *)(uintptr_t)(MAPPED + 100), page, &fd, &offset, &status),
        -ENOTSUP);
    assert_non_null(strstr(status.text, "GPU 0: its driver offers no dma-buf"));
    assert_int_equal(wf_memory_cuda.exports(memory, 0, &status), -ENOTSUP);
    assert_int_equal(fd, -1);
    dmabuf_able = 1;
    assert_int_equal(
        wf_memory_cuda.export_dmabuf(memory, 0, (void *)(uintptr_t)(MAPPED + 100), page, &fd, &offset, &status), 0);
    assert_int_equal(fd, 1234);
    assert_int_equal(offset, 100);
    assert_int_equal(exported_base, MAPPED);
    assert_int_equal(exported_bytes, 2 * page);
    assert_int_equal(by_pcie, 1);
    assert_int_equal(wf_memory_cuda.exports(memory, 0, &status), 0);
}

/* CUDA 12.0 to 12.7, and GPUs whose memory is not behind PCIe. */
static void exports_without_pcie_where_that_is_refused(void **state)
{
    static const struct {
        wf_cu_result answer;
        int result, exports;
    } cases[] = {{WF_CU_INVALID_VALUE, 0, 2}, {WF_CU_NOT_SUPPORTED, 0, 2}, {WF_CU_OUT_OF_MEMORY, -EIO, 1}};
    uint64_t offset;
    int fd;

    (void)state;
    memory->driver.api.cuDeviceGetAttribute = get_device_attribute;
    memory->driver.api.cuMemGetHandleForAddressRange = export_range;
    dmabuf_able = 1;
    by_pcie = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        exports = 0;
        pcie_answer = cases[i].answer;
        assert_int_equal(wf_memory_cuda.export_dmabuf(memory, 0, (void *)(uintptr_t)MAPPED, 100, &fd, &offset, NULL),
                         cases[i].result);
        assert_int_equal(exports, cases[i].exports);
    }
    assert_int_equal(by_pcie, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(locates_what_real_drivers_have, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_the_limit_of_locked_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(holds_by_the_devices_address, set_up, tear_down),
        cmocka_unit_test_setup_teardown(holds_by_a_word_that_we_have_pinned, set_up, tear_down),
        cmocka_unit_test_setup_teardown(copies_piece_by_piece_where_batches_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(waits_only_where_no_event_can, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tells_a_mapping_and_its_block, set_up, tear_down),
        cmocka_unit_test_setup_teardown(exports_whole_pages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(exports_without_pcie_where_that_is_refused, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("what real drivers do", tests, NULL, NULL);
}
