/* Where memory is, and memory itself: device memory, pinned host memory. */
#include "mem/memory_cuda.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

/* What the driver says of one address. */
struct address {
    unsigned int type; /* WF_CU_MEMORY_HOST: pinned; 0: memory that the driver does not know */
    unsigned int managed;
    int ordinal;
    wf_cu_context context; /* NULL: of none, or none of our business */
};

struct extent {
    uint64_t base;
    uint64_t bytes; /* 0: no allocation */
};

static wf_cu_result ask_once(struct wf_memory *memory, uint64_t where, struct address *out)
{
    unsigned int questions[] = {WF_CU_POINTER_MEMORY_TYPE, WF_CU_POINTER_IS_MANAGED, WF_CU_POINTER_DEVICE_ORDINAL,
                                WF_CU_POINTER_CONTEXT};
    struct address found = {.ordinal = WF_NO_DEVICE};
    void *answers[] = {&found.type, &found.managed, &found.ordinal, &found.context};
    wf_cu_result result =
        memory->driver.api.cuPointerGetAttributes(sizeof(questions) / sizeof(*questions), questions, answers, where);

    /* So some drivers put it that an address is none of theirs. */
    if (result == WF_CU_INVALID_VALUE)
        found = (struct address){.ordinal = WF_NO_DEVICE};
    else if (result)
        return result;
    *out = found;
    return WF_CU_SUCCESS;
}

/* The error may be that of the context that is the thread's own, and nothing about the address: any other will do. And
 * where each has it that the context is invalid, that is how cuda.h puts it that the address is of none. */
static wf_cu_result ask(struct wf_memory *memory, uint64_t where, struct address *out)
{
    wf_cu_result result = ask_once(memory, where, out);

    for (int i = 0; i < memory->count && result; i++) {
        struct wf_cuda_device *device = wf_cuda_in_use(memory, i);
        struct wf_cuda_visit visit;
        if (!device || atomic_load(&device->lost) || wf_cuda_enter(memory, device, &visit))
            continue;
        if (!ask_once(memory, where, out))
            result = WF_CU_SUCCESS;
        wf_cuda_leave(memory, &visit);
    }
    if (result != WF_CU_INVALID_CONTEXT)
        return result;
    *out = (struct address){.ordinal = WF_NO_DEVICE};
    return WF_CU_SUCCESS;
}

static bool on_device(const struct address *address)
{
    /* Managed memory moves to the device or processor that touches it. */
    return address->type == WF_CU_MEMORY_DEVICE && !address->managed;
}

/* The context that knows most of the address becomes the thread's, until pop_context(). False: there is none. */
static bool push_context_of(struct wf_memory *memory, const struct address *address)
{
    struct wf_cuda_device *device = wf_cuda_in_use(memory, address->ordinal);
    wf_cu_context context = address->context ? address->context : device ? device->context : NULL;

    return context && memory->driver.api.cuCtxPushCurrent(context) == WF_CU_SUCCESS;
}

static void pop_context(struct wf_memory *memory)
{
    wf_cu_context context;

    (void)memory->driver.api.cuCtxPopCurrent(&context);
}

/*
 * The allocation that `where` is in. Mappings side by side in one reservation are each an allocation of their own:
 * cuMemGetAddressRange keeps them apart, the attributes of a pointer do not. So the latter are asked only where the
 * former cannot answer, for lack of a context.
 */
static struct extent extent_of(struct wf_memory *memory, uint64_t where, const struct address *address)
{
    const struct wf_cuda_api *api = &memory->driver.api;
    unsigned int questions[] = {WF_CU_POINTER_RANGE_START, WF_CU_POINTER_RANGE_SIZE};
    wf_cu_memory base = 0;
    size_t bytes = 0;
    void *answers[] = {&base, &bytes};
    bool entered = push_context_of(memory, address);
    wf_cu_result result = api->cuMemGetAddressRange(&base, &bytes, where);

    if (entered)
        pop_context(memory);
    if (result)
        result = api->cuPointerGetAttributes(sizeof(questions) / sizeof(*questions), questions, answers, where);
    if (result || where < base || where - base >= bytes)
        return (struct extent){0};
    return (struct extent){.base = base, .bytes = bytes};
}

static void place_text(const struct address *address, char *text, size_t size)
{
    if (on_device(address))
        snprintf(text, size, "GPU %d", address->ordinal);
    else
        snprintf(text, size, "host memory");
}

/* Refuses a range whose start is in the allocation `first` and whose end is not. */
static int refuse_span(struct wf_memory *memory, uint64_t start, uint64_t length, const struct address *address,
                       const struct extent *first, struct wf_status *status)
{
    struct address beyond = {0};
    uint64_t end = first->base + first->bytes;
    struct extent second = {0};
    char other[32];

    if (ask(memory, end, &beyond) == WF_CU_SUCCESS && beyond.type)
        second = extent_of(memory, end, &beyond);
    if (!second.bytes)
        return wf_fail(status, -EINVAL,
                       "%" PRIu64 " bytes at 0x%" PRIx64 " leave their allocation, %" PRIu64 " bytes at 0x%" PRIx64
                       " of GPU %d, and end in none",
                       length, start, first->bytes, first->base, address->ordinal);
    place_text(&beyond, other, sizeof(other));
    return wf_fail(status, -EINVAL,
                   "%" PRIu64 " bytes at 0x%" PRIx64 " span two allocations: %" PRIu64 " bytes at 0x%" PRIx64
                   " of GPU %d and %" PRIu64 " bytes at 0x%" PRIx64 " of %s; register each on its own",
                   length, start, first->bytes, first->base, address->ordinal, second.bytes, second.base, other);
}

