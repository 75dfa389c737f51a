/*
 * registration.h: memory made known, with its kind and its key. A use is held by every operation that names it.
 */
#ifndef WF_CORE_DEVICE_REGISTRATION_H
#define WF_CORE_DEVICE_REGISTRATION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/list.h"
#include "weft.h"

#define WF_REGION_HASH 256

/* The registrations of a context. Owner: the context. */
struct wf_registry {
    pthread_mutex_t lock; /* taken after any other lock */
    struct wf_list by_key[WF_REGION_HASH];
    struct wf_list of_devices; /* of these, the ones of device memory */
};

/* Owner: wf_registry.lock, except `uses` (any thread). */
struct weft_registration {
    struct wf_link link;          /* wf_registry.by_key */
    struct wf_link device_link;   /* wf_registry.of_devices, if it is device memory */
    struct weft_context *context; /* whose it is; for the public calls */
    uint8_t *base;
    uint64_t length;
    uint64_t key;
    enum weft_memory_kind kind;
    uint32_t access;          /* enum weft_access */
    struct wf_device *device; /* CUDA: whose memory it is; else NULL */
    _Atomic uint32_t uses;    /* operations under way, plus WF_REGISTRATION_ENDED once deregistered */
};

#define WF_REGISTRATION_ENDED 0x80000000u

void wf_registry_init(struct wf_registry *registry);
void wf_registry_fini(struct wf_registry *registry);

/* The registration with this key, held for an operation of a peer; NULL: there is none. */
struct weft_registration *wf_registration_find(struct wf_registry *registry, uint64_t key);

/* The registration of device memory that covers the range, held; NULL: there is none. */
struct weft_registration *wf_registration_covering(struct wf_registry *registry, const void *buffer, uint64_t length);

/* Puts one into the table, where peers find it. Its `key` is set. */
void wf_registration_enter(struct wf_registry *registry, struct weft_registration *registration);

/* Takes it out: no new operation; `uses` sinks to WF_REGISTRATION_ENDED. Does not wait. */
void wf_registration_leave(struct wf_registry *registry, struct weft_registration *registration);

/* Holds the registration for an operation on [buffer, buffer + length). -EINVAL: outside of it; -ESHUTDOWN: ended. */
int wf_registration_hold(struct weft_registration *registration, const void *buffer, uint64_t length);
void wf_registration_release(struct weft_registration *registration);

#endif
