/*
 * staging.h: slots are pieces of pinned host memory. Bytes pass through them on their way to and from a device.
 *
 * A pool lends its slots to accounts (one for each session). An account gets a slot only if it holds fewer slots than
 * are free: one account gets at most half, n greedy accounts get 1/(n+1) each, and some slots are left for the next
 * account (the "dynamic threshold" of Choudhury and Hahne, 1998). An account that got none is told once a slot comes
 * back.
 *
 * Any thread may call. While the pool's lock is held no other lock is taken, except by `tell`.
 */
#ifndef WF_MEM_STAGING_H
#define WF_MEM_STAGING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct wf_slot_pool;
struct wf_slot_account;

/* Owner: the caller of wf_slot_take(); `held_link` and `account` are the pool's. */
struct wf_slot {
    struct wf_link link;      /* free: in pool.free; taken: for the slot's user */
    struct wf_link held_link; /* in account.held */
    struct wf_slot_pool *pool;
    struct wf_slot_account *account; /* NULL: free */
    uint8_t *memory;
    /* for the slot's user: the part of a message that is in the slot */
    uint64_t start;
    uint32_t length;
    uint32_t retired; /* bytes that are no longer needed */
    bool ready;       /* the copy into the slot has ended */
};

struct wf_slot_account {
    struct wf_list held;
    uint32_t count;           /* slots it holds */
    struct wf_link want_link; /* in pool.wanting */
    void (*tell)(void *context);
    void *context;
};

struct wf_slot_pool {
    pthread_mutex_t lock;
    struct wf_list free; /* the slot given back last is taken first: its memory is still in the cache */
    struct wf_list wanting;
    uint32_t count, free_count, slot_bytes;
    struct wf_slot *slots;
};

/* Cuts `count` slots out of the memory at `memory`, which the caller still owns. 0 or -ENOMEM. fini accepts the pool
 * after a failure, too, and a zeroed pool. */
int wf_slot_pool_init(struct wf_slot_pool *pool, uint8_t *memory, uint32_t count, uint32_t slot_bytes);
/* Every slot must have been given back. */
void wf_slot_pool_fini(struct wf_slot_pool *pool);

/* `tell` is called with the pool's lock held, from any thread, each time a waiting account may get a slot. */
void wf_slot_account_init(struct wf_slot_account *account, void (*tell)(void *context), void *context);
/* Gives back the slots of the account, which is no longer told. */
void wf_slot_account_fini(struct wf_slot_pool *pool, struct wf_slot_account *account);

/* NULL: no slot now; the account will be told. `spare`: slots that must stay free for other accounts in addition;
 * WF_SLOT_ANY: none need to, for what the account's other slots wait for. */
#define WF_SLOT_ANY UINT32_MAX
struct wf_slot *wf_slot_take(struct wf_slot_pool *pool, struct wf_slot_account *account, uint32_t spare);
void wf_slot_give(struct wf_slot *slot);

#endif
