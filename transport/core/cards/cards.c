#include "core/cards/cards.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TRIAL_BYTES (UINT64_C(16) << 20)

/* A rail and a GPU that were tried together. */
struct wf_card_pair {
    struct wf_inlet inlet; /* `handle` NULL: none could be had */
};

void wf_cards_init(struct wf_cards *cards, struct wf_world *world, const struct wf_card_ops *ops, void *host)
{
    cards->world = world;
    cards->ops = ops;
    cards->host = host;
    cards->trial_bytes = TRIAL_BYTES;
    pthread_mutex_init(&cards->lock, NULL);
}

void wf_cards_fini(struct wf_cards *cards)
{
    for (int rail = 0; rail < WF_RAILS_MAX; rail++) {
        for (int device = 0; device < WF_DOMAINS_MAX; device++) {
            struct wf_card_pair *pair = atomic_load(&cards->pairs[rail][device]);
            if (pair && pair->inlet.handle)
                cards->ops->close(cards->host, &pair->inlet);
            free(pair);
        }
    }
    pthread_mutex_destroy(&cards->lock);
}

static struct wf_card_way way_of(const struct wf_cards *cards, const struct wf_memory_ops *ops,
                                 struct wf_memory *memory, int rail, int device)
{
    return (struct wf_card_way){.interface = cards->interfaces[rail],
                                .rate = cards->rates[rail],
                                .ops = ops,
                                .memory = memory,
                                .device = device};
}

/* Tries the rail and the GPU together, once. 0: there is an inlet; -EALREADY: they were tried before, in vain. */
static int try_pair(struct wf_cards *cards, const struct wf_card_way *way, int rail, struct wf_status *status)
{
    struct wf_card_pair *pair = atomic_load(&cards->pairs[rail][way->device]);
    if (pair)
        return pair->inlet.handle ? 0 : -EALREADY;
    pair = calloc(1, sizeof *pair);
    if (!pair)
        return wf_fail(status, -ENOMEM, "no memory");
    int result = cards->ops->open(cards->host, way, &pair->inlet, status);
    if (result < 0)
        pair->inlet.handle = NULL;
    pair->inlet.rail = rail;
    pair->inlet.device = way->device;
    atomic_store(&cards->pairs[rail][way->device], pair);
    return result;
}

int wf_cards_use(struct wf_cards *cards, const struct wf_memory_ops *ops, struct wf_memory *memory, int device,
                 struct wf_status *status)
{
    if (!cards->ops)
        return 0;
    if (device >= WF_DOMAINS_MAX)
        return cards->required ? wf_fail(status, -ENOTSUP, "GPU %d: only the first %d GPUs have device-memory TCP",
                                         device, WF_DOMAINS_MAX)
                               : 0;
    struct wf_status why = {0}, close = {0}; /* of the last failure, and of the last one that somebody could mend */
    int open = 0, near = -1;
    pthread_mutex_lock(&cards->lock);
    for (int rail = 0; rail < cards->rail_count; rail++) {
        struct wf_card_way way = way_of(cards, ops, memory, rail, device);
        int result = way.interface[0] ? try_pair(cards, &way, rail, &why) : -EOPNOTSUPP;
        open += result == 0;
        if (result < 0 && result != -EALREADY && result != -EOPNOTSUPP) {
            near = rail;
            close = why;
        }
    }
    pthread_mutex_unlock(&cards->lock);
    if (near >= 0 && !cards->required)
        wf_world_fallback(cards->world, "devmem: GPU %d is staged on %s: %s", device, cards->interfaces[near],
                          close.text);
    if (open > 0 || !cards->required)
        return 0;
    return wf_fail(status, -EOPNOTSUPP, "devmem = require, and no card can for GPU %d: %s", device,
                   near >= 0  ? close.text
                   : why.code ? why.text
                              : "no rail is a network card");
}

/* Also one that was left. */
static struct wf_inlet *opened(const struct wf_cards *cards, int rail, int device)
{
    if (rail < 0 || rail >= WF_RAILS_MAX || device < 0 || device >= WF_DOMAINS_MAX)
        return NULL;
    struct wf_card_pair *pair = atomic_load_explicit(&cards->pairs[rail][device], memory_order_acquire);
    return pair && pair->inlet.handle ? &pair->inlet : NULL;
}

struct wf_inlet *wf_cards_inlet(const struct wf_cards *cards, int rail, int device)
{
    struct wf_inlet *inlet = opened(cards, rail, device);
    return inlet && !atomic_load_explicit(&inlet->left, memory_order_relaxed) ? inlet : NULL;
}

bool wf_cards_reach(const struct wf_cards *cards, int device)
{
    for (int rail = 0; cards->ops && rail < cards->rail_count; rail++)
        if (wf_cards_inlet(cards, rail, device))
            return true;
    return false;
}

