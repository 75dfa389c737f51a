#include "core/cards/cards_tcp.h"

#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "devmem/devmem.h"
#include "devmem/exports.h"
#include "devmem/lease.h"
#include "devmem/pool.h"

#define LOANS_MAX 4096                     /* bindings for sends at a time */
#define RATE_UNKNOWN UINT64_C(12500000000) /* bytes a second of a card that does not tell its speed */
#define AWAY_NS UINT64_C(500000)           /* round trip, and the time until what has come is copied */
#define RING_BUFFERS 1024                  /* that a queue's ring holds, as most drivers have it */
#define POOL_LEAST (UINT64_C(4) << 20)
#define POOL_PART 2     /* sockets hold one part in so many of a pool of pages: packets do not fill them */
#define STREAMS_USUAL 4 /* fewer do not get more */
#define WINDOW_LEAST (128 * 1024)

struct wf_card_host {
    uint64_t pool;
    pthread_mutex_t lock;       /* of making `exports` */
    struct wf_exports *exports; /* NULL: nothing was lent yet */
};

/* What is behind an inlet. */
struct inlet {
    const struct wf_memory_ops *ops;
    struct wf_memory *memory;
    struct wf_devmem_pool pool;
    struct wf_lease *lease;
    uint64_t unread; /* bytes that the sockets of its streams may hold */
};

struct wf_card_host *wf_card_host_create(uint64_t pool)
{
    struct wf_card_host *host = calloc(1, sizeof *host);
    if (!host)
        return NULL;
    host->pool = pool;
    pthread_mutex_init(&host->lock, NULL);
    return host;
}

void wf_card_host_destroy(struct wf_card_host *host)
{
    if (!host)
        return;
    wf_exports_destroy(host->exports);
    pthread_mutex_destroy(&host->lock);
    free(host);
}

/* Looks at the card. 0; -EOPNOTSUPP: it never can; else what is in the way. */
static int look(const char *interface, struct wf_devmem_card *card, struct wf_status *status)
{
    struct wf_devmem *devmem = NULL;
    struct wf_devmem_obstacle obstacle;
    int result = wf_devmem_open(NULL, &devmem, status);
    if (result == 0)
        result = wf_devmem_look(devmem, interface, card, status);
    wf_devmem_close(devmem);
    if (result < 0)
        return result;
    wf_devmem_first_obstacle(card, 1, &obstacle);
    if (obstacle.remedy == WF_DEVMEM_READY)
        return 0;
    bool never = obstacle.remedy == WF_DEVMEM_NEVER, by_set = obstacle.remedy == WF_DEVMEM_BY_SET;
    return wf_fail(status, never ? -EOPNOTSUPP : -EAGAIN, "%s%s%s%s", obstacle.why, by_set ? ": weft nic prepare " : "",
                   by_set ? interface : obstacle.change[0] ? ": " : "", by_set ? "" : obstacle.change);
}

/* A pool with such buffers, bound to a queue. As wf_lease_open(), or -ENOMEM. */
static int bind_pool(struct inlet *the, const struct wf_card_way *way, const struct wf_devmem_need *need,
                     uint32_t buffer, struct wf_status *status)
{
    int result = wf_devmem_pool_init(&the->pool, way->ops, way->memory, way->device, wf_devmem_pool_bytes(need),
                                     need->buffer, status);
    if (result == 0)
        result = wf_lease_open(NULL, way->interface, the->pool.dmabuf, buffer, &the->lease, status);
    if (result < 0)
        wf_devmem_pool_fini(&the->pool, the->ops, the->memory);
    else
        wf_devmem_pool_close(&the->pool);
    return result;
}

/* With buffers that hold a packet each where that is had, else with pages. Which it is `buffer` says afterwards. */
static int bind_any_pool(struct inlet *the, const struct wf_card_way *way, struct wf_devmem_need *need,
                         struct wf_status *status)
{
    uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
    int result = -ERANGE;
    need->buffer = wf_devmem_buffer_bytes(need, page);
    if (need->buffer > page)
        result = bind_pool(the, way, need, need->buffer, status);
    if (result != -ERANGE && result != -ENOMEM)
        return result;
    need->buffer = page;
    return bind_pool(the, way, need, 0, status);
}

/* Of larger buffers the rings hold most of the pool, and what is left was made for this much. */
static uint64_t unread_most(const struct inlet *the, const struct wf_devmem_need *need)
{
    if (need->buffer == (uint32_t)sysconf(_SC_PAGESIZE))
        return the->pool.bytes / POOL_PART;
    return (uint64_t)((double)need->rate * (double)need->away_ns / 1e9);
}

