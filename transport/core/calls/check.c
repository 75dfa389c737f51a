/* Whether the arguments of a call that posts an operation make sense, and in words why not. */
#include <errno.h>

#include "core/calls/context.h"
#include "core/calls/post.h"
#include "core/device/registration.h"
#include "core/device/turn.h"
#include "core/ground/refusal.h"
#include "core/request/queue.h"

/* Finds the registration of device memory, for options that name none. -EFAULT: device memory without a registration.
 * The CPU must not touch it, and the user could free it during the operation. */
static int find_registration(struct weft_context *context, const void *buffer, uint64_t length,
                             struct wf_message_memory *memory)
{
    memory->registration = wf_registration_covering(&context->registry, buffer, length);
    if (!memory->registration && wf_devices_own(&context->devices, buffer))
        return wf_fail(wf_refusal(), -EFAULT,
                       "%llu bytes at %p are GPU memory, and no registration has all of them: weft_register() them",
                       (unsigned long long)length, buffer);
    return 0;
}

static int check_options(const struct weft_context *context, const struct weft_options *options, uint32_t allowed)
{
    struct wf_status *why = wf_refusal();
    if (options->flags & ~allowed)
        return wf_fail(
            why, -EINVAL,
            "options.flags is 0x%x, and 0x%x is not for this call: leave it out (start from options that are "
            "all zero)",
            options->flags, options->flags & ~allowed);
    if (options->timeout_ms < 0)
        return wf_fail(why, -EINVAL, "options.timeout_ms is %d: give milliseconds, or 0 for no deadline",
                       options->timeout_ms);
    if (options->queue && options->queue->waiting != &context->waiting)
        return wf_fail(why, -EINVAL, "options.queue is of another context: give a queue of the connection's context");
    if (options->registration && options->registration->context != context)
        return wf_fail(why, -EINVAL,
                       "options.registration is of another context: register the memory in the connection's context");
    if (options->flags & WEFT_WATCH && !(options->watcher && options->watcher->begins && options->watcher->ends))
        return wf_fail(why, -EINVAL,
                       "options.flags has WEFT_WATCH, and options.watcher lacks %s: give both functions, or leave the "
                       "flag out",
                       !options->watcher           ? "the struct"
                       : !options->watcher->begins ? "begins"
                                                   : "ends");
    return 0;
}

static int hold_registration(struct weft_registration *registration, const void *buffer, uint64_t length)
{
    int result = wf_registration_hold(registration, buffer, length);
    if (result == -ESHUTDOWN)
        return wf_fail(wf_refusal(), result, "options.registration has ended: register the memory again");
    if (result < 0)
        return wf_fail(wf_refusal(), result,
                       "%llu bytes at %p are not all in options.registration, which has %llu bytes at %p: give the one "
                       "that has them",
                       (unsigned long long)length, buffer, (unsigned long long)registration->length,
                       (const void *)registration->base);
    return 0;
}

static int refuse_turn(const struct wf_device *device, const void *stream, int result)
{
    if (!device)
        return wf_fail(wf_refusal(), result,
                       "WEFT_ON_STREAM is for GPU memory, and this is host memory or empty: leave the flag out");
    if (result == -ENOTSUP)
        return wf_fail(wf_refusal(), result,
                       "stream %p is being captured into a graph, or GPU %d cannot wait for the library: post it "
                       "without WEFT_ON_STREAM",
                       stream, device->index);
    if (result == -EAGAIN)
        return wf_fail(wf_refusal(), result,
                       "too many operations of GPU %d wait for streams: test, wait for or poll some", device->index);
    return wf_fail(wf_refusal(), result, "stream %p of GPU %d: %s", stream, device->index, wf_strerror(result));
}

int wf_message_check_tags(const struct weft_options *options)
{
    if (!options || (options->flags & WF_TAG_FLAGS) != WF_TAG_FLAGS)
        return 0;
    return wf_fail(
        wf_refusal(), -EINVAL,
        "options.flags has WEFT_ANY_TAG and WEFT_TAG_MASK: leave one of them out, a mask of 0 takes any tag");
}

int wf_message_turn(const struct wf_message_memory *memory)
{
    const struct wf_turn *turn = memory->turn;
    return turn && turn->refusal < 0 ? refuse_turn(memory->device, turn->transit.copy.stream, turn->refusal) : 0;
}

int wf_message_check(struct weft_context *context, const void *buffer, uint64_t length,
                     const struct weft_options *options, uint32_t allowed, struct wf_message_memory *memory)
{
    int result = options ? check_options(context, options, allowed) : 0;
    *memory = (struct wf_message_memory){0};
    if (result < 0)
        return result;
    if (!buffer && length > 0)
        return wf_fail(wf_refusal(), -EINVAL,
                       "the buffer is NULL, but has %llu bytes: give the memory, or a length of 0",
                       (unsigned long long)length);
    if (length > INT64_MAX)
        return wf_fail(wf_refusal(), -EINVAL, "the length is %llu bytes: the most is %lld", (unsigned long long)length,
                       (long long)INT64_MAX);
    if (options && options->registration) {
        memory->registration = options->registration;
        result = hold_registration(options->registration, buffer, length);
        if (result < 0)
            return result;
    } else if (length > 0 && wf_devices_any(&context->devices)) {
        result = find_registration(context, buffer, length, memory);
    }
    if (result == 0 && memory->registration && length > 0)
        memory->device = memory->registration->device;
    if (result == 0 && memory->device && atomic_load(&memory->device->lost)) {
        wf_registration_release(memory->registration);
        return wf_fail(wf_refusal(), -ENODEV, "GPU %d is lost: only a new process can use it again",
                       memory->device->index);
    }
    if (result == 0 && options && (options->flags & WEFT_ON_STREAM)) {
        result = wf_turn_take(memory->device, options->stream, &memory->turn);
        if (result < 0)
            refuse_turn(memory->device, options->stream, result);
    }
    if (result < 0 && memory->registration)
        wf_registration_release(memory->registration);
    return result;
}
