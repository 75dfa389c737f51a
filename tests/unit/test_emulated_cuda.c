/* The emulated driver keeps to what the real one documents: contexts, pointers, order, and when memory is referred to.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "emulated_fixture.h"

/* --- without a context --- */

static void finds_symbols_by_version(void **state)
{
    (void)state;
    void *found = &found, *older = NULL;
    unsigned int status;

    OK(cuda.get("cuMemAlloc", &found, 2000, 0, &status)); /* that prototype knew 32 bits */
    assert_null(found);
    assert_int_equal(status, EMU_SYMBOL_VERSION_NOT_SUFFICIENT);
    OK(cuda.get("cuNoSuchThing", &found, 13000, 0, &status));
    assert_null(found);
    assert_int_equal(status, EMU_SYMBOL_NOT_FOUND);
    OK(cuda.get("cuMemcpyBatchAsync", &older, 12080, 0, NULL));
    OK(cuda.get("cuMemcpyBatchAsync", &found, 13000, 0, NULL));
    assert_true(older && found && older != found);
}

static void counts_contexts(void **state)
{
    (void)state;
    struct CUctx_st *context, *again, *popped;
    struct CUstream_st *stream;
    emu_pointer memory;
    char word[8];

    for (int i = 0; i < 8; i++)
        assert_int_equal(cuda.contexts(i), 0);
    assert_int_equal(cuda.contexts(8), -1);
    assert_int_equal(cuda.cuMemAlloc(&memory, 1), EMU_INVALID_CONTEXT);
    assert_int_equal(cuda.cuStreamCreate(&stream, 0), EMU_INVALID_CONTEXT);
    assert_int_equal(cuda.cuMemHostRegister(word, sizeof(word), 0), EMU_INVALID_CONTEXT);
    assert_int_equal(cuda.cuCtxPopCurrent(&popped), EMU_INVALID_CONTEXT);
    assert_int_equal(cuda.cuDevicePrimaryCtxRelease(3), EMU_INVALID_CONTEXT);
    OK(cuda.cuDevicePrimaryCtxRetain(&context, 3));
    OK(cuda.cuDevicePrimaryCtxRetain(&again, 3));
    assert_ptr_equal(context, again);
    for (int i = 0; i < 8; i++)
        assert_int_equal(cuda.contexts(i), i == 3 ? 2 : 0);
    OK(cuda.cuCtxPushCurrent(context));
    OK(cuda.cuMemAlloc(&memory, 1)); /* is freed with the context */
    OK(cuda.cuDevicePrimaryCtxRelease(3));
    OK(cuda.cuDevicePrimaryCtxRelease(3));
    assert_int_equal(cuda.contexts(3), 0);
    assert_int_equal(cuda.cuMemAlloc(&memory, 1), EMU_CONTEXT_IS_DESTROYED);
    assert_int_equal(cuda.cuCtxPushCurrent(context), EMU_INVALID_CONTEXT);
    OK(cuda.cuDevicePrimaryCtxRetain(&context, 3));
    assert_int_equal(cuda.cuMemAlloc(&memory, 1), EMU_CONTEXT_IS_DESTROYED); /* a new one, and not the current */
    OK(cuda.cuCtxPopCurrent(&popped));
    OK(cuda.cuCtxPushCurrent(context));
    OK(cuda.cuMemAlloc(&memory, 1));
    OK(cuda.cuCtxPopCurrent(&popped));
    assert_ptr_equal(popped, context);
    OK(cuda.cuDevicePrimaryCtxRelease(3));
    assert_int_equal(cuda.count("allocated"), 0);
}

