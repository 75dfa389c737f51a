#include "devmem_fixture.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <fcntl.h>
#include <linux/genetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NETDEV_ID 30
#define ETHTOOL_ID 31
#define FEATURES 40 /* so that the one that matters is in the second block */
#define NTUPLE 35

static struct fake_kernel *fake_of(const struct wf_devmem_kernel *kernel)
{
    return (struct fake_kernel *)(uintptr_t)kernel;
}

/* What is written between two steps is there, or is not. */
static void step(struct fake_kernel *fake)
{
    if (++fake->steps == fake->die_at)
        _exit(FAKE_DEATH);
}

/* --- netlink --- */

static struct nlmsghdr *begin(struct fake_kernel *fake, const struct nlmsghdr *request, uint16_t type, uint16_t flags)
{
    struct nlmsghdr *message = mnl_nlmsg_put_header(fake->answer + fake->answered);

    message->nlmsg_type = type;
    message->nlmsg_flags = flags;
    message->nlmsg_seq = request->nlmsg_seq;
    return message;
}

static struct nlmsghdr *begin_reply(struct fake_kernel *fake, const struct nlmsghdr *request, uint16_t family)
{
    struct nlmsghdr *message = begin(fake, request, family, 0);

    memset(mnl_nlmsg_put_extra_header(message, sizeof(struct genlmsghdr)), 0, sizeof(struct genlmsghdr));
    mnl_attr_put_strz(message, 999, "what no version of Weft knows");
    return message;
}

static void finish(struct fake_kernel *fake, const struct nlmsghdr *message)
{
    fake->answered += MNL_ALIGN(message->nlmsg_len);
}

static void acknowledge(struct fake_kernel *fake, const struct nlmsghdr *request, int result)
{
    bool words = result && (fake->words || fake->missing) && !fake->old;
    uint16_t flags = (uint16_t)((words ? 0x200 : 0) | (fake->capped ? 0x100 : 0));
    struct nlmsghdr *message = begin(fake, request, NLMSG_ERROR, flags);
    struct nlmsgerr *error = mnl_nlmsg_put_extra_header(message, sizeof *error);

    error->error = result;
    error->msg = *request;
    if (result && !fake->capped && request->nlmsg_len > sizeof *request)
        memcpy(mnl_nlmsg_put_extra_header(message, request->nlmsg_len - sizeof *request), request + 1,
               request->nlmsg_len - sizeof *request);
    if (words && fake->missing)
        mnl_attr_put_u32(message, 5, fake->missing);
    if (words && fake->words)
        mnl_attr_put_strz(message, 1, fake->words);
    finish(fake, message);
}

static int say_family(struct fake_kernel *fake, const struct nlmsghdr *request)
{
    const struct nlattr *name = mnl_nlmsg_get_payload_offset(request, sizeof(struct genlmsghdr));
    bool netdev = strcmp(mnl_attr_get_str(name), "netdev") == 0;

    if (netdev && fake->old)
        return -ENOENT;
    struct nlmsghdr *reply = begin_reply(fake, request, GENL_ID_CTRL);
    mnl_attr_put_u16(reply, CTRL_ATTR_FAMILY_ID, netdev ? NETDEV_ID : ETHTOOL_ID);
    struct nlattr *list = mnl_attr_nest_start(reply, CTRL_ATTR_OPS);
    for (uint32_t operation = 1; operation <= 15; operation++) {
        struct nlattr *one = mnl_attr_nest_start(reply, (uint16_t)operation);
        mnl_attr_put_u32(reply, CTRL_ATTR_OP_ID, operation);
        mnl_attr_put_u32(reply, CTRL_ATTR_OP_FLAGS, 11);
        mnl_attr_nest_end(reply, one);
    }
    mnl_attr_nest_end(reply, list);
    finish(fake, reply);
    return 0;
}

static int say_rings(struct fake_kernel *fake, const struct nlmsghdr *request)
{
    struct nlmsghdr *reply = begin_reply(fake, request, ETHTOOL_ID);

    if (fake->split)
        mnl_attr_put_u8(reply, 11, (uint8_t)fake->split);
    if (fake->hds_thresh >= 0)
        mnl_attr_put_u32(reply, 17, (uint32_t)fake->hds_thresh);
    finish(fake, reply);
    return 0;
}

