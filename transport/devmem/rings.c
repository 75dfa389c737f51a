/* Header split: the family "ethtool", for the older ioctl does not know it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "talk.h"

/* linux/ethtool_netlink.h, which older systems have without these. */
#define COMMAND_RINGS_GET 15
#define COMMAND_RINGS_SET 16
#define RINGS_HEADER 1
#define HEADER_NAME 2
#define RINGS_TCP_DATA_SPLIT 11
#define RINGS_HDS_THRESH 17

static void start(struct wf_devmem *devmem, struct wf_devmem_request *request, uint8_t command, const char *name)
{
    wf_devmem_start(devmem, request, devmem->ethtool.id, command, 0);
    struct nlattr *nest = wf_devmem_begin(request, RINGS_HEADER);
    wf_devmem_put(request, HEADER_NAME, name, strlen(name) + 1);
    wf_devmem_end(request, nest);
}

/* Who tells of the threshold can set both; who tells of the split alone may have it fixed. */
static int read_rings(const struct nlmsghdr *message, void *data)
{
    struct wf_devmem_card *card = data;
    const struct nlattr *attribute;
    uint32_t number;

    mnl_attr_for_each(attribute, message, sizeof(struct genlmsghdr))
    {
        uint16_t type = mnl_attr_get_type(attribute);
        if (type == RINGS_TCP_DATA_SPLIT) {
            if (wf_devmem_number(attribute, MNL_TYPE_U8, &number) != 0)
                return -EBADMSG;
            card->split = number <= WF_DEVMEM_SPLIT_ON ? (enum wf_devmem_split)number : WF_DEVMEM_SPLIT_UNKNOWN;
        } else if (type == RINGS_HDS_THRESH) {
            if (wf_devmem_number(attribute, MNL_TYPE_U32, &number) != 0)
                return -EBADMSG;
            card->hds_thresh = number;
            card->split_settable = 1;
        }
    }
    return 0;
}

int wf_devmem_read_rings(struct wf_devmem *devmem, struct wf_devmem_card *card, struct wf_status *status)
{
    struct wf_devmem_request request;
    struct wf_status words;
    char what[64];

    card->split = WF_DEVMEM_SPLIT_UNKNOWN;
    card->split_settable = -1;
    card->hds_thresh = -1;
    if (!devmem->ethtool.id)
        return 0;
    snprintf(what, sizeof what, "asking for the rings of %s", card->name);
    start(devmem, &request, COMMAND_RINGS_GET, card->name);
    int result = wf_devmem_ask(devmem, &request, read_rings, card, what, &words);
    if (result == -EOPNOTSUPP) /* a device without rings */
        return 0;
    return result ? wf_fail(status, result, "%s", words.text) : 0;
}

int wf_devmem_set_split(struct wf_devmem *devmem, const char *name, enum wf_devmem_split split, int64_t hds_thresh,
                        struct wf_status *status)
{
    struct wf_devmem_request request;
    char what[96];
    uint8_t value = split == WF_DEVMEM_SPLIT_AUTO ? 0 : (uint8_t)split;

    snprintf(what, sizeof what, "header split of %.15s", name);
    if (strlen(name) >= IFNAMSIZ)
        return wf_fail(status, -ENODEV, "%s: no interface has such a long name", what);
    if (hds_thresh > UINT32_MAX)
        return wf_fail(status, -EINVAL, "%s: a threshold of %lld bytes", what, (long long)hds_thresh);
    if (!devmem->ethtool.id)
        return wf_fail(status, -EOPNOTSUPP, "%s: the kernel has no netlink family ethtool: 5.6 has", what);
    start(devmem, &request, COMMAND_RINGS_SET, name);
    if (split != WF_DEVMEM_SPLIT_UNKNOWN)
        wf_devmem_put(&request, RINGS_TCP_DATA_SPLIT, &value, sizeof value);
    if (hds_thresh >= 0)
        wf_devmem_put_u32(&request, RINGS_HDS_THRESH, (uint32_t)hds_thresh);
    return wf_devmem_ask(devmem, &request, NULL, NULL, what, status);
}