static void names_devices(void **state)
{
    (void)state;
    int count, device, can, value;
    char name[64], address[16];
    size_t bytes;

    OK(cuda.cuDeviceGetCount(&count));
    assert_int_equal(count, 8);
    assert_int_equal(cuda.cuDeviceGet(&device, 8), EMU_INVALID_DEVICE);
    OK(cuda.cuDeviceGet(&device, 7));
    OK(cuda.cuDeviceGetName(name, sizeof(name), device));
    assert_non_null(strstr(name, "Weft emulated GPU"));
    OK(cuda.cuDeviceGetPCIBusId(address, sizeof(address), device));
    assert_string_equal(address, "0000:da:00.0");
    OK(cuda.cuDeviceGetAttribute(&value, 33, device));
    assert_int_equal(value, 0xda);
    OK(cuda.cuDeviceTotalMem(&bytes, device));
    assert_true(bytes == 4ULL << 30);
    OK(cuda.cuDeviceCanAccessPeer(&can, 0, 7));
    assert_int_equal(can, 1);
}

/* --- pointers --- */

static unsigned int type_of(const void *pointer)
{
    unsigned int type = 99, ordinal = 99, mapped = 99, managed = 99;
    struct CUctx_st *context;
    uint64_t start = 99, bytes = 99;
    unsigned int attributes[] = {EMU_POINTER_MEMORY_TYPE, EMU_POINTER_DEVICE_ORDINAL, EMU_POINTER_MAPPED,
                                 EMU_POINTER_IS_MANAGED,  EMU_POINTER_CONTEXT,        EMU_POINTER_RANGE_START,
                                 EMU_POINTER_RANGE_SIZE};
    void *values[] = {&type, &ordinal, &mapped, &managed, &context, &start, &bytes};

    OK(cuda.cuPointerGetAttributes(7, attributes, values, (uintptr_t)pointer));
    assert_int_equal(managed, 0);
    assert_int_equal(mapped, type != 0);
    assert_int_equal(ordinal, type != 0 ? DEVICE : 0);
    assert_true((context != NULL) == (type != 0));
    assert_true(type != 0 ? (uintptr_t)pointer - start < bytes && bytes == MIB : start == 0 && bytes == 0);
    return type;
}

static void tells_whose_pointer_it_is(void **state)
{
    struct fixture *fixture = *state;
    char *device = (char *)(uintptr_t)fixture->memory;
    unsigned int type;
    emu_pointer base;
    size_t bytes;
    char local;

    assert_int_equal(type_of(device), EMU_MEMORYTYPE_DEVICE);
    assert_int_equal(type_of(device + MIB - 1), EMU_MEMORYTYPE_DEVICE);
    assert_int_equal(type_of(device + MIB), 0);
    assert_int_equal(type_of(device - 1), 0);
    assert_int_equal(type_of(fixture->pinned + 12345), EMU_MEMORYTYPE_HOST);
    assert_int_equal(type_of(&local), 0);
    assert_int_equal(cuda.cuPointerGetAttribute(&type, EMU_POINTER_MEMORY_TYPE, (uintptr_t)&local), EMU_INVALID_VALUE);
    OK(cuda.cuPointerGetAttribute(&type, EMU_POINTER_MEMORY_TYPE, fixture->memory));
    OK(cuda.cuMemGetAddressRange(&base, &bytes, fixture->memory + 77));
    assert_true(base == fixture->memory && bytes == MIB);
    assert_int_equal(cuda.cuMemGetAddressRange(&base, &bytes, fixture->memory + MIB), EMU_NOT_FOUND);
    assert_int_equal(cuda.cuMemGetAddressRange(&base, &bytes, (uintptr_t)fixture->pinned), EMU_NOT_FOUND);
    assert_int_equal(cuda.cuMemHostRegister(fixture->pinned + 4096, 4096, 0), EMU_HOST_MEMORY_ALREADY_REGISTERED);
    assert_int_equal(cuda.cuMemHostUnregister(fixture->pinned + 4096), EMU_HOST_MEMORY_NOT_REGISTERED);
    assert_int_equal(cuda.cuMemFree(fixture->memory + 1), EMU_INVALID_VALUE);
}

