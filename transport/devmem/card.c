#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>

#include "talk.h"

#define QUEUES_SENSIBLE 65536

static int ask_interface(const struct wf_devmem *devmem, const char *name, unsigned long what, struct ifreq *about)
{
    memset(about, 0, sizeof *about);
    snprintf(about->ifr_name, sizeof about->ifr_name, "%s", name);
    return devmem->kernel->ask(devmem->kernel, what, about);
}

static void read_driver(const struct wf_devmem *devmem, struct wf_devmem_card *card)
{
    struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};

    if (wf_devmem_ethtool(devmem, card->name, &info) == 0)
        snprintf(card->driver, sizeof card->driver, "%.31s", info.driver);
    wf_text_plain(card->driver);
}

static void read_queues(const struct wf_devmem *devmem, struct wf_devmem_card *card)
{
    struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
    struct ethtool_rxnfc rings = {.cmd = ETHTOOL_GRXRINGS};
    struct ethtool_rxfh_indir table = {.cmd = ETHTOOL_GRXFHINDIR};

    card->rx_queues = card->queues_most = -1;
    if (wf_devmem_ethtool(devmem, card->name, &channels) == 0 && channels.combined_count < QUEUES_SENSIBLE &&
        channels.rx_count < QUEUES_SENSIBLE && channels.max_combined < QUEUES_SENSIBLE &&
        channels.max_rx < QUEUES_SENSIBLE) {
        card->rx_queues = (int)(channels.combined_count + channels.rx_count);
        card->queues_most = (int)(channels.max_combined > channels.max_rx ? channels.max_combined : channels.max_rx);
    }
    if (wf_devmem_ethtool(devmem, card->name, &rings) == 0 && rings.data > 0 && rings.data < QUEUES_SENSIBLE)
        card->rx_queues = (int)rings.data;
    card->rss_entries = 0;
    if (wf_devmem_ethtool(devmem, card->name, &table) == 0)
        card->rss_entries = table.size <= WF_DEVMEM_RSS_MAX ? (int)table.size : -1;
}

int wf_devmem_name(struct wf_devmem *devmem, int ifindex, char name[IFNAMSIZ], struct wf_status *status)
{
    struct ifreq about = {.ifr_ifindex = ifindex};
    int result = ifindex > 0 ? devmem->kernel->ask(devmem->kernel, SIOCGIFNAME, &about) : -ENODEV;

    if (result)
        return wf_fail(status, result, "there is no interface with the number %d: %s", ifindex, wf_strerror(result));
    snprintf(name, IFNAMSIZ, "%.15s", about.ifr_name);
    return 0;
}

int wf_devmem_look(struct wf_devmem *devmem, const char *name, struct wf_devmem_card *card, struct wf_status *status)
{
    struct wf_devmem_card found = {.bind_rx = devmem->netdev.bind_rx, .bind_tx = devmem->netdev.bind_tx};
    struct ifreq about;
    int result = strlen(name) < sizeof found.name && name[0] ? 0 : -ENODEV;

    snprintf(found.name, sizeof found.name, "%s", name);
    if (result == 0)
        result = ask_interface(devmem, name, SIOCGIFINDEX, &about);
    if (result)
        return wf_fail(status, result, "there is no interface '%.31s': %s", name, wf_strerror(result));
    found.ifindex = about.ifr_ifindex;
    result = wf_devmem_name(devmem, found.ifindex, found.name, status);
    if (result)
        return result;
    found.loopback = ask_interface(devmem, name, SIOCGIFFLAGS, &about) == 0 && (about.ifr_flags & IFF_LOOPBACK);
    found.mtu = ask_interface(devmem, name, SIOCGIFMTU, &about) == 0 ? about.ifr_mtu : -1;
    read_driver(devmem, &found);
    read_queues(devmem, &found);
    wf_devmem_read_ntuple(devmem, &found);
    wf_devmem_read_rules(devmem, &found);
    result = wf_devmem_read_rings(devmem, &found, status);
    if (result)
        return result;
    *card = found;
    return 0;
}
