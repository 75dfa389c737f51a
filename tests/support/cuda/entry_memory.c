/* Entries about memory: allocating, registering, and what is behind a pointer. */
#include "internal.h"

#include <string.h>
#include <sys/mman.h>

emu_result cuMemGetInfo_v2(size_t *free_bytes, size_t *all_bytes)
{
    struct CUctx_st *context;
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!free_bytes || !all_bytes)
        return EMU_INVALID_VALUE;
    pthread_mutex_lock(&emu.lock);
    result = emu_current_locked(&context);
    if (result == EMU_OK) {
        *all_bytes = emu.settings.memory;
        *free_bytes = emu.settings.memory - emu.devices[context->device].allocated;
    }
    pthread_mutex_unlock(&emu.lock);
    return result;
}

emu_result cuMemAlloc_v2(emu_pointer *address, size_t bytes)
{
    struct CUctx_st *context;
    uintptr_t at;
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!address || bytes == 0)
        return EMU_INVALID_VALUE;
    pthread_mutex_lock(&emu.lock);
    result = emu_current_locked(&context);
    if (result == EMU_OK)
        result = emu_capture_unsafe_locked();
    if (result == EMU_OK)
        result = emu_fault_call_locked(EMU_FAULT_ALLOC, context->device);
    if (result == EMU_OK)
        result = emu_memory_alloc_locked(&emu.devices[context->device], bytes, &at);
    if (result == EMU_OK)
        *address = at;
    pthread_mutex_unlock(&emu.lock);
    return result;
}

/* The address may have been freed by another thread while this one waited. */
static emu_result free_locked(emu_pointer address)
{
    struct emu_range *block = emu_memory_block_locked((uintptr_t)address);
    struct CUctx_st *context;
    emu_result result = emu_current_locked(&context);

    if (result != EMU_OK)
        return result;
    if (!block || block->start != address || block->reserved != 0)
        return EMU_INVALID_VALUE;
    struct emu_device *device = &emu.devices[block->device];
    emu.synchronised++;
    result = emu_device_wait_locked(device);
    emu_host_wait_locked((uintptr_t)address, block->bytes); /* copies of other GPUs */
    block = emu_memory_block_locked((uintptr_t)address);
    if (result == EMU_OK && (!block || block->start != address))
        result = EMU_INVALID_VALUE;
    if (result == EMU_OK)
        emu_memory_free_locked(device, block);
    return result;
}

emu_result cuMemFree_v2(emu_pointer address)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK || address == 0)
        return result;
    pthread_mutex_lock(&emu.lock);
    result = emu_capture_unsafe_locked();
    if (result == EMU_OK)
        result = free_locked(address);
    pthread_mutex_unlock(&emu.lock);
    return result;
}

static bool is_mapped(uintptr_t start, size_t bytes)
{
    unsigned char page;

    for (uintptr_t at = start & ~(uintptr_t)4095; at < start + bytes; at += 4096)
        if (mincore((void *)at, 1, &page) != 0)
            return false;
    return true;
}

emu_result cuMemHostRegister_v2(void *base, size_t bytes, unsigned int flags)
{
    struct CUctx_st *context;
    uintptr_t start = (uintptr_t)base;
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!base || bytes == 0 || flags > 15 || start + bytes < start || emu_memory_device(start) != EMU_HOST ||
        !is_mapped(start, bytes))
        return EMU_INVALID_VALUE;
    pthread_mutex_lock(&emu.lock);
    result = emu_current_locked(&context);
    if (result == EMU_OK)
        result = emu_capture_unsafe_locked();
    if (result == EMU_OK)
        result = emu_fault_call_locked(EMU_FAULT_REGISTER, context->device);
    if (result == EMU_OK && emu_ranges_touches(&emu.registered, start, bytes))
        result = EMU_HOST_MEMORY_ALREADY_REGISTERED;
    if (result == EMU_OK && !emu_ranges_add(&emu.registered, (struct emu_range){.start = start,
                                                                                .bytes = bytes,
                                                                                .device = context->device,
                                                                                .id = ++emu.next_id,
                                                                                .flags = flags}))
        result = EMU_OUT_OF_MEMORY;
    if (result == EMU_OK)
        emu.registered_bytes += bytes;
    pthread_mutex_unlock(&emu.lock);
    return result;
}

emu_result cuMemHostUnregister(void *base)
{
    struct CUctx_st *context;
    struct emu_range *range;
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    pthread_mutex_lock(&emu.lock);
    result = emu_current_locked(&context);
    if (result == EMU_OK)
        result = emu_capture_unsafe_locked();
    range = emu_ranges_find(&emu.registered, (uintptr_t)base);
    if (result == EMU_OK && (!range || range->start != (uintptr_t)base))
        result = EMU_HOST_MEMORY_NOT_REGISTERED;
    if (result == EMU_OK) {
        emu.synchronised++;
        emu_host_wait_locked(range->start, range->bytes);
        range = emu_ranges_find(&emu.registered, (uintptr_t)base);
        if (range) {
            emu.registered_bytes -= range->bytes;
            emu_ranges_remove(&emu.registered, range);
        }
    }
    pthread_mutex_unlock(&emu.lock);
    return result;
}

emu_result cuMemHostGetDevicePointer_v2(emu_pointer *address, void *base, unsigned int flags)
{
    struct CUctx_st *context;
    const struct emu_range *range;
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!address || flags != 0)
        return EMU_INVALID_VALUE;
    pthread_mutex_lock(&emu.lock);
    result = emu_current_locked(&context);
    range = emu_ranges_find(&emu.registered, (uintptr_t)base);
    if (result == EMU_OK && !(range && (range->flags & EMU_REGISTER_MAPPED)))
        result = EMU_INVALID_VALUE;
    if (result == EMU_OK)
        *address = (uintptr_t)base;
    pthread_mutex_unlock(&emu.lock);
    return result;
}

