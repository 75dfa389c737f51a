// SPDX-License-Identifier: GPL-2.0
/* What ethtool shows and sets: rings, channels, RSS tables, counters. */
#include <linux/ethtool.h>
#include "pairnic.h"

/* ------------------------------------------------------- rings and channels */

static void get_rings(struct net_device *dev, struct ethtool_ringparam *rings,
		      struct kernel_ethtool_ringparam *more,
		      struct netlink_ext_ack *extack)
{
	rings->rx_max_pending = PAIRNIC_RING;
	rings->rx_pending = PAIRNIC_RING;
	rings->tx_max_pending = PAIRNIC_RING;
	rings->tx_pending = PAIRNIC_RING;
	more->hds_thresh_max = 1024;
	/* More has been filled with what the core keeps: `auto` is on here. */
	if (dev->cfg->hds_config == ETHTOOL_TCP_DATA_SPLIT_UNKNOWN)
		more->tcp_data_split = ETHTOOL_TCP_DATA_SPLIT_ENABLED;
}

/* The core keeps the split, and the queues ask it. Sizes are fixed. */
static int set_rings(struct net_device *dev, struct ethtool_ringparam *rings,
		     struct kernel_ethtool_ringparam *more,
		     struct netlink_ext_ack *extack)
{
	if (rings->rx_pending == PAIRNIC_RING &&
	    rings->tx_pending == PAIRNIC_RING)
		return 0;
	NL_SET_ERR_MSG(extack, "rings have 1024 entries");
	return -EINVAL;
}

static void get_channels(struct net_device *dev,
			 struct ethtool_channels *channels)
{
	struct pairnic *nic = netdev_priv(dev);

	channels->max_combined = nic->queues;
	channels->combined_count = nic->queues;
}

static u32 get_ring_count(struct net_device *dev)
{
	struct pairnic *nic = netdev_priv(dev);

	return nic->queues;
}

/* ------------------------------------------------------- RSS */

static u32 get_indir_size(struct net_device *dev)
{
	return PAIRNIC_INDIR;
}

static u32 get_key_size(struct net_device *dev)
{
	return PAIRNIC_KEY;
}

static int get_rss(struct net_device *dev, struct ethtool_rxfh_param *rss)
{
	struct pairnic *nic = netdev_priv(dev);
	struct pairnic_steering *steering = &nic->steering;

	rss->hfunc = ETH_RSS_HASH_TOP;
	if (rss->indir)
		memcpy(rss->indir, steering->indir[0],
		       sizeof(steering->indir[0]));
	if (rss->key)
		memcpy(rss->key, steering->key, PAIRNIC_KEY);
	return 0;
}

/* Writes the table of a context; the key is that of all of them. */
static int write_rss(struct pairnic *nic, u32 context,
		     const struct ethtool_rxfh_param *rss)
{
	struct pairnic_steering *steering = &nic->steering;

	if (rss->hfunc != ETH_RSS_HASH_NO_CHANGE &&
	    rss->hfunc != ETH_RSS_HASH_TOP)
		return -EOPNOTSUPP;
	spin_lock_bh(&steering->lock);
	if (rss->indir)
		memcpy(steering->indir[context], rss->indir,
		       sizeof(steering->indir[context]));
	if (rss->key && !context)
		memcpy(steering->key, rss->key, PAIRNIC_KEY);
	spin_unlock_bh(&steering->lock);
	return 0;
}

static int set_rss(struct net_device *dev, struct ethtool_rxfh_param *rss,
		   struct netlink_ext_ack *extack)
{
	return write_rss(netdev_priv(dev), 0, rss);
}

/* What the user leaves open, the core wants to be told. */
static int create_context(struct net_device *dev,
			  struct ethtool_rxfh_context *context,
			  const struct ethtool_rxfh_param *rss,
			  struct netlink_ext_ack *extack)
{
	struct pairnic *nic = netdev_priv(dev);
	struct ethtool_rxfh_param all = *rss;
	int i;

	if (!all.indir) {
		all.indir = ethtool_rxfh_context_indir(context);
		for (i = 0; i < PAIRNIC_INDIR; i++)
			all.indir[i] =
				ethtool_rxfh_indir_default(i, nic->queues);
	}
	if (!rss->key)
		memcpy(ethtool_rxfh_context_key(context), nic->steering.key,
		       PAIRNIC_KEY);
	context->hfunc = ETH_RSS_HASH_TOP;
	return write_rss(nic, rss->rss_context, &all);
}

