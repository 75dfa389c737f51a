// SPDX-License-Identifier: GPL-2.0
/*
 * Transmission: a packet is put as it is into the queue of the peer that its
 * steering says, and given back when it has been copied there. Its memory is
 * never made a copy of for safety (skb_orphan_frags), for then a sender of
 * device memory would be told that it had been copied.
 */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include "pairnic.h"

/*
 * The bytes of TCP payload of a packet that the stack has just built, 0 if it
 * is not TCP; and those of its headers.
 */
u32 pairnic_payload(const struct sk_buff *skb, u32 *headers)
{
	*headers = skb_headlen(skb);
	if (skb->protocol == htons(ETH_P_IP)) {
		if (ip_hdr(skb)->protocol != IPPROTO_TCP)
			return 0;
	} else if (skb->protocol == htons(ETH_P_IPV6)) {
		if (ipv6_hdr(skb)->nexthdr != IPPROTO_TCP)
			return 0;
	} else {
		return 0;
	}
	*headers = skb_tcp_all_headers(skb);
	return skb->len - *headers;
}

/* Puts a packet into a queue, or says what counts it as lost. */
static int arrive(struct pairnic_queue *queue, struct sk_buff *skb)
{
	u32 headers;
	bool data = pairnic_payload(skb, &headers) > 0;

	if (skb_queue_len(&queue->incoming) >= PAIRNIC_RING)
		return COUNT_OVERRUN;
	if (data && pairnic_due(&queue->faults.drop, READ_ONCE(fault_drop)))
		return COUNT_FAULT_DROP;
	pairnic_cb(skb)->due = 0;
	if (data && READ_ONCE(fault_delay_us)) {
		pairnic_cb(skb)->due =
			ktime_add_us(ktime_get(), READ_ONCE(fault_delay_us));
		queue->count[COUNT_FAULT_DELAY]++;
	}
	__skb_queue_tail(&queue->incoming, skb);
	return -1;
}

static void count_sent(struct pairnic *nic, const struct sk_buff *skb)
{
	struct pairnic_tx_queue *queue = &nic->tx[skb_get_queue_mapping(skb)];

	queue->count[TX_COUNT_PACKETS]++;
	queue->count[TX_COUNT_BYTES] += skb->len;
	if (!skb_frags_readable(skb))
		queue->count[TX_COUNT_DEVICE_PACKETS]++;
}

netdev_tx_t pairnic_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct pairnic *nic = netdev_priv(dev), *peer = nic->peer;
	struct pairnic_queue *queue;
	int index, lost;

	count_sent(nic, skb);
	if (!netif_running(peer->dev)) {
		kfree_skb(skb);
		return NETDEV_TX_OK;
	}
	index = pairnic_steer(peer, skb);
	queue = &peer->rx[max(index, 0)];
	skb_tx_timestamp(skb);

	spin_lock(&queue->incoming.lock);
	lost = index < 0 ? COUNT_RULE_DROP : arrive(queue, skb);
	if (lost >= 0)
		queue->count[lost]++;
	spin_unlock(&queue->incoming.lock);

	if (lost >= 0)
		kfree_skb(skb);
	else
		napi_schedule(&queue->napi);
	return NETDEV_TX_OK;
}
