/* Rules that lead a TCP stream to a queue: the card's flow table, by ioctl. */
#include <errno.h>
#include <linux/ethtool.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "talk.h"

#define RULES_MAX 65536 /* a table that has more is not searched */
#define TYPE_FLAGS (FLOW_EXT | FLOW_MAC_EXT | FLOW_RSS)

/* --- the table --- */

struct table {
    uint64_t most, used;
    bool anywhere; /* the driver finds the place */
};

static int read_table(const struct wf_devmem *devmem, const char *name, struct table *table)
{
    struct ethtool_rxnfc info = {.cmd = ETHTOOL_GRXCLSRLCNT};
    int result = wf_devmem_ethtool(devmem, name, &info);

    if (result)
        return result;
    table->anywhere = info.data & RX_CLS_LOC_SPECIAL;
    table->most = info.data & ~(uint64_t)RX_CLS_LOC_SPECIAL;
    table->used = info.rule_cnt;
    return 0;
}

/* The places in use; some drivers tell the size of the table only here. The caller frees what it gets. */
static int read_places(const struct wf_devmem *devmem, const char *name, struct table *table,
                       struct ethtool_rxnfc **places)
{
    if (table->used > RULES_MAX)
        return -E2BIG;
    struct ethtool_rxnfc *all = calloc(1, sizeof *all + (table->used + 1) * sizeof all->rule_locs[0]);
    if (!all)
        return -ENOMEM;
    all->cmd = ETHTOOL_GRXCLSRLALL;
    all->rule_cnt = (uint32_t)table->used;
    int result = wf_devmem_ethtool(devmem, name, all);
    if (result == 0 && all->rule_cnt > table->used)
        result = -EBADMSG;
    if (result) {
        free(all);
        return result;
    }
    if (table->most == 0)
        table->most = all->data & ~(uint64_t)RX_CLS_LOC_SPECIAL;
    *places = all;
    return 0;
}

void wf_devmem_read_rules(const struct wf_devmem *devmem, struct wf_devmem_card *card)
{
    struct table table = {0};
    struct ethtool_rxnfc *places = NULL;

    card->rules_most = card->rules_used = -1;
    card->rules_anywhere = false;
    if (read_table(devmem, card->name, &table) != 0)
        return;
    if (table.most == 0 && read_places(devmem, card->name, &table, &places) == 0)
        free(places);
    card->rules_used = (int64_t)table.used;
    card->rules_most = table.most > 0 && table.most <= INT32_MAX ? (int64_t)table.most : -1;
    card->rules_anywhere = table.anywhere;
}

static bool is_taken(const struct ethtool_rxnfc *places, uint32_t location)
{
    for (uint32_t i = 0; i < places->rule_cnt; i++)
        if (places->rule_locs[i] == location)
            return true;
    return false;
}

/* Where a rule may go. As ethtool has it: the last free place, so that rules before it keep going first. */
static int find_place(const struct wf_devmem *devmem, const char *name, uint32_t *location)
{
    struct table table;
    struct ethtool_rxnfc *places;
    int result = read_table(devmem, name, &table);

    if (result)
        return result;
    if (table.anywhere) {
        *location = RX_CLS_LOC_ANY;
        return 0;
    }
    result = read_places(devmem, name, &table, &places);
    if (result)
        return result;
    uint32_t at = (uint32_t)(table.most < RULES_MAX ? table.most : RULES_MAX);
    while (at > 0 && is_taken(places, at - 1))
        at--;
    free(places);
    if (at == 0)
        return -ENOSPC;
    *location = at - 1;
    return 0;
}

/* --- rules --- */

static int fill_v4(const struct wf_devmem_flow *flow, struct ethtool_rx_flow_spec *spec)
{
    const struct sockaddr_in *from = (const struct sockaddr_in *)&flow->from;
    const struct sockaddr_in *to = (const struct sockaddr_in *)&flow->to;
    struct ethtool_tcpip4_spec *value = &spec->h_u.tcp_ip4_spec, *mask = &spec->m_u.tcp_ip4_spec;

    spec->flow_type = TCP_V4_FLOW;
    value->ip4dst = to->sin_addr.s_addr;
    mask->ip4dst = UINT32_MAX;
    value->pdst = to->sin_port;
    mask->pdst = to->sin_port ? UINT16_MAX : 0;
    if (from->sin_family == AF_UNSPEC)
        return 0;
    value->ip4src = from->sin_addr.s_addr;
    mask->ip4src = UINT32_MAX;
    value->psrc = from->sin_port;
    mask->psrc = from->sin_port ? UINT16_MAX : 0;
    return 0;
}

static int fill_v6(const struct wf_devmem_flow *flow, struct ethtool_rx_flow_spec *spec)
{
    const struct sockaddr_in6 *from = (const struct sockaddr_in6 *)&flow->from;
    const struct sockaddr_in6 *to = (const struct sockaddr_in6 *)&flow->to;
    struct ethtool_tcpip6_spec *value = &spec->h_u.tcp_ip6_spec, *mask = &spec->m_u.tcp_ip6_spec;

    spec->flow_type = TCP_V6_FLOW;
    memcpy(value->ip6dst, &to->sin6_addr, sizeof value->ip6dst);
    memset(mask->ip6dst, 0xff, sizeof mask->ip6dst);
    value->pdst = to->sin6_port;
    mask->pdst = to->sin6_port ? UINT16_MAX : 0;
    if (from->sin6_family == AF_UNSPEC)
        return 0;
    memcpy(value->ip6src, &from->sin6_addr, sizeof value->ip6src);
    memset(mask->ip6src, 0xff, sizeof mask->ip6src);
    value->psrc = from->sin6_port;
    mask->psrc = from->sin6_port ? UINT16_MAX : 0;
    return 0;
}

