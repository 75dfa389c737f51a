/* The public calls that register memory for peers, and end a registration. */
#include "core/calls/registering.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/calls/context.h"
#include "core/device/registration.h"
#include "core/ground/refusal.h"
#include "core/message/served.h"
#include "core/session/session.h"

int weft_register(struct weft_context *context, void *base, uint64_t length, struct weft_registration **out,
                  struct weft_error *err)
{
    if (WF_IS_NULL(wf_status_of(err), context) || WF_IS_NULL(wf_status_of(err), out))
        return -EINVAL;
    return weft_register_for(context, base, length, WEFT_REMOTE_READ | WEFT_REMOTE_WRITE, out, err);
}

int weft_register_for(struct weft_context *context, void *base, uint64_t length, uint32_t access,
                      struct weft_registration **out, struct weft_error *err)
{
    if (WF_IS_NULL(wf_status_of(err), context) || WF_IS_NULL(wf_status_of(err), out))
        return -EINVAL;
    struct wf_status unheard = {0}, *status = err ? wf_status_of(err) : &unheard;
    if (access & ~(uint32_t)(WEFT_REMOTE_READ | WEFT_REMOTE_WRITE))
        return wf_fail(status, -EINVAL,
                       "cannot register memory with access 0x%x: use WEFT_REMOTE_READ and WEFT_REMOTE_WRITE, or 0",
                       access);
    if (!base || length == 0 || (uint64_t)(uintptr_t)base + length < length)
        return wf_fail(status, -EINVAL,
                       "cannot register %llu bytes at %p: the range is empty or wraps around the address space",
                       (unsigned long long)length, base);
    struct wf_device *device;
    int found = wf_devices_find(&context->devices, base, length, &device, status);
    if (found < 0)
        return found;
    if (device) {
        found = wf_cards_use(&context->cards, context->devices.ops, atomic_load(&context->devices.memory),
                             device->index, status);
        if (found < 0)
            return found;
    }
    struct weft_registration *registration = calloc(1, sizeof *registration);
    if (!registration)
        return wf_fail(status, -ENOMEM, "no memory for a registration");
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
            return wf_fail(status, result, "no random key for a registration: %s", wf_strerror(result));
        }
    } while (registration->key == 0);
    if (device)
        registration->lent = wf_cards_lend(&context->cards, context->devices.ops, atomic_load(&context->devices.memory),
                                           device->index, base, length, &registration->loans);
    wf_registration_enter(&context->registry, registration);
    *out = registration;
    return 0;
}

enum weft_memory_kind weft_registration_kind(const struct weft_registration *registration)
{
    if (WF_IS_NULL(wf_refusal(), registration))
        return WEFT_MEMORY_HOST;
    return registration->kind;
}

uint64_t weft_registration_key(const struct weft_registration *registration)
{
    if (WF_IS_NULL(wf_refusal(), registration))
        return 0;
    return registration->key;
}

/* Refuses the operations of peers on this registration that are under way. */
static void refuse_users(struct weft_registration *registration)
{
    struct weft_context *context = registration->context;
    pthread_mutex_lock(&context->world.lock);
    WF_LIST_EACH (link, following, &context->sessions.all) {
        struct wf_session *session = WF_CONTAINER(link, struct wf_session, link);
        wf_session_lock(session);
        wf_region_revoke(&session->desk, registration);
        wf_session_unlock(session);
        wf_kicks_all(&session->kicks, NULL);
    }
    pthread_mutex_unlock(&context->world.lock);
}

void wf_registration_end(struct weft_registration *registration)
{
    wf_registration_leave(&registration->context->registry, registration);
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
    wf_cards_take_back(&registration->context->cards, registration->loans);
    free(registration);
}
