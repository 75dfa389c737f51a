/* The public calls on GPUs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "affinity/pin.h"
#include "core/calls/context.h"
#include "core/device/device.h"
#include "core/ground/refusal.h"
#include "mem/memory.h"

static struct wf_memory *memory_of(const struct weft_context *context)
{
    return atomic_load(&((struct weft_context *)context)->devices.memory);
}

static bool is_used(const struct wf_devices *devices, int index)
{
    for (int i = 0; i < atomic_load(&devices->used_count); i++)
        if (atomic_load(&devices->used[i])->index == index)
            return true;
    return false;
}

int weft_context_gpus(const struct weft_context *context, struct weft_gpu_info *gpus, int max)
{
    if (WF_IS_NULL(wf_refusal(), context) || (max > 0 && WF_IS_NULL(wf_refusal(), gpus)))
        return -EINVAL;
    const struct wf_devices *devices = &context->devices;
    struct wf_device_info infos[WF_DEVICES_MAX];
    if (!memory_of(context))
        return 0;
    int count = devices->ops->devices(memory_of(context), infos, WF_DEVICES_MAX);
    for (int i = 0; i < count && i < max && i < WF_DEVICES_MAX; i++) {
        gpus[i] = (struct weft_gpu_info){.index = infos[i].index,
                                         .in_use = is_used(devices, infos[i].index),
                                         .numa_node = wf_place_of_device(infos[i].pci),
                                         .bytes = infos[i].bytes};
        snprintf(gpus[i].name, sizeof gpus[i].name, "%s", infos[i].name);
        snprintf(gpus[i].pci, sizeof gpus[i].pci, "%s", infos[i].pci);
    }
    return count;
}

int weft_context_gpu_stats(const struct weft_context *context, struct weft_gpu_stats *stats, int max)
{
    if (WF_IS_NULL(wf_refusal(), context) || (max > 0 && WF_IS_NULL(wf_refusal(), stats)))
        return -EINVAL;
    const struct wf_devices *devices = &context->devices;
    int count = atomic_load(&devices->used_count);
    for (int i = 0; i < count && i < max; i++) {
        const struct wf_device *device = atomic_load(&devices->used[i]);
        stats[i] = (struct weft_gpu_stats){
            .index = device->index,
            .under_way = (int32_t)atomic_load(&device->under_way),
            .out_bytes = atomic_load_explicit(&device->copied[WF_COPY_OUT], memory_order_relaxed),
            .in_bytes = atomic_load_explicit(&device->copied[WF_COPY_IN], memory_order_relaxed),
            .direct_bytes = atomic_load_explicit(&device->copied[WF_COPY_PEER], memory_order_relaxed),
            .copies = atomic_load_explicit(&device->copies, memory_order_relaxed),
            .copying_ns = (int64_t)atomic_load_explicit(&device->copying_ns, memory_order_relaxed),
        };
    }
    return count;
}

int weft_context_devmem_stats(const struct weft_context *context, struct weft_devmem_stats *stats, int max)
{
    if (WF_IS_NULL(wf_refusal(), context) || (max > 0 && WF_IS_NULL(wf_refusal(), stats)))
        return -EINVAL;
    const struct wf_devices *devices = &context->devices;
    int count = atomic_load(&devices->used_count);
    for (int i = 0; i < count && i < max; i++) {
        int index = atomic_load(&devices->used[i])->index;
        struct wf_card_counts counts = wf_cards_counts(&context->cards, index);
        stats[i] = (struct weft_devmem_stats){
            .index = index,
            .inlets = counts.inlets,
            .fragment_bytes = counts.device_bytes,
            .host_bytes = counts.host_bytes,
            .sent_bytes = counts.sent_bytes,
            .sends_copied = counts.sends_copied,
            .fragments_held = counts.held,
        };
    }
    return count;
}

const char *weft_context_memory(const struct weft_context *context)
{
    if (WF_IS_NULL(wf_refusal(), context))
        return "";
    return memory_of(context) ? context->devices.ops->name(memory_of(context)) : "host";
}

int weft_gpu_alloc(struct weft_context *context, int gpu, uint64_t bytes, void **out, struct weft_error *err)
{
    if (WF_IS_NULL(wf_status_of(err), context) || WF_IS_NULL(wf_status_of(err), out))
        return -EINVAL;
    struct wf_device *device;
    struct wf_status unheard = {0}, *status = err ? wf_status_of(err) : &unheard;
    int result = wf_devices_use(&context->devices, gpu, &device, status);
    return result < 0 ? result : context->devices.ops->alloc(memory_of(context), gpu, bytes, out, status);
}

void weft_gpu_free(struct weft_context *context, int gpu, void *memory)
{
    if (context && memory)
        context->devices.ops->free(memory_of(context), gpu, memory);
}

int weft_gpu_copy(struct weft_context *context, void *to, const void *from, uint64_t bytes, struct weft_error *err)
{
    if (WF_IS_NULL(wf_status_of(err), context))
        return -EINVAL;
    struct wf_device *target, *source;
    struct wf_status unheard = {0}, *status = err ? wf_status_of(err) : &unheard;
    if (bytes == 0)
        return 0;
    if (WF_IS_NULL(status, to) || WF_IS_NULL(status, from))
        return -EINVAL;
    /* The program may have allocated the memory itself, on a GPU that this context has not used yet. */
    int result = wf_devices_find(&context->devices, to, bytes, &target, status);
    if (result == 0)
        result = wf_devices_find(&context->devices, from, bytes, &source, status);
    if (result < 0)
        return result;
    if (!target && !source) {
        memcpy(to, from, bytes);
        return 0;
    }
    return context->devices.ops->copy_now(memory_of(context), to, from, bytes, status);
}