/* Not knowing is no reason to take memory for the host's: the processor must not touch a device's. */
static int refuse_answer(struct wf_memory *memory, uint64_t where, wf_cu_result result, struct wf_status *status)
{
    return wf_fail(status, -EIO, "the driver does not tell where 0x%" PRIx64 " is: %s", where,
                   wf_cuda_words(memory, result));
}

/* The allocation of device memory that `start` is in, with a device that we know. */
static int find_extent(struct wf_memory *memory, uint64_t start, const struct address *address, struct extent *out,
                       struct wf_status *status)
{
    struct extent extent = extent_of(memory, start, address);

    if (address->ordinal < 0 || address->ordinal >= memory->count)
        return wf_fail(status, -EINVAL, "0x%" PRIx64 " is memory of GPU %d; GPUs are 0 to %d here", start,
                       address->ordinal, memory->count - 1);
    if (!extent.bytes)
        return wf_fail(status, -EINVAL, "0x%" PRIx64 " is memory of GPU %d, but in no allocation that the driver knows",
                       start, address->ordinal);
    *out = extent;
    return 0;
}

static int locate_on_device(struct wf_memory *memory, uint64_t start, uint64_t length, const struct address *address,
                            struct wf_memory_place *out, struct wf_status *status)
{
    struct extent extent = {0};
    int code = find_extent(memory, start, address, &extent, status);

    if (code)
        return code;
    if (length > extent.bytes - (start - extent.base))
        return refuse_span(memory, start, length, address, &extent, status);
    *out = (struct wf_memory_place){.device = address->ordinal};
    return 0;
}

int wf_cuda_locate(struct wf_memory *memory, const void *base, uint64_t length, struct wf_memory_place *out,
                   struct wf_status *status)
{
    uint64_t start = (uintptr_t)base;
    uint64_t last = length ? start + length - 1 : start;
    struct address first_byte, last_byte;
    wf_cu_result result = ask(memory, start, &first_byte);

    if (last < start)
        return wf_fail(status, -EINVAL, "%" PRIu64 " bytes at 0x%" PRIx64 " pass the end of memory", length, start);
    if (!result)
        result = ask(memory, last, &last_byte);
    if (result)
        return refuse_answer(memory, start, result, status);
    if (on_device(&first_byte))
        return locate_on_device(memory, start, length, &first_byte, out, status);
    if (on_device(&last_byte))
        return wf_fail(status, -EINVAL, "%" PRIu64 " bytes at 0x%" PRIx64 " start in host memory and end on GPU %d",
                       length, start, last_byte.ordinal);
    *out = (struct wf_memory_place){
        .device = WF_NO_DEVICE,
        .pinned = first_byte.type == WF_CU_MEMORY_HOST && last_byte.type == WF_CU_MEMORY_HOST,
    };
    return 0;
}

#define BLOCK_ID (UINT64_C(1) << 63) /* keeps the two kinds of numbers apart */

/* 0: the driver tells neither the number of an allocation nor that of the block that is mapped. */
static uint64_t identity_of(struct wf_memory *memory, uint64_t where, const struct address *address)
{
    unsigned int questions[] = {WF_CU_POINTER_BUFFER_ID, WF_CU_POINTER_BLOCK_ID};
    uint64_t ids[] = {0, 0};
    bool entered = push_context_of(memory, address);

    for (int i = 0; i < 2 && !ids[0]; i++) {
        void *answer = &ids[i];
        if (memory->driver.api.cuPointerGetAttributes(1, &questions[i], &answer, where))
            ids[i] = 0;
    }
    if (entered)
        pop_context(memory);
    return ids[0] || !ids[1] ? ids[0] : ids[1] | BLOCK_ID;
}

int wf_cuda_extent(struct wf_memory *memory, const void *where, struct wf_memory_extent *out, struct wf_status *status)
{
    uint64_t start = (uintptr_t)where;
    struct address address;
    struct extent extent = {0};
    wf_cu_result result = ask(memory, start, &address);

    if (result)
        return refuse_answer(memory, start, result, status);
    if (!on_device(&address))
        return wf_fail(status, -EINVAL, "0x%" PRIx64 " is not memory of a GPU", start);
    int code = find_extent(memory, start, &address, &extent, status);
    if (code)
        return code;
    *out = (struct wf_memory_extent){.device = address.ordinal,
                                     .base = (const void *)(uintptr_t)extent.base,
                                     .bytes = extent.bytes,
                                     .id = identity_of(memory, start, &address)};
    return 0;
}

/* --- device memory --- */

