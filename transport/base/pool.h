/*
 * pool.h: objects of one size, taken and given back without malloc() once the pool has grown. The pool grows by slabs
 * and keeps them until fini. wf_pool_take() does not clear an object. Not thread-safe: the owner of the pool takes a
 * lock around calls if several threads use it.
 */
#ifndef WF_BASE_POOL_H
#define WF_BASE_POOL_H

#include <stddef.h>
#include <string.h>

struct wf_pool {
    size_t object_size; /* rounded up to 16 bytes */
    size_t per_slab;    /* objects added at a time, at least 1 */
    size_t taken;       /* objects now in use */
    size_t limit;       /* taken never passes it; 0: no limit */
    void *free;         /* first free object; its first word is the next */
    void *slabs;        /* first slab; its first word is the next */
};

/* Allocates nothing. */
void wf_pool_init(struct wf_pool *pool, size_t object_size, size_t per_slab, size_t limit);
void wf_pool_fini(struct wf_pool *pool);

/* An object in the pool begins with the next one, a slab with the next slab. Through memcpy: the memory is the
 * user's, of whatever type. */
static inline void *wf_pool_next(const void *item)
{
    void *next;

    memcpy(&next, item, sizeof(next));
    return next;
}

static inline void wf_pool_set_next(void *item, void *next)
{
    memcpy(item, &next, sizeof(next));
}

/* wf_pool_take() where the limit is reached, or no object is free. */
void *wf_pool_take_more(struct wf_pool *pool);

/* NULL when the limit is reached, or there is no memory. */
static inline void *wf_pool_take(struct wf_pool *pool)
{
    void *object = pool->free;

    if (!object || pool->taken > pool->limit - 1) /* no limit, 0, is the largest here */
        return wf_pool_take_more(pool);
    pool->free = wf_pool_next(object);
    pool->taken++;
    return object;
}

/* The same, all zero. */
void *wf_pool_take_clear(struct wf_pool *pool);

static inline void wf_pool_give(struct wf_pool *pool, void *object)
{
    wf_pool_set_next(object, pool->free);
    pool->free = object;
    pool->taken--;
}

#endif
