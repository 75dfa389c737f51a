#include "core/device/registration.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

void wf_registry_init(struct wf_registry *registry, struct wf_cards *cards)
{
    registry->cards = cards;
    pthread_mutex_init(&registry->lock, NULL);
    for (int i = 0; i < WF_REGION_HASH; i++)
        wf_list_init(&registry->by_key[i]);
    wf_list_init(&registry->of_devices);
}

void wf_registry_fini(struct wf_registry *registry)
{
    for (int i = 0; i < WF_REGION_HASH; i++) {
        WF_LIST_EACH (link, following, &registry->by_key[i]) {
            struct weft_registration *registration = WF_CONTAINER(link, struct weft_registration, link);
            wf_cards_take_back(registry->cards, registration->loans);
            free(registration);
        }
    }
    pthread_mutex_destroy(&registry->lock);
}

/* The list for a key. Keys are random, so any of their bits can choose it. */
static struct wf_list *bucket(struct wf_registry *registry, uint64_t key)
{
    return &registry->by_key[key % WF_REGION_HASH];
}

struct weft_registration *wf_registration_find(struct wf_registry *registry, uint64_t key)
{
    struct weft_registration *found = NULL;
    pthread_mutex_lock(&registry->lock);
    WF_LIST_EACH (link, following, bucket(registry, key)) {
        struct weft_registration *registration = WF_CONTAINER(link, struct weft_registration, link);
        if (registration->key == key)
            found = registration;
    }
    if (found)
        atomic_fetch_add(&found->uses, 1); /* a registration in the table has not ended */
    pthread_mutex_unlock(&registry->lock);
    return found;
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

struct weft_registration *wf_registration_covering(struct wf_registry *registry, const void *buffer, uint64_t length)
{
    struct weft_registration *found = NULL;
    pthread_mutex_lock(&registry->lock);
    WF_LIST_EACH (link, following, &registry->of_devices) {
        struct weft_registration *registration = WF_CONTAINER(link, struct weft_registration, device_link);
        if (!found && wf_registration_hold(registration, buffer, length) == 0)
            found = registration;
    }
    pthread_mutex_unlock(&registry->lock);
    return found;
}

void wf_registration_release(struct weft_registration *registration)
{
    /* The address of `uses` is taken before the count falls: weft_deregister() may free the object right after. */
    _Atomic uint32_t *uses = &registration->uses;
    if (atomic_fetch_sub(uses, 1) == (WF_REGISTRATION_ENDED | 1))
        syscall(SYS_futex, uses, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void wf_registration_enter(struct wf_registry *registry, struct weft_registration *registration)
{
    pthread_mutex_lock(&registry->lock);
    wf_list_push_back(bucket(registry, registration->key), &registration->link);
    if (registration->device)
        wf_list_push_back(&registry->of_devices, &registration->device_link);
    pthread_mutex_unlock(&registry->lock);
}

void wf_registration_leave(struct wf_registry *registry, struct weft_registration *registration)
{
    pthread_mutex_lock(&registry->lock);
    wf_link_remove(&registration->link);
    wf_link_remove(&registration->device_link);
    pthread_mutex_unlock(&registry->lock);
    atomic_fetch_or(&registration->uses, WF_REGISTRATION_ENDED);
}