static int set_rings(struct fake_kernel *fake, const struct nlmsghdr *request)
{
    const struct nlattr *attribute;

    if (!fake->admin)
        return -EPERM;
    if (fake->split_fixed)
        return -EOPNOTSUPP;
    mnl_attr_for_each(attribute, request, sizeof(struct genlmsghdr))
    {
        if (mnl_attr_get_type(attribute) == 11 && !mnl_attr_get_u8(attribute) && fake->split_auto == 3)
            return -EINVAL;
    }
    step(fake);
    fake->writes++;
    for (uint32_t i = 0; i < fake->rss_entries && fake->forgets_rss; i++)
        fake->rss[i] = i % fake->queues;
    mnl_attr_for_each(attribute, request, sizeof(struct genlmsghdr))
    {
        if (mnl_attr_get_type(attribute) == 11)
            fake->split = mnl_attr_get_u8(attribute) ? mnl_attr_get_u8(attribute) : fake->split_auto;
        else if (mnl_attr_get_type(attribute) == 17)
            fake->hds_thresh = mnl_attr_get_u32(attribute);
    }
    step(fake);
    return 0;
}

static int bind_queues(struct fake_kernel *fake, const struct nlmsghdr *request)
{
    const struct nlattr *attribute, *inner;

    fake->bound_count = fake->bound_buffer = 0;
    mnl_attr_for_each(attribute, request, sizeof(struct genlmsghdr))
    {
        if (mnl_attr_get_type(attribute) == 1)
            fake->bound_index = mnl_attr_get_u32(attribute);
        else if (mnl_attr_get_type(attribute) == 3)
            fake->bound_fd = mnl_attr_get_u32(attribute);
        else if (mnl_attr_get_type(attribute) == 5)
            fake->bound_buffer = mnl_attr_get_u32(attribute);
        else if (mnl_attr_get_type(attribute) == 2)
            mnl_attr_for_each_nested(inner, attribute) if (mnl_attr_get_type(inner) == 1)
                fake->bound[fake->bound_count++] = mnl_attr_get_u32(inner);
    }
    if (fake->bound_buffer > fake->buffer_most) {
        fake->words = fake->buffer_most ? "buffers have a page to 64 KiB" : "Unknown attribute type";
        return -EINVAL;
    }
    for (uint32_t i = 0; i < fake->bound_count; i++)
        if (fake->bound[i] < FAKE_QUEUES && (fake->binding[fake->bound[i]] || fake->bound[i] == fake->contested))
            return -EEXIST;
    for (uint32_t i = 0; i < fake->bound_count; i++)
        if (fake->bound[i] < FAKE_QUEUES) {
            fake->binding[fake->bound[i]] = fake->next_id;
            fake->binder[fake->bound[i]] = fake->asking;
        }
    struct nlmsghdr *reply = begin_reply(fake, request, NETDEV_ID);
    mnl_attr_put_u32(reply, 4, fake->next_id++);
    finish(fake, reply);
    return 0;
}

static int say_queues(struct fake_kernel *fake, const struct nlmsghdr *request)
{
    for (uint32_t queue = 0; queue < fake->queues && !fake->down; queue++) {
        struct nlmsghdr *reply = begin_reply(fake, request, NETDEV_ID);
        mnl_attr_put_u32(reply, 1, queue);
        mnl_attr_put_u32(reply, 2, FAKE_INDEX);
        mnl_attr_put_u32(reply, 3, 0);
        if (queue < FAKE_QUEUES && fake->binding[queue])
            mnl_attr_put_u32(reply, 5, fake->binding[queue]);
        finish(fake, reply);
    }
    return 0;
}

static int serve(struct fake_kernel *fake, const struct nlmsghdr *request)
{
    const struct genlmsghdr *generic = mnl_nlmsg_get_payload(request);

    if (fake->refusal)
        return fake->refusal;
    if (request->nlmsg_type == GENL_ID_CTRL && generic->cmd == CTRL_CMD_GETFAMILY)
        return say_family(fake, request);
    if (request->nlmsg_type == ETHTOOL_ID)
        return generic->cmd == 15 ? say_rings(fake, request) : set_rings(fake, request);
    if (request->nlmsg_type == NETDEV_ID && generic->cmd == 10)
        return say_queues(fake, request);
    return request->nlmsg_type == NETDEV_ID ? bind_queues(fake, request) : -EOPNOTSUPP;
}

static int send_message(const struct wf_devmem_kernel *kernel, int fd, const void *message, size_t bytes)
{
    struct fake_kernel *fake = fake_of(kernel);

    if (fd < 0 || !mnl_nlmsg_ok(message, (int)bytes))
        return -EINVAL;
    fake->asking = fd;
    fake->answered = 0;
    memset(fake->answer, 0, sizeof fake->answer);
    acknowledge(fake, message, serve(fake, message));
    fake->refusal = 0;
    fake->requests++;
    return 0;
}

