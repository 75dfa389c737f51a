#include "core/device/registration.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/calls/context.h"
#include "core/message/served.h"
#include "core/session/session.h"

void wf_registry_init(struct wf_registry *registry)
{
    pthread_mutex_init(&registry->lock, NULL);
    for (int i = 0; i < WF_REGION_HASH; i++)
        wf_list_init(&registry->by_key[i]);
    wf_list_init(&registry->of_devices);
}

void wf_registry_fini(struct wf_registry *registry)
{
    for (int i = 0; i < WF_REGION_HASH; i++) {
        WF_LIST_EACH (link, following, &registry->by_key[i]) {
            free(WF_CONTAINER(link, struct weft_registration, link));
        }
    }
    pthread_mutex_destroy(&registry->lock);
}

/* Keys are random: any bits of them will do. */
static struct wf_list *bucket(struct weft_context *context, uint64_t key)
{
    return &context->registry.by_key[key % WF_REGION_HASH];
}

struct weft_registration *wf_registration_find(struct weft_context *context, uint64_t key)
{
    struct weft_registration *found = NULL;
    pthread_mutex_lock(&context->registry.lock);
    WF_LIST_EACH (link, following, bucket(context, key)) {
        struct weft_registration *registration = WF_CONTAINER(link, struct weft_registration, link);
        if (registration->key == key)
            found = registration;
    }
    if (found)
        atomic_fetch_add(&found->uses, 1); /* it is in the table: not ended yet */
    pthread_mutex_unlock(&context->registry.lock);
    return found;
}

/* What peers are doing with it is refused. */
static void refuse_users(struct weft_registration *registration)
{
    struct weft_context *context = registration->context;
    pthread_mutex_lock(&context->world.lock);
    WF_LIST_EACH (link, following, &context->sessions.all) {
        struct wf_session *session = WF_CONTAINER(link, struct wf_session, link);
        wf_session_lock(session);
        wf_region_revoke(session, registration);
        wf_session_unlock(session);
        wf_session_kick_all(session, NULL);
    }
    pthread_mutex_unlock(&context->world.lock);
}

int weft_register(struct weft_context *context, void *base, uint64_t length, struct weft_registration **out,
                  struct weft_error *err)
{
    return weft_register_for(context, base, length, WEFT_REMOTE_READ | WEFT_REMOTE_WRITE, out, err);
}

int weft_register_for(struct weft_context *context, void *base, uint64_t length, uint32_t access,
                      struct weft_registration **out, struct weft_error *err)
{
    if (access & ~(uint32_t)(WEFT_REMOTE_READ | WEFT_REMOTE_WRITE))
        return wf_fail(wf_status_of(err), -EINVAL,
                       "cannot register memory with access 0x%x: use WEFT_REMOTE_READ and WEFT_REMOTE_WRITE, or 0",
                       access);
    if (!base || length == 0 || (uint64_t)(uintptr_t)base + length < length)
        return wf_fail(wf_status_of(err), -EINVAL,
                       "cannot register %llu bytes at %p: the range is empty or wraps around the address space",
                       (unsigned long long)length, base);
    struct wf_device *device;
    int found = wf_devices_find(context, base, length, &device, wf_status_of(err));
    if (found < 0)
        return found;
    struct weft_registration *registration = calloc(1, sizeof *registration);
    if (!registration)
        return wf_fail(wf_status_of(err), -ENOMEM, "no memory for a registration");
    registration->context = context;
    registration->base = base;
    registration->length = length;
    registration->kind = device ? WEFT_MEMORY_CUDA : WEFT_MEMORY_HOST;
    registration->device = device;
    registration->access = access;
    wf_link_init(&registration->device_link);
    do {
        int result = wf_world_random(&context->world, &registration->key, sizeof registration->key);
        if (result < 0) {
            free(registration);
            return wf_fail(wf_status_of(err), result, "no random key for a registration: %s", wf_strerror(result));
        }
    } while (registration->key == 0);
    pthread_mutex_lock(&context->registry.lock);
    wf_list_push_back(bucket(context, registration->key), &registration->link);
    if (device)
        wf_list_push_back(&context->registry.of_devices, &registration->device_link);
    pthread_mutex_unlock(&context->registry.lock);
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

struct weft_registration *wf_registration_covering(struct weft_context *context, const void *buffer, uint64_t length)
{
    struct weft_registration *found = NULL;
    pthread_mutex_lock(&context->registry.lock);
    WF_LIST_EACH (link, following, &context->registry.of_devices) {
        struct weft_registration *registration = WF_CONTAINER(link, struct weft_registration, device_link);
        if (!found && wf_registration_hold(registration, buffer, length) == 0)
            found = registration;
    }
    pthread_mutex_unlock(&context->registry.lock);
    return found;
}

void wf_registration_release(struct weft_registration *registration)
{
    /* The address is taken before the count falls: deregister may free the object right after. */
    _Atomic uint32_t *uses = &registration->uses;
    if (atomic_fetch_sub(uses, 1) == (WF_REGISTRATION_ENDED | 1))
        syscall(SYS_futex, uses, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void wf_registration_end(struct weft_registration *registration)
{
    struct weft_context *context = registration->context;
    pthread_mutex_lock(&context->registry.lock);
    wf_link_remove(&registration->link);
    wf_link_remove(&registration->device_link);
    pthread_mutex_unlock(&context->registry.lock);
    atomic_fetch_or(&registration->uses, WF_REGISTRATION_ENDED);
    refuse_users(registration);
}

void weft_deregister(struct weft_registration *registration)
{
    if (!registration)
        return;
    wf_registration_end(registration);
    uint32_t uses = atomic_load(&registration->uses);
    while (uses != WF_REGISTRATION_ENDED) {
        syscall(SYS_futex, &registration->uses, FUTEX_WAIT_PRIVATE, uses, NULL, NULL, 0);
        uses = atomic_load(&registration->uses);
    }
    free(registration);
}
