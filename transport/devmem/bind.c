/* Bindings: the family "netdev". */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "talk.h"

/* linux/netdev.h, which older systems have without these, or not at all. */
#define COMMAND_QUEUE_GET 10
#define QUEUE_IFINDEX 2
#define QUEUE_DMABUF 5
#define BINDING_IFINDEX 1
#define BINDING_QUEUES 2
#define BINDING_FD 3
#define BINDING_ID 4
#define BINDING_BUFFER 5 /* Linux 7.3 */
#define QUEUE_ID 1
#define QUEUE_TYPE 3
#define QUEUE_TYPE_RX 0

struct bindings {
    uint32_t *ids, most;
    int told; /* queues */
};

static int read_queue(const struct nlmsghdr *message, void *data)
{
    struct bindings *all = data;
    const struct nlattr *attribute;
    uint32_t type = QUEUE_TYPE_RX, queue = UINT32_MAX, binding = 0;
    int result = 0;

    mnl_attr_for_each(attribute, message, sizeof(struct genlmsghdr))
    {
        if (mnl_attr_get_type(attribute) == QUEUE_ID)
            result |= wf_devmem_number(attribute, MNL_TYPE_U32, &queue);
        else if (mnl_attr_get_type(attribute) == QUEUE_TYPE)
            result |= wf_devmem_number(attribute, MNL_TYPE_U32, &type);
        else if (mnl_attr_get_type(attribute) == QUEUE_DMABUF)
            result |= wf_devmem_number(attribute, MNL_TYPE_U32, &binding);
    }
    if (result)
        return -EBADMSG;
    all->told += type == QUEUE_TYPE_RX;
    if (type == QUEUE_TYPE_RX && queue < all->most)
        all->ids[queue] = binding;
    return 0;
}

int wf_devmem_bindings(struct wf_devmem *devmem, int ifindex, uint32_t *ids, uint32_t most, struct wf_status *status)
{
    struct bindings all = {.ids = ids, .most = most};
    struct wf_devmem_request request;
    struct wf_status words;
    char what[64];

    memset(ids, 0, most * sizeof *ids);
    if (!devmem->netdev.id)
        return 0;
    snprintf(what, sizeof what, "asking for the queues of interface %d", ifindex);
    wf_devmem_start(devmem, &request, devmem->netdev.id, COMMAND_QUEUE_GET, NLM_F_DUMP);
    wf_devmem_put_u32(&request, QUEUE_IFINDEX, (uint32_t)ifindex);
    int result = wf_devmem_ask(devmem, &request, read_queue, &all, what, &words);
    if (result && result != -EOPNOTSUPP)
        return wf_fail(status, result, "%s", words.text);
    return result == 0 ? all.told : 0;
}

int wf_devmem_is_bound(struct wf_devmem *devmem, int ifindex, struct wf_status *status)
{
    uint32_t ids[WF_DEVMEM_RX_MAX];
    int result = wf_devmem_bindings(devmem, ifindex, ids, WF_DEVMEM_RX_MAX, status);

    for (uint32_t i = 0; i < WF_DEVMEM_RX_MAX && result >= 0; i++)
        if (ids[i])
            return 1;
    return result < 0 ? result : 0;
}

static int read_id(const struct nlmsghdr *message, void *data)
{
    const struct nlattr *attribute;

    mnl_attr_for_each(attribute, message, sizeof(struct genlmsghdr))
    {
        if (mnl_attr_get_type(attribute) == BINDING_ID)
            return wf_devmem_number(attribute, MNL_TYPE_U32, data);
    }
    return 0;
}

/* The identifiers of dma-bufs begin with 1. */
static int bind_memory(struct wf_devmem *devmem, struct wf_devmem_request *request, const char *what, uint32_t *id,
                       struct wf_status *status)
{
    uint32_t found = 0;
    int result = wf_devmem_ask(devmem, request, read_id, &found, what, status);

    if (result)
        return result;
    if (found == 0)
        return wf_fail(status, -EBADMSG, "%s: the kernel has told no identifier", what);
    *id = found;
    return 0;
}

/* Kernels say many things of a size that they, the driver, or the memory do not take. */
static bool may_be_the_size(int result)
{
    return result && result != -EEXIST && result != -EBUSY && result != -EPERM && result != -ENODEV &&
           result != -EAGAIN && result != -EBADMSG;
}

int wf_devmem_bind_rx(struct wf_devmem *devmem, const struct wf_devmem_rx *rx, uint32_t *id, struct wf_status *status)
{
    struct wf_devmem_request request;
    char what[112], size[40] = "";

    if (rx->count == 0 || rx->count > WF_DEVMEM_QUEUES_MAX || rx->dmabuf < 0 || rx->ifindex <= 0)
        return wf_fail(status, -EINVAL, "bind-rx of %u queues (1 to %d) of interface %d to descriptor %d", rx->count,
                       WF_DEVMEM_QUEUES_MAX, rx->ifindex, rx->dmabuf);
    if (rx->buffer)
        snprintf(size, sizeof size, ", buffers of %u bytes", rx->buffer);
    snprintf(what, sizeof what, "bind-rx of queue %u%s of interface %d%s", rx->queues[0],
             rx->count > 1 ? " and others" : "", rx->ifindex, size);
    if (!devmem->netdev.id || devmem->netdev.bind_rx == 0)
        return wf_fail(status, -EOPNOTSUPP, "%s: the kernel does not know it: 6.12 does", what);
    wf_devmem_start(devmem, &request, devmem->netdev.id, WF_NETDEV_BIND_RX, 0);
    wf_devmem_put_u32(&request, BINDING_IFINDEX, (uint32_t)rx->ifindex);
    wf_devmem_put_u32(&request, BINDING_FD, (uint32_t)rx->dmabuf);
    for (uint32_t i = 0; i < rx->count; i++) {
        struct nlattr *nest = wf_devmem_begin(&request, BINDING_QUEUES);
        wf_devmem_put_u32(&request, QUEUE_ID, rx->queues[i]);
        wf_devmem_put_u32(&request, QUEUE_TYPE, QUEUE_TYPE_RX);
        wf_devmem_end(&request, nest);
    }
    if (rx->buffer)
        wf_devmem_put_u32(&request, BINDING_BUFFER, rx->buffer);
    int result = bind_memory(devmem, &request, what, id, status);
    if (rx->buffer && may_be_the_size(result)) {
        if (status)
            status->code = -ERANGE;
        return -ERANGE;
    }
    return result;
}

int wf_devmem_bind_tx(struct wf_devmem *devmem, int ifindex, int dmabuf, uint32_t *id, struct wf_status *status)
{
    struct wf_devmem_request request;
    char what[64];

    if (dmabuf < 0 || ifindex <= 0)
        return wf_fail(status, -EINVAL, "bind-tx of interface %d to descriptor %d", ifindex, dmabuf);
    snprintf(what, sizeof what, "bind-tx of interface %d", ifindex);
    if (!devmem->netdev.id || devmem->netdev.bind_tx == 0)
        return wf_fail(status, -EOPNOTSUPP, "%s: the kernel does not know it: 6.16 does", what);
    wf_devmem_start(devmem, &request, devmem->netdev.id, WF_NETDEV_BIND_TX, 0);
    wf_devmem_put_u32(&request, BINDING_IFINDEX, (uint32_t)ifindex);
    wf_devmem_put_u32(&request, BINDING_FD, (uint32_t)dmabuf);
    return bind_memory(devmem, &request, what, id, status);
}