static int open_inlet(void *data, const struct wf_card_way *way, struct wf_inlet *inlet, struct wf_status *status)
{
    const struct wf_card_host *host = data;
    struct wf_devmem_card card;
    int result = look(way->interface, &card, status);
    if (result < 0)
        return result;
    struct inlet *the = calloc(1, sizeof *the);
    if (!the)
        return wf_fail(status, -ENOMEM, "no memory");
    the->ops = way->ops;
    the->memory = way->memory;
    struct wf_devmem_need need = {.rate = way->rate ? way->rate : RATE_UNKNOWN,
                                  .away_ns = AWAY_NS,
                                  .mtu = (uint32_t)card.mtu,
                                  .in_rings = RING_BUFFERS,
                                  .least = POOL_LEAST,
                                  .most = host->pool};
    result = bind_any_pool(the, way, &need, status);
    if (result < 0) {
        free(the);
        return result;
    }
    the->unread = unread_most(the, &need);
    *inlet = (struct wf_inlet){.handle = the,
                               .base = the->pool.base,
                               .bytes = the->pool.bytes,
                               .binding = wf_lease_binding(the->lease),
                               .by_port = wf_lease_by_port(the->lease),
                               .buffer_bytes = need.buffer};
    return 0;
}

static void close_inlet(void *host, struct wf_inlet *inlet)
{
    struct inlet *the = inlet->handle;
    (void)host;
    wf_lease_close(the->lease);
    wf_devmem_pool_fini(&the->pool, the->ops, the->memory);
    free(the);
}

/* What a stream's socket may hold unread takes buffers that all streams of the pool share: without a bound one would
 * leave none to the others, and the card would drop their packets. */
static void bound_window(const struct wf_inlet *inlet, int fd)
{
    uint64_t streams = atomic_load(&inlet->streams) + 1;
    const struct inlet *the = inlet->handle;
    uint64_t share = the->unread / (streams > STREAMS_USUAL ? streams : STREAMS_USUAL);
    int window = (int)(share < WINDOW_LEAST ? WINDOW_LEAST : share > INT_MAX ? INT_MAX : share);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &window, sizeof window); /* else packets may be lost */
}

static int steer(void *host, struct wf_inlet *inlet, int fd, void **rule, struct wf_status *status)
{
    struct inlet *the = inlet->handle;
    uint32_t number = 0;
    (void)host;
    bound_window(inlet, fd);
    int result = wf_lease_steer(the->lease, fd, &number, status);
    *rule = (void *)(uintptr_t)number;
    return result;
}

static void unsteer(void *host, struct wf_inlet *inlet, void *rule)
{
    struct inlet *the = inlet->handle;
    struct wf_status ignored;
    (void)host;
    (void)wf_lease_unsteer(the->lease, (uint32_t)(uintptr_t)rule, &ignored);
}

static struct wf_exports *exports_of(struct wf_card_host *host, const struct wf_card_way *way, struct wf_status *status)
{
    pthread_mutex_lock(&host->lock);
    if (!host->exports && wf_exports_create(way->ops, way->memory, NULL, LOANS_MAX, &host->exports, status) < 0)
        host->exports = NULL;
    pthread_mutex_unlock(&host->lock);
    return host->exports;
}

static int lend(void *data, const struct wf_card_way *way, const void *base, uint64_t bytes, struct wf_card_loan *loan,
                struct wf_status *status)
{
    struct wf_exports *exports = exports_of(data, way, status);
    struct wf_export *use = malloc(sizeof *use);
    unsigned ifindex = if_nametoindex(way->interface);
    if (!exports || !use || ifindex == 0) {
        free(use);
        return wf_fail(status, ifindex == 0 ? -ENODEV : -ENOMEM, "%s",
                       ifindex == 0 ? "the interface is gone" : "no memory");
    }
    int result = wf_exports_use(exports, (int)ifindex, base, bytes, use, status);
    if (result < 0) {
        free(use);
        return result;
    }
    *loan = (struct wf_card_loan){.handle = use, .binding = use->binding, .offset = use->offset};
    return 0;
}

static void take_back(void *data, struct wf_card_loan *loan)
{
    struct wf_card_host *host = data;
    wf_exports_release(host->exports, loan->handle);
    free(loan->handle);
}

const struct wf_card_ops wf_cards_tcp = {
    .open = open_inlet, .close = close_inlet, .steer = steer, .unsteer = unsteer, .lend = lend, .take_back = take_back};