/* Of allocations alone: registered memory was not allocated here. */
emu_result cuMemGetAddressRange_v2(emu_pointer *base, size_t *bytes, emu_pointer address)
{
    struct CUctx_st *context;
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    pthread_mutex_lock(&emu.lock);
    result = emu_current_locked(&context);
    const struct emu_range *block = emu_memory_block_locked((uintptr_t)address);
    if (result == EMU_OK && !block)
        result = EMU_NOT_FOUND;
    if (result == EMU_OK && base)
        *base = block->start;
    if (result == EMU_OK && bytes)
        *bytes = block->bytes;
    pthread_mutex_unlock(&emu.lock);
    return result;
}

/* `range` NULL: what an unknown pointer gives, which is nothing. False: no such attribute, or none of such a pointer.
 */
static bool put_attribute(void *out, unsigned int attribute, const struct emu_range *range, emu_pointer address)
{
    bool device = range && emu_memory_device(range->start) != EMU_HOST;
    struct CUctx_st *context = range && range->reserved == 0 ? &emu.devices[range->device].context : NULL;
    unsigned int word = 0;
    uint64_t number = 0;

    switch (attribute) {
    case EMU_POINTER_CONTEXT:
        memcpy(out, &context, sizeof(context));
        return true;
    case EMU_POINTER_DEVICE_POINTER:
    case EMU_POINTER_HOST_POINTER:
        number = !range || (attribute == EMU_POINTER_HOST_POINTER && device) ? 0 : address;
        memcpy(out, &number, sizeof(number));
        return number != 0;
    case EMU_POINTER_BUFFER_ID:
    case EMU_POINTER_BLOCK_ID:
        number = range ? range->id : 0;
        break;
    case EMU_POINTER_RANGE_START:
        number = !range ? 0 : range->reserved != 0 ? range->reserved : range->start;
        break;
    case EMU_POINTER_RANGE_SIZE:
        number = !range ? 0 : range->reserved != 0 ? range->reserved_bytes : range->bytes;
        break;
    case EMU_POINTER_MAPPING_BASE:
        number = range ? range->start : 0;
        break;
    case EMU_POINTER_MAPPING_SIZE:
        number = range ? range->bytes : 0;
        break;
    case EMU_POINTER_ALLOWED_HANDLE_TYPES:
    case EMU_POINTER_MEMPOOL_HANDLE:
        break;
    case EMU_POINTER_MEMORY_TYPE:
        word = !range ? 0 : device ? EMU_MEMORYTYPE_DEVICE : EMU_MEMORYTYPE_HOST;
        memcpy(out, &word, sizeof(word));
        return true;
    case EMU_POINTER_DEVICE_ORDINAL:
        word = range ? (unsigned int)range->device : 0;
        memcpy(out, &word, sizeof(word));
        return true;
    case EMU_POINTER_MAPPED:
        word = range != NULL;
        memcpy(out, &word, sizeof(word));
        return true;
    case EMU_POINTER_ACCESS_FLAGS:
        word = range ? 3 : 0; /* read and write */
        memcpy(out, &word, sizeof(word));
        return true;
    case EMU_POINTER_SYNC_MEMOPS:
    case EMU_POINTER_IS_MANAGED:
    case EMU_POINTER_IS_LEGACY_IPC_CAPABLE:
    case EMU_POINTER_IS_GPU_DIRECT_RDMA_CAPABLE:
    case EMU_POINTER_IS_HW_DECOMPRESS_CAPABLE:
        memcpy(out, &word, sizeof(word));
        return true;
    default:
        return false;
    }
    memcpy(out, &number, sizeof(number));
    return true;
}

static const struct emu_range *known_locked(emu_pointer address)
{
    const struct emu_range *block = emu_memory_block_locked((uintptr_t)address);
    return block ? block : emu_ranges_find(&emu.registered, (uintptr_t)address);
}

emu_result cuPointerGetAttribute(void *data, unsigned int attribute, emu_pointer address)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!data)
        return EMU_INVALID_VALUE;
    pthread_mutex_lock(&emu.lock);
    const struct emu_range *range = known_locked(address);
    if (!range || !put_attribute(data, attribute, range, address))
        result = EMU_INVALID_VALUE;
    pthread_mutex_unlock(&emu.lock);
    return result;
}

/* What is not known of a pointer becomes 0, and is no error; only an attribute that does not exist is. */
emu_result cuPointerGetAttributes(unsigned int count, unsigned int *attributes, void **data, emu_pointer address)
{
    struct CUctx_st *context;
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (count == 0 || !attributes || !data)
        return EMU_INVALID_VALUE;
    pthread_mutex_lock(&emu.lock);
    result = emu_current_locked(&context); /* which is not needed; but where it is broken, this tells of nothing else */
    if (result != EMU_OK && context) {
        pthread_mutex_unlock(&emu.lock);
        return result;
    }
    result = EMU_OK;
    const struct emu_range *range = known_locked(address);
    for (unsigned int i = 0; i < count; i++)
        if (!data[i] || attributes[i] == 0 || attributes[i] == 5 ||
            attributes[i] > EMU_POINTER_IS_HW_DECOMPRESS_CAPABLE)
            result = EMU_INVALID_VALUE;
        else
            put_attribute(data[i], attributes[i], range, address);
    pthread_mutex_unlock(&emu.lock);
    return result;
}
