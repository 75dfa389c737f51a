/*
 * pool.h: objects of one size, taken and given back without malloc() once the pool has grown. The pool grows by slabs
 * and keeps them until fini. wf_pool_take() does not clear an object. Not thread-safe: the owner of the pool takes a
 * lock around calls if several threads use it.
 */
#ifndef WF_BASE_POOL_H
#define WF_BASE_POOL_H

#include <stddef.h>

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

/* NULL when the limit is reached, or there is no memory. */
void *wf_pool_take(struct wf_pool *pool);
void wf_pool_give(struct wf_pool *pool, void *object);

#endif