static ssize_t receive_messages(const struct wf_devmem_kernel *kernel, int fd, void *messages, size_t room)
{
    struct fake_kernel *fake = fake_of(kernel);
    size_t bytes = fake->answered;

    if (fd < 0 || bytes > room)
        return -EINVAL;
    fake->answered = 0;
    memcpy(messages, fake->answer, bytes);
    if (fake->answer_to == fake->requests && bytes) {
        if (fake->at >= 0 && (size_t)fake->at < bytes)
            ((uint8_t *)messages)[fake->at] = (uint8_t)fake->value;
        if (fake->cut >= 0 && (size_t)fake->cut < bytes)
            return fake->cut;
    }
    return bytes ? (ssize_t)bytes : -EAGAIN;
}

static int open_socket(const struct wf_devmem_kernel *kernel)
{
    fake_of(kernel)->opened++;
    return open("/dev/null", O_RDWR | O_CLOEXEC); /* a number of its own */
}

/* Bindings end with the socket, unless somebody else has it, too. */
static void close_socket(const struct wf_devmem_kernel *kernel, int fd)
{
    struct fake_kernel *fake = fake_of(kernel);

    fake->opened--;
    for (int queue = 0; queue < FAKE_QUEUES; queue++)
        if (fake->binding[queue] && fake->binder[queue] == fd && !fake->keeps_bindings)
            fake->binding[queue] = 0;
    close(fd);
}

static bool may_change(const struct wf_devmem_kernel *kernel)
{
    return fake_of(kernel)->admin;
}

/* --- ioctls --- */

static int do_features(const struct fake_kernel *fake, void *data, uint32_t command)
{
    if (command == ETHTOOL_GSSET_INFO) {
        ((struct ethtool_sset_info *)data)->data[0] = FEATURES;
    } else if (command == ETHTOOL_GSTRINGS) {
        struct ethtool_gstrings *names = data;
        for (uint32_t i = 0; i < names->len; i++)
            strcpy((char *)names->data + i * ETH_GSTRING_LEN, i == NTUPLE ? "rx-ntuple-filter" : "another");
    } else {
        struct ethtool_gfeatures *all = data;
        if (all->size < 2)
            return -EINVAL;
        all->features[NTUPLE / 32].available = fake->ntuple_fixed ? 0 : 1u << NTUPLE % 32;
        all->features[NTUPLE / 32].active = fake->ntuple ? 1u << NTUPLE % 32 : 0;
    }
    return 0;
}

static int do_flags(struct fake_kernel *fake, struct ethtool_value *value)
{
    if (value->cmd == ETHTOOL_GFLAGS) {
        value->data = ETH_FLAG_RXHASH | (fake->ntuple ? ETH_FLAG_NTUPLE : 0);
        return 0;
    }
    if (!fake->admin)
        return -EPERM;
    if (fake->ntuple_fixed || !(value->data & ETH_FLAG_RXHASH))
        return -EINVAL;
    step(fake);
    fake->ntuple = value->data & ETH_FLAG_NTUPLE;
    fake->writes++;
    step(fake);
    return 0;
}

static int do_rss(struct fake_kernel *fake, struct ethtool_rxfh_indir *table)
{
    bool whole = table->size == fake->rss_entries;

    if (fake->rss_entries == 0)
        return -EOPNOTSUPP;
    if (table->cmd == ETHTOOL_GRXFHINDIR) {
        if (table->size && !whole)
            return -EINVAL;
        if (whole)
            memcpy(table->ring_index, fake->rss, fake->rss_entries * sizeof fake->rss[0]);
        table->size = fake->rss_entries;
        return 0;
    }
    if (!fake->admin)
        return -EPERM;
    if (table->size && !whole)
        return -EINVAL;
    step(fake);
    fake->writes++;
    fake->rss_resets += table->size == 0;
    for (uint32_t i = 0; i < fake->rss_entries; i++)
        fake->rss[i] = table->size ? table->ring_index[i] : i % fake->queues;
    step(fake);
    return 0;
}

static uint32_t count_rules(const struct fake_kernel *fake)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < fake->rules_most; i++)
        count += fake->used[i];
    return count;
}

static bool names_sender(const struct ethtool_rx_flow_spec *rule)
{
    return rule->flow_type == TCP_V4_FLOW ? rule->m_u.tcp_ip4_spec.psrc != 0 : rule->m_u.tcp_ip6_spec.psrc != 0;
}

static int add_rule(struct fake_kernel *fake, struct ethtool_rx_flow_spec *rule)
{
    uint32_t place = rule->location;

    if (!fake->admin)
        return -EPERM;
    if (fake->by_port && names_sender(rule))
        return -EOPNOTSUPP;
    if (place == RX_CLS_LOC_ANY)
        for (place = 0; place < fake->rules_most && fake->used[place];)
            place++;
    if (place >= fake->rules_most)
        return -ENOSPC;
    rule->location = place;
    fake->rules[place] = *rule;
    fake->used[place] = !fake->forgets_rules;
    if (fake->crooked_rules)
        fake->rules[place].ring_cookie++;
    fake->writes++;
    return 0;
}

