/*
 * hot.h: the few descriptors that the epoll engine reads without asking for events first, for their queues have been
 * read empty and more comes. A descriptor that brought something urgent is also read between large calls; these
 * are smaller until they have moved WF_HOT_BYTES without anything urgent.
 */
#ifndef WF_IO_HOT_H
#define WF_IO_HOT_H

#include <stdbool.h>
#include <stddef.h>

#define WF_HOT_COUNT 2          /* at a time */
#define WF_HOT_MISSES 96        /* in a row, and it is hot no more */
#define WF_HOT_BYTES (8u << 20) /* moved by large calls with nothing between them: large calls are whole again */
#define WF_HOT_HITS 32          /* and it is muted (interest.h): that takes as much time as ten of them gain */

struct wf_hot {
    int fd; /* -1: none */
    bool urgent;
    int misses;    /* times that it had nothing, in a row */
    size_t passed; /* bytes that large calls have moved since it had something, WF_HOT_BYTES at most */
    int hits;      /* times that it had something, since the engine last slept */
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

/* A large call has moved so many bytes. */
static inline void wf_hot_pass(struct wf_hot_set *set, size_t bytes)
{
    for (int i = 0; i < WF_HOT_COUNT; i++) {
        size_t left = WF_HOT_BYTES - set->entries[i].passed;
        set->entries[i].passed += bytes < left ? bytes : left;
    }
}

/* The entry of `fd`; else an entry to use for it: an empty one, or the oldest. */
static inline struct wf_hot *wf_hot_entry(struct wf_hot_set *set, int fd)
{
    struct wf_hot *entry = wf_hot_find(set, fd);
    if (!entry)
        entry = wf_hot_find(set, -1);
    return entry ? entry : &set->entries[WF_HOT_COUNT - 1];
}

/* `fd`, which had something, has the entry from now on. Returns it: it is the latest. */
static inline struct wf_hot *wf_hot_hit(struct wf_hot_set *set, struct wf_hot *entry, int fd, bool urgent)
{
    struct wf_hot now = {.fd = fd, .urgent = urgent, .hits = entry->fd == fd ? entry->hits + 1 : 1};
    for (; entry > set->entries; entry--)
        entry[0] = entry[-1];
    *entry = now;
    return entry;
}

/* Its descriptor had nothing to read. True: too often in a row. */
static inline bool wf_hot_miss(struct wf_hot *entry)
{
    return ++entry->misses > WF_HOT_MISSES;
}

#endif