struct wf_cuda_device *wf_cuda_enter_number(struct wf_memory *memory, int index, struct wf_cuda_visit *visit, int *code,
                                            struct wf_status *status)
{
    struct wf_cuda_device *device = wf_cuda_in_use(memory, index);

    if (!device) {
        *code = wf_fail(status, -EINVAL, "GPU %d is not in use", index);
        return NULL;
    }
    if (atomic_load(&device->lost) || wf_cuda_enter(memory, device, visit)) {
        *code = wf_fail(status, -ENODEV, "GPU %d cannot be used any more: %s", index, atomic_load(&device->why));
        return NULL;
    }
    return device;
}

int wf_cuda_alloc(struct wf_memory *memory, int index, uint64_t bytes, void **out, struct wf_status *status)
{
    struct wf_cuda_visit visit;
    int code = 0;
    struct wf_cuda_device *device = wf_cuda_enter_number(memory, index, &visit, &code, status);
    wf_cu_memory base = 0;
    wf_cu_result result;

    if (!device)
        return code;
    result = memory->driver.api.cuMemAlloc(&base, bytes);
    if (result == WF_CU_OUT_OF_MEMORY)
        code = wf_fail(status, -ENOMEM, "GPU %d has no %" PRIu64 " bytes left of its %" PRIu64, index, bytes,
                       device->info.bytes);
    else if (result == WF_CU_INVALID_VALUE)
        code = wf_fail(status, -EINVAL, "GPU %d: %" PRIu64 " bytes cannot be allocated", index, bytes);
    else if (result)
        code = wf_fail(status, wf_cuda_fault(memory, device, result), "GPU %d: allocating %" PRIu64 " bytes: %s", index,
                       bytes, wf_cuda_words(memory, result));
    wf_cuda_leave(memory, &visit);
    if (code)
        return code;
    *out = (void *)(uintptr_t)base;
    return 0;
}

void wf_cuda_free(struct wf_memory *memory, int index, void *base)
{
    struct wf_cuda_visit visit;
    int code;
    struct wf_cuda_device *device = base ? wf_cuda_enter_number(memory, index, &visit, &code, NULL) : NULL;

    if (!device)
        return; /* what a lost device had is gone */
    (void)memory->driver.api.cuMemFree((uintptr_t)base);
    wf_cuda_leave(memory, &visit);
}

/* --- pinned host memory --- */

static int refuse_pin(struct wf_memory *memory, const void *base, uint64_t bytes, wf_cu_result result,
                      struct wf_status *status)
{
    const char *words = wf_cuda_words(memory, result);
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};

    if (result == WF_CU_ALREADY_REGISTERED)
        return wf_fail(status, -EEXIST, "%" PRIu64 " bytes at %p are pinned already, in part at least", bytes, base);
    (void)getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur == RLIM_INFINITY)
        return wf_fail(
            status, -ENOMEM,
            "%" PRIu64
            " bytes of host memory cannot be pinned: %s; the locked-memory limit is not the cause, it is unlimited",
            bytes, words);
    return wf_fail(status, -ENOMEM,
                   "%" PRIu64 " bytes of host memory cannot be pinned: %s; the locked-memory limit is %" PRIu64
                   " bytes (ulimit -l)",
                   bytes, words, (uint64_t)limit.rlim_cur);
}

int wf_cuda_pin(struct wf_memory *memory, int index, void *base, uint64_t bytes, struct wf_status *status)
{
    struct wf_cuda_visit visit;
    int code = 0;
    struct wf_cuda_device *device = wf_cuda_enter_number(memory, index, &visit, &code, status);
    wf_cu_result result;

    if (!device)
        return code;
    /* Portable: as good for other devices. Mapped, because streams may wait for words in it: only then has a device an
     * address for them. */
    result = memory->driver.api.cuMemHostRegister(base, bytes, WF_CU_REGISTER_PORTABLE | WF_CU_REGISTER_MAPPED);
    if (result) {
        code = refuse_pin(memory, base, bytes, result, status);
        /* Where it was the device that failed, that is worth more than the limit. */
        if (memory->driver.api.cuEventQuery(device->probe))
            code = wf_fail(status, wf_cuda_fault(memory, device, result), "GPU %d: pinning host memory: %s",
                           device->info.index, wf_cuda_words(memory, result));
    }
    wf_cuda_leave(memory, &visit);
    return code;
}

static bool unregister(struct wf_memory *memory, int index, void *base)
{
    struct wf_cuda_visit visit;
    int code;
    struct wf_cuda_device *device = wf_cuda_enter_number(memory, index, &visit, &code, NULL);
    wf_cu_result result;

    if (!device)
        return false;
    result = memory->driver.api.cuMemHostUnregister(base);
    wf_cuda_leave(memory, &visit);
    return result == WF_CU_SUCCESS;
}

void wf_cuda_unpin(struct wf_memory *memory, int index, void *base)
{
    bool done = unregister(memory, index, base);

    /* A device that is lost takes no calls: then another one is asked. Where each is, it goes with the contexts. */
    for (int i = 0; i < memory->count && !done; i++)
        done = i != index && wf_cuda_in_use(memory, i) && unregister(memory, i, base);
}