/* Two mappings side by side, as a program of the user's may have made them. */
static void knows_mapped_memory(void **state)
{
    struct fixture *fixture = *state;
    const uint64_t sizes[] = {64 * KIB, 128 * KIB};
    unsigned int attributes[] = {EMU_POINTER_CONTEXT, EMU_POINTER_RANGE_START, EMU_POINTER_RANGE_SIZE,
                                 EMU_POINTER_MAPPING_SIZE};
    struct CUctx_st *context = fixture->context;
    uint64_t mapped, start, bytes, mapping;
    void *values[] = {&context, &start, &bytes, &mapping};
    emu_pointer base;
    size_t length;

    assert_int_equal(cuda.map(DEVICE, sizes, 2, &mapped), 0);
    OK(cuda.cuPointerGetAttributes(4, attributes, values, mapped + 70 * KIB));
    assert_null(context);
    assert_true(start == mapped && bytes == 192 * KIB && mapping == 128 * KIB);
    OK(cuda.cuMemGetAddressRange(&base, &length, mapped + 70 * KIB));
    assert_true(base == mapped + 64 * KIB && length == 128 * KIB);
    memset(fixture->pinned, 6, 192 * KIB);
    OK(cuda.cuMemcpyHtoDAsync(mapped, fixture->pinned, 192 * KIB, fixture->stream));
    OK(cuda.cuMemcpyDtoHAsync(fixture->pinned + 256 * KIB, mapped + 60 * KIB, 8 * KIB, fixture->stream));
    OK(cuda.cuStreamSynchronize(fixture->stream));
    assert_memory_equal(fixture->pinned, fixture->pinned + 256 * KIB, 8 * KIB);
    assert_int_equal(cuda.cuMemcpyHtoDAsync(mapped + 1, fixture->pinned, 192 * KIB, fixture->stream),
                     EMU_INVALID_VALUE);
    assert_int_equal(cuda.cuMemFree(mapped), EMU_INVALID_VALUE);
    assert_int_equal(cuda.unmap(mapped + 64 * KIB), -EINVAL);
    assert_int_equal(cuda.unmap(mapped), 0);
    assert_int_equal(cuda.unmap(mapped), -EINVAL);
    assert_int_equal(cuda.cuMemGetAddressRange(&base, &length, mapped), EMU_NOT_FOUND);
}

static void refuses_ranges_that_end_outside(void **state)
{
    struct fixture *fixture = *state;
    emu_pointer second;

    OK(cuda.cuMemAlloc(&second, MIB));
    assert_true(second >= fixture->memory + MIB + 65536);
    assert_int_equal(cuda.cuMemcpyHtoDAsync(fixture->memory + 1, fixture->pinned, MIB, fixture->stream),
                     EMU_INVALID_VALUE);
    assert_int_equal(cuda.cuMemcpyDtoHAsync(fixture->pinned + 1, fixture->memory, MIB, fixture->stream),
                     EMU_INVALID_VALUE);
    assert_int_equal(cuda.cuMemcpyDtoHAsync((void *)(uintptr_t)second, fixture->memory, 16, fixture->stream),
                     EMU_INVALID_VALUE);
    assert_int_equal(cuda.cuMemcpyHtoDAsync(second + MIB + 8, fixture->pinned, 8, fixture->stream), EMU_INVALID_VALUE);
    OK(cuda.cuMemFree(second));
    assert_int_equal(cuda.cuMemcpyHtoDAsync(second, fixture->pinned, 8, fixture->stream), EMU_INVALID_VALUE);
    assert_int_equal(cuda.count("pending"), 0);
}

/* --- when bytes are read and written --- */

static void a_pinned_source_is_read_late(void **state)
{
    struct fixture *fixture = *state;
    uint32_t *word = (uint32_t *)(fixture->pinned + MIB - 64);

    hold(fixture->stream, word);
    memset(fixture->pinned, 1, 8 * KIB);
    OK(cuda.cuMemcpyHtoDAsync(fixture->memory, fixture->pinned, 8 * KIB, fixture->stream));
    OK(cuda.cuMemcpyDtoHAsync(fixture->pinned + 64 * KIB, fixture->memory, 8 * KIB, fixture->stream));
    OK(cuda.cuEventRecord(fixture->event, fixture->stream));
    assert_int_equal(cuda.cuEventQuery(fixture->event), EMU_NOT_READY);
    memset(fixture->pinned, 2, 8 * KIB); /* what a caller must not do: and it shows */
    assert_int_equal(fixture->pinned[64 * KIB], 0);
    let_go(word);
    until_done(fixture->event);
    assert_int_equal(fixture->pinned[64 * KIB], 2);
    assert_int_equal(fixture->pinned[72 * KIB - 1], 2);
    assert_int_equal(fixture->pinned[72 * KIB], 0);
}

