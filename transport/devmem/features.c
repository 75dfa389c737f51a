/* Whether rules for flows act: the feature "rx-ntuple-filter", by ioctl. */
#include <errno.h>
#include <linux/ethtool.h>
#include <stdlib.h>
#include <string.h>

#include "talk.h"

#define FEATURE "rx-ntuple-filter"
#define FEATURES_MAX 512 /* a kernel that tells of more has lost its mind */

/* The number of the feature, and how many there are; -1: this kernel has none of that name. */
static int find_feature(const struct wf_devmem *devmem, const char *name, uint32_t *count)
{
    union {
        struct ethtool_sset_info info;
        uint8_t room[sizeof(struct ethtool_sset_info) + sizeof(uint32_t)];
    } sets = {.info = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ull << ETH_SS_FEATURES}};
    int found = -1;

    if (wf_devmem_ethtool(devmem, name, &sets) != 0 || !(sets.info.sset_mask & 1ull << ETH_SS_FEATURES))
        return -1;
    uint32_t there = sets.info.data[0];
    if (there == 0 || there > FEATURES_MAX)
        return -1;
    struct ethtool_gstrings *names = calloc(1, sizeof *names + there * ETH_GSTRING_LEN);
    if (!names)
        return -1;
    names->cmd = ETHTOOL_GSTRINGS;
    names->string_set = ETH_SS_FEATURES;
    names->len = there;
    if (wf_devmem_ethtool(devmem, name, names) == 0)
        for (uint32_t i = 0; i < there && found < 0; i++)
            if (strncmp((const char *)names->data + i * ETH_GSTRING_LEN, FEATURE, ETH_GSTRING_LEN) == 0)
                found = (int)i;
    free(names);
    *count = there;
    return found;
}

void wf_devmem_read_ntuple(const struct wf_devmem *devmem, struct wf_devmem_card *card)
{
    uint32_t count = 0, blocks;

    card->ntuple = -1;
    card->ntuple_fixed = false;
    int feature = find_feature(devmem, card->name, &count);
    if (feature < 0)
        return;
    blocks = (count + 31) / 32;
    struct ethtool_gfeatures *all = calloc(1, sizeof *all + blocks * sizeof all->features[0]);
    if (!all)
        return;
    all->cmd = ETHTOOL_GFEATURES;
    all->size = blocks;
    if (wf_devmem_ethtool(devmem, card->name, all) == 0 && all->size >= blocks) {
        const struct ethtool_get_features_block *block = &all->features[feature / 32];
        uint32_t bit = 1u << feature % 32;
        card->ntuple = (block->active & bit) != 0;
        card->ntuple_fixed = !(block->available & bit) || (block->never_changed & bit);
    }
    free(all);
}

int wf_devmem_set_ntuple(struct wf_devmem *devmem, const char *name, bool on, struct wf_status *status)
{
    struct ethtool_value flags = {.cmd = ETHTOOL_GFLAGS};
    int result = wf_devmem_ethtool(devmem, name, &flags);

    if (result == 0 && !(flags.data & ETH_FLAG_NTUPLE) == !on)
        return 0;
    flags.cmd = ETHTOOL_SFLAGS;
    flags.data = on ? flags.data | ETH_FLAG_NTUPLE : flags.data & ~(uint32_t)ETH_FLAG_NTUPLE;
    if (result == 0)
        result = wf_devmem_ethtool(devmem, name, &flags);
    if (result == -EPERM)
        return wf_fail(status, result, "rules for flows on %.15s: this needs the capability CAP_NET_ADMIN", name);
    return result ? wf_fail(status, result, "rules for flows on %.15s (ntuple): %s", name, wf_strerror(result)) : 0;
}
