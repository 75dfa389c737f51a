#include "mem/staging.h"

#include <errno.h>
#include <stdlib.h>

int wf_slot_pool_init(struct wf_slot_pool *pool, uint8_t *memory, uint32_t count, uint32_t slot_bytes)
{
    *pool = (struct wf_slot_pool){.slot_bytes = slot_bytes};
    pthread_mutex_init(&pool->lock, NULL);
    wf_list_init(&pool->free);
    wf_list_init(&pool->wanting);
    pool->slots = calloc(count, sizeof *pool->slots);
    if (!pool->slots)
        return -ENOMEM;
    pool->count = pool->free_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct wf_slot *slot = &pool->slots[i];
        slot->pool = pool;
        slot->memory = memory + (size_t)i * slot_bytes;
        wf_link_init(&slot->held_link);
        wf_list_push_back(&pool->free, &slot->link);
    }
    return 0;
}

void wf_slot_pool_fini(struct wf_slot_pool *pool)
{
    if (!pool->slot_bytes)
        return;
    free(pool->slots);
    pthread_mutex_destroy(&pool->lock);
    *pool = (struct wf_slot_pool){0};
}

void wf_slot_account_init(struct wf_slot_account *account, void (*tell)(void *context), void *context)
{
    *account = (struct wf_slot_account){.tell = tell, .context = context};
    wf_list_init(&account->held);
    wf_link_init(&account->want_link);
}

/* With the lock held. */
static void take_back(struct wf_slot *slot)
{
    struct wf_slot_pool *pool = slot->pool;
    wf_link_remove(&slot->held_link);
    wf_link_remove(&slot->link);
    slot->account->count -= 1;
    slot->account = NULL;
    wf_list_push_front(&pool->free, &slot->link);
    pool->free_count += 1;
}

static void tell_all(struct wf_slot_pool *pool)
{
    struct wf_link *link;
    while ((link = wf_list_pop_front(&pool->wanting))) {
        struct wf_slot_account *account = WF_CONTAINER(link, struct wf_slot_account, want_link);
        account->tell(account->context);
    }
}

void wf_slot_account_fini(struct wf_slot_pool *pool, struct wf_slot_account *account)
{
    pthread_mutex_lock(&pool->lock);
    wf_link_remove(&account->want_link);
    bool gave = !wf_list_empty(&account->held);
    struct wf_link *link;
    while ((link = wf_list_first(&account->held)))
        take_back(WF_CONTAINER(link, struct wf_slot, held_link));
    if (gave)
        tell_all(pool);
    pthread_mutex_unlock(&pool->lock);
}

struct wf_slot *wf_slot_take(struct wf_slot_pool *pool, struct wf_slot_account *account, uint32_t spare)
{
    struct wf_slot *slot = NULL;
    pthread_mutex_lock(&pool->lock);
    if (spare == WF_SLOT_ANY ? pool->free_count > 0 : account->count + spare < pool->free_count) {
        slot = WF_CONTAINER(wf_list_pop_front(&pool->free), struct wf_slot, link);
        pool->free_count -= 1;
        account->count += 1;
        slot->account = account;
        slot->start = 0;
        slot->length = slot->retired = 0;
        slot->ready = false;
        wf_list_push_back(&account->held, &slot->held_link);
    } else if (!wf_link_in_list(&account->want_link)) {
        wf_list_push_back(&pool->wanting, &account->want_link);
    }
    pthread_mutex_unlock(&pool->lock);
    return slot;
}

void wf_slot_give(struct wf_slot *slot)
{
    struct wf_slot_pool *pool = slot->pool;
    pthread_mutex_lock(&pool->lock);
    take_back(slot);
    tell_all(pool);
    pthread_mutex_unlock(&pool->lock);
}
