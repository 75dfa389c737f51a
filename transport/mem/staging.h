/*
 * staging.h: slots: pieces of pinned host memory through which bytes pass on their way to and from a device.
 *
 * A pool lends its slots to accounts (one for each session), and no account may hold more than what is free after it
 * has taken: one account gets at most half, n accounts that want all get 1/(n+1) each, and the next account finds
 * some left, whatever the others do with theirs (the "dynamic threshold" of Choudhury and Hahne, 1998). An account that
 * got none is told once a slot comes back.
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
    struct wf_link link;      /* free: in the pool; taken: its user's */
    struct wf_link held_link; /* in account.held */
    struct wf_slot_pool *pool;
    struct wf_slot_account *account; /* NULL: free */
    uint8_t *memory;
    /* its user's: what of a message is in it */
    uint64_t start;
    uint32_t length;
    uint32_t retired; /* bytes that need not be kept any more */
    bool ready;       /* the copy into it has ended */
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
    struct wf_list free; /* the one given back last is taken first: it is warm */
    struct wf_list wanting;
    uint32_t count, free_count, slot_bytes;
    struct wf_slot *slots;
};

/* Cuts `count` slots out of the memory at `memory`, which stays the caller's. 0 or -ENOMEM; fini accepts it after that,
 * and zeroed. */
int wf_slot_pool_init(struct wf_slot_pool *pool, uint8_t *memory, uint32_t count, uint32_t slot_bytes);
/* Every slot is back. */
void wf_slot_pool_fini(struct wf_slot_pool *pool);

/* `tell` is called with the pool's lock held, from any thread, each time there may be a slot after all. */
void wf_slot_account_init(struct wf_slot_account *account, void (*tell)(void *context), void *context);
/* Gives back what it holds, and wants nothing any more. */
void wf_slot_account_fini(struct wf_slot_pool *pool, struct wf_slot_account *account);

/* NULL: not now; the account will be told. `spare`: what is to be left for others beyond an account's own share. */
struct wf_slot *wf_slot_take(struct wf_slot_pool *pool, struct wf_slot_account *account, uint32_t spare);
void wf_slot_give(struct wf_slot *slot);

#endif
