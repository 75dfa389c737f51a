#include "base/pool.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 16 /* of objects, and the room of a slab's own link */

_Static_assert(_Alignof(max_align_t) <= ALIGNMENT, "malloc aligns slabs to no less than an object needs");

void wf_pool_init(struct wf_pool *pool, size_t object_size, size_t per_slab, size_t limit)
{
    size_t size = object_size ? object_size : 1;

    /* A size that cannot be rounded up is kept: taking fails, as for any other that memory does not hold. */
    *pool = (struct wf_pool){
        .object_size = size > SIZE_MAX - ALIGNMENT ? size : (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT,
        .per_slab = per_slab ? per_slab : 1,
        .limit = limit,
    };
}

void wf_pool_fini(struct wf_pool *pool)
{
    while (pool->slabs) {
        void *slab = pool->slabs;
        pool->slabs = wf_pool_next(slab);
        free(slab);
    }
    pool->free = NULL;
    pool->taken = 0;
}

static bool grow(struct wf_pool *pool)
{
    size_t bytes;
    char *slab;

    if (__builtin_mul_overflow(pool->object_size, pool->per_slab, &bytes) ||
        __builtin_add_overflow(bytes, ALIGNMENT, &bytes) || bytes > PTRDIFF_MAX)
        return false;
    slab = malloc(bytes);
    if (!slab)
        return false;
    wf_pool_set_next(slab, pool->slabs);
    pool->slabs = slab;
    /* From the last to the first, so that they are taken in the order of their addresses. */
    for (size_t i = pool->per_slab; i-- > 0;) {
        char *object = slab + ALIGNMENT + i * pool->object_size;
        wf_pool_set_next(object, pool->free);
        pool->free = object;
    }
    return true;
}

void *wf_pool_take_more(struct wf_pool *pool)
{
    if (pool->limit && pool->taken >= pool->limit)
        return NULL;
    return pool->free || grow(pool) ? wf_pool_take(pool) : NULL;
}

void *wf_pool_take_clear(struct wf_pool *pool)
{
    void *object = wf_pool_take(pool);
    /* Not sizeof(): for a size that the compiler knows it writes a string instruction, whose start takes longer. */
    return object ? memset(object, 0, pool->object_size) : NULL;
}