static int do_rules(struct fake_kernel *fake, struct ethtool_rxnfc *info)
{
    uint64_t size = fake->rules_most | (fake->anywhere ? RX_CLS_LOC_SPECIAL : 0);
    uint32_t place = info->fs.location, count = 0;

    switch (info->cmd) {
    case ETHTOOL_GRXRINGS:
        info->data = fake->queues;
        return 0;
    case ETHTOOL_GRXCLSRLCNT:
        info->rule_cnt = count_rules(fake);
        info->data = fake->size_told_late ? 0 : size;
        return 0;
    case ETHTOOL_GRXCLSRLALL:
        if (info->rule_cnt < count_rules(fake))
            return -EMSGSIZE;
        for (uint32_t i = 0; i < fake->rules_most; i++)
            if (fake->used[i])
                info->rule_locs[count++] = i;
        info->rule_cnt = count;
        info->data = size;
        return 0;
    case ETHTOOL_GRXCLSRULE:
        if (place >= fake->rules_most || !fake->used[place])
            return -EINVAL;
        info->fs = fake->rules[place];
        return 0;
    case ETHTOOL_SRXCLSRLINS:
        return add_rule(fake, &info->fs);
    default:
        if (place >= fake->rules_most || !fake->used[place])
            return -ENOENT;
        fake->used[place] = false;
        fake->writes++;
        return 0;
    }
}

static int do_ethtool(struct fake_kernel *fake, void *data)
{
    uint32_t command = *(uint32_t *)data;

    if (fake->ioctl_command && fake->ioctl_command == (int)command)
        return fake->ioctl_result;
    switch (command) {
    case ETHTOOL_GDRVINFO:
        strcpy(((struct ethtool_drvinfo *)data)->driver, fake->driver);
        return 0;
    case ETHTOOL_GCHANNELS:
        ((struct ethtool_channels *)data)->combined_count = fake->queues;
        ((struct ethtool_channels *)data)->max_combined = fake->queues_most;
        return 0;
    case ETHTOOL_GSSET_INFO:
    case ETHTOOL_GSTRINGS:
    case ETHTOOL_GFEATURES:
        return do_features(fake, data, command);
    case ETHTOOL_GFLAGS:
    case ETHTOOL_SFLAGS:
        return do_flags(fake, data);
    case ETHTOOL_GRXFHINDIR:
    case ETHTOOL_SRXFHINDIR:
        return do_rss(fake, data);
    default:
        return do_rules(fake, data);
    }
}

static int ask(const struct wf_devmem_kernel *kernel, unsigned long request, struct ifreq *about)
{
    struct fake_kernel *fake = fake_of(kernel);

    if (request == SIOCGIFNAME) {
        if (about->ifr_ifindex != FAKE_INDEX)
            return -ENODEV;
        snprintf(about->ifr_name, sizeof about->ifr_name, "%s", fake->name);
        return 0;
    }
    if (strcmp(about->ifr_name, fake->name) != 0 && strcmp(about->ifr_name, FAKE_OTHER) != 0)
        return -ENODEV;
    switch (request) {
    case SIOCGIFINDEX:
        about->ifr_ifindex = FAKE_INDEX;
        return 0;
    case SIOCGIFFLAGS:
        about->ifr_flags = (short)(IFF_UP | (fake->loopback ? IFF_LOOPBACK : 0));
        return 0;
    case SIOCGIFMTU:
        about->ifr_mtu = 4148;
        return 0;
    case SIOCGIFHWADDR:
        memcpy(about->ifr_hwaddr.sa_data, "\x52\x54\0\0\0\7", 6);
        return 0;
    default:
        return request == SIOCETHTOOL ? do_ethtool(fake, about->ifr_data) : -EINVAL;
    }
}

void fake_kernel_init(struct fake_kernel *fake)
{
    *fake = (struct fake_kernel){.kernel = {.open = open_socket,
                                            .close = close_socket,
                                            .send = send_message,
                                            .receive = receive_messages,
                                            .ask = ask,
                                            .may_change = may_change},
                                 .contested = UINT32_MAX,
                                 .name = FAKE_NAME,
                                 .driver = "bnxt_en",
                                 .admin = true,
                                 .split = WF_DEVMEM_SPLIT_ON,
                                 .queues = 4,
                                 .queues_most = 8,
                                 .ntuple = true,
                                 .anywhere = true,
                                 .rules_most = 4,
                                 .rss_entries = FAKE_RSS,
                                 .next_id = 1,
                                 .cut = -1,
                                 .at = -1};
    for (uint32_t i = 0; i < FAKE_RSS; i++)
        fake->rss[i] = i % fake->queues;
}