void wf_cards_leave(struct wf_cards *cards, struct wf_inlet *inlet, const char *why)
{
    if (!atomic_exchange(&inlet->left, true))
        wf_world_fallback(cards->world, "devmem: GPU %d is staged on %s: %s", inlet->device,
                          cards->interfaces[inlet->rail], why);
}

static void leave_slow(struct wf_cards *cards, struct wf_inlet *inlet, uint64_t device_bytes, uint64_t all)
{
    char why[160];
    snprintf(why, sizeof why,
             "the card has put only %" PRIu64 " %% of %" PRIu64
             " MiB into its memory, and left the rest in host memory",
             device_bytes * 100 / all, all >> 20);
    wf_cards_leave(cards, inlet, why);
}

int wf_cards_came(struct wf_cards *cards, struct wf_inlet *inlet, uint64_t device_bytes, uint64_t host_bytes,
                  uint32_t fragments)
{
    uint64_t device = atomic_fetch_add(&inlet->device_bytes, device_bytes) + device_bytes;
    uint64_t host = atomic_fetch_add(&inlet->host_bytes, host_bytes) + host_bytes;
    atomic_fetch_add(&inlet->held, fragments);
    if (device < host && device + host >= cards->trial_bytes)
        leave_slow(cards, inlet, device, device + host);
    return atomic_load(&inlet->left) ? -EOPNOTSUPP : 0;
}

void wf_cards_gave_back(struct wf_inlet *inlet, uint32_t fragments)
{
    atomic_fetch_sub(&inlet->held, fragments);
}

void wf_cards_sent(struct wf_cards *cards, int device, uint64_t bytes)
{
    atomic_fetch_add_explicit(&cards->sent[device].bytes, bytes, memory_order_relaxed);
}

void wf_cards_copied(struct wf_cards *cards, int device, uint64_t calls)
{
    atomic_fetch_add_explicit(&cards->sent[device].copied, calls, memory_order_relaxed);
}

struct wf_card_counts wf_cards_counts(const struct wf_cards *cards, int device)
{
    struct wf_card_counts counts = {0};
    if (device < 0 || device >= WF_DOMAINS_MAX)
        return counts;
    counts.sent_bytes = atomic_load(&cards->sent[device].bytes);
    counts.sends_copied = atomic_load(&cards->sent[device].copied);
    for (int rail = 0; rail < cards->rail_count; rail++) {
        const struct wf_inlet *inlet = opened(cards, rail, device);
        if (!inlet)
            continue;
        bool left = atomic_load(&inlet->left);
        counts.inlets += !left;
        counts.left += left;
        counts.device_bytes += atomic_load(&inlet->device_bytes);
        counts.host_bytes += atomic_load(&inlet->host_bytes);
        counts.held += atomic_load(&inlet->held);
    }
    return counts;
}

int wf_cards_steer(struct wf_cards *cards, struct wf_inlet *inlet, int fd, void **rule, struct wf_status *status)
{
    int result = cards->ops->steer(cards->host, inlet, fd, rule, status);
    if (result == 0)
        atomic_fetch_add(&inlet->streams, 1);
    return result;
}

void wf_cards_unsteer(struct wf_cards *cards, struct wf_inlet *inlet, void *rule)
{
    cards->ops->unsteer(cards->host, inlet, rule);
    atomic_fetch_sub(&inlet->streams, 1);
}

uint64_t wf_cards_lend(struct wf_cards *cards, const struct wf_memory_ops *ops, struct wf_memory *memory, int device,
                       const void *base, uint64_t bytes, struct wf_card_loan **loans)
{
    uint64_t rails = 0;
    *loans = cards->ops && cards->rail_count > 0 ? calloc((size_t)cards->rail_count, sizeof **loans) : NULL;
    for (int rail = 0; *loans && rail < cards->rail_count; rail++) {
        struct wf_card_way way = way_of(cards, ops, memory, rail, device);
        struct wf_status why;
        if (!opened(cards, rail, device))
            continue;
        if (cards->ops->lend(cards->host, &way, base, bytes, &(*loans)[rail], &why) == 0)
            rails |= UINT64_C(1) << rail;
        else
            (*loans)[rail].handle = NULL;
        (*loans)[rail].device = device;
    }
    if (rails == 0) {
        free(*loans);
        *loans = NULL;
    }
    return rails;
}

void wf_cards_take_back(struct wf_cards *cards, struct wf_card_loan *loans)
{
    for (int rail = 0; loans && rail < cards->rail_count; rail++)
        if (loans[rail].handle)
            cards->ops->take_back(cards->host, &loans[rail]);
    free(loans);
}
