#include "exports.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "devmem.h"

enum state {
    FREE,
    READY,  /* bound, and in use */
    REFUSED /* could not be exported or bound, as `why` says; makes place where one is needed */
};

/* What is known of one allocation on one card. */
struct entry {
    enum state state;
    struct wf_memory_extent extent;
    int ifindex;
    int uses;
    struct wf_devmem *devmem; /* has this binding alone, which ends with it */
    uint32_t binding;
    uint64_t offset; /* of the allocation in the dma-buf */
    uint64_t asked;  /* when it was asked for last, by exports.clock */
    struct wf_status why;
};

struct wf_exports {
    const struct wf_memory_ops *ops;
    struct wf_memory *memory;
    const struct wf_devmem_kernel *kernel;
    pthread_mutex_t making; /* held from a search without result until what was missing is there; before `lock` */
    pthread_mutex_t lock;   /* guards what follows; neither driver nor kernel is called under it */
    uint64_t clock;         /* counts what was asked for */
    int bindings;
    int most;
    struct entry entries[];
};

int wf_exports_create(const struct wf_memory_ops *ops, struct wf_memory *memory, const struct wf_devmem_kernel *kernel,
                      int most, struct wf_exports **out, struct wf_status *status)
{
    struct wf_exports *exports = calloc(1, sizeof *exports + (size_t)most * sizeof exports->entries[0]);

    if (!exports)
        return wf_fail(status, -ENOMEM, "no memory to keep account of %d bindings", most);
    exports->ops = ops;
    exports->memory = memory;
    exports->kernel = kernel;
    exports->most = most;
    pthread_mutex_init(&exports->making, NULL);
    pthread_mutex_init(&exports->lock, NULL);
    *out = exports;
    return 0;
}

void wf_exports_destroy(struct wf_exports *exports)
{
    if (!exports)
        return;
    for (int i = 0; i < exports->most; i++)
        wf_devmem_close(exports->entries[i].devmem);
    pthread_mutex_destroy(&exports->making);
    pthread_mutex_destroy(&exports->lock);
    free(exports);
}

/* Mappings of one block have its number, but bases of their own. */
static bool is_of(const struct entry *entry, const struct wf_memory_extent *extent, int ifindex)
{
    return entry->state != FREE && entry->ifindex == ifindex && entry->extent.id == extent->id &&
           entry->extent.base == extent->base && entry->extent.bytes == extent->bytes;
}

/* 1: found, and in use once more; 0: nothing is known of it; negative: it is known to be refused. */
static int find(struct wf_exports *exports, const struct wf_memory_extent *extent, int ifindex, struct wf_export *out,
                struct wf_status *status)
{
    int result = 0;

    pthread_mutex_lock(&exports->lock);
    for (int i = 0; i < exports->most && !result; i++) {
        struct entry *entry = &exports->entries[i];
        if (!is_of(entry, extent, ifindex))
            continue;
        entry->asked = ++exports->clock;
        if (entry->state == REFUSED) {
            result = wf_fail(status, entry->why.code, "%s", entry->why.text);
            continue;
        }
        entry->uses++;
        *out = (struct wf_export){.binding = entry->binding, .offset = entry->offset, .place = i};
        result = 1;
    }
    pthread_mutex_unlock(&exports->lock);
    return result;
}

/* A place for one more: a free one, else that of the refusal that was asked for the longest ago. -ENOSPC. */
static int find_place(struct wf_exports *exports, struct wf_status *status)
{
    int place = -1;

    pthread_mutex_lock(&exports->lock);
    for (int i = 0; i < exports->most; i++) {
        const struct entry *entry = &exports->entries[i];
        if (entry->state != READY && (place < 0 || entry->asked < exports->entries[place].asked))
            place = i;
    }
    if (place >= 0)
        exports->entries[place] = (struct entry){0};
    pthread_mutex_unlock(&exports->lock);
    return place >= 0 ? place
                      : wf_fail(status, -ENOSPC, "all %d bindings of GPU memory to cards, for sends, are in use",
                                exports->most);
}

