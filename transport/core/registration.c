#include "core/registration.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/context.h"

int weft_register(struct weft_context *context, void *base, uint64_t length, struct weft_registration **out,
                  struct weft_error *err)
{
    if (!base || length == 0 || (uint64_t)(uintptr_t)base + length < length)
        return wf_fail(wf_status_of(err), -EINVAL,
                       "cannot register %llu bytes at %p: the range is empty or wraps around the address space",
                       (unsigned long long)length, base);
    struct weft_registration *registration = calloc(1, sizeof *registration);
    if (!registration)
        return wf_fail(wf_status_of(err), -ENOMEM, "no memory for a registration");
    registration->context = context;
    registration->base = base;
    registration->length = length;
    registration->kind = WEFT_MEMORY_HOST;
    do {
        int result = wf_context_random(context, &registration->key, sizeof registration->key);
        if (result < 0) {
            free(registration);
            return wf_fail(wf_status_of(err), result, "no random key for a registration: %s", wf_strerror(result));
        }
    } while (registration->key == 0);
    pthread_mutex_lock(&context->lock);
    wf_list_push_back(&context->registrations, &registration->link);
    pthread_mutex_unlock(&context->lock);
    *out = registration;
    return 0;
}

enum weft_memory_kind weft_registration_kind(const struct weft_registration *registration)
{
    return registration->kind;
}

uint64_t weft_registration_key(const struct weft_registration *registration)
{
    return registration->key;
}

int wf_registration_hold(struct weft_registration *registration, const void *buffer, uint64_t length)
{
    const uint8_t *start = buffer;
    if (start < registration->base || length > registration->length ||
        (uint64_t)(start - registration->base) > registration->length - length)
        return -EINVAL;
    uint32_t uses = atomic_fetch_add(&registration->uses, 1);
    if (uses & WF_REGISTRATION_ENDED) {
        wf_registration_release(registration);
        return -ESHUTDOWN;
    }
    return 0;
}

void wf_registration_release(struct weft_registration *registration)
{
    /* The address is taken before the count falls: deregister may free the object right after. */
    _Atomic uint32_t *uses = &registration->uses;
    if (atomic_fetch_sub(uses, 1) == (WF_REGISTRATION_ENDED | 1))
        syscall(SYS_futex, uses, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void weft_deregister(struct weft_registration *registration)
{
    if (!registration)
        return;
    struct weft_context *context = registration->context;
    pthread_mutex_lock(&context->lock);
    wf_link_remove(&registration->link);
    pthread_mutex_unlock(&context->lock);
    uint32_t uses = atomic_fetch_or(&registration->uses, WF_REGISTRATION_ENDED) | WF_REGISTRATION_ENDED;
    while (uses != WF_REGISTRATION_ENDED) {
        syscall(SYS_futex, &registration->uses, FUTEX_WAIT_PRIVATE, uses, NULL, NULL, 0);
        uses = atomic_load(&registration->uses);
    }
    free(registration);
}
