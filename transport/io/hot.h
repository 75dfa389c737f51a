/*
 * hot.h: hot descriptors, which the epoll engine reads without asking for events first, because it has read their
 * queues empty and expects more bytes. A hot descriptor of urgent operations is also read between large calls. The
 * large calls are shorter until they have moved WF_HOT_BYTES without urgent bytes between them.
 */
#ifndef WF_IO_HOT_H
#define WF_IO_HOT_H

#include <stdbool.h>
#include <stddef.h>

#define WF_HOT_COUNT 2          /* hot descriptors at a time */
#define WF_HOT_MISSES 96        /* after more misses in a row a descriptor is no longer hot */
#define WF_HOT_BYTES (8u << 20) /* after so many bytes of large calls without an urgent hit, large calls are whole */
#define WF_HOT_HITS 32          /* hits before it is muted (interest.h): muting costs as much time as ten hits gain */

struct wf_hot {
    int fd; /* -1: none */
    bool urgent;
    int misses;    /* reads in a row that found no bytes */
    size_t passed; /* bytes that large calls have moved since the last hit, WF_HOT_BYTES at most */
    int hits;      /* reads that found bytes, since the engine last slept */
};

/* Owner: the thread that drives the engine. */
struct wf_hot_set {
    struct wf_hot entries[WF_HOT_COUNT]; /* the latest first */
};

static inline void wf_hot_clear(struct wf_hot *entry)
{
    *entry = (struct wf_hot){.fd = -1};
}

static inline void wf_hot_init(struct wf_hot_set *set)
{
    for (int i = 0; i < WF_HOT_COUNT; i++)
        wf_hot_clear(&set->entries[i]);
}

static inline struct wf_hot *wf_hot_find(struct wf_hot_set *set, int fd)
{
    for (int i = 0; i < WF_HOT_COUNT; i++)
        if (set->entries[i].fd == fd)
            return &set->entries[i];
    return NULL;
}

static inline bool wf_hot_expects_urgent(const struct wf_hot_set *set)
{
    for (int i = 0; i < WF_HOT_COUNT; i++)
        if (set->entries[i].fd >= 0 && set->entries[i].urgent && set->entries[i].passed < WF_HOT_BYTES)
            return true;
    return false;
}

/* A large call has moved `bytes`. */
static inline void wf_hot_pass(struct wf_hot_set *set, size_t bytes)
{
    for (int i = 0; i < WF_HOT_COUNT; i++) {
        size_t left = WF_HOT_BYTES - set->entries[i].passed;
        set->entries[i].passed += bytes < left ? bytes : left;
    }
}

/* The entry of `fd`; else an entry to use for `fd`: an empty entry, or the oldest. */
static inline struct wf_hot *wf_hot_entry(struct wf_hot_set *set, int fd)
{
    struct wf_hot *entry = wf_hot_find(set, fd);
    if (!entry)
        entry = wf_hot_find(set, -1);
    return entry ? entry : &set->entries[WF_HOT_COUNT - 1];
}

/* `fd` had bytes: gives it `entry`, moved to the front as the latest, and returns that entry. */
static inline struct wf_hot *wf_hot_hit(struct wf_hot_set *set, struct wf_hot *entry, int fd, bool urgent)
{
    struct wf_hot now = {.fd = fd, .urgent = urgent, .hits = entry->fd == fd ? entry->hits + 1 : 1};
    for (; entry > set->entries; entry--)
        entry[0] = entry[-1];
    *entry = now;
    return entry;
}

/* The descriptor had no bytes to read. True: too often in a row. */
static inline bool wf_hot_miss(struct wf_hot *entry)
{
    return ++entry->misses > WF_HOT_MISSES;
}

#endif