static void a_pageable_source_is_taken_at_once(void **state)
{
    struct fixture *fixture = *state;
    uint32_t *word = (uint32_t *)(fixture->pinned + MIB - 64);
    unsigned char *pageable = malloc(8 * KIB), *result = malloc(8 * KIB);
    uint64_t waits = cuda.count("synchronise");

    hold(fixture->stream, word);
    memset(pageable, 1, 8 * KIB);
    OK(cuda.cuMemcpyHtoDAsync(fixture->memory, pageable, 8 * KIB, fixture->stream));
    memset(pageable, 2, 8 * KIB);
    free(pageable);
    assert_int_equal(cuda.count("synchronise"), waits);
    let_go(word);
    OK(cuda.cuMemcpyDtoHAsync(result, fixture->memory, 8 * KIB, fixture->stream)); /* waits for it, too */
    assert_int_equal(result[0], 1);
    assert_int_equal(result[8 * KIB - 1], 1);
    assert_int_equal(cuda.count("synchronise"), waits + 1);
    assert_int_equal(cuda.count("pending"), 0);
    free(result);
}

static void large_pageable_sources_wait(void **state)
{
    struct fixture *fixture = *state;
    unsigned char *pageable = malloc(MIB), *result = malloc(MIB);
    uint64_t waits = cuda.count("synchronise");

    memset(pageable, 7, MIB);
    OK(cuda.cuMemcpyHtoDAsync(fixture->memory, pageable, MIB, fixture->stream));
    assert_int_equal(cuda.count("synchronise"), waits + 1);
    assert_int_equal(cuda.count("pending"), 0);
    OK(cuda.cuMemcpy((uintptr_t)result, fixture->memory, MIB));
    assert_memory_equal(result, pageable, MIB);
    free(pageable);
    free(result);
}

static void batches(void **state)
{
    struct fixture *fixture = *state;
    struct {
        unsigned int order, hints[4], flags;
    } in_order = {.order = EMU_SOURCE_IN_STREAM_ORDER}, none = {0};
    emu_pointer to[16], from[16];
    size_t bytes[16], index = 0;
    struct CUmemcpyAttributes_st *attributes = (void *)&in_order;

    for (size_t i = 0; i < 16; i++) {
        memset(fixture->pinned + i * 4096, (int)i + 1, 4096);
        to[i] = fixture->memory + (15 - i) * 4096;
        from[i] = (uintptr_t)fixture->pinned + i * 4096;
        bytes[i] = 4096 - i;
    }
    assert_int_equal(cuda.cuMemcpyBatchAsync(to, from, bytes, 16, attributes, &index, 1, NULL), EMU_INVALID_VALUE);
    assert_int_equal(cuda.cuMemcpyBatchAsync(to, from, bytes, 16, (void *)&none, &index, 1, fixture->stream),
                     EMU_INVALID_VALUE);
    uint64_t copies = cuda.count("copies in"), moved = cuda.count("bytes in");
    OK(cuda.cuMemcpyBatchAsync(to, from, bytes, 16, attributes, &index, 1, fixture->stream));
    OK(cuda.cuMemcpyDtoHAsync(fixture->pinned + 512 * KIB, fixture->memory, 65536, fixture->stream));
    OK(cuda.cuEventRecord(fixture->event, fixture->stream));
    until_done(fixture->event);
    for (size_t i = 0; i < 16; i++) {
        assert_int_equal(fixture->pinned[512 * KIB + (15 - i) * 4096], (int)i + 1);
        assert_int_equal(fixture->pinned[512 * KIB + (15 - i) * 4096 + 4095 - i], (int)i + 1);
    }
    assert_int_equal(cuda.count("copies in") - copies, 16);
    assert_int_equal(cuda.count("bytes in") - moved, 16 * 4096 - 120);
}

