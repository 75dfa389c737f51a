/* How packets are spread over queues: the indirection table, by ioctl. */
#include <errno.h>
#include <linux/ethtool.h>
#include <stdlib.h>
#include <string.h>

#include "talk.h"

static int rss_failed(int result, const char *name, struct wf_status *status)
{
    return wf_fail(status, result, "the RSS table of %.15s: %s", name,
                   result == -EPERM ? "this needs the capability CAP_NET_ADMIN" : wf_strerror(result));
}

/* -1: not known. */
static int count_rings(const struct wf_devmem *devmem, const char *name)
{
    struct ethtool_rxnfc info = {.cmd = ETHTOOL_GRXRINGS};

    return wf_devmem_ethtool(devmem, name, &info) == 0 && info.data <= UINT16_MAX ? (int)info.data : -1;
}

static bool is_usual(const struct wf_devmem_rss *rss, int rings)
{
    for (uint32_t i = 0; i < rss->count; i++)
        if (rings <= 0 || rss->queue[i] != i % (uint32_t)rings)
            return false;
    return true;
}

static struct ethtool_rxfh_indir *make_table(uint32_t count, uint32_t command)
{
    struct ethtool_rxfh_indir *table = calloc(1, sizeof *table + count * sizeof table->ring_index[0]);

    if (table) {
        table->cmd = command;
        table->size = count;
    }
    return table;
}

int wf_devmem_rss_read(struct wf_devmem *devmem, const char *name, struct wf_devmem_rss *rss, struct wf_status *status)
{
    struct ethtool_rxfh_indir size = {.cmd = ETHTOOL_GRXFHINDIR};
    int result = wf_devmem_ethtool(devmem, name, &size);

    if (result == 0 && size.size == 0)
        result = -EOPNOTSUPP;
    if (result == 0 && size.size > WF_DEVMEM_RSS_MAX)
        return wf_fail(status, -E2BIG, "the RSS table of %.15s has %u entries, more than %d", name, size.size,
                       WF_DEVMEM_RSS_MAX);
    if (result)
        return rss_failed(result, name, status);
    struct ethtool_rxfh_indir *table = make_table(size.size, ETHTOOL_GRXFHINDIR);
    if (!table)
        return rss_failed(-ENOMEM, name, status);
    result = wf_devmem_ethtool(devmem, name, table);
    rss->count = size.size;
    for (uint32_t i = 0; i < size.size && result == 0; i++) {
        if (table->ring_index[i] > UINT16_MAX)
            result = -EBADMSG;
        rss->queue[i] = (uint16_t)table->ring_index[i];
    }
    free(table);
    rss->usual = is_usual(rss, count_rings(devmem, name));
    return result ? rss_failed(result, name, status) : 0;
}

/* As a driver has it: by a table of no entries, so that nothing counts as set by the user. */
static int reset(const struct wf_devmem *devmem, const char *name)
{
    struct ethtool_rxfh_indir none = {.cmd = ETHTOOL_SRXFHINDIR};

    return wf_devmem_ethtool(devmem, name, &none);
}

static int write_table(const struct wf_devmem *devmem, const char *name, const struct wf_devmem_rss *rss)
{
    struct ethtool_rxfh_indir *table = make_table(rss->count, ETHTOOL_SRXFHINDIR);

    if (!table)
        return -ENOMEM;
    for (uint32_t i = 0; i < rss->count; i++)
        table->ring_index[i] = rss->queue[i];
    int result = wf_devmem_ethtool(devmem, name, table);
    free(table);
    return result;
}

static bool is_there(struct wf_devmem *devmem, const char *name, const struct wf_devmem_rss *rss)
{
    struct wf_devmem_rss *now = malloc(sizeof *now);
    struct wf_status ignored;
    bool same = now && wf_devmem_rss_read(devmem, name, now, &ignored) == 0 && now->count == rss->count &&
                memcmp(now->queue, rss->queue, rss->count * sizeof rss->queue[0]) == 0;

    free(now);
    return same;
}

int wf_devmem_rss_write(struct wf_devmem *devmem, const char *name, const struct wf_devmem_rss *rss,
                        struct wf_status *status)
{
    if (rss->count == 0 || rss->count > WF_DEVMEM_RSS_MAX)
        return wf_fail(status, -EINVAL, "an RSS table of %u entries", rss->count);
    if (rss->usual && reset(devmem, name) == 0 && is_there(devmem, name, rss))
        return 0;
    int result = write_table(devmem, name, rss);
    if (result)
        return rss_failed(result, name, status);
    if (!is_there(devmem, name, rss))
        return wf_fail(status, -EIO, "the RSS table of %.15s was written, and the card has another one", name);
    return 0;
}
