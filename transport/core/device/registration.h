/*
 * registration.h: registered memory, with its kind and its key. Every operation that uses a registration holds it.
 */
#ifndef WF_CORE_DEVICE_REGISTRATION_H
#define WF_CORE_DEVICE_REGISTRATION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/list.h"
#include "core/cards/cards.h"
#include "weft.h"

#define WF_REGION_HASH 256

/* The registrations of a context. Owner: the context. */
struct wf_registry {
    pthread_mutex_t lock; /* taken after any other lock */
    struct wf_list by_key[WF_REGION_HASH];
    struct wf_list of_devices; /* the registrations of device memory */
    struct wf_cards *cards;    /* that their memory is lent to */
};

/* Owner: wf_registry.lock, except `uses` (any thread). */
struct weft_registration {
    struct wf_link link;          /* wf_registry.by_key */
    struct wf_link device_link;   /* wf_registry.of_devices, if it is device memory */
    struct weft_context *context; /* for the public calls */
    uint8_t *base;
    uint64_t length;
    uint64_t key;
    enum weft_memory_kind kind;
    uint32_t access;            /* enum weft_access */
    struct wf_card_loan *loans; /* how cards know it, by rail of this side; NULL: none does */
    uint64_t lent;              /* rails whose cards do, as bits */
    struct wf_device *device;   /* CUDA: the device that has the memory; else NULL */
    _Atomic uint32_t uses;      /* operations that hold it, plus WF_REGISTRATION_ENDED once deregistered */
};

#define WF_REGISTRATION_ENDED 0x80000000u

void wf_registry_init(struct wf_registry *registry, struct wf_cards *cards);
void wf_registry_fini(struct wf_registry *registry);

/* The registration with this key, held for an operation of a peer; NULL: there is no such registration. */
struct weft_registration *wf_registration_find(struct wf_registry *registry, uint64_t key);

/* A registration of device memory that covers the range, held; NULL: there is no such registration. */
struct weft_registration *wf_registration_covering(struct wf_registry *registry, const void *buffer, uint64_t length);

/* Puts the registration into the table, where operations of peers find it. Its `key` is set. */
void wf_registration_enter(struct wf_registry *registry, struct weft_registration *registration);

/* Takes the registration out of the table: no new operation can hold it, and `uses` falls to WF_REGISTRATION_ENDED as
 * the operations end. Does not wait. */
void wf_registration_leave(struct wf_registry *registry, struct weft_registration *registration);

/* Holds the registration for an operation on [buffer, buffer + length). -EINVAL: the range is not inside the registered
 * memory; -ESHUTDOWN: the registration has ended. */
int wf_registration_hold(struct weft_registration *registration, const void *buffer, uint64_t length);
void wf_registration_release(struct weft_registration *registration);

#endif