static int modify_context(struct net_device *dev,
			  struct ethtool_rxfh_context *context,
			  const struct ethtool_rxfh_param *rss,
			  struct netlink_ext_ack *extack)
{
	return write_rss(netdev_priv(dev), rss->rss_context, rss);
}

static int remove_context(struct net_device *dev,
			  struct ethtool_rxfh_context *context, u32 number,
			  struct netlink_ext_ack *extack)
{
	return 0;
}

/* ------------------------------------------------------- counters */

static const char *const names[COUNTS] = {
	[COUNT_PACKETS] = "packets",
	[COUNT_BYTES] = "bytes",
	[COUNT_DEVICE_BUFFERS] = "device_buffers",
	[COUNT_PAGE_BUFFERS] = "page_buffers",
	[COUNT_LINEAR_BYTES] = "linear_bytes",
	[COUNT_NO_BUFFER] = "no_buffer",
	[COUNT_OVERRUN] = "overrun",
	[COUNT_RULE_DROP] = "rule_drop",
	[COUNT_RULE_REFUSED] = "rule_refused",
	[COUNT_MERGED] = "merged",
	[COUNT_FAULT_LINEAR] = "fault_linear",
	[COUNT_FAULT_PAGE_PACKET] = "fault_page_packet",
	[COUNT_FAULT_PAGE_BUFFER] = "fault_page_buffer",
	[COUNT_FAULT_DROP] = "fault_drop",
	[COUNT_FAULT_DELAY] = "fault_delay",
	[COUNT_FAULT_REORDER] = "fault_reorder",
	[COUNT_FAULT_POOL] = "fault_pool",
	[COUNT_FAULT_WRONG] = "fault_wrong",
};

static const char *const tx_names[TX_COUNTS] = {
	[TX_COUNT_PACKETS] = "packets",
	[TX_COUNT_BYTES] = "bytes",
	[TX_COUNT_DEVICE_PACKETS] = "device_packets",
};

static int get_sset_count(struct net_device *dev, int set)
{
	struct pairnic *nic = netdev_priv(dev);

	return set == ETH_SS_STATS ? nic->queues * (COUNTS + TX_COUNTS)
				   : -EOPNOTSUPP;
}

static void get_strings(struct net_device *dev, u32 set, u8 *strings)
{
	struct pairnic *nic = netdev_priv(dev);
	int i, j;

	for (i = 0; i < nic->queues; i++)
		for (j = 0; j < COUNTS; j++)
			ethtool_sprintf(&strings, "rx%d_%s", i, names[j]);
	for (i = 0; i < nic->queues; i++)
		for (j = 0; j < TX_COUNTS; j++)
			ethtool_sprintf(&strings, "tx%d_%s", i, tx_names[j]);
}

static void get_counters(struct net_device *dev, struct ethtool_stats *stats,
			 u64 *values)
{
	struct pairnic *nic = netdev_priv(dev);
	int i, j;

	for (i = 0; i < nic->queues; i++)
		for (j = 0; j < COUNTS; j++)
			*values++ = READ_ONCE(nic->rx[i].count[j]);
	for (i = 0; i < nic->queues; i++)
		for (j = 0; j < TX_COUNTS; j++)
			*values++ = READ_ONCE(nic->tx[i].count[j]);
}

const struct ethtool_ops pairnic_ethtool_ops = {
	.supported_ring_params =
		ETHTOOL_RING_USE_TCP_DATA_SPLIT | ETHTOOL_RING_USE_HDS_THRS,
	.rxfh_max_num_contexts = PAIRNIC_CONTEXTS,
	.get_link = ethtool_op_get_link,
	.get_ringparam = get_rings,
	.set_ringparam = set_rings,
	.get_channels = get_channels,
	.get_rx_ring_count = get_ring_count,
	.get_rxfh_indir_size = get_indir_size,
	.get_rxfh_key_size = get_key_size,
	.get_rxfh = get_rss,
	.set_rxfh = set_rss,
	.create_rxfh_context = create_context,
	.modify_rxfh_context = modify_context,
	.remove_rxfh_context = remove_context,
	.get_rxnfc = pairnic_rules_get,
	.set_rxnfc = pairnic_rules_set,
	.get_sset_count = get_sset_count,
	.get_strings = get_strings,
	.get_ethtool_stats = get_counters,
};