static void nothing_asynchronous_synchronises(void **state)
{
    struct fixture *fixture = *state;
    uint64_t waits = cuda.count("synchronise"), calls = cuda.count("cuMemcpyHtoDAsync");

    for (int i = 0; i < 100; i++) {
        OK(cuda.cuMemcpyHtoDAsync(fixture->memory, fixture->pinned, 4096, fixture->stream));
        OK(cuda.cuMemcpyDtoHAsync(fixture->pinned + 4096, fixture->memory, 4096, fixture->stream));
        OK(cuda.cuEventRecord(fixture->event, fixture->stream));
        until_done(fixture->event);
    }
    assert_int_equal(cuda.count("synchronise"), waits);
    assert_int_equal(cuda.count("cuMemcpyHtoDAsync") - calls, 100);
    OK(cuda.cuStreamSynchronize(fixture->stream));
    assert_int_equal(cuda.count("synchronise"), waits + 1);
    assert_true(cuda.count("no such thing") == UINT64_MAX);
    assert_true(cuda.count("cuNoSuchThing") == UINT64_MAX);
}

static void kernels_have_no_code(void **state)
{
    struct fixture *fixture = *state;
    struct CUmod_st *module;
    const char *name;
    int fd;

    assert_int_equal(cuda.cuModuleLoadData(&module, "an image"), EMU_NO_BINARY_FOR_GPU);
    assert_int_equal(cuda.cuMemGetHandleForAddressRange(&fd, fixture->memory, MIB, 1, 0), EMU_NOT_SUPPORTED);
    OK(cuda.cuGetErrorName(EMU_NO_BINARY_FOR_GPU, &name));
    assert_string_equal(name, "CUDA_ERROR_NO_BINARY_FOR_GPU");
    assert_int_equal(cuda.cuGetErrorString(12345, &name), EMU_INVALID_VALUE);
    assert_null(name);
}

static void events_tell_times(void **state)
{
    struct fixture *fixture = *state;
    struct CUevent_st *from, *to;
    size_t left, all;
    float ms = -1;

    OK(cuda.cuEventCreate(&from, 0));
    OK(cuda.cuEventCreate(&to, 0));
    OK(cuda.cuEventRecord(from, fixture->stream));
    assert_int_equal(cuda.cuEventElapsedTime(&ms, from, to), EMU_INVALID_HANDLE); /* that was never recorded */
    OK(cuda.cuEventRecord(to, fixture->stream));
    OK(cuda.cuEventRecord(fixture->event, fixture->stream));
    until_done(fixture->event);
    OK(cuda.cuEventElapsedTime(&ms, from, to));
    assert_true(ms >= 0);
    OK(cuda.cuEventElapsedTime(&ms, to, from));
    assert_true(ms <= 0);
    assert_int_equal(cuda.cuEventElapsedTime(&ms, from, fixture->event), EMU_INVALID_HANDLE); /* made without times */
    OK(cuda.cuEventDestroy(from));
    OK(cuda.cuEventDestroy(to));
    OK(cuda.cuMemGetInfo(&left, &all));
    assert_int_equal(all - left, MIB);
}

int main(void)
{
    emulated_load();
    if (cuda.cuInit(0) != EMU_OK)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_symbols_by_version),
        cmocka_unit_test(counts_contexts),
        cmocka_unit_test(names_devices),
        cmocka_unit_test_setup_teardown(tells_whose_pointer_it_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(knows_mapped_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_ranges_that_end_outside, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_pinned_source_is_read_late, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_pageable_source_is_taken_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(large_pageable_sources_wait, set_up, tear_down),
        cmocka_unit_test_setup_teardown(batches, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_asynchronous_synchronises, set_up, tear_down),
        cmocka_unit_test_setup_teardown(events_tell_times, set_up, tear_down),
        cmocka_unit_test_setup_teardown(kernels_have_no_code, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