/* Exports and binds; the dma-buf's descriptor is needed until then only. On failure nothing is left of it. */
static int make(const struct wf_exports *exports, struct entry *entry, struct wf_status *status)
{
    const struct wf_memory_extent *extent = &entry->extent;
    int dmabuf = -1;

    if (extent->id == 0)
        return wf_fail(status, -ENOTSUP, "GPU %d: the driver has no number for the allocation at %p", extent->device,
                       extent->base);
    int result = wf_devmem_open(exports->kernel, &entry->devmem, status);
    if (result)
        return result;
    result = exports->ops->export_dmabuf(exports->memory, extent->device, extent->base, extent->bytes, &dmabuf,
                                         &entry->offset, status);
    if (!result) {
        result = wf_devmem_bind_tx(entry->devmem, entry->ifindex, dmabuf, &entry->binding, status);
        close(dmabuf);
    }
    if (result) {
        wf_devmem_close(entry->devmem);
        entry->devmem = NULL;
    }
    return result;
}

/* A shortage, which is over when it is tried again, or an answer that the kernel did not give. */
static bool may_pass(int result)
{
    return result == -EMFILE || result == -ENFILE || result == -ENOMEM || result == -EAGAIN;
}

/* Has it made, unless another thread did so meanwhile. */
static int find_or_make(struct wf_exports *exports, const struct wf_memory_extent *extent, int ifindex,
                        struct wf_export *out, struct wf_status *status)
{
    int result = find(exports, extent, ifindex, out, status);
    if (result)
        return result;
    int place = find_place(exports, status);
    if (place < 0)
        return place;
    struct entry entry = {.extent = *extent, .ifindex = ifindex, .state = READY, .uses = 1};
    result = make(exports, &entry, &entry.why);
    if (result) {
        wf_fail(status, result, "%s", entry.why.text);
        if (may_pass(result))
            return result;
        entry.state = REFUSED;
        entry.why.code = result;
    }
    pthread_mutex_lock(&exports->lock);
    entry.asked = ++exports->clock;
    exports->bindings += entry.state == READY;
    exports->entries[place] = entry;
    pthread_mutex_unlock(&exports->lock);
    if (result)
        return result;
    *out = (struct wf_export){.binding = entry.binding, .offset = entry.offset, .place = place};
    return 1;
}

int wf_exports_use(struct wf_exports *exports, int ifindex, const void *address, uint64_t bytes, struct wf_export *out,
                   struct wf_status *status)
{
    struct wf_memory_extent extent;
    struct wf_export found;
    int result = exports->ops->extent(exports->memory, address, &extent, status);

    if (result)
        return result;
    uint64_t into = (uint64_t)((uintptr_t)address - (uintptr_t)extent.base);
    if (bytes > extent.bytes - into)
        return wf_fail(status, -EINVAL, "%" PRIu64 " bytes at %p leave their allocation, %" PRIu64 " bytes at %p",
                       bytes, address, extent.bytes, extent.base);
    result = find(exports, &extent, ifindex, &found, status);
    if (result == 0) {
        pthread_mutex_lock(&exports->making);
        result = find_or_make(exports, &extent, ifindex, &found, status);
        pthread_mutex_unlock(&exports->making);
    }
    if (result < 0)
        return result;
    found.offset += into;
    *out = found;
    return 0;
}

void wf_exports_release(struct wf_exports *exports, const struct wf_export *use)
{
    struct entry *entry = &exports->entries[use->place];
    struct wf_devmem *devmem = NULL;

    pthread_mutex_lock(&exports->lock);
    if (--entry->uses == 0) {
        devmem = entry->devmem;
        *entry = (struct entry){0};
        exports->bindings--;
    }
    pthread_mutex_unlock(&exports->lock);
    wf_devmem_close(devmem);
}

int wf_exports_count(struct wf_exports *exports)
{
    pthread_mutex_lock(&exports->lock);
    int bindings = exports->bindings;
    pthread_mutex_unlock(&exports->lock);
    return bindings;
}