static int fill(const struct wf_devmem_flow *flow, uint32_t queue, struct ethtool_rx_flow_spec *spec)
{
    int from = flow->from.ss_family, to = flow->to.ss_family;

    *spec = (struct ethtool_rx_flow_spec){.ring_cookie = queue};
    if ((to != AF_INET && to != AF_INET6) || (from != AF_UNSPEC && from != to))
        return -EAFNOSUPPORT;
    return to == AF_INET ? fill_v4(flow, spec) : fill_v6(flow, spec);
}

/* What no mask looks at may differ: drivers fill it in as they like. */
static bool same_rule(const struct ethtool_rx_flow_spec *wanted, const struct ethtool_rx_flow_spec *found)
{
    if (wanted->flow_type != (found->flow_type & ~TYPE_FLAGS) || (found->flow_type & FLOW_RSS) ||
        wanted->ring_cookie != found->ring_cookie)
        return false;
    size_t bytes = wanted->flow_type == TCP_V4_FLOW ? sizeof wanted->h_u.tcp_ip4_spec : sizeof wanted->h_u.tcp_ip6_spec;
    for (size_t i = 0; i < bytes; i++) {
        uint8_t mask = wanted->m_u.hdata[i];
        if (mask != found->m_u.hdata[i] || (wanted->h_u.hdata[i] & mask) != (found->h_u.hdata[i] & mask))
            return false;
    }
    return true;
}

/* -ENOENT: it is not there, or another is. */
static int confirm(const struct wf_devmem *devmem, const char *name, const struct ethtool_rx_flow_spec *wanted,
                   uint32_t location)
{
    struct ethtool_rxnfc info = {.cmd = ETHTOOL_GRXCLSRULE, .fs = {.location = location}};
    int result = wf_devmem_ethtool(devmem, name, &info);

    if (result == -EINVAL) /* what some drivers say of an empty place */
        return -ENOENT;
    return result ? result : same_rule(wanted, &info.fs) ? 0 : -ENOENT;
}

static int rule_failed(int result, const char *name, const char *what, struct wf_status *status)
{
    const char *words = result == -EPERM    ? "this needs the capability CAP_NET_ADMIN"
                        : result == -ENOSPC ? "its table of rules is full: 'ethtool -n' lists them"
                                            : wf_strerror(result);
    return wf_fail(status, result, "%s of %.15s: %s", what, name, words);
}

static int take_away(const struct wf_devmem *devmem, const char *name, uint32_t location)
{
    struct ethtool_rxnfc info = {.cmd = ETHTOOL_SRXCLSRLDEL, .fs = {.location = location}};

    return wf_devmem_ethtool(devmem, name, &info);
}

int wf_devmem_steer(struct wf_devmem *devmem, const char *name, const struct wf_devmem_flow *flow, uint32_t queue,
                    uint32_t *location, struct wf_status *status)
{
    static const char what[] = "a rule for a flow";
    struct ethtool_rxnfc info = {.cmd = ETHTOOL_SRXCLSRLINS};
    struct ethtool_rx_flow_spec wanted;
    int result = fill(flow, queue, &wanted);

    info.fs = wanted;
    if (result == 0)
        result = find_place(devmem, name, &info.fs.location);
    if (result == 0)
        result = wf_devmem_ethtool(devmem, name, &info);
    if (result)
        return rule_failed(result, name, what, status);
    if (info.fs.location & RX_CLS_LOC_SPECIAL)
        return wf_fail(status, -EIO, "%s of %.15s: the driver does not tell where it has put it: 'ethtool -n' lists it",
                       what, name);
    result = confirm(devmem, name, &wanted, info.fs.location);
    if (result) {
        take_away(devmem, name, info.fs.location);
        return wf_fail(status, result == -ENOENT ? -EIO : result, "%s of %.15s: it is not in the table as it was added",
                       what, name);
    }
    *location = info.fs.location;
    return 0;
}

int wf_devmem_find_rule(struct wf_devmem *devmem, const char *name, const struct wf_devmem_flow *flow, uint32_t queue,
                        uint32_t *location, struct wf_status *status)
{
    struct ethtool_rx_flow_spec wanted;
    struct ethtool_rxnfc *places = NULL;
    struct table table;
    int result = fill(flow, queue, &wanted);

    if (result == 0)
        result = read_table(devmem, name, &table);
    if (result == 0)
        result = read_places(devmem, name, &table, &places);
    if (result)
        return rule_failed(result, name, "looking for a rule", status);
    result = -ENOENT;
    for (uint32_t i = 0; i < places->rule_cnt && result == -ENOENT; i++) {
        result = confirm(devmem, name, &wanted, places->rule_locs[i]);
        if (result == 0)
            *location = places->rule_locs[i];
    }
    free(places);
    return result == 0 || result == -ENOENT ? result : rule_failed(result, name, "looking for a rule", status);
}

int wf_devmem_unsteer(struct wf_devmem *devmem, const char *name, const struct wf_devmem_flow *flow, uint32_t queue,
                      uint32_t location, struct wf_status *status)
{
    static const char what[] = "taking away a rule";
    struct ethtool_rx_flow_spec wanted;
    int result = fill(flow, queue, &wanted);

    if (result == 0)
        result = confirm(devmem, name, &wanted, location);
    if (result == 0)
        result = take_away(devmem, name, location);
    return result ? rule_failed(result, name, what, status) : 0;
}
