// SPDX-License-Identifier: GPL-2.0
/*
 * Receive queues: their pools of buffers, and how they start and stop, with
 * the interface or one by one when a memory provider comes or goes.
 */
#include <linux/etherdevice.h>
#include <net/netdev_lock.h>
#include <net/netdev_rx_queue.h>
#include "pairnic.h"

/*
 * A pool that may be the provider's says so with a flag, and only while
 * headers are split off: a header in memory that nobody can read is lost.
 */
static struct page_pool *make_pool(struct pairnic *nic, int index, u32 size,
				   bool of_provider)
{
	struct page_pool_params params = {
		.flags = PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV,
		.order = get_order(size),
		.pool_size = PAIRNIC_RING,
		.nid = dev_to_node(nic->dma_dev),
		.dev = nic->dma_dev,
		.dma_dir = DMA_FROM_DEVICE,
		.max_len = size,
		.netdev = nic->dev,
		.queue_idx = index,
	};

	if (of_provider &&
	    nic->dev->cfg->hds_config == ETHTOOL_TCP_DATA_SPLIT_ENABLED)
		params.flags |= PP_FLAG_ALLOW_UNREADABLE_NETMEM;
	return page_pool_create(&params);
}

static void free_pools(struct pairnic_pools *pools)
{
	page_pool_destroy(pools->payload);
	page_pool_destroy(pools->pages);
	pools->payload = NULL;
	pools->pages = NULL;
}

static int make_pools(struct pairnic *nic, int index, u32 size,
		      struct pairnic_pools *pools)
{
	struct page_pool *payload, *pages;

	payload = make_pool(nic, index, size, true);
	if (IS_ERR(payload))
		return PTR_ERR(payload);
	pages = make_pool(nic, index, PAGE_SIZE, false);
	if (IS_ERR(pages)) {
		page_pool_destroy(payload);
		return PTR_ERR(pages);
	}
	pools->payload = payload;
	pools->pages = pages;
	pools->buffer_size = size;
	return 0;
}

static void start_queue(struct pairnic_queue *queue)
{
	napi_enable_locked(&queue->napi);
	netif_queue_set_napi(queue->nic->dev, queue->index,
			     NETDEV_QUEUE_TYPE_RX, &queue->napi);
	/* What has come meanwhile found the poll disabled. */
	local_bh_disable();
	napi_schedule(&queue->napi);
	local_bh_enable();
}

static void stop_queue(struct pairnic_queue *queue)
{
	netif_queue_set_napi(queue->nic->dev, queue->index,
			     NETDEV_QUEUE_TYPE_RX, NULL);
	napi_disable_locked(&queue->napi);
	/* Only now, for the poll starts it. */
	hrtimer_cancel(&queue->wakeup);
}

int pairnic_open(struct net_device *dev)
{
	struct pairnic *nic = netdev_priv(dev);
	int i, err;

	for (i = 0; i < nic->queues; i++) {
		struct netdev_queue_config config;

		netdev_queue_config(dev, i, &config);
		err = make_pools(nic, i, config.rx_page_size,
				 &nic->rx[i].pools);
		if (err)
			goto free;
	}
	for (i = 0; i < nic->queues; i++)
		start_queue(&nic->rx[i]);
	netif_carrier_on(dev);
	netif_tx_start_all_queues(dev);
	return 0;
free:
	while (i--)
		free_pools(&nic->rx[i].pools);
	return err;
}

int pairnic_stop(struct net_device *dev)
{
	struct pairnic *nic = netdev_priv(dev);
	int i;

	netif_tx_disable(dev);
	netif_carrier_off(dev);
	for (i = 0; i < nic->queues; i++) {
		stop_queue(&nic->rx[i]);
		skb_queue_purge(&nic->rx[i].incoming);
		free_pools(&nic->rx[i].pools);
	}
	return 0;
}

static int queue_mem_alloc(struct net_device *dev,
			   struct netdev_queue_config *config, void *memory,
			   int index)
{
	return make_pools(netdev_priv(dev), index, config->rx_page_size,
			  memory);
}

static void queue_mem_free(struct net_device *dev, void *memory)
{
	free_pools(memory);
}

static int queue_start(struct net_device *dev,
		       struct netdev_queue_config *config, void *memory,
		       int index)
{
	struct pairnic *nic = netdev_priv(dev);

	nic->rx[index].pools = *(struct pairnic_pools *)memory;
	start_queue(&nic->rx[index]);
	return 0;
}

static int queue_stop(struct net_device *dev, void *memory, int index)
{
	struct pairnic *nic = netdev_priv(dev);
	struct pairnic_queue *queue = &nic->rx[index];

	stop_queue(queue);
	/* From here on buffers come back from anywhere, not from the poll. */
	page_pool_disable_direct_recycling(queue->pools.payload);
	page_pool_disable_direct_recycling(queue->pools.pages);
	*(struct pairnic_pools *)memory = queue->pools;
	return 0;
}

static void default_config(struct net_device *dev,
			   struct netdev_queue_config *config)
{
	config->rx_page_size = PAGE_SIZE;
}

static int validate_config(struct net_device *dev,
			   struct netdev_queue_config *config,
			   struct netlink_ext_ack *extack)
{
	if (is_power_of_2(config->rx_page_size) &&
	    config->rx_page_size >= PAGE_SIZE && config->rx_page_size <= SZ_64K)
		return 0;
	NL_SET_ERR_MSG(extack, "buffers have a page to 64 KiB, a power of 2");
	return -EINVAL;
}

const struct netdev_queue_mgmt_ops pairnic_queue_ops = {
	.ndo_queue_mem_size = sizeof(struct pairnic_pools),
	.ndo_queue_mem_alloc = queue_mem_alloc,
	.ndo_queue_mem_free = queue_mem_free,
	.ndo_queue_start = queue_start,
	.ndo_queue_stop = queue_stop,
	.ndo_default_qcfg = default_config,
	.ndo_validate_qcfg = validate_config,
	.supported_params = QCFG_RX_PAGE_SIZE,
};

void pairnic_init_queues(struct pairnic *nic)
{
	int i;

	for (i = 0; i < nic->queues; i++) {
		struct pairnic_queue *queue = &nic->rx[i];

		queue->nic = nic;
		queue->index = i;
		skb_queue_head_init(&queue->incoming);
		hrtimer_setup(&queue->wakeup, pairnic_wakeup, CLOCK_MONOTONIC,
			      HRTIMER_MODE_REL);
		netif_napi_add_config(nic->dev, &queue->napi, pairnic_poll, i);
	}
}
