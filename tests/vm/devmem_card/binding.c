/* Memory for devices, and bindings of it to queues of a card, by generic netlink. */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <linux/netdev.h>
#include <linux/udmabuf.h>
#include "probe.h"

struct memory make_memory(size_t size, bool huge)
{
    struct memory memory = {.size = size};
    int file = memfd_create("devmem", MFD_ALLOW_SEALING | (huge ? MFD_HUGETLB : 0));
    int device = open("/dev/udmabuf", O_RDWR);

    if (file < 0 || device < 0 || ftruncate(file, (off_t)size) || fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK))
        err(1, "memory for a dma-buf");
    memory.bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory.bytes == MAP_FAILED)
        err(1, "memory for a dma-buf cannot be mapped");
    memory.fd = ioctl(device, UDMABUF_CREATE, &(struct udmabuf_create){.memfd = (uint32_t)file, .size = size});
    if (memory.fd < 0)
        err(1, "udmabuf of %zu bytes", size);
    close(device);
    close(file);
    return memory;
}

/* An answer's attributes, or what the kernel said. */
struct answer {
    struct binder *binder;
    uint16_t attribute; /* the one that is looked for */
    uint16_t bytes;     /* its size */
    uint32_t value;
};

static int see_attribute(const struct nlattr *attribute, void *data)
{
    struct answer *answer = data;

    if (mnl_attr_get_type(attribute) == answer->attribute)
        answer->value = answer->bytes == 2 ? mnl_attr_get_u16(attribute) : mnl_attr_get_u32(attribute);
    return MNL_CB_OK;
}

static int see_answer(const struct nlmsghdr *message, void *data)
{
    return mnl_attr_parse(message, sizeof(struct genlmsghdr), see_attribute, data);
}

static int see_text(const struct nlattr *attribute, void *data)
{
    struct answer *answer = data;

    if (mnl_attr_get_type(attribute) == NLMSGERR_ATTR_MSG)
        snprintf(answer->binder->said, sizeof answer->binder->said, "%s", mnl_attr_get_str(attribute));
    return MNL_CB_OK;
}

static int see_error(const struct nlmsghdr *message, void *data)
{
    const struct nlmsgerr *error = mnl_nlmsg_get_payload(message);
    size_t before = sizeof *error;

    if (error->error == 0)
        return MNL_CB_STOP;
    if (!(message->nlmsg_flags & NLM_F_CAPPED))
        before += mnl_nlmsg_get_payload_len(&error->msg);
    if (message->nlmsg_flags & NLM_F_ACK_TLVS)
        mnl_attr_parse(message, (unsigned)before, see_text, data);
    errno = -error->error;
    return MNL_CB_ERROR;
}

/* Sends a request and reads up to its acknowledgement: 0 or a negative errno. */
static int ask(struct binder *binder, struct nlmsghdr *request, struct answer *answer)
{
    static const mnl_cb_t control[] = {[NLMSG_ERROR] = see_error};
    char bytes[8192];
    int result = MNL_CB_OK;

    request->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
    answer->binder = binder;
    binder->said[0] = 0;
    if (mnl_socket_sendto(binder->socket, request, request->nlmsg_len) < 0)
        return -errno;
    while (result == MNL_CB_OK) {
        ssize_t length = mnl_socket_recvfrom(binder->socket, bytes, sizeof bytes);

        if (length < 0)
            return -errno;
        result = mnl_cb_run2(bytes, (size_t)length, 0, 0, see_answer, answer, control, MNL_ARRAY_SIZE(control));
    }
    return result == MNL_CB_STOP ? 0 : -errno;
}

static struct nlmsghdr *begin(char *bytes, uint16_t type, uint8_t command)
{
    struct nlmsghdr *request = mnl_nlmsg_put_header(bytes);
    struct genlmsghdr *generic;

    request->nlmsg_type = type;
    generic = mnl_nlmsg_put_extra_header(request, sizeof *generic);
    generic->cmd = command;
    generic->version = 1;
    return request;
}

void binder_open(struct binder *binder)
{
    struct answer answer = {.attribute = CTRL_ATTR_FAMILY_ID, .bytes = 2};
    char bytes[256];
    struct nlmsghdr *request = begin(bytes, GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
    int one = 1, result;

    binder->socket = mnl_socket_open(NETLINK_GENERIC);
    if (!binder->socket || mnl_socket_bind(binder->socket, 0, MNL_SOCKET_AUTOPID) < 0)
        err(1, "netlink");
    mnl_socket_setsockopt(binder->socket, NETLINK_EXT_ACK, &one, sizeof one);
    mnl_socket_setsockopt(binder->socket, NETLINK_CAP_ACK, &one, sizeof one);
    mnl_attr_put_strz(request, CTRL_ATTR_FAMILY_NAME, NETDEV_FAMILY_NAME);
    result = ask(binder, request, &answer);
    if (result < 0)
        errx(1, "this kernel has no netlink family " NETDEV_FAMILY_NAME ": %s", strerror(-result));
    binder->family = (uint16_t)answer.value;
}

void binder_close(struct binder *binder)
{
    mnl_socket_close(binder->socket);
}

int binder_bind(struct binder *binder, const struct binding *binding)
{
    struct answer answer = {.attribute = NETDEV_A_DMABUF_ID, .bytes = 4};
    char bytes[1024];
    struct nlmsghdr *request =
        begin(bytes, binder->family, binding->queue_count ? NETDEV_CMD_BIND_RX : NETDEV_CMD_BIND_TX);
    int result;

    mnl_attr_put_u32(request, NETDEV_A_DMABUF_IFINDEX, if_nametoindex(binding->interface));
    mnl_attr_put_u32(request, NETDEV_A_DMABUF_FD, (uint32_t)binding->fd);
    for (unsigned i = 0; i < binding->queue_count; i++) {
        struct nlattr *queue = mnl_attr_nest_start(request, NETDEV_A_DMABUF_QUEUES);

        mnl_attr_put_u32(request, NETDEV_A_QUEUE_ID, binding->queues[i]);
        mnl_attr_put_u32(request, NETDEV_A_QUEUE_TYPE, NETDEV_QUEUE_TYPE_RX);
        mnl_attr_nest_end(request, queue);
    }
    if (binding->buffer_size)
        mnl_attr_put_u32(request, NETDEV_A_DMABUF_RX_PAGE_SIZE, binding->buffer_size);
    result = ask(binder, request, &answer);
    return result < 0 ? result : (int)answer.value;
}
