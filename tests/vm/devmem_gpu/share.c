/* Who shares a binding for sends, and how many there may be; and which receive queues of a card are bound. */
#include "gpus.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>

#include "devmem/exports.h"
#include "devmem/talk.h"

#define MIB (1 << 20)
#define MOST 2

static struct wf_exports *exports;

static int descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

static uint8_t *take(uint64_t bytes)
{
    void *base = NULL;

    need(ops->alloc(memory, 0, bytes, &base, &status), "alloc");
    return base;
}

static struct wf_export use(int card, const uint8_t *address)
{
    struct wf_export found = {0};

    need(wf_exports_use(exports, card, address, 1, &found, &status), "export");
    return found;
}

static const char *same(const struct wf_export *first, const struct wf_export *second)
{
    return first->binding == second->binding ? "the same" : "another";
}

static void share_one(int card, const uint8_t *base)
{
    struct wf_export first = use(card, base + 10), second = use(card, base + MIB - 1), anew;

    printf("a second use: %s binding, %lld bytes further, bindings %d\n", same(&first, &second),
           (long long)(second.offset - first.offset), wf_exports_count(exports));
    wf_exports_release(exports, &first);
    printf("one is left: bindings %d\n", wf_exports_count(exports));
    wf_exports_release(exports, &second);
    printf("none is left: bindings %d\n", wf_exports_count(exports));
    anew = use(card, base);
    printf("used anew: %s binding\n", same(&first, &anew));
    wf_exports_release(exports, &anew);
}

static void keep_to_the_bound(int card, uint8_t *const base[MOST + 1])
{
    struct wf_export found[MOST], more;

    for (int i = 0; i < MOST; i++)
        found[i] = use(card, base[i]);
    int result = wf_exports_use(exports, card, base[MOST], 1, &more, &status);
    printf("one too many: %d: %s\n", result, status.text);
    wf_exports_release(exports, &found[0]);
    found[0] = use(card, base[MOST]);
    printf("after a release: bindings %d\n", wf_exports_count(exports));
    for (int i = 0; i < MOST; i++)
        wf_exports_release(exports, &found[i]);
}

/* Addresses come again once those of the GPU went round. */
static void make_anew(int card)
{
    uint8_t *first = take(4 * MIB), *next = NULL;
    struct wf_export old = use(card, first), now;

    ops->free(memory, 0, first);
    for (int i = 0; i < 64 && next != first; i++) {
        if (next)
            ops->free(memory, 0, next);
        next = take(4 * MIB);
    }
    now = use(card, next);
    printf("freed and made again at %s address: %s binding\n", next == first ? "the same" : "another",
           same(&old, &now));
    wf_exports_release(exports, &old);
    wf_exports_release(exports, &now);
    ops->free(memory, 0, next);
}

int run_share(const char *name)
{
    int card = (int)if_nametoindex(name), before = descriptors();
    uint8_t *base[MOST + 1];
    struct wf_export none;

    need(wf_exports_create(ops, memory, NULL, MOST, &exports, &status), "exports");
    for (int i = 0; i <= MOST; i++)
        base[i] = take(MIB);
    share_one(card, base[0]);
    keep_to_the_bound(card, base);
    int result = wf_exports_use(exports, (int)if_nametoindex("lo"), base[0], 1, &none, &status);
    printf("a card that cannot: %d: %s\n", result, status.text);
    make_anew(card);
    for (int i = 0; i <= MOST; i++)
        ops->free(memory, 0, base[i]);
    printf("at the end: bindings %d, %d descriptors more than before\n", wf_exports_count(exports),
           descriptors() - before);
    wf_exports_destroy(exports);
    return 0;
}

/* --- queues --- */

#define QUEUE_GET 10
#define QUEUE_ID 1
#define QUEUE_IFINDEX 2
#define QUEUE_TYPE 3
#define QUEUE_DMABUF 5

static int print_if_bound(const struct nlmsghdr *message, void *data)
{
    const struct nlattr *attribute;
    uint32_t id = 0, type = 0;
    bool bound = false;

    (void)data;
    mnl_attr_for_each(attribute, message, sizeof(struct genlmsghdr))
    {
        if (mnl_attr_get_type(attribute) == QUEUE_ID)
            id = mnl_attr_get_u32(attribute);
        else if (mnl_attr_get_type(attribute) == QUEUE_TYPE)
            type = mnl_attr_get_u32(attribute);
        bound |= mnl_attr_get_type(attribute) == QUEUE_DMABUF;
    }
    if (bound && type == 0)
        printf("%u ", id);
    return 0;
}

int run_bound(const char *name)
{
    struct wf_devmem_request request;
    struct wf_devmem *devmem;

    need(wf_devmem_open(NULL, &devmem, &status), "netlink");
    wf_devmem_start(devmem, &request, devmem->netdev.id, QUEUE_GET, NLM_F_DUMP);
    wf_devmem_put_u32(&request, QUEUE_IFINDEX, if_nametoindex(name));
    need(wf_devmem_ask(devmem, &request, print_if_bound, NULL, "queues", &status), "queues");
    printf("\n");
    wf_devmem_close(devmem);
    return 0;
}
