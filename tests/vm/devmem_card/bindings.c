/* Bindings that several may have at once, and those that are refused. */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "card.h"
#include "devmem/devmem.h"
#include "devmem/exports.h"
#include "devmem/pool.h"

static struct wf_devmem *first, *second;
static int ifindex;

static void say(const char *what, int result)
{
    printf("%s: %s\n", what, result < 0 ? strerrorname_np(-result) : "bound");
}

static void try_queue(struct wf_devmem *by, const char *what, uint32_t queue, int dmabuf)
{
    struct wf_devmem_rx rx = {.ifindex = ifindex, .queues = &queue, .count = 1, .dmabuf = dmabuf};
    uint32_t id;

    say(what, wf_devmem_bind_rx(by, &rx, &id, &status));
}

static void try_two(int dmabuf)
{
    static const uint32_t queues[] = {1, 2};
    struct wf_devmem_rx rx = {.ifindex = ifindex, .queues = queues, .count = 2, .dmabuf = dmabuf};
    uint32_t id;

    say("two queues", wf_devmem_bind_rx(first, &rx, &id, &status));
}

static void say_bound(const char *when)
{
    uint32_t ids[QUEUES_MAX];
    int told = wf_devmem_bindings(first, ifindex, ids, QUEUES_MAX, &status);

    need(told, "bindings");
    printf("bound %s:", when);
    for (int i = 0; i < told && i < QUEUES_MAX; i++)
        if (ids[i])
            printf(" %d", i);
    printf("\n");
}

/* The rows depend on those before. */
int run_bindings(const char *card)
{
    struct wf_devmem_pool pool;
    uint32_t id;

    use_gpu();
    ifindex = (int)if_nametoindex(card);
    need(wf_devmem_pool_init(&pool, ops, memory, GPU, 1 << 20, 0, &status), "pool");
    need(wf_devmem_open(NULL, &first, &status), "netlink");
    need(wf_devmem_open(NULL, &second, &status), "netlink");
    try_two(pool.dmabuf);
    try_queue(first, "the same memory, another queue", 3, pool.dmabuf);
    say("the same memory, to send", wf_devmem_bind_tx(first, ifindex, pool.dmabuf, &id, &status));
    try_queue(second, "by another socket", 4, pool.dmabuf);
    try_queue(second, "a queue that is bound", 2, pool.dmabuf);
    try_queue(first, "a queue that is not there", 99, pool.dmabuf);
    try_queue(first, "no dma-buf", 5, memfd_create("no", 0));
    say_bound("now");
    wf_devmem_close(first);
    first = second;
    try_queue(second, "a queue whose socket is closed", 2, pool.dmabuf);
    say_bound("then");
    wf_devmem_close(second);
    wf_devmem_pool_fini(&pool, ops, memory);
    ops->close(memory);
    return 0;
}
