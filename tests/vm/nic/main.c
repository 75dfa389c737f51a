// SPDX-License-Identifier: GPL-2.0
/* The module: one device that all cards are on, and the cards. */
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include "pairnic.h"

static uint pairs = 1;
module_param(pairs, uint, 0444);
MODULE_PARM_DESC(pairs, "pairs of cards, 1 to 4");

static uint queues = 16;
module_param(queues, uint, 0444);
MODULE_PARM_DESC(queues, "queues of each card, 1 to 64");

static int node = NUMA_NO_NODE;
module_param(node, int, 0444);
MODULE_PARM_DESC(node, "NUMA node of the cards, -1 none");

static struct platform_device *device;
static struct pairnic *nics[2 * PAIRNIC_MAX_PAIRS];

static void get_stats(struct net_device *dev, struct rtnl_link_stats64 *stats)
{
	struct pairnic *nic = netdev_priv(dev);
	int i;

	for (i = 0; i < nic->queues; i++) {
		const u64 *rx = nic->rx[i].count, *tx = nic->tx[i].count;

		stats->rx_packets += READ_ONCE(rx[COUNT_PACKETS]);
		stats->rx_bytes += READ_ONCE(rx[COUNT_BYTES]);
		stats->rx_dropped += READ_ONCE(rx[COUNT_NO_BUFFER]) +
				     READ_ONCE(rx[COUNT_FAULT_POOL]);
		stats->rx_fifo_errors += READ_ONCE(rx[COUNT_OVERRUN]);
		stats->tx_packets += READ_ONCE(tx[TX_COUNT_PACKETS]);
		stats->tx_bytes += READ_ONCE(tx[TX_COUNT_BYTES]);
	}
}

static const struct net_device_ops netdev_ops = {
	.ndo_open = pairnic_open,
	.ndo_stop = pairnic_stop,
	.ndo_start_xmit = pairnic_xmit,
	.ndo_get_stats64 = get_stats,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_validate_addr = eth_validate_addr,
};

/* A packet may have come after its queue was emptied by pairnic_stop(). */
static void destroy_nic(struct pairnic *nic)
{
	int i;

	if (!nic)
		return;
	for (i = 0; i < nic->queues; i++)
		skb_queue_purge(&nic->rx[i].incoming);
	kfree(nic->rx);
	kfree(nic->tx);
	free_netdev(nic->dev);
}

/* Segmentation stays with the stack: a packet here is one of the wire. */
static void describe_nic(struct net_device *dev, int number)
{
	snprintf(dev->name, IFNAMSIZ, "pair%d", number);
	SET_NETDEV_DEV(dev, &device->dev);
	eth_hw_addr_random(dev);
	dev->netdev_ops = &netdev_ops;
	dev->ethtool_ops = &pairnic_ethtool_ops;
	dev->queue_mgmt_ops = &pairnic_queue_ops;
	dev->netmem_tx = NETMEM_TX_DMA;
	dev->hw_features =
		NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_RXCSUM | NETIF_F_NTUPLE;
	dev->features = dev->hw_features | NETIF_F_HIGHDMA;
	dev->max_mtu = 9000;
	dev->cfg->hds_config = ETHTOOL_TCP_DATA_SPLIT_ENABLED;
}

static struct pairnic *make_nic(int number)
{
	struct net_device *dev;
	struct pairnic *nic;

	dev = alloc_etherdev_mqs(sizeof(*nic), queues, queues);
	if (!dev)
		return NULL;
	nic = netdev_priv(dev);
	nic->dev = dev;
	nic->dma_dev = &device->dev;
	nic->queues = queues;
	nic->rx = kcalloc(queues, sizeof(*nic->rx), GFP_KERNEL);
	nic->tx = kcalloc(queues, sizeof(*nic->tx), GFP_KERNEL);
	if (!nic->rx || !nic->tx) {
		kfree(nic->rx);
		kfree(nic->tx);
		free_netdev(dev);
		return NULL;
	}
	describe_nic(dev, number);
	pairnic_init_steering(nic);
	pairnic_init_queues(nic);
	return nic;
}

/* The cards read and write memory by its DMA address, see pairnic_memory(). */
static int check_dma(struct device *dev)
{
	struct page *page = alloc_page(GFP_KERNEL);
	dma_addr_t address;
	int err = -EOPNOTSUPP;

	if (!page)
		return -ENOMEM;
	address = dma_map_page(dev, page, 0, PAGE_SIZE, DMA_FROM_DEVICE);
	if (!dma_mapping_error(dev, address)) {
		if (address == page_to_phys(page))
			err = 0;
		else
			dev_err(dev, "DMA addresses are not physical ones\n");
		dma_unmap_page(dev, address, PAGE_SIZE, DMA_FROM_DEVICE);
	}
	__free_page(page);
	return err;
}

static int make_device(void)
{
	int err;

	device = platform_device_alloc("pairnic", PLATFORM_DEVID_NONE);
	if (!device)
		return -ENOMEM;
	set_dev_node(&device->dev, node);
	err = platform_device_add(device);
	if (err) {
		platform_device_put(device);
		return err;
	}
	err = dma_coerce_mask_and_coherent(&device->dev, DMA_BIT_MASK(64));
	if (!err)
		err = check_dma(&device->dev);
	if (err)
		platform_device_unregister(device);
	return err;
}

static int register_nics(void)
{
	uint i;
	int err = 0;

	for (i = 0; i < 2 * pairs; i++) {
		err = register_netdev(nics[i]->dev);
		if (err)
			break;
	}
	if (!err)
		return 0;
	while (i-- > 0)
		unregister_netdev(nics[i]->dev);
	return err;
}

static void destroy_nics(void)
{
	uint i;

	for (i = 0; i < 2 * pairs; i++)
		destroy_nic(nics[i]);
}

/* The cards with numbers 2 N and 2 N + 1 are joined. */
static int make_nics(void)
{
	uint i;

	for (i = 0; i < 2 * pairs; i++) {
		nics[i] = make_nic(i);
		if (!nics[i])
			return -ENOMEM;
	}
	for (i = 0; i < 2 * pairs; i++)
		nics[i]->peer = nics[i ^ 1];
	return 0;
}

static int __init pairnic_init(void)
{
	int err;

	if (queues < 1 || queues > PAIRNIC_MAX_QUEUES || pairs < 1 ||
	    pairs > PAIRNIC_MAX_PAIRS ||
	    (node != NUMA_NO_NODE &&
	     (node < 0 || node >= MAX_NUMNODES || !node_online(node))))
		return -EINVAL;
	err = make_device();
	if (err)
		return err;
	err = make_nics();
	if (!err)
		err = register_nics();
	if (!err)
		return 0;
	destroy_nics();
	platform_device_unregister(device);
	return err;
}

/*
 * Either card of a pair hands packets to the other one, but only while that
 * runs: it is after both are gone that their memory may go. The kernel unmaps
 * a binding's dma-buf from the DMA device once the last buffer has come back,
 * which may be after this, and holds no reference to the device for that: the
 * one taken here is never put, and the device's memory stays.
 */
static void __exit pairnic_exit(void)
{
	uint i;

	for (i = 0; i < 2 * pairs; i++)
		unregister_netdev(nics[i]->dev);
	destroy_nics();
	get_device(&device->dev);
	platform_device_unregister(device);
}

module_init(pairnic_init);
module_exit(pairnic_exit);
MODULE_DESCRIPTION(
	"Pair of software network cards for tests of device-memory TCP");
MODULE_LICENSE("GPL");
